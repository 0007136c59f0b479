"""pyhpke opens what Belfry's app backend seals for a device, and seals what Belfry's phone opens.

HPKE base mode (RFC 9180). The layout round it is Belfry's own (`SealedPayload`, `SealingContext`) and is
written out here once more: version, suite, 8 bytes of the key's digest, the encapsulated secret, the
ciphertext; `info` names the use, the associated data the message and the device.
"""

import hashlib
import json
import struct
import uuid

import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey
from pyhpke.exceptions import OpenError

from support.browser import b64, unb64
from support.hub import Hub
from support.process import Belfry

INFO = b"belfry secure push 1"
TEXTS = ["short", "not ASCII", "long"]
CIPHERS = {1: AEADId.AES128_GCM, 3: AEADId.CHACHA20_POLY1305}


def suite_of(number):
    return CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, CIPHERS[number])


def raw(public_key):
    return public_key.public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )


def associated(message, installation):
    return struct.pack("!H", len(message)) + message.encode() + installation.encode()


def open_sealed(text, key, message, installation):
    sealed = unb64(text)
    version, suite = sealed[:2]
    assert version == 1
    assert sealed[2:10] == hashlib.sha256(raw(key.public_key())).digest()[:8]
    private = KEMKey.from_pyca_cryptography_key(key)
    context = suite_of(suite).create_recipient_context(sealed[10:42], private, info=INFO)
    return context.open(sealed[42:], aad=associated(message, installation))


def seal(text, public_key, message, installation, suite=1):
    public = KEMKey.from_pyca_cryptography_key(public_key)
    encapsulated, context = suite_of(suite).create_sender_context(public, info=INFO)
    ciphertext = context.seal(text.encode(), aad=associated(message, installation))
    name = hashlib.sha256(raw(public_key)).digest()[:8]
    return b64(bytes([1, suite]) + name + encapsulated + ciphertext)


class Backend:
    """The app backend of `belfry up`, for a user, whose password there is the user's name."""

    def __init__(self, stack, user):
        self.url = stack.addresses["backend"]["url"]
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.auth = (user, user)

    def call(self, method, path, body=None):
        reply = self._session.request(method, f"{self.url}/api/{path}", json=body, timeout=20)
        assert reply.ok, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json() if reply.content else None


class Phone:
    """An iPhone whose key pair was made here, registered through the backend."""

    def __init__(self, stack, user):
        self.emulator = stack.emulator
        apps = stack.emulator.get("apps")["apps"]
        app = next(app for app in apps if app["pns"] == "apns")
        self.device = stack.emulator.make_device(app)
        self.key = X25519PrivateKey.generate()
        self.id = str(uuid.uuid4())
        self.backend = Backend(stack, user)
        self.backend.call(
            "PUT",
            f"installations/{self.id}",
            {
                "installationId": self.id,
                "platform": "apns",
                "pushChannel": self.device["handle"]["token"],
                "pushVariables": {"securePushKey": "x25519." + b64(raw(self.key.public_key()))},
            },
        )

    def secret(self, payload):
        """Sends it to oneself; the push that arrives."""
        body = {} if payload is None else {"payload": payload}
        id = self.backend.call("POST", "notifications", body)["Id"]
        for item in self.emulator.await_notifications(self.device):
            if item["payload"].get("secureId") == id:
                return item["payload"]
        raise AssertionError("the push of this message did not come first")


@pytest.mark.parametrize("text", ["Hello", "Grüße, 日本 🎉", "x" * 2500], ids=TEXTS)
def test_pyhpke_opens_what_the_backend_seals(stack, text):
    phone = Phone(stack, f"user-{uuid.uuid4()}")
    push = phone.secret(text)
    assert text not in json.dumps(push)
    opened = open_sealed(push["sealed"], phone.key, push["secureId"], phone.id)
    assert opened.decode() == text


def test_a_sealed_payload_opens_for_its_message_and_device_only(stack):
    phone = Phone(stack, f"user-{uuid.uuid4()}")
    push = phone.secret("secret")
    id, sealed = push["secureId"], push["sealed"]
    for message, device in ((id + "x", phone.id), (id, str(uuid.uuid4()))):
        with pytest.raises(OpenError):
            open_sealed(sealed, phone.key, message, device)


def test_what_does_not_fit_into_a_push_goes_by_its_id_alone(stack):
    phone = Phone(stack, f"user-{uuid.uuid4()}")
    push = phone.secret("x" * 4000)
    assert "sealed" not in push
    got = phone.backend.call("GET", f"notifications/{push['secureId']}")
    assert got["Payload"] == "x" * 4000


@pytest.fixture(scope="module")
def iphone(stack):
    """`belfry phone --secure`, and the public key that its installation carries at the hub."""
    process = Belfry(
        "phone", "--secure", "--user", "alice",
        "--control", stack.addresses["emulator"]["control"],
        "--backend", stack.addresses["backend"]["url"],
    )
    phone = process.addresses
    hub = Hub.of_stack(stack.addresses)
    text = hub.installation(phone["installationId"])["pushVariables"]["securePushKey"]
    key = X25519PublicKey.from_public_bytes(unb64(text.removeprefix("x25519.")))

    def push(id, sealed):
        """Sends it past the backend."""
        alert = {"alert": {"body": "You have a message"}, "mutable-content": 1}
        body = json.dumps({"aps": alert, "secureId": id, "sealed": sealed})
        sent = hub.send_direct("apple", body, phone["token"])
        assert hub.outcomes(sent) == {"Success": 1}

    yield push, process.line, key, phone["installationId"]
    process.kill()


@pytest.mark.parametrize("suite", CIPHERS, ids=["AES-128-GCM", "ChaCha20-Poly1305"])
@pytest.mark.parametrize("text", ["Hello", "Grüße, 日本 🎉", "x" * 2000], ids=TEXTS)
def test_the_phone_opens_what_pyhpke_seals(iphone, text, suite):
    push, shows, key, installation = iphone
    id = uuid.uuid4().hex
    push(id, seal(text, key, id, installation, suite))
    shown = shows()
    assert (shown["text"], shown["source"]) == (text, "opened")


def test_the_phone_shows_nothing_of_what_was_sealed_for_another_message_or_changed(iphone):
    push, shows, key, installation = iphone
    id = uuid.uuid4().hex
    changed = bytearray(unb64(seal("forged", key, id, installation)))
    changed[-1] ^= 1
    push(id, seal("forged", key, uuid.uuid4().hex, installation))
    push(id, b64(bytes(changed)))
    # It asks the backend for what it cannot open, and the backend has no such message.
    push(id, seal("the first to be shown", key, id, installation))
    assert shows()["text"] == "the first to be shown"
