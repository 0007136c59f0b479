"""Client CPU per push of Belfry's transport and of its peers, against the same sink.

Each peer pushes over one TLS connection, with 1000 streams where it can, to the sink of
belfry-bench, in its own process; user and system time of that process are counted. The rounds go
through all peers in turn, so that a machine that slows down slows them all; the least and the
median of the rounds are printed.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STREAMS = 1000
BODY = '{"aps":{"alert":"Hello from Postman!"}}'
# A peer that needs this many times more than the quickest gets by with fewer pushes.
COUNTS = {"Go net/http": 10, "aioapns": 50}


class Unavailable(Exception):
    """Why a peer cannot be run here."""


def build(command, hint):
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE)
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is missing: {hint}") from None
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"{error.stderr.strip().splitlines()[-1]}: {hint}") from None


def raw_nghttp2(work):
    target = work / "raw_nghttp2"
    flags = ["-lnghttp2", "-lssl", "-lcrypto"]
    build(["cc", "-O2", "-o", str(target), "raw_nghttp2.c", *flags], "apt-get install gcc")
    return lambda port, count: [target, "127.0.0.1", port, count, STREAMS]


def h2load(work):
    build(["h2load", "--version"], "apt-get install nghttp2-client")
    body, targets = work / "body", work / "targets"
    body.write_text(BODY)
    bearer = "bearer " + "".join(chr(97 + i * 7 % 26) for i in range(183))

    def command(port, count):
        targets.write_text(
            "".join(
                f"https://127.0.0.1:{port}/3/device/{i * 0x9E3779B97F4A7C15 % 2**64:064x}\n"
                for i in range(10_000)
            )
        )
        fields = {
            "authorization": bearer,
            "apns-topic": "com.example.app",
            "apns-push-type": "alert",
            "apns-priority": "10",
            "apns-expiration": "0",
        }
        headers = [word for name in fields for word in ("-H", f"{name}: {fields[name]}")]
        options = ["-n", count, "-c", 1, "-m", STREAMS, "-i", targets, "-d", body]
        return ["h2load", *options, *headers]

    return command


def go(work):
    target = work / "gosender"
    build(["go", "build", "-o", str(target), "gosender/main.go"], "apt-get install golang-go")
    return lambda port, count: [target, "127.0.0.1", port, count, STREAMS]


def aioapns(work):
    venv = ROOT / ".build" / "bench-peers"
    python = venv / "bin" / "python"
    if not python.exists():
        build([sys.executable, "-m", "venv", str(venv)], "apt-get install python3-venv")
    build(
        [str(python), "-m", "pip", "install", "-q", "-r", "requirements.txt"],
        "its packages could not be fetched",
    )
    sender = HERE / "aioapns_sender.py"
    return lambda port, count: [python, sender, "127.0.0.1", port, count, STREAMS]


PEERS = {
    "raw nghttp2 in C": raw_nghttp2,
    "h2load": h2load,
    "Go net/http": go,
    "aioapns": aioapns,
}


def measure(command, count):
    """CPU seconds and wall seconds of one run, and the sink's CPU seconds."""
    sink = subprocess.Popen(
        [arguments.bench, "transport-sink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        port = json.loads(sink.stdout.readline())["port"]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        words = [str(word) for word in command(port, count)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        accepted = "h2load" in words[0] and f" {count} succeeded" in done.stdout
        if not accepted and (done.returncode != 0 or done.stdout.strip() != str(count)):
            sys.exit(f"{words[0]}: not all pushes were accepted\n{done.stdout}{done.stderr}")
        sink.stdin.close()
        server = json.loads(sink.stdout.readline())
    finally:
        sink.kill()
        sink.wait()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, seconds, server


def belfry(count):
    words = [arguments.bench, "--json", "transport.cpu_us_per_push"]
    words += ["--quick"] if count < 200_000 else []
    row = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["rows"][0]
    return row["value"], row["notes"]


def main():
    peers, missing = {}, {}
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        for name, prepare in PEERS.items():
            print(f"peers: preparing {name}", file=sys.stderr)
            try:
                peers[name] = prepare(work)
            except Unavailable as reason:
                missing[name] = str(reason)
        runs = {}
        for number in range(arguments.rounds):
            print(f"peers: round {number + 1} of {arguments.rounds}", file=sys.stderr)
            value, _ = belfry(arguments.count)
            runs.setdefault("Belfry", []).append((value,))
            for name, command in peers.items():
                count = arguments.count // COUNTS.get(name, 1)
                cpu, seconds, server = measure(command, count)
                figures = (cpu / count * 1e6, count / seconds, server / count * 1e6)
                runs.setdefault(name, []).append(figures)
    least = {name: min(figures) for name, figures in runs.items()}
    own = least["Belfry"][0]
    rows = [("client", "µs CPU per push, least / median", "to Belfry", "pushes/s", "sink, µs CPU")]
    for name, figures in sorted(least.items(), key=lambda entry: entry[1][0]):
        rest = (f"{figures[1]:.0f}", f"{figures[2]:.1f}") if len(figures) > 1 else ("", "")
        ratio = f"{figures[0] / own:.2f}×" if name != "Belfry" else "1"
        median = statistics.median(run[0] for run in runs[name])
        rows.append((name, f"{figures[0]:.2f} / {median:.2f}", ratio, *rest))
    if arguments.json:
        print(json.dumps({"rows": {n: f[0] for n, f in least.items()}, "missing": missing}))
        return
    for row in rows:
        print("| " + " | ".join(row) + " |")
        if row is rows[0]:
            print("|---" * len(row) + "|")
    for name, reason in missing.items():
        print(f"not measured: {name}: {reason}")


parser = argparse.ArgumentParser(prog="script/bench-peers pushes", description=__doc__)
parser.add_argument("--bench", help=argparse.SUPPRESS)
parser.add_argument("--rounds", type=int, default=5, help="rounds through all peers (5)")
parser.add_argument("--count", type=int, default=200_000, help="pushes a run (200000)")
parser.add_argument("--json", action="store_true", help="one JSON value in place of the table")
arguments = parser.parse_args()
main()
