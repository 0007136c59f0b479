"""Servers, hubs, senders and scenarios of the fault runs; see faults.py."""

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


class Broken(Exception):
    """A promise that was not held, or a stage that could not be set."""


class NotRun(Exception):
    """What this machine lacks for a scenario."""


def fail(text):
    raise Broken(text)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def program(name, *folders):
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ["PATH"], "/usr/sbin"]))
    if not found:
        raise NotRun(f"there is no {name} ({PACKAGES})")
    return found


def want_root(what):
    if os.geteuid() != 0:
        raise NotRun(f"only root {what}")


class Clock:
    """A clock of its own for what is started behind `prefix`; the steady clocks of the system stay as they are."""

    def __init__(self, directory):
        self.file = f"{directory}/clock-{free_port()}"
        self.step(0)
        # The command makes what its library would make by itself too late for Swift, which looks for its words behind
        # the environment as it was. The time in the environment would go before that of the file.
        self.prefix = ["env", f"FAKETIME_TIMESTAMP_FILE={self.file}", "FAKETIME_NO_CACHE=1", program("faketime"), "-m",
                       "--exclude-monotonic", "-f", "+0s", "env", "-u", "FAKETIME"]

    def step(self, seconds):
        """Sets it so far ahead of the machine's; in one step, whoever is reading."""
        with open(f"{self.file}.new", "w") as file:
            file.write(f"{seconds:+}s")
        os.chmod(f"{self.file}.new", 0o644)
        os.rename(f"{self.file}.new", self.file)


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
        self.run(f"{self.bin}/initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "-D", f"{directory}/data")
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

    def freeze(self, seconds):
        """All its processes stand still: connections stay, and nothing is answered."""
        with open(f"{self.directory}/data/postmaster.pid") as file:
            first = file.readline().strip()
        # The first one starts others: it is the first to stop and the last to go on.
        os.kill(int(first), signal.SIGSTOP)
        subprocess.run(["pkill", "-STOP", "-P", first], check=False)
        time.sleep(seconds)
        subprocess.run(["pkill", "-CONT", "-P", first], check=False)
        os.kill(int(first), signal.SIGCONT)
        # It has stopped with its child, where there is a `runuser`.
        os.kill(self.process.pid, signal.SIGCONT)

    def lock(self, table, seconds):
        """Nobody reads or writes a table: everything else goes on."""
        self.sql(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT", "belfry")

    def leave(self, seconds):
        """The server dies, and is started again later."""
        self.kill()
        self.process.wait(10)
        time.sleep(seconds)
        self.start()

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
        self.run(f"{self.bin}/pg_basebackup", "-R", "--checkpoint=fast", "-D", f"{directory}/data", "-d",
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


def environment():
    """Settings of whoever starts the run are not the run's."""
    return {k: v for k, v in os.environ.items() if not k.startswith("BELFRY_")} | {"BELFRY_HOME": "/dev/null"}


class Belfry:
    """A process of the program, and the addresses that it prints."""

    def __init__(self, binary, directory, *words, prefix=(), settings={}, log=None):
        """`log`: where its lines go in place of a file."""
        self.words, self.settings = [*prefix, binary, *words, "--json", "--port", "0"], settings
        self.log, self.errors = f"{directory}/belfry-{words[0]}-{free_port()}.log", log
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.words, stdout=subprocess.PIPE, stderr=self.errors or open(self.log, "ab"),
            env=environment() | self.settings, start_new_session=True)
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

    def memory(self):
        """What it has in memory, in MB."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) // 1024

    def stop(self):
        """SIGTERM; false when that does not end it within 20 s."""
        if self.process.poll() is not None:
            return True
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        end = time.monotonic() + 20
        try:
            # What stands before the command may end before it: all of the group has to.
            while time.monotonic() < end:
                self.process.poll()
                self.signal(0)
                time.sleep(0.02)
        except ProcessLookupError:
            return True
        self.kill()
        return False


class NotStarted(Exception):
    """What the program said instead."""


DESCRIPTION = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><NotificationHubDescription '
    'xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/></content></entry>')


def payload(text):
    return json.dumps({"aps": {"alert": text}})


def signed(connection_string):
    """A token for all that a connection string opens, for a day."""
    fields = dict(part.split("=", 1) for part in connection_string.rstrip(";").split(";"))
    end = int(time.time()) + 86_400
    resource = urllib.parse.quote(fields["Endpoint"].lower(), safe="").lower()
    digest = hmac.new(fields["SharedAccessKey"].encode(), f"{resource}\n{end}".encode(), hashlib.sha256).digest()
    signature = urllib.parse.quote(base64.b64encode(digest).decode(), safe="")
    return f"SharedAccessSignature sr={resource}&sig={signature}&se={end}&skn={fields['SharedAccessKeyName']}"


class Hub:
    """The REST API of one node."""

    def __init__(self, node):
        addresses = node.addresses["hub"]
        self.node, self.name, self.url = node, addresses["name"], addresses["url"]
        self.token = signed(addresses["connectionStrings"]["full"])
        self.listen = signed(addresses["connectionStrings"]["listen"])

    def other(self, name):
        """Another hub of the same namespace, made here."""
        hub = Hub.__new__(Hub)
        hub.node, hub.name, hub.url = self.node, name, self.url
        hub.token = signed(self.node.addresses["hub"]["namespaceConnectionString"])
        status = call(f"{self.url}/{name}?api-version=2020-06", "PUT", DESCRIPTION, {
            "Authorization": hub.token, "Content-Type": "application/atom+xml"})[0]
        if status not in (200, 201):
            fail(f"a second hub was answered with {status}")
        return hub

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

    def __init__(self, binary, directory, nodes, devices, addresses, settings):
        """`addresses`: of the database, one for each node, with words that stand before its command."""
        self.binary, self.directory, self.settings, self.started = binary, directory, settings, []
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
            "--data", data, prefix=prefix, settings=self.settings)))

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

    def fault(self, action, **rule):
        """Something that APNs does wrong from now on."""
        status, body = call(
            f"{self.control}/v1/faults", "POST", json.dumps({"pns": "apns", "action": action} | rule),
            {"Content-Type": "application/json"})
        if status != 201:
            fail(f"the emulator takes no fault: {body}")

    def slow(self, seconds):
        """A broadcast takes about so long from now on."""
        self.fault({"type": "latency", "uniform": [100, 300]})
        self.fault({"type": "settings", "maxConcurrentStreams": max(5, round(len(self.devices) * 0.2 / seconds))})

    def await_delivery(self, limit=30):
        """Each node delivers what it accepts from now on: a narrow send belongs to the node that took it."""
        begun = time.monotonic()
        for index, hub in enumerate(self.hubs):
            text = f"node {index + 1}, {begun}"
            wait(f"a send by node {index + 1}", limit, lambda: hub.send(text, f"d-{index}", text)[0] == 201, 0.2)
            try:
                wait("its delivery", limit, lambda: text in self.texts(self.devices[index]), 0.2)
            except Broken:
                fail(f"node {index + 1} accepts sends and delivers none within {limit} s; health: {ready(hub)}")
        return time.monotonic() - begun

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
            if state["outcomes"].get("Abandoned"):
                fail(f"{text} was abandoned for {state['outcomes']['Abandoned']} devices")
        return f"{len(self.acknowledged)} single sends and {len(self.broadcasts)} broadcasts whole, {repeats} repeats"


def ended(progress):
    return progress if progress.get("state") in ("Completed", "Canceled", "Abandoned", "NoTargetFound") else None


def ready(hub):
    """What health says of a node, in short."""
    try:
        status, body = call(f"{hub.url}/health/ready", timeout=10)
    except (OSError, http.client.HTTPException) as error:
        return f"no answer ({type(error).__name__})"
    return f"{status} {body.decode()[:200]}"


class Run:
    """One scenario under way: its figures, and what has to be ended behind it."""

    def __init__(self, options, directory):
        self.binary, self.directory, self.started = options.belfry, directory, []
        self.ttl, self.kills, self.seed, self.short = options.ttl, options.kills, options.seed, options.short
        self.devices = min(options.devices, 300) if options.short else options.devices
        # A node hands its work back, or is taken for gone, after so many seconds.
        self.lease = 2 if options.short else 10
        self.settings = {"BELFRY_DATABASE_LEASE": "2"} if options.short else {}

    def keep(self, thing):
        self.started.append(thing)
        return thing

    def belfry(self, *words, **more):
        return self.keep(Belfry(self.binary, self.directory, *words, **more))

    def postgres(self, name="database", **settings):
        return self.keep(Postgres(f"{self.directory}/{name}", **settings))

    def stage(self, nodes, *addresses):
        # Kept before it is whole: what has been started must not stay behind.
        stage = self.keep(Stage.__new__(Stage))
        stage.started, stage.threads = [], []
        addresses = [a if isinstance(a, tuple) else (a,) for a in addresses]
        stage.halt = threading.Event()
        stage.__init__(self.binary, self.directory, nodes, self.devices, addresses, self.settings)
        return stage

    def stop(self):
        for thing in reversed(self.started):
            try:
                thing.stop()
            except (OSError, AttributeError, subprocess.SubprocessError) as error:
                print(f"faults: while ending: {error}", file=sys.stderr)


SCENARIOS = {}


def scenario(function=None, *, short=False):
    """A function is a scenario from now on, called as it is; `short`: also of the short run."""
    if function is None:
        return lambda function: scenario(function, short=short)
    function.short = short
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function
