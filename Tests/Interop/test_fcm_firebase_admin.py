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
from firebase_admin import exceptions, messaging
from google.auth.exceptions import RefreshError

numbers = itertools.count(1)
# Of the right form, and nobody's.
UNKNOWN_TOKEN = "A" * 22 + ":APA91b" + "B" * 134


class Project:
    """A Firebase project of its own with a phone, and firebase-admin set up for it."""

    def __init__(self, emulator, listener):
        self.emulator = emulator
        self.name = f"interop-{next(numbers)}"
        self.app = emulator.make_app("fcm", projectId=self.name)
        self.phone = emulator.make_device(self.app)
        self.token = self.phone["handle"]["token"]
        self.client = self.client_of(self.app["serviceAccount"])
        self.listener = listener

    def client_of(self, account):
        credential = firebase_admin.credentials.Certificate(account)
        return firebase_admin.initialize_app(credential, name=f"{self.name}-{next(numbers)}")

    def send(self, dry_run=False, **members):
        message = messaging.Message(**{"token": self.token, **members})
        return messaging.send(message, dry_run=dry_run, app=self.client)

    def got(self, count=1):
        return self.emulator.await_notifications(self.phone, count)


@pytest.fixture
def project(standins, trusted, monkeypatch):
    services = standins.emulator.info()["fcm"]
    monkeypatch.setattr(
        messaging._MessagingService,
        "FCM_URL",
        # `requests` speaks HTTP/1.1, and the stand-in has a listener for each protocol.
        services["http1"] + "/v1/projects/{0}/messages:send",
    )
    made = Project(standins.emulator, services)
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
    payload = project.got()[0]["payload"]
    assert payload["data"] == {"key": "value", "grüße": "日本"}
    assert payload["notification"] == {"title": "Title", "body": "Body"}


def test_one_access_token_serves_many_messages(project):
    before = len(project.emulator.requests(pns="fcm-token"))
    for number in range(5):
        project.send(data={"number": str(number)})
    assert [item["payload"]["data"]["number"] for item in project.got(5)] == list("01234")
    fetched = project.emulator.requests(pns="fcm-token")[before:]
    assert [(item["path"], item["status"]) for item in fetched] == [("/token", 200)]
