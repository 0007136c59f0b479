"""pytest: the push services on this machine, reached by their real names, and phones that say what arrived.

Put this file beside conftest.py, and `pytest_plugins = ["belfry_emulator"]` into it:

    def test_the_customer_is_told(belfry):
        phone = belfry.android("my-project")
        announce(order, to=phone.token)          # the code under test, with its own firebase-admin
        phone.expect("is on its way")

`BELFRY` names another program than `belfry`. Nothing here but Python 3 and pytest.
"""

import base64
import json
import os
import subprocess
import time
import urllib.error
import urllib.request

import pytest


class Emulator:
    """A `belfry emulator` with a proxy; `environment` is what a program that sends needs."""

    def __init__(self, *words):
        self._process = subprocess.Popen(
            [os.environ.get("BELFRY", "belfry"), "emulator", "--json", "--port", "0", "--proxy", "0", *words],
            stdout=subprocess.PIPE, text=True,
        )
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("belfry emulator did not start")
        self._addresses = json.loads(line)
        authority = self._addresses["ca"]
        self.environment = {
            "HTTPS_PROXY": self._addresses["proxy"], "https_proxy": self._addresses["proxy"],
            "REQUESTS_CA_BUNDLE": authority, "SSL_CERT_FILE": authority, "CURL_CA_BUNDLE": authority,
        }
        # The control API speaks plain HTTP, and is not behind the proxy.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, method, path, body=None):
        """A call of the control API (docs/protocol/emulator.md)."""
        request = urllib.request.Request(
            f"{self._addresses['control']}/v1/{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request) as reply:
                return json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def app(self, pns, **members):
        """An app; for fcm the reply has a `serviceAccount`, for apns a `privateKeyPem` with its `kid`."""
        known = self.call("GET", "apps")["apps"]
        found = [one for one in known if one["pns"] == pns and members.items() <= one.items()]
        return found[0] if found else self.call("POST", "apps", {"pns": pns, **members})

    def android(self, project, **members):
        """A phone with an app of this Firebase project."""
        return self._phone(self.app("fcm", projectId=project), **members)

    def iphone(self, bundle_id, **members):
        """A phone with the app of this bundle id; `environment="sandbox"` for a development build."""
        return self._phone(self.app("apns", bundleId=bundle_id), **members)

    def browser(self, **members):
        """A subscription to Web Push: `phone.subscription` is what `pywebpush` takes."""
        return self._phone(self.call("POST", "apps", {"pns": "webpush", "vapidPublicKey": None}), **members)

    def _phone(self, app, **members):
        made = self.call("POST", "devices", {"appId": app["appId"], **members})["devices"][0]
        return Phone(self, made)

    def reset(self):
        """Removes apps, phones, faults and what was recorded."""
        self.call("POST", "reset", {})

    def stop(self):
        self._process.terminate()
        self._process.wait(20)


class Phone:
    def __init__(self, emulator, device):
        self._emulator = emulator
        self._path = f"devices/{device['deviceId']}"
        self.handle = device["handle"]
        self.token = self.handle.get("token")
        keys = {name: self.handle.get(name) for name in ("p256dh", "auth")}
        self.subscription = {"endpoint": self.handle.get("publicEndpoint"), "keys": keys}

    def messages(self):
        """The payloads that arrived, oldest first, as text."""
        got = self._emulator.call("GET", self._path + "/notifications")["notifications"]
        return [base64.b64decode(one["payloadBase64"]).decode(errors="replace") for one in got]

    def expect(self, text, timeout=5):
        """Waits for a message with this text in it, and returns its payload."""
        deadline = time.monotonic() + timeout
        while True:
            arrived = self.messages()
            # In JSON a letter may be written as an escape.
            found = [one for one in arrived if text in one or text in _decoded(one)]
            if found:
                return found[0]
            assert time.monotonic() < deadline, f"no message with {text!r} within {timeout} s; arrived: {arrived}"
            time.sleep(0.02)

    def uninstall(self):
        """From now on the push service calls the token dead."""
        self._emulator.call("POST", self._path + "/unregister", {})


def _decoded(payload):
    try:
        return json.dumps(json.loads(payload), ensure_ascii=False)
    except ValueError:
        return ""


@pytest.fixture(scope="session")
def belfry_emulator():
    """One emulator for all tests. It takes the credentials that the code under test has."""
    emulator = Emulator("--accept-any-credential")
    yield emulator
    emulator.stop()


@pytest.fixture
def belfry(belfry_emulator, monkeypatch):
    """The emulator, empty, with the environment in which this process sends to it."""
    belfry_emulator.reset()
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in belfry_emulator.environment.items():
        monkeypatch.setenv(name, value)
    return belfry_emulator
