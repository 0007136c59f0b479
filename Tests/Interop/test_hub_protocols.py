"""The hub's HTTPS port with clients that choose HTTP/2, HTTP/1.1, either or neither."""

import shutil
import socket
import ssl
import subprocess

import h2.config
import h2.connection
import h2.events
import httpx
import pytest

from support.hub import Hub


@pytest.fixture(scope="module")
def hub(stack):
    hub = Hub.of_stack(stack.addresses)
    hub.url = f"{stack.addresses['hub']['httpsUrl']}/{stack.addresses['hub']['name']}"
    return hub


def curl(stack, *words):
    if not shutil.which("curl"):
        pytest.skip("there is no curl")
    return subprocess.run(
        ["curl", "--silent", "--show-error", "--cacert", stack.addresses["hub"]["ca"], *words],
        check=True, capture_output=True, text=True, timeout=30,
    ).stdout


@pytest.mark.parametrize(
    "words, version",
    [(["--http2"], "2"), (["--http1.1"], "1.1"), (["--no-alpn"], "1.1"), ([], "2")],
)
def test_curl(stack, hub, words, version):
    body = '{"platform":"apns","pushChannel":"' + "ab" * 32 + '"}'
    common = [*words, "-H", f"Authorization: {hub.authorization()}", "-w", "|%{http_version}|%{http_code}"]
    url = f"{hub.url}/installations/curl?api-version=2020-06"
    put = curl(stack, *common, "-X", "PUT", "-H", "Content-Type: application/json", "-d", body, url)
    assert put.split("|")[1:] == [version, "200"]
    text, shown, status = curl(stack, *common, url).split("|")
    assert (shown, status) == (version, "200")
    assert '"installationId":"curl"' in text.replace(" ", "")
    assert curl(stack, *common, "-I", url).split("|")[1] == version


@pytest.mark.parametrize("http1, http2, version", [(True, True, "HTTP/2"), (True, False, "HTTP/1.1"), (False, True, "HTTP/2")])
def test_httpx(stack, hub, http1, http2, version):
    context = ssl.create_default_context(cafile=stack.addresses["hub"]["ca"])
    with httpx.Client(verify=context, http1=http1, http2=http2, trust_env=False) as client:
        headers = {"Authorization": hub.authorization()}
        url = f"{hub.url}/registrations?api-version=2020-06"
        for _ in range(20):
            reply = client.get(url, headers=headers)
            assert (reply.status_code, reply.http_version) == (200, version)
        # It writes the whole body before it reads the reply.
        large = client.post(f"{hub.url}/messages", headers=headers, content=b"x" * 2_000_000)
        assert (large.status_code, large.http_version) == (413, version)


def test_h2_streams_at_once(stack, hub):
    """A hundred requests at once on one connection, each with its own answer."""
    address = httpx.URL(hub.url)
    context = ssl.create_default_context(cafile=stack.addresses["hub"]["ca"])
    context.set_alpn_protocols(["h2"])
    with socket.create_connection((address.host, address.port), timeout=20) as plain:
        with context.wrap_socket(plain, server_hostname=address.host) as sock:
            assert sock.selected_alpn_protocol() == "h2"
            peer = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
            peer.initiate_connection()
            for index in range(100):
                peer.send_headers(
                    2 * index + 1,
                    [
                        (":method", "GET"), (":scheme", "https"),
                        (":authority", f"{address.host}:{address.port}"),
                        (":path", f"{address.path}/installations/none-{index}?api-version=2020-06"),
                        ("authorization", hub.authorization()),
                    ],
                    end_stream=True,
                )
            sock.sendall(peer.data_to_send())
            statuses = {}
            ended = set()
            while len(ended) < 100:
                data = sock.recv(65536)
                assert data
                for event in peer.receive_data(data):
                    if isinstance(event, h2.events.ResponseReceived):
                        statuses[event.stream_id] = dict(event.headers)[":status"]
                    elif isinstance(event, h2.events.StreamEnded):
                        ended.add(event.stream_id)
                sock.sendall(peer.data_to_send())
            assert set(statuses.values()) == {"404"}
