"""Starts `belfry` as a child process, and ends it for certain."""

import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading

BINARY = os.environ.get("BELFRY_BINARY", "")


def _end_with_parent():
    """On Linux the kernel ends the child should the tests be killed (prctl, PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Belfry:
    """A `belfry` that serves. Its first line is JSON and says where (`addresses`)."""

    def __init__(self, *words, environment=None, limit=30):
        """`limit`: seconds it may take to come up."""
        self.name = "belfry " + words[0]
        self._directory = tempfile.TemporaryDirectory(prefix="belfry-interop-")
        self._log = open(pathlib.Path(self._directory.name) / "log", "w+b")
        self.process = subprocess.Popen(
            [BINARY, *words, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # Without the note in the user's home, by which commands find a running Belfry.
            env={**os.environ, "BELFRY_HOME": self._directory.name, **(environment or {})},
            preexec_fn=_end_with_parent,
        )
        try:
            self._lines = queue.Queue()
            threading.Thread(target=self._read, daemon=True).start()
            self.addresses = self.line(limit)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def line(self, limit=20):
        """The next line of its output, read as JSON."""
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            line = b""
        if not line:
            raise AssertionError(
                f"{self.name} said nothing within {limit} s, but for:\n{self.log()}"
            )
        return json.loads(line)

    def log(self, lines=40):
        """The end of what it wrote to standard error."""
        self._log.flush()
        text = pathlib.Path(self._log.name).read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def assert_alive(self):
        code = self.process.poll()
        assert code is None, f"{self.name} ended with {code}; it said:\n{self.log()}"

    def resident_bytes(self):
        """Its memory now; `None` where the system does not tell."""
        try:
            text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return None
        return next(int(l.split()[1]) * 1024 for l in text.splitlines() if l.startswith("VmRSS"))

    def kill(self):
        """Ends one that is no server, in whatever state it is."""
        self.process.kill()
        self.process.wait()
        self._log.close()
        self._directory.cleanup()

    def stop(self):
        """Ends it. It must have lived until now, and must end in an orderly way."""
        ended = self.process.poll()
        log = self.log
        try:
            if ended is None:
                self.process.terminate()
                try:
                    self.process.wait(20)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
                    raise AssertionError(f"{self.name} did not end within 20 s:\n{log()}")
            assert ended is None, f"{self.name} ended early with {ended}:\n{log()}"
            code = self.process.returncode
            assert code == 0, f"{self.name} ended with {code} on SIGTERM:\n{log()}"
        finally:
            self._log.close()
            self._directory.cleanup()
