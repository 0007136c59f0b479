"""firebase-admin and google-auth send through the FCM stand-in.

Two things are told to the client that it does not know by itself. The address: firebase-admin has no
setting for it, so `_MessagingService.FCM_URL` names the stand-in. The CA: `REQUESTS_CA_BUNDLE` and
`SSL_CERT_FILE`, which its HTTP libraries read. The rest is its own: the assertion, the fetch of the
access token from the file's `token_uri`, the message, retries, and how it reads an error.
"""

import asyncio
import datetime
import itertools

import firebase_admin
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from firebase_admin import exceptions, messaging
from google.auth.exceptions import RefreshError

numbers = itertools.count(1)
# Of the right form, and nobody's.
UNKNOWN_TOKEN = "A" * 22 + ":APA91b" + "B" * 134


class Project:
    """A Firebase project of its own with a phone, and firebase-admin set up for it."""

    def __init__(self, emulator):
        self.emulator = emulator
        self.name = f"interop-{next(numbers)}"
        self.app = emulator.make_app("fcm", projectId=self.name)
        self.account = self.app["serviceAccount"]
        self.phone = emulator.make_device(self.app)
        self.token = self.phone["handle"]["token"]
        self.client = self.client_of(self.account)

    def client_of(self, account):
        credential = firebase_admin.credentials.Certificate(account)
        return firebase_admin.initialize_app(credential, name=f"client-{next(numbers)}")

    def send(self, dry_run=False, client=None, **members):
        message = messaging.Message(**{"token": self.token, **members})
        return messaging.send(message, dry_run=dry_run, app=client or self.client)

    def got(self, count=1):
        return self.emulator.await_notifications(self.phone, count)


@pytest.fixture
def address(standins, trusted, monkeypatch):
    """Tells firebase-admin an address of the stand-in by the protocol that is spoken there."""
    services = standins.emulator.info()["fcm"]

    def use(protocol):
        monkeypatch.setattr(
            messaging._MessagingService,
            "FCM_URL",
            services[protocol] + "/v1/projects/{0}/messages:send",
        )

    return use


@pytest.fixture
def project(standins, address):
    # The library's own HTTP/1.1, with `requests`.
    address("http1")
    made = Project(standins.emulator)
    yield made
    firebase_admin.delete_app(made.client)


def test_a_notification_with_data_reaches_the_phone_as_it_was_written(project):
    name = project.send(
        data={"key": "value", "grüße": "日本"},
        notification=messaging.Notification(title="Title", body="Body"),
        android=messaging.AndroidConfig(
            priority="high", ttl=datetime.timedelta(hours=1), collapse_key="news"
        ),
    )
    assert name.startswith(f"projects/{project.name}/messages/0:")
    got = project.got()[0]
    assert got["payload"]["data"] == {"key": "value", "grüße": "日本"}
    assert got["payload"]["notification"] == {"title": "Title", "body": "Body"}
    assert got["headers"]["priority"] == "HIGH"
    assert got["headers"]["ttl"] == "3600s"
    assert got["headers"]["collapse_key"] == "news"


def test_an_installation_id_is_a_target_once_the_app_is_registered_by_it(project):
    phone = project.emulator.make_device(project.app, registration="fid")
    for member in ["fid", "token"]:
        message = messaging.Message(**{member: phone["handle"]["fid"]}, data={"as": member})
        messaging.send(message, app=project.client)
    got = project.emulator.await_notifications(phone, 2)
    assert [one["payload"]["data"] for one in got] == [{"as": "fid"}, {"as": "token"}]
    # The project's own phone is registered by its token: its id reaches nobody.
    for fid in [project.phone["handle"]["fid"], project.token]:
        with pytest.raises(messaging.UnregisteredError):
            messaging.send(messaging.Message(fid=fid), app=project.client)


def test_every_option_that_the_client_can_write_is_known(project):
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.timezone.utc)
    name = project.send(
        dry_run=True,
        data={"key": "value"},
        notification=messaging.Notification(
            title="Title", body="Body", image="https://example.com/image.png"
        ),
        android=messaging.AndroidConfig(
            collapse_key="news",
            priority="normal",
            ttl=datetime.timedelta(seconds=1, milliseconds=500),
            restricted_package_name="com.example.app",
            data={"more": "data"},
            notification=messaging.AndroidNotification(
                title="T", body="B", icon="i", color="#aabbcc", sound="s", tag="t",
                click_action="c", body_loc_key="k", body_loc_args=["1"], title_loc_key="k",
                title_loc_args=["2"], channel_id="ch", image="https://example.com/i.png",
                ticker="t", sticky=True, event_timestamp=moment, local_only=True, priority="high",
                vibrate_timings_millis=[100, 50], default_vibrate_timings=False,
                default_sound=True,
                light_settings=messaging.LightSettings(
                    color="#aabbccdd", light_on_duration_millis=200, light_off_duration_millis=300
                ),
                default_light_settings=False, visibility="public", notification_count=3,
                proxy="if_priority_lowered",
            ),
            fcm_options=messaging.AndroidFCMOptions(analytics_label="label"),
            direct_boot_ok=True, bandwidth_constrained_ok=True, restricted_satellite_ok=True,
        ),
        apns=messaging.APNSConfig(
            headers={"apns-priority": "10"},
            payload=messaging.APNSPayload(
                messaging.Aps(
                    alert=messaging.ApsAlert(title="T", subtitle="S", body="B"), badge=1,
                    sound=messaging.CriticalSound("s", critical=True, volume=0.5),
                    content_available=True, mutable_content=True, category="c", thread_id="t",
                ),
                custom="value",
            ),
            fcm_options=messaging.APNSFCMOptions(analytics_label="label"),
            live_activity_token="token",
        ),
        webpush=messaging.WebpushConfig(
            headers={"TTL": "60"},
            data={"web": "push"},
            notification=messaging.WebpushNotification(
                title="T", body="B", actions=[messaging.WebpushNotificationAction("a", "A")],
                vibrate=[100], renotify=True, timestamp_millis=1,
            ),
            fcm_options=messaging.WebpushFCMOptions(link="https://example.com"),
        ),
        fcm_options=messaging.FCMOptions(analytics_label="label"),
    )
    assert name.endswith("/fake_message_id")


def test_a_dry_run_is_checked_and_reaches_nobody(project):
    assert project.send(dry_run=True).endswith("/fake_message_id")
    with pytest.raises(messaging.UnregisteredError):
        project.send(dry_run=True, token=UNKNOWN_TOKEN)
    project.send(data={"real": "one"})
    assert [item["payload"]["data"] for item in project.got()] == [{"real": "one"}]


def test_a_message_to_a_topic_or_a_condition_without_subscribers_is_accepted(project):
    for target in ({"topic": "news"}, {"condition": "'a' in topics && !('b' in topics)"}):
        assert project.send(token=None, **target).startswith(f"projects/{project.name}/messages/")


def test_one_access_token_serves_many_messages(project):
    before = len(project.emulator.requests(pns="fcm-token"))
    for number in range(5):
        project.send(data={"number": str(number)})
    assert [item["payload"]["data"]["number"] for item in project.got(5)] == list("01234")
    fetched = project.emulator.requests(pns="fcm-token")[before:]
    assert [(item["path"], item["status"]) for item in fetched] == [("/token", 200)]


def test_each_message_of_a_batch_has_an_answer_of_its_own(project):
    tokens = [project.token, UNKNOWN_TOKEN, "not a token"]
    messages = [messaging.Message(token=token, data={"a": "b"}) for token in tokens]
    batch = messaging.send_each(messages, app=project.client)
    assert (batch.success_count, batch.failure_count) == (1, 2)
    assert batch.responses[0].message_id.startswith(f"projects/{project.name}/")
    assert isinstance(batch.responses[1].exception, messaging.UnregisteredError)
    assert isinstance(batch.responses[2].exception, exceptions.InvalidArgumentError)
    assert len(project.got()) == 1


def test_a_multicast_over_http_1_1_reaches_every_phone(project):
    phones = [project.emulator.make_device(project.app) for _ in range(20)]
    multicast = messaging.MulticastMessage(
        tokens=[phone["handle"]["token"] for phone in phones],
        notification=messaging.Notification(title="All"),
    )
    assert messaging.send_each_for_multicast(multicast, app=project.client).success_count == 20
    for phone in phones:
        assert len(project.emulator.await_notifications(phone)) == 1


def test_a_multicast_over_http_2_reaches_every_phone_through_one_connection(project, address):
    address("http2")  # The library's asynchronous client is httpx with HTTP/2.
    client = project.client_of(project.account)
    phones = [project.emulator.make_device(project.app) for _ in range(100)]
    multicast = messaging.MulticastMessage(
        tokens=[phone["handle"]["token"] for phone in phones], data={"all": "of you"}
    )
    before = project.emulator.requests(pns="fcm")[-1:]
    batch = asyncio.run(messaging.send_each_for_multicast_async(multicast, app=client))
    assert [str(item.exception) for item in batch.responses if item.exception] == []
    seen = project.emulator.requests(pns="fcm", after=before[0]["seq"] if before else 0)
    assert len({item["connection"] for item in seen}) == 1
    assert len(seen) == 100
    for phone in phones:
        assert len(project.emulator.await_notifications(phone)) == 1


def test_an_unknown_token_is_unregistered(project):
    with pytest.raises(messaging.UnregisteredError) as caught:
        project.send(token=UNKNOWN_TOKEN)
    assert caught.value.http_response.status_code == 404


def test_a_phone_that_went_away_is_unregistered(project):
    project.emulator.unregister(project.phone)
    with pytest.raises(messaging.UnregisteredError):
        project.send()


def test_a_token_of_another_project_is_a_mismatch_of_senders(project):
    other = Project(project.emulator)
    with pytest.raises(messaging.SenderIdMismatchError):
        project.send(token=other.token)


def test_what_is_no_token_is_an_invalid_argument(project):
    with pytest.raises(exceptions.InvalidArgumentError, match="not a valid FCM registration token"):
        project.send(token="bad")


def test_a_reserved_key_in_data_is_an_invalid_argument(project):
    for key in ("from", "google.x", "gcm_x", "message_type"):
        with pytest.raises(exceptions.InvalidArgumentError):
            project.send(data={key: "value"})


def test_4096_bytes_are_taken_and_more_are_an_invalid_argument(project):
    def data(size):
        # The JSON around it: {"k":"…"}
        return {"k": "x" * (size - len('{"k":""}'))}

    project.send(data=data(4096))
    with pytest.raises(exceptions.InvalidArgumentError, match="too big"):
        project.send(data=data(4097))


def test_a_field_that_fcm_does_not_have_is_an_invalid_argument(project):
    service = messaging._get_messaging_service(project.client)
    with pytest.raises(Exception) as caught:
        service._client.body(
            "post",
            url=service._fcm_url,
            json={"message": {"token": project.token, "nosuch": "field"}},
        )
    error = service._handle_fcm_error(caught.value)
    assert isinstance(error, exceptions.InvalidArgumentError)
    assert "nosuch" in str(error)


def test_too_many_messages_are_a_quota_exceeded(project):
    reply = {"type": "reply", "status": 429, "reason": "QUOTA_EXCEEDED"}
    with project.emulator.fault("fcm", reply):
        with pytest.raises(messaging.QuotaExceededError):
            project.send()


def test_a_bad_apns_key_in_the_project_is_a_third_party_auth_error(project):
    reply = {"type": "reply", "status": 401, "reason": "THIRD_PARTY_AUTH_ERROR"}
    with project.emulator.fault("fcm", reply):
        with pytest.raises(messaging.ThirdPartyAuthError):
            project.send()


def test_an_overload_that_passes_is_survived_by_the_clients_own_retry(project):
    reply = {"type": "reply", "status": 503, "reason": "UNAVAILABLE"}
    with project.emulator.fault("fcm", reply, when={"limit": 2}):
        project.send(data={"after": "503"})
    assert len(project.got()) == 1


def test_a_revoked_access_token_is_renewed_by_google_auth(project):
    project.send()
    project.emulator.patch(f"apps/{project.app['appId']}", {"revokeTokens": True})
    project.send()
    assert len(project.got(2)) == 2


def test_an_account_of_our_own_making_is_accepted_once_it_is_known(project):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    account = {
        **project.account,
        "client_email": "own@example.iam.gserviceaccount.com",
        "private_key_id": "own-key",
        "private_key": key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    }
    client = project.client_of(account)
    with pytest.raises(RefreshError, match="invalid_grant"):
        project.send(client=client)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    added = {
        "clientEmail": account["client_email"],
        "privateKeyId": account["private_key_id"],
        "publicKeyPem": public.decode(),
    }
    project.emulator.patch(f"apps/{project.app['appId']}", {"serviceAccounts": [added]})
    project.send(client=client)
    assert len(project.got()) == 1


def test_a_disabled_account_gets_no_access_token(project):
    change = {"clientEmail": project.account["client_email"], "disabled": True}
    project.emulator.patch(f"apps/{project.app['appId']}", {"serviceAccounts": [change]})
    with pytest.raises(RefreshError, match="invalid_client"):
        project.send()


def test_an_account_of_one_project_may_not_send_for_another(project):
    other = Project(project.emulator)
    stranger = project.client_of({**other.account, "project_id": project.name})
    with pytest.raises(exceptions.PermissionDeniedError):
        project.send(client=stranger)
    assert project.emulator.notifications(project.phone) == []
