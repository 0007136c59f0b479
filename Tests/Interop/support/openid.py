"""A small OpenID provider: what `belfry serve --oidc-issuer` talks to, and the page on which people sign in.

It checks what a provider checks (client and secret, the registered address, PKCE, each code once), and asks
the person again for `prompt=login`, unless told to lie.
"""

import base64
import hashlib
import html
import http.server
import json
import secrets
import threading
import time
import urllib.parse

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT = "belfry"
SECRET = "a secret with : and %"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class OpenIDProvider:
    def __init__(self):
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.codes = {}
        # Who sits before the page, and what the provider knows of them.
        self.person = {"sub": "ann-1"}
        # When they last typed their password; None: they have to.
        self.signed_in_at = None
        self.asks_again = True
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                provider._get(self)

            def do_POST(self):
                provider._token(self)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    @staticmethod
    def _reply(request, body, kind="application/json", status=200, **headers):
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(data)

    def _get(self, request):
        address = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(address.query))
        if address.path == "/.well-known/openid-configuration":
            self._reply(request, {
                "issuer": self.issuer, "authorization_endpoint": self.issuer + "/authorize",
                "token_endpoint": self.issuer + "/token", "jwks_uri": self.issuer + "/keys",
                "response_types_supported": ["code"], "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "authorization_response_iss_parameter_supported": True,
            })
        elif address.path == "/keys":
            numbers = self._key.public_key().public_numbers()
            self._reply(request, {"keys": [{
                "kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256",
                "n": b64(numbers.n.to_bytes(256, "big")), "e": b64(numbers.e.to_bytes(3, "big")),
            }]})
        elif address.path == "/authorize":
            self._authorize(request, query)
        elif address.path == "/decide":
            self._decide(request, query)
        else:
            self._reply(request, "{}", status=404)

    def _authorize(self, request, query):
        assert query["client_id"] == CLIENT and query["code_challenge_method"] == "S256"
        assert query["redirect_uri"].endswith("/$portal/oidc/callback")
        is_fresh = query.get("prompt") == "login" and self.asks_again
        if self.signed_in_at and not is_fresh:
            return self._decide(request, {**query, "answer": "yes", "known": "1"})
        fields = "".join(
            f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
            for name, value in query.items()
        )
        self._reply(request, f"""<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,"><main><h1>Provider</h1>
          <form action="/decide">{fields}<button name="answer" value="yes">Let me in</button>
          <button name="answer" value="no">Cancel</button></form></main>""", "text/html")

    def _decide(self, request, query):
        back = {"state": query["state"], "iss": self.issuer}
        if query["answer"] == "yes":
            if "known" not in query:
                self.signed_in_at = int(time.time())
            code = secrets.token_urlsafe(16)
            self.codes[code] = (query, dict(self.person), self.signed_in_at)
            back["code"] = code
        else:
            back["error"] = "access_denied"
            back["error_description"] = "they said no"
        self._reply(
            request, "", status=302, Location=query["redirect_uri"] + "?" + urllib.parse.urlencode(back)
        )

    def _token(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"])).decode()
        form = dict(urllib.parse.parse_qsl(body))
        pair = f"{CLIENT}:{urllib.parse.quote_plus(SECRET)}"
        if request.headers.get("Authorization") != "Basic " + base64.b64encode(pair.encode()).decode():
            return self._reply(request, {"error": "invalid_client"}, status=401)
        query, person, at = self.codes.pop(form.get("code"), (None, None, None))
        digest = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if not query or form["redirect_uri"] != query["redirect_uri"] or digest != query["code_challenge"]:
            return self._reply(request, {"error": "invalid_grant"}, status=400)
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "nonce": query["nonce"], "iat": now, "exp": now + 300,
            "auth_time": at, **person,
        }
        signed = ".".join(b64(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "one"}, claims))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        self._reply(request, {
            "access_token": "none", "token_type": "Bearer", "id_token": f"{signed}.{b64(signature)}"
        })
