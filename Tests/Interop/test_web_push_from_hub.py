"""The hub pushes to browsers whose keys were made here; http_ece and py-vapid read what it sends.

The push service is a server on h2, or on Python's http.server, whose host `channelHosts` allows. Its
certificate is of an authority that the hub is told to trust.
"""

import base64
import http.server
import json
import ssl
import struct
import threading
import time
import uuid

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from support.browser import Subscription, b64, point_of, vapid_claims
from support.certificates import Authority, pem_of
from support.http2_server import HTTP2Server
from support.hub import Hub, ServedHubs

SUBJECT = "mailto:ops@example.com"


class PushService:
    """Takes messages, and answers with the next of `answers`, or 201; with `None` it hangs up."""

    def __init__(self, identity):
        self.answers = []
        self.server = HTTP2Server(identity, self._behave)
        self.url = self.server.url

    def _behave(self, peer):
        peer.start(max_concurrent_streams=100)
        while True:
            request = peer.request()
            status = self.answers.pop(0) if self.answers else 201
            if status is None:
                return
            peer.respond(request, status, [("location", f"{self.url}/m/1")])

    def received(self, subscription):
        path = subscription.endpoint.removeprefix(self.url)
        return [request for request in self.server.received if request.path == path]


@pytest.fixture(scope="module")
def vapid_key():
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture(scope="module")
def place(tmp_path_factory, vapid_key):
    """`hub`, `process`, and `identity`: a server certificate that the hub trusts."""
    folder = tmp_path_factory.mktemp("web-push")
    authority = Authority.make()
    (folder / "ca.pem").write_bytes(authority.pem)
    (folder / "vapid.pem").write_bytes(pem_of(vapid_key))
    served = ServedHubs(
        folder,
        [{"name": "web", "webPush": {"subject": SUBJECT, "privateKeyFile": "vapid.pem"}}],
        trust=[str(folder / "ca.pem")],
        channelHosts=["localhost"],
    )
    served.hub = served.hubs["web"]
    served.identity = authority.for_localhost(folder)
    yield served
    served.process.stop()


@pytest.fixture(scope="module")
def service(place):
    made = PushService(place.identity)
    yield made
    made.server.stop()
    assert made.server.errors == []


@pytest.fixture
def browser(service):
    service.answers.clear()
    return Subscription(f"{service.url}/push/{uuid.uuid4()}?a=b")


def message(size):
    """JSON of so many bytes, as the hub wants it of a browser's message."""
    return b'{"a":"%s"}' % (b"x" * (size - 8))


def send(hub, subscription, body, **headers):
    """Sends to one subscription, and waits for the outcome."""
    keys = {"P256DH": subscription.p256dh, "Auth": subscription.auth}
    id = hub.send_direct("browser", body, subscription.endpoint, **keys, **headers)
    return hub.outcomes(id)


def test_the_browser_reads_what_was_sent(place, service, browser):
    body = json.dumps({"title": "Grüße", "body": "日本 🎉"}, ensure_ascii=False)
    assert send(place.hub, browser, body.encode()) == {"Success": 1}
    [request] = service.received(browser)
    assert request.headers[":method"] == "POST"
    assert request.headers["content-encoding"] == "aes128gcm"
    assert browser.decrypt(request.body).decode() == body


def test_the_record_is_one_of_4096_bytes_under_a_key_of_65(place, service, browser):
    send(place.hub, browser, b'{"a":"hello"}')
    body = service.received(browser)[0].body
    size, length = struct.unpack("!IB", body[16:21])
    assert (size, length) == (4096, 65)
    assert len(body) == 16 + 4 + 1 + 65 + len(b'{"a":"hello"}') + 1 + 16


def test_salt_and_key_are_new_for_every_message(place, service, browser):
    for _ in range(3):
        send(place.hub, browser, b'{"a":"the same"}')
    bodies = [request.body for request in service.received(browser)]
    assert len({body[:16] for body in bodies}) == 3
    assert len({body[21:86] for body in bodies}) == 3
    assert [browser.decrypt(body) for body in bodies] == [b'{"a":"the same"}'] * 3


@pytest.mark.parametrize("size", [8, 15, 16, 17, 100, 3992, 3993])
def test_messages_of_every_size_can_be_read(place, service, browser, size):
    body = message(size)
    assert send(place.hub, browser, body) == {"Success": 1}
    got = service.received(browser)[0].body
    assert len(got) == size + 103
    assert browser.decrypt(got) == body


def test_what_does_not_fit_into_a_record_is_not_sent(place, service, browser):
    with pytest.raises(AssertionError, match=": 413 .*3994 bytes.*at most 3993"):
        send(place.hub, browser, message(3994))
    assert service.received(browser) == []


def test_py_vapid_verifies_who_sends(place, service, browser, vapid_key):
    send(place.hub, browser, b'{"a":"hello"}')
    claims = vapid_claims(
        service.received(browser)[0].headers["authorization"], b64(point_of(vapid_key))
    )
    assert claims["aud"] == service.url
    assert claims["sub"] == SUBJECT
    assert 3600 < claims["exp"] - time.time() <= 86_400


def test_a_message_waits_as_long_as_asked_and_four_weeks_otherwise(place, service, browser):
    send(place.hub, browser, b"{}", TTL="60", Urgency="high", Topic="news_1")
    send(place.hub, browser, b"{}")
    asked, plain = [request.headers for request in service.received(browser)]
    assert (asked["ttl"], asked["urgency"], asked["topic"]) == ("60", "high", "news_1")
    assert plain["ttl"] == "2419200"
    assert "urgency" not in plain and "topic" not in plain


def test_many_browsers_get_a_message_each_can_read_and_no_other(place, service):
    browsers = [Subscription(f"{service.url}/push/{uuid.uuid4()}") for _ in range(50)]
    tag = str(uuid.uuid4())
    for number, browser in enumerate(browsers):
        place.hub.install(
            {
                "installationId": str(uuid.uuid4()),
                "platform": "browser",
                "pushChannel": browser.channel,
                "tags": [tag],
            }
        )
    id = place.hub.send("browser", b'{"a":"to all"}', tag)
    assert place.hub.outcomes(id) == {"Success": 50}
    bodies = [service.received(browser)[0].body for browser in browsers]
    assert [b.decrypt(body) for b, body in zip(browsers, bodies)] == [b'{"a":"to all"}'] * 50
    with pytest.raises(Exception):
        browsers[0].decrypt(bodies[1])
    assert len({request.connection for request in service.server.received}) == 1


@pytest.mark.parametrize(
    "status, outcome, expires",
    [
        (410, "ExpiredChannel", True),
        (404, "ExpiredChannel", True),
        (400, "InvalidNotificationFormat", False),
        (403, "InvalidCredentials", False),
        (413, "InvalidNotificationSize", False),
        (307, "PnsInterfaceError", False),
    ],
)
def test_what_the_push_service_says_decides(place, service, browser, status, outcome, expires):
    id, tag = str(uuid.uuid4()), str(uuid.uuid4())
    place.hub.install(
        {
            "installationId": id,
            "platform": "browser",
            "pushChannel": browser.channel,
            "tags": [tag],
        }
    )
    service.answers.append(status)
    sent = place.hub.send("browser", b'{"a":"hello"}', tag)
    place.hub.outcomes(sent)
    [failure] = place.hub.failures(sent)
    assert (failure["outcome"], failure["status"]) == (outcome, status)
    assert len(service.received(browser)) == 1, "a redirect is not followed, nothing is repeated"
    assert place.hub.installation(id).get("pushChannelExpired", False) == expires


def test_any_answer_that_is_a_success_will_do(place, service, browser):
    for status in (200, 202, 204):
        service.answers.append(status)
        assert send(place.hub, browser, b"{}") == {"Success": 1}


def test_a_push_service_that_hangs_up_gets_the_message_again(place, service, browser):
    service.answers.append(None)
    assert send(place.hub, browser, b'{"a":"again"}') == {"Success": 1}
    first, second = service.received(browser)
    assert first.connection != second.connection
    assert browser.decrypt(second.body) == b'{"a":"again"}'


def test_a_push_service_without_http_2_is_spoken_to_in_http_1_1(place):
    got = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((self.path, dict(self.headers.items()), body))
            self.send_response(201)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place.identity)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = Subscription(f"https://localhost:{server.server_port}/push/1?a=b")
    assert send(place.hub, browser, b'{"a":"over HTTP/1.1"}') == {"Success": 1}
    server.shutdown()
    [(path, _, body)] = got
    assert path == "/push/1?a=b"
    assert browser.decrypt(body) == b'{"a":"over HTTP/1.1"}'


def test_a_push_service_that_is_not_trusted_gets_nothing(place, tmp_path):
    server = HTTP2Server(Authority.make().for_localhost(tmp_path))
    browser = Subscription(f"{server.url}/push/1")
    keys = {"P256DH": browser.p256dh, "Auth": browser.auth}
    id = place.hub.send_direct("browser", b'{"a":"hello"}', browser.endpoint, **keys)
    deadline = time.monotonic() + 15
    while not server.connections:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert place.hub.state(id)[1].get("Success") is None
    assert server.received == []
    server.stop()


def test_a_host_that_is_not_allowed_gets_nothing(place, service):
    port = service.url.rsplit(":", 1)[1]
    browser = Subscription(f"https://127.0.0.1:{port}/push/1")
    assert send(place.hub, browser, b'{"a":"hello"}') == {"BadChannel": 1}
    assert service.received(browser) == []


def test_the_stand_in_passes_on_what_only_the_browser_can_read(stack):
    """`belfry up`: its hub, its stand-in, and keys whose private half it has never seen."""
    apps = stack.emulator.get("apps")["apps"]
    app = next(app for app in apps if app["pns"] == "webpush")
    browser = Subscription()
    device = stack.emulator.make_device(
        app, handle={"p256dh": browser.p256dh, "auth": browser.auth}
    )
    browser.endpoint = device["handle"]["endpoint"]
    assert send(Hub.of_stack(stack.addresses), browser, b'{"a":"hello"}') == {"Success": 1}
    [got] = stack.emulator.await_notifications(device)
    assert got["decrypted"] is None
    assert browser.decrypt(base64.b64decode(got["payloadBase64"])) == b'{"a":"hello"}'
