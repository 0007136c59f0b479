"""The samples of docs/operate/proxies.md, as they stand there, before a running hub.

Only what a machine decides is replaced: host, ports, the files of the certificate. A proxy that is not installed is
skipped; Debian has all three.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

import pytest
import requests
import requests.adapters
import yaml

from support.certificates import Authority
from support.hub import Hub, ServedHubs
from support.process import BINARY

PAGE = pathlib.Path(__file__).parents[2] / "docs/operate/proxies.md"
COMPOSE = pathlib.Path(__file__).parents[2] / "Packaging/compose.yaml"
PROXIES = ["nginx", "caddy", "haproxy"]
# Linux has all of 127.0.0.0/8.
CLIENT = "127.0.0.3" if sys.platform == "linux" else "127.0.0.1"


class FromAddress(requests.adapters.HTTPAdapter):
    def init_poolmanager(self, *words, **named):
        super().init_poolmanager(*words, source_address=(CLIENT, 0), **named)


def sample(language):
    return re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)[1]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configuration(proxy, folder, port, hub):
    """The sample with this machine's values, and what starts the proxy with it."""
    text = sample(proxy).replace("127.0.0.1:8080", hub).replace("/etc/ssl/", f"{folder}/")
    if proxy == "nginx":
        text = text.replace("listen 443", f"listen 127.0.0.1:{port}").replace("push.example.com", "127.0.0.1")
        # Root's workers would have no right to write here.
        user = "user root; " if os.geteuid() == 0 else ""
        text = (f"{user}daemon off; pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off;\n"
                + "".join(f"{name}_temp_path {folder}/{name};\n"
                          for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")) + text + "}\n")
        words = ["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"]
    elif proxy == "caddy":
        text = ("{\n  admin off\n  auto_https disable_redirects\n  skip_install_trust\n}\n"
                + text.replace("push.example.com", f"https://127.0.0.1:{port}"))
        words = ["caddy", "run", "--adapter", "caddyfile", "--config", f"{folder}/caddy.conf"]
    else:
        text = text.replace("bind :443", f"bind 127.0.0.1:{port}")
        words = ["haproxy", "-db", "-f", f"{folder}/haproxy.conf"]
    pathlib.Path(folder, f"{proxy}.conf").write_text(text)
    return words


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    hubs = ServedHubs(
        tmp_path_factory.mktemp("proxies"), [{"name": "shop"}], publicScheme="https",
        trustedProxies=["127.0.0.1"])
    yield hubs
    hubs.process.stop()


def found(proxy):
    program = shutil.which(proxy) or shutil.which(proxy, path="/usr/sbin:/sbin")
    return program or pytest.skip(f"there is no {proxy}")


@contextlib.contextmanager
def running(words, port, folder):
    """Starts a proxy, and waits until it listens."""
    with open(folder / "log", "w+") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log,
                                   env={"HOME": str(folder), "PATH": "/usr/sbin:/usr/bin:/bin"})
        try:
            deadline = time.monotonic() + 40
            while socket.socket().connect_ex(("127.0.0.1", port)):
                said = pathlib.Path(folder, "log").read_text()
                assert process.poll() is None, f"{words[0]} has ended:\n{said}"
                assert time.monotonic() < deadline, f"{words[0]} does not listen:\n{said}"
                time.sleep(0.05)
            yield
        finally:
            # Caddy would wait for open connections.
            process.kill()
            process.wait()


@pytest.fixture(params=PROXIES)
def hub(request, served, tmp_path):
    """The hub as it is reached through the proxy."""
    program = found(request.param)
    authority = Authority.make()
    pem = pathlib.Path(authority.for_localhost(tmp_path))
    pem.rename(tmp_path / "push-and-key.pem")
    for name in ("push.pem", "push.key"):
        shutil.copy(tmp_path / "push-and-key.pem", tmp_path / name)
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    port = free_port()
    inner = served.process.addresses["url"].removeprefix("http://")
    words = configuration(request.param, str(tmp_path), port, inner)
    with running([program, *words[1:]], port, tmp_path):
        direct = served.hubs["shop"]
        hub = Hub(f"https://127.0.0.1:{port}", "shop", direct._key_name, direct._key)
        hub._session.verify = str(tmp_path / "ca.pem")
        # From an address that is not the proxy's, so that it can be told from it.
        hub._session.mount("https://", FromAddress())
        yield hub


def test_the_balancer_of_the_compose_file_asks_only_nodes_that_can_work(served, tmp_path):
    haproxy = found("haproxy")
    port, nobody = free_port(), free_port()
    inner = served.process.addresses["url"].removeprefix("http://")
    text = (yaml.safe_load(COMPOSE.read_text())["configs"]["balancer"]["content"]
            .replace("bind :8080", f"bind 127.0.0.1:{port}")
            .replace("node1:8080", f"127.0.0.1:{nobody}").replace("node2:8080", inner))
    (tmp_path / "haproxy.conf").write_text(text)
    with running([haproxy, "-db", "-f", str(tmp_path / "haproxy.conf")], port, tmp_path):
        direct = served.hubs["shop"]
        hub = Hub(f"http://127.0.0.1:{port}", "shop", direct._key_name, direct._key)
        # Until its first look HAProxy takes each node for one that works.
        deadline = time.monotonic() + 40
        answers = []
        while answers[-10:] != [200] * 10:
            assert time.monotonic() < deadline, answers
            answers.append(hub._session.get(
                f"{hub.url}/registrations", headers={"Authorization": hub.authorization()}, timeout=20).status_code)


def test_the_compose_file_names_only_settings_that_exist(tmp_path):
    nodes = yaml.safe_load(COMPOSE.read_text())["services"]
    settings = {**nodes["node1"]["environment"]}
    assert settings == nodes["node2"]["environment"]
    settings = {name: re.sub(r"\$\{\w+:[?-][^}]*\}", "secret", value) for name, value in settings.items()}
    shown = subprocess.run(
        [BINARY, "config", "--json"], env={**settings, "HOME": str(tmp_path)}, cwd=tmp_path,
        stdout=subprocess.PIPE, check=True, timeout=40).stdout
    shown = json.loads(shown)
    assert shown["trustedProxies"] == ["10.89.77.10"]
    assert "@database/belfry" in shown["database"] and shown["masterKey"]


def test_proxies(hub, served):
    # Over HTTPS, with an id that has to be escaped, and that a rewritten path would change.
    phone = {"platform": "apns", "pushChannel": "ab" * 32, "tags": ["news"]}
    escaped = "team%3Ared%40example.com%23%3D1"
    hub.call("PUT", f"installations/{escaped}", {"Content-Type": "application/json"}, json.dumps(phone))
    found = hub.call("GET", f"installations/{escaped}").json()
    assert found["installationId"] == "team:red@example.com#=1"
    tag = hub.call("GET", "tags/%24InstallationId%3A%7Bteam%3Ared%40example.com%23%3D1%7D/registrations")
    assert "DeviceToken" in tag.text

    # Addresses in replies are those of the proxy.
    made = hub.call("POST", "registrationids")
    assert made.headers["Location"].startswith(hub.url)

    # A body as large as the hub takes, and no larger: the refusal is the hub's own.
    large = hub._session.post(
        f"{hub.url}/messages", data=b"x" * (1024 * 1024), timeout=20,
        headers={"Authorization": hub.authorization(), "ServiceBusNotification-Format": "apple"})
    assert large.status_code == 413
    assert "TrackingId" in large.headers, large.text

    # The first event of a stream comes while the stream is open: the schedule ends it an hour later.
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    sent = hub.call(
        "POST", "schedulednotifications",
        {"ServiceBusNotification-Format": "apple", "ServiceBusNotification-ScheduleTime": later},
        '{"aps":{"alert":"Hello"}}').headers["Location"].split("?")[0].rsplit("/", 1)[1]
    with hub._session.get(
            f"{hub.url}/messages/{sent}/events", stream=True, timeout=20,
            headers={"Authorization": hub.authorization()}) as stream:
        assert next(stream.iter_lines()).decode() == "event: progress"

    # Who asked is the client, as the proxy tells, and not the proxy.
    line = hub.call("GET", "activity").json()["activity"][0]
    assert (line["action"], line["address"]) == ("schedule", CLIENT)
