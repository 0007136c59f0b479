"""A push service on h2 that misbehaves on purpose, at the other end of Belfry's APNs gateway.

Each scenario is a hub of its own whose APNs endpoint is a server of its own. On its first connection
the server does something wrong, from the second on it is what it should be; so every push has to arrive
in the end, and one more to the same hub at once. All scenarios run at the same time, in one Belfry, from
the moment that the first of their tests starts: much of what they do is waiting. So the first runs ahead
of all other files, and the rest behind them (`conftest.py`).
"""

import collections
import concurrent.futures
import dataclasses
import json
import struct
import threading
import time
import uuid

import h2.exceptions
import hyperframe.frame as frames
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from support.certificates import Authority, pem_of
from support.http2_server import Gone, HTTP2Server, accepting
from support.hub import ServedHubs

TEAM, KEY, TOPIC = "DEF123GHIJ", "ABC123DEFG", "com.example.interop"
REFUSED_STREAM, INTERNAL_ERROR, ENHANCE_YOUR_CALM = 7, 2, 11
OK = {"Success": 1}
END = ("END_HEADERS", "END_STREAM")


@dataclasses.dataclass
class Scenario:
    name: str
    behave: object
    #: How many devices the notification goes to.
    pushes: int = 1
    #: What becomes of them; `None`: all succeed.
    outcomes: dict | None = None
    #: Bytes of the text.
    text: int = 10
    #: How many connections it may take, the last push included.
    connections: int = 3
    #: Whether a push may be accepted twice, because its first answer did not get through.
    may_repeat: bool = False
    #: Seconds that it may take.
    limit: float = 30


SCENARIOS = {}


def scenario(name, **members):
    """Registers what the server does on every connection."""

    def register(behave):
        SCENARIOS[name] = Scenario(name, behave, **members)
        return behave

    return register


def first(name, **members):
    """Registers what the server does on its first connection; then it accepts everything."""

    def register(misbehave):
        def behave(peer):
            if peer.number > 1:
                accepting(peer)
            else:
                misbehave(peer)

        SCENARIOS[name] = Scenario(name, behave, **members)
        return misbehave

    return register


def goaway(last, code=0, debug=b""):
    return frames.GoAwayFrame(0, last_stream_id=last, error_code=code, additional_data=debug)


def header_block(*fields):
    """HPACK that leaves the dynamic table alone, so that any frame may be left out."""
    return b"".join(
        b"\x00" + struct.pack("!B", len(n)) + n.encode() + length(len(v)) + v.encode()
        for n, v in fields
    )


def length(value):
    """An HPACK integer with a prefix of 7 bits."""
    if value < 127:
        return bytes([value])
    out, value = [127], value - 127
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def headers(stream, *fields, flags=("END_HEADERS",)):
    return frames.HeadersFrame(stream, header_block(*fields), flags=list(flags))


def data(stream, body, *flags):
    return frames.DataFrame(stream, body, flags=list(flags))


scenario("nothing wrong", pushes=50)(accepting)


# MARK: Connections that end


@first("GOAWAY in the middle, with some streams below it and some above", pushes=20)
def _(peer):
    peer.start(max_concurrent_streams=100)
    peer.accept(peer.request())
    requests = peer.requests(19)
    peer.frame(goaway(requests[8].stream))
    for request in requests[:9]:
        peer.accept(request)
    peer.wait_for_end()


@first("GOAWAY for everything, with Apple's reason", pushes=5)
def _(peer):
    peer.start(max_concurrent_streams=100)
    peer.request()
    peer.frame(goaway(0, debug=b'{"reason":"Shutdown"}'))
    peer.wait_for_end()


@first("GOAWAY first for all that may come, then for nothing more", pushes=10)
def _(peer):
    # The two steps of RFC 9113, section 6.8.
    peer.start(max_concurrent_streams=100)
    peer.accept(peer.request())
    requests = peer.requests(9)
    peer.frame(goaway(2**31 - 1))
    for request in requests:
        peer.accept(request)
    peer.frame(goaway(requests[-1].stream))
    peer.wait_for_end()


@first("GOAWAY in anger, and the line cut at once", pushes=5, may_repeat=True)
def _(peer):
    peer.start(max_concurrent_streams=100)
    peer.accept(peer.request())
    requests = peer.requests(4)
    peer.frame(goaway(requests[1].stream, ENHANCE_YOUR_CALM))


@first("a line that breaks before any answer", pushes=3)
def _(peer):
    peer.start(max_concurrent_streams=100)
    peer.request()


@first("a line that breaks in the middle of a refusal")
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    peer.frame(headers(request.stream, (":status", "410"), ("content-length", "60")))
    peer.frame(data(request.stream, b'{"reason":"Unregist'))


@first("a line that breaks in the middle of a frame")
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    peer.raw(headers(request.stream, (":status", "200")).serialize()[:12])


# MARK: Streams that end


@first("REFUSED_STREAM for all but the first", pushes=20)
def _(peer):
    peer.start(max_concurrent_streams=100)
    peer.accept(peer.request())
    for request in peer.requests(19):
        peer.frame(frames.RstStreamFrame(request.stream, REFUSED_STREAM))
    peer.accept_all()


def wait_for_headers(peer):
    """Of the first request, whose body does not fit into its window."""
    peer.grants = False
    while not peer._parts:
        peer.read()
    peer.grants = True


@first("REFUSED_STREAM before the request has been read", pushes=5, text=3000)
def _(peer):
    peer.start(max_concurrent_streams=100, initial_window_size=100)
    wait_for_headers(peer)
    peer.frame(frames.RstStreamFrame(1, REFUSED_STREAM))
    peer.accept_all()


@first("INTERNAL_ERROR for every other stream", pushes=20)
def _(peer):
    peer.start(max_concurrent_streams=100)
    peer.accept(peer.request())
    for number in range(19):
        request = peer.request()
        if number % 2:
            peer.accept(request)
        else:
            peer.frame(frames.RstStreamFrame(request.stream, INTERNAL_ERROR))
    peer.accept_all()


@first("an answer, and then NO_ERROR for the rest of the request", text=3000)
def _(peer):
    # RFC 9113, section 8.1: this is no failure.
    peer.start(max_concurrent_streams=100, initial_window_size=100)
    wait_for_headers(peer)
    peer.server.accepted.append(peer._parts[1][0][":path"])
    peer.frame(headers(1, (":status", "200"), flags=END))
    peer.frame(frames.RstStreamFrame(1, 0))
    settle(peer)


def settle(peer):
    """Goes on as a server that does as it should, with a state that h2 has lost track of."""
    try:
        while True:
            request = peer.request()
            peer.server.accepted.append(request.path)
            peer.frame(
                headers(request.stream, (":status", "200"), flags=END)
            )
    except h2.exceptions.ProtocolError:
        pass


# MARK: Limits


@first("no stream at all for a while, then all of them", pushes=10)
def _(peer):
    peer.start(max_concurrent_streams=0)
    assert peer.request(0.5) is None, "a stream was opened though none was allowed"
    peer.settings(max_concurrent_streams=100)
    peer.accept_all()


@first("a stream limit that is lowered from 100 to 2", pushes=30)
def _(peer):
    peer.start(max_concurrent_streams=100)
    peer.accept(peer.request())
    peer.settings(max_concurrent_streams=2)
    # Those that were on their way.
    waiting = collections.deque()
    while (request := peer.request(0.3)) is not None:
        waiting.append(request)
    while True:
        while waiting:
            peer.accept(waiting.popleft())
            most = 2 if len(waiting) < 2 else len(waiting)
            while (request := peer.request(0.02)) is not None:
                waiting.append(request)
            assert len(waiting) <= most, f"{len(waiting)} streams were open, 2 allowed"
        waiting.append(peer.request())


@first("a stream limit of 1 for good", pushes=15)
def _(peer):
    peer.start(max_concurrent_streams=1)
    while True:
        request = peer.request()
        assert peer.request(0.01) is None, "a second stream was opened"
        peer.accept(request)


@first("windows of one byte", pushes=3, text=40)
def _(peer):
    peer.start(max_concurrent_streams=100, initial_window_size=1)
    peer.accept_all()


@first("windows that shrink below what is under way", pushes=5, text=3000)
def _(peer):
    peer.start(max_concurrent_streams=100, initial_window_size=2000)
    wait_for_headers(peer)
    # The stream's window is negative now (RFC 9113, section 6.9.2).
    peer.settings(initial_window_size=10)
    while not peer.h2.local_settings.initial_window_size == 10:
        peer.read()
    peer.grant()
    peer.accept_all()


@first("a table of no headers, and then a larger one", pushes=10)
def _(peer):
    peer.start(max_concurrent_streams=100, header_table_size=0)
    peer.accept(peer.request())
    peer.settings(header_table_size=65_536)
    peer.accept(peer.request())
    peer.settings(header_table_size=100)
    peer.accept_all()


# MARK: Frames that should not be


def broken(name, *bad, **members):
    """On the first request, in place of an answer: frames or bytes made from its stream's id."""

    @first(name, may_repeat=True, **members)
    def _(peer):
        peer.start(max_concurrent_streams=100)
        request = peer.request()
        for make in bad:
            piece = make(request.stream)
            peer.raw(piece if isinstance(piece, bytes) else piece.serialize())
        try:
            # What is only the stream's trouble leaves the connection to go on.
            settle(peer)
        except h2.exceptions.ProtocolError:
            pass


def raw_frame(kind, flags, stream, payload, length=None):
    size = len(payload) if length is None else length
    head = struct.pack("!HBBBL", size >> 8, size & 255, kind, flags, stream)
    return head + payload


broken("SETTINGS of five bytes", lambda s: raw_frame(4, 0, 0, b"\x00\x03\x00\x00\x00"))
broken("a frame of 16 MiB", lambda s: raw_frame(0, 0, s, b"x" * 70_000, length=2**24 - 1))
broken("HPACK that cannot be read", lambda s: raw_frame(1, 5, s, b"\xff\xff\xff\xff\xff\xff"))
broken("DATA without HEADERS", lambda s: data(s, b"hello", "END_STREAM"))
broken("DATA outside of any stream", lambda s: raw_frame(0, 1, 0, b"x"))
broken("DATA on a stream that was never opened", lambda s: data(s + 100, b"hello"))
broken("HEADERS on a stream that was never opened", lambda s: headers(s + 100, (":status", "200")))
broken("a status of letters", lambda s: headers(s, (":status", "abc"), flags=END))
broken("no status", lambda s: headers(s, ("apns-id", "x"), flags=END))
broken("two statuses", lambda s: headers(s, (":status", "200"), (":status", "410"), flags=END))
broken("a header with capitals", lambda s: headers(s, (":status", "200"), ("Apns-Id", "x"), flags=END))
broken(
    "a reply shorter than it says",
    lambda s: headers(s, (":status", "410"), ("content-length", "100")),
    lambda s: data(s, b'{"reason":"Unregistered"}', "END_STREAM"),
)
broken("a promise that nobody asked for", lambda s: raw_frame(5, 4, s, b"\x00\x00\x00\x02\x88"))
broken("a window that overflows", *[lambda s: frames.WindowUpdateFrame(0, 2**31 - 1)] * 2)
broken("a window that grows by nothing", lambda s: raw_frame(8, 0, s, bytes(4)))
broken("CONTINUATION of nothing", lambda s: raw_frame(9, 4, s, b"\x88"))
broken(
    "another frame amid a header block",
    lambda s: raw_frame(1, 0, s, b""),
    lambda s: raw_frame(6, 0, 0, bytes(8)),
)
broken("an answer in HTTP/1.1", lambda s: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * 20)


@first("frames of a kind that nobody knows, and a lone priority", pushes=3)
def _(peer):
    # RFC 9113, section 4.1: unknown types are ignored.
    peer.start(max_concurrent_streams=100)
    peer.raw(raw_frame(0xEE, 0xFF, 0, b"x" * 1000) + raw_frame(0xEF, 0, 77, b""))
    peer.accept_all()


@first("frames on streams that are closed", pushes=10)
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    peer.accept(request)
    peer.raw(
        raw_frame(8, 0, request.stream, struct.pack("!L", 100))
        + frames.RstStreamFrame(request.stream, INTERNAL_ERROR).serialize()
    )
    peer.accept_all()


@first("a second answer on a stream that is closed", pushes=10, may_repeat=True)
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    peer.accept(request)
    peer.frame(headers(request.stream, (":status", "410"), flags=END))
    peer.frame(data(request.stream, b"{}", "END_STREAM"))
    peer.accept_all()


# MARK: Answers in an unusual form


@first("reply headers in one CONTINUATION per byte", pushes=1)
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    peer.server.accepted.append(request.path)
    block = header_block((":status", "200"))
    pieces = [block[n : n + 4] for n in range(0, len(block), 4)]
    out = raw_frame(1, 1, request.stream, pieces[0])
    for number, piece in enumerate(pieces[1:], 2):
        out += raw_frame(9, 4 if number == len(pieces) else 0, request.stream, piece)
    peer.raw(out)
    settle(peer)


@first("a 410 in DATA frames of one byte, with trailers", outcomes={"ExpiredChannel": 1})
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    peer.frame(headers(request.stream, (":status", "410")))
    for byte in b'{"reason":"Unregistered","timestamp":%d}' % int(time.time() * 1000 + 60_000):
        peer.frame(data(request.stream, bytes([byte])))
        peer.frame(data(request.stream, b""))
    peer.frame(headers(request.stream, ("x-trailer", "x"), flags=END))
    settle(peer)


@first("102 and 103 before the answer", pushes=5)
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    for status in ("102", "103", "103"):
        peer.frame(headers(request.stream, (":status", status), ("link", "</x>")))
    peer.accept(request)
    peer.accept_all()


@first("a 410 with a body of 1 MB", outcomes={"ExpiredChannel": 1})
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    peer.frame(headers(request.stream, (":status", "410")))
    try:
        for _ in range(64):
            peer.frame(data(request.stream, b" " * 900))
    except Gone:
        pass
    settle(peer)


@first("a status that HTTP does not know", outcomes={"UnknownError": 1})
def _(peer):
    peer.start(max_concurrent_streams=100)
    peer.respond(peer.request(), 499, [("content-type", "text/html")], b"<html>\xff\xfe</html>")
    peer.accept_all()


# MARK: Too much of everything


def flood(name, piece, times, **members):
    """Sends a piece many times, in answer to the first request, and reads nothing meanwhile."""

    @first(name, may_repeat=True, **members)
    def _(peer):
        peer.start(max_concurrent_streams=100)
        request = peer.request()
        chunk = piece(request.stream)
        chunk = chunk if isinstance(chunk, bytes) else chunk.serialize()
        step = max(1, 60_000 // len(chunk))
        for _ in range(0, times, step):
            peer.raw(chunk * step)
        # Without a word more: the next connection answers.


flood("200 000 PINGs", lambda s: frames.PingFrame(0, b"pingpong"), 200_000)
flood("200 000 SETTINGS", lambda s: raw_frame(4, 0, 0, b"\x00\x03\x00\x00\x00\x64"), 200_000)
flood("200 000 empty DATA frames", lambda s: raw_frame(0, 0, s, b""), 200_000)
flood("100 000 informational answers", lambda s: headers(s, (":status", "103"), ("a", "b" * 90)), 100_000)
flood("100 000 resets of closed streams", lambda s: raw_frame(3, 0, s, bytes(4)), 100_000)
flood("100 000 unknown frames", lambda s: raw_frame(0xEE, 0, 0, b"x" * 100), 100_000)
flood("100 000 priorities", lambda s: raw_frame(2, 0, s + 2, struct.pack("!LB", 0, 9)), 100_000)


@first("a header of 1 MB in CONTINUATION frames")
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    block = header_block((":status", "200"), ("x-large", "y" * 1_000_000))
    pieces = [block[n : n + 16_000] for n in range(0, len(block), 16_000)]
    peer.raw(raw_frame(1, 1, request.stream, pieces[0]))
    for number, piece in enumerate(pieces[1:], 2):
        peer.raw(raw_frame(9, 4 if number == len(pieces) else 0, request.stream, piece))
    peer.wait_for_end()


@first("a header block that never ends")
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    peer.raw(raw_frame(1, 1, request.stream, b""))
    for _ in range(20_000):
        peer.raw(raw_frame(9, 0, request.stream, header_block(("a", "b"))))
    peer.wait_for_end()


@first("1000 small headers that make a large one each", pushes=1)
def _(peer):
    # One entry of 4000 bytes in the dynamic table, named 1000 times: 4 MB from some 5 kB.
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    entry = b"\x40\x01a" + length(3900) + b"b" * 3900
    peer.raw(raw_frame(1, 5, request.stream, b"\x88" + entry + b"\xbe" * 1000))
    peer.accept_all()


# MARK: Too little


SLOW = {"limit": 55, "connections": 4}


@first("no answer at all", **SLOW)
def _(peer):
    peer.start(max_concurrent_streams=100)
    peer.wait_for_end()


@first("no SETTINGS", **SLOW)
def _(peer):
    peer.sock.recv(1)
    try:
        while peer.sock.recv(65_536):
            pass
    except OSError:
        pass


@first("a window of nothing for the request's body", **SLOW)
def _(peer):
    peer.start(max_concurrent_streams=100, initial_window_size=0)
    peer.wait_for_end()


@first("headers of an answer, and no end", **SLOW, may_repeat=True)
def _(peer):
    peer.start(max_concurrent_streams=100)
    request = peer.request()
    peer.frame(headers(request.stream, (":status", "200")))
    peer.wait_for_end()


@scenario("every stream refused for some seconds", pushes=5, limit=55, connections=12)
def _(peer):
    peer.start(max_concurrent_streams=100)
    while True:
        request = peer.request()
        if time.monotonic() - peer.server.began < 3:
            peer.frame(frames.RstStreamFrame(request.stream, REFUSED_STREAM))
        else:
            peer.server.accepted.append(request.path)
            peer.frame(headers(request.stream, (":status", "200"), flags=END))


# MARK: Running them


@dataclasses.dataclass
class Result:
    outcomes: dict
    #: Of one more push, at the end.
    last: dict
    server: HTTP2Server
    handles: list


class Runs:
    def __init__(self, folder, scenarios):
        authority = Authority.make()
        (folder / "ca.pem").write_bytes(authority.pem)
        self.key = ec.generate_private_key(ec.SECP256R1())
        (folder / "key.p8").write_bytes(pem_of(self.key))
        identity = authority.for_localhost(folder)
        self.servers = {s.name: HTTP2Server(identity, s.behave) for s in scenarios}
        names = {s.name: f"hub{number}" for number, s in enumerate(scenarios)}
        hubs = [
            {
                "name": names[s.name],
                "apns": {
                    "keyFile": "key.p8",
                    "keyId": KEY,
                    "teamId": TEAM,
                    "bundleId": TOPIC,
                    "endpoint": self.servers[s.name].url,
                    "otherEndpoint": "none",
                },
            }
            for s in scenarios
        ]
        self.served = ServedHubs(
            folder, hubs, trust=[str(folder / "ca.pem")], logLevel="warning",
            serviceHosts=["localhost"],
        )
        self.process = self.served.process
        self.began = time.time()
        self.began_with = self.process.resident_bytes()
        self.most = 0
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()
        self._pool = concurrent.futures.ThreadPoolExecutor(max(1, len(scenarios)))
        self.results = {
            s.name: self._pool.submit(self._run, s, self.served.hubs[names[s.name]])
            for s in scenarios
        }

    def _watch(self):
        while not self._ended.wait(0.05):
            try:
                self.most = max(self.most, self.process.resident_bytes() or 0)
            except StopIteration:
                return

    def _run(self, scenario, hub):
        server = self.servers[scenario.name]
        server.began = time.monotonic()
        handles = [f"{number:064x}" for number in range(1, scenario.pushes + 1)]
        body = json.dumps({"aps": {"alert": "x" * scenario.text}})
        id = hub.send_batch("apple", body, handles)
        outcomes = hub.outcomes(id, scenario.limit)
        last = hub.outcomes(hub.send_direct("apple", body, "f" * 64))
        return Result(outcomes, last, server, handles)

    def stop(self):
        self._ended.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for server in self.servers.values():
            server.stop()
        self.process.stop()


@pytest.fixture(scope="session")
def runs(request, tmp_path_factory):
    """Starts the scenarios whose tests are to run."""
    wanted = {
        item.callspec.params["name"]
        for item in request.session.items
        if item.module.__name__ == __name__ and hasattr(item, "callspec")
    }
    made = Runs(
        tmp_path_factory.mktemp("http2"), [s for s in SCENARIOS.values() if s.name in wanted]
    )
    yield made
    made.stop()


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_pushes_arrive_after(runs, name):
    wanted = SCENARIOS[name]
    result = runs.results[name].result(timeout=58)
    assert result.outcomes == (wanted.outcomes or {"Success": wanted.pushes})
    assert result.last == OK, "the hub does not go on"
    assert result.server.errors == []
    accepted = collections.Counter(result.server.accepted)
    if wanted.outcomes is None:
        paths = {f"/3/device/{handle}" for handle in result.handles}
        assert paths <= set(accepted)
        if not wanted.may_repeat:
            assert set(accepted.values()) == {1}, "a push was accepted twice"
    assert result.server.connections <= wanted.connections
    runs.process.assert_alive()


@pytest.mark.parametrize("name", ["nothing wrong"])
def test_what_the_hub_sends_is_what_apns_asks_for(runs, name):
    runs.results[name].result(timeout=58)
    requests = runs.servers[name].received
    for request in requests:
        fields = request.headers
        assert (fields[":method"], fields[":scheme"]) == ("POST", "https")
        assert (fields["apns-topic"], fields["apns-push-type"]) == (TOPIC, "alert")
        assert fields["apns-priority"] == "10"
        assert fields["apns-id"] == str(uuid.UUID(fields["apns-id"]))
        # Apple's advice: neither is of use in HPACK's table, and the one is a secret.
        assert {":path", "authorization"} <= request.unindexed
        assert "content-encoding" not in fields
        assert json.loads(request.body) == {"aps": {"alert": "x" * 10}}
    assert len({request.headers["apns-id"] for request in requests}) == 51
    [authorization] = {request.headers["authorization"] for request in requests}
    scheme, token = authorization.split(" ")
    assert scheme == "bearer"
    claims = jwt.decode(token, runs.key.public_key(), algorithms=["ES256"])
    assert claims["iss"] == TEAM and set(claims) == {"iss", "iat"}
    assert 0 <= claims["iat"] - int(runs.began) < 60
    assert jwt.get_unverified_header(token)["kid"] == KEY
    assert {request.connection for request in requests} == {1}


def test_all_that_costs_little_memory(runs):
    concurrent.futures.wait(runs.results.values(), timeout=58)
    runs.process.assert_alive()
    if runs.began_with is None:
        pytest.skip("the system does not tell how much memory a process has")
    grown = (runs.most - runs.began_with) / 2**20
    assert grown < 150, f"it has grown by {grown:.0f} MiB"
