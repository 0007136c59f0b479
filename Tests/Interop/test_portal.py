"""The portal in Chromium, against `belfry up`: its pages, their errors, and hostile data in all of them.

Complaints of the console, refusals of the content security policy and rules of accessibility that axe finds
broken fail a test wherever they show. `script/portal` runs `test_the_tutorial_in_the_portal` and keeps its
pictures. With PORTAL_FILES=1 the browser gets the portal's files as they lie in the repository.
"""

import base64
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse

import pytest
import requests

from support import chromium
from support.emulator import Emulator
from support.portal import FILES, FROM_REPOSITORY, PHONE, WIDE, PortalPage
from support.process import BINARY, Belfry
from test_browser import Hub

pytestmark = [
    pytest.mark.skipif(
        chromium.BINARY is None,
        reason="there is no Chromium: on Debian `apt-get install chromium`, or name one in CHROMIUM",
    ),
    pytest.mark.timeout(300),
]

PICTURES = os.environ.get("PORTAL_PICTURES")
# How often each page is opened for its time; of a busy machine the least counts.
ROUNDS = int(os.environ.get("PORTAL_ROUNDS", "1"))


@pytest.fixture
def hub(stack):
    return Hub(stack.addresses)


@pytest.fixture(scope="module")
def address(stack):
    return stack.addresses["portal"]


@pytest.fixture(scope="module")
def browser():
    running = chromium.Chromium()
    yield running
    running.stop()


@pytest.fixture
def portal(browser, address):
    page = PortalPage.of(browser, address)
    yield page
    page.close()


def add_phones(hub, emulator, count=1, tags=("news",), user=None):
    """Phones of APNs that are registered as the portal does."""
    app = next(app for app in emulator.get("apps")["apps"] if app["pns"] == "apns")
    made = emulator.post("devices", {"appId": app["appId"], "count": count})["devices"]
    for device in made:
        name = f"virtual-{device['deviceId']}"
        installation = {
            "installationId": name, "platform": "apns", "tags": list(tags),
            "pushChannel": device["handle"]["token"],
            "templates": {"genericTemplate": {"body": '{"aps":{"alert":"$(message)"}}'}},
            **({"userId": user} if user else {}),
        }
        hub.call("PUT", f"installations/{name}", {"Content-Type": "application/json"}, json.dumps(installation))
    return [device["deviceId"] for device in made]


def send(hub, message="Hello", tags="news", headers=None):
    reply = hub.call(
        "POST", "messages",
        {
            "ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": tags,
            "Content-Type": "application/json;charset=utf-8", **(headers or {}),
        },
        json.dumps({"message": message}).encode(),
    )
    return reply.headers["Location"].split("?")[0].rsplit("/", 1)[1]


# --- The first look ------------------------------------------------------------------------------


def test_a_browser_at_the_root_is_signed_in_and_sees_the_hubs(portal, stack):
    portal.open(stack.addresses["hub"]["url"] + "/")
    portal.await_value("document.documentElement.dataset.ready !== undefined")
    portal.settle()
    assert portal.run("location.pathname") == "/$portal/"
    assert "demo" in portal.shown()
    portal.check()


@pytest.mark.parametrize("language", ["en", "fr", "zh"])
def test_the_first_load_of_every_page_is_small_and_from_here_alone(browser, address, language):
    """`script/portal --measure` shows what it prints. With PORTAL_FILES=1 the files go uncompressed."""
    origin = address.partition("/$portal/")[0]
    for name, path in PAGES.items():
        page = PortalPage.of(browser, address, language)
        page.call("Network.setCacheDisabled", cacheDisabled=True)
        page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source="""new MutationObserver((_, observer) => {
              if (document.documentElement?.dataset.ready === undefined) return;
              window.readyAfter = performance.now();
              observer.disconnect();
            }).observe(document, { subtree: true, childList: true, attributes: true });""",
        )
        times = []
        for _ in range(ROUNDS):
            page.visit(path, settles=False)
            times.append(page.run("window.readyAfter"))
        loaded = page.run(
            "performance.getEntries().filter((one) => ['resource', 'navigation'].includes(one.entryType)).map((one) => [one.name, one.encodedBodySize, one.decodedBodySize])"
        )
        page.close()
        assert all(address.startswith(origin + "/") for address, _, _ in loaded), loaded
        files = [one for one in loaded if "/$portal/" in one[0]]
        wire, whole = (sum(one[index] for one in files) / 1000 for index in (1, 2))
        print(f"{name:14} {language} {wire:5.0f} kB of {whole:4.0f}, interactive after {min(times):4.0f} ms, median {sorted(times)[len(times) // 2]:4.0f}")
        assert wire < 150 or FROM_REPOSITORY, loaded
        # The aim is 300 ms on an idle machine; a busy one is no fault of the portal.
        assert min(times) < 2500


def test_a_hub_with_many_devices_is_as_quick_to_open(portal):
    """Lists come in pages: what is loaded does not grow with the hub (checked by counting requests)."""
    portal.visit("hub/demo/devices")
    asked = portal.run("performance.getEntriesByType('resource').filter((one) => one.name.includes('/installations')).length")
    assert asked <= 2


# --- Signing in ----------------------------------------------------------------------------------


def test_a_key_signs_in_and_is_not_kept(browser, address, hub):
    page = PortalPage.of(browser, address)
    page.call("Page.addScriptToEvaluateOnNewDocument", source="sessionStorage.setItem('belfry.signed-out', '1')")
    page.visit("hub/demo/devices")
    assert page.run("location.pathname") == "/$portal/sign-in"
    page.check()
    page.fill("Connection string", hub.connection)
    page.fill("Hub", "demo")
    page.press("Sign in", within="[...document.querySelectorAll('section')].at(-1)")
    page.await_value("location.pathname === '/$portal/hub/demo/devices'")
    page.settle()
    assert page.run("JSON.stringify({ ...sessionStorage, ...localStorage })").find(hub.key) == -1
    page.complaints()
    page.visit("hub/demo/devices")
    assert page.run("location.pathname") == "/$portal/sign-in"
    page.close()


@pytest.mark.parametrize(
    "text, says",
    [
        ("nonsense", "not a connection string"),
        ("Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=d3Jvbmc=", "does not accept this key for this hub"),
    ],
)
def test_a_wrong_key_is_told_with_what_to_do(browser, address, text, says):
    page = PortalPage.of(browser, address)
    page.expected += ["401"]
    page.call("Page.addScriptToEvaluateOnNewDocument", source="sessionStorage.setItem('belfry.signed-out', '1')")
    page.visit("sign-in?to=/$portal/hub/demo/devices")
    page.fill("Connection string", text)
    page.fill("Hub", "demo")
    page.press("Sign in", within="[...document.querySelectorAll('section')].at(-1)")
    page.reads(says)
    if "this hub" in says:
        page.reads("TrackingId")
    page.check()
    page.close()


# --- Devices -------------------------------------------------------------------------------------


JSON = {"Content-Type": "application/json"}


def handle_of(hub, name):
    return hub.call("GET", f"installations/{name}").json()["pushChannel"]


def test_a_device_is_found_its_tags_are_edited_and_it_is_deleted(portal, hub, stack):
    device = add_phones(hub, stack.emulator, tags=("shoes",), user="ann")[0]
    name = f"virtual-{device}"
    send(hub, "Shoes!", "shoes")
    portal.visit("hub/demo/devices?by=tag&find=shoes")
    portal.press(name)
    portal.settle()
    portal.reads("Delivered")
    endpoint = hub.call("POST", "devices/search", JSON, json.dumps({"handle": handle_of(hub, name)})).json()["registrations"][0]["endpoint"]
    portal.await_value(f"document.querySelector('.facts').innerText.includes({json.dumps(endpoint)})")
    portal.fill("New tag", "hats-caps")
    portal.press("Add")
    portal.reads("Tag added")
    portal.settle()
    assert hub.call("GET", f"installations/{name}").json()["tags"] == ["shoes", "hats-caps"]
    portal.press("Remove shoes")
    portal.reads("Tag removed")
    portal.settle()
    assert hub.call("GET", f"installations/{name}").json()["tags"] == ["hats-caps"]
    portal.check()
    portal.press("Delete this device")
    portal.press("Delete")
    portal.await_value("location.pathname === '/$portal/hub/demo/devices'")
    assert requests.get(
        f"{hub.url}/demo/installations/{name}?api-version=2020-06", headers={"Authorization": hub.token()}, timeout=20
    ).status_code == 404


def test_an_outcome_that_is_not_final_is_followed_on_the_page_of_the_device(portal, hub, stack):
    device = add_phones(hub, stack.emulator, tags=("slow",))[0]
    # Longer than a page takes to open on a busy machine.
    with stack.emulator.fault("apns", {"type": "latency", "ms": 6000}):
        send(hub, "Slowly!", "slow")
        portal.visit(f"hub/demo/devices/virtual-{device}")
        portal.reads("Waiting")
        portal.reads("Delivered")


def test_a_notification_is_explained_for_a_device(portal, hub, stack):
    device = add_phones(hub, stack.emulator, tags=("boats",))[0]
    other = send(hub, "Cars!", "cars || boats && !boats")
    send(hub, "Boats are here!", "boats")
    portal.visit(f"hub/demo/devices/virtual-{device}")
    portal.reads("Boats are here!")
    portal.settle()
    rows = "[...document.querySelectorAll('.rows > li')].map((row) => row.innerText)"
    assert not any("Cars!" in row for row in portal.run(rows)), "it was not for this device"
    portal.press("Also those not for it")
    portal.await_value(f"{rows}.some((row) => row.includes('Cars!') && row.includes('Not its tags')) && location.search === '?others=1'")
    # By what it says, by its id, and what no notification says.
    portal.fill("Text or id of a notification", "cars")
    portal.press("Explain")
    portal.reads("Tag expression")
    portal.check()
    portal.fill("Text or id of a notification", "trains")
    portal.press("Explain")
    portal.reads("No notification says “trains”.")
    portal.fill("Text or id of a notification", other)
    portal.press("Explain")
    portal.reads("Tag expression")
    portal.check()


def test_the_page_of_a_device_has_two_columns_and_on_a_narrow_screen_one(portal, hub, stack):
    device = add_phones(hub, stack.emulator, tags=("layout",), user="leo")[0]
    send(hub, "Two columns", "layout")
    portal.visit(f"hub/demo/devices/virtual-{device}")
    portal.reads("Two columns")
    portal.settle()
    assert portal.run("document.querySelector('h1').innerText") == "Apple device of leo"
    # What is written last is what the hub was told last: here, by the phone.
    portal.reads("Last registered or changed")
    age = portal.run("(Date.now() - Date.parse(document.querySelector('.facts time').dateTime)) / 1000")
    assert -5 < age < 3600, f"registered {age} s ago"
    # What undoes everything comes last.
    assert portal.run("[...document.querySelectorAll('main button')].at(-1).innerText") == "Delete this device"
    places = "[...document.querySelector('.two').children].map((node) => node.getBoundingClientRect()).map(({ left, top, width }) => [left, top, width])"
    (left, top, _), (side, side_top, width) = portal.run(places)
    assert side > left and side_top == top and width == 21 * 16, "the side is not beside the list"
    for size in (1000, 768, PHONE[0], 320):
        portal.size(size, 844)
        (left, top, _), (side, side_top, _) = portal.run(places)
        assert side == left and side_top > top, f"two columns at {size}"
        for scheme in ("light", "dark"):
            portal.scheme(scheme)
            portal.check()


def test_a_device_that_is_not_there_and_a_wrong_id_are_told(portal):
    portal.expected += ["404", "400"]
    portal.visit("hub/demo/devices/nobody")
    portal.reads("may have been deleted")
    portal.visit("hub/demo/devices?find=nobody")
    portal.reads("Nothing found")
    portal.check()


def test_devices_are_searched_by_part_of_an_id_a_tag_or_a_user_and_found_by_handle(portal, hub, stack):
    device = add_phones(hub, stack.emulator, tags=("gloves",), user="zoe.miller")[0]
    name = f"virtual-{device}"
    rows = "[...document.querySelectorAll('main tbody tr')].map((row) => row.innerText)"
    portal.visit("hub/demo/devices")
    for part in ("GLOV", "miller", device[-9:]):
        portal.run("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }))")
        assert portal.run("document.activeElement.type") == "search"
        portal.run(f"document.activeElement.value = {json.dumps(part)}; document.activeElement.dispatchEvent(new Event('input', {{ bubbles: true }}))")
        portal.await_value(f"{rows}.length === 1 && {rows}[0].includes('zoe.miller')")
        portal.await_value("/^1 of \\d+$/.test(document.querySelector('.paged [role=status]').innerText)")
    portal.check()
    portal.run("document.querySelector('main details').open = true")
    # In the other letter case, as another tool may have written it.
    handle = handle_of(hub, name).lower()
    portal.fill("Text", handle)
    portal.press("Find", within="document.querySelector('main details')")
    portal.await_value(f"{rows}.some((row) => row.includes('zoe.miller'))")
    assert handle not in portal.run("location.href").lower()
    portal.check()


def test_a_list_says_why_a_text_is_missing_and_compose_how_long_it_is_kept(browser, address):
    items = [
        {"notificationId": f"n-{state}", "state": "Completed", "kind": "tag", "format": "template", "tags": "x",
         "enqueueTime": "2030-01-01T00:00:00Z", "outcomes": {"Success": 1}, "textState": state}
        for state in ("off", "sealed", "silent")
    ]
    page = PortalPage.of(browser, address)
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source=f"""
          const real = window.fetch;
          window.fetch = async (address, options) => {{
            const url = new URL(address, location.href);
            const json = (value) => new Response(JSON.stringify(value), {{ headers: {{ 'Content-Type': 'application/json' }} }});
            if (url.pathname === '/demo/messages') return json(url.searchParams.get('q') ? {{ notifications: [], unsearched: 12 }} : {{ notifications: {json.dumps(items)} }});
            if (url.pathname === '/$portal/session') return json({{ ...await (await real(address, options)).json(), keptText: JSON.parse(localStorage.testKept ?? '0') }});
            return real(address, options);
          }};
        """,
    )
    page.visit("hub/demo/notifications")
    rows = page.run("[...document.querySelectorAll('.rows > li')].map((row) => row.innerText)")
    for row, words in zip(rows, ("Text not kept", "Sealed message", "Silent push"), strict=True):
        assert words in row
    page.visit("hub/demo/notifications?q=goal")
    page.reads("No notification says “goal”")
    page.reads("The text of 12 older ones was not kept, so the search cannot find them.")
    page.check()
    for kept, words in (("0", "Not kept: lists do not show it."), ("43200", "Kept for 12 hours, for the list."), ("null", "Kept, for the list.")):
        page.run(f"localStorage.testKept = '{kept}'")
        page.visit("hub/demo/compose")
        page.reads(words)
    page.run("delete localStorage.testKept")
    page.check()
    page.close()


def test_a_user_is_erased_with_a_receipt(portal, hub, stack):
    add_phones(hub, stack.emulator, count=2, user="bea")
    portal.visit("hub/demo/users/bea")
    portal.reads("2 of 2")
    portal.press("Erase")
    portal.await_value("document.querySelector('dialog button.danger').disabled")
    portal.run(
        "(() => { const box = document.querySelector('dialog input'); box.value = 'bea'; box.dispatchEvent(new Event('input')); })()"
    )
    portal.press("Erase")
    portal.reads("Erased at")
    portal.check()
    left = hub.call("GET", "installations").json()["installations"]
    assert not any(one.get("userId") == "bea" for one in left)


# --- Sending, what waits, what is done to it -----------------------------------------------------


def test_a_schedule_is_canceled(portal, hub):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 7200))
    hub.call(
        "POST", "schedulednotifications",
        {
            "ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": "news",
            "ServiceBusNotification-ScheduleTime": at, "Content-Type": "application/json",
        },
        b'{"message":"later"}',
    )
    portal.visit("hub/demo/schedules")
    portal.run("document.querySelector('td button').click()")
    portal.press("Cancel it")
    portal.reads("Nothing is scheduled")
    portal.check()


def test_a_channel_is_made_sent_to_and_deleted(portal):
    portal.visit("hub/demo/channels")
    portal.press("Make a channel")
    portal.press("Make a channel")
    portal.reads("The newest update is stored")
    portal.await_value("document.querySelector('td button:not(.quiet)') !== null")
    portal.run("document.querySelector('td button:not(.quiet)').click()")
    portal.press("Send")
    portal.reads("APNs accepted it.")
    portal.press("Close")
    portal.check()
    portal.run("document.querySelector('td button.danger').click()")
    portal.press("Delete")
    portal.reads("No channel")


def test_a_hub_without_a_credential_says_so_on_the_page_of_channels(portal):
    portal.visit("")
    portal.press("Create a hub")
    portal.fill("Name", "bare")
    portal.press("Create a hub")
    portal.await_value("location.pathname.endsWith('/hub/bare')")
    portal.settle()
    portal.expected += ["409"]
    portal.visit("hub/bare/channels")
    portal.reads("The hub has no APNs credential")
    assert "Somebody else" not in portal.run("document.body.innerText")
    portal.press("Make a channel")
    portal.press("Make a channel")
    portal.reads("set one first")
    assert "Somebody else" not in portal.run("document.body.innerText")
    portal.check()


def test_a_job_that_may_not_write_there_says_so(portal):
    portal.visit("hub/demo/jobs")
    portal.fill("Where results go", "https://files.example.com/out")
    portal.press("Submit")
    portal.reads("Failed", limit=30)
    portal.check()


# --- Settings ------------------------------------------------------------------------------------


def test_a_policy_is_made_shown_renewed_and_deleted(portal, hub):
    portal.visit("hub/demo/policies")
    portal.press("Create a policy")
    portal.fill("Name", "reporting")
    portal.press("Create a policy")
    portal.reads("Copy what you need now.")
    shown = portal.run("[...document.querySelectorAll('dialog:last-of-type input')].map((box) => box.value)")
    assert len(shown) == 2 and all("SharedAccessKeyName=reporting;" in text for text in shown)
    done = subprocess.run(
        [BINARY, "sas", "--connection", shown[0], "--hub", "demo"], capture_output=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    reply = requests.get(
        f"{hub.url}/demo/registrations?api-version=2020-06",
        headers={"Authorization": done.stdout.decode().strip()}, timeout=20,
    )
    assert reply.status_code == 403  # The key is known; it may only listen.
    portal.press("Close")
    portal.settle()
    portal.press("Rotate reporting")
    portal.press("Rotate")
    portal.reads("These are the new keys.")
    renewed = portal.run("[...document.querySelectorAll('dialog:last-of-type input')].map((box) => box.value)")
    assert renewed[1] == shown[0] and renewed[0] not in shown
    portal.press("Close")
    portal.settle()
    portal.check()
    portal.press("Delete reporting")
    portal.run(
        "(() => { const box = document.querySelector('dialog input'); box.value = 'reporting'; box.dispatchEvent(new Event('input')); })()"
    )
    portal.press("Delete")
    portal.reads("Policy deleted")
    portal.settle()
    portal.await_value("!document.querySelector('table').innerText.includes('reporting')")


def test_of_two_operators_the_second_is_told_and_nothing_is_lost(portal, hub, browser, address):
    """One has the policies open while the other makes one."""
    portal.visit("hub/demo/policies")
    other = PortalPage.of(browser, address)
    other.visit("hub/demo/policies")
    other.press("Create a policy")
    other.fill("Name", "second")
    other.press("Create a policy")
    other.reads("Copy what you need now.")
    other.close()
    portal.press("Create a policy")
    portal.fill("Name", "third")
    portal.press("Create a policy")
    portal.reads("Somebody else has changed this hub")
    portal.check()
    description = requests.get(
        f"{hub.url}/demo?api-version=2020-06", headers={"Authorization": hub.token()}, timeout=20
    ).text
    assert "<KeyName>second</KeyName>" in description and "third" not in description


def drop(page, name, content):
    """Drops a file on the page as the mouse would."""
    page.run(
        f"""(() => {{
          const data = new DataTransfer();
          data.items.add(new File([Uint8Array.from(atob({json.dumps(content)}), (char) => char.charCodeAt(0))], {json.dumps(name)}));
          document.querySelector('.drop').dispatchEvent(new DragEvent('drop', {{ dataTransfer: data, bubbles: true, cancelable: true }}));
        }})()"""
    )


def test_a_credential_is_dropped_checked_tried_and_deleted(portal, hub):
    def encoded(data):
        return base64.b64encode(data).decode()

    portal.visit("hub/demo/credentials")
    portal.press("Try it: APNs")
    portal.await_value("document.querySelector('.notice.good') !== null")
    portal.check()
    drop(portal, "google-services.json", encoded(b'{"project_info":{}}'))
    portal.reads("configuration of the app")
    drop(portal, "cert.pem", encoded(b"-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----"))
    portal.reads("without its private key")
    portal.press("Delete: Xiaomi")
    portal.press("Delete")
    portal.await_value("document.querySelector('dialog') === null")
    portal.settle()
    portal.press("Set: Xiaomi")
    portal.fill("App secret", "s3cret-of-xiaomi")
    portal.press("Check and save")
    portal.reads("Xiaomi: credential saved")
    portal.settle()
    portal.await_value("document.querySelector('[aria-label=\"Replace: Xiaomi\"]') !== null")
    assert "s3cret" not in portal.run("document.documentElement.outerHTML")
    # A key that is no key is refused in words, where it was given.
    portal.expected += ["400"]
    drop(portal, "AuthKey_ABC123DEFG.p8", encoded(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"))
    portal.await_value("document.querySelector('dialog') !== null")
    assert portal.run("[...document.querySelectorAll('dialog input')].some((box) => box.value === 'ABC123DEFG')")
    portal.fill("Team id", "DEF123GHIJ")
    portal.fill("Bundle id", "com.example.app")
    portal.press("Check and save")
    portal.await_value("document.querySelector('dialog .trouble') !== null")
    portal.check()
    portal.press("Cancel")


def test_a_pair_for_web_push_is_made_in_the_page(portal, hub):
    portal.visit("hub/demo/credentials")
    portal.press("Replace: Web push")
    portal.press("Make a new pair")
    portal.fill("Subject: mailto: or https:", "mailto:ops@example.com")
    portal.await_value("[...document.querySelectorAll('dialog input')].some((box) => box.value.length === 87)")
    portal.press("Check and save")
    portal.reads("applicationServerKey")


# --- The wall of phones --------------------------------------------------------------------------


def test_a_phone_is_added_rings_sleeps_and_gets_what_waited(portal, hub, stack):
    portal.visit("hub/demo/phones")
    before = portal.run("document.querySelectorAll('.phone').length")
    portal.press("Add a phone")
    portal.fill("Tags", "wall")
    portal.press("Add a phone")
    portal.await_value(f"document.querySelectorAll('.phone').length > {before}")
    name = portal.run("document.querySelector('.phone').getAttribute('aria-label').split(' ')[1]")
    portal.fill("Message", "Ring, bell!")
    portal.fill("Tag expression", "wall")
    portal.press("Send")
    portal.await_value("document.querySelector('.phone.ringing .shelf').innerText.includes('Ring, bell!')")
    portal.press(f"Put offline {name}")
    portal.await_value("document.querySelector('.phone.offline') !== null")
    portal.fill("Message", "While you slept")
    portal.press("Send")
    portal.reads("Accepted.")
    portal.press(f"Put online {name}")
    portal.await_value("document.querySelector('.phone .shelf').innerText.includes('While you slept')", limit=30)
    portal.press(f"Inbox {name}")
    portal.reads("apns-topic")
    portal.reads("had waited")
    portal.check()
    portal.press("Close")
    portal.press(f"Uninstall {name}")
    portal.reads("Handle dead")
    portal.check()


def test_a_switch_makes_a_fault_and_ends_it(portal, stack):
    portal.visit("hub/demo/phones")
    portal.press("503 unavailable")
    portal.reads("fired 0 times")
    assert [rule["action"]["status"] for rule in stack.emulator.get("faults")["faults"]] == [503]
    portal.check()
    portal.press("503 unavailable")
    portal.await_value("!document.body.innerText.includes('fired 0 times')")
    assert stack.emulator.get("faults")["faults"] == []


def test_the_traffic_is_searched(portal, hub, stack):
    add_phones(hub, stack.emulator, tags=("traffic",))
    send(hub, "a needle in the hay", "traffic")
    portal.visit("hub/demo/traffic")
    portal.fill("Text", "needle")
    portal.reads("1 of ")
    portal.run("document.querySelector('td button').click()")
    portal.reads("Arrived at")
    portal.check()
    portal.press("Close")
    portal.fill("Text", "no such words")
    portal.reads("Nothing found")


# --- What goes wrong -----------------------------------------------------------------------------


def test_the_server_is_restarted_under_an_open_page(browser):
    """With a data directory and a port, as an operator restarts it."""
    with contextlib.ExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="belfry-portal-"))
        first = Belfry("serve", "--data", data, "--port", "0")
        url = first.addresses["url"]
        port = url.rsplit(":", 1)[1]
        try:
            made = subprocess.run([BINARY, "hub", "create", "shop", "--data", data, "--json"], capture_output=True, check=True, timeout=60)
            connection = subprocess.run(
                [BINARY, "sas", "--connection-string", "--data", data, "--hub", "shop", "--policy", "DefaultFullSharedAccessSignature"],
                capture_output=True, check=False, timeout=60,
            )
            assert connection.returncode == 0, connection.stderr
        finally:
            pass
        page = PortalPage.of(browser, url + "/$portal/")
        page.expected += ["ERR_", "Failed to fetch", "404", "401"]
        page.visit("sign-in?to=/$portal/hub/shop/devices")
        page.fill("Connection string", connection.stdout.decode().strip())
        page.fill("Hub", "shop")
        page.press("Sign in", within="[...document.querySelectorAll('section')].at(-1)")
        page.reads("No device yet")
        first.stop()
        page.press("Search")
        page.reads("The server does not answer")
        second = Belfry("serve", "--data", data, "--port", port)
        stack.callback(second.stop)
        page.reads("Connected again", limit=30)
        page.press("Search")
        page.settle()
        page.reads("No device yet")
        page.check()
        # And the hub is deleted under it.
        subprocess.run([BINARY, "hub", "delete", "shop", "--yes", "--data", data], capture_output=True, check=True, timeout=60)
        time.sleep(0.5)  # A policy that another process has changed takes effect within a quarter of a second.
        page.press("Search")
        page.await_value("document.querySelector('main [role=alert]') !== null")
        page.check()
        page.close()


def test_an_address_that_is_no_page_says_so(portal):
    portal.visit("hub/demo/nothing/here")
    portal.reads("There is no such page.")
    portal.check()


# --- Hostile data --------------------------------------------------------------------------------

PIECES = [
    "<script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>", "\"'><svg/onload=pwned=1>",
    "javascript:pwned=1", "{{7*7}}", "${pwned=1}", "\u202eevil\u202c", "\u0000", "💥", "a\u0300" * 8, "&lt;b&gt;",
    "<!--", "-->", "]]>", "<template>", "</textarea><iframe srcdoc='<script>parent.pwned=1</script>'>", "\u2028\u2029",
    "%3Cscript%3E", "../../..", "__proto__", "constructor", "null", "undefined", "NaN", "😀" * 20, "x" * 300, "\\u003cscript\\u003e",
]


def hostile(dice):
    return "".join(dice.choice(PIECES) for _ in range(dice.randint(1, 3))).replace("\u0000", "\ufffd")


LISTS = {
    "hub/demo/devices": ("installations", lambda text, n: {
        "installationId": text, "platform": text, "pushChannel": text, "userId": text, "tags": [text] * 3}),
    "hub/demo/schedules": ("schedulednotifications", lambda text, n: {
        "notificationId": text, "state": text, "kind": text, "format": text, "tags": text, "enqueueTime": "2030-01-01T00:00:00Z", "dueTime": "2030-01-01T00:00:00Z"}),
    "hub/demo/notifications": ("messages", lambda text, n: {
        "notificationId": text, "state": text, "kind": text, "format": text, "tags": text, "enqueueTime": "2030-01-01T00:00:00Z", "outcomes": {text: n},
        **({"title": text, "text": text, "textState": text} if n % 3 else {})}),
    "hub/demo/activity": ("activity", lambda text, n: {
        "time": "2030-01-01T00:00:00Z", "hub": text, "actor": text, "via": text, "action": text, "object": text, "address": text, "status": 201}),
    "hub/demo/channels": ("channels", lambda text, n: text),
}
MEMBERS = {"schedulednotifications": "notifications", "messages": "notifications"}


@pytest.mark.parametrize("path", LISTS)
def test_hostile_texts_are_text_in_every_list(browser, address, path):
    """10 000 strings through each of five lists, in place of the server's answer: what is shown is what
    was sent, no element comes of it, and no script runs."""
    word, item = LISTS[path]
    count = 10_000
    dice = random.Random(path)
    texts = [f"{number}|{hostile(dice)}" for number in range(count)]
    body = {MEMBERS.get(word, word): [item(text, number) for number, text in enumerate(texts)]}
    page = PortalPage.of(browser, address)
    page.expected += ["404", "400", "401", "405"]
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source=f"""
          const real = window.fetch;
          window.hostile = {json.dumps(body)};
          window.fetch = async (address, options) => {{
            const path = new URL(address, location.href).pathname;
            if (path === '/demo/{word}') return new Response(JSON.stringify(window.hostile), {{ headers: {{ 'Content-Type': 'application/json' }} }});
            if (path.startsWith('/demo/{word}/')) return new Response('{{}}', {{ status: 404 }});
            return real(address, options);
          }};
        """,
    )
    page.visit(path, settles=False)
    page.await_value(f"document.querySelectorAll('main :is(tbody tr, .rows > li)').length >= {count}", limit=120)
    found = page.run(
        """[...document.querySelectorAll('main :is(tbody tr, .rows > li)')].map((row) => [...row.querySelectorAll('*')]
             .flatMap((node) => [...[...node.childNodes].filter((part) => part.nodeType === 3).map((part) => part.data), node.title ?? '', node.getAttribute('aria-label') ?? ''])
             .join('\\u0001'))"""
    )
    assert len(found) == count
    for text, shown in zip(texts, found):
        assert text in shown, f"{text!r} is not in {shown[:400]!r}"
    assert page.run("window.pwned") is None
    assert page.run("document.querySelectorAll('main :is(script, img, iframe, template, textarea)').length") == 0
    assert page.run(
        "[...document.querySelectorAll('main a')].every((link) => link.origin === location.origin && link.protocol.startsWith('http'))"
    )
    assert [text for text in page.complaints() if "Content Security" in text or "Trusted" in text] == []
    page.close()


def test_hostile_names_on_the_pages_of_one_device_and_a_phone(portal, hub, stack):
    """Through the server itself, with all that it lets through."""
    dice = random.Random(7)
    device = add_phones(hub, stack.emulator, tags=("hostile",))[0]
    name = f"virtual-{device}"
    for _ in range(12):
        send(hub, hostile(dice), "hostile")
    installation = hub.call("GET", f"installations/{name}").json()
    installation["templates"] = {"<img src=x onerror=pwned=1>": {"body": '{"aps":{"alert":"<script>pwned=1</script>"}}'}}
    installation["pushVariables"] = {"<b>": hostile(dice)}
    hub.call("PUT", f"installations/{name}", {"Content-Type": "application/json"}, json.dumps(installation).encode())
    for path in (f"hub/demo/devices/{name}", "hub/demo/phones", "hub/demo/traffic", "hub/demo/notifications"):
        portal.visit(path)
        assert portal.run("window.pwned") is None
        assert portal.run("document.querySelectorAll('main :is(script, iframe, template)').length") == 0
        portal.check()


# --- Words ---------------------------------------------------------------------------------------


def test_the_languages_have_the_same_words(portal):
    """And every word that a page asks for is there."""
    portal.visit()
    found = portal.run(
        """(async () => Object.fromEntries(await Promise.all(['en', 'fr', 'zh'].map(async (name) =>
             [name, (await import(`./texts/${name}.js`)).default]))))()""".replace("./texts", "/$portal/texts")
    )
    keys = {name: set(words) for name, words in found.items()}
    assert keys["en"] == keys["fr"] == keys["zh"], {
        name: (keys["en"] ^ other) for name, other in keys.items()
    }
    values = re.compile(r"\{(\w+)\}")
    for key in keys["en"]:
        parts = {name: set(values.findall(json.dumps(found[name][key]))) for name in found}
        assert parts["en"] == parts["fr"] == parts["zh"], (key, parts)
    asked = set()
    for file in FILES.rglob("*.js"):
        if file.parent.name != "texts":
            code = re.sub(r"^\s*(//|\*).*$", "", file.read_text(), flags=re.MULTILINE)
            asked |= set(re.findall(r"\bt\('([a-zA-Z]+\.[A-Za-z.]+)'[,)]", code))
    assert asked - keys["en"] == set()


@pytest.mark.parametrize("language, says", [("fr", "Appareils"), ("zh", "设备")])
def test_the_portal_speaks(browser, address, language, says):
    page = PortalPage.of(browser, address, language)
    page.visit("hub/demo/devices")
    assert says in page.run("document.querySelector('h1').innerText")
    assert page.run("document.documentElement.lang").startswith(language)
    page.check()
    page.close()


# --- Keyboard ------------------------------------------------------------------------------------


def test_the_keyboard_reaches_everything_and_a_dialog_gives_back_its_place(portal):
    portal.visit("hub/demo/policies")
    portal.run("document.body.focus()")
    seen = set()
    for _ in range(60):
        portal.key("Tab")
        seen.add(portal.run("document.activeElement.innerText || document.activeElement.getAttribute('aria-label') || document.activeElement.tagName"))
    assert {"Skip to content", "Create a policy"} <= seen, seen
    portal.run("[...document.querySelectorAll('button')].find((node) => node.innerText === 'Create a policy').focus()")
    portal.key("Enter", text="\r")
    portal.await_value("document.querySelector('dialog[open]') !== null")
    assert portal.run("document.querySelector('dialog').contains(document.activeElement)")
    portal.key("Escape")
    portal.await_value("!document.querySelector('dialog')")
    assert portal.run("document.activeElement.innerText") == "Create a policy"


def test_on_a_narrow_screen_the_pages_are_behind_a_menu(portal):
    portal.size(*PHONE)
    portal.visit("hub/demo/notifications")
    links = "document.querySelector('#side a').checkVisibility()"
    menu = "document.querySelector('#bar .menu')"
    assert not portal.run(links) and portal.run(f"{menu}.ariaExpanded") == "false"
    portal.run(f"{menu}.focus()")
    portal.key("Enter", text="\r")
    portal.await_value(f"{links} && {menu}.ariaExpanded === 'true' && document.activeElement.innerText === 'Overview'")
    portal.check()
    portal.key("Escape")
    portal.await_value(f"!{links} && {menu}.ariaExpanded === 'false' && document.activeElement === {menu}")
    portal.key("Enter", text="\r")
    portal.run("[...document.querySelectorAll('#side a')].find((link) => link.innerText === 'Devices').click()")
    portal.await_value("location.pathname.endsWith('/devices')")
    portal.settle()
    assert not portal.run(links)
    portal.size(*WIDE)
    portal.await_value(f"{links} && !{menu}.checkVisibility()")
    portal.check()


# --- The tutorial, with pictures -----------------------------------------------------------------

PAGES = {
    "hubs": "", "overview": "hub/demo", "compose": "hub/demo/compose",
    "notifications": "hub/demo/notifications", "devices": "hub/demo/devices", "schedules": "hub/demo/schedules",
    "channels": "hub/demo/channels", "removals": "hub/demo/removals", "jobs": "hub/demo/jobs", "credentials": "hub/demo/credentials",
    "policies": "hub/demo/policies", "activity": "hub/demo/activity", "phones": "hub/demo/phones",
    "traffic": "hub/demo/traffic", "browser": "hub/demo/browser", "sign-in": "sign-in",
}


def pictures(page, name):
    """In light and dark, wide and as a phone shows it; gives what the checks find wrong."""
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        for width, size in (("wide", WIDE), ("phone", PHONE)):
            page.size(*size)
            if PICTURES:
                page.picture(pathlib.Path(PICTURES) / f"{name}-{scheme}-{width}.png")
            if PICTURES and (name, scheme, width) == ("phones", "light", "wide"):
                page.picture(pathlib.Path(PICTURES) / "portal.webp")  # The README's.
            try:
                page.check()
            except AssertionError as error:
                yield f"{name}, {scheme}, {width}: {error}"
    page.size(*WIDE)
    page.scheme("light")


def step_pictures(page, name):
    """Of a step of docs/get-started.md, as wide as its pages."""
    if not PICTURES:
        return
    page.size(1080, 780)
    page.await_value("document.querySelector('.toast') === null")
    for scheme, end in (("light", ""), ("dark", "-dark")):
        page.scheme(scheme)
        page.picture(pathlib.Path(PICTURES) / f"tutorial-{name}{end}.webp", whole=False)
    page.size(*WIDE)
    page.scheme("light")


def stop_a_broadcast(page, hub, emulator):
    """A push service that puts everything off, and somebody who presses Abort."""
    action = {"type": "reply", "status": 429, "reason": "TooManyRequests", "headers": {"Retry-After": "60"}}
    fault = emulator.post("faults", {"pns": "apns", "action": action})["faultId"]
    add_phones(hub, emulator, count=12, tags=("crowd",))
    identifier = send(hub, "To the crowd", "crowd")
    page.visit(f"hub/demo/notifications/{identifier}", settles=False)
    page.press("Abort")
    page.press("Abort")
    page.reads("12 devices did not get it", limit=30)
    emulator.delete(f"faults/{fault}")


def test_the_tutorial_in_the_portal(browser):
    """Sign in, add phones, test, send, watch, abort: and a picture of every page."""
    if PICTURES:
        shutil.rmtree(PICTURES, ignore_errors=True)
    running = Belfry("up", "--port", "0")
    try:
        wrong = []
        page = PortalPage.of(browser, running.addresses["portal"])
        hub = Hub(running.addresses)
        emulator = Emulator(running.addresses["emulator"]["control"])
        page.visit("hub/demo/phones")
        for platform in ("APNs", "FCM", "Web push", "Windows", "Amazon", "Baidu", "Xiaomi"):
            page.press("Add a phone")
            page.press(platform)
            page.fill("User", "ann")
            page.press("Add a phone")
            page.await_value("!document.querySelector('dialog')")
        page.await_value("document.querySelectorAll('.phone').length === 7")
        page.press("Send")
        page.await_value("document.querySelectorAll('.phone .shelf li').length === 7", limit=30)
        step_pictures(page, "phones")
        page.visit("hub/demo/compose?" + urllib.parse.urlencode({"format": "template", "tags": "news", "body": '{"message":"Hello!"}'}))
        page.await_value("document.querySelector('.dock .main').innerText === 'Send to 7 devices'")
        page.await_value("document.querySelector('aside').innerText.includes('Hello!')")
        step_pictures(page, "compose")
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
        hub.call(
            "POST", "schedulednotifications",
            {"ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": "news && !muted",
             "ServiceBusNotification-ScheduleTime": at, "Content-Type": "application/json"},
            b'{"message":"Good morning"}',
        )
        identifier = send(hub, "Hello!", "news")
        page.visit(f"hub/demo/notifications/{identifier}")
        page.reads("7 delivered", limit=30)
        step_pictures(page, "notification")
        stop_a_broadcast(page, hub, emulator)
        for name, path in PAGES.items():
            page.visit(path)
            wrong += pictures(page, name)
        device = page.run(
            "fetch('/$portal/emulator/v1/devices', { headers: { 'Belfry-Portal-Half': localStorage['belfry.local'] } }).then((reply) => reply.json()).then(({ devices }) => devices[0].deviceId)"
        )
        for name, path in {
            "device": f"hub/demo/devices/virtual-{device}", "user": "hub/demo/users/ann",
            "notification": f"hub/demo/notifications/{identifier}",
        }.items():
            page.visit(path)
            wrong += pictures(page, name)
        for language in ("fr", "zh"):
            other = PortalPage.of(browser, running.addresses["portal"], language)
            for name in ("overview", "compose", "devices", "jobs", "phones"):
                other.visit(PAGES[name])
                if PICTURES:
                    other.picture(pathlib.Path(PICTURES) / f"{name}-{language}.png")
                other.check()
            other.close()
        assert wrong == [], "\n".join(wrong)
        assert emulator.get("faults")["faults"] == []
        page.close()
    finally:
        running.stop()
