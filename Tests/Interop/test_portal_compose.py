"""Compose in Chromium: a form for every platform or for templates, the payload beside it in step both ways, the
phone that shows what the hub would send, drafts, and sends that send once. Fixtures are those of test_portal.py."""

import json
import urllib.parse

import pytest

from support.portal import PHONE, PortalPage
from test_portal import add_phones, address, browser, hub, portal, pytestmark  # noqa: F401

PLATFORMS = {"apns": "Apple", "fcmv1": "Android", "browser": "Web", "wns": "Windows"}
GO = "document.querySelector('.dock .main')"
DOCK = "document.querySelector('.dock')"
ASIDE = "document.querySelector('aside')"


def add_phone(portal, platform, tags):
    portal.visit("hub/demo/phones")
    portal.press("Add a phone")
    portal.press(platform)
    portal.fill("Tags", tags)
    portal.press("Add a phone")
    portal.await_value("!document.querySelector('dialog')")


def add_one_of_each(portal, tags):
    for platform in ("APNs", "FCM", "Web push", "Windows"):
        add_phone(portal, platform, tags)


def unfold(portal):
    portal.run("document.querySelectorAll('main details').forEach((node) => { node.open = true; })")


def choose(portal, platform):
    """The tab of a platform's payload."""
    portal.run(f"document.getElementById('tab-{platform}').click()")


def payload(portal, platform=None):
    if platform:
        choose(portal, platform)
    return portal.run("document.querySelector('textarea.code').value")


def value(portal, label):
    return portal.run(f"[...document.querySelectorAll('main label')].find((node) => node.innerText.trim() === {json.dumps(label)}).control.value")


def picture_words(portal):
    return portal.run(f"{ASIDE}.querySelector('.pane')?.innerText ?? ''")


def count_of(hub, text, tags):
    """Notifications of this audience with this in their payload."""
    found = hub.call("GET", f"messages?tag={tags}&").json()["notifications"]
    bodies = [hub.call("GET", f"messages/{one['notificationId']}").text for one in found]
    return sorted(one["format"] for one, body in zip(found, bodies) if text in body)


# --- The payload and the form --------------------------------------------------------------------

PROPERTY = """
(async () => {
  const { blank, empty, fieldsOf, isSilent, isVisible, pack, read, write } = await import('/$portal/message.js');
  let seed = %d;
  const dice = (n) => { seed = (seed * 1103515245 + 12345) %% 2147483648; return Math.floor(seed / 65536) %% n; };
  const pick = (list) => list[dice(list.length)];
  const words = ['Goal!', 'it\\'s "quoted"', '<b>&amp;</b>', ']]>', '😀👩‍👩‍👧', 'שלום عليكم \\u202e', 'a\\nb\\tc', '日本語', '\\\\', '${x}', '  edges  ', '0', '__proto__', "'\\"><toast/>"];
  const silenced = (one) => ({ ...one, silent: isSilent(one) ? '1' : '' });
  const form = () => silenced({ ...blank, data: pick(['', '', pack([['order', '42'], ['a "b"', '<c>'], ['2', '']]), pack([['e', '😀']])]),
    title: pick(['', ...words]), text: pick(['', ...words]), subtitle: pick(['', ...words]), button: pick(['', 'See the list', '😀', 'Ouvrir « là »', '"<&>"']),
    link: pick(['', 'https://shop.example/a?b=c&d="e"', 'shop:list/1']), image: pick(['', 'https://cdn.example/a.jpg?x=1&y=2']),
    badge: pick(['', '0', '1', '99']), sound: pick(['default', 'none', 'bell.caf']), ttl: pick(['', '0', '3600', '604800']),
    replaces: pick(['', 'weekend-list', 'a_b']), urgency: pick(['normal', 'quiet', 'urgent']), group: pick(['', 'lists', '"<']),
  });
  const others = { 'my-own': { deep: [1, { a: null }] }, 'ünknown': 'x', n: 12 };
  const wrong = [];
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  for (const platform of ['apns', 'fcmv1', 'browser', 'wns', 'adm', 'baidu', 'xiaomi', 'gcm', 'template']) {
    const names = fieldsOf(platform);
    for (let round = 0; round < 400; round++) {
      // Forth and back.
      let one = form();
      let content = write(platform, one, empty(platform));
      const check = (what) => {
        const back = read(platform, content, one);
        for (const name of names) {
          if (name === 'sound' && !isVisible(one)) continue;
          if (back?.[name] !== one[name]) wrong.push([platform, what, name, one[name], back?.[name], content.body]);
        }
      };
      check('first');
      // Without the form's help what a payload says is the same, but for what it cannot say.
      const alone = read(platform, content, blank);
      for (const name of ['title', 'text', 'link', 'image', 'group', 'urgency', 'data', 'silent'].filter((name) => names.includes(name))) {
        if (alone[name] !== one[name]) wrong.push([platform, 'alone', name, one[name], alone[name], content.body]);
      }
      // What the form does not know survives what is written, and an untouched form writes nothing.
      if (platform === 'wns') {
        content.body = content.body.replace('</toast>', '<header id="1"/><!-- mine --></toast>').replace('<toast', '<toast displayTimestamp="now"');
      } else {
        const value = JSON.parse(content.body);
        Object.assign(value, others);
        if (platform === 'apns') Object.assign(value.aps, others);
        if (platform === 'fcmv1') value.message.webpush = others;
        content.body = JSON.stringify(value);
      }
      content.headers['X-Mine'] = 'kept';
      const before = content.body;
      one = read(platform, content, one);
      content = write(platform, one, content);
      if (content.body !== before) wrong.push([platform, 'untouched', before, content.body]);
      for (let step = 0; step < 3; step++) {
        one = form();
        content = write(platform, one, content);
        check('again');
      }
      const kept = platform === 'wns' ? content.body.includes('<header id="1"/>') && content.body.includes('<!-- mine -->') && content.body.includes('displayTimestamp="now"')
        : (() => {
          const value = JSON.parse(content.body);
          const has = (part, names = Object.keys(others)) => names.every((name) => same(part?.[name], others[name]));
          // Beside aps, a text is data, which the form knows.
          return has(value, Object.keys(others).filter((name) => platform !== 'apns' || name !== 'ünknown')) && (platform !== 'apns' || has(value.aps)) && (platform !== 'fcmv1' || has(value.message.webpush));
        })();
      if (!kept || content.headers['X-Mine'] !== 'kept') wrong.push([platform, 'lost', content.body]);
      // An empty form leaves nothing of its own behind.
      content = write(platform, { ...blank }, write(platform, form(), empty(platform)));
      if (!same(content, write(platform, { ...blank }, empty(platform)))) wrong.push([platform, 'emptied', content]);
    }
  }
  return wrong.slice(0, 8);
})()
"""


@pytest.mark.parametrize("seed", [1, 20261128])
def test_what_a_form_says_a_payload_says_and_back_on_every_platform(portal, seed):
    portal.visit("sign-in")
    assert portal.run(PROPERTY % seed) == []


@pytest.mark.parametrize(
    "platform, body",
    [
        ("apns", "{"), ("apns", "[]"), ("apns", '{"aps":5}'), ("apns", '{"aps":[]}'), ("fcmv1", '{"data":{}}'), ("browser", '"text"'),
        ("browser", '{"actions":5}'), ("wns", "<toast>"), ("wns", "<tile/>"), ("wns", "<toast><visual/></toast>"), ("wns", "<a/><b/>"), ("wns", ""),
        ("template", "null"), ("wns", "<toast a='1' a='2'/>"), ("wns", "<toast>&nothing;</toast>"),
    ],
)
def test_a_payload_that_the_form_cannot_tell_stays_as_it_is(portal, platform, body):
    portal.visit("sign-in")
    assert portal.run(
        f"import('/$portal/message.js').then(({{ blank, read, write }}) => {{ const content = {{ body: {json.dumps(body)}, headers: {{}} }};"
        f" return [read('{platform}', content, blank), write('{platform}', {{ ...blank, title: 'x', text: 'y' }}, content)]; }})"
    ) == [None, None]


def test_an_alert_that_is_a_text_stays_one_until_it_has_a_title(portal):
    portal.visit("hub/demo/compose?" + urllib.parse.urlencode({"format": "apple", "body": '{"aps":{"alert":"Hi","sound":"x.caf"}}'}))
    assert (value(portal, "Text"), value(portal, "Sound")) == ("Hi", "file")
    portal.fill("Text", "Ho")
    assert json.loads(payload(portal)) == {"aps": {"alert": "Ho", "sound": "x.caf"}}
    portal.fill("Title", "Title")
    assert json.loads(payload(portal))["aps"]["alert"] == {"title": "Title", "body": "Ho"}


def test_form_and_payload_are_in_step_both_ways(portal):
    portal.visit("hub/demo/compose")
    unfold(portal)
    portal.fill("Title", "Goal!")
    portal.fill("Text", "Oslo leads 2:1")
    assert json.loads(payload(portal, "apns")) == {"aps": {"alert": {"title": "Goal!", "body": "Oslo leads 2:1"}, "sound": "default"}}
    # The payload of one platform fills the form, and the form the others.
    changed = {"aps": {"alert": {"title": "Goal?", "body": "Oslo leads 2:1"}, "badge": 3}, "match": {"id": 7}}
    portal.fill("Payload", json.dumps(changed))
    assert (value(portal, "Title"), value(portal, "Badge"), value(portal, "Sound")) == ("Goal?", "3", "none")
    android = json.loads(payload(portal, "fcmv1"))["message"]
    assert android["notification"] == {"title": "Goal?", "body": "Oslo leads 2:1"}
    assert android["android"]["notification"] == {"notification_count": 3}
    assert "<text>Goal?</text>" in payload(portal, "wns")
    # What the form does not know stays in the payload.
    portal.fill("Text", "Oslo leads 3:1")
    now = json.loads(payload(portal, "apns"))
    assert now["match"] == {"id": 7} and now["aps"]["alert"]["body"] == "Oslo leads 3:1"
    portal.check()


def test_a_broken_payload_leaves_the_form_what_it_had(portal):
    portal.visit("hub/demo/compose?tags=news")
    unfold(portal)
    portal.fill("Title", "Goal!")
    choose(portal, "apns")
    portal.fill("Payload", '{\n  "aps": {,}\n}')
    portal.reads("This is not valid JSON")
    portal.reads("The payload of Apple says what the form cannot tell")
    assert value(portal, "Title") == "Goal!"
    portal.fill("Title", "Goal?")
    assert "{,}" in payload(portal)
    assert "Goal?" in payload(portal, "fcmv1")
    # It is not sent; the way leads to the payload.
    portal.run("document.querySelector('main').scrollIntoView()")
    portal.press("Dry run")
    portal.await_value("document.activeElement.classList.contains('code') && document.getElementById('tab-apns').ariaSelected === 'true'")
    portal.press("Use the form again")
    assert json.loads(payload(portal))["aps"]["alert"] == {"title": "Goal?"}
    portal.check()


@pytest.mark.parametrize("text", ["it's \"quoted\" & <b>bold</b>", "<img src=x onerror=window.pwned=1>", "😀👩‍👩‍👧 goal", "\u202eevil שלום", "]]> <!-- ${x}"])
def test_what_is_typed_is_text_in_every_field_and_on_every_phone(portal, text):
    portal.visit("hub/demo/compose?tags=nobody-has-this")
    for label in ("Title", "Text", "Subtitle", "Button"):
        portal.fill(label, text)
    for name in PLATFORMS.values():
        portal.press(name, within=ASIDE)
        portal.await_value(f"{ASIDE}.querySelector('.pane .title').textContent === {json.dumps(text)}")
        assert portal.run(f"{ASIDE}.querySelector('.pane .body').textContent") == text
    assert portal.run("window.pwned") is None
    assert portal.run("document.querySelectorAll('main :is(img, script, iframe)').length") == 0
    portal.check()


@pytest.mark.parametrize(
    "image",
    ["http://cdn.example/a.jpg", "https://ann:secret@cdn.example/a.jpg", "https://127.0.0.1/a.jpg", "https://10.1.2.3/a", "https://192.168.1.1/a",
     "https://172.20.0.1/a", "https://169.254.169.254/latest", "https://2130706433/a", "https://[::1]/a", "https://[fe80::1]/a", "https://[fd00::1]/a",
     "https://printer/a.jpg", "https://nas.local/a.jpg", "https://localhost/a.jpg", "cat.jpg", "data:image/png;base64,AAAA"],
)
def test_an_image_that_a_phone_cannot_load_is_refused_at_its_field_and_asked_by_nobody(portal, image):
    portal.visit("hub/demo/compose?tags=news")
    portal.fill("Title", "Look")
    portal.fill("Image", image)
    portal.press("Dry run")
    portal.reads("Phones load images over https only.")
    portal.await_value("document.activeElement.labels?.[0].innerText === 'Image' && document.activeElement.ariaInvalid === 'true'")
    described = "document.getElementById(document.activeElement.getAttribute('aria-describedby').split(' ').at(-1)).innerText"
    assert "https only" in portal.run(described)
    asked = portal.run("performance.getEntriesByType('resource').map((one) => one.name)")
    assert all("/$portal/" in one or "/demo/" in one for one in asked), asked


def test_no_image_is_ever_loaded_for_a_preview(portal, hub, stack):
    device = add_phones(hub, stack.emulator, tags=("pictured",))[0]
    portal.visit("hub/demo/compose?tags=pictured")
    portal.fill("Title", "Look")
    portal.fill("Image", "https://cdn.example.com/weekend.jpg")
    portal.reads("The image is not loaded here")
    portal.reads("Made for a real device")
    portal.press("Send to 1 device", within=DOCK)
    stack.emulator.await_notifications({"deviceId": device}, 1)
    asked = portal.run("performance.getEntriesByType('resource').map((one) => one.name)")
    assert not [one for one in asked if "cdn.example" in one], asked


# --- Whom, and what they would see ---------------------------------------------------------------


def test_the_phone_shows_what_the_hub_makes_for_a_real_device(portal, hub, stack):
    """Of the template of a device nothing is known here: only the hub can have filled it."""
    device = add_phones(hub, stack.emulator, tags=("scores",))[0]
    name = f"virtual-{device}"
    one = hub.call("GET", f"installations/{name}").json()
    one["templates"] = {"score": {"body": '{"aps":{"alert":{"title":"{\'Match: \' + $(team)}","body":"$(score)"}}}'}}
    hub.call("PUT", f"installations/{name}", {"Content-Type": "application/json"}, json.dumps(one))
    portal.visit("hub/demo/compose?format=template&tags=scores")
    # Its fields are those that the template names.
    portal.reads("1 of 1 devices")
    assert portal.run("[...document.querySelectorAll('.fields:not([hidden]) label')].filter((node) => node.checkVisibility()).map((node) => node.innerText)") == ["score", "team"]
    portal.fill("team", "Oslo")
    portal.fill("score", "2:1 \"<&>\" 😀")
    portal.await_value(f"{ASIDE}.querySelector('.pane .title')?.textContent === 'Match: Oslo'")
    assert portal.run(f"{ASIDE}.querySelector('.pane .body').textContent") == '2:1 "<&>" 😀'
    portal.press("Add a property")
    portal.fill("Property", "extra")
    portal.press("Add a property")
    portal.fill("extra", "more")
    unfold(portal)
    assert json.loads(payload(portal)) == {"team": "Oslo", "score": '2:1 "<&>" 😀', "extra": "more"}
    portal.check()
    portal.press("Send to 1 device", within=DOCK)
    portal.await_value("location.pathname.includes('/notifications/')")
    stack.emulator.await_notifications({"deviceId": device}, 1)


def test_title_and_text_go_along_to_the_other_form(portal, hub, stack):
    add_phones(hub, stack.emulator, tags=("forms",))
    portal.visit("hub/demo/compose?tags=forms")
    portal.fill("Title", "Goal!")
    portal.fill("Text", "Oslo leads")
    portal.press("By template")
    portal.await_value("[...document.querySelectorAll('main label')].some((node) => node.innerText === 'message')")
    assert (value(portal, "title"), value(portal, "message")) == ("Goal!", "Oslo leads")
    portal.press("By platform")
    assert value(portal, "Title") == "Goal!"


def test_the_number_is_that_of_the_chosen_platforms_and_nobody_is_told(portal):
    add_one_of_each(portal, "counted")
    portal.visit("hub/demo/compose?tags=counted")
    portal.await_value(f"{GO}.innerText === 'Send to 4 devices'")
    portal.run("document.querySelector('.pick input[name=wns]').click()")
    portal.await_value(f"{GO}.innerText === 'Send to 3 devices'")
    portal.fill("Tag expression", "counted && nobody")
    portal.await_value(f"{GO}.innerText === 'Send to 0 devices' && {GO}.disabled")
    portal.fill("Tag expression", "counted &&")
    portal.await_value("document.querySelector('main [aria-invalid=true]') !== null")
    portal.expected += ["400"]
    portal.check()


def test_everyone_is_sent_to_after_their_number_is_typed(portal, hub, stack):
    add_phones(hub, stack.emulator, count=2, tags=("crowd",))
    portal.visit("hub/demo/compose?to=everyone")
    portal.fill("Title", "To everybody")
    portal.await_value(f"/^Send to [\\d,]+ devices$/.test({GO}.innerText)")
    portal.press(portal.run(f"{GO}.innerText"), within=DOCK)
    portal.reads("Send to everyone?")
    assert portal.run("document.querySelector('dialog button[type=submit]').disabled")
    portal.press("Cancel")
    portal.await_value("!document.querySelector('dialog')")
    assert portal.run("location.pathname.endsWith('/compose')")
    portal.check()


def test_my_devices_are_those_that_i_have_marked(portal, hub, stack):
    mine, other = add_phones(hub, stack.emulator, count=2, tags=("tested",))
    portal.visit("hub/demo/compose?tags=tested")
    portal.fill("Title", "Just a test")
    portal.press("Test on my devices")
    portal.reads("No device is yours yet.")
    portal.check()
    portal.visit(f"hub/demo/devices/virtual-{mine}")
    portal.press("This is mine")
    portal.await_value("[...document.querySelectorAll('button')].find((node) => node.innerText === 'This is mine').ariaPressed === 'true'")
    portal.check()
    portal.visit("hub/demo/compose?tags=tested")
    portal.fill("Title", "Just a test")
    portal.press("Test on my devices")
    portal.reads("1 accepted")
    assert portal.run("document.querySelectorAll('tbody tr').length") == 1
    stack.emulator.await_notifications({"deviceId": mine}, 1)
    portal.press("My devices")
    portal.await_value(f"{GO}.innerText === 'Send to 1 device'")
    portal.check()


def test_a_platform_without_a_credential_is_off_and_says_so(browser, address):
    page = PortalPage.of(browser, address)
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="""
          const real = window.fetch;
          window.fetch = async (address, options) => {
            const path = new URL(address, location.href).pathname;
            if (path === '/demo/credentials') return new Response(JSON.stringify({ credentials: [{ platform: 'apns' }] }));
            if (path === '/demo/audience') return new Response(JSON.stringify({ total: 20005, counts: [
              { platform: 'apns', template: null, devices: 20000 }, { platform: 'wns', template: null, devices: 5 }] }));
            return real(address, options);
          };
        """,
    )
    page.visit("hub/demo/compose?tags=news")
    page.reads("5 devices get nothing: the hub has no credential for Windows.")
    page.await_value(f"{GO}.innerText === 'Send to 20,000 devices'")
    assert page.run("document.querySelector('.pick input[name=wns]').disabled")
    page.check()
    page.close()


# --- Sending -------------------------------------------------------------------------------------


def test_one_of_four_is_refused_the_others_stand_and_it_is_tried_again(portal, hub, stack, browser, address):
    # Somebody else, or these four were everyone.
    add_phones(hub, stack.emulator, tags=("bystander",))
    add_one_of_each(portal, "four")
    page = PortalPage.of(browser, address)
    page.expected += ["403"]
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="""
          const real = window.fetch;
          window.keys = [];
          window.refuses = true;
          window.fetch = async (address, options) => {
            const url = new URL(address, location.href);
            const format = options?.headers?.['ServiceBusNotification-Format'];
            if (url.pathname === '/demo/messages' && options?.method === 'POST' && !url.searchParams.has('dry-run')) {
              window.keys.push(`${format} ${options.headers['Idempotency-Key']}`);
              if (window.refuses && format === 'browser') return new Response('<Error><Code>403</Code><Detail>The quota is used up.TrackingId:1</Detail></Error>', { status: 403 });
            }
            return real(address, options);
          };
        """,
    )
    page.visit("hub/demo/compose?tags=four")
    page.fill("Title", "One of four")
    page.await_value(f"{GO}.innerText === 'Send to 4 devices'")
    page.press("Send to 4 devices", within=DOCK)
    # Everybody of this audience is asked about only if it is everybody.
    page.reads("Web was refused")
    page.reads("The quota is used up")
    assert count_of(hub, "One of four", "four") == ["apple", "fcmv1", "windows"]
    # Those that have accepted it are counted no more.
    page.await_value(f"{GO}.innerText === 'Send to 1 device'")
    page.check()
    page.run("window.refuses = false")
    page.press("Try Web again")
    page.await_value("location.pathname.endsWith('/notifications')")
    assert count_of(hub, "One of four", "four") == ["apple", "browser", "fcmv1", "windows"]
    keys = page.run("window.keys")
    assert len(keys) == 5 and len(set(keys)) == 4, keys
    page.close()


def test_a_lost_reply_and_a_second_press_send_once(portal, hub, stack, browser, address):
    device = add_phones(hub, stack.emulator, tags=("lost",))[0]
    page = PortalPage.of(browser, address)
    page.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="""
          const real = window.fetch;
          window.lost = 0;
          window.fetch = async (address, options) => {
            const url = new URL(address, location.href);
            const reply = await real(address, options);
            if (url.pathname === '/demo/messages' && options?.method === 'POST' && !url.searchParams.has('dry-run') && window.lost++ === 0) throw new TypeError('the line is cut');
            return reply;
          };
        """,
    )
    page.visit("hub/demo/compose?tags=lost")
    page.fill("Title", "Only once")
    # Its time of expiry has to be the same, too.
    unfold(page)
    page.run("(() => { const box = [...document.querySelectorAll('main label')].find((node) => node.innerText === 'Keep trying for').control; box.value = '3600'; box.dispatchEvent(new Event('input', { bubbles: true })); })()")
    page.press("Send to 1 device", within=DOCK)
    page.reads("so it is unknown whether the hub accepted it")
    # Somebody comes back to it later, while the hub still knows the key.
    page.run("(() => { const now = Date.now.bind(Date); Date.now = () => now() + 11 * 60_000; })()")
    page.press("Send to 1 device", within=DOCK)
    page.await_value("location.pathname.includes('/notifications/')")
    assert count_of(hub, "Only once", "lost") == ["apple"]
    stack.emulator.await_notifications({"deviceId": device}, 1)
    page.close()


def test_a_message_is_scheduled(portal, hub, stack):
    add_phones(hub, stack.emulator, tags=("later",))
    portal.visit("hub/demo/compose?tags=later")
    portal.fill("Title", "In the morning")
    portal.press("Schedule …")
    portal.check()
    portal.press("Tomorrow, 9:00")
    portal.press("Set the time")
    portal.await_value(f"{GO}.innerText.startsWith('Schedule for ')")
    portal.press(portal.run(f"{GO}.innerText"), within=DOCK)
    portal.await_value("location.pathname.includes('/notifications/')")
    portal.reads("Scheduled")
    identifier = portal.run("location.pathname.split('/').pop()")
    hub.call("DELETE", f"schedulednotifications/{identifier}")


def test_a_raw_handle_gets_it_without_being_registered(portal, hub, stack):
    app = next(app for app in stack.emulator.get("apps")["apps"] if app["pns"] == "apns")
    made = stack.emulator.post("devices", {"appId": app["appId"], "count": 1})["devices"][0]
    portal.visit("hub/demo/compose?handle=" + made["handle"]["token"])
    portal.fill("Title", "To you alone")
    portal.press("Send to 1 device", within=DOCK)
    portal.await_value("location.pathname.includes('/notifications/')")
    stack.emulator.await_notifications({"deviceId": made["deviceId"]}, 1)
    # A handle is nothing for a draft.
    assert made["handle"]["token"] not in portal.run("JSON.stringify({ ...localStorage })")


def test_a_raw_handle_gets_it_now_whatever_time_was_set_before(portal, hub, stack):
    app = next(app for app in stack.emulator.get("apps")["apps"] if app["pns"] == "apns")
    made = stack.emulator.post("devices", {"appId": app["appId"], "count": 1})["devices"][0]
    add_phones(hub, stack.emulator, tags=("tomorrow",))
    portal.visit("hub/demo/compose?tags=tomorrow")
    portal.fill("Title", "For you, and now")
    portal.press("Schedule …")
    portal.press("Tomorrow, 9:00")
    portal.press("Set the time")
    portal.await_value(f"{GO}.innerText.startsWith('Schedule for ')")
    portal.press("A device")
    unfold(portal)
    portal.fill("Handle", made["handle"]["token"])
    portal.await_value(f"{GO}.innerText === 'Send to 1 device'")
    portal.press("Send to 1 device", within=DOCK)
    portal.await_value("location.pathname.includes('/notifications/')")
    stack.emulator.await_notifications({"deviceId": made["deviceId"]}, 1)
    waiting = hub.call("GET", "schedulednotifications").json()["notifications"]
    assert "For you, and now" not in [one.get("title") for one in waiting]


def test_a_draft_without_its_handle_goes_to_no_other_device(portal, hub, stack):
    app = next(app for app in stack.emulator.get("apps")["apps"] if app["pns"] == "apns")
    made = stack.emulator.post("devices", {"appId": app["appId"], "count": 1})["devices"][0]
    other = f"virtual-{add_phones(hub, stack.emulator, tags=('spare',))[0]}"
    portal.visit("hub/demo/compose?tags=" + urllib.parse.quote(f"$InstallationId:{{{other}}}"))
    assert value(portal, "Installation") == other
    unfold(portal)
    portal.fill("Handle", made["handle"]["token"])
    portal.fill("Title", "Not for the other")
    portal.await_value("location.search.startsWith('?draft=')")
    portal.await_value("Object.values({ ...localStorage }).some((text) => text.includes('Not for the other'))")
    draft = portal.run("location.search")
    portal.visit("hub/demo/notifications")
    portal.visit("hub/demo/compose" + draft)
    unfold(portal)
    assert (value(portal, "Title"), value(portal, "Installation"), value(portal, "Handle")) == ("Not for the other", "", "")
    assert made["handle"]["token"] not in portal.run("JSON.stringify({ ...localStorage })")
    portal.run(f"{GO}.click()")
    portal.settle()
    assert portal.run("location.pathname").endswith("/compose")
    assert count_of(hub, "Not for the other", urllib.parse.quote(f"$InstallationId:{{{other}}}")) == []


# --- Drafts, keys, ways in -----------------------------------------------------------------------


def test_a_draft_survives_a_reload_and_not_signing_out(browser, address):
    page = PortalPage.of(browser, address)
    page.visit("hub/demo/compose")
    page.run("Object.keys(localStorage).filter((name) => name.startsWith('belfry.drafts')).forEach((name) => localStorage.removeItem(name))")
    page.visit("hub/demo/compose?tags=news")
    page.fill("Title", "Half a thou")
    page.fill("Badge", "2")
    page.await_value("location.search.startsWith('?draft=')")
    page.visit("hub/demo/compose" + page.run("location.search"))
    assert (value(page, "Title"), value(page, "Badge"), value(page, "Tag expression")) == ("Half a thou", "2", "news")
    page.visit("hub/demo/compose")
    assert value(page, "Title") == ""
    page.press("Drafts (1)")
    page.reads("Half a thou")
    page.check()
    page.press("Half a thou")
    page.await_value("location.search.startsWith('?draft=')")
    page.settle()
    assert value(page, "Title") == "Half a thou"
    page.run("[...document.querySelectorAll('#bar button')].find((node) => node.innerText === 'Sign out').click()")
    page.await_value("location.pathname.endsWith('/sign-in')")
    assert page.run("Object.keys(localStorage).filter((name) => name.startsWith('belfry.drafts'))") == []
    page.close()


@pytest.mark.parametrize("path, target", [("send?tags=news", "Tags"), ("test?tags=%24InstallationId%3A%7Bx%7D", "A device"), ("send?to=everyone", "Everyone"), ("send?tags=%24UserId%3A%7Bann%7D", "A person")])
def test_addresses_of_before_lead_here_with_their_query(portal, path, target):
    portal.visit("hub/demo/" + path)
    assert portal.run("location.pathname.endsWith('/hub/demo/compose')")
    assert portal.run("[...document.querySelectorAll('input[type=radio]:checked')].map((node) => node.parentElement.innerText)").count(target) == 1
    portal.check()


def test_keys_send_and_enter_in_a_field_does_not(portal, hub, stack):
    device = add_phones(hub, stack.emulator, tags=("keyed",))[0]
    portal.visit("hub/demo/compose?tags=keyed")
    portal.fill("Title", "By keys")
    portal.await_value(f"{GO}.innerText === 'Send to 1 device'")
    portal.key("Enter", text="\r")
    portal.run("new Promise((done) => setTimeout(done, 300))")
    assert portal.run("location.pathname.endsWith('/compose')") and count_of(hub, "By keys", "keyed") == []
    portal.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true }))")
    portal.await_value("location.pathname.includes('/notifications/')")
    stack.emulator.await_notifications({"deviceId": device}, 1)


@pytest.mark.parametrize("language", ["en", "fr", "zh"])
@pytest.mark.parametrize("width", [320, PHONE[0], 768, 1280])
def test_all_of_it_fits_and_can_be_read(browser, address, language, width):
    page = PortalPage.of(browser, address, language)
    page.size(width, 844)
    page.visit("hub/demo/compose?tags=news")
    unfold(page)
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        page.check()
    page.close()


# --- Data, tags that were meant, keys ------------------------------------------------------------


def test_extra_data_goes_to_every_platform_that_has_a_place_for_it(portal, hub, stack):
    add_one_of_each(portal, "data")
    portal.visit("hub/demo/compose?tags=data")
    portal.await_value(f"{GO}.innerText === 'Send to 4 devices'")
    unfold(portal)
    portal.fill("Title", "Your order")
    portal.press("Add data")
    name, text = (f"[...document.querySelectorAll('[aria-label=\"{label} of the data\"]')].at(-1)" for label in ("Name", "Value"))
    for box, words in ((name, "order"), (text, "4\"2 <b>")):
        portal.run(f"(() => {{ const box = {box}; box.value = {json.dumps(words)}; box.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()")
    assert json.loads(payload(portal, "apns"))["order"] == '4"2 <b>'
    assert json.loads(payload(portal, "fcmv1"))["message"]["data"] == {"order": '4"2 <b>'}
    assert json.loads(payload(portal, "browser"))["data"] == {"order": '4"2 <b>'}
    assert '4"2' not in payload(portal, "wns") and "4&quot;2" not in payload(portal, "wns")
    # And back: a text that somebody writes beside aps is data, a number stays theirs.
    choose(portal, "apns")
    portal.run(
        "(() => { const box = document.querySelector('textarea.code'); const value = JSON.parse(box.value); value.kind = 'sale'; value.count = 3;"
        " box.value = JSON.stringify(value); box.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    portal.await_value("[...document.querySelectorAll('[aria-label=\"Name of the data\"]')].map((box) => box.value).join() === 'kind,order'")
    assert json.loads(payload(portal, "fcmv1"))["message"]["data"] == {"kind": "sale", "order": '4"2 <b>'}
    assert json.loads(payload(portal, "apns"))["count"] == 3
    portal.check()
    # A name that a service has for itself is told at the field.
    portal.run(f"(() => {{ const box = {name}; box.value = 'google.x'; box.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()")
    portal.press("Send to 4 devices", within=DOCK)
    portal.reads("Each name once, and none of aps")
    portal.await_value("document.activeElement.getAttribute('aria-label') === 'Name of the data'")
    portal.check()


def test_data_without_words_is_a_silent_push(portal, hub, stack):
    device = add_phones(hub, stack.emulator, tags=("silence",))[0]
    portal.visit("hub/demo/compose?tags=silence")
    portal.await_value(f"{GO}.innerText === 'Send to 1 device'")
    unfold(portal)
    portal.press("Add data")
    for label, words in (("Name", "sync"), ("Value", "all")):
        portal.run(f"(() => {{ const box = document.querySelector('[aria-label=\"{label} of the data\"]'); box.value = '{words}'; box.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()")
    assert json.loads(payload(portal)) == {"aps": {"content-available": 1}, "sync": "all"}
    portal.press("Send to 1 device", within=DOCK)
    portal.await_value("location.pathname.includes('/notifications/')")
    arrived = stack.emulator.await_notifications({"deviceId": device}, 1)[0]
    assert arrived["headers"]["apns-push-type"] == "background" and arrived["headers"]["apns-priority"] == "5"
    portal.reads("Silent push")
    # With words it is an alert again.
    portal.visit("hub/demo/compose?tags=silence")
    unfold(portal)
    portal.press("Add data")
    portal.run("(() => { const box = document.querySelector('[aria-label=\"Name of the data\"]'); box.value = 'sync'; box.dispatchEvent(new Event('input', { bubbles: true })); })()")
    portal.fill("Title", "Now with words")
    assert "content-available" not in payload(portal) and "Now with words" in payload(portal)


def test_a_tag_that_nobody_has_is_told_with_the_one_that_was_meant(portal, hub, stack):
    add_phones(hub, stack.emulator, count=2, tags=("weekend",))
    portal.visit("hub/demo/compose?tags=weekand%20%26%26%20!muted")
    portal.reads("No device has the tag weekand. Did you mean weekend (2 devices)?")
    assert portal.run(f"{GO}.disabled") and not portal.run("[...document.querySelectorAll('.dock button')].find((node) => node.innerText === 'Test on my devices').disabled")
    portal.check()
    portal.press("Use weekend")
    portal.await_value(f"{GO}.innerText === 'Send to 2 devices'")
    assert value(portal, "Tag expression") == "weekend && !muted"
    portal.fill("Tag expression", "like-nothing-else")
    portal.reads("No device has the tag like-nothing-else.")
    assert "Did you mean" not in portal.shown()
    # What is not wanted anyway is not missed.
    add_phones(hub, stack.emulator, tags=("weekday",))
    portal.fill("Tag expression", "weekend && weekday && !mutted")
    portal.await_value(f"{GO}.innerText === 'Send to 0 devices'")
    assert "No device has the tag" not in portal.shown()


def test_expressions_of_late_are_offered(portal, hub, stack):
    add_phones(hub, stack.emulator, tags=("offered",))
    hub.call(
        "POST", "messages",
        {"ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": "offered && !muted", "Content-Type": "application/json"},
        b'{"message":"x"}',
    )
    portal.visit("hub/demo/compose")
    portal.press("offered && !muted")
    portal.await_value(f"{GO}.innerText === 'Send to 1 device' || document.body.innerText.includes('1 device')")
    assert value(portal, "Tag expression") == "offered && !muted"
    portal.check()


def test_single_keys_work_outside_of_fields_and_can_be_turned_off(browser, address):
    page = PortalPage.of(browser, address)
    page.visit("hub/demo/policies")
    page.key("c", text="c")
    page.await_value("location.pathname.endsWith('/compose') && document.querySelector('.dock') !== null")
    page.fill("Title", "")
    page.run("[...document.querySelectorAll('main label')].find((node) => node.innerText === 'Title').control.focus()")
    for key in "c/?":
        page.key(key, text=key)
    page.await_value("[...document.querySelectorAll('main label')].find((node) => node.innerText === 'Title').control.value === 'c/?'")
    page.run("document.activeElement.blur()")
    page.key("/", text="/")
    page.await_value("location.pathname.endsWith('/notifications') && document.activeElement.type === 'search'")
    page.run("document.activeElement.blur()")
    page.key("?", text="?")
    page.reads("Use the single keys / c ?")
    page.check()
    page.press("Use the single keys / c ?")
    page.key("Escape")
    page.await_value("document.querySelector('dialog') === null")
    page.run("document.activeElement.blur()")
    for key in "c/?":
        page.key(key, text=key)
    assert page.run("location.pathname").endswith("/notifications") and page.run("document.activeElement.type !== 'search' && !document.querySelector('dialog')")
    # Where they are turned on again, there is a button.
    page.visit("hub/demo")
    page.run("[...document.querySelectorAll('#side button')].at(-1).click()")
    page.press("Use the single keys / c ?")
    page.press("Close")
    page.run("document.activeElement.blur()")
    page.key("c", text="c")
    page.await_value("location.pathname.endsWith('/compose')")
    page.close()
