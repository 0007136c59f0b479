"""Operators of the portal in Chromium, against `belfry serve`: sign-in with a password and at an OpenID
provider, what each role sees, confirmation, ends of sessions. And the key of `belfry up`."""

import hashlib
import json
import re
import sqlite3
import subprocess
import tempfile
import time
import types

import pytest
import requests

from support import chromium
from support.openid import CLIENT, SECRET, OpenIDProvider, b64
from support.portal import PortalPage
from support.process import BINARY, Belfry
from test_browser import ONLINE

pytestmark = [
    pytest.mark.skipif(
        chromium.BINARY is None,
        reason="there is no Chromium: on Debian `apt-get install chromium`, or name one in CHROMIUM",
    ),
    pytest.mark.timeout(300),
]

PASSWORD = "correct horse"
ROLES = {"ann": "*=manager", "sam": "shop=sender", "vic": "shop=viewer,news=sender"}


def belfry(*words, data, stdin=None):
    return subprocess.run(
        [BINARY, *words, "--data", data], input=stdin, capture_output=True, check=True, timeout=60, text=True
    ).stdout


@pytest.fixture(scope="module")
def server():
    """`belfry serve` with two hubs, operators with passwords, and a provider."""
    provider = OpenIDProvider()
    with tempfile.TemporaryDirectory(prefix="belfry-operators-") as data:
        with open(f"{data}/secret", "w") as file:
            file.write(SECRET + "\n")
        running = Belfry(
            "serve", "--data", data, "--port", "0", "--oidc-issuer", provider.issuer, "--oidc-client", CLIENT,
            "--oidc-secret-file", f"{data}/secret", "--oidc-name", "Example",
        )
        for hub in ("shop", "news"):
            belfry("hub", "create", hub, data=data)
        for name, roles in ROLES.items():
            belfry("operator", "add", name, "--roles", roles, "--password-file", "-", data=data, stdin=PASSWORD)
        belfry("operator", "add", "subject:ann-1", "--roles", "*=manager", data=data)
        yield types.SimpleNamespace(
            process=running, data=data, provider=provider, address=running.addresses["url"] + "/$portal/"
        )
        running.stop()
    provider.stop()


@pytest.fixture
def tab(server):
    """Gives tabs of a new browser each: cookies are a browser's."""
    running = []

    def make(language="en"):
        running.append(chromium.Chromium())
        return PortalPage.of(running[-1], server.address, language)

    yield make
    for browser in running:
        browser.stop()


@pytest.fixture(autouse=True)
def stranger(server):
    """Before the provider's page sits somebody who has not typed a password there yet."""
    server.provider.person = {"sub": "ann-1"}
    server.provider.signed_in_at = None
    server.provider.asks_again = True


def until(condition, limit=20):
    """Nothing tells when the server has looked at the file, which it does once a second."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit} s"
        time.sleep(0.1)


def sign_in(page, name, password=PASSWORD, path=""):
    page.visit(path)
    page.fill("User", name)
    page.fill("Password", password)
    page.press("Sign in", within="[...document.querySelectorAll('section')][0]")


def at_home(page, name):
    page.await_value(f"document.querySelector('.who')?.innerText === {name!r}")
    page.settle()


def install(page, identifier, hub="shop"):
    """A device, made by the page's own session."""
    status = page.run(
        f"""fetch('/{hub}/installations/{identifier}?api-version=2020-06', {{ method: 'PUT',
          headers: {{ 'Content-Type': 'application/json' }},
          body: JSON.stringify({{ installationId: '{identifier}', platform: 'apns', pushChannel: 'ab'.repeat(32), userId: 'u-{identifier}' }}) }})
            .then((reply) => reply.status)"""
    )
    assert status == 200, status


def long_ago(server, column, seconds=3600):
    """As if so much time had passed for all sessions."""
    with sqlite3.connect(f"{server.data}/belfry.sqlite", timeout=20) as store:
        store.execute(f"UPDATE operator_session SET {column} = {column} - ?", (seconds * 1000,))


def navigation(page):
    return page.run("[...document.querySelectorAll('#side a')].map((link) => link.innerText)")


# --- Passwords -----------------------------------------------------------------------------------


def test_a_wrong_password_is_told_and_the_right_one_leads_where_one_wanted_to_go(tab):
    page = tab()
    page.expected += ["401"]
    sign_in(page, "ann", "wrong", "hub/shop/devices")
    page.reads("Wrong user or password")
    page.check()
    page.fill("Password", PASSWORD)
    page.press("Sign in", within="[...document.querySelectorAll('section')][0]")
    page.await_value("location.pathname === '/$portal/hub/shop/devices'")
    at_home(page, "ann")
    page.check()
    # A reload and a new tab of the same browser know the session; no script can read the cookie.
    page.visit("hub/shop")
    at_home(page, "ann")
    assert page.run("document.cookie") == ""
    other = PortalPage.of(page.browser, page.address)
    other.visit()
    at_home(other, "ann")
    other.check()


@pytest.mark.parametrize(
    "name, hubs, sees, misses",
    [
        ("ann", ["news", "shop"], ["Compose", "Credentials", "Access policies", "Export and import"], []),
        ("sam", ["shop"], ["Compose", "Activity"], ["Credentials", "Access policies", "Export and import"]),
        ("vic", ["news", "shop"], ["Compose", "Notifications", "Devices", "Activity"], ["Credentials", "Access policies"]),
    ],
)
def test_each_role_sees_what_it_may_use_and_its_hubs_only(tab, name, hubs, sees, misses):
    page = tab()
    sign_in(page, name)
    at_home(page, name)
    for hub in hubs:
        page.reads(hub)
    shown = page.shown()
    assert [hub for hub in ("news", "shop") if hub in shown] == hubs
    assert ("Create a hub" in shown) == (name == "ann"), shown
    page.check()
    page.visit("hub/shop")
    at_home(page, name)
    links = [link.lower() for link in navigation(page)]
    assert {word.lower() for word in sees} <= set(links), links
    assert not {word.lower() for word in misses} & set(links), links
    page.check()
    for path in ("devices", "notifications", "schedules"):
        page.visit(f"hub/shop/{path}")
        page.settle()
        assert page.run("document.querySelector('main [role=alert]') === null"), page.describe()
        page.check()


def test_a_manager_subscribes_a_browser_with_the_session_alone(tab, server):
    belfry("credential", "set", "web", "--hub", "news", "--subject", "mailto:ops@example.com", "--generate", data=server.data)
    page = tab()
    page.browser.call("Browser.grantPermissions", permissions=["notifications"])
    page.call("Page.addScriptToEvaluateOnNewDocument", source=ONLINE)
    sign_in(page, "ann", path="hub/news/browser")
    at_home(page, "ann")
    page.press("Subscribe")
    page.reads("also when this page is closed")
    page.press("Unsubscribe")
    page.reads("Not subscribed.")
    page.check()
    # Without an emulator there is nothing to take the push service's place.
    page.run("PushManager.prototype.subscribe = async () => { throw new DOMException('no such service', 'AbortError'); }")
    page.press("Subscribe")
    page.reads("cannot be used: no such service")


def test_what_a_role_may_not_is_refused_in_words(tab):
    page = tab()
    page.expected += ["403"]
    sign_in(page, "vic")
    at_home(page, "vic")
    page.visit("hub/shop/jobs")
    page.reads("Your role in this hub does not allow this")
    for place in ("credentials", "policies"):
        page.visit(f"hub/shop/{place}")
        page.reads("Your role in this hub does not allow this")
        assert page.run("document.querySelector('main form')") is None
    status = page.run(
        "fetch('/shop/messages?api-version=2020-06', { method: 'POST', headers: { 'ServiceBusNotification-Format': 'apple' }, body: '{}' }).then((reply) => reply.status)"
    )
    assert status == 403
    sam = tab()
    sam.expected += ["403"]
    sign_in(sam, "sam", path="hub/news")
    at_home(sam, "sam")
    sam.reads("Your role in this hub does not allow this")
    sam.check()


def test_who_may_only_look_is_led_to_nothing_else_and_sees_who_sent(tab):
    ann = tab()
    sign_in(ann, "ann")
    at_home(ann, "ann")
    install(ann, "looked-at")
    sent = ann.run(
        """fetch('/shop/messages?api-version=2020-06', { method: 'POST', body: '{"message":"hi"}', headers: {
          'Content-Type': 'application/json', 'ServiceBusNotification-Format': 'template', 'ServiceBusNotification-Tags': 'nobody' } })
            .then((reply) => new URL(reply.headers.get('Location')).pathname.split('/').pop())"""
    )
    page = tab()
    sign_in(page, "vic")
    at_home(page, "vic")
    for place in ("notifications", f"notifications/{sent}", "devices/looked-at", "users/u-looked-at", "schedules", "activity"):
        page.visit(f"hub/shop/{place}")
        leads = page.run("[...document.querySelectorAll('main a')].map((link) => link.pathname)")
        assert not [path for path in leads if path.endswith("/compose")], (place, leads)
        page.check()
    page.visit("hub/shop/notifications")
    page.await_value("document.querySelector('.rows .by bdi')?.title === 'user/ann'")
    assert page.run("document.querySelector('.rows .by bdi').innerText") == "Ann"
    groups = page.run("[...document.querySelectorAll('#side .group')].map((node) => node.innerText)")
    assert groups == ["Sending", "Audience", "Settings"]


def test_who_may_only_look_tries_the_form_and_its_preview_and_sends_nothing(tab):
    page = tab()
    sign_in(page, "vic", path="hub/shop/compose")
    at_home(page, "vic")
    page.fill("Title", "Goal!")
    page.await_value("document.querySelector('aside .pane')?.innerText.includes('Goal!')")
    page.reads("Sending needs the role sender")
    assert page.run("[...document.querySelectorAll('.dock button')].every((node) => node.disabled)")
    page.check()
    # A dry run is no way around it.
    asked = page.run("performance.getEntriesByType('resource').map((one) => one.name).filter((name) => name.includes('dry-run'))")
    assert asked == []


def test_a_draft_is_there_again_after_an_expired_session(tab, server):
    page = tab()
    page.expected += ["401"]
    sign_in(page, "sam", path="hub/shop/compose?tags=lunch")
    at_home(page, "sam")
    page.fill("Title", "Before lunch")
    page.await_value("location.search.startsWith('?draft=')")
    long_ago(server, "seen_at")
    page.fill("Title", "After lunch")
    page.await_value("location.pathname.endsWith('/sign-in')")
    page.fill("User", "sam")
    page.fill("Password", PASSWORD)
    page.press("Sign in", within="document.querySelector('main section')")
    at_home(page, "sam")
    page.await_value("location.search.startsWith('?draft=')")
    page.settle()
    assert page.run("[...document.querySelectorAll('main label')].find((node) => node.innerText === 'Title').control.value") == "After lunch"


def test_keys_are_shown_and_things_deleted_after_the_password_again(tab, server):
    page = tab()
    page.expected += ["403", "401"]
    sign_in(page, "ann")
    at_home(page, "ann")
    install(page, "first")
    long_ago(server, "confirmed_at", 400)
    page.open(page.address + "hub/shop/policies")
    page.reads("Enter your password again")
    assert "SharedAccessKey" not in page.run("document.documentElement.outerHTML")
    page.fill("Password", "wrong")
    page.press("Go on")
    page.reads("This is not your password")
    page.fill("Password", PASSWORD)
    page.press("Go on")
    page.await_value("!document.querySelector('dialog')")
    page.settle()
    page.reads("DefaultFullSharedAccessSignature")
    # A wrong password ends no session, and what was asked for is done without a second click.
    long_ago(server, "confirmed_at", 400)
    page.visit("hub/shop/devices/first")
    page.settle()
    page.press("Delete this device")
    page.press("Delete")
    page.reads("Enter your password again")
    page.fill("Password", PASSWORD)
    page.press("Go on")
    page.await_value("location.pathname === '/$portal/hub/shop/devices'")
    assert page.run(
        "fetch('/shop/installations/first?api-version=2020-06').then((reply) => reply.status)"
    ) == 404
    # Who gives up has deleted nothing.
    install(page, "second")
    long_ago(server, "confirmed_at", 400)
    page.visit("hub/shop/users/u-second")
    page.settle()
    page.press("Erase")
    page.run(
        "(() => { const box = document.querySelector('dialog input'); box.value = 'u-second'; box.dispatchEvent(new Event('input')); })()"
    )
    page.press("Erase")
    page.reads("Enter your password again")
    page.press("Cancel")
    page.await_value("document.querySelectorAll('dialog').length === 1")
    assert page.run(
        "fetch('/shop/installations/second?api-version=2020-06').then((reply) => reply.status)"
    ) == 200


def test_settings_are_saved_after_the_password_without_a_conflict(tab, server):
    """The description that was read before has no keys; the one that is written back has."""
    page = tab()
    page.expected += ["403"]
    sign_in(page, "ann")
    at_home(page, "ann")
    long_ago(server, "confirmed_at", 400)
    page.visit("hub/shop")
    at_home(page, "ann")
    changed = page.run(
        """Promise.all([import('/$portal/hubs.js'), import('/$portal/reauthentication.js')]).then(async ([hubs, { freshly }]) => {
             const hub = await hubs.oneHub('shop');
             window.changing = freshly(() => hubs.changeHub(hub, (description) => hubs.set(description, 'UserMetadata', 'hello')));
             return hub.metadata;
           })"""
    )
    assert changed == ""
    page.fill("Password", PASSWORD)
    page.press("Go on")
    assert page.run("window.changing.then((hub) => hub.metadata)") == "hello"
    rules = page.run("import('/$portal/hubs.js').then(({ oneHub }) => oneHub('shop')).then((hub) => hub.description.innerHTML)")
    assert "DefaultFullSharedAccessSignature" in rules and "PrimaryKey" in rules


def test_who_is_idle_signs_in_again_and_goes_on_where_they_were(tab, server):
    page = tab()
    page.expected += ["401"]
    sign_in(page, "ann", path="hub/shop/devices")
    at_home(page, "ann")
    long_ago(server, "seen_at")
    page.press("Search")
    page.reads("Your session has expired")
    page.check()
    page.fill("User", "ann")
    page.fill("Password", PASSWORD)
    page.press("Sign in", within="[...document.querySelectorAll('section')][0]")
    page.await_value("location.pathname === '/$portal/hub/shop/devices'")
    at_home(page, "ann")


def test_who_signs_out_is_out_in_every_tab_and_in_none_of_another_browser(tab, server):
    page, other = tab(), tab()
    page.expected += ["401"]
    for one in (page, other):
        sign_in(one, "ann")
        at_home(one, "ann")
    second = PortalPage.of(page.browser, page.address)
    second.expected += ["401"]
    second.visit("hub/shop/devices")
    at_home(second, "ann")
    page.press("Sign out", within="document.querySelector('#bar')")
    page.await_value("location.pathname === '/$portal/sign-in'")
    assert page.browser.call("Storage.getCookies")["cookies"] == []
    second.press("Search")
    second.reads("Your session has expired")
    second.check()
    other.visit("hub/shop/devices")
    at_home(other, "ann")
    # Going back shows nothing of what was there.
    page.run("history.back()")
    page.await_value("location.pathname.startsWith('/$portal/sign-in')")


def test_who_is_taken_out_of_the_file_is_out_under_an_open_page(tab, server):
    belfry("operator", "add", "tim", "--roles", "*=manager", "--password-file", "-", data=server.data, stdin=PASSWORD)
    page = tab()
    page.expected += ["401"]
    until(lambda: requests.post(
        server.address + "session", json={"user": "tim", "password": PASSWORD},
        headers={"Sec-Fetch-Site": "same-origin"}, timeout=20).ok)
    sign_in(page, "tim", path="hub/shop/devices")
    at_home(page, "tim")
    belfry("operator", "remove", "tim", data=server.data)
    until(lambda: page.run(
        "fetch('/shop/installations?api-version=2020-06').then((reply) => reply.status)") == 401)
    page.press("Search")
    page.reads("Your session has expired")


def test_two_operators_at_once_are_told_apart_in_the_activity_log(tab):
    ann, sam = tab(), tab()
    sign_in(ann, "ann")
    sign_in(sam, "sam")
    at_home(ann, "ann")
    at_home(sam, "sam")
    for page, word in ((sam, "from-sam"), (ann, "from-ann")):
        status = page.run(
            f"""fetch('/shop/messages?api-version=2020-06', {{ method: 'POST', body: '{{"message":"{word}"}}',
              headers: {{ 'ServiceBusNotification-Format': 'template', 'ServiceBusNotification-Tags': '{word}', 'Content-Type': 'application/json' }} }})
                .then((reply) => reply.status)"""
        )
        assert status == 201
    ann.visit("hub/shop/activity")
    ann.settle()
    shown = ann.shown()
    assert "user/ann" in shown and "user/sam" in shown
    ann.check()


# --- At the provider -----------------------------------------------------------------------------


def through_provider(page, answer="Let me in", path=""):
    page.visit(path)
    page.press("Sign in with Example")
    page.await_value("document.title === 'Provider'")
    page.press(answer)


def test_an_operator_signs_in_at_the_provider_and_lands_where_they_wanted(tab, server):
    page = tab()
    page.visit("hub/shop/devices?by=tag&find=a")
    page.check()
    through_provider(page, path="hub/shop/devices?by=tag&find=a")
    page.await_value("location.pathname === '/$portal/hub/shop/devices'")
    at_home(page, "ann-1")
    assert page.run("location.search") == "?by=tag&find=a"
    assert page.run("document.cookie") == ""
    names = {cookie["name"]: cookie for cookie in page.browser.call("Storage.getCookies")["cookies"]}
    assert set(names) == {"belfry"}
    assert names["belfry"]["httpOnly"] and names["belfry"]["sameSite"] == "Strict"
    page.check()
    page.press("Sign out", within="document.querySelector('#bar')")
    page.await_value("location.pathname === '/$portal/sign-in'")
    # Also in the tab in which they have signed out.
    page.press("Sign in with Example")
    at_home(page, "ann-1")


@pytest.mark.parametrize("language, says", [
    ("en", "you are not an operator here"), ("fr", "vous n’êtes pas opérateur ici"), ("zh", "您不是这里的操作员"),
])
def test_somebody_unknown_learns_whom_to_add_and_how(tab, server, language, says):
    server.provider.person = {"sub": "it's-me", "email": "me@example.com", "email_verified": True}
    page = tab(language)
    page.expected += ["403"]
    page.visit()
    page.run("document.querySelector('section button:not([type=submit])').click()")
    page.await_value("document.title === 'Provider'")
    page.press("Let me in")
    page.reads(says)
    page.reads("email:me@example.com")
    page.reads("""belfry operator add 'subject:it'\\''s-me' --roles '*=viewer'""")
    assert page.run("location.pathname + location.search") == "/$portal/sign-in?to=%2F%24portal%2F"
    page.check()
    # The command does what the page says.
    command = page.run("document.querySelector('main pre').innerText")
    subprocess.run(
        ["bash", "-c", f'belfry() {{ "{BINARY}" "$@" --data "{server.data}"; }}; {command}'],
        check=True, capture_output=True, timeout=60,
    )
    try:
        def comes_in():
            state = page.await_value(
                """document.querySelector('.who') ? 'in'
                   : document.querySelector('section button:not([type=submit])') && 'out'"""
            )
            if state == "out":
                page.run("document.querySelector('section button:not([type=submit])')?.click()")
            return state == "in"

        until(comes_in)
        at_home(page, "it's-me")
    finally:
        belfry("operator", "remove", "subject:it's-me", data=server.data)

    def is_out():
        page.visit()
        return page.await_value(
            "location.pathname.endsWith('/sign-in') ? 'out' : document.querySelector('.who') && 'in'"
        ) == "out"

    # Only then does the server know that they are none: the next one signs in as they did.
    page.expected += ["401"]
    until(is_out)


def test_who_says_no_or_has_no_provider_is_told(tab, server):
    page = tab()
    page.expected += ["403", "502"]
    through_provider(page, "Cancel")
    page.reads("The provider did not let you in, or you declined.")
    assert "they said no" not in page.shown()
    page.check()
    # A second server, whose provider is not there.
    with tempfile.TemporaryDirectory(prefix="belfry-operators-") as data:
        gone = OpenIDProvider()
        gone.stop()
        running = Belfry("serve", "--data", data, "--port", "0", "--oidc-issuer", gone.issuer, "--oidc-client", CLIENT)
        try:
            other = PortalPage.of(page.browser, running.addresses["url"] + "/$portal/")
            other.expected += ["502"]
            other.visit()
            other.press("Sign in with your provider")
            other.reads("The provider does not answer as expected")
            other.check()
        finally:
            running.stop()


def callback(page, server, **fields):
    """The address to which the provider would send this browser, with something changed."""
    query = page.run("location.search")
    current = dict(part.split("=", 1) for part in query.lstrip("?").split("&"))
    reply = requests.get(
        server.provider.issuer + "/decide" + query + "&answer=yes", allow_redirects=False, timeout=20
    )
    assert current["state"]
    back = reply.headers["Location"]
    for name, value in fields.items():
        parts = [part for part in back.split("?", 1)[1].split("&") if not part.startswith(name + "=")]
        back = back.split("?", 1)[0] + "?" + "&".join(parts + ([f"{name}={value}"] if value else []))
    return back


def test_a_reply_with_another_state_in_another_browser_or_twice_signs_nobody_in(tab, server):
    page, victim = tab(), tab()
    for one in (page, victim):
        one.expected += ["400"]
        one.visit()
    page.press("Sign in with Example")
    page.await_value("document.title === 'Provider'")
    address = callback(page, server)
    # An attacker's own sign-in, pushed on somebody else.
    victim.open(address)
    victim.reads("This does not belong to a sign-in that this browser has begun")
    victim.check()
    page.open(callback(page, server, state="AAAA"))
    page.reads("This does not belong to a sign-in that this browser has begun")
    # The attempt is still good; then it is used up.
    page.open(address)
    at_home(page, "ann-1")
    page.open(address)
    page.reads("This does not belong to a sign-in that this browser has begun")
    page.check()


def test_a_code_that_was_used_and_an_attempt_that_took_too_long_are_told(tab, server):
    page = tab()
    page.expected += ["400"]
    page.visit()
    page.press("Sign in with Example")
    page.await_value("document.title === 'Provider'")
    address = callback(page, server)
    server.provider.codes.clear()
    page.open(address)
    page.reads("no longer accepts the code")
    page.check()
    server.provider.signed_in_at = None
    # As if the browser had kept its attempt for an hour. What goes to the provider is made of all of it.
    page.press("Sign in with Example")
    page.await_value("document.title === 'Provider'")
    address = callback(page, server)
    cookie = next(one for one in page.browser.call("Storage.getCookies")["cookies"] if one["name"] == "belfry-oidc")
    parts = cookie["value"].split(".")
    parts[1] = str(int(parts[1]) - 3600)
    value = ".".join(parts)
    page.call("Network.setCookie", name="belfry-oidc", value=value, url=server.address)
    state = b64(hashlib.sha256(f"state\n{value}".encode()).digest())
    page.open(re.sub("state=[^&]*", "state=" + state, address))
    page.reads("longer than ten minutes")
    page.check()


def test_nobody_is_led_away_from_the_portal(tab, server):
    page = tab()
    for to in ("https://example.com/", "//example.com/", "/\\example.com", "javascript:alert(1)", "/shop"):
        server.provider.signed_in_at = int(time.time())
        page.visit("sign-in")
        page.run(f"location.assign('/$portal/oidc/start?to=' + encodeURIComponent({to!r}))")
        page.await_value("location.pathname === '/$portal/'")
        at_home(page, "ann-1")
        page.press("Sign out", within="document.querySelector('#bar')")
        page.await_value("location.pathname === '/$portal/sign-in'")


def test_what_is_to_be_deleted_is_confirmed_at_the_provider_in_a_tab_of_its_own(tab, server):
    page = tab()
    page.expected += ["403", "404"]
    through_provider(page)
    at_home(page, "ann-1")
    install(page, "confirmed")
    # Signed in at the provider long ago: it must ask again.
    server.provider.signed_in_at = int(time.time()) - 7200
    long_ago(server, "confirmed_at", 7200)
    page.visit("hub/shop/devices/confirmed")
    page.settle()
    page.press("Delete this device")
    page.press("Delete")
    page.reads("Confirm your identity again")
    page.check()
    # A provider that does not ask confirms nothing.
    server.provider.asks_again = False
    page.click("dialog[open]:last-of-type a.as-button")
    tab_of_provider = page.opened()
    tab_of_provider.await_value("document.body?.innerText.includes('nothing was confirmed')")
    tab_of_provider.close()
    assert page.run("document.querySelectorAll('dialog').length") == 2
    server.provider.asks_again = True
    page.click("dialog[open]:last-of-type a.as-button")
    tab_of_provider = page.opened()
    tab_of_provider.await_value("document.title === 'Provider'")
    tab_of_provider.run("document.querySelector('button').click()")
    page.await_value("location.pathname === '/$portal/hub/shop/devices'")
    tab_of_provider.await_value("document.body.innerText.includes('Close this tab')")
    assert page.run(
        "fetch('/shop/installations/confirmed?api-version=2020-06').then((reply) => reply.status)"
    ) == 404
    page.check()


# --- belfry up -----------------------------------------------------------------------------------


def test_up_knows_the_browser_that_was_shown_its_whole_address_and_no_other(browser_pair):
    known, stranger_ = browser_pair
    running = Belfry("up", "--port", "0")
    try:
        whole = running.addresses["portal"]
        bare, _, key = whole.partition("#key=")
        assert len(key) >= 20
        stranger_page = PortalPage.of(stranger_, bare)
        stranger_page.expected += ["401"]
        stranger_page.visit()
        stranger_page.reads("Open the portal once with the complete address")
        stranger_page.check()
        page = known.page()
        page.expected = []
        page.open(running.addresses["hub"]["url"] + "/#key=" + key)
        page.await_value("document.querySelector('.who') !== null")
        # The key is in no address any more, and no script can read it.
        assert page.run("location.href") == bare
        assert key not in page.run("document.cookie + JSON.stringify({ ...sessionStorage, ...localStorage })")
        page.open(running.addresses["hub"]["url"] + "/")
        page.await_value("document.querySelector('.who') !== null")
        apps = "fetch('/$portal/emulator/v1/apps', { headers: { 'Belfry-Portal-Half': %s } }).then((reply) => reply.status)"
        assert page.run(apps % "localStorage['belfry.local']") == 200
        assert page.complaints() == []
        # All that another port of this machine is sent.
        cookies = page.browser.call("Storage.getCookies")["cookies"]
        assert len(cookies) == 1 and cookies[0]["httpOnly"] and key not in cookies[0]["value"]
        assert page.run("localStorage['belfry.local']") != cookies[0]["value"]
        reply = requests.get(
            bare + "local", headers={"Sec-Fetch-Site": "same-origin"}, timeout=20,
            cookies={cookies[0]["name"]: cookies[0]["value"]},
        )
        assert reply.status_code == 401 and "Endpoint" not in reply.text
        # What a tunnel lets in: the same address, without the cookie.
        reply = requests.get(
            bare + "local", headers={"Sec-Fetch-Site": "same-origin"}, timeout=20
        )
        assert reply.status_code == 401 and "Endpoint" not in reply.text
    finally:
        running.stop()


@pytest.fixture
def browser_pair():
    pair = chromium.Chromium(), chromium.Chromium()
    yield pair
    for browser in pair:
        browser.stop()


# --- Copied sends --------------------------------------------------------------------------------

HOSTILE = [
    "@/etc/passwd", "-", "/etc/passwd", "$(touch pwned)", "`id`", "it's \\ \"quoted\" %s", "{\n \"a\": 1\n}", " {}",
    "a\r\nb", "\"\"start", "\\(code)", "#\"", "--data-binary", "\u202eevil",
]


@pytest.mark.parametrize("body", HOSTILE)
def test_what_is_copied_sends_the_payload_as_it_is(tab, body):
    """The shell runs it, with `curl` and `belfry` that only tell what they were given."""
    page = tab()
    page.visit("sign-in")
    send = {"hub": "shop", "format": "windows", "body": body, "headers": {"X-WNS-Type": "wns/raw"}, "tags": "a && b"}
    curl, command, swift = page.run(
        f"import('/$portal/copyas.js').then(({{ curl, command, swift }}) => [curl, command, swift].map((make) => make({json.dumps(send)})))"
    )

    def given(script):
        stand_ins = """
          curl() { printf '%s\\0' "$@"; }
          belfry() { [ "$1" = sas ] && return; printf '%s\\0' "$@"; for word; do [ "$word" != - ] || { printf 'stdin='; cat; printf '\\0'; }; done; }
        """
        done = subprocess.run(["bash", "-c", stand_ins + script], capture_output=True, check=True, timeout=30, stdin=subprocess.DEVNULL)
        return done.stdout.decode().split("\0")[:-1]

    words = given(curl)
    assert words[words.index("--data-raw") + 1] == body
    words = given(command)
    value = words[words.index("--wns") + 1]
    # What belfry takes for a text and for no file: see TextInput.
    assert value == body if body[0] in "{[<" else value == "-" and f"stdin={body}" in words
    assert "touch pwned" not in swift or '"$(touch pwned)"' in swift
    literal = re.search(r'body: Data\((#*"(?:.|\n)*"#*)\.utf8\)', swift)[1]
    hashes = re.match("#*", literal)[0]
    inner = literal[len(hashes):len(literal) - len(hashes)]
    if inner.startswith('"""\n'):
        assert inner[4:-4] == body
    elif hashes or "\\" not in inner:
        assert inner[1:-1] == body and f'"{hashes}' not in inner[1:-1] and f"\\{hashes}" not in inner[1:-1]
    else:
        text = re.sub(r"\\u\{([0-9a-f]+)\}", lambda match: chr(int(match[1], 16)), inner[1:-1])
        assert text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\") == body


# --- The texts of messages -----------------------------------------------------------------------


def push(page, text, hub="shop"):
    """A push to a tag that no device has, made by the page's own session; its id."""
    return page.run(
        f"""fetch('/{hub}/messages?api-version=2020-06', {{ method: 'POST',
          headers: {{ 'Content-Type': 'application/json', 'ServiceBusNotification-Format': 'apple', 'ServiceBusNotification-Tags': 'early-birds' }},
          body: JSON.stringify({{ aps: {{ alert: {{ title: {json.dumps(text)} }} }} }}) }})
            .then((reply) => reply.headers.get('Location').split('?')[0].split('/').at(-1))"""
    )


def test_who_reads_a_message_stands_in_the_activity_log_once(tab):
    page = tab()
    sign_in(page, "ann")
    at_home(page, "ann")
    id = push(page, "Doors open at nine")
    for _ in range(2):
        page.visit(f"hub/shop/notifications/{id}")
        page.await_value("document.querySelector('h1').innerText.includes('Doors open at nine')")
    page.visit("hub/shop/activity?action=readText")
    page.await_value("document.querySelector('tbody tr') !== null")
    rows = page.run("[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)")
    assert len([row for row in rows if "user/ann" in row and id[:8] in row]) == 1, rows
    page.check()


def test_of_a_text_that_is_not_kept_a_new_message_is_written_to_the_same_people(tab):
    with tempfile.TemporaryDirectory(prefix="belfry-operators-") as data:
        running = Belfry("serve", "--data", data, "--port", "0", "--keep-message-text", "off")
        try:
            belfry("hub", "create", "shop", data=data)
            belfry("operator", "add", "ann", "--roles", "*=manager", "--password-file", "-", data=data, stdin=PASSWORD)
            page = PortalPage.of(tab().browser, running.addresses["url"] + "/$portal/")
            sign_in(page, "ann")
            at_home(page, "ann")
            id = push(page, "Doors open at nine")
            page.visit(f"hub/shop/notifications/{id}")
            assert page.run("document.querySelector('h1').innerText").startswith("Text not kept")
            page.reads("The payload is no longer stored.")
            page.press("Use again")
            page.await_value("location.pathname.endsWith('/compose') && document.querySelector('.dock .main') !== null")
            page.settle()
            assert "Doors open" not in page.shown()
            page.reads("No device has the tag early-birds.")
            assert page.run("[...document.querySelectorAll('.fields textarea, .fields input')].every((box) => box.value === '')")
            # It cannot be sent as it is.
            page.press("Dry run")
            page.reads("Write a title or a text.")
            page.check()
            page.visit("hub/shop/activity?action=readText")
            page.reads("Nothing has been changed or sent")
            page.check()
        finally:
            running.stop()
