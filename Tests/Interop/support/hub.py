"""A client of a hub's REST API, no more than the tests need, and `belfry serve` with hubs of theirs."""

import base64
import hashlib
import hmac
import json
import pathlib
import secrets
import time
import urllib.parse
import xml.etree.ElementTree as xml

import requests

from support.process import Belfry

FINAL = {"Completed", "Abandoned", "Unknown", "NoTargetFound", "Cancelled"}


class Hub:
    def __init__(self, url, name, key_name, key):
        self.url = f"{url.rstrip('/')}/{name}".rstrip("/")
        self._key_name = key_name
        self._key = key
        self._session = requests.Session()
        self._session.trust_env = False

    @classmethod
    def of_stack(cls, addresses):
        """The hub of a `belfry up`."""
        hub = addresses["hub"]
        return cls._of(hub["url"], hub["name"], hub["connectionStrings"]["full"])

    @classmethod
    def of_namespace(cls, addresses):
        """All hubs of a `belfry up`, with the key of the namespace."""
        hub = addresses["hub"]
        return cls._of(hub["url"], "", hub["namespaceConnectionString"])

    @classmethod
    def _of(cls, url, name, connection_string):
        parts = connection_string.split(";")
        fields = dict(part.split("=", 1) for part in parts if part)
        return cls(url, name, fields["SharedAccessKeyName"], fields["SharedAccessKey"])

    def authorization(self):
        resource = urllib.parse.quote(self.url.lower(), safe="")
        expiry = int(time.time()) + 3600
        digest = hmac.new(self._key.encode(), f"{resource}\n{expiry}".encode(), hashlib.sha256)
        signature = urllib.parse.quote(base64.b64encode(digest.digest()), safe="")
        return (
            f"SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={self._key_name}"
        )

    def call(self, method, path, headers=None, body=None, query=""):
        reply = self._session.request(
            method,
            f"{self.url}/{path}?{query}{'&' if query else ''}api-version=2020-06",
            headers={"Authorization": self.authorization(), **(headers or {})},
            data=body,
            timeout=20,
        )
        assert reply.ok, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply

    def install(self, installation):
        self.call(
            "PUT",
            f"installations/{installation['installationId']}",
            {"Content-Type": "application/json"},
            json.dumps(installation),
        )

    def installation(self, id):
        return self.call("GET", f"installations/{id}").json()

    def _sent(self, reply):
        return reply.headers["Location"].split("?")[0].rsplit("/", 1)[1]

    def send(self, format, body, tags, **headers):
        """Returns the notification's id."""
        headers = {"ServiceBusNotification-Format": format, **headers}
        headers = {"ServiceBusNotification-Tags": tags, **headers}
        return self._sent(self.call("POST", "messages", headers, body))

    def send_direct(self, format, body, handle, **headers):
        headers = {"ServiceBusNotification-Format": format, **headers}
        headers = {"ServiceBusNotification-DeviceHandle": handle, **headers}
        return self._sent(self.call("POST", "messages", headers, body, query="direct"))

    def send_batch(self, format, body, handles, **headers):
        content = (
            "--b\r\nContent-Type: application/json\r\n"
            f"Content-Disposition: inline; name=notification\r\n\r\n{body}\r\n"
            "--b\r\nContent-Type: application/json\r\n"
            f"Content-Disposition: inline; name=devices\r\n\r\n{json.dumps(handles)}\r\n--b--\r\n"
        )
        headers = {"ServiceBusNotification-Format": format, **headers}
        headers = {"Content-Type": "multipart/mixed; boundary=b", **headers}
        return self._sent(self.call("POST", "messages/$batch", headers, content, query="direct"))

    def state(self, id):
        """State of a notification, and its outcomes over all platforms: ("Completed", {…})."""
        tree = xml.fromstring(self.call("GET", f"messages/{id}").text)
        found = {element.tag.rsplit("}")[-1]: element for element in tree.iter()}
        outcomes = {}
        for element in tree.iter():
            if element.tag.endswith("}Outcome"):
                texts = {child.tag.rsplit("}")[-1]: child.text for child in element}
                name = texts["Name"]
                outcomes[name] = outcomes.get(name, 0) + int(texts["Count"])
        return found["State"].text, outcomes

    def outcomes(self, id, limit=20):
        """A notification's outcomes when all are there; fails after `limit` seconds."""
        deadline = time.monotonic() + limit
        while True:
            state, outcomes = self.state(id)
            if state in FINAL:
                return outcomes
            assert time.monotonic() < deadline, f"still {state} with {outcomes} after {limit} s"
            time.sleep(0.03)

    def failures(self, id):
        """What is kept of each device that the notification did not reach."""
        return self.call("GET", f"messages/{id}/devices").json()["devices"]


class ServedHubs:
    """`belfry serve` with hubs from a configuration file.

    `hubs` are the file's entries; each gets a policy of the tests' own.
    """

    def __init__(self, directory, hubs, **settings):
        key = base64.b64encode(secrets.token_bytes(32)).decode()
        policy = {"name": "tests", "rights": ["Manage"], "primaryKey": key}
        folder = pathlib.Path(directory)
        path = folder / "belfry.json"
        hubs = [{**hub, "policies": [policy]} for hub in hubs]
        path.write_text(json.dumps({"port": 0, "hubs": hubs, **settings}))
        self.process = Belfry("serve", "--config", str(path), "--data", str(folder / "data"))
        url = self.process.addresses["url"]
        self.hubs = {hub["name"]: Hub(url, hub["name"], "tests", key) for hub in hubs}
