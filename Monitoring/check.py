"""Checks what is in this folder with promtool: script/monitoring runs it.

- the rules are well-formed, and fire on the staged outages of their test, and on nothing else;
- every query of the dashboard is one that Prometheus reads;
- rules and dashboard name only metrics that docs/reference/metrics.md lists, and each alert has its section in
  docs/operate/monitoring.md;
- with --metrics, a page of a running server: it is well-formed, and has no metric that docs/reference/metrics.md does not list.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
METRIC = re.compile(r"\bbelfry_[a-z_]+")
SUFFIX = re.compile(r"_(bucket|sum|count)$")

faults = []


def promtool(*words, text=None, folder=HERE):
    """What promtool does not like becomes a fault."""
    run = subprocess.run(["promtool", *words], input=text, text=True, capture_output=True, cwd=folder)
    if run.returncode:
        faults.append(f"promtool {' '.join(words)}:\n{run.stdout}{run.stderr}")
    return run.returncode == 0


def documented():
    """The metrics of the table in reference/metrics.md, several of which may stand in a row."""
    rows = [line for line in (DOCS / "reference/metrics.md").read_text().splitlines() if line.startswith("| `belfry_")]
    return {name for row in rows for name in METRIC.findall(row.split("|")[1])}


def check_names(what, expressions, known):
    for expression in expressions:
        for name in METRIC.findall(expression):
            if name not in known and SUFFIX.sub("", name) not in known:
                faults.append(f"{what} asks for {name}, which docs/reference/metrics.md does not list: {expression}")


def dashboard_queries():
    board = json.loads((HERE / "belfry-dashboard.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    return queries + [note["expr"] for note in board["annotations"]["list"]]


def check_queries(queries):
    """As rules they are read by the parser of Prometheus; Grafana's variables stand for something then."""
    lines = ["groups:", "- name: dashboard", "  rules:"]
    for number, query in enumerate(queries):
        query = query.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$hub", ".*")
        lines += [f"  - record: belfry:query{number}", f"    expr: {json.dumps(query)}"]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "dashboard.yml").write_text("\n".join(lines) + "\n")
        promtool("check", "rules", "dashboard.yml", folder=folder)


def check_page(address, known):
    with urllib.request.urlopen(address, timeout=20) as reply:
        page = reply.read().decode()
    promtool("check", "metrics", text=page)
    for name in re.findall(r"(?m)^# TYPE (\S+)", page):
        if name not in known:
            faults.append(f"{address} has {name}, which docs/reference/metrics.md does not list")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--metrics", help="the address of a running server's metrics")
    words = parser.parse_args()
    known = documented()
    if not known:
        faults.append("docs/reference/metrics.md lists no metric")
    rules = (HERE / "belfry.rules.yml").read_text()
    queries = dashboard_queries()
    if promtool("check", "rules", "belfry.rules.yml"):
        promtool("test", "rules", "belfry.rules.test.yml")
    check_names("belfry.rules.yml", rules.splitlines(), known)
    check_names("the dashboard", queries, known)
    check_queries(queries)
    sections = (DOCS / "operate/monitoring.md").read_text().lower()
    anchors = re.findall(r"runbook: docs/operate/monitoring.md#(\w+)", rules)
    for anchor in anchors:
        if f"### {anchor}" not in sections:
            faults.append(f"docs/operate/monitoring.md has no section for {anchor}")
    alerts = rules.count("- alert:")
    if len(anchors) != alerts:
        faults.append(f"{alerts} alerts, and {len(anchors)} of them with a runbook")
    if words.metrics:
        check_page(words.metrics, known)
    for fault in faults:
        print(f"monitoring: {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    page = ", the metrics of a running server" if words.metrics else ""
    print(f"monitoring: {alerts} alerts with their outages, {len(queries)} queries of the dashboard{page}: sound")


main()
