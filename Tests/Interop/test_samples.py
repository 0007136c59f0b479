"""The samples of docs/guides/languages.md against a running hub: each registers a phone of the stand-in, sends, and
the phone has got it. Go and Java compile first, which takes its time."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from support.process import BINARY

EXAMPLES = pathlib.Path(__file__).parents[2] / "Examples"
SAMPLES = {
    "Python": ["python3", "Python/push.py"],
    "Node": ["node", "Node/push.mjs"],
    "Go": ["go", "run", "Go/push.go"],
    "PHP": ["php", "PHP/push.php"],
    "Java": ["java", "Java/Push.java"],
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("language", SAMPLES)
def test_samples(stack, tmp_path, language):
    words = SAMPLES[language]
    if not shutil.which(words[0]):
        pytest.skip(f"there is no {words[0]}")
    app = next(app for app in stack.emulator.get("apps")["apps"] if app["pns"] == "apns")
    device = stack.emulator.make_device(app)
    hub = stack.addresses["hub"]
    message = f'Hello from {language}, "quoted" and ünïcode'
    ended = subprocess.run(
        [*words, message], cwd=EXAMPLES, capture_output=True, text=True, timeout=220,
        env={**os.environ, "BELFRY_CONNECTION_STRING": hub["connectionStrings"]["full"], "BELFRY_HUB": hub["name"],
             "DEVICE_TOKEN": device["handle"]["token"], "GOCACHE": str(tmp_path), "GOFLAGS": "-mod=mod",
             "GO111MODULE": "off"})
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert (said["state"], said["outcomes"]) == ("Completed", {"Success": "1"})
    got = stack.emulator.await_notifications(device)
    assert [one["payload"]["aps"]["alert"] for one in got] == [message]


TESTING = {
    "Python": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
    "Node": ["node", "--test"],
    "Swift": ["swift", "test"],
}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("language", TESTING)
def test_samples_of_testing(tmp_path, language):
    """Those of docs/testing.md start an emulator of their own."""
    words = TESTING[language]
    for program in (words[0], "curl"):
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")
    if language == "Swift":
        words = [*words, "--scratch-path", tmp_path / "build"]
    ended = subprocess.run(
        words, cwd=EXAMPLES / "Testing" / language, capture_output=True, text=True, timeout=390,
        env={**os.environ, "BELFRY": BINARY, "BELFRY_HOME": str(tmp_path)})
    assert ended.returncode == 0, ended.stdout + ended.stderr
