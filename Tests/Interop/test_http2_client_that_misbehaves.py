"""A client on h2 that misbehaves on purpose, at the other end of the APNs stand-in.

After each of its ways the same stand-in answers the next good client at once, lives, and is not larger
than before by much.
"""

import json
import socket
import ssl
import struct
import time
import urllib.parse

import h2.config
import h2.connection
import h2.events
import hyperframe.frame as frames
import jwt
import pytest

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EMPTY_SETTINGS = frames.SettingsFrame(0).serialize()


def raw_frame(kind, flags, stream, payload, length=None):
    size = len(payload) if length is None else length
    return struct.pack("!HBBBL", size >> 8, size & 255, kind, flags, stream) + payload


class Client:
    """A connection to the stand-in."""

    def __init__(self, url, authority, protocols=("h2",)):
        place = urllib.parse.urlsplit(url)
        context = ssl.create_default_context(cafile=authority)
        context.set_alpn_protocols(list(protocols))
        sock = socket.create_connection((place.hostname, place.port), timeout=10)
        self.sock = context.wrap_socket(sock, server_hostname=place.hostname)
        self.sock.settimeout(10)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.events = []

    def start(self):
        self.h2.initiate_connection()
        self.flush()
        while not any(isinstance(e, h2.events.RemoteSettingsChanged) for e in self.events):
            assert self.read(), "the stand-in sent no SETTINGS"
        return self

    def flush(self):
        self.sock.sendall(self.h2.data_to_send())

    def raw(self, data):
        self.sock.sendall(data)

    def read(self):
        """`False` at the end."""
        try:
            data = self.sock.recv(65_536)
        except (ConnectionError, ssl.SSLError):
            return False
        if not data:
            return False
        self.events += self.h2.receive_data(data)
        self.flush()
        return True

    def drain(self, limit=10):
        """Reads and throws away until the stand-in ends the connection; whether it did in time."""
        deadline = time.monotonic() + limit
        self.sock.settimeout(limit)
        try:
            while time.monotonic() < deadline:
                if not self.sock.recv(65_536):
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True
        return False

    def close(self):
        self.sock.close()


class APNs:
    def __init__(self, standins):
        self.standins = standins
        self.emulator = standins.emulator
        self.url = self.emulator.info()["apns"]["production"]
        self.topic = "com.example.misbehaving"
        self.app = self.emulator.make_app("apns", bundleId=self.topic)
        self.phone = self.emulator.make_device(self.app)
        key = self.app["keys"][0]
        token = jwt.encode(
            {"iss": self.app["teamId"], "iat": int(time.time())},
            key["privateKeyPem"],
            algorithm="ES256",
            headers={"kid": key["kid"]},
        )
        self.headers = [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", "localhost"),
            (":path", f"/3/device/{self.phone['handle']['token']}"),
            ("authorization", f"bearer {token}"),
            ("apns-topic", self.topic),
        ]

    def connect(self, **members):
        return Client(self.url, self.standins.addresses["ca"], **members)

    def push(self, client, stream=1, body=b'{"aps":{}}', headers=None):
        """Sends one and returns its status."""
        client.h2.send_headers(stream, headers or self.headers)
        client.h2.send_data(stream, body, end_stream=True)
        client.flush()
        return self.status(client, stream)

    def status(self, client, stream):
        while True:
            for event in client.events:
                if isinstance(event, h2.events.ResponseReceived) and event.stream_id == stream:
                    return dict(event.headers)[":status"]
                assert not (
                    isinstance(event, h2.events.StreamReset) and event.stream_id == stream
                ), f"the stream was reset with {event.error_code}"
            assert client.read(), "the stand-in ended the connection"

    def assert_well(self):
        """The next good client is answered, and soon."""
        self.standins.process.assert_alive()
        before = time.monotonic()
        client = self.connect().start()
        assert self.push(client) == "200"
        assert time.monotonic() - before < 5
        client.close()


@pytest.fixture(scope="module")
def apns(standins):
    made = APNs(standins)
    made.assert_well()
    made.began_with = standins.process.resident_bytes()
    yield made
    if made.began_with is not None:
        grown = (standins.process.resident_bytes() - made.began_with) / 2**20
        assert grown < 100, f"it has grown by {grown:.0f} MiB"


# What comes in place of a good beginning.
BEGINNINGS = {
    "nothing at all": b"",
    "HTTP/1.1": b"POST /3/device/ab HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "half a preface": PREFACE[:10],
    "a preface with a wrong end": PREFACE[:-2] + b"xx",
    "a preface without SETTINGS": PREFACE + frames.PingFrame(0, b"pingpong").serialize(),
    "bytes of no kind": bytes(range(256)) * 100,
}

# Frames behind a good beginning, for which the connection has to be ended.
FRAMES = {
    "SETTINGS of five bytes": raw_frame(4, 0, 0, bytes(5)),
    "a window larger than there is": raw_frame(4, 0, 0, struct.pack("!HL", 4, 2**32 - 1)),
    "frames larger than there are": raw_frame(4, 0, 0, struct.pack("!HL", 5, 2**24)),
    "a frame of 16 MiB": raw_frame(1, 5, 1, bytes(70_000), length=2**24 - 1),
    "HPACK that cannot be read": raw_frame(1, 5, 1, b"\xff" * 10),
    "DATA before HEADERS": raw_frame(0, 1, 1, b"hello"),
    "HEADERS on an even stream": raw_frame(1, 5, 2, b"\x82"),
    "HEADERS on no stream": raw_frame(1, 5, 0, b"\x82"),
    "CONTINUATION of nothing": raw_frame(9, 4, 1, b"\x82"),
    "a frame amid a header block": raw_frame(1, 1, 1, b"\x83") + raw_frame(6, 0, 0, bytes(8)),
    "a window that grows by nothing": raw_frame(8, 0, 0, bytes(4)),
    "a window that overflows": raw_frame(8, 0, 0, struct.pack("!L", 2**31 - 1)) * 2,
    "a promise": raw_frame(5, 4, 1, b"\x00\x00\x00\x02\x82"),
    "a PING of seven bytes": raw_frame(6, 0, 0, bytes(7)),
    "a reset of a stream that never was": raw_frame(3, 0, 77, bytes(4)),
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_the_stand_in_goes_on_after_a_beginning_with(apns, name):
    client = apns.connect()
    client.raw(BEGINNINGS[name])
    if name in ("nothing at all", "half a preface"):
        # It waits for the rest, and others do not wait with it.
        apns.assert_well()
    else:
        assert client.drain(), "the connection was not ended"
    client.close()
    apns.assert_well()


@pytest.mark.parametrize("name", FRAMES)
def test_the_connection_ends_and_the_stand_in_goes_on_after(apns, name):
    client = apns.connect()
    client.raw(PREFACE + EMPTY_SETTINGS + FRAMES[name])
    assert client.drain(), "the connection was not ended"
    apns.assert_well()


def test_a_client_that_cannot_speak_http_2_is_refused_in_the_handshake(apns):
    with pytest.raises(ssl.SSLError):
        apns.connect(protocols=("http/1.1",)).sock.recv(1)
    apns.assert_well()


def test_a_stream_id_below_one_that_was_used_is_not_processed(apns):
    client = apns.connect().start()
    assert apns.push(client, 1) == "200"
    assert apns.push(client, 5) == "200"
    before = len(apns.emulator.requests(pns="apns"))
    # Two requests, with the id that was passed over and one that is closed (RFC 9113, section 5.1.1).
    for stream in (3, 5):
        client.raw(raw_frame(1, 5, stream, client.h2.encoder.encode(apns.headers)))
    client.drain(limit=0.5)
    assert len(apns.emulator.requests(pns="apns")) == before
    client.close()
    apns.assert_well()


def literal(name, value):
    """A field as HPACK has it without any table and without Huffman's code."""
    prefix, rest = [127], len(value) - 127
    while rest >= 128:
        prefix.append(rest % 128 + 128)
        rest //= 128
    return b"\x00" + bytes([len(name)]) + name + bytes([*prefix, rest]) + value


def test_a_header_block_of_1_mb_is_refused(apns):
    client = apns.connect().start()
    block = client.h2.encoder.encode(apns.headers) + literal(b"x-large", b"y" * 1_000_000)
    pieces = [block[n : n + 16_000] for n in range(0, len(block), 16_000)]
    try:
        client.raw(raw_frame(1, 1, 1, pieces[0]))
        for number, piece in enumerate(pieces[1:], 2):
            client.raw(raw_frame(9, 4 if number == len(pieces) else 0, 1, piece))
    except OSError:
        pass  # It was cut off in the middle.
    else:
        client.drain(limit=1)
    client.close()
    apns.assert_well()


def test_a_header_that_is_named_ten_thousand_times_is_refused(apns):
    # 4000 bytes in the dynamic table, then a byte for each use: a bomb of 40 MB from 14 kB.
    client = apns.connect().start()
    large = b"\x40\x01a\x7f\xa1\x1e" + b"b" * 4000
    client.raw(raw_frame(1, 5, 1, large + b"\xbe" * 10_000))
    client.drain(limit=1)
    client.close()
    apns.assert_well()


def test_a_header_block_that_never_ends_is_cut_off_or_costs_nothing(apns):
    client = apns.connect().start()
    client.raw(raw_frame(1, 1, 1, b"\x83"))
    try:
        for _ in range(20_000):
            client.raw(raw_frame(9, 0, 1, b"\x00\x01a\x01b"))
    except OSError:
        pass
    apns.assert_well()
    client.close()


def test_streams_opened_and_reset_in_haste_end_the_connection(apns):
    # CVE-2023-44487.
    client = apns.connect().start()
    assert apns.push(client, 1) == "200"
    try:
        for stream in range(3, 20_003, 2):
            block = client.h2.encoder.encode(apns.headers)
            client.raw(raw_frame(1, 4, stream, block) + raw_frame(3, 0, stream, struct.pack("!L", 8)))
    except OSError:
        pass
    assert client.drain(), "the connection was not ended"
    apns.assert_well()


@pytest.mark.parametrize(
    "piece",
    [
        frames.PingFrame(0, b"pingpong").serialize(),
        raw_frame(4, 0, 0, struct.pack("!HL", 3, 100)),
        raw_frame(2, 0, 1, struct.pack("!LB", 0, 9)),
        raw_frame(0xEE, 0, 0, bytes(100)),
    ],
    ids=["PING", "SETTINGS", "PRIORITY", "unknown"],
)
def test_a_flood_without_reading_holds_up_nobody(apns, piece):
    client = apns.connect()
    client.sock.settimeout(3)
    client.raw(PREFACE + EMPTY_SETTINGS)
    step = 60_000 // len(piece)
    try:
        for _ in range(0, 200_000, step):
            client.raw(piece * step)
    except OSError:
        pass  # Cut off, or no longer read.
    apns.assert_well()
    client.close()


def test_a_client_that_does_not_read_its_answers_holds_up_nobody(apns):
    client = apns.connect()
    # A window of nothing for the bodies of answers.
    settings = raw_frame(4, 0, 0, struct.pack("!HL", 4, 0))
    client.raw(PREFACE + settings)
    bad = [h if h[0] != ":path" else (":path", "/3/device/" + "ab" * 32) for h in apns.headers]
    encoder = client.h2.encoder
    for stream in range(1, 2001, 2):
        block = encoder.encode(bad)
        client.raw(raw_frame(1, 4, stream, block) + raw_frame(0, 1, stream, b"{}"))
    apns.assert_well()
    client.close()
    apns.assert_well()


def test_a_body_that_comes_byte_by_byte_is_taken(apns):
    client = apns.connect().start()
    client.h2.send_headers(1, apns.headers)
    body = json.dumps({"aps": {"alert": "slow"}}).encode()
    for byte in body:
        client.h2.send_data(1, bytes([byte]))
        client.flush()
    client.h2.end_stream(1)
    client.flush()
    assert apns.status(client, 1) == "200"
    client.close()


def test_a_body_beyond_the_window_ends_the_stream_or_the_connection(apns):
    client = apns.connect().start()
    client.raw(raw_frame(1, 4, 1, client.h2.encoder.encode(apns.headers)))
    try:
        for _ in range(40):
            client.raw(raw_frame(0, 0, 1, bytes(16_384)))
    except OSError:
        pass
    else:
        client.drain(limit=1)
    client.close()
    apns.assert_well()


def test_a_hundred_clients_that_say_nothing_hold_up_nobody(apns):
    place = urllib.parse.urlsplit(apns.url)
    mute = [socket.create_connection((place.hostname, place.port)) for _ in range(100)]
    apns.assert_well()
    for sock in mute:
        sock.close()
    apns.assert_well()


def test_clients_that_vanish_in_the_middle_leave_nothing_behind(apns):
    before = len(apns.emulator.get("connections")["connections"])
    for _ in range(50):
        client = apns.connect()
        client.raw(PREFACE + EMPTY_SETTINGS)
        client.raw(raw_frame(1, 4, 1, client.h2.encoder.encode(apns.headers)))
        linger = struct.pack("ii", 1, 0)
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.close()
    apns.assert_well()
    deadline = time.monotonic() + 10
    while len(apns.emulator.get("connections")["connections"]) > before:
        assert time.monotonic() < deadline, "connections of clients that have gone are still open"
        time.sleep(0.05)
