"""A sender that knows nothing of Belfry is tested: firebase-admin as it comes from PyPI."""

import firebase_admin
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from firebase_admin import credentials, messaging


# --- The code under test -------------------------------------------------------------------------


def announce(order, token, firebase):
    """True if the customer's phone was told; False if it has uninstalled the app."""
    text = messaging.Notification(title="Your order", body=f"{order} is on its way")
    try:
        messaging.send(messaging.Message(token=token, notification=text), app=firebase)
        return True
    except messaging.UnregisteredError:
        return False


# --- Its tests -----------------------------------------------------------------------------------


@pytest.fixture
def firebase(tmp_path):
    """In your tests: the service account that your program has. This one is of the same form."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    app = firebase_admin.initialize_app(credentials.Certificate({
        "type": "service_account", "project_id": "my-project", "private_key_id": "ab" * 20,
        "private_key": pem.decode(), "client_email": "backend@my-project.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
    }))
    yield app
    firebase_admin.delete_app(app)


def test_the_customer_is_told(belfry, firebase):
    phone = belfry.android("my-project")
    assert announce("Grüner Tee", phone.token, firebase)
    phone.expect("Grüner Tee is on its way")


def test_a_phone_without_the_app_is_noticed(belfry, firebase):
    phone = belfry.android("my-project")
    phone.uninstall()
    assert not announce("Tea", phone.token, firebase)


def test_a_topic_reaches_who_is_subscribed(belfry, firebase):
    reader, other = belfry.android("my-project"), belfry.android("my-project")
    messaging.subscribe_to_topic([reader.token], "news", app=firebase)
    messaging.send(messaging.Message(topic="news", data={"headline": "Tea is here"}), app=firebase)
    reader.expect("Tea is here")
    assert other.messages() == []
