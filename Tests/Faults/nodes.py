"""Faults of several nodes with one PostgreSQL, and of the database itself; see faults.py."""

import json
import os
import random as chance
import shutil
import signal
import subprocess
import threading
import time

from cluster import (
    Broken, Clock, NotStarted, Patroni, Standby, as_postgres, call, ended, environment, fail, free_port, payload, program,
    ready, say, scenario, wait, want_root)

# Pages under way that a node may send again: 8 of a notification and push service, of 1000.
IN_FLIGHT = 8_000
# In seconds: more than the hour that push services allow the date of a token.
HOUR = 3_700


@scenario
def pause(run):
    """A node stands still for longer than its lease, in the middle of a broadcast, and wakes up."""
    database = run.postgres()
    stage = run.stage(3, database.address())
    stage.begin_sending(stage.hubs[1:])
    notification = stage.broadcast(stage.hubs[0])
    stage.await_share("everyone", 0.1)
    node = stage.hubs[0].node
    node.signal(signal.SIGSTOP)
    stopped = time.monotonic()
    say("node 1 stands still (SIGSTOP)")
    wait("the end of the broadcast without node 1", 60, lambda: stage.hubs[1].telemetry(notification)["state"] == "Completed")
    say(f"the others have ended the broadcast after {time.monotonic() - stopped:.1f} s")
    time.sleep(max(0, run.lease + 3 - (time.monotonic() - stopped)))
    before = stage.hubs[1].telemetry(notification)
    node.signal(signal.SIGCONT)
    say("node 1 goes on")
    time.sleep(5)
    after = stage.hubs[1].telemetry(notification)
    if before["outcomes"] != after["outcomes"]:
        fail(f"the node that woke up has written: {before} {after}")
    told = stage.check(stage.hubs[1], IN_FLIGHT)
    lost = open(node.log).read().count("lease.lost")
    return f"{told}; node 1 was refused {lost} parts that it had thought its own"


@scenario
def killed(run):
    """A node is killed in the middle of a broadcast, and the others take its work over."""
    database = run.postgres()
    stage = run.stage(3, database.address())
    stage.begin_sending(stage.hubs[1:])
    notification = stage.broadcast(stage.hubs[0])
    stage.await_share("everyone", 0.1)
    stage.hubs[0].node.kill()
    at = time.monotonic()
    say("killed node 1")
    wait("the end of the broadcast", 60, lambda: stage.hubs[1].telemetry(notification)["state"] == "Completed")
    took = time.monotonic() - at
    say(f"the broadcast ended {took:.1f} s after the kill (a lease is {run.lease} s)")
    return stage.check(stage.hubs[1], IN_FLIGHT)


@scenario
def random(run):
    """One of three nodes after the other, drawn at random, is killed and started again while the push service fails."""
    draw = chance.Random(run.seed)
    database = run.postgres()
    stage = run.stage(3, database.address())
    stage.fault({"type": "latency", "uniform": [0, 40]})
    stage.fault({"type": "reset", "at": "reply"}, when={"probability": 2 / run.devices})
    stage.fault({"type": "error-rate", "rates": {"503": 0.02, "429": 0.01}})
    locks = run.keep(database.sample_locks())
    stage.begin_sending(every=0.1)
    broadcasts = [stage.broadcast(stage.hubs[0], "everyone 1")]
    began = time.monotonic()
    for number in range(run.kills):
        time.sleep(draw.uniform(0.2, 3))
        index = draw.randrange(3)
        ended = [stage.hubs[(index + 1) % 3].telemetry(b)["state"] == "Completed" for b in broadcasts]
        if all(ended):
            broadcasts.append(stage.broadcast(stage.hubs[index], f"everyone {len(broadcasts) + 1}"))
            time.sleep(draw.uniform(0, 1))
        hub = stage.hubs[index]
        hub.node.kill()
        time.sleep(draw.uniform(0, 1))
        stage.restart(hub)
        if (number + 1) % 5 == 0:
            say(f"{number + 1} kills, {len(broadcasts)} broadcasts begun, {len(stage.acknowledged)} single sends")
    say(f"{run.kills} kills in {time.monotonic() - began:.0f} s, seed {run.seed}")
    for broadcast in broadcasts:
        wait("the end of a broadcast", 300, lambda: stage.hubs[0].telemetry(broadcast)["state"] == "Completed", 0.5)
    say(f"the last broadcast ended {time.monotonic() - began:.0f} s after the first began")
    locks.report()
    # Of each kill the pages under way, and the retries; of each reset the requests on the connection.
    fired = sum(f["fired"] for f in json.loads(call(f"{stage.control}/v1/faults")[1])["faults"]
                if f["action"]["type"] == "reset")
    return stage.check(stage.hubs[1], run.kills * (IN_FLIGHT + 4_000) + fired * 1_000, limit=300)


@scenario
def drain(run):
    """A node ends on SIGTERM in the middle of a broadcast: the others go on at once, and nothing is sent twice."""
    database = run.postgres()
    stage = run.stage(2, database.address())
    notification = stage.broadcast(stage.hubs[0])
    stage.await_share("everyone", 0.1)
    at = time.monotonic()
    stage.hubs[0].node.stop()
    say(f"node 1 has ended on SIGTERM in {time.monotonic() - at:.1f} s")
    wait("the end of the broadcast", 60, lambda: stage.hubs[1].telemetry(notification)["state"] == "Completed")
    say(f"the broadcast ended {time.monotonic() - at:.1f} s after the signal")
    return stage.check(stage.hubs[1], 0)


@scenario
def partition(run):
    """The network between one node and the database is cut, for longer than a lease, and comes back."""
    ip = program("ip")
    want_root("makes network namespaces")
    # The database stands in a namespace of its own, reached by two cables.
    name = f"belfry{os.getpid()}"

    def net(*words):
        subprocess.run([ip, *words], check=True)

    class Network:
        def stop(self):
            subprocess.run([ip, "netns", "del", name], check=False)

    net("netns", "add", name)
    run.keep(Network())
    net("-n", name, "link", "set", "lo", "up")
    for number in (1, 2):
        net("link", "add", f"bf{os.getpid()}a{number}"[-15:], "type", "veth", "peer", "name", f"in{number}", "netns", name)
        net("addr", "add", f"10.97.{number}.1/30", "dev", f"bf{os.getpid()}a{number}"[-15:])
        net("link", "set", f"bf{os.getpid()}a{number}"[-15:], "up")
        net("-n", name, "addr", "add", f"10.97.{number}.2/30", "dev", f"in{number}")
        net("-n", name, "link", "set", f"in{number}", "up")
    database = run.postgres(host="*", prefix=[ip, "netns", "exec", name])
    stage = run.stage(2, database.address("10.97.1.2"), database.address("10.97.2.2"))
    stage.begin_sending(stage.hubs[1:])
    notification = stage.broadcast(stage.hubs[0])
    stage.await_share("everyone", 0.1)
    net("link", "set", f"bf{os.getpid()}a1"[-15:], "down")
    at = time.monotonic()
    say("cut: node 1 does not reach the database any more")
    wait("the end of the broadcast", 90, lambda: stage.hubs[1].telemetry(notification)["state"] == "Completed")
    say(f"node 2 has ended the broadcast after {time.monotonic() - at:.1f} s")
    time.sleep(max(0, run.lease + 5 - (time.monotonic() - at)))
    status = stage.hubs[0].send("while cut off", timeout=40)[0]
    say(f"node 1 answers a send with {status}, health with {ready(stage.hubs[0])}")
    if status == 201:
        fail("a node without its database has acknowledged a send")
    net("link", "set", f"bf{os.getpid()}a1"[-15:], "up")
    back = time.monotonic()
    wait("node 1 at work again", 60, lambda: stage.hubs[0].send("back", "d-1")[0] == 201, 0.2)
    say(f"healed: node 1 takes sends again after {time.monotonic() - back:.1f} s")
    return stage.check(stage.hubs[1], IN_FLIGHT)


@scenario
def pgbouncer(run):
    """All nodes reach the database through PgBouncer in transaction mode, and one is killed."""
    database = run.postgres()
    port = free_port()
    file = f"{run.directory}/pgbouncer.ini"
    with open(file, "w") as out:
        out.write(
            f"[databases]\nbelfry = host=127.0.0.1 port={database.port} dbname=belfry user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\npool_mode = transaction\n"
            f"max_client_conn = 200\ndefault_pool_size = 20\nunix_socket_dir =\n"
            f"ignore_startup_parameters = extra_float_digits\n")
    os.chmod(file, 0o644)

    class Bouncer:
        def __init__(self):
            self.process = subprocess.Popen(
                as_postgres([program("pgbouncer"), file]), stdout=open(f"{run.directory}/pgbouncer.log", "ab"),
                stderr=subprocess.STDOUT)

        def stop(self):
            self.process.terminate()
            self.process.wait(10)

    run.keep(Bouncer())
    time.sleep(1)
    stage = run.stage(2, database.address(port=port))
    stage.begin_sending(stage.hubs[1:])
    notification = stage.broadcast(stage.hubs[0])
    stage.await_share("everyone", 0.1)
    stage.hubs[0].node.kill()
    say("killed node 1")
    wait("the end of the broadcast", 60, lambda: stage.hubs[1].telemetry(notification)["state"] == "Completed")
    return stage.check(stage.hubs[1], IN_FLIGHT)


@scenario
def disk(run):
    """The database's disk is full in the middle of a broadcast, and there is room again later."""
    want_root("makes a small disk")
    place = f"{run.directory}/database"
    os.makedirs(place)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", place], check=True)

    class Disk:
        def stop(self):
            subprocess.run(["umount", "-l", place], check=False)

    run.keep(Disk())
    database = run.postgres(max_wal_size="64MB", min_wal_size="32MB")
    stage = run.stage(2, database.address())
    stage.begin_sending()
    time.sleep(1)
    notification = stage.broadcast(stage.hubs[0])
    stage.await_share("everyone", 0.05)
    with open(f"{place}/ballast", "wb") as ballast:
        try:
            while True:
                ballast.write(bytes(1 << 20))
                ballast.flush()
        except OSError:
            pass
    say("the database's disk is full")
    time.sleep(8)
    refused = len(stage.refused)
    say(f"{refused} tries to send were refused or unanswered; health: {ready(stage.hubs[1])}")
    os.remove(f"{place}/ballast")
    if database.process.poll() is not None:
        say("PostgreSQL had ended itself (it could not write its log); started again, as its unit would")
        database.start()
    say("there is room again")
    wait("the end of the broadcast", 120, lambda: stage.hubs[1].telemetry(notification)["state"] == "Completed")
    return stage.check(stage.hubs[1])


@scenario
def connections(run):
    """The database has no connection left for another node, and for those that are there when theirs are cut."""
    database = run.postgres(max_connections=30, superuser_reserved_connections=3)
    stage = run.stage(2, database.address())
    stage.begin_sending()
    try:
        for _ in range(4):
            stage.add_node(database.address())
        fail("as many nodes as one likes found connections")
    except NotStarted as refusal:
        say(f"another node is told: {str(refusal).strip().splitlines()[-1]}")
    stage.broadcast(stage.hubs[0])
    database.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'belfry'")
    say("all connections of the hubs were ended by the server")
    time.sleep(3)
    return stage.check(stage.hubs[1])


@scenario
def xmin(run):
    """A foreign transaction stays open during the whole run and holds old rows back."""
    database = run.postgres()
    stage = run.stage(2, database.address())
    holder = subprocess.Popen(
        as_postgres([f"{database.bin}/psql", "-Xq", "-h", database.directory, "-p", str(database.port), "-U", "postgres",
                     "-d", "belfry"]), stdin=subprocess.PIPE, text=True, cwd=database.directory)
    holder.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; CREATE TEMP TABLE held (a int); SELECT count(*) FROM hub;\n")
    holder.stdin.flush()
    stage.begin_sending(every=0.005)
    for number in range(5):
        stage.broadcast(stage.hubs[number % 2], f"everyone {number}")
        time.sleep(2)
    age = database.sql("SELECT max(age(backend_xmin)) FROM pg_stat_activity")
    dead = database.sql("SELECT sum(n_dead_tup) FROM pg_stat_user_tables", "belfry")
    say(f"the oldest snapshot is {age} transactions old; {dead} dead rows")
    told = stage.check(stage.hubs[1], 0)
    holder.stdin.close()
    holder.wait(10)
    return told


@scenario
def timeouts(run):
    """The server ends statements that take too long, while a lock keeps the hubs from writing."""
    database = run.postgres()
    for name, value in (("statement_timeout", "300ms"), ("lock_timeout", "200ms")):
        database.sql(f"ALTER DATABASE belfry SET {name} = '{value}'")
    stage = run.stage(2, database.address())
    stage.begin_sending()
    stage.broadcast(stage.hubs[0])
    for _ in range(3):
        subprocess.run(
            as_postgres([f"{database.bin}/psql", "-Xq", "-h", database.directory, "-p", str(database.port), "-U",
                         "postgres", "-d", "belfry", "-c",
                         "SET statement_timeout = 0; SET lock_timeout = 0; BEGIN; LOCK TABLE work, notification IN "
                         "EXCLUSIVE MODE; SELECT pg_sleep(1); COMMIT"]), cwd=database.directory,
            capture_output=True)
        time.sleep(0.5)
    say("the tables of work were locked three times for a second each")
    return stage.check(stage.hubs[1])


def step_clock(stage, step, offsets):
    """A broadcast at each step of a clock; nobody may take it for a dead node, or for the end of a send."""
    for index, offset in enumerate(offsets):
        text = f"everyone {index}"
        stage.broadcast(stage.hubs[index % 2], text)
        stage.await_share(text, 0.1)
        step(offset)
        stage.await_delivery()
        # Longer than it takes to be missed.
        time.sleep(3)
    told = stage.check(stage.hubs[0], 0)
    for hub in stage.hubs:
        if "lease.lost" in open(hub.node.log).read():
            fail("the clock has taken work from a node that was alive")
    return told


@scenario(short=True)
def clock(run):
    """The clock of one node steps by more than an hour, forward and back, in the middle of broadcasts."""
    clock = Clock(run.directory)
    database = run.postgres()
    stage = run.stage(2, database.address(), (database.address(), *clock.prefix))
    stage.slow(2 if run.short else 5)
    stage.begin_sending(every=0.1)
    return step_clock(stage, clock.step, [HOUR, -HOUR] if run.short else [HOUR, 0, -HOUR, 0])


@scenario(short=True)
def database_clock(run):
    """The clock of the database steps by more than an hour, forward and back, in the middle of broadcasts."""
    clock = Clock(run.directory)
    database = run.postgres(prefix=clock.prefix)
    # The emulator keeps 64 MiB of what has arrived: seven broadcasts to more devices do not fit.
    run.devices = min(run.devices, 5000)
    stage = run.stage(2, database.address())
    stage.slow(5)
    stage.begin_sending(every=0.1)
    told = step_clock(stage, clock.step, [HOUR, -HOUR] if run.short else [60, 0, HOUR, 0, -HOUR, 0])
    # A node that dies beside such a step is missed as soon as any other.
    notification = stage.broadcast(stage.hubs[0], "the last")
    stage.await_share("the last", 0.1)
    clock.step(-HOUR)
    stage.hubs[1].node.kill()
    at = time.monotonic()
    wait("the end of the broadcast", 2 * run.lease + 20,
         lambda: stage.hubs[0].telemetry(notification)["state"] == "Completed")
    return f"{told}; work of a killed node taken over {time.monotonic() - at:.1f} s after a step back"


@scenario(short=True)
def outage(run):
    """The database is away for longer than a lease, again and again, while single sends go on."""
    database = run.postgres()
    stage = run.stage(2, database.address())
    stage.begin_sending(stage.hubs * 2, every=0.03)
    time.sleep(2)
    length = run.lease + (3 if run.short else 5)
    ways = {
        "its table of nodes is locked": lambda seconds: database.lock("node", seconds),
        "its processes stand still": database.freeze,
        "its server has died": database.leave,
    }
    outages = [(way, length) for way in list(ways)[: 2 if run.short else 3]]
    if not run.short:
        outages += [(way, length) for way in list(ways)[:1]] * 2 + [(way, 60) for way in ways]
    for way, seconds in outages:
        before = len(stage.refused)
        thread = threading.Thread(target=ways[way], args=(seconds,))
        thread.start()
        time.sleep(seconds - 0.5)
        told = [ready(hub) for hub in stage.hubs]
        thread.join()
        took = stage.await_delivery()
        say(f"{seconds} s in which {way}: {len(stage.refused) - before} tries refused or unanswered, health "
            f"{told[0][:3]} and {told[1][:3]}; what both accept arrives again, seen {took:.1f} s after")
        if any(t.startswith("200") for t in told):
            fail(f"a node without its database says it is ready: {told}")
    return stage.check(stage.hubs[1])


@scenario(short=True)
def restore(run):
    """pg_dump and pg_restore take everything into another cluster, whose transactions have smaller numbers."""
    old = run.postgres()
    # As after months of work: no number of the new cluster comes near for a long time.
    old.sql("DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$")
    stage = run.stage(1, old.address())
    stage.broadcast(stage.hubs[0], "before")
    stage.await_share("before", 1)
    stage.hubs[0].node.stop()
    old.run(f"{old.bin}/pg_dump", "-Fc", "-h", old.directory, "-p", str(old.port), "-U", "postgres", "-f",
            f"{old.directory}/dump", "belfry")
    old.stop()
    new = run.postgres("restored")
    new.run(f"{new.bin}/pg_restore", "-h", new.directory, "-p", str(new.port), "-U", "postgres", "-d", "belfry",
            f"{old.directory}/dump")
    node = stage.hubs[0].node
    node.words[node.words.index(old.address())] = new.address()
    stage.restart(stage.hubs[0])
    gone, stage.devices = stage.devices[:8], stage.devices[8:]
    for device in gone:
        call(f"{stage.control}/v1/devices/{device['deviceId']}/unregister", "POST", '{"mode":"unregistered"}',
             {"Content-Type": "application/json"})
    # The first one earns the credential's trust, the second removes, the third finds them gone.
    outcomes = []
    for text in ("first", "second", "third"):
        notification = stage.broadcast(stage.hubs[0], text)
        outcomes.append(wait("the end of a broadcast", 60, lambda: ended(stage.hubs[0].telemetry(notification)))["outcomes"])
    say(f"after the restore: {outcomes}")
    if outcomes[-1] != {"Success": len(stage.devices)}:
        fail(f"{len(gone)} dead devices are pushed to for ever: {outcomes[-1]}")
    stage.broadcasts = [b for b in stage.broadcasts if b[0] != "before"]
    stage.hubs[0].send("one more", "d-50")
    return f"{stage.check(stage.hubs[0], 0)}; {len(gone)} dead devices left"


@scenario(short=True)
def old_node(run):
    """The database has come to a version that the nodes are too old for, and back (no version does that: a test may)."""
    database = run.postgres()
    stage = run.stage(2, database.address())
    stage.begin_sending(every=0.1)
    version = int(database.sql("SELECT max(version) FROM schema_step", "belfry"))
    database.sql(f"INSERT INTO schema_step VALUES ({version + 1}, {version})", "belfry")
    time.sleep(3)
    for hub in stage.hubs:
        if not ready(hub).startswith("200"):
            fail(f"a node beside a newer one that allows it is not ready: {ready(hub)}")
    database.sql(f"INSERT INTO schema_step VALUES ({version + 2}, {version + 2})", "belfry")
    for index, hub in enumerate(stage.hubs):
        wait(f"node {index + 1} to learn that it is too old", 10, lambda: ready(hub).startswith("503"))
        sent = hub.send("by an old node", "d-1", f"old {index}")[0]
        put = hub.register(1, stage.devices[1]["handle"]["token"])
        say(f"node {index + 1} answers a send with {sent}, a PUT with {put}, health with {ready(hub)}")
        if (sent, put) != (503, 503):
            fail(f"a node that is too old answers a send with {sent}, a PUT with {put}")
    try:
        stage.add_node(database.address())
        fail("a node that is too old has started")
    except NotStarted as refusal:
        say(f"one that is started is told: {str(refusal).strip().splitlines()[-1]}")
    database.sql(f"DELETE FROM schema_step WHERE version > {version}", "belfry")
    for hub in stage.hubs:
        wait("a node at work again", 30, lambda: ready(hub).startswith("200"))
    stage.await_delivery()
    return stage.check(stage.hubs[1], 0)


@scenario(short=True)
def new_credential(run):
    """A credential is replaced while two sends wait for a push service that does not answer."""
    emulator = run.belfry("emulator").addresses
    data = f"{run.directory}/hub"

    def made(path, **body):
        return json.loads(call(
            f"{emulator['control']}/v1/{path}", "POST", json.dumps(body), {"Content-Type": "application/json"})[1])

    app = made("apps", pns="apns", bundleId="com.example.app")
    device = made("devices", appId=app["appId"])["devices"][0]
    with open(f"{run.directory}/AuthKey_{app['kid']}.p8", "w") as key:
        key.write(app["privateKeyPem"])
    hosts = ["--trust", emulator["ca"], "--service-hosts", "127.0.0.1"]
    run.belfry("serve", "--data", data, *hosts)

    def command(*words):
        done = subprocess.run([run.binary, *words, "--data", data, "--hub", "shop"], env=environment(),
                              capture_output=True, text=True)
        if done.returncode:
            fail(f"belfry {' '.join(words[:2])}: {done.stderr.strip()}")
        return done.stdout

    def use(address):
        command("credential", "set", "apns", "--key", key.name, "--team-id", app["teamId"], "--bundle-id",
                "com.example.app", "--endpoint", address, "--other-endpoint", "none", *hosts)

    def texts():
        found = json.loads(call(f"{emulator['control']}/v1/devices/{device['deviceId']}/notifications")[1])
        return [push["payload"] for push in found["notifications"]]

    subprocess.run([run.binary, "hub", "create", "shop", "--data", data], env=environment(), check=True,
                   capture_output=True)
    use(f"https://127.0.0.1:{free_port()}")
    for number in range(20):
        token = device["handle"]["token"] if number == 0 else os.urandom(32).hex()
        command("installation", "put", json.dumps({
            "installationId": f"device-{number}", "platform": "apns", "pushChannel": token, "tags": ["all"]}))
    for text in ("one", "two"):
        command("send", "--apns", payload(text), "--tags", "all")
        # Some tries fail, and the way to the service rests longer and longer.
        time.sleep(5 if run.short else 12)
    use(emulator["apns"])
    at = time.monotonic()
    try:
        wait("both sends", 40, lambda: len(texts()) >= 2, 0.3)
    except Broken:
        fail(f"{len(texts())} of 2 waiting sends arrived within 40 s of the right credential")
    return f"both waiting sends arrived {time.monotonic() - at:.1f} s after the right credential"


def await_sends(stage, killed, promoted):
    """Waits until sends are acknowledged by the new primary, and compares them with what arrived."""
    first = wait("an acknowledged send", 90,
                 lambda: next((t for t, _, _ in stage.acknowledged if t > killed + 0.5), None))
    say(f"sends are acknowledged again {first - killed:.1f} s after the kill, {max(0, first - promoted):.1f} s after that")
    time.sleep(3)
    return stage.check(stage.hubs[1])


@scenario
def promote(run):
    """The primary database is killed, and its synchronous standby promoted at once."""
    primary = run.postgres()
    standby = run.keep(Standby(f"{run.directory}/standby", primary))
    stage = run.stage(2, f"postgresql://postgres@{primary.host}:{primary.port},{standby.host}:{standby.port}/belfry")
    stage.begin_sending()
    time.sleep(1)
    stage.broadcast(stage.hubs[0])
    stage.await_share("everyone", 0.1)
    at = time.monotonic()
    primary.kill()
    say("killed the primary in the middle of a broadcast")
    standby.sql("SELECT pg_promote()")
    promoted = time.monotonic()
    say(f"the standby is the primary {promoted - at:.1f} s after the kill")
    return await_sends(stage, at, promoted)


@scenario
def ha(run):
    """The primary database is killed under Patroni, with a synchronous standby; run by script/ha."""
    directory = f"{run.directory}/patroni"
    os.makedirs(directory)
    database = run.keep(Patroni.__new__(Patroni))
    database.processes, database.ports = {}, {}
    database.__init__(directory, run.ttl)
    leader = database.leader()
    database.sql("CREATE DATABASE belfry", leader)
    say(f"PostgreSQL {database.sql('SHOW server_version', leader)}: primary {leader}, synchronous standby")
    stage = run.stage(2, database.address())
    stage.begin_sending()
    time.sleep(1)
    stage.broadcast(stage.hubs[0])
    stage.await_share("everyone", 0.1)
    at = time.monotonic()
    database.kill(leader, True)
    say(f"killed the primary, {leader}, with its Patroni, in the middle of a broadcast")
    wait("a new primary", 90, lambda: database.leader() not in (None, leader))
    promoted = time.monotonic()
    say(f"the primary is {database.leader()}, {promoted - at:.1f} s after the kill")
    return await_sends(stage, at, promoted)
