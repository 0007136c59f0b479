"""aioapns sends to the APNs stand-in, with provider tokens and with certificates.

Told to the client: the stand-in's address, in the class attributes that hold Apple's, and trust in its CA
by an SSL context that is otherwise Python's default, as the client's own is. That context offers no
protocol by ALPN; Apple's service does not mind, so the stand-in must not.
"""

import asyncio
import itertools
import ssl
import time
import urllib.parse

import pytest
from aioapns import APNs, NotificationRequest, PushType
from aioapns import connection as aioapns_connection
from aioapns.exceptions import MaxAttemptsExceeded
from cryptography.hazmat.primitives.asymmetric import ec

from support.certificates import APNS_DEVELOPMENT, Authority, pem_of

numbers = itertools.count(1)
UNKNOWN_TOKEN = "ab" * 32
HELLO = {"aps": {"alert": "Hello"}}


class App:
    """An app of its own with a phone, and aioapns set up for it."""

    def __init__(self, standins):
        self.emulator = standins.emulator
        self.authority = standins.addresses["ca"]
        self.topic = f"com.example.interop{next(numbers)}"
        self.app = self.emulator.make_app("apns", bundleId=self.topic)
        self.key = self.app["keys"][0]
        self.phone = self.emulator.make_device(self.app)
        self.token = self.phone["handle"]["token"]

    def context(self):
        return ssl.create_default_context(cafile=self.authority)

    def client(self, **changes):
        """Must be called while an event loop runs, as the library wants it."""
        settings = {
            "key": self.key["privateKeyPem"],
            "key_id": self.key["kid"],
            "team_id": self.app["teamId"],
            "topic": self.topic,
            "ssl_context": self.context(),
            "err_func": self._ignore,
            **changes,
        }
        return APNs(**settings)

    @staticmethod
    async def _ignore(request, result):
        """In place of the library's log."""

    def request(self, message=None, **members):
        members = {"device_token": self.token, "message": message or HELLO, **members}
        return NotificationRequest(**members)

    def send(self, *requests, **changes):
        """Sends one after the other through one client; its results."""

        async def run():
            client = self.client(**changes)
            try:
                return [await client.send_notification(request) for request in requests]
            finally:
                client.pool.close()

        return asyncio.run(run())

    def refusal(self, request, **changes):
        """Status and reason that a request gets."""
        result = self.send(request, **changes)[0]
        assert not result.is_successful
        assert result.notification_id == request.notification_id
        return result.status, result.description

    def got(self, count=1):
        return self.emulator.await_notifications(self.phone, count)

    def connections(self):
        """Those that carried requests to this app's phones, by the journal."""
        seen = self.emulator.requests(pns="apns", handle=self.token)
        return {item["connection"] for item in seen}


@pytest.fixture
def addresses(standins, monkeypatch):
    apns = standins.emulator.info()["apns"]
    for word, kind in (
        ("production", aioapns_connection.APNsProductionClientProtocol),
        ("sandbox", aioapns_connection.APNsDevelopmentClientProtocol),
    ):
        url = urllib.parse.urlsplit(apns[word])
        monkeypatch.setattr(kind, "APNS_SERVER", url.hostname)
        monkeypatch.setattr(kind, "APNS_PORT", url.port)


@pytest.fixture
def app(standins, addresses):
    return App(standins)


def test_an_alert_reaches_the_phone_with_its_headers(app):
    request = app.request(
        {"aps": {"alert": {"title": "Grüße", "body": "日本"}}, "own": [1, 2]},
        time_to_live=60,
        priority=5,
        collapse_key="news",
        push_type=PushType.ALERT,
    )
    before = int(time.time())
    [result] = app.send(request)
    assert result.is_successful
    assert result.notification_id == request.notification_id
    got = app.got()[0]
    assert got["id"] == request.notification_id
    assert got["payload"] == request.message
    assert got["headers"]["apns-topic"] == app.topic
    assert got["headers"]["apns-push-type"] == "alert"
    assert got["headers"]["apns-priority"] == "5"
    assert got["headers"]["apns-collapse-id"] == "news"
    assert before <= int(got["headers"]["apns-expiration"]) - 60 <= time.time()


def test_a_push_to_the_sandbox_reaches_a_phone_of_the_sandbox_only(app):
    phone = app.emulator.make_device(app.app, environment="sandbox")
    request = app.request(device_token=phone["handle"]["token"])
    assert app.refusal(request) == ("400", "BadDeviceToken")
    assert app.send(request, use_sandbox=True)[0].is_successful
    assert len(app.emulator.await_notifications(phone)) == 1


@pytest.mark.parametrize(
    "push_type, kind, suffix, payload",
    [
        (PushType.BACKGROUND, "alert", "", {"aps": {"content-available": 1}}),
        (PushType.VOIP, "voip", ".voip", {"aps": {}, "call": "x" * 4500}),
        (PushType.COMPLICATION, "complication", ".complication", HELLO),
        (PushType.FILEPROVIDER, "fileprovider", ".pushkit.fileprovider", {"domain": "d"}),
        (
            PushType.LIVEACTIVITY,
            "liveactivity",
            ".push-type.liveactivity",
            {"aps": {"timestamp": 1, "event": "update", "content-state": {}}},
        ),
    ],
    ids=["background", "voip", "complication", "fileprovider", "liveactivity"],
)
def test_every_kind_of_push_reaches_its_kind_of_token(app, push_type, kind, suffix, payload):
    phone = app.emulator.make_device(app.app, kind=kind)
    request = app.request(
        payload,
        device_token=phone["handle"]["token"],
        push_type=push_type,
        priority=5,
        apns_topic=app.topic + suffix,
    )
    assert app.send(request)[0].is_successful
    assert app.emulator.await_notifications(phone)[0]["payload"] == payload


def test_500_pushes_in_parallel_share_one_connection_once_the_first_was_accepted(app):
    async def run():
        client = app.client(max_connections=1)
        # Until a token was accepted, APNs allows one stream.
        first = await client.send_notification(app.request())
        requests = [app.request({"aps": {"alert": str(n)}}) for n in range(500)]
        rest = await asyncio.gather(*[client.send_notification(item) for item in requests])
        client.pool.close()
        return [first, *rest]

    results = asyncio.run(run())
    assert {result.status for result in results} == {"200"}
    texts = {item["payload"]["aps"]["alert"] for item in app.got(501)[1:]}
    assert texts == {str(n) for n in range(500)}
    assert len(app.connections()) == 1


def test_a_token_that_apns_does_not_know_is_a_bad_device_token(app):
    for token in (UNKNOWN_TOKEN, "nothex", "abcd"):
        request = app.request(device_token=token)
        assert app.refusal(request) == ("400", "BadDeviceToken")


def test_a_phone_that_went_away_is_unregistered_since_then(app):
    since = int(time.time() * 1000) - 5000
    app.emulator.unregister(app.phone, at=since)
    [result] = app.send(app.request())
    assert (result.status, result.description) == ("410", "Unregistered")
    assert result.timestamp == since


def test_an_expired_device_token_says_since_when(app):
    app.emulator.unregister(app.phone, mode="expired", at=1234567890123)
    [result] = app.send(app.request())
    assert (result.status, result.description) == ("410", "ExpiredToken")
    assert result.timestamp == 1234567890123


def test_a_token_of_another_app_is_not_for_the_topic(app, standins):
    other = App(standins)
    request = app.request(device_token=other.token)
    assert app.refusal(request) == ("400", "DeviceTokenNotForTopic")


def test_a_topic_of_another_team_is_disallowed(app):
    request = app.request(apns_topic="com.example.others")
    assert app.refusal(request) == ("400", "TopicDisallowed")


def test_wrong_headers_are_named(app):
    assert app.refusal(app.request(priority=7)) == ("400", "BadPriority")
    assert app.refusal(app.request(collapse_key="x" * 65)) == ("400", "BadCollapseId")
    assert app.refusal(app.request(time_to_live=-10**12)) == ("400", "BadExpirationDate")
    voip = app.request(push_type=PushType.VOIP)
    assert app.refusal(voip) == ("400", "BadTopic")


def test_4096_bytes_are_taken_and_one_more_is_too_large(app):
    def request(size):
        return app.request({"aps": {}, "x": "y" * (size - len('{"aps": {}, "x": ""}'))})

    assert app.send(request(4096))[0].is_successful
    assert app.refusal(request(4097)) == ("413", "PayloadTooLarge")
    assert app.refusal(request(16_000)) == ("413", "PayloadTooLarge")


def test_a_connection_goes_on_after_refusals(app):
    requests = [
        app.request(),
        app.request(device_token=UNKNOWN_TOKEN),
        app.request({"x": "y" * 5000}),
        app.request(),
    ]
    statuses = [result.status for result in app.send(*requests)]
    assert statuses == ["200", "400", "413", "200"]
    assert len(app.connections()) == 1


def test_a_key_that_apns_does_not_know_is_an_invalid_provider_token(app):
    stranger = pem_of(ec.generate_private_key(ec.SECP256R1())).decode()
    for changes in ({"key": stranger}, {"key_id": "ABC123DEFG"}, {"team_id": "ABC123DEFG"}):
        assert app.refusal(app.request(), **changes) == ("403", "InvalidProviderToken")


def test_a_provider_token_older_than_an_hour_has_expired(app):
    try:
        app.emulator.post("clock", {"advance": 3_602_000})
        assert app.refusal(app.request()) == ("403", "ExpiredProviderToken")
    finally:
        app.emulator.post("clock", {"mode": "real"})
    assert app.send(app.request())[0].is_successful


def test_a_second_provider_token_within_20_minutes_is_one_too_many(app):
    async def run():
        client = app.client(max_connections=1)
        first = await client.send_notification(app.request())
        # The library would sign again after 30 minutes.
        provider = client.pool.connections[0].auth_provider
        provider._JWTAuthorizationHeaderProvider__header = None
        second = await client.send_notification(app.request())
        client.pool.close()
        return [first, second]

    first, second = asyncio.run(run())
    assert first.is_successful
    assert (second.status, second.description) == ("429", "TooManyProviderTokenUpdates")


@pytest.mark.parametrize("status, reason", [(500, "InternalServerError"), (503, "Shutdown")])
def test_what_goes_wrong_at_apns_is_named(app, status, reason):
    reply = {"type": "reply", "status": status, "reason": reason}
    with app.emulator.fault("apns", reply, match={"handle": app.token}):
        assert app.refusal(app.request()) == (str(status), reason)


def test_a_goaway_makes_the_client_connect_again_and_nothing_is_lost(app):
    action = {"type": "goaway", "reason": "Shutdown", "lastStreamId": "previous"}
    with app.emulator.fault("apns", action, match={"handle": app.token}, when={"limit": 1}):
        results = app.send(app.request({"n": 1}), app.request({"n": 2}))
    assert [result.status for result in results] == ["200", "200"]
    assert [item["payload"]["n"] for item in app.got(2)] == [1, 2]
    assert len(app.connections()) == 2


class TestCertificates:
    @pytest.fixture
    def push(self, app, standins, tmp_path):
        """An app's certificate of the authority that the stand-in trusts, registered with it."""
        authority = Authority.of_emulator(standins.addresses["ca"].removesuffix("/ca.pem"))

        def make(**members):
            path, digest = authority.for_apns(tmp_path, app.topic, **members)
            change = {"certificates": [{"sha256": digest}]}
            app.emulator.patch(f"apps/{app.app['appId']}", change)
            return path

        return make

    @staticmethod
    def settings(path):
        none = dict.fromkeys(["key", "key_id", "team_id", "topic"])
        return {**none, "client_cert": path}

    def test_a_push_under_a_certificate_needs_no_token(self, app, push):
        [result] = app.send(app.request(), **self.settings(push()))
        assert result.is_successful
        # The library takes it from the certificate's UID.
        assert app.got()[0]["headers"]["apns-topic"] == app.topic

    def test_many_streams_are_open_from_the_start(self, app, push):
        settings = self.settings(push())

        async def run():
            client = app.client(max_connections=1, **settings)
            requests = [app.request({"n": n}) for n in range(200)]
            results = await asyncio.gather(*[client.send_notification(r) for r in requests])
            client.pool.close()
            return results

        results = asyncio.run(run())
        assert {result.status for result in results} == {"200"}
        assert len(app.got(200)) == 200
        assert len(app.connections()) == 1

    def test_a_certificate_of_the_sandbox_is_of_no_use_in_production(self, app, push):
        path = push(environments=(APNS_DEVELOPMENT,))
        refusal = app.refusal(app.request(), **self.settings(path))
        assert refusal == ("403", "BadCertificateEnvironment")

    def test_an_expired_certificate_is_bad(self, app, push):
        path = push(hours=-1)
        assert app.refusal(app.request(), **self.settings(path)) == ("403", "BadCertificate")

    def test_a_certificate_of_another_authority_is_bad(self, app, tmp_path):
        path, _ = Authority.make().for_apns(tmp_path, app.topic)
        assert app.refusal(app.request(), **self.settings(path)) == ("403", "BadCertificate")


def test_a_client_that_does_not_trust_the_ca_does_not_send(app):
    with pytest.raises(MaxAttemptsExceeded):
        app.send(
            app.request(), ssl_context=ssl.create_default_context(), max_connection_attempts=1
        )
    assert app.connections() == set()
