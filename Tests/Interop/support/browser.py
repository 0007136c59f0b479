"""A browser's side of Web Push, on `http_ece` and `py-vapid`."""

import base64
import json
import os

import http_ece
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid import Vapid02


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point_of(key):
    return key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


class Subscription:
    """What `PushManager.subscribe()` gives, with the private half that stays in the browser."""

    def __init__(self, endpoint=None):
        self.endpoint = endpoint
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.secret = os.urandom(16)
        self.p256dh = b64(point_of(self.key))
        self.auth = b64(self.secret)

    @property
    def info(self):
        """As the browser hands it to the application."""
        return {"endpoint": self.endpoint, "keys": {"p256dh": self.p256dh, "auth": self.auth}}

    @property
    def channel(self):
        """As an installation has it."""
        return {"endpoint": self.endpoint, "p256dh": self.p256dh, "auth": self.auth}

    def decrypt(self, body):
        return http_ece.decrypt(
            body, private_key=self.key, auth_secret=self.secret, version="aes128gcm"
        )


def vapid_claims(authorization, public_key):
    """The claims of a VAPID header that py-vapid finds well signed with this key."""
    # It splits at commas, and takes no blank behind them; RFC 8292, section 3, allows some.
    scheme, _, parameters = authorization.partition(" ")
    header = f"{scheme} {parameters.replace(' ', '')}"
    assert Vapid02.verify(header)
    fields = dict(part.split("=", 1) for part in header.split(" ")[1].split(","))
    assert fields["k"] == public_key
    head, claims, _ = fields["t"].split(".")
    assert json.loads(unb64(head)) == {"typ": "JWT", "alg": "ES256"}
    return json.loads(unb64(claims))
