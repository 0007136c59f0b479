"""The portal's pages as people use them over an hour: long lists, links, the keyboard, devices that died and
came back, a hub as a file, and what a notification's page tells. The fixtures are those of test_portal.py."""

import concurrent.futures
import contextlib
import json
import pathlib
import tempfile
import time
import urllib.parse

import pytest

from support.portal import PortalPage
from test_portal import add_phones, address, browser, hub, portal, pytestmark, send  # noqa: F401

ATOM = {"Content-Type": "application/atom+xml;type=entry;charset=utf-8"}


def add_installations(hub, count, tag):
    def put(number):
        name = f"{tag}-{number:04}"
        body = {"installationId": name, "platform": "apns", "pushChannel": f"{number:064x}", "tags": [tag]}
        hub.call("PUT", f"installations/{name}", {"Content-Type": "application/json"}, json.dumps(body))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(count)))


# --- Long lists, links, the way back -------------------------------------------------------------


def test_a_list_of_a_thousand_comes_in_pages(portal, hub):
    add_installations(hub, 1000, "thousand")
    portal.visit("hub/demo/devices?find=thousand")
    rows = "document.querySelectorAll('tbody tr').length"
    assert portal.run(rows) == 100
    # Of all that the hub has.
    portal.reads("100 of ")
    for shown in range(200, 1001, 100):
        portal.press("Show more")
        portal.await_value(f"{rows} === {shown}")
    portal.reads("1,000 of ")
    names = portal.run("[...document.querySelectorAll('tbody tr')].map((row) => row.querySelector('a').innerText)")
    assert len(set(names)) == 1000
    assert portal.run("[...document.querySelectorAll('button')].every((node) => node.innerText !== 'Show more')")
    portal.check()


def test_a_filtered_list_can_be_shared_and_is_there_again_on_the_way_back(portal, hub, browser, stack):
    device = add_phones(hub, stack.emulator, tags=("links",))[0]
    one = send(hub, "To one", f"$InstallationId:{{virtual-{device}}}")
    many = send(hub, "To many", "links")
    portal.visit("hub/demo/notifications")
    portal.press("Filters")
    portal.run(
        "(() => { const box = [...document.querySelectorAll('label')].find((node) => node.innerText === 'Kind').control;"
        " box.value = 'single'; box.dispatchEvent(new Event('change')); })()"
    )
    ids = "[...document.querySelectorAll('.rows a')].map((node) => node.pathname.split('/').pop())"
    portal.await_value(f"{ids}.includes('{one}') && !{ids}.includes('{many}')")
    # Who sent them is known from the activity log.
    portal.await_value("document.querySelector('.rows .by bdi').title.startsWith('policy/')")
    other = PortalPage.of(browser, portal.run("location.href"))
    other.visit()
    assert other.run(ids) == portal.run(ids)
    # What narrows the list stands there, and can be taken away.
    other.reads("Kind: One device")
    other.press("Remove the filter Kind")
    other.await_value(f"{ids}.includes('{many}')")
    other.check()
    other.close()
    portal.run(f"[...document.querySelectorAll('.rows a')].find((node) => node.pathname.endsWith('{one}')).click()")
    portal.await_value(f"location.pathname.endsWith('/{one}')")
    # Also while the page is still being loaded.
    portal.run("history.back()")
    portal.await_value("location.search === '?kind=single'")
    portal.await_value(f"{ids}.includes('{one}') && !{ids}.includes('{many}')")
    portal.run("history.forward()")
    portal.await_value(f"location.pathname.endsWith('/{one}')")
    portal.settle()
    portal.reads("To one")
    portal.check()


def test_a_message_and_its_test_take_no_mouse(portal, hub, stack):
    add_phones(hub, stack.emulator, tags=("typed",))
    portal.visit("hub/demo")

    def tab_to(script):
        for _ in range(80):
            if portal.run(f"(() => {{ const node = document.activeElement; return Boolean({script}); }})()"):
                return
            portal.key("Tab")
        raise AssertionError(f"Tab does not lead to {script}\n{portal.describe()}")

    tab_to("node.innerText === 'Compose'")
    portal.key("Enter", text="\r")
    portal.await_value("location.pathname.endsWith('/compose')")
    # The heading has the focus, so that a screen reader says where we are.
    portal.await_value("document.activeElement.tagName === 'H1' && document.activeElement.innerText === 'Compose'")
    # In the order in which somebody works: message, preview, audience, actions.
    tab_to("node.labels?.[0]?.innerText === 'Title'")
    portal.call("Input.insertText", text="Typed")
    tab_to("node.closest('aside')")
    tab_to("node.labels?.[0]?.innerText === 'Tag expression'")
    portal.call("Input.insertText", text="typed")
    portal.await_value("document.querySelector('.dock .main').innerText === 'Send to 1 device'")
    tab_to("node.innerText === 'Test on my devices'")
    portal.key("Enter", text="\r")
    portal.reads("No device is yours yet.")
    portal.run("[...document.querySelectorAll('button')].find((node) => node.innerText === 'Test on ten devices of the audience').focus()")
    portal.key("Enter", text="\r")
    portal.reads("1 accepted")
    portal.check()


# --- What a hub says no to -----------------------------------------------------------------------


def test_a_refused_expression_is_told_at_its_field_in_the_hubs_words(portal):
    portal.expected += ["400"]
    portal.visit("hub/demo/compose?tags=" + "news%20%26%26")
    portal.await_value("document.querySelector('main input[aria-invalid=true]')?.labels[0].innerText === 'Tag expression'")
    portal.fill("Title", "Hello")
    portal.press("Send", within="document.querySelector('.dock')")
    portal.await_value("document.activeElement.labels?.[0]?.innerText === 'Tag expression'")
    described = "document.getElementById(document.activeElement.getAttribute('aria-describedby').split(' ').at(-1)).innerText"
    assert "expression" in portal.run(described).lower()
    portal.check()


def test_a_refused_send_says_why_with_the_tracking_id(portal, hub, stack):
    """The hub's own refusal, above the bar of actions; what was typed stays."""
    add_phones(hub, stack.emulator, tags=("refusals",))
    portal.expected += ["400"]
    portal.visit("hub/demo/compose?format=template&tags=refusals")
    portal.await_value("document.querySelector('.dock .main').innerText === 'Send to 1 device'")
    portal.fill("message", "Hello")
    portal.run("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    portal.press("Add a header")
    portal.run(
        "[...document.querySelectorAll('.pair')].at(-1).querySelectorAll('input').forEach((box, index) => {"
        " box.value = ['apns-priority', 'x'.repeat(9000)][index]; box.dispatchEvent(new Event('input', { bubbles: true })); })"
    )
    portal.press("Send to 1 device", within="document.querySelector('.dock')")
    portal.await_value("document.querySelector('.dock .trouble [role=alert]')?.innerText.includes('TrackingId')")
    assert portal.run("[...document.querySelectorAll('main label')].find((node) => node.innerText === 'message').control.value") == "Hello"
    portal.check()


def test_a_refused_test_push_shows_the_words_of_its_service(portal, hub, stack):
    add_phones(hub, stack.emulator, tags=("refused",))
    with stack.emulator.fault("apns", {"type": "reply", "status": 400, "reason": "BadTopic"}):
        portal.visit("hub/demo/compose?tags=refused")
        portal.fill("Title", "Hello")
        portal.press("Test on my devices")
        portal.press("Test on ten devices of the audience")
        portal.reads("400 BadTopic")
        portal.check()


def test_of_two_who_change_the_settings_the_second_is_told(portal, browser, address):
    portal.expected += ["412"]
    other = PortalPage.of(browser, address)
    for page in (portal, other):
        page.visit("hub/demo")
        page.press("Settings")
        page.await_value("document.querySelector('dialog[open]') !== null")
    other.fill("Notes", "Asked for by Ann")
    other.press("Save")
    other.await_value("document.querySelector('dialog') === null")
    other.close()
    portal.fill("Notes", "Asked for by Bob")
    portal.press("Save")
    portal.reads("Somebody else has changed this hub")
    portal.check()
    portal.press("Cancel")
    portal.press("Settings")
    portal.await_value("document.querySelector('dialog textarea')?.value === 'Asked for by Ann'")


# --- One notification ----------------------------------------------------------------------------


def test_a_notification_that_is_under_way_shows_rate_and_time_left(browser, address, hub, stack):
    """The events come in the server's stead, so that their times are known."""
    add_phones(hub, stack.emulator, tags=("progress",))
    identifier = send(hub, "On its way", "progress")
    hub_page = PortalPage.of(browser, address)
    hub_page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="""
          const real = window.fetch;
          const progress = (done) => ({ state: 'Processing', audience: 10000, done, succeeded: done - 5, failed: 5, retrying: 2, outcomes: { Success: done - 5, BadChannel: 5 } });
          window.fetch = async (address, options) => {
            const path = new URL(address, location.href).pathname;
            if (path.endsWith('/progress')) return new Response(JSON.stringify(progress(1000)));
            if (path.endsWith('/events')) return new Response(new ReadableStream({ start(stream) {
              window.tell = (done) => stream.enqueue(new TextEncoder().encode(`: \\n\\nevent: progress\\ndata: ${JSON.stringify(progress(done))}\\n\\n`));
            } }));
            return real(address, options);
          };
        """,
    )
    hub_page.visit(f"hub/demo/notifications/{identifier}")
    hub_page.reads("1,000 / 10,000 done")
    hub_page.await_value("window.tell !== undefined")
    hub_page.run("new Promise((done) => setTimeout(done, 1000))")
    hub_page.run("window.tell(3000)")
    hub_page.reads("3,000 / 10,000 done")
    words = hub_page.shown()
    rate = int(words.split(" a second")[0].split("\n")[-1].split(" ")[-1].replace(",", ""))
    # 2000 in a little more than a second.
    assert 200 < rate <= 2000, words
    assert " left" in words and "2 are tried again" in words and "5 failed" in words
    hub_page.check()
    hub_page.close()


def test_devices_that_died_are_told_of_and_brought_back(portal, hub, stack):
    """Push services that call everything dead, by the switch; what the notification's page says of it; and the
    devices back in the hub."""
    portal.visit("hub/demo/phones")
    for platform in ("APNs", "FCM", "Web push", "Windows", "Amazon", "Baidu", "Xiaomi"):
        portal.press("Add a phone")
        portal.press(platform)
        portal.fill("Tags", "mortal")
        portal.press("Add a phone")
        portal.await_value("!document.querySelector('dialog')")
    # A service that has never said yes to a credential is not believed when it calls handles dead.
    send(hub, "Good morning", "mortal")
    portal.await_value("[...document.querySelectorAll('.phone')].filter((node) => node.innerText.includes('Good morning')).length === 7", limit=40)
    portal.press("Dead handle")
    portal.await_value("document.querySelectorAll('.faults li').length === 7")
    identifier = send(hub, "Is anybody there?", "mortal")
    portal.visit(f"hub/demo/notifications/{identifier}")
    portal.await_value("document.querySelectorAll('[aria-label=\"Device by device\"] tbody tr').length === 7", limit=40)
    portal.reads("Unregistered")
    portal.reads("A device is removed if its push service calls the handle dead, unless")
    portal.reads("Is anybody there?")
    portal.check()
    portal.visit("hub/demo/phones")
    portal.press("Dead handle")
    portal.await_value("document.querySelectorAll('.faults li').length === 0")
    portal.visit("hub/demo/devices?by=tag&find=mortal&expired=false")
    portal.reads("Nothing found")
    portal.visit("hub/demo/removals?platform=apns")
    before = portal.run("[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)")
    assert len(before) == 1 and "APNs" in before[0], before
    portal.check()
    portal.press("Bring back")
    portal.reads("Fix the cause first")
    portal.check()
    portal.press("Bring back")
    portal.reads("registrations are back.")
    portal.reads("No device removed")
    portal.visit("hub/demo/devices?by=tag&find=mortal&expired=false")
    assert portal.run("document.querySelectorAll('tbody tr').length") == 1
    identifier = send(hub, "Welcome back", "mortal")
    portal.visit(f"hub/demo/notifications/{identifier}")
    portal.reads("1 delivered")


# --- A hub as a file -----------------------------------------------------------------------------


def choose(page, path, within):
    """Gives a file to the box of a drop zone, as somebody who presses it."""
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    box = page.call("DOM.querySelector", nodeId=root, selector=f"{within} input[type=file]")["nodeId"]
    page.call("DOM.setFileInputFiles", files=[str(path)], nodeId=box)


@contextlib.contextmanager
def downloads(page):
    with tempfile.TemporaryDirectory(prefix="belfry-downloads-") as folder:
        page.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)

        def file(name, limit=30):
            found = pathlib.Path(folder) / name
            deadline = time.monotonic() + limit
            # Chromium makes the file empty, writes beside it, and moves that over it.
            while time.monotonic() < deadline:
                if found.exists() and found.stat().st_size and not list(found.parent.glob("*.crdownload")):
                    break
                time.sleep(0.05)
            return found

        yield file


def test_a_hub_is_saved_as_a_file_and_read_again(portal, hub, stack):
    portal.expected += ["400"]
    add_installations(hub, 150, "kept")
    device = add_phones(hub, stack.emulator, tags=("kept",), user="zoë")[0]
    written = hub.call("POST", "registrations", ATOM, (
        '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">'
        '<AppleTemplateRegistrationDescription xmlns:i="http://www.w3.org/2001/XMLSchema-instance" xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">'
        f"<Tags>kept,own</Tags><DeviceToken>{'AB' * 32}</DeviceToken><BodyTemplate><![CDATA[{{\"aps\":\n{{\"alert\":\"$(msg)\"}}}}]]></BodyTemplate>"
        "</AppleTemplateRegistrationDescription></content></entry>").encode())
    own = written.text.split("<RegistrationId>")[1].split("<")[0]

    def stored():
        one = hub.call("GET", f"installations/virtual-{device}").json()
        text = hub.call("GET", f"registrations/{own}").text
        return (
            {name: one[name] for name in ("platform", "pushChannel", "tags", "templates", "userId")},
            text.split("<Tags>")[1].split("<")[0], text.split("<BodyTemplate>")[1].split("</BodyTemplate>")[0],
        )

    before = stored()
    with downloads(portal) as file:
        portal.visit("hub/demo/jobs")
        portal.check()
        portal.press("Save as a file")
        saved = file("demo.txt")
        lines = saved.read_text().splitlines()
        portal.reads(f"Installations: {sum(line.startswith('{') for line in lines):,}, other registrations: ")
        assert sum(line.startswith("{") and '"kept' in line for line in lines) == 151
        assert sum(own in line for line in lines) == 1
        # What was in the hub is made anew from the file; three lines are no devices.
        hub.call("DELETE", f"installations/virtual-{device}")
        hub.call("DELETE", f"registrations/{own}", {"If-Match": "*"})
        broken = ['{"installationId":"x"}', "{nonsense", "<html></html>"]
        mixed = saved.with_name("mixed.txt")
        mixed.write_text("\n".join([broken[0], *lines, "", *broken[1:]]))
        choose(portal, mixed, "[aria-labelledby]:has(.drop)")
        portal.reads(f"Imported: {len(lines):,}, refused: 3", limit=60)
        assert stored() == before
        portal.reads("The line is not valid JSON.")
        portal.check()
        portal.press("Save the refused lines")
        assert file("refused.txt").read_text().splitlines() == broken


def test_an_import_goes_on_where_a_server_was_busy_and_can_be_stopped(browser, address):
    page = PortalPage.of(browser, address)
    page.expected += ["503"]
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="""
          const real = window.fetch;
          window.put = 0;
          window.fetch = async (address, options) => {
            if (options?.method !== 'PUT') return real(address, options);
            window.put += 1;
            if (window.put === 3) return new Response('', { status: 503, headers: { 'Retry-After': '1' } });
            if (window.put > 30) await new Promise((_, reject) => options.signal.addEventListener('abort', () => reject(options.signal.reason)));
            return new Response('{}', { status: 200 });
          };
        """,
    )
    page.visit("hub/demo/jobs")
    with tempfile.TemporaryDirectory(prefix="belfry-import-") as folder:
        file = pathlib.Path(folder) / "devices.txt"
        file.write_text("".join(json.dumps({"installationId": f"stopped-{number}"}) + "\n" for number in range(200)))
        choose(page, file, "[aria-labelledby]:has(.drop)")
        page.await_value("window.put > 30")
        page.press("Stop")
        page.reads("Stopped.")
        # Those before the one that did not answer, the busy one among them.
        page.reads("Imported: 24, refused: 0")
    page.check()
    page.close()


@pytest.mark.parametrize("content, says", [(b"\x89PNG\r\n" + bytes(300), "refused: 2"), (b"x" * (9 << 20), "not a file of devices")])
def test_a_file_of_something_else_is_told(portal, content, says):
    portal.visit("hub/demo/jobs")
    with tempfile.TemporaryDirectory(prefix="belfry-import-") as folder:
        file = pathlib.Path(folder) / "picture.png"
        file.write_bytes(content)
        choose(portal, file, "[aria-labelledby]:has(.drop)")
        portal.reads(says, limit=60)
    portal.check()


# --- What a newcomer runs into -------------------------------------------------------------------


def test_what_was_refused_is_gone_once_it_is_put_right(portal):
    portal.visit("hub/demo/compose")
    portal.press("Send", within="document.querySelector('.dock')")
    portal.reads("Write a title or a text.")
    portal.fill("Title", "Hello")
    assert "Write a title or a text." not in portal.shown()
    portal.press("Send", within="document.querySelector('.dock')")
    portal.reads("Enter a tag expression, or choose Everyone.")
    portal.fill("Tag expression", "news")
    assert "Enter a tag expression" not in portal.shown()
    portal.check()


def test_a_schedule_begins_with_its_time(portal):
    portal.visit("hub/demo/schedules")
    portal.press("Schedule a notification")
    portal.await_value("[...document.querySelectorAll('dialog label')].some((node) => node.innerText === 'Time' && node.checkVisibility())")
    portal.check()


def test_what_is_copied_has_no_key_of_the_page(portal):
    """With it a script that runs each night would send once."""
    portal.visit("hub/demo/compose?tags=news")
    portal.fill("Title", "Each night")
    portal.press("Copy as …")
    portal.reads("--data-raw")
    assert "Each night" in portal.shown() and "Idempotency-Key" not in portal.shown()


def test_of_registrations_only_what_finds_them_is_offered(portal, hub, stack):
    add_phones(hub, stack.emulator, tags=("pears",))
    add_phones(hub, stack.emulator, tags=("plums",))
    portal.visit("hub/demo/devices")
    portal.press("Registrations")
    portal.await_value("location.search === '?list=registrations'")
    portal.settle()
    assert portal.run("document.querySelectorAll('main form select').length") == 0
    portal.fill("Tag", "pears")
    portal.press("Search")
    portal.await_value("document.querySelectorAll('tbody tr').length === 2")
    assert "plums" not in portal.run("document.querySelector('tbody').innerText")
    portal.check()


def test_what_somebody_has_stopped_is_no_failure(portal, hub, stack):
    add_phones(hub, stack.emulator, count=3, tags=("stopped",))
    busy = {"type": "reply", "status": 429, "reason": "TooManyRequests", "headers": {"Retry-After": "60"}}
    with stack.emulator.fault("apns", busy):
        identifier = send(hub, "Never mind", "stopped")
        hub.call("DELETE", f"messages/{identifier}")
    portal.visit(f"hub/demo/notifications/{identifier}")
    portal.reads("Aborted 3")
    portal.visit("hub/demo?range=hour")
    assert "Aborted" not in portal.shown()


def test_the_newest_push_of_an_inbox_is_open(portal, hub, stack):
    device = add_phones(hub, stack.emulator, tags=("inbox",))[0]
    for count, text in enumerate(("the first", "the second"), 1):
        send(hub, text, "inbox")
        stack.emulator.await_notifications({"deviceId": device}, count)
    portal.visit("hub/demo/phones")
    portal.press(f"Inbox {device}")
    portal.await_value("document.querySelectorAll('dialog details').length === 2")
    opened = portal.run("[...document.querySelectorAll('dialog details[open] > summary')].map((node) => node.innerText)")
    assert len(opened) == 1 and "the second" in opened[0], opened
    portal.check()


@pytest.mark.parametrize("path", ["?range=__proto__", "/send?format=__proto__", "/compose?format=constructor&draft=__proto__", "/devices?by=__proto__&list=x"])
def test_a_word_of_the_language_in_an_address_is_no_setting(portal, path):
    portal.visit("hub/demo" + path)
    assert portal.run("document.querySelector('main [role=alert]')") is None, portal.describe()
    portal.check()


def test_each_page_of_a_hub_that_is_gone_says_so(portal):
    portal.expected += ["404"]
    for page in ("", "/devices", "/notifications", "/schedules", "/activity"):
        portal.visit("hub/vanished" + page)
        portal.reads("There is no hub of this name")


@pytest.mark.parametrize(
    "format, body, says",
    [
        ("apple", {"aps": {"alert": {"title": 5}}}, "aps.alert.title has a value"),
        ("apple", {"aps": {"alert": {"body": "b", "loc-args": "x"}}}, "aps.alert.loc-args has a value"),
        ("fcmv1", {"message": {"notification": {"title": 1}}}, "message.notification.title must be a text"),
        ("fcmv1", {"message": {"android": "high"}}, "message.android has a value"),
        ("fcmv1", {"message": {"notificaton": {}}}, "does not know message.notificaton and will refuse"),
        ("fcmv1", {"message": {"notification": {"titel": "x"}}}, "does not know message.notification.titel and will refuse"),
    ],
)
def test_the_editor_knows_what_a_service_takes(portal, format, body, says):
    portal.visit("hub/demo/compose?" + urllib.parse.urlencode({"format": format, "body": json.dumps(body)}))
    portal.run("document.querySelectorAll('details.fold').forEach((node) => { node.open = true; })")
    portal.await_value(f"document.querySelector('.said').innerText.includes({json.dumps(says)})")


# --- More phones and requests than are shown -----------------------------------------------------


def test_of_thousands_of_phones_the_number_is_true_and_a_new_one_is_drawn(portal, hub, stack):
    app = next(app for app in stack.emulator.get("apps")["apps"] if app["pns"] == "apns")
    for _ in range(3):
        stack.emulator.post("devices", {"appId": app["appId"], "count": 800})
    total = stack.emulator.get("devices?newest=1")["total"]
    assert total > 2000
    portal.visit("hub/demo/phones")
    assert portal.run("document.querySelectorAll('.phone').length") == 36
    portal.reads(f"{total - 36:,} more are not drawn")
    portal.press("Add a phone")
    portal.fill("Tags", "drawn")
    portal.press("Add a phone")
    portal.reads(f"{total - 35:,} more are not drawn")
    newest = stack.emulator.get("devices?newest=1")["devices"][0]["deviceId"]
    assert newest in portal.run("[...document.querySelectorAll('.phone')].map((node) => node.getAttribute('aria-label')).join()")
    portal.fill("Message", "Found among thousands")
    portal.fill("Tag expression", "drawn")
    portal.press("Send")
    portal.await_value("document.querySelector('.phone.ringing .shelf').innerText.includes('Found among thousands')", limit=30)
    portal.check()


def test_traffic_says_how_much_of_it_is_shown_and_what_is_searched(portal, hub, stack):
    old = add_phones(hub, stack.emulator, tags=("oldest",))[0]
    add_phones(hub, stack.emulator, count=450, tags=("many",))
    send(hub, "To each of many", "many")
    portal.visit("hub/demo/traffic")
    portal.reads("400 of the last 400", limit=60)
    portal.await_value("document.querySelectorAll('tbody tr').length === 400")
    kept = stack.emulator.get("requests?newest=1")["total"]
    assert kept > 400
    portal.reads(f"{kept:,} are kept")
    portal.fill("Text", "to each of many")
    portal.reads("Payloads are searched for the newest 60 of")
    # What came to an older phone is found through the request.
    send(hub, "To the oldest", "oldest")
    stack.emulator.await_notifications({"deviceId": old}, 1)
    portal.fill("Text", "")
    portal.reads(f"{kept + 1:,} are kept")
    portal.run("document.querySelector('td button').click()")
    portal.reads(f"Arrived at {old}")
    portal.reads("To the oldest")
    portal.check()
