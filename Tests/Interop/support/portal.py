"""The portal in Chromium: opening its pages, using them as a person does, and what must hold of each."""

import base64
import importlib.util
import json
import mimetypes
import os
import pathlib
import threading

from support import chromium

FILES = pathlib.Path(__file__).parents[3] / "Sources/HubServer/Portal/Files"
# So that the pages can be worked on without building Belfry for each change: the browser gets the files as
# they lie in the repository, under the headers that Belfry sends.
FROM_REPOSITORY = bool(os.environ.get("PORTAL_FILES"))

WIDE = (1280, 860)
PHONE = (390, 844)


def axe():
    """The rules of axe, which the test driver puts into the page; the product knows nothing of it."""
    place = importlib.util.find_spec("axe_core_python").origin
    return (pathlib.Path(place).parent / "axe.min.js").read_text()


class PortalPage(chromium.Page):
    """A tab with the portal."""

    @classmethod
    def of(cls, browser, address, language="en"):
        """`address`: of the portal, with its slash, and with the key that makes a browser known if it has one."""
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        page = cls(browser, target, browser.attach(target))
        page.address, _, key = address.partition("#")
        page.call("Emulation.setLocaleOverride", locale=language)
        page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source=f"localStorage.setItem('belfry.language', '{language}')",
        )
        page.size(*WIDE)
        if FROM_REPOSITORY:
            page._serve_repository()
        if key and address not in browser.known:
            page.visit("sign-in#" + key)
            browser.known.add(address)
        return page

    def size(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )

    def scheme(self, name):
        self.call(
            "Emulation.setEmulatedMedia",
            features=[
                {"name": "prefers-color-scheme", "value": name},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ],
        )

    def _serve_repository(self):
        self.call(
            "Fetch.enable", patterns=[{"urlPattern": "*/$portal/*", "requestStage": "Response"}]
        )
        threading.Thread(target=self._fulfil, daemon=True).start()

    def _fulfil(self):
        done = 0
        while True:
            with self.browser._news:
                self.browser._news.wait(0.2)
                if self.browser._ended:
                    return
                events = [
                    event["params"]
                    for event in self.browser._events
                    if event["method"] == "Fetch.requestPaused"
                    and event.get("sessionId") == self.session
                ]
            for event in events[done:]:
                done += 1
                try:
                    self._answer(event)
                except AssertionError:
                    pass  # The page has gone on meanwhile.

    def _answer(self, event):
        path = event["request"]["url"].split("/$portal/", 1)[-1].split("?")[0].split("#")[0]
        file = FILES / path
        is_page = event["resourceType"] == "Document"
        # What the server says itself of a sign-in at a provider.
        if path.startswith("oidc/") or not is_page and not (path and file.is_file()):
            return self.call("Fetch.continueRequest", requestId=event["requestId"])
        if is_page:
            file = FILES / "portal.html"
        drop = {"content-length", "content-type", "etag"}
        headers = [
            header for header in event.get("responseHeaders", []) if header["name"].lower() not in drop
        ]
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        headers.append({"name": "Content-Type", "value": f"{kind}; charset=utf-8"})
        self.call(
            "Fetch.fulfillRequest",
            requestId=event["requestId"], responseCode=200, responseHeaders=headers,
            body=base64.b64encode(file.read_bytes()).decode(),
        )

    # --- Going about -------------------------------------------------------------------------

    def visit(self, path="", settles=True):
        """Opens a page by its address, as a bookmark does."""
        self.open(self.address + path)
        self.await_value("document.documentElement.dataset.ready !== undefined", limit=30)
        if settles:
            self.settle()

    SETTLED = (
        "document.querySelector('main :is(h1, [role=alert])') !== null"
        " && !document.querySelector('main .skeleton, main [aria-busy=true], dialog [aria-busy=true]')"
    )

    def settle(self, limit=30):
        """Waits until nothing is being loaded."""
        self.await_value(self.SETTLED, limit)

    # What is in front: behind a dialog nothing can be pressed.
    FRONT = "[...document.querySelectorAll('dialog[open]')].at(-1) ?? document.querySelector('main')"

    def press(self, text, within=FRONT):
        """Presses the button or link that reads so, once it can be pressed and nothing covers it."""
        self.await_value(
            f"""(() => {{
              const node = {self._find(text, within)};
              if (!node) return false;
              node.scrollIntoView({{ block: 'center' }});
              const {{ x, y, width, height }} = node.getBoundingClientRect();
              const front = document.elementFromPoint(x + width / 2, y + Math.min(height, innerHeight) / 2);
              if (!front || !(node.contains(front) || front.contains(node))) return false;
              node.click();
              return true;
            }})()"""
        )

    @staticmethod
    def _find(text, within):
        return (
            f"[...({within}).querySelectorAll('button, a, summary, label, [role=button]')].filter((node) => node.checkVisibility())"
            f".find((node) => (node.innerText.trim() === {json.dumps(text)} || node.getAttribute('aria-label') === {json.dumps(text)}) && !node.disabled && node.getAttribute('aria-busy') !== 'true')"
        )

    def fill(self, label, value, within=FRONT):
        """Types into the field of this label."""
        self.await_value(
            f"""(() => {{
              const labels = [...({within}).querySelectorAll('label')].filter((node) => node.innerText.trim() === {json.dumps(label)} && node.checkVisibility());
              const control = labels.at(-1)?.control;
              if (!control) return false;
              control.focus();
              control.value = {json.dumps(value)};
              control.dispatchEvent(new Event('input', {{ bubbles: true }}));
              control.dispatchEvent(new Event('change', {{ bubbles: true }}));
              return true;
            }})()"""
        )

    def shown(self):
        """What a person reads, the dialog in front first."""
        return self.run(f"({self.FRONT}).innerText")

    def reads(self, text, limit=20):
        """Waits until this stands on the page."""
        self.await_value(f"document.body.innerText.includes({json.dumps(text)})", limit)

    def describe(self):
        try:
            return f"at {self.run('location.pathname')}\n{self.shown()[:1500]}\nconsole: {self.complaints()}"
        except Exception as error:  # The description of a failure must not hide it.
            return str(error)

    # --- What must hold ----------------------------------------------------------------------

    def accessibility(self):
        """What the rules of axe (WCAG 2.2 AA) find wrong, each with the elements."""
        if not self.run("typeof axe !== 'undefined'"):
            # Through the driver, which Trusted Types and the policy do not hold back.
            self.call("Runtime.evaluate", expression=axe())
        results = self.run(
            """axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'] })
                 .then(({ violations }) => violations.map((one) => [one.id, one.help, one.nodes.slice(0, 5).map((node) => node.html.slice(0, 200) + ' ' + (node.any[0]?.message ?? ''))]))"""
        )
        return results

    def overflow(self):
        """By how many pixels the page is wider than its window."""
        return self.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def check(self):
        """No script error, no word that a policy refused, no rule of accessibility broken."""
        complaints = self.complaints()
        assert complaints == [], complaints
        broken = self.accessibility()
        assert broken == [], json.dumps(broken, indent=1)
        assert self.overflow() <= 0, f"wider than the window by {self.overflow()}\n{self.describe()}"

    def picture(self, path, whole=True):
        """The page, or what of it the window shows."""
        # Until the window is drawn as it was set.
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        height = min(self.run("document.documentElement.scrollHeight"), 2600) if whole else 0
        width = self.run("innerWidth")
        data = self.call(
            "Page.captureScreenshot", captureBeyondViewport=True,
            **({"format": "png"} if str(path).endswith(".png") else {"format": "webp", "quality": 72}),
            clip={"x": 0, "y": 0, "width": width, "height": max(height, self.run("innerHeight")), "scale": 1},
        )
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).write_bytes(base64.b64decode(data["data"]))
