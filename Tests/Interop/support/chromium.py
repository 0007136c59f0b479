"""Chromium without a window, driven over the DevTools protocol: no package, a pipe."""

import base64
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

BINARY = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

FLAGS = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--window-size=900,1200",
    # A container's root has no user namespaces to build the sandbox of.
    *(["--no-sandbox"] if sys.platform == "linux" and os.geteuid() == 0 else []),
]


class ScriptError(Exception):
    """What a script in the page threw."""


class Chromium:
    """One browser with a profile of its own. Messages end in a zero byte (`--remote-debugging-pipe`)."""

    def __init__(self, *flags):
        self._profile = tempfile.TemporaryDirectory(
            prefix="belfry-chromium-", ignore_cleanup_errors=True
        )
        self._log = open(os.path.join(self._profile.name, "log"), "w+b")
        to_browser, self._to_browser = os.pipe()
        self._from_browser, from_browser = os.pipe()
        # Out of the way of 3 and 4, which the pipe's ends are called in the browser.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_browser, from_browser)]

        def name_ends():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [BINARY, *FLAGS, *flags, f"--user-data-dir={self._profile.name}/profile"]
            + ["about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(3, 4),
            preexec_fn=name_ends,
            start_new_session=True,
        )
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._numbers = 0
        self._answers = {}
        self._events = []
        self._ended = False
        # Addresses with a key that it has been shown.
        self.known = set()
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        rest = b""
        with open(self._from_browser, "rb", buffering=0) as pipe:
            while data := pipe.read(1 << 16):
                *whole, rest = (rest + data).split(b"\0")
                with self._news:
                    for text in whole:
                        message = json.loads(text)
                        if "id" in message:
                            self._answers[message["id"]] = message
                        else:
                            self._events.append(message)
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def call(self, method, session=None, limit=60, **parameters):
        """Calls a method of the protocol; `session` is a target's, else it is the browser's own."""
        with self._news:
            self._numbers += 1
            number = self._numbers
            message = {"id": number, "method": method, "params": parameters}
            if session:
                message["sessionId"] = session
            os.write(self._to_browser, json.dumps(message).encode() + b"\0")
            found = self._news.wait_for(
                lambda: self._ended or number in self._answers, timeout=limit
            )
            answer = self._answers.pop(number, None)
        assert found and answer, f"{method}: no answer within {limit} s; {self.log()}"
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def events(self, method, session=None):
        with self._news:
            return [
                event["params"]
                for event in self._events
                if event["method"] == method and session in (None, event.get("sessionId"))
            ]

    def log(self, lines=20):
        self._log.flush()
        with open(self._log.name, errors="replace") as log:
            return "\n".join(log.read().splitlines()[-lines:])

    def attach(self, target):
        return self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def page(self):
        """A new tab; it opens nothing yet."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, target, self.attach(target))

    def stop(self):
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close", limit=5)
        with contextlib.suppress(OSError):
            os.close(self._to_browser)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # A session of its own.
            self._process.wait()
        self._reader.join(5)
        self._log.close()
        self._profile.cleanup()


class Page:
    """A tab, and what went wrong in it."""

    def __init__(self, browser, target, session):
        self.browser = browser
        self.target = target
        self.session = session
        # Parts of complaints that a test brings about on purpose.
        self.expected = []
        for domain in ("Page", "Runtime", "Log", "Network", "ServiceWorker", "Audits"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        return self.browser.call(method, session=self.session, **parameters)

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.await_value("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script, gesture=False):
        """The value of an expression; a promise is waited for.

        `gesture`: as if somebody had clicked.
        """
        answer = self.call(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            userGesture=gesture,
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise ScriptError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def await_value(self, script, limit=20):
        """The expression's first value that is true; the page may be replaced meanwhile."""
        deadline = time.monotonic() + limit
        value = None
        while time.monotonic() < deadline:
            try:
                value = self.run(script)
            except (ScriptError, AssertionError) as error:
                value = error
            if value and not isinstance(value, Exception):
                return value
            time.sleep(0.03)
        raise AssertionError(f"not within {limit} s: {script}\nlast: {value!r}\n{self.describe()}")

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''").strip()

    def click(self, selector):
        """A click as by a mouse, in the middle of the element, that the page may take for a gesture."""
        box = self.run(
            f"""(() => {{
              const element = document.querySelector({json.dumps(selector)});
              element.scrollIntoView({{ block: 'center' }});
              const {{ x, y, width, height }} = element.getBoundingClientRect();
              return [x + width / 2, y + height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind, x=box[0], y=box[1], button="left", clickCount=1,
            )

    def key(self, name, code=None, text=None):
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind, key=name, code=code or name,
                **({"text": text} if text and kind == "keyDown" else {}),
                windowsVirtualKeyCode={"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}.get(name, 0),
            )

    def complaints(self):
        """What stands in the console as an error or a warning, exceptions, refused resources."""
        found = []
        for event in self.browser.events("Runtime.exceptionThrown", self.session):
            found.append(event["exceptionDetails"].get("exception", {}).get("description"))
        for event in self.browser.events("Runtime.consoleAPICalled", self.session):
            if event["type"] in ("error", "warning", "assert"):
                found.append(" ".join(str(item.get("value")) for item in event["args"]))
        for event in self.browser.events("Log.entryAdded", self.session):
            entry = event["entry"]
            # A preload that is used late shows how busy this machine is.
            if "preloaded using link preload" in entry["text"]:
                continue
            if entry["level"] in ("error", "warning"):
                found.append(f"{entry['text']} {entry.get('url', '')}")
        for event in self.browser.events("Audits.issueAdded", self.session):
            issue = event["issue"]
            if issue["code"] == "ContentSecurityPolicyIssue":
                found.append(json.dumps(issue["details"]))
        return [text for text in found if not any(part in (text or "") for part in self.expected)]

    def describe(self):
        with contextlib.suppress(Exception):
            return f"status: {self.text('#status')}\nconsole: {self.complaints()}"
        return ""

    def screenshot(self, path, scheme="light"):
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data["data"]))

    def opened(self, limit=20):
        """The tab that this one has opened."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            for target in self.browser.call("Target.getTargets")["targetInfos"]:
                if target["type"] == "page" and target.get("openerId") == self.target:
                    return type(self)(self.browser, target["targetId"], self.browser.attach(target["targetId"]))
            time.sleep(0.03)
        raise AssertionError(f"no tab was opened\n{self.describe()}")

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
