#!/usr/bin/env python3
"""Makes installations for `belfry import` of endpoints that Amazon Pinpoint has exported.

    pinpoint.py ENDPOINTS.json > devices.txt

Reads JSON lines, writes JSON lines, and says on standard error what it has left out and why.
"""

import collections
import json
import re
import sys

PLATFORMS = {
    "APNS": "apns", "APNS_SANDBOX": "apns", "APNS_VOIP": None, "APNS_VOIP_SANDBOX": None,
    "GCM": "fcmv1", "ADM": "adm", "BAIDU": None,
}
# What a tag may be made of: docs/protocol/tags.md.
NO_TAG = re.compile(r"[^A-Za-z0-9_@#.:-]+")


def tags(endpoint):
    found = []
    for name, values in (endpoint.get("Attributes") or {}).items():
        found += [f"{name}:{value}" for value in values]
    locale = (endpoint.get("Demographic") or {}).get("Locale")
    if locale:
        found.append(f"locale:{locale}")
    return list(dict.fromkeys(NO_TAG.sub("-", tag)[:120] for tag in found))[:60]


def installation(endpoint):
    """The installation, or why there is none."""
    channel = endpoint.get("ChannelType")
    platform = PLATFORMS.get(channel)
    if platform is None:
        return None, f"{channel} is no push that the hub knows by an address alone"
    if endpoint.get("OptOut") == "ALL":
        return None, "opted out"
    if endpoint.get("EndpointStatus") == "INACTIVE":
        return None, "inactive"
    device = {"installationId": endpoint["Id"], "platform": platform, "pushChannel": endpoint["Address"]}
    user = (endpoint.get("User") or {}).get("UserId")
    if user:
        device["userId"] = user
    if tags(endpoint):
        device["tags"] = tags(endpoint)
    return device, None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    left_out = collections.Counter()
    written = 0
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                continue
            device, reason = installation(json.loads(line))
            if device is None:
                left_out[reason] += 1
                continue
            print(json.dumps(device))
            written += 1
    print(f"{written} installations", file=sys.stderr)
    for reason, count in left_out.items():
        print(f"{count} left out: {reason}", file=sys.stderr)


main()
