"""Clients as they come from PyPI and Debian reach the stand-ins by the real names of the push services.

Told to the clients: HTTPS_PROXY and the CA, in the environment, as docs/testing.md says; those that know no
proxy find the names in a file of hosts. Unlike in the other files no address is set.
"""

import base64
import itertools
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import types
import urllib.parse

import firebase_admin
import pytest
import pywebpush
import requests
from firebase_admin import messaging

from support.emulator import Emulator
from support.process import Belfry

numbers = itertools.count(1)
# Of the right form, and nobody's.
DEAD_TOKEN = "A" * 22 + ":APA91b" + "B" * 134


@pytest.fixture(scope="module")
def standins():
    process = Belfry("emulator", "--port", "0", "--proxy", "0", "--allow", "host.invalid")
    yield types.SimpleNamespace(
        process=process,
        addresses=process.addresses,
        emulator=Emulator(process.addresses["control"]),
    )
    process.stop()


@pytest.fixture
def proxied(standins, monkeypatch):
    """The environment of docs/testing.md."""
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, standins.addresses["proxy"])
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, standins.addresses["ca"])
    return standins


class Project:
    """A Firebase project with firebase-admin, which is told nothing but its account."""

    def __init__(self, emulator, phones=1):
        self.emulator = emulator
        self.name = f"proxied-{next(numbers)}"
        self.app = emulator.make_app("fcm", projectId=self.name)
        self.phones = [emulator.make_device(self.app) for _ in range(phones)]
        self.tokens = [phone["handle"]["token"] for phone in self.phones]
        # A file as Google issues it has this address.
        account = {**self.app["serviceAccount"], "token_uri": "https://oauth2.googleapis.com/token"}
        self.client = firebase_admin.initialize_app(
            firebase_admin.credentials.Certificate(account), name=self.name
        )

    def data(self, phone, count=1):
        got = self.emulator.await_notifications(self.phones[phone], count)
        return [one["payload"]["data"] for one in got]


@pytest.fixture
def project(proxied):
    made = Project(proxied.emulator, phones=3)
    yield made
    firebase_admin.delete_app(made.client)


# firebase-admin


def test_a_message_rings_on_the_phone_and_is_among_the_requests(project):
    name = messaging.send(
        messaging.Message(token=project.tokens[0], data={"hello": "world"}), app=project.client
    )
    assert name.startswith(f"projects/{project.name}/messages/")
    assert project.data(0) == [{"hello": "world"}]
    [request] = project.emulator.requests(handle=project.tokens[0])
    assert (request["host"], request["status"]) == ("fcm.googleapis.com", 200)
    hosts = {one["host"] for one in project.emulator.requests(pns="fcm-token")}
    assert hosts == {"oauth2.googleapis.com"}


def test_a_multicast_has_an_answer_for_each_token(project):
    message = messaging.MulticastMessage(
        tokens=[*project.tokens, DEAD_TOKEN, "no token"], data={"to": "many"}
    )
    batch = messaging.send_each_for_multicast(message, app=project.client)
    assert (batch.success_count, batch.failure_count) == (3, 2)
    assert isinstance(batch.responses[3].exception, messaging.UnregisteredError)
    assert [project.data(phone) for phone in range(3)] == [[{"to": "many"}]] * 3


@pytest.mark.parametrize("api", ["v1", "Instance ID"])
def test_topics_and_conditions_reach_who_is_subscribed(project, api):
    def change(verb, tokens, topic):
        if api == "Instance ID":
            with pytest.warns(DeprecationWarning):
                call = getattr(messaging, f"{verb}_legacy")
                return call(tokens, topic, app=project.client)
        return getattr(messaging, verb)(tokens, topic, app=project.client)

    def send(**target):
        """Which of the phones have it, once the client has its answer."""
        data = {"number": str(next(numbers))}
        messaging.send(messaging.Message(**target, data=data), app=project.client)
        return [data in project.data(phone, 0) for phone in range(3)]

    answer = change("subscribe_to_topic", project.tokens[:2], "news")
    assert (answer.success_count, answer.failure_count) == (2, 0)
    # Twice is no failure.
    assert change("subscribe_to_topic", project.tokens[0], "news").success_count == 1
    answer = change("subscribe_to_topic", [project.tokens[1], DEAD_TOKEN], "sport")
    assert (answer.success_count, answer.failure_count) == (1, 1)
    assert answer.errors[0].index == 1

    assert send(topic="news") == [True, True, False]
    assert send(topic="nothing") == [False, False, False]
    assert send(condition="'news' in topics && !('sport' in topics)") == [True, False, False]
    assert send(condition="!('news' in topics)") == [False, False, True]

    assert change("unsubscribe_from_topic", project.tokens[1], "news").success_count == 1
    assert send(topic="news") == [True, False, False]
    [last] = project.emulator.requests(newest=1)
    assert last["recipients"] == 1


def test_a_dead_token_is_called_so(project):
    message = messaging.Message(token=project.tokens[0], data={"a": "b"})
    project.emulator.unregister(project.phones[0])
    with pytest.raises(messaging.UnregisteredError):
        messaging.send(message, app=project.client)


# aioapns, and the asynchronous half of firebase-admin


def test_clients_without_a_proxy_reach_it_by_a_file_of_hosts(tmp_path):
    """`aioapns` 4.0 has a proxy in its parameters, but loses the connection to any (`sock=` of asyncio takes no
    `TransportSocket`); `firebase-admin` gives `httpx` transports of its own, which read no environment."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "--net", "--mount", "true"],
                      capture_output=True).returncode:
        pytest.skip("no namespaces for the user here")
    ended = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "--mount", sys.executable,
         pathlib.Path(__file__).parent / "support" / "by_hosts_file.py"],
        capture_output=True, text=True, timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == {
        "production": [True, 1], "sandbox": [True, 1], "firebase-admin": [500, 500],
    }


# pywebpush


@pytest.mark.parametrize(
    "flavor, host",
    [
        ("mozilla", "updates.push.services.mozilla.com"), ("google", "fcm.googleapis.com"),
        ("apple", "web.push.apple.com"),
    ],
)
def test_pywebpush(proxied, flavor, host):
    emulator = proxied.emulator
    app = emulator.make_app("webpush", flavor=flavor)
    handle = (browser := emulator.make_device(app))["handle"]
    assert urllib.parse.urlsplit(handle["publicEndpoint"]).hostname == host
    reply = pywebpush.webpush(
        {
            "endpoint": handle["publicEndpoint"],
            "keys": {"p256dh": handle["p256dh"], "auth": handle["auth"]},
        },
        "Grüße", vapid_private_key=app["vapidPrivateKey"],
        vapid_claims={"sub": "mailto:ops@example.com"}, ttl=60,
    )
    assert reply.status_code == 201
    [got] = emulator.await_notifications(browser)
    assert base64.b64decode(got["payloadBase64"]).decode() == "Grüße"
    [request] = emulator.requests(pns="webpush", newest=1)
    assert request["host"] == host


# curl


def curl(*words):
    if not shutil.which("curl"):
        pytest.skip("there is no curl")
    ended = subprocess.run(
        ["curl", "-sS", "--max-time", "20", *words], capture_output=True, text=True
    )
    return ended


def test_curl_sends_by_wns_with_its_token(proxied):
    emulator = proxied.emulator
    app = emulator.make_app("wns")
    device = emulator.make_device(app)
    token = curl(
        "https://login.live.com/accesstoken.srf", "-d", "grant_type=client_credentials",
        "--data-urlencode", f"client_id={app['packageSid']}",
        "--data-urlencode", f"client_secret={app['secret']}", "-d", "scope=notify.windows.com",
    )
    access = json.loads(token.stdout)["access_token"]
    sent = curl(
        device["handle"]["publicChannelUri"], "-H", f"Authorization: Bearer {access}",
        "-H", "X-WNS-Type: wns/raw", "-H", "Content-Type: application/octet-stream",
        "-d", "hello", "-w", "%{http_code}",
    )
    assert sent.stdout == "200", sent.stderr
    assert base64.b64decode(emulator.await_notifications(device)[0]["payloadBase64"]) == b"hello"


def test_curl_speaks_the_protocol_of_each_service(proxied):
    for host, more, version in [
        ("fcm.googleapis.com", [], "2"), ("fcm.googleapis.com", ["--http1.1"], "1.1"),
        ("api.push.apple.com", [], "2"), ("api.sandbox.push.apple.com:2197", [], "2"),
        ("FCM.GOOGLEAPIS.COM.", [], "2"), ("cloud.notify.windows.com", [], "1.1"),
        ("iid.googleapis.com", [], "2"),
    ]:
        said = curl(f"https://{host}/", *more, "-o", "/dev/null", "-w", "%{http_version}")
        assert said.stdout == version, (host, said.stderr)


# Whom it lets through


def test_other_hosts_are_refused_with_a_reason(proxied):
    with pytest.raises(requests.exceptions.ProxyError) as caught:
        requests.get("https://example.com/", timeout=20)
    assert "example.com is not allowed" in str(caught.value)
    for url in ["https://pypi.org/", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/"]:
        assert "response 403" in curl(url).stderr
    # Allowed, but there is no such host.
    assert "response 502" in curl("https://host.invalid/").stderr
    assert "refused a client of example.com; --allow example.com" in proxied.process.log()


def test_idle_and_hostile_connections_hold_nobody_up(proxied, project):
    address = urllib.parse.urlsplit(proxied.addresses["proxy"])
    before = proxied.process.resident_bytes()
    idle = [socket.create_connection((address.hostname, address.port)) for _ in range(600)]
    for number, one in enumerate(idle):
        if number % 3 == 1:
            one.sendall(b"CONNECT fcm.googleapis.com:443 HTTP/1.1\r\n\r\n")
        if number % 3 == 2:
            one.sendall(b"CONNECT " + b"x" * 9000)
    messaging.send(messaging.Message(token=project.tokens[0], data={"n": "1"}), app=project.client)
    assert project.data(0) == [{"n": "1"}]
    for one in idle:
        one.close()

    def flood():
        for _ in range(100):
            with socket.create_connection((address.hostname, address.port)) as one:
                one.sendall(b"\x16\x03\x01" * 100)

    threads = [threading.Thread(target=flood) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    messaging.send(messaging.Message(token=project.tokens[1], data={"n": "2"}), app=project.client)
    assert project.data(1) == [{"n": "2"}]
    after = proxied.process.resident_bytes()
    if before and after:
        assert after - before < 50_000_000
