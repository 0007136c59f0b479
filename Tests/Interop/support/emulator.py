"""The control API of Belfry's stand-ins: apps, virtual devices, what they got, faults, clock."""

import time
import urllib.parse

import requests


class Emulator:
    def __init__(self, control):
        self.control = control
        self._session = requests.Session()
        self._session.trust_env = False

    def _call(self, method, path, body=None):
        reply = self._session.request(method, f"{self.control}/v1/{path}", json=body, timeout=20)
        assert reply.ok, f"{method} /v1/{path}: {reply.status_code} {reply.text}"
        return reply.json() if reply.content else None

    def get(self, path):
        return self._call("GET", path)

    def post(self, path, body=None):
        return self._call("POST", path, body or {})

    def patch(self, path, body):
        return self._call("PATCH", path, body)

    def delete(self, path):
        return self._call("DELETE", path)

    def info(self):
        return self.get("info")

    def make_app(self, pns, **members):
        return self.post("apps", {"pns": pns, **members})

    def make_device(self, app, **members):
        return self.post("devices", {"appId": app["appId"], **members})["devices"][0]

    def notifications(self, device):
        """What a device got so far, oldest first."""
        return self.get(f"devices/{device['deviceId']}/notifications")["notifications"]

    def await_notifications(self, device, count=1, limit=15):
        """What a device got, when it is `count` or more; fails after `limit` seconds."""
        deadline = time.monotonic() + limit
        while True:
            found = self.notifications(device)
            if len(found) >= count:
                return found
            assert time.monotonic() < deadline, (
                f"the device has {len(found)} of {count} notifications after {limit} s"
            )
            time.sleep(0.02)

    def unregister(self, device, **members):
        return self.post(f"devices/{device['deviceId']}/unregister", members)

    def requests(self, **query):
        """The journal of requests, oldest first."""
        text = urllib.parse.urlencode(query)
        return self.get(f"requests?{text}")["requests"]

    def fault(self, pns, action, **members):
        """Injects a fault; `with` takes it away again."""
        return Fault(self, {"pns": pns, "action": action, **members})


class Fault:
    def __init__(self, emulator, body):
        self._emulator = emulator
        self._body = body

    def __enter__(self):
        self.id = self._emulator.post("faults", self._body)["faultId"]
        return self

    def __exit__(self, *_):
        self._emulator.delete(f"faults/{self.id}")
