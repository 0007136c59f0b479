"""Server CPU per request of Belfry's HTTP front and of its peers, under the same load.

The load is h1load: one thread, keep-alive connections with one request each under way, and for
Belfry a token of its own in every request. A round goes through all servers in turn, so that a
machine that slows down slows them all; the least and the median of the rounds are printed, with
what the load itself took. CPU is that of all threads of a server's processes.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
POLICY = "DefaultListenSharedAccessSignature"
# Name, server, mode of h1load.
ROWS = [
    ("nginx, 404", "nginx", "raw404"),
    ("libmicrohttpd, 404 at once", "mhd", "raw404"),
    ("libmicrohttpd, suspended and resumed", "mhd-suspended", "raw404"),
    ("Go net/http, 404", "go", "raw404"),
    ("Belfry, 404 without a token", "belfry", "raw404"),
    ("Belfry, GET with a token, not found", "belfry", "get404"),
    ("Belfry, GET with a token, found", "belfry", "get200"),
    ("Belfry, PUT unchanged", "belfry", "reput"),
    ("Belfry, PUT new, durable", "belfry", "put"),
]


class Unavailable(Exception):
    """Why a server cannot be run here."""


def compile_c(source, target, *libraries):
    compiler = shutil.which("cc")
    if not compiler:
        raise Unavailable("there is no C compiler: apt-get install gcc")
    words = [compiler, "-O2", "-w", "-o", target, HERE / source, *libraries]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(done.stderr.strip().splitlines()[-1])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process, with its children, that listens on a port."""

    def __init__(self, words, port, key=""):
        self.port, self.key = port, key
        self.process = subprocess.Popen(
            [str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        self.stop()
        raise Unavailable(f"{words[0]} does not listen on port {port}")

    def processes(self):
        yield self.process.pid
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        yield from map(int, children.read_text().split())

    def cpu(self):
        """Seconds of all threads so far."""
        total = 0
        for process in self.processes():
            for thread in os.listdir(f"/proc/{process}/task"):
                try:
                    text = pathlib.Path(f"/proc/{process}/task/{thread}/schedstat").read_text()
                except OSError:
                    continue
                total += int(text.split()[0])
        return total / 1e9

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def nginx(work):
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        raise Unavailable("nginx is missing: apt-get install nginx-light")
    port = free_port()
    (work / "nginx.conf").write_text(
        f"daemon off; worker_processes 2; pid {work}/nginx.pid; error_log /dev/null;\n"
        "events { worker_connections 1024; }\n"
        "http { access_log off; keepalive_requests 100000000;\n"
        f"  server {{ listen 127.0.0.1:{port}; location / {{ return 404; }} }} }}\n"
    )
    return Server([program, "-p", work, "-c", work / "nginx.conf"], port)


def microhttpd(way):
    def start(work):
        compile_c("mhd_server.c", work / "mhd_server", "-lmicrohttpd", "-lpthread")
        port = free_port()
        return Server([work / "mhd_server", port, way], port)

    return start


def go(work):
    if not shutil.which("go"):
        raise Unavailable("go is missing: apt-get install golang-go")
    words = ["go", "build", "-o", work / "goserver", HERE / "goserver" / "main.go"]
    subprocess.run(words, check=True, capture_output=True)
    port = free_port()
    return Server([work / "goserver", port], port)


def belfry(work):
    data, port, program = work / "hub", free_port(), arguments.belfry

    def run(*words):
        words = [program, *words, "--data", data]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    run("hub", "create", "bench")
    words = ["--connection-string", "--policy", POLICY, "--endpoint", f"http://127.0.0.1:{port}"]
    connection = run("sas", "--hub", "bench", *words)
    key = re.search(r"SharedAccessKey=(\S+)", connection)[1]
    words = [program, "serve", "--data", data, "--port", port, "--log-level", "warning"]
    return Server(words, port, key)


SERVERS = {
    "nginx": nginx, "mhd": microhttpd("at-once"), "mhd-suspended": microhttpd("suspended"),
    "go": go, "belfry": belfry,
}


def load(program, server, mode, ids, count):
    words = [program, "-p", server.port, "-m", mode, "-n", count, "-c", arguments.connections]
    words += ["-P", POLICY, "-K", server.key]
    if mode in ("get200", "reput"):
        words += ["-i", ids]
    before = server.cpu()
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    spent = server.cpu() - before
    found = dict(re.findall(r"(\w+)=([\d.]+)", done.stdout))
    wanted = "s4xx" if mode.endswith("404") else "s2xx"
    if found.get(wanted) != str(count):
        sys.exit(f"peers: {mode}: {done.stdout}{done.stderr}")
    return spent / count * 1e6, float(found["rate"]), float(found["load_cpu_us"])


def main():
    if sys.platform != "linux":
        sys.exit("peers: the load and the CPU of a server's threads need Linux")
    with tempfile.TemporaryDirectory() as directory:
        work, servers, missing = pathlib.Path(directory), {}, {}
        program, ids = work / "h1load", work / "ids"
        compile_c("h1load.c", program, "-lcrypto")
        try:
            for name, start in SERVERS.items():
                try:
                    servers[name] = start(work)
                except Unavailable as reason:
                    missing[name] = reason
            if hub := servers.get("belfry"):
                words = [program, "-p", hub.port, "-m", "put", "-n", 10_000, "-i", ids]
                words += ["-P", POLICY, "-K", hub.key]
                subprocess.run([str(word) for word in words], check=True, capture_output=True)
            figures = {}
            for number in range(arguments.rounds):
                print(f"peers: round {number + 1} of {arguments.rounds}", file=sys.stderr)
                for name, server, mode in ROWS:
                    if server in servers:
                        run = load(program, servers[server], mode, ids, arguments.count)
                        figures.setdefault(name, []).append(run)
        finally:
            for server in servers.values():
                server.stop()
    print("| | µs CPU a request, least / median | requests/s, best | the load's own µs |")
    print("|---|---|---|---|")
    for name, runs in figures.items():
        cpu = [run[0] for run in runs]
        print(
            f"| {name} | {min(cpu):.1f} / {statistics.median(cpu):.1f} "
            f"| {max(run[1] for run in runs):,.0f} | {min(run[2] for run in runs):.1f} |"
        )
    for name, reason in missing.items():
        print(f"not measured: {name}: {reason}")


parser = argparse.ArgumentParser(prog="script/bench-peers requests", description=__doc__)
parser.add_argument("--belfry", metavar="FILE", help="the program (default: it is built)")
parser.add_argument("--rounds", type=int, default=4, help="rounds through all servers (4)")
parser.add_argument("--count", type=int, default=20_000, help="requests a run (20000)")
parser.add_argument("--connections", type=int, default=64, help="connections of the load (64)")
arguments = parser.parse_args()
if arguments.rounds < 1:
    parser.error("--rounds must be at least 1")
if not os.access(arguments.belfry or "", os.X_OK):
    parser.error(f"--belfry: there is no program {arguments.belfry}")
main()
