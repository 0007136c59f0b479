"""pywebpush sends to the Web Push stand-in, whose virtual browsers decrypt.

Nothing is told to the client but trust in the stand-in's CA, by `REQUESTS_CA_BUNDLE`: a subscription says
where to send. The client speaks HTTP/1.1, for which the stand-in has an address of its own.
"""

import asyncio
import base64
import json
import os
import ssl
import time

import aiohttp
import pytest
import pywebpush
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid import Vapid02

from support.browser import b64, point_of, unb64

CLAIMS = {"sub": "mailto:ops@example.com"}


class Site:
    """A web application with its VAPID key, and a virtual browser that has subscribed to it."""

    def __init__(self, standins, **members):
        self.emulator = standins.emulator
        self.app = self.emulator.make_app("webpush", **members)
        self.key = self.app.get("vapidPrivateKey")
        self.browser = self.subscribe()

    def subscribe(self, **members):
        return self.emulator.make_device(self.app, **members)

    @staticmethod
    def info(browser):
        handle = browser["handle"]
        keys = {"p256dh": handle["p256dh"], "auth": handle["auth"]}
        return {"endpoint": handle["endpointHTTP1"], "keys": keys}

    def push(self, data="hello", browser=None, **members):
        members = {"vapid_private_key": self.key, "vapid_claims": dict(CLAIMS), **members}
        return pywebpush.webpush(self.info(browser or self.browser), data, **members)

    def refusal(self, *words, **members):
        with pytest.raises(pywebpush.WebPushException) as caught:
            self.push(*words, **members)
        return caught.value.status_code

    def got(self, count=1):
        return self.emulator.await_notifications(self.browser, count)

    def texts(self, count=1):
        return [base64.b64decode(item["payloadBase64"]).decode() for item in self.got(count)]


@pytest.fixture
def site(standins, trusted):
    return Site(standins)


def test_the_browser_decrypts_what_was_sent(site):
    text = json.dumps({"title": "Grüße", "body": "日本"}, ensure_ascii=False)
    reply = site.push(text, ttl=60, headers={"Urgency": "high", "Topic": "news"})
    assert reply.status_code == 201
    assert reply.headers["location"]
    assert reply.headers["ttl"] == "60"
    [got] = site.got()
    assert got["decrypted"] is True
    assert got["payload"] == {"title": "Grüße", "body": "日本"}
    assert (got["headers"]["urgency"], got["headers"]["topic"]) == ("high", "news")


@pytest.mark.parametrize("size", [1, 16, 1000, 3993])
def test_messages_of_every_size_are_decrypted(site, size):
    text = "x" * size
    site.push(text)
    assert site.texts() == [text]


def test_a_message_without_content_is_taken(site):
    assert site.push(None).status_code == 201
    [got] = site.got()
    assert got["payloadBase64"] == ""


def test_a_body_over_4096_bytes_is_too_large(site):
    assert site.refusal("x" * 3994) == 413


def test_a_key_pair_of_py_vapid_is_taken(standins, trusted):
    vapid = Vapid02()
    vapid.generate_keys()
    site = Site(standins, vapidPublicKey=b64(point_of(vapid.private_key)))
    site.push("own key", vapid_private_key=vapid)
    assert site.texts() == ["own key"]


def test_another_vapid_key_is_refused(site):
    other = b64(ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value.to_bytes(32))
    assert site.refusal(vapid_private_key=other) == 403
    assert site.emulator.notifications(site.browser) == []


def test_a_message_without_vapid_is_not_authorized(site):
    assert pywebpush.WebPusher(site.info(site.browser)).send("hello").status_code == 401


def test_a_subscription_without_a_key_takes_messages_from_anybody(standins, trusted):
    site = Site(standins, vapidPublicKey=None)
    assert pywebpush.WebPusher(site.info(site.browser)).send("open").status_code == 201
    assert site.texts() == ["open"]


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": int(time.time()) - 10},
        {"exp": int(time.time()) + 90_000},
        {"aud": "https://push.example.com"},
    ],
    ids=["expired", "for more than a day", "for another service"],
)
def test_a_vapid_token_that_does_not_hold_is_refused(site, claims):
    # As it would sign, without its own checks of what it is told to sign.
    endpoint = site.browser["handle"]["endpointHTTP1"]
    full = {"aud": endpoint[: endpoint.index("/wp/")], **CLAIMS, **claims}
    headers = Vapid02.from_raw(site.key.encode()).sign(full)
    pusher = pywebpush.WebPusher(site.info(site.browser))
    assert pusher.send("hello", headers).status_code == 403


def test_the_older_encoding_is_refused(site):
    assert site.refusal(content_encoding="aesgcm") == 400


@pytest.mark.parametrize(
    "headers", [{"Urgency": "now"}, {"Topic": "x" * 33}, {"Topic": "no blanks"}, {"TTL": "soon"}]
)
def test_wrong_headers_are_refused(site, headers):
    assert site.refusal(headers=headers) == 400


def test_a_subscription_that_ended_is_gone(site):
    site.emulator.unregister(site.browser)
    assert site.refusal() == 410


def test_a_subscription_that_never_was_is_not_found(site):
    site.browser["handle"]["endpointHTTP1"] += "x"
    assert site.refusal() == 404


def test_what_is_encrypted_for_somebody_else_is_taken_and_cannot_be_read(site):
    site.browser["handle"]["auth"] = b64(os.urandom(16))
    assert site.push("for another").status_code == 201
    [got] = site.got()
    assert got["decrypted"] is False


def test_messages_wait_for_a_browser_that_is_away_and_topics_replace(site):
    browser = site.subscribe(online=False)
    for text, topic in (("1", "a"), ("2", "a"), ("3", "b")):
        site.push(text, browser=browser, ttl=60, headers={"Topic": topic})
    site.push("now or never", browser=browser)
    path = f"devices/{browser['deviceId']}"
    assert len(site.emulator.get(f"{path}/stored")["stored"]) == 2
    site.emulator.patch(path, {"online": True})
    got = site.emulator.await_notifications(browser, 2)
    assert [base64.b64decode(item["payloadBase64"]) for item in got] == [b"2", b"3"]


def test_retry_after_reaches_the_client(site):
    reply = {"type": "reply", "status": 429, "headers": {"Retry-After": "17"}}
    with site.emulator.fault("webpush", reply):
        with pytest.raises(pywebpush.WebPushException) as caught:
            site.push()
    assert (caught.value.status_code, caught.value.retry_after) == (429, "17")


def test_100_messages_at_a_time_with_the_asynchronous_client(site, standins):
    async def run():
        context = ssl.create_default_context(cafile=standins.addresses["ca"])
        connector = aiohttp.TCPConnector(ssl=context, limit=20)
        async with aiohttp.ClientSession(connector=connector) as session:
            sends = [
                pywebpush.webpush_async(
                    site.info(site.browser),
                    str(number),
                    vapid_private_key=site.key,
                    vapid_claims=dict(CLAIMS),
                    aiohttp_session=session,
                )
                for number in range(100)
            ]
            return [reply.status for reply in await asyncio.gather(*sends)]

    assert set(asyncio.run(run())) == {201}
    assert sorted(site.texts(100), key=int) == [str(number) for number in range(100)]


def test_vapid_keys_of_the_stand_in_are_those_of_py_vapid(site):
    vapid = Vapid02.from_raw(site.key.encode())
    assert point_of(vapid.private_key) == unb64(site.app["vapidPublicKey"])
