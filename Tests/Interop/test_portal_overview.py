"""The overview of a hub in Chromium: devices counted once, what an app needs, the first steps; the page of a
person; and how a notification's page is headed. Fixtures are those of test_portal.py and test_portal_operators.py."""

import json
import plistlib
import time

import pytest

from support.portal import PHONE, WIDE, PortalPage
from test_portal import add_phones, address, browser, hub, portal, pytestmark, send  # noqa: F401
from test_portal_operators import at_home, belfry, install, long_ago, server, sign_in, stranger, tab  # noqa: F401

TILE = "[...document.querySelectorAll('.tile')].find((node) => node.innerText.startsWith({}))?.innerText.split('\\n')"
CLIPBOARD = """Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { window.copied = text; } } });"""


def tile(page, label):
    script = TILE.format(json.dumps(label))
    page.await_value(f"{script}?.length > 1")
    return page.run(script)


# --- Figures -------------------------------------------------------------------------------------


def test_a_device_with_templates_is_one_device(portal, hub, stack):
    """In place of the hub's figures, whose number other tests change."""
    portal.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="""
          const real = window.fetch;
          window.fetch = async (address, options) => new URL(address, location.href).pathname !== '/demo/audience' ? real(address, options)
            : new Response(JSON.stringify({ total: 41, counts: [
              { platform: 'apns', template: null, devices: 12 }, { platform: 'apns', template: 'news', devices: 12 }, { platform: 'apns', template: 'sport', devices: 7 },
              { platform: 'fcmv1', template: 'old', devices: 10 }] }));
        """,
    )
    add_phones(hub, stack.emulator, tags=("once",))
    send(hub, "To one", "once")
    portal.visit("hub/demo")
    assert tile(portal, "Devices")[1] == "22"
    shares = portal.run("[...document.querySelectorAll('.share li')].map((row) => row.innerText.split('\\n'))")
    assert shares == [["Apple", "12", "55%"], ["Android", "10", "45%"]], shares
    portal.reads("12 take messages built for their platform; 29 pushes come of a message by template.")
    portal.check()


@pytest.mark.parametrize(
    "most, top", [(1, "2"), (13, "15"), (17, "20"), (21, "25"), (26, "30"), (41, "50"), (51, "60"), (61, "80"), (101, "120"), (5600, "6K")]
)
def test_a_chart_is_as_high_as_the_next_round_number_and_ends_now(browser, address, most, top):
    page = PortalPage.of(browser, address)
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source=f"""
          const real = window.fetch;
          window.asked = [];
          window.fetch = async (address, options) => {{
            const url = new URL(address, location.href);
            if (url.pathname === '/demo/messages') return new Response(JSON.stringify({{ notifications: [] }}));
            if (url.pathname === '/demo/audience') return new Response(JSON.stringify({{ total: 1, counts: [{{ platform: 'apns', template: null, devices: 1 }}] }}));
            if (url.pathname !== '/demo/statistics') return real(address, options);
            window.asked.push(Object.fromEntries(url.searchParams));
            const [from, to, step] = ['from', 'to', 'step'].map((name) => name === 'step' ? Number(url.searchParams.get(name)) * 1000 : Date.parse(url.searchParams.get(name)));
            const points = [];
            // Its first figure is of 50 minutes ago.
            for (let at = from; at < to; at += step) points.push({{ time: new Date(at).toISOString(), accepted: 0, failed: {{}},
              delivered: at + step > Date.now() - 3000_000 ? {{ apns: {most} }} : {{}}, registrations: {{}} }});
            return new Response(JSON.stringify({{ points }}));
          }};
        """,
    )
    page.visit("hub/demo")
    page.await_value("document.querySelector('.plot .tick') !== null")
    ticks = page.run("[...document.querySelector('.plot svg').querySelectorAll('.tick')].map((node) => node.textContent)")
    assert top in ticks and ticks[-1] == "now", ticks
    # Half an hour of a day first, then as fine as a young hub deserves.
    steps = [int(one["step"]) for one in page.run("window.asked")]
    assert steps[0] == 1800 and steps[-1] == 60 and steps == sorted(set(steps), reverse=True), steps
    assert 45 <= page.run("document.querySelectorAll('.plot svg rect.s-good').length") <= 60
    page.reads("Since ")
    page.check()
    page.close()


def test_of_figures_that_fail_only_their_card_says_so(browser, address, hub):
    send(hub, "Still shown", "cards")
    page = PortalPage.of(browser, address)
    page.expected += ["500"]
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="""
          const real = window.fetch;
          window.broken = true;
          window.fetch = async (address, options) => window.broken && new URL(address, location.href).pathname === '/demo/statistics'
            ? new Response('{"error":"out of order"}', { status: 500, headers: { 'Content-Type': 'application/json' } }) : real(address, options);
        """,
    )
    page.visit("hub/demo")
    page.reads("out of order")
    page.reads("Still shown")
    assert tile(page, "Delivered")[1] == "–"
    page.check()
    page.run("window.broken = false")
    page.press("Try again")
    page.await_value(f"{TILE.format(json.dumps('Delivered'))}[1] !== '–'")
    page.close()


# --- Essentials ----------------------------------------------------------------------------------


def copied(page, label):
    page.run("window.copied = undefined")
    page.press(f"Copy: {label}")
    page.await_value("window.copied !== undefined")
    return page.run("window.copied")


def test_the_essentials_are_whole_when_copied_and_masked_on_screen(portal, hub, stack):
    portal.call("Page.addScriptToEvaluateOnNewDocument", source=CLIPBOARD)
    portal.visit("hub/demo")
    assert copied(portal, "Address") == stack.addresses["hub"]["url"]
    assert copied(portal, "Hub") == "demo"
    listen = stack.addresses["hub"]["connectionStrings"]["listen"]
    key = listen.split("SharedAccessKey=")[1].split(";")[0]
    text = copied(portal, "For the app")
    assert text.endswith(f"SharedAccessKeyName=DefaultListenSharedAccessSignature;SharedAccessKey={key}"), text
    assert key not in portal.run("document.documentElement.outerHTML") and "••••••••" in portal.shown()
    settings = plistlib.loads(copied(portal, "For the sample app").encode())
    assert settings == {"connectionString": text, "notificationHubName": "demo"}
    portal.check()


def test_a_manager_confirms_before_the_key_is_copied_and_others_never_see_it(tab, server):
    page = tab()
    page.call("Page.addScriptToEvaluateOnNewDocument", source=CLIPBOARD)
    sign_in(page, "ann", path="hub/shop")
    at_home(page, "ann")
    # Signing in was a confirmation, which lasts for five minutes.
    long_ago(server, "confirmed_at", 400)
    page.visit("hub/shop")
    assert "••••••••" in page.shown()
    page.press("Copy: For the app")
    page.reads("Password")
    page.press("Cancel")
    page.await_value("document.querySelector('dialog') === null")
    assert page.run("window.copied === undefined")
    page.press("Copy: For the app")
    page.fill("Password", "correct horse")
    page.run("document.querySelector('dialog form').requestSubmit()")
    page.await_value("window.copied?.includes('DefaultListenSharedAccessSignature;SharedAccessKey=')")
    key = page.run("window.copied.split('SharedAccessKey=')[1]")
    assert len(key) > 20 and key not in page.run("document.documentElement.outerHTML")
    page.check()
    for name in ("sam", "vic"):
        other = tab()
        sign_in(other, name, path="hub/shop")
        at_home(other, name)
        other.reads("A manager of this hub sees here")
        assert "SharedAccessKey" not in other.run("document.documentElement.outerHTML")
        assert "Settings" not in other.shown().split("\n") and ("Compose" in other.shown().split("\n")) == (name == "sam")
        other.check()


def test_a_credential_is_there_before_its_manager_has_confirmed_anything(tab, server):
    belfry("credential", "set", "web", "--hub", "news", "--subject", "mailto:ops@example.com", "--generate", data=server.data)
    page = tab()
    sign_in(page, "ann", path="hub/news")
    at_home(page, "ann")
    long_ago(server, "confirmed_at", 400)
    page.visit("hub/news")
    assert page.run("document.querySelector('.steps [aria-current=step] .strong').innerText") == "Connect a device"
    page.visit("")
    page.await_value("[...document.querySelectorAll('tbody tr')].find((row) => row.innerText.includes('news')).innerText.includes('Web push')")
    assert "No credential" not in page.run("[...document.querySelectorAll('tbody tr')].find((row) => row.innerText.includes('news')).innerText")
    install(page, "web-1", hub="news")
    page.visit("hub/news")
    page.reads("There are devices of APNs, but no credential for it")
    assert "The hub has no credential" not in page.shown()
    page.check()


def test_without_a_policy_that_only_listens_nothing_is_offered_to_an_app(tab):
    page = tab()
    sign_in(page, "ann", path="hub/news/policies")
    page.settle()
    page.press("Delete DefaultListenSharedAccessSignature")
    page.fill("Type DefaultListenSharedAccessSignature to go on", "DefaultListenSharedAccessSignature")
    page.press("Delete")
    page.reads("Policy deleted")
    page.visit("hub/news")
    page.reads("No policy may listen and nothing else")
    assert "SharedAccessKey" not in page.run("document.documentElement.outerHTML")
    page.check()


# --- A hub that has nothing yet ------------------------------------------------------------------


def test_a_new_hub_shows_the_way_to_the_first_push(portal):
    portal.visit("")
    portal.press("Create a hub")
    portal.fill("Name", "fresh")
    portal.press("Create a hub")
    portal.await_value("location.pathname.endsWith('/hub/fresh')")
    portal.reads("Three steps to the first push")
    portal.settle()  # The steps are rendered when the credentials have loaded.
    assert portal.run("document.querySelector('.steps [aria-current=step] .strong').innerText") == "Add a credential"
    assert portal.run("document.querySelector('.tiles')") is None
    for width in (320, PHONE[0], WIDE[0]):
        portal.size(width, 844)
        for scheme in ("light", "dark"):
            portal.scheme(scheme)
            portal.check()


@pytest.mark.parametrize("language", ["en", "fr", "zh"])
def test_the_overview_fits_every_width(browser, address, hub, stack, language):
    add_phones(hub, stack.emulator, tags=("widths",))
    send(hub, "Of every width", "widths")
    page = PortalPage.of(browser, address, language)
    for width in (320, PHONE[0], 768, WIDE[0]):
        page.size(width, 844)
        page.visit("hub/demo")
        page.await_value("document.querySelector('.plot .tick') !== null")
        for scheme in ("light", "dark"):
            page.scheme(scheme)
            page.check()
    page.close()


# --- A person ------------------------------------------------------------------------------------

ROWS = "[...document.querySelectorAll('.rows > li')].map((row) => row.innerText)"


def test_a_person_has_devices_tags_and_what_they_got(portal, hub, stack):
    alive, other = add_phones(hub, stack.emulator, count=2, tags=("news", "lang:en"), user="alice")
    add_phones(hub, stack.emulator, tags=("others",), user="bob")
    send(hub, "For somebody else", "others")
    send(hub, "For alice and all", "news")
    send(hub, "Only for alice", "$UserId:{alice}")
    send(hub, "For alice or others", "$UserId:{alice} || others")
    for device in (alive, other):
        stack.emulator.await_notifications({"deviceId": device}, 3)
    # From a device, as from the list.
    portal.visit(f"hub/demo/devices/virtual-{alive}")
    portal.press("alice")
    portal.await_value("location.pathname.endsWith('/users/alice')")
    portal.reads("2 of 2 devices can be reached · last registered or changed ")
    portal.settle()
    portal.await_value("[...document.querySelectorAll('.owned li')].every((node) => node.innerText.includes('registered or changed'))")
    assert portal.run("[...document.querySelectorAll('.owned a')].map((node) => node.innerText)") == ["Apple", "Apple"]
    assert portal.run("[...document.querySelectorAll('.card .chip')].map((node) => node.innerText)") == ["lang:en", "news"]
    rows = portal.run(ROWS)
    assert [row.split("\n")[0] for row in rows] == ["For alice or others", "Only for alice", "For alice and all"], rows
    assert all("2 of 2 devices" in row for row in rows), rows
    portal.reads("were looked at, for 2 devices.")
    portal.check()
    portal.press("Only messages to this user alone")
    portal.await_value(f"{ROWS}.length === 1 && {ROWS}[0].includes('Only for alice') && location.search === '?alone=1'")
    portal.check()
    # What undoes everything comes last.
    assert portal.run("[...document.querySelectorAll('main button')].at(-1).innerText") == "Erase"
    for width in (320, PHONE[0], 768):
        portal.size(width, 844)
        for scheme in ("light", "dark"):
            portal.scheme(scheme)
            portal.check()


def test_what_a_person_got_is_looked_for_in_steps(portal, hub, stack):
    """Each step costs a request for each device of each notification: nobody's patience decides how many there are."""
    add_phones(hub, stack.emulator, tags=("steps",), user="finn")
    for number in range(30):
        send(hub, f"Not for Finn {number}", "nobody-at-all")
    portal.visit("hub/demo/users/finn")
    portal.reads("Of the hub’s latest notifications 12 were looked at, for 1 device.")
    asked = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/explain')).length"
    assert portal.run(asked) == 12
    portal.press("Show more")
    portal.reads("24 were looked at")
    assert portal.run(asked) == 24


def test_a_notification_to_a_person_leads_to_them(portal, hub, stack):
    add_phones(hub, stack.emulator, user="carl")
    identifier = send(hub, "Hello, Carl", "$UserId:{carl}")
    portal.visit(f"hub/demo/notifications/{identifier}")
    portal.press("carl")
    portal.await_value("location.pathname.endsWith('/users/carl')")
    portal.press("Send to this user")
    portal.await_value("location.pathname.endsWith('/compose')")


def test_a_viewer_sees_what_went_to_a_person_alone_and_erases_nobody(tab):
    ann = tab()
    sign_in(ann, "ann", path="hub/shop")
    at_home(ann, "ann")
    install(ann, "dora1")
    ann.visit("hub/shop/users/u-dora1")
    ann.press("Only messages to this user alone")
    ann.reads("Nothing was sent to this user alone")
    ann.check()
    page = tab()
    sign_in(page, "vic", path="hub/shop/users/u-dora1")
    at_home(page, "vic")
    page.reads("Nothing was sent to this user alone")
    assert "Erase" not in page.shown() and "Send to this user" not in page.shown()
    page.check()
    page.visit("hub/shop/users/nobody-here")
    page.reads("This user has no device here")
    page.check()


@pytest.mark.parametrize("language", ["fr", "zh"])
def test_the_pages_of_a_person_and_a_notification_speak(browser, address, hub, stack, language):
    add_phones(hub, stack.emulator, user="ella")
    identifier = send(hub, "Salut", "$UserId:{ella}")
    page = PortalPage.of(browser, address, language)
    for path in ("users/ella", f"notifications/{identifier}", "removals"):
        page.visit(f"hub/demo/{path}")
        page.check()
    page.close()


# --- One notification ----------------------------------------------------------------------------


def test_a_notification_is_headed_by_what_it_says(portal, hub):
    portal.call("Page.addScriptToEvaluateOnNewDocument", source=CLIPBOARD)
    reply = hub.call(
        "POST", "messages",
        {"ServiceBusNotification-Format": "apple", "ServiceBusNotification-Tags": "heads", "Content-Type": "application/json"},
        json.dumps({"aps": {"alert": {"title": "Your <weekend> list", "body": "Twelve new finds"}}}).encode(),
    )
    identifier = reply.headers["Location"].split("?")[0].rsplit("/", 1)[1]
    portal.visit(f"hub/demo/notifications/{identifier}")
    assert portal.run("document.querySelector('h1').innerText") == "Your <weekend> list"
    assert portal.run("document.title").startswith("Your <weekend> list")
    portal.reads("Twelve new finds")
    assert identifier not in portal.shown()
    assert copied(portal, "Id") == identifier
    portal.check()


@pytest.mark.parametrize(
    "body, says",
    [
        ({"aps": {"alert": "For your eyes"}, "secureId": "i", "sealed": "c2VjcmV0"}, "Sealed message"),
        ({"aps": {"content-available": 1}, "refresh": "scores"}, "Silent push"),
    ],
)
def test_a_notification_without_words_is_headed_by_its_kind(portal, hub, body, says):
    reply = hub.call(
        "POST", "messages",
        {"ServiceBusNotification-Format": "apple", "ServiceBusNotification-Tags": "wordless", "Content-Type": "application/json",
         "apns-push-type": "background", "apns-priority": "5"},
        json.dumps(body).encode(),
    )
    portal.visit("hub/demo/notifications/" + reply.headers["Location"].split("?")[0].rsplit("/", 1)[1])
    assert portal.run("document.querySelector('h1').innerText") == says
    portal.check()


def test_a_schedule_is_headed_by_what_it_will_say(portal, hub):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
    reply = hub.call(
        "POST", "schedulednotifications",
        {"ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": "news", "ServiceBusNotification-ScheduleTime": at,
         "Content-Type": "application/json"},
        json.dumps({"title": "Monday starts well", "message": "Three recipes"}).encode(),
    )
    portal.visit("hub/demo/notifications/" + reply.headers["Location"].split("?")[0].rsplit("/", 1)[1])
    assert portal.run("document.querySelector('h1').innerText") == "Monday starts well"
    portal.check()


def test_what_bad_channel_says_is_true_of_a_device_that_stays(portal, hub, stack):
    """A service that has never accepted a push with this credential is not believed."""
    hub.call("PUT", "installations/stays-1", {"Content-Type": "application/json"}, json.dumps(
        {"installationId": "stays-1", "platform": "xiaomi", "pushChannel": "unknown-to-xiaomi", "tags": ["stays2"]}))
    reply = hub.call("POST", "messages", {
        "ServiceBusNotification-Format": "xiaomi", "ServiceBusNotification-Tags": "stays2", "Content-Type": "application/json"},
        b'{"title":"Hello","description":"you"}')
    portal.visit("hub/demo/notifications/" + reply.headers["Location"].split("?")[0].rsplit("/", 1)[1])
    portal.reads("BadChannel")
    assert "The hub removes the device" not in portal.shown()
    portal.reads("or has accepted no push with this credential yet")
    assert hub.call("GET", "installations/stays-1").json()["installationId"] == "stays-1"
    portal.check()
