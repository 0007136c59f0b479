"""Faults of a hub, of its database and of those who call it; see docs/scale.md and docs/reliability.md.

Each scenario starts what it needs of its own: a database, an emulator of the push services, hubs. It lets something go
wrong while others send, and compares what was acknowledged with what arrived, or measures what it cost the others. All
of it runs on this machine in a temporary directory and is gone afterwards. As root, the database's programs run as the
user postgres. The last lines have each scenario's result; exit code 0: every promise held; 1: one did not; 75: what
could run held, and this machine lacks something for the rest.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time

# They register their scenarios.
import floods  # noqa: F401
import nodes  # noqa: F401
from cluster import SCENARIOS, Broken, NotRun, Run, say


def play(name, options):
    """How it went, and what is to be told of it."""
    directory = tempfile.mkdtemp(prefix="belfry-faults-")
    os.chmod(directory, 0o755)
    run = Run(options, directory)
    try:
        return "held", SCENARIOS[name](run)
    except NotRun as lack:
        return "NOT RUN", str(lack)
    except Exception as fault:
        for log in sorted(os.listdir(directory)):
            if log.endswith(".log"):
                with open(f"{directory}/{log}", errors="replace") as file:
                    told = [line for line in file if " info " not in line]
                    print(f"-- {log}\n{''.join(told)[-3000:]}", file=sys.stderr)
        return "BROKEN", str(fault) if isinstance(fault, Broken) else repr(fault)
    finally:
        run.stop()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(
        prog="script/faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="scenarios (* also of --short):\n" + "\n".join(
            f"  {name + ('*' if f.short else ''):<16} {f.__doc__}" for name, f in SCENARIOS.items()))
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="which to run (default: all)")
    parser.add_argument("--belfry", metavar="FILE", required=True, help="the program to try (default: a release build)")
    parser.add_argument("--short", action="store_true",
                        help="less of each, in at most two minutes together: 300 devices, a lease of 2 s")
    parser.add_argument("--devices", type=int, default=20_000, metavar="N", help="devices of a broadcast (default 20000)")
    parser.add_argument("--kills", type=int, default=20, metavar="N", help="kills of the scenario random (default 20)")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1_000_000), metavar="S",
                        help="repeats what the scenario random draws (its log says with which)")
    parser.add_argument("--ttl", type=int, default=8, metavar="S", help="Patroni's ttl in seconds (default 8)")
    options = parser.parse_args()
    for name in options.scenarios:
        if name not in SCENARIOS:
            parser.error(f"there is no scenario '{name}'; see --help")
    results = []
    for name in options.scenarios or [n for n, f in SCENARIOS.items() if f.short or not options.short]:
        say(f"== {name}: {SCENARIOS[name].__doc__}")
        begun = time.monotonic()
        result, told = play(name, options)
        results.append(result)
        say(f"== {name}: {result} in {time.monotonic() - begun:.0f} s: {told}")
    say(f"{results.count('held')} of {len(results)} held")
    sys.exit(1 if "BROKEN" in results else 75 if "NOT RUN" in results else 0)


main()
