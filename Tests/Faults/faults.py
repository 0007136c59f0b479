"""Faults of a hub that runs on several nodes with one PostgreSQL; see docs/scale.md.

Each scenario starts a database, an emulator of the push services and hubs of its own, registers devices, sends, lets
something go wrong in the middle of a broadcast, and compares what was acknowledged with what arrived. All of it runs
on this machine in a temporary directory and is gone afterwards. As root, the database's programs run as the user
postgres.
"""

import argparse
import json
import os
import random as chance
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from cluster import (
    NotStarted, Patroni, Postgres, Stage, Standby, as_postgres, call, fail, free_port, program, say, wait)

# A node hands its work back, or is taken for gone, after so many seconds.
LEASE = 10
# Pages under way that a node may send again: 8 of a notification and push service, of 1000.
IN_FLIGHT = 8_000


class Run:
    def __init__(self, options, directory):
        self.binary, self.devices, self.directory, self.started = options.belfry, options.devices, directory, []
        self.ttl, self.kills, self.seed = options.ttl, options.kills, options.seed

    def keep(self, thing):
        self.started.append(thing)
        return thing

    def postgres(self, **settings):
        return self.keep(Postgres(f"{self.directory}/database", **settings))

    def stage(self, nodes, *addresses):
        # Kept before it is whole: what has been started must not stay behind.
        stage = self.keep(Stage.__new__(Stage))
        stage.started, stage.threads = [], []
        addresses = [a if isinstance(a, tuple) else (a,) for a in addresses]
        stage.halt = threading.Event()
        stage.__init__(self.binary, self.directory, nodes, self.devices, addresses)
        return stage

    def stop(self):
        for thing in reversed(self.started):
            try:
                thing.stop()
            except (OSError, AttributeError, subprocess.SubprocessError) as error:
                print(f"faults: while ending: {error}", file=sys.stderr)


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
    time.sleep(max(0, LEASE + 3 - (time.monotonic() - stopped)))
    before = stage.hubs[1].telemetry(notification)
    node.signal(signal.SIGCONT)
    say("node 1 goes on")
    time.sleep(5)
    after = stage.hubs[1].telemetry(notification)
    if before["outcomes"] != after["outcomes"]:
        fail(f"the node that woke up has written: {before} {after}")
    stage.check(stage.hubs[1], IN_FLIGHT)
    lost = open(node.log).read().count("lease.lost")
    say(f"node 1 was refused {lost} parts that it had thought its own")


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
    say(f"the broadcast ended {took:.1f} s after the kill (a lease is {LEASE} s)")
    stage.check(stage.hubs[1], IN_FLIGHT)


def random(run):
    """One of three nodes after the other, drawn at random, is killed and started again while the push service fails."""
    draw = chance.Random(run.seed)
    database = run.postgres()
    stage = run.stage(3, database.address())
    for rule in (
            {"pns": "apns", "action": {"type": "latency", "uniform": [0, 40]}},
            {"pns": "apns", "when": {"probability": 2 / run.devices}, "action": {"type": "reset", "at": "reply"}},
            {"pns": "apns", "action": {"type": "error-rate", "rates": {"503": 0.02, "429": 0.01}}}):
        status, body = call(f"{stage.control}/v1/faults", "POST", json.dumps(rule), {"Content-Type": "application/json"})
        if status != 201:
            fail(f"the emulator takes no fault: {body}")
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
    stage.check(stage.hubs[1], run.kills * (IN_FLIGHT + 4_000) + fired * 1_000, limit=300)


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
    stage.check(stage.hubs[1], 0)


def partition(run):
    """The network between one node and the database is cut, for longer than a lease, and comes back."""
    ip = program("ip")
    if os.geteuid() != 0:
        print("faults: NOT RUN: only root makes network namespaces", file=sys.stderr)
        sys.exit(75)
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
    time.sleep(max(0, LEASE + 5 - (time.monotonic() - at)))
    status = stage.hubs[0].send("while cut off", timeout=40)[0]
    say(f"node 1 answers a send with {status}, health with {ready(stage.hubs[0])}")
    if status == 201:
        fail("a node without its database has acknowledged a send")
    net("link", "set", f"bf{os.getpid()}a1"[-15:], "up")
    back = time.monotonic()
    wait("node 1 at work again", 60, lambda: stage.hubs[0].send("back", "d-1")[0] == 201, 0.2)
    say(f"healed: node 1 takes sends again after {time.monotonic() - back:.1f} s")
    stage.check(stage.hubs[1], IN_FLIGHT)


def ready(hub):
    status, body = call(f"{hub.url}/health/ready", timeout=10)
    return f"{status} {body.decode()[:200]}"


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
    stage.check(stage.hubs[1], IN_FLIGHT)


def disk(run):
    """The database's disk is full in the middle of a broadcast, and there is room again later."""
    if os.geteuid() != 0:
        print("faults: NOT RUN: only root makes a small disk", file=sys.stderr)
        sys.exit(75)
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
    stage.check(stage.hubs[1])


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
    stage.check(stage.hubs[1])


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
    stage.check(stage.hubs[1], 0)
    holder.stdin.close()
    holder.wait(10)


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
    stage.check(stage.hubs[1])


def clock(run):
    """The clock of one node is five minutes ahead."""
    faketime = program("faketime")
    database = run.postgres()
    stage = run.stage(2, database.address(), (database.address(), faketime, "--exclude-monotonic", "-f", "+5m"))
    stage.begin_sending()
    for number in range(3):
        stage.broadcast(stage.hubs[number % 2], f"everyone {number}")
        time.sleep(1)
    time.sleep(LEASE + 2)
    stage.check(stage.hubs[0], 0)
    for hub in stage.hubs:
        if "lease.lost" in open(hub.node.log).read():
            fail("a wrong clock has taken work from a node that was alive")


def await_sends(stage, killed, promoted):
    """Waits until sends are acknowledged by the new primary, and compares them with what arrived."""
    first = wait("an acknowledged send", 90,
                 lambda: next((t for t, _, _ in stage.acknowledged if t > killed + 0.5), None))
    say(f"sends are acknowledged again {first - killed:.1f} s after the kill, {max(0, first - promoted):.1f} s after that")
    time.sleep(3)
    stage.check(stage.hubs[1])


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
    await_sends(stage, at, promoted)


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
    await_sends(stage, at, promoted)


SCENARIOS = {f.__name__: f for f in (
    killed, random, pause, drain, partition, pgbouncer, disk, connections, xmin, timeouts, clock, promote, ha)}


def main():
    parser = argparse.ArgumentParser(
        prog="script/faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="scenarios:\n" + "\n".join(f"  {name:<12} {f.__doc__}" for name, f in SCENARIOS.items()))
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="which to run (default: all)")
    parser.add_argument("--belfry", metavar="FILE", required=True, help="the program to try (default: a release build)")
    parser.add_argument("--devices", type=int, default=20_000, metavar="N", help="devices of a broadcast (default 20000)")
    parser.add_argument("--kills", type=int, default=20, metavar="N", help="kills of the scenario random (default 20)")
    parser.add_argument("--seed", type=int, default=chance.randrange(1, 1_000_000), metavar="S",
                        help="repeats what the scenario random draws (its log says with which)")
    parser.add_argument("--ttl", type=int, default=8, metavar="S", help="Patroni's ttl in seconds (default 8)")
    options = parser.parse_args()
    for name in options.scenarios:
        if name not in SCENARIOS:
            parser.error(f"there is no scenario '{name}'; see --help")
    for name in options.scenarios or SCENARIOS:
        say(f"== {name}: {SCENARIOS[name].__doc__}")
        directory = tempfile.mkdtemp(prefix="belfry-faults-")
        os.chmod(directory, 0o755)
        run = Run(options, directory)
        try:
            SCENARIOS[name](run)
            say(f"== {name}: every promise held")
        except BaseException:
            for log in sorted(os.listdir(directory)):
                if log.endswith(".log"):
                    with open(f"{directory}/{log}", errors="replace") as file:
                        print(f"-- {log}\n{file.read()[-2000:]}", file=sys.stderr)
            raise
        finally:
            run.stop()
            shutil.rmtree(directory, ignore_errors=True)


main()
