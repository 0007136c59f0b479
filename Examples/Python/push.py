#!/usr/bin/env python3
"""Registers a device, sends to its tag, and waits for what became of it. Python 3, nothing else.

    BELFRY_CONNECTION_STRING='Endpoint=sb://…' BELFRY_HUB=shop push.py 'Hello'
"""

import base64
import hashlib
import hmac
import json
import os
import re
import sys
import time
import urllib.parse
import urllib.request


class Hub:
    def __init__(self, connection_string, hub):
        fields = dict(part.split("=", 1) for part in connection_string.split(";") if part)
        endpoint = urllib.parse.urlsplit(fields["Endpoint"])
        # `sb` is HTTPS; on this machine Belfry also speaks plain HTTP.
        scheme = "http" if endpoint.hostname in ("127.0.0.1", "localhost") else "https"
        self.url = f"{scheme}://{endpoint.netloc}/{hub}"
        self.key_name = fields["SharedAccessKeyName"]
        self.key = fields["SharedAccessKey"]

    def token(self):
        """A shared access signature for the whole hub, good for an hour."""
        resource = urllib.parse.quote(self.url, safe="")
        expiry = int(time.time()) + 3600
        digest = hmac.new(self.key.encode(), f"{resource}\n{expiry}".encode(), hashlib.sha256).digest()
        signature = urllib.parse.quote(base64.b64encode(digest), safe="")
        return f"SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={self.key_name}"

    def call(self, method, path, headers=None, body=None):
        """The reply; what the hub refuses is an HTTPError whose body says why."""
        request = urllib.request.Request(
            f"{self.url}/{path}?api-version=2020-06", method=method, data=body,
            headers={"Authorization": self.token(), "Content-Type": "application/json", **(headers or {})})
        return urllib.request.urlopen(request, timeout=30)

    def install(self, installation):
        self.call("PUT", f"installations/{installation['installationId']}", body=json.dumps(installation).encode())

    def send(self, properties, tags):
        """Fills in everybody's template; the id of the notification."""
        reply = self.call(
            "POST", "messages", body=json.dumps(properties).encode(),
            headers={"ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": tags})
        return reply.headers["Location"].split("?")[0].rsplit("/", 1)[1]

    def state(self, notification):
        document = self.call("GET", f"messages/{notification}").read().decode()
        counts = re.findall("<Name>([^<]*)</Name><Count>([0-9]*)</Count>", document)
        return re.search("<State>([^<]*)</State>", document)[1], dict(counts)


def main():
    hub = Hub(os.environ["BELFRY_CONNECTION_STRING"], os.environ["BELFRY_HUB"])
    hub.install({
        "installationId": "python-sample", "platform": "apns", "pushChannel": os.environ.get("DEVICE_TOKEN", "00" * 32),
        "tags": ["sample:python"], "templates": {"main": {"body": '{"aps":{"alert":"$(message)"}}'}},
    })
    notification = hub.send({"message": sys.argv[1]}, "sample:python")
    while True:
        state, counts = hub.state(notification)
        if state not in ("Enqueued", "Processing"):
            break
        time.sleep(0.2)
    print(json.dumps({"notification": notification, "state": state, "outcomes": counts}))


main()
