"""Callers that ask for too much of one server, and readers that take nothing of what it says; see faults.py."""

import concurrent.futures
import functools
import http.client
import json
import os
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.parse

from cluster import Hub, call, fail, say, scenario

VERSION = "?api-version=2020-06"
# What others may wait beside a flood, in seconds (in the short run, beside whatever else CI's machine does), and what
# it may cost in memory, in MB.
MOST_WAIT, MOST_WAIT_SHORT, MOST_MEMORY = 1.0, 3.0, 128


class Bystander:
    """Another hub's send and PUT, twenty times a second: how long the slowest takes, and what is refused."""

    def __init__(self, hub, run):
        self.limit = MOST_WAIT_SHORT if run.short else MOST_WAIT
        self.hub, self.slowest, self.done, self.refused = hub, {"send": 0.0, "PUT": 0.0}, {"send": 0, "PUT": 0}, []
        self.halt = threading.Event()
        self.threads = [threading.Thread(target=self.keep_asking, args=(w,), daemon=True) for w in self.slowest]
        for thread in self.threads:
            thread.start()

    def keep_asking(self, what):
        while not self.halt.is_set():
            begun = time.monotonic()
            try:
                status = self.hub.send("hello")[0] if what == "send" else self.hub.register(1, "ab" * 32)
            except (OSError, http.client.HTTPException) as error:
                status = type(error).__name__
            self.slowest[what] = max(self.slowest[what], time.monotonic() - begun)
            if status in (200, 201):
                self.done[what] += 1
            else:
                self.refused.append(status)
            time.sleep(0.05)

    def check(self, flood):
        self.halt.set()
        for thread in self.threads:
            thread.join(60)
        told = (f"beside {flood}: slowest send of another hub {self.slowest['send']:.2f} s of {self.done['send']}, "
                f"PUT {self.slowest['PUT']:.2f} s of {self.done['PUT']}, refused {self.refused[:5]}")
        if self.refused or max(self.slowest.values()) > self.limit or min(self.done.values()) < 10:
            fail(told)
        return told


def counted(statuses):
    return ", ".join(f"{count} × {status}" for status, count in sorted(
        (str(s), statuses.count(s)) for s in set(statuses))) or "no answer"


@functools.cache
def pattern(templates, tags):
    return json.dumps({"installationId": "NAME", "platform": "apns", "pushChannel": "HANDLE", "templates": {
        f"t{t}": {"body": '{"aps":{"alert":"$(m)"}}', "tags": [f"NAME_{t}_{j}" for j in range(tags)]}
        for t in range(templates)}})


def installation(name, templates, tags):
    """A document in which every tag is new; made quickly, so that the flood is the server's to bear."""
    return pattern(templates, tags).replace("NAME", name).replace("HANDLE", os.urandom(32).hex())


@scenario(short=True)
def tag_flood(run):
    """A Listen key brings 6000 new tags with each PUT, over 40 connections, while another hub sends and registers."""
    hub = Hub(run.belfry("up"))
    bystander = Bystander(hub.other("other"), run)
    end = time.monotonic() + (5 if run.short else 12)
    statuses = []

    def write(index):
        number = 0
        while time.monotonic() < end:
            number += 1
            name = f"f{index}x{number}"
            try:
                statuses.append(call(
                    f"{hub.url}/{hub.name}/installations/{name}{VERSION}", "PUT", installation(name, 100, 60),
                    {"Authorization": hub.listen, "Content-Type": "application/json"}, timeout=20)[0])
            except (OSError, http.client.HTTPException):
                statuses.append("no answer")

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        list(pool.map(write, range(40)))
    return bystander.check(f"PUTs of 6000 new tags ({counted(statuses)})")


@scenario(short=True)
def tag_burst(run):
    """A Listen key sends 400 PUTs at once, each with the 60 new tags that it may have, again and again."""
    hub = Hub(run.belfry("up"))
    place = urllib.parse.urlsplit(hub.url)
    bystander = Bystander(hub.other("other"), run)
    connections = [http.client.HTTPConnection(place.hostname, place.port, timeout=30) for _ in range(400)]
    end, number, statuses = time.monotonic() + (5 if run.short else 12), 0, []
    while time.monotonic() < end:
        number += 1
        for index, connection in enumerate(connections):
            name = f"b{number}x{index}"
            connection.request("PUT", f"/{hub.name}/installations/{name}{VERSION}", installation(name, 1, 60), {
                "Authorization": hub.listen, "Content-Type": "application/json"})
        for connection in connections:
            reply = connection.getresponse()
            reply.read()
            statuses.append(reply.status)
    return bystander.check(f"bursts of 400 PUTs ({counted(statuses)})")


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A field of HPACK that enters no table; never Huffman (RFC 7541, section 6.2.2)."""
    size = bytes([len(value)]) if len(value) < 127 else bytes([127, (len(value) - 127) % 128 | 128, (len(value) - 127) >> 7])
    return b"\0" + bytes([len(name)]) + name.encode() + size + value.encode()


class HTTP2:
    """A client that knows just enough of RFC 9113 to keep many requests under way."""

    def __init__(self, url):
        place = urllib.parse.urlsplit(url)
        self.place = place.netloc
        context = ssl._create_unverified_context()
        context.set_alpn_protocols(["h2"])
        self.socket = context.wrap_socket(
            socket.create_connection((place.hostname, place.port), timeout=4), server_hostname="localhost")
        # No answer is held back by our windows.
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"\0\4\x3f\xff\xff\xff")
                            + frame(8, 0, 0, struct.pack(">I", 0x3FFF_FFFF)))
        self.left, self.window, self.ends, self.buffer, self.out = {}, {}, {}, b"", bytearray()
        self.connection, self.initial, self.next, self.gone = 65535, 65535, 1, False

    def head(self, path, token=None):
        fields = {":method": "PUT", ":scheme": "https", ":path": path, ":authority": self.place}
        fields |= {"content-type": "application/json"} | ({"authorization": token} if token else {})
        return b"".join(literal(*field) for field in fields.items())

    def put(self, head, body, ends=True):
        """Begins a request; without `ends` its body is never whole."""
        self.out += frame(1, 4, self.next, head)
        self.left[self.next], self.window[self.next], self.ends[self.next] = memoryview(body), self.initial, ends
        self.next += 2

    def write(self):
        for stream, left in self.left.items() if self.connection > 0 else ():
            while left and self.connection > 0 and self.window[stream] > 0:
                size = min(len(left), self.connection, self.window[stream], 16384)
                last = size == len(left) and self.ends[stream]
                self.out += frame(0, int(last), stream, left[:size].tobytes())
                self.connection -= size
                self.window[stream] -= size
                left = self.left[stream] = left[size:]
        self.socket.sendall(self.out)
        self.out.clear()

    def step(self):
        """Sends what may be sent and reads once; how many answers ended, and how many of them were 200."""
        self.write()
        data = self.socket.recv(65536)
        self.gone = self.gone or not data
        self.buffer += data
        ended = good = 0
        while len(self.buffer) >= 9 and len(self.buffer) >= 9 + int.from_bytes(self.buffer[:3], "big"):
            size, kind, flags = int.from_bytes(self.buffer[:3], "big"), self.buffer[3], self.buffer[4]
            stream, payload = int.from_bytes(self.buffer[5:9], "big"), self.buffer[9:9 + size]
            self.buffer = self.buffer[9 + size:]
            if kind == 8:
                if stream == 0:
                    self.connection += int.from_bytes(payload, "big")
                elif stream in self.window:
                    self.window[stream] += int.from_bytes(payload, "big")
            elif kind == 4 and not flags & 1:
                for at in range(0, size, 6):
                    if payload[at + 1] == 4:
                        change = int.from_bytes(payload[at + 2:at + 6], "big") - self.initial
                        self.initial += change
                        self.window = {s: w + change for s, w in self.window.items()}
                self.out += frame(4, 1, 0)
            elif kind == 6 and not flags & 1:
                self.out += frame(6, 1, 0, payload)
            elif kind == 7:
                self.gone = True
            # `:status: 200` is the eighth of HPACK's static table.
            good += kind == 1 and payload[:1] == b"\x88"
            if stream in self.left and (kind == 3 or kind in (0, 1) and flags & 1):
                del self.left[stream], self.window[stream], self.ends[stream]
                ended += 1
        return ended, good


def fill(run, whose):
    """Five bodies of 800 kB that never end, on each of 200 connections: what the process takes for them, and keeps."""
    node = run.belfry("up")
    hub = Hub(node)
    url = node.addresses["hub"]["httpsUrl"]
    before = peak = node.memory()
    held, answered = [], []

    def occupy(_):
        try:
            connection = HTTP2(url)
            held.append(connection)
            head = connection.head(f"/{hub.name}/installations/x{VERSION}", whose(hub))
            for _ in range(5):
                connection.put(head, bytes(800_000), ends=False)
            while any(connection.left.values()) and not connection.gone:
                answered.append(connection.step()[0])
        except OSError:
            pass

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(occupy, n) for n in range(40 if run.short else 200)]
        while not all(w.done() for w in waiting):
            peak = max(peak, node.memory())
            time.sleep(0.2)
    peak = max(peak, node.memory())
    health = call(f"{hub.url}/$health")[0]
    for connection in held:
        connection.socket.close()
    end = time.monotonic() + 5
    while node.memory() - before > MOST_MEMORY and time.monotonic() < end:
        time.sleep(0.2)
    after = node.memory()
    told = (f"{len(held)} connections, {sum(answered)} of their requests answered: memory {before} MB, at most {peak}, "
            f"{after} after; health {health}")
    if peak - before > MOST_MEMORY or after - before > MOST_MEMORY or health != 200:
        fail(told)
    return told


@scenario(short=True)
def bodies(run):
    """Bodies that never end, sent without a token over HTTP/2."""
    return fill(run, lambda hub: None)


@scenario(short=True)
def listen_bodies(run):
    """Bodies that never end, sent with a Listen key over HTTP/2."""
    return fill(run, lambda hub: hub.listen)


@scenario(short=True)
def queue(run):
    """A Listen key keeps 4000 PUTs under way over HTTP/2, while another hub sends and registers."""
    node = run.belfry("up")
    hub = Hub(node)
    body = json.dumps({"installationId": "q", "platform": "apns", "pushChannel": "ab" * 32, "tags": ["a"]}).encode()
    done = [0, 0]

    def load(connections, seconds):
        end = time.monotonic() + seconds

        def ask(_):
            connection = HTTP2(node.addresses["hub"]["httpsUrl"])
            head, ended = connection.head(f"/{hub.name}/installations/q{VERSION}", hub.listen), 100
            try:
                while time.monotonic() < end and not connection.gone:
                    for _ in range(ended):
                        connection.put(head, body)
                    ended, good = connection.step()
                    done[0] += ended
                    done[1] += good
            except OSError:
                pass
            connection.socket.close()

        with concurrent.futures.ThreadPoolExecutor(connections) as pool:
            list(pool.map(ask, range(connections)))

    load(9, 3 if run.short else 6)
    bystander = Bystander(hub.other("other"), run)
    before, done[:] = node.memory(), [0, 0]
    seconds = 8 if run.short else 20
    load(40, seconds)
    loaded = node.memory()
    beside = bystander.check("them")
    time.sleep(2 if run.short else 8)
    rest = node.memory()
    told = (f"4000 PUTs at a time for {seconds} s, {done[1]} of {done[0]} answered with 200: memory {before} MB, then "
            f"{loaded}, at rest {rest}; {beside}")
    if max(loaded, rest) - before > MOST_MEMORY // 2 or done[1] < 200 * seconds:
        fail(told)
    return told


def ask_much(run, words, headers):
    """Requests, each with a line for a log that nobody reads; what is answered, and whether SIGTERM ends it."""
    node = run.belfry("up", *words, log=subprocess.PIPE)
    hub = Hub(node)
    # Some 460 lines fill a pipe.
    wanted, answered = 1200 if run.short else 3000, []

    def ask(_):
        for _ in range(wanted // 8):
            try:
                answered.append(call(
                    f"{hub.url}/{hub.name}/installations/x{VERSION}", headers=headers(hub), timeout=4)[0])
            except OSError:
                return

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    try:
        health = call(f"{hub.url}/$health", timeout=4)[0]
    except OSError as error:
        health = f"no answer ({type(error).__name__})"
    ends = node.stop()
    told = (f"{len(answered)} of {wanted} answered ({counted(answered)}), health {health}, SIGTERM "
            + ("ends it" if ends else "does not end it within 20 s"))
    if len(answered) < wanted or health != 200 or not ends:
        fail(told)
    return told


@scenario(short=True)
def log(run):
    """Nobody reads the log: 3000 requests without a token, and 3000 with one that write a line each."""
    without = ask_much(run, [], lambda hub: {})
    by = ask_much(run, ["--log-level", "debug"], lambda hub: {"Authorization": hub.listen})
    return f"without a token {without}; with one {by}"
