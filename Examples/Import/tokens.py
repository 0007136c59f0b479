#!/usr/bin/env python3
"""Makes installations for `belfry import` of a table of tokens, as programs in front of gorush keep them.

    tokens.py TOKENS.csv > devices.txt

Columns: id, user, platform, token, tags; of them user and tags may be missing or empty. A platform is 1 or apns, 2 or
fcmv1, or one of adm, wns, xiaomi.
"""

import csv
import json
import sys

PLATFORMS = {"1": "apns", "2": "fcmv1", **{name: name for name in ("apns", "fcmv1", "adm", "wns", "xiaomi")}}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    written = left_out = 0
    with open(sys.argv[1], encoding="utf-8-sig", newline="") as table:
        rows = csv.DictReader(table)
        missing = {"id", "platform", "token"} - set(rows.fieldnames or [])
        if missing:
            sys.exit(f"the first line has no {', '.join(sorted(missing))}; it names the columns, with commas between")
        for number, row in enumerate(rows, start=2):
            if not row["id"] or not row["token"] or not row["platform"]:
                print(f"line {number}: id, platform or token is missing", file=sys.stderr)
                left_out += 1
                continue
            platform = PLATFORMS.get(row["platform"].strip().lower())
            if platform is None:
                print(f"line {number}: the hub has no platform '{row['platform']}'", file=sys.stderr)
                left_out += 1
                continue
            device = {"installationId": row["id"], "platform": platform, "pushChannel": row["token"]}
            if row.get("user"):
                device["userId"] = row["user"]
            if row.get("tags"):
                device["tags"] = row["tags"].split()
            print(json.dumps(device))
            written += 1
    print(f"{written} installations, {left_out} lines left out", file=sys.stderr)


main()
