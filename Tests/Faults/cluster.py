"""Servers, hubs and senders of the fault runs; see faults.py."""

import base64
import collections
import concurrent.futures
import contextlib
import glob
import hashlib
import hmac
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

START = time.monotonic()
PACKAGES = "Debian: postgresql, patroni, etcd-server, pgbouncer, faketime, iproute2"


def say(text):
    print(f"{time.monotonic() - START:7.2f} s  {text}", flush=True)


def fail(text, code=1):
    print(f"faults: {text}", file=sys.stderr)
    sys.exit(code)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def program(name, *folders):
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ["PATH"], "/usr/sbin"]))
    if not found:
        print(f"faults: NOT RUN: there is no {name} ({PACKAGES})", file=sys.stderr)
        sys.exit(75)
    return found


def ask(connection, url, method="GET", body=None, headers={}):
    parts = urllib.parse.urlsplit(url)
    path = parts.path + ("?" + parts.query if parts.query else "")
    connection.request(method, path, body=body, headers=headers)
    reply = connection.getresponse()
    return reply.status, reply.read()


def call(url, method="GET", body=None, headers={}, timeout=10):
    """One request on a connection of its own; the status and the body."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    try:
        return ask(connection, url, method, body, headers)
    finally:
        connection.close()


KEPT = threading.local()


def call_often(url, method="GET", body=None, headers={}, timeout=60):
    """One of many requests: on a connection that the thread keeps."""
    place = urllib.parse.urlsplit(url).netloc
    kept = KEPT.__dict__.setdefault("connections", {})
    if place not in kept:
        kept[place] = http.client.HTTPConnection(*place.rsplit(":", 1), timeout=timeout)
    try:
        return ask(kept[place], url, method, body, headers)
    except (OSError, http.client.HTTPException):
        # It may have been closed since the last one; what is asked here can be asked again.
        kept.pop(place).close()
        return call(url, method, body, headers, timeout)


def wait(what, limit, look, pause=0.05):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        try:
            found = look()
            if found:
                return found
        except (OSError, http.client.HTTPException, ValueError):
            pass
        time.sleep(pause)
    fail(f"{what}: not within {limit} s")


def as_postgres(words):
    """The server's programs refuse to run as root."""
    return ["runuser", "-u", "postgres", "--", *words] if os.geteuid() == 0 else words


def postgres_bin():
    return os.path.dirname(program("initdb", *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)))


class Postgres:
    """One server of the run's own, durable as a server is by default."""

    def __init__(self, directory, host="127.0.0.1", prefix=(), **parameters):
        self.directory, self.host, self.prefix = directory, host, list(prefix)
        self.bin, self.port, self.parameters = postgres_bin(), free_port(), parameters
        self.make_directory()
        self.run(f"{self.bin}/initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "-D", f"{directory}/data")
        with open(f"{directory}/data/pg_hba.conf", "a") as file:
            file.write("host all all 0.0.0.0/0 trust\n")
        self.start()
        self.sql("CREATE DATABASE belfry")

    def make_directory(self):
        os.makedirs(self.directory, exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(self.directory, "postgres")

    def run(self, *words):
        done = subprocess.run(as_postgres(words), cwd=self.directory, capture_output=True, text=True)
        if done.returncode:
            fail(f"{words[0]}: {done.stderr or done.stdout}")

    def start(self):
        settings = {"listen_addresses": self.host, "port": self.port, "unix_socket_directories": self.directory}
        words = [f"-c {name}={value}" for name, value in (settings | self.parameters).items()]
        log = open(f"{self.directory}/log", "ab")
        self.process = subprocess.Popen(
            [*self.prefix, *as_postgres([f"{self.bin}/postgres", "-D", f"{self.directory}/data", *" ".join(words).split()])],
            stdout=log, stderr=log, cwd=self.directory, start_new_session=True)
        wait("the database server", 60, lambda: self.try_sql("SELECT 1") == "1")

    def psql(self, text, database="postgres"):
        return subprocess.run(
            as_postgres([f"{self.bin}/psql", "-XAtq", "-h", self.directory, "-p", str(self.port), "-U", "postgres",
                         "-d", database, "-c", text]), cwd=self.directory, capture_output=True, text=True)

    def try_sql(self, text):
        return self.psql(text).stdout.strip()

    def sql(self, text, database="postgres"):
        done = self.psql(text, database)
        if done.returncode:
            fail(f"{text}: {done.stderr}")
        return done.stdout.strip()

    def address(self, host=None, port=None):
        return f"postgresql://postgres@{host or self.host}:{port or self.port}/belfry"

    def sample_locks(self):
        return LockWaits(self)

    def kill(self):
        """As a machine dies that the server is on."""
        with open(f"{self.directory}/data/postmaster.pid") as file:
            first = file.readline().strip()
        subprocess.run(["pkill", "-KILL", "-P", first], check=True)
        os.kill(int(first), signal.SIGKILL)

    def stop(self):
        with contextlib.suppress(OSError, ValueError):
            with open(f"{self.directory}/data/postmaster.pid") as file:
                os.kill(int(file.readline()), signal.SIGQUIT)
            self.process.wait(10)


class Standby(Postgres):
    """A synchronous standby of a server; each commit there waits for it from now on."""

    def __init__(self, directory, primary):
        self.directory, self.host, self.prefix, self.parameters = directory, primary.host, [], {}
        self.bin, self.port = postgres_bin(), free_port()
        self.make_directory()
        self.run(f"{self.bin}/pg_basebackup", "-R", "-D", f"{directory}/data", "-d",
                 f"host={primary.directory} port={primary.port} user=postgres application_name=standby")
        self.start()
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        primary.sql("SELECT pg_reload_conf()")
        wait("the standby", 30, lambda: primary.try_sql(
            "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'") == "1")


class LockWaits:
    """Looks again and again what the hubs' connections wait for."""

    LOOK = """SELECT COALESCE(wait_event_type, 'CPU'), COALESCE(wait_event, ''), count(*) FROM pg_stat_activity
              WHERE datname = 'belfry' AND application_name LIKE 'belfry%' AND state = 'active' GROUP BY 1, 2"""

    def __init__(self, database, every=0.1):
        self.process = subprocess.Popen(
            as_postgres([f"{database.bin}/psql", "-XAtq", "-h", database.directory, "-p", str(database.port), "-U",
                         "postgres", "-d", "postgres"]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=database.directory, start_new_session=True)
        self.process.stdin.write(f"{self.LOOK} \\watch {every}\n")
        self.process.stdin.flush()
        self.every, self.begun = every, time.monotonic()
        self.found = collections.Counter()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            fields = line.strip().split("|")
            if len(fields) == 3 and fields[2].isdigit():
                self.found[fields[0], fields[1]] += int(fields[2])

    def stop(self):
        # psql stands behind runuser, where that is needed.
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.thread.join(5)

    def report(self):
        self.stop()
        seconds = time.monotonic() - self.begun
        active = sum(self.found.values())
        if not active:
            fail("pg_stat_activity showed no statement of the hubs")
        kinds = collections.Counter()
        for (kind, _), count in self.found.items():
            kinds[kind] += count
        say(f"statements of all nodes were under way for {active * self.every:.1f} s in {seconds:.0f} s: "
            + ", ".join(f"{kind} {count / active:.1%}" for kind, count in kinds.most_common()))
        locks = [(event, count) for (kind, event), count in self.found.most_common() if kind in ("Lock", "LWLock")]
        say(f"waits for locks, summed over nodes: {sum(c for _, c in locks) * self.every:.1f} s ("
            + (", ".join(f"{event} {count * self.every:.1f} s" for event, count in locks[:5]) or "none") + ")")


class Patroni:
    """Two members under Patroni, and the etcd that they agree through."""

    def __init__(self, directory, ttl):
        self.directory, self.processes, self.ports, self.rest = directory, {}, {}, {}
        self.bin = postgres_bin()
        if os.geteuid() == 0:
            shutil.chown(directory, "postgres")
        client, peer = free_port(), free_port()
        url = f"http://127.0.0.1:{client}"
        self.start("etcd", [
            program("etcd"), "--name", "one", "--data-dir", f"{directory}/etcd",
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", f"one=http://127.0.0.1:{peer}",
        ])
        wait("etcd", 20, lambda: call(f"{url}/health")[0] == 200)
        for name in ["one", "two"]:
            self.ports[name], self.rest[name] = free_port(), free_port()
            self.configure(name, client, ttl)
            self.start(name, [program("patroni"), f"{directory}/{name}.yml"])
            wait(f"member {name}", 90, lambda: self.role(name))
        wait("a synchronous standby", 60, lambda: any(
            m.get("sync_state") == "sync" or m["role"] == "sync_standby" for m in self.members()))

    def configure(self, name, etcd, ttl):
        user = {"username": "postgres"}
        settings = {
            "scope": "belfry", "name": name,
            "restapi": {"listen": f"127.0.0.1:{self.rest[name]}", "connect_address": f"127.0.0.1:{self.rest[name]}"},
            "etcd3": {"host": f"127.0.0.1:{etcd}"},
            "bootstrap": {
                "dcs": {
                    "ttl": ttl, "loop_wait": 1, "retry_timeout": 3, "synchronous_mode": True,
                    "primary_start_timeout": 0, "maximum_lag_on_failover": 0,
                    "postgresql": {"use_pg_rewind": True, "parameters": {"wal_log_hints": "on"}},
                },
                "initdb": [{"encoding": "UTF8"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.ports[name]}", "connect_address": f"127.0.0.1:{self.ports[name]}",
                "data_dir": f"{self.directory}/{name}", "bin_dir": self.bin, "pgpass": f"{self.directory}/{name}.pass",
                "authentication": {"replication": user, "superuser": user, "rewind": user},
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust",
                           "local all all trust"],
                "parameters": {"unix_socket_directories": self.directory, "max_connections": 100},
            },
        }
        with open(f"{self.directory}/{name}.yml", "w") as file:
            json.dump(settings, file)  # JSON is YAML.

    def start(self, name, words):
        log = open(f"{self.directory}/{name}.log", "ab")
        self.processes[name] = subprocess.Popen(
            as_postgres(words), stdout=log, stderr=log, cwd=self.directory, start_new_session=True)

    def role(self, name):
        return json.loads(call(f"http://127.0.0.1:{self.rest[name]}/patroni", timeout=2)[1]).get("state") == "running"

    def members(self):
        for name in self.rest:
            try:
                return json.loads(call(f"http://127.0.0.1:{self.rest[name]}/cluster", timeout=2)[1])["members"]
            except (OSError, http.client.HTTPException, ValueError):
                pass
        return []

    def leader(self):
        return next((m["name"] for m in self.members() if m["role"] in ("leader", "master")), None)

    def address(self, database="belfry"):
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write"

    def sql(self, text, name):
        return subprocess.run(
            [f"{self.bin}/psql", "-XAtq", "-h", "127.0.0.1", "-p", str(self.ports[name]), "-U", "postgres",
             "-d", "postgres", "-c", text], check=True, capture_output=True, text=True).stdout.strip()

    def kill(self, name, everything):
        """SIGKILL for a member's server and, with `everything`, its Patroni: the machine is gone."""
        with open(f"{self.directory}/{name}/postmaster.pid") as file:
            server = int(file.readline())
        if everything:
            os.killpg(self.processes[name].pid, signal.SIGKILL)
        os.kill(server, signal.SIGKILL)

    def stop(self):
        # The members before the etcd that they ask.
        for process in reversed(self.processes.values()):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        for name in self.ports:
            try:
                with open(f"{self.directory}/{name}/postmaster.pid") as file:
                    os.kill(int(file.readline()), signal.SIGQUIT)
            except (OSError, ValueError):
                pass


class Belfry:
    """A process of the program, and the addresses that it prints."""

    def __init__(self, binary, directory, *words, prefix=()):
        self.words = [*prefix, binary, *words, "--json", "--port", "0"]
        self.log = f"{directory}/belfry-{words[0]}-{free_port()}.log"
        self.start()

    def start(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BELFRY_")} | {"BELFRY_HOME": "/dev/null"}
        self.process = subprocess.Popen(
            self.words, stdout=subprocess.PIPE, stderr=open(self.log, "ab"), env=environment, start_new_session=True)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise NotStarted(open(self.log).read())
        self.addresses = json.loads(line)

    def signal(self, number):
        # What stands before the command may be its parent.
        os.killpg(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is not None:
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)


class NotStarted(Exception):
    """What the program said instead."""


def payload(text):
    return json.dumps({"aps": {"alert": text}})


class Hub:
    """The REST API of one node."""

    def __init__(self, node):
        addresses = node.addresses["hub"]
        text = addresses["connectionStrings"]["full"]
        fields = dict(part.split("=", 1) for part in text.rstrip(";").split(";"))
        self.node, self.name, self.url = node, addresses["name"], addresses["url"]
        end = int(time.time()) + 86_400
        resource = urllib.parse.quote(fields["Endpoint"].lower(), safe="").lower()
        digest = hmac.new(fields["SharedAccessKey"].encode(), f"{resource}\n{end}".encode(), hashlib.sha256).digest()
        signature = urllib.parse.quote(base64.b64encode(digest).decode(), safe="")
        self.token = f"SharedAccessSignature sr={resource}&sig={signature}&se={end}&skn={fields['SharedAccessKeyName']}"

    def request(self, method, path, body=None, timeout=15, by=call, **headers):
        headers = {"Authorization": self.token} | {k.replace("_", "-"): v for k, v in headers.items()}
        return by(f"{self.url}/{self.name}/{path}", method, body, headers, timeout)

    def register(self, number, token):
        body = json.dumps({"installationId": f"device-{number}", "platform": "apns", "pushChannel": token,
                           "tags": [f"d-{number}"]})
        return self.request(
            "PUT", f"installations/device-{number}?api-version=2020-06", body, timeout=60, by=call_often,
            Content_Type="application/json")[0]

    def send(self, text, tag=None, key=None, timeout=15):
        """The status, and the notification's id; 201 is the promise."""
        headers = {"Content_Type": "application/json;charset=utf-8", "ServiceBusNotification_Format": "apple"}
        if tag:
            headers["ServiceBusNotification_Tags"] = tag
        if key:
            headers["Idempotency_Key"] = key
        parts = urllib.parse.urlsplit(f"{self.url}/{self.name}/messages?api-version=2020-06")
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        try:
            connection.request("POST", f"{parts.path}?{parts.query}", payload(text), {"Authorization": self.token} | {
                k.replace("_", "-"): v for k, v in headers.items()})
            reply = connection.getresponse()
            reply.read()
            place = urllib.parse.urlsplit(reply.headers.get("Location") or "").path
            return reply.status, place.rsplit("/", 1)[-1]
        finally:
            connection.close()

    def telemetry(self, notification):
        status, body = self.request("GET", f"messages/{notification}/progress?api-version=2020-06")
        return json.loads(body) if status == 200 else {"state": f"status {status}"}


class Stage:
    """An emulator, some hubs on one database, devices, senders, and the account of what arrived."""

    def __init__(self, binary, directory, nodes, devices, addresses):
        """`addresses`: of the database, one for each node, with words that stand before its command."""
        self.binary, self.directory, self.started = binary, directory, []
        self.acknowledged, self.refused, self.broadcasts = [], [], []
        self.halt, self.threads = threading.Event(), []
        self.emulator = self.keep(Belfry(binary, directory, "emulator"))
        self.control = self.emulator.addresses["control"]
        self.hubs = [self.add_node(*addresses[n % len(addresses)]) for n in range(nodes)]
        app = next(a for a in json.loads(call(f"{self.control}/v1/apps")[1])["apps"] if a["pns"] == "apns")
        body = json.dumps({"appId": app["appId"], "count": devices})
        self.devices = json.loads(call(
            f"{self.control}/v1/devices", "POST", body, {"Content-Type": "application/json"}, 120)[1])["devices"]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            states = list(pool.map(
                lambda n: self.hubs[n % nodes].register(n, self.devices[n]["handle"]["token"]), range(len(self.devices))))
        if set(states) != {200}:
            fail(f"devices could not be registered: {collections.Counter(states)}")
        say(f"{nodes} hubs on one database, {devices} devices registered")

    def keep(self, thing):
        self.started.append(thing)
        return thing

    def add_node(self, address, *prefix):
        """Nodes share a master key, not a directory."""
        data, first = (f"{self.directory}/node-{number}" for number in (len(self.started), 1))
        if data != first:
            os.makedirs(data, mode=0o700, exist_ok=True)
            shutil.copy(f"{first}/master.key", data)
        return Hub(self.keep(Belfry(
            self.binary, self.directory, "up", "--emulator", self.control, "--database", address,
            "--data", data, prefix=prefix)))

    def restart(self, hub):
        """Starts a node again after it was killed; it has another address then."""
        hub.node.start()
        hub.url = hub.node.addresses["hub"]["url"]

    def stop(self):
        self.halt.set()
        for thread in self.threads:
            thread.join(30)
        for thing in reversed(self.started):
            thing.stop()

    # Load

    def begin_sending(self, hubs=None, every=0.02):
        """Single sends through each hub, each repeated under its key until it is acknowledged."""
        for index, hub in enumerate(hubs or self.hubs):
            thread = threading.Thread(target=self.keep_sending, args=(hub, f"s{index}", every), daemon=True)
            self.threads.append(thread)
            thread.start()

    def keep_sending(self, hub, name, every):
        number = 0
        while not self.halt.is_set():
            number += 1
            text, begun = f"{name}-{number}", time.monotonic()
            while True:
                try:
                    status = hub.send(text, f"d-{number % 100}", text)[0]
                except (OSError, http.client.HTTPException):
                    status = 0
                if status == 201:
                    self.acknowledged.append((time.monotonic(), text, number % 100))
                    break
                self.refused.append((time.monotonic(), status))
                if self.halt.is_set():
                    break
                time.sleep(0.1)
            time.sleep(max(0, every - (time.monotonic() - begun)))

    def broadcast(self, hub, text="everyone"):
        status, notification = hub.send(text)
        if status != 201:
            fail(f"the broadcast was answered with {status}")
        self.broadcasts.append((text, notification))
        return notification

    def pushes(self):
        """How many requests the push service has seen."""
        return json.loads(call(f"{self.control}/v1/stats")[1])

    def await_share(self, text, share, limit=60):
        """Waits until that share of the devices has a broadcast; looks at some of them."""
        some = self.devices[:: max(1, len(self.devices) // 50)]
        wait(f"{share:.0%} of {text}", limit, lambda: sum(text in self.texts(d) for d in some) >= share * len(some), 0.02)

    def texts(self, device):
        """The alerts that a device has, each with the ids that it came under."""
        found = collections.defaultdict(list)
        body = call_often(f"{self.control}/v1/devices/{device['deviceId']}/notifications?limit=10000")[1]
        for push in json.loads(body)["notifications"]:
            content = push["payload"]
            content = json.loads(content) if isinstance(content, str) else content
            found[content["aps"]["alert"]].append(push["id"])
        return found

    def end_sending(self):
        self.halt.set()
        for thread in self.threads:
            thread.join(60)
        self.threads = []

    def check(self, hub=None, repeats_allowed=None, limit=90):
        """Compares what was acknowledged with what arrived, and the counts with both."""
        self.end_sending()
        wanted = collections.defaultdict(set)
        for _, text, number in self.acknowledged:
            wanted[number].add(text)
        everyone = {text for text, _ in self.broadcasts}
        end = time.monotonic() + limit
        while True:
            lost, repeats, renamed = [], 0, 0
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for number, found in enumerate(pool.map(self.texts, self.devices)):
                    for text in wanted[number] | everyone:
                        ids = found.get(text, [])
                        if not ids:
                            lost.append((number, text))
                        repeats += max(0, len(ids) - 1)
                        renamed += len(set(ids)) > 1
            if not lost or time.monotonic() > end:
                break
            time.sleep(1)
        say(f"{len(self.acknowledged)} single sends acknowledged, {len(self.refused)} tries refused or unanswered, "
            f"{len(self.broadcasts)} broadcasts to {len(self.devices)} devices")
        say(f"lost: {len(lost)}; arrived more than once: {repeats}, under another id: {renamed}")
        if lost or renamed:
            fail(f"a promise is broken: {lost[:10]}")
        if repeats_allowed is not None and repeats > repeats_allowed:
            fail(f"{repeats} repeats, {repeats_allowed} were in flight")
        for text, notification in self.broadcasts:
            hub = hub or self.hubs[0]
            state = wait(f"the end of {text}", limit, lambda: ended(hub.telemetry(notification)), 0.3)
            say(f"{text}: {json.dumps(state, sort_keys=True)[:400]}")
            if state["state"] != "Completed":
                fail(f"{text} ended as {state['state']}")


def ended(progress):
    return progress if progress.get("state") in ("Completed", "Canceled", "Abandoned", "NoTargetFound") else None
