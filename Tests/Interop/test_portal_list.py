"""The list of notifications in Chromium: what they say first, and the search for it. Fixtures are those of
test_portal.py."""

import json
import time

import pytest

from support.portal import PHONE, WIDE, PortalPage
from test_portal import add_phones, address, browser, hub, portal, pytestmark, send  # noqa: F401

ROW = "[...document.querySelectorAll('.rows > li')].find((row) => row.innerText.includes({}))"


def row(portal, text):
    portal.await_value(f"{ROW.format(json.dumps(text))} !== undefined")
    return portal.run(f"{ROW.format(json.dumps(text))}.innerText")


def send_native(hub, body, tags, headers=None):
    return hub.call(
        "POST", "messages",
        {"ServiceBusNotification-Format": "apple", "ServiceBusNotification-Tags": tags, "Content-Type": "application/json", **(headers or {})},
        json.dumps(body).encode(),
    )


def test_a_row_says_what_whom_what_came_of_it_and_who_sent_it(portal, hub, stack):
    devices = add_phones(hub, stack.emulator, count=2, tags=("rows",))
    send_native(hub, {"aps": {"alert": {"title": "Your <weekend> list", "body": "Twelve new finds"}}}, "rows && !muted")
    for device in devices:
        stack.emulator.await_notifications({"deviceId": device}, 1)
    portal.visit("hub/demo/notifications")
    portal.await_value(f"{ROW.format(json.dumps('Your <weekend> list'))}?.innerText.includes('2 of 2')", limit=30)
    words = row(portal, "Your <weekend> list")
    for part in ("Twelve new finds", "rows && !muted", "2 devices", "2 of 2", "Full access key"):
        assert part in words, (part, words)
    portal.check()
    # The row is one link, named by what it says.
    portal.run(f"{ROW.format(json.dumps('Your <weekend> list'))}.querySelector('a').click()")
    portal.await_value("location.pathname.includes('/notifications/')")


def test_a_text_is_found_and_marked_and_the_search_is_in_the_address(portal, hub, browser):
    send_native(hub, {"aps": {"alert": {"title": "Ölmarkt öffnet", "body": "um neun"}}}, "markets")
    send(hub, "Something else", "others")
    portal.visit("hub/demo/notifications")
    portal.await_value("document.querySelector('.rows') !== null")
    portal.run("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }))")
    portal.await_value("document.activeElement.type === 'search'")
    portal.call("Input.insertText", text="öLMARKT")
    portal.await_value("document.querySelector('mark')?.innerText === 'Ölmarkt' && document.querySelectorAll('.rows > li').length === 1")
    portal.check()
    other = PortalPage.of(browser, portal.run("location.href"))
    other.visit()
    assert "Ölmarkt" in row(other, "öffnet")
    other.close()
    portal.run("(() => { const box = document.activeElement; box.value = 'markets'; box.dispatchEvent(new Event('input', { bubbles: true })); })()")
    row(portal, "Ölmarkt")
    portal.run("(() => { const box = document.activeElement; box.value = 'said by nobody'; box.dispatchEvent(new Event('input', { bubbles: true })); })()")
    portal.reads("No notification says “said by nobody”")
    portal.check()


def test_of_a_sealed_message_and_a_silent_push_nothing_is_said(portal, hub):
    send_native(hub, {"aps": {"alert": "For your eyes"}, "secureId": "i", "sealed": "c2VjcmV0"}, "quiet")
    send_native(hub, {"aps": {"content-available": 1}, "refresh": "scores"}, "quiet", {"apns-push-type": "background", "apns-priority": "5"})
    portal.visit("hub/demo/notifications?tag=quiet")
    row(portal, "Sealed message")
    row(portal, "Silent push")
    assert "For your eyes" not in portal.shown()
    portal.visit("hub/demo/notifications?q=your+eyes")
    portal.reads("No notification says")


def test_what_is_coming_stands_above_and_a_person_is_a_person(portal, hub):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
    hub.call(
        "POST", "schedulednotifications",
        {"ServiceBusNotification-Format": "template", "ServiceBusNotification-Tags": "$UserId:{ann}", "ServiceBusNotification-ScheduleTime": at, "Content-Type": "application/json"},
        json.dumps({"title": "Monday starts well", "message": "Three recipes"}).encode(),
    )
    send(hub, "Already sent", "rows2")
    portal.visit("hub/demo/notifications")
    words = row(portal, "Monday starts well")
    assert "A person" in words and "Scheduled" in words, words
    assert portal.run("document.querySelector('.sheet h2').innerText") == "Coming"
    portal.press("Scheduled", within="document.querySelector('.find')")
    portal.await_value("location.search === '?state=Scheduled' && [...document.querySelectorAll('.rows > li')].every((row) => row.innerText.includes('Scheduled'))")
    portal.check()


@pytest.mark.parametrize("language", ["en", "fr", "zh"])
def test_the_list_fits_every_width(browser, address, hub, language):
    send(hub, "A text that is long enough to be cut off on a narrow screen, and then some more of it", "wide || " + "t" * 60)
    page = PortalPage.of(browser, address, language)
    for width in (320, PHONE[0], 768, WIDE[0]):
        page.size(width, 844)
        page.visit("hub/demo/notifications")
        for scheme in ("light", "dark"):
            page.scheme(scheme)
            page.check()
    page.close()


def test_a_theme_is_chosen_and_kept_and_the_system_decides_again(browser, address):
    page = PortalPage.of(browser, address)
    page.scheme("light")
    page.visit("hub/demo/notifications")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.run(ground)
    theme = "document.querySelector('#bar .theme')"
    for name, size in (("light", WIDE), ("dark", PHONE)):
        page.run(f"{theme}.click()")
        page.await_value(f"{theme}.getAttribute('aria-label') === 'Theme: {name}'")
        page.size(*size)
        page.check()
    dark = page.run(ground)
    assert dark != light
    page.visit("hub/demo/devices")
    assert page.run(ground) == dark
    page.run(f"{theme}.click()")
    page.await_value(f"{ground} === {json.dumps(light)} && {theme}.getAttribute('aria-label') === 'Theme: as the system'")
    assert page.run("localStorage.getItem('belfry.theme')") is None
    page.close()
