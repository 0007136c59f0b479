"""Every TLS address with the checks of RFC 5280 that Python makes by default since 3.13."""

import socket
import ssl
import urllib.parse

import pytest


@pytest.mark.parametrize("name", ["hub", "apns", "fcm", "webpush", "wns", "adm", "baidu", "xiaomi"])
def test_the_certificate_stands_a_strict_look(stack, name):
    addresses = stack.addresses["emulator"]
    services = {**addresses["services"], "apns": addresses["apns"]}
    url = urllib.parse.urlsplit(stack.addresses["hub"]["httpsUrl"] if name == "hub" else services[name])
    context = ssl.create_default_context(cafile=stack.addresses["hub"]["ca"])
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection((url.hostname, url.port), timeout=10) as sock:
        with context.wrap_socket(sock, server_hostname=url.hostname) as secure:
            assert secure.version() == "TLSv1.3"
            expected = "h2" if name in ("hub", "apns", "fcm", "webpush") else ("http/1.1", None)
            assert secure.selected_alpn_protocol() in expected
