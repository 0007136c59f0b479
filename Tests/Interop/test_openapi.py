"""The description of the REST API, docs/reference/openapi.yaml, against a running hub.

schemathesis makes requests of it: its examples, the edges of each parameter, and random ones, valid and not. A
reply has to be one that the file knows: status, type, headers and document. Nothing may be a 5xx of the server's
own, and nothing may be answered without a token.

Left out are two checks: the hub takes more than the file says (unknown members, letter case, other spellings), and
refuses what a schema cannot say (a tag expression, a payload that is none of its platform's).
"""

import pathlib
import re
import types

import openapi_spec_validator
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, settings

from support.hub import Hub

FILE = pathlib.Path(__file__).parents[2] / "docs/reference/openapi.yaml"
OFF = {"enabled": False}
CONFIGURATION = {
    "generation": {"max-examples": 15, "deterministic": True},
    "checks": {
        "positive_data_acceptance": OFF,
        "negative_data_rejection": OFF,
        # Without `If-Match` nothing is deleted: 412, as at the original.
        "missing_required_header": {"expected-statuses": [400, 401, 412]},
    },
    "operations": [
        # `belfry up` shows its metrics to everybody.
        {"include-path": "/metrics", "checks": {"ignored_auth": OFF}},
        # Their paths are also those of a notification and of a hub, whose methods `Allow` then names, too.
        *({"include-path": path, "checks": {"allow_header_conformance": OFF, "unsupported_method": OFF}}
          for path in ("/{hub}/messages/$batch", "/{hub}/tags/{id}/registrations", "/$activity")),
    ],
}
HUB_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,259}")


def test_the_file_is_valid():
    openapi_spec_validator.validate(yaml.safe_load(FILE.read_text()))


def test_an_installation_is_declared_as_json():
    """Generated clients go by the declaration; by XML alone they gave nothing back."""
    path = yaml.safe_load(FILE.read_text())["paths"]["/{hub}/installations/{id}"]
    declared = path["get"]["responses"]["200"]["content"]
    assert list(declared)[0] == "application/json"
    assert declared["application/json"]["schema"]["$ref"].endswith("/Installation")


@pytest.fixture(scope="module")
def api(stack):
    """What the operations are tried on: a hub with a device and a notification."""
    demo = Hub.of_stack(stack.addresses)
    demo.install({"installationId": "phone", "platform": "apns", "pushChannel": "ab" * 32, "userId": "ann",
                  "tags": ["news"], "templates": {"main": {"body": '{"aps":{"alert":"$(message)"}}'}}})
    sent = demo.send("template", '{"message":"Hello"}', "news")
    demo.outcomes(sent)
    feed = demo.call("GET", "registrations").text
    known = {"InstallationID": "phone", "NotificationID": sent,
             "RegistrationID": re.search(r"<RegistrationId>([^<]*)", feed)[1]}
    return types.SimpleNamespace(
        namespace=Hub.of_namespace(stack.addresses), known=known, process=stack.process)


schema = schemathesis.openapi.from_path(
    FILE, config=schemathesis.Config.from_dict(CONFIGURATION))


@schema.parametrize()
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.timeout(240)
def test_operation(case, api):
    place = case.path_parameters
    # Elsewhere than in PUT and DELETE of a hub itself it is the one that is there.
    if HUB_NAME.fullmatch(str(place.get("hub", ""))):
        place["hub"] = "made-up" if case.path == "/{hub}" and case.method != "GET" else "demo"
    raw = schema.raw_schema["paths"][case.path]
    for parameter in raw.get("parameters", []):
        name = parameter.get("$ref", "").rsplit("/")[-1]
        if name in api.known and isinstance(place.get("id"), str) and len(place["id"]) % 2:
            place["id"] = api.known[name]
    headers = {"Authorization": api.namespace.authorization()}
    reply = case.call(base_url=api.namespace.url, headers=headers, timeout=20)
    # A request line of more than 32 kB: libmicrohttpd refuses it, in words of its own.
    if reply.status_code != 414:
        case.validate_response(reply, headers=headers)
    api.process.assert_alive()
