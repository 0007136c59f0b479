"""A broadcast over many nodes and database shards, simulated page by page with measured costs; see docs/scale.md.

    python3 Benchmarks/scale_model.py --devices 100000000 --nodes 20 --workers 20 --connections 8

A page of 1000 devices is read by its shard's worker, made into requests by its node, sent over one of the node's
connections, and recorded by the worker. Each step takes its turn where it is done; the time of the last record is
the length of the broadcast. With --kill, nodes die at that second and their parts wait for the lease's end.
"""

import argparse
import heapq
import itertools

PAGE = 1000


class Servers:
    """Some cores, or connections, that do one piece of work at a time each, in the order of arrival."""

    def __init__(self, count):
        self.free = [0.0] * count
        self.busy = 0.0

    def serve(self, now, seconds):
        start = max(now, heapq.heappop(self.free))
        heapq.heappush(self.free, start + seconds)
        self.busy += seconds
        return start + seconds


class Node:
    def __init__(self, options):
        self.cores = Servers(options.node_cores)
        self.connections = Servers(options.connections)
        self.parts = 0
        self.dies = float("inf")


def simulate(options):
    us = 1e-6 * PAGE
    nodes = [Node(options) for _ in range(options.nodes)]
    for node in nodes[: options.kill]:
        node.dies = options.kill_at
    workers = [Servers(options.worker_cores) for _ in range(options.workers)]
    pages = -(-options.devices // options.shards // PAGE)
    waiting = [(0.0, shard, 0) for shard in range(options.shards)]  # (free from, shard, first page)
    heapq.heapify(waiting)
    order, events, end, repeated = itertools.count(), [], 0.0, 0

    def claim(now):
        """Every node takes parts while it has fewer than it may; those with the fewest first."""
        for node in sorted((n for n in nodes if now < n.dies), key=lambda n: n.parts):
            while node.parts < options.parts and waiting and waiting[0][0] <= now:
                _, shard, page = heapq.heappop(waiting)
                node.parts += 1
                part = {"node": node, "shard": shard, "read": page, "recorded": page, "under_way": 0}
                heapq.heappush(events, (now, next(order), "read", part))

    claim(0.0)
    looks = 0.0
    while events or waiting:
        if not events:
            looks = max(looks + options.poll, waiting[0][0])
            claim(looks)
            continue
        now, _, what, part = heapq.heappop(events)
        node, worker = part["node"], workers[part["shard"] % options.workers]
        if now >= node.dies:
            # What was not recorded is sent again by the next owner, once the lease has ended.
            if not part.get("lost"):
                part["lost"] = True
                repeated += part["under_way"]
                heapq.heappush(waiting, (node.dies + options.lease, part["shard"], part["recorded"]))
            continue
        step = {
            "plan": lambda: (node.cores.serve(now, options.hub * us), "send"),
            # A connection carries as many streams as a page has devices.
            "send": lambda: (node.connections.serve(now, options.latency), "record"),
            "record": lambda: (worker.serve(now, options.record * us), "recorded"),
        }.get(what)
        if what == "read":
            if part["read"] < pages and part["under_way"] < options.pages:
                part["read"] += 1
                part["under_way"] += 1
                done = worker.serve(now, options.read * us)
                heapq.heappush(events, (done, next(order), "plan", part))
                heapq.heappush(events, (done, next(order), "read", part))
        elif step:
            done, then = step()
            heapq.heappush(events, (done, next(order), then, part))
        else:
            part["under_way"] -= 1
            part["recorded"] += 1
            end = max(end, now)
            heapq.heappush(events, (now, next(order), "read", part))
            if part["recorded"] == pages:
                node.parts -= 1
                claim(now)
        if waiting and now - looks > options.poll:
            looks = now
            claim(now)
    return end, nodes, workers, repeated


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind, default, text in [
        ("devices", int, 100_000_000, "devices of the broadcast"),
        ("nodes", int, 20, "hub nodes"),
        ("node-cores", int, 4, "cores of a node"),
        ("connections", int, 8, "connections of a node to the push service, of 1000 streams each"),
        ("latency", float, 0.05, "seconds until the push service answers"),
        ("shards", int, 100, "parts of the audience: slots times shards"),
        ("workers", int, 20, "database servers"),
        ("worker-cores", int, 4, "cores of each"),
        ("hub", float, 8.0, "microseconds of a node's CPU for a device"),
        ("read", float, 1.3, "microseconds of the database's CPU for reading a device"),
        ("record", float, 1.0, "microseconds of the database's CPU for recording a device"),
        ("parts", int, 4, "parts of a notification that a node has at a time"),
        ("pages", int, 8, "pages of a part under way"),
        ("lease", float, 10.0, "seconds until a dead node's parts are free"),
        ("poll", float, 0.75, "seconds between looks for work"),
        ("kill", int, 0, "nodes that die"),
        ("kill-at", float, 10.0, "seconds after the start at which they die"),
    ]:
        parser.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=f"{text} ({default})")
    options = parser.parse_args()
    end, nodes, workers, repeated = simulate(options)
    print(f"{options.devices} devices in {end:.1f} s: {options.devices / end:,.0f} a second")
    shares = {
        "nodes' cores": sum(n.cores.busy for n in nodes) / (len(nodes) * options.node_cores * end),
        "connections": sum(n.connections.busy for n in nodes) / (len(nodes) * options.connections * end),
        "database's cores": sum(w.busy for w in workers) / (len(workers) * options.worker_cores * end),
    }
    for name, share in sorted(shares.items(), key=lambda pair: -pair[1]):
        print(f"  {name}: {share:.0%} busy")
    if options.kill:
        print(f"  {options.kill} nodes died; {repeated} pages of {PAGE} were sent a second time")


main()
