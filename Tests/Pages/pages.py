"""Does what the pages of docs/ tell: every ```sh block of a page, in order, in one shell that ends at the first failure.

Each page is followed in bash and in zsh, which read what they run as if it were pasted at their prompt: the shell of a
Mac takes no remark behind a command there. A block after a paragraph with "a terminal of its own" is started beside the
others, and the next one waits until it serves or, for a phone, until it has registered. Each page has an empty directory
and, on Linux, a network of its own, so that the ports that a page names are free.

A page for machines of its own (Packaging/check/first-day) is not run here: with --machine N what it says under the Nth
heading "On the … machine" is printed as a script that says each command before its answer, as a terminal shows it.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [
    "docs/get-started.md", "docs/testing.md", "docs/emulator.md",
    "docs/tutorials/push-to-an-ios-app.md", "docs/tutorials/secure-push.md",
    "docs/guides/from-azure.md", "docs/guides/from-pinpoint.md", "docs/guides/from-gorush.md",
    "docs/guides/from-onesignal.md", "docs/guides/from-a-list-of-tokens.md",
    "docs/guides/device-android.md", "docs/guides/device-browser.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs/recipes").glob("[!R]*.md")),
]
BLOCK = re.compile(r"(?ms)^( *)```sh\n(.*?)^ *```$")
BESIDE = "a terminal of its own"
# What reads a script as a person's prompt does. Plain bash takes remarks at its prompt, too, and -i would only add noise.
SHELLS = {"bash": ["bash", "-s"], "zsh": ["zsh", "-f", "-i", "+m", "+Z", "-o", "no_prompt_sp", "-s"]}
MACHINE = re.compile(r"(?m)^## On the \w+ machine$")
# One command of a block: with the lines that it goes on over, and its document.
COMMAND = re.compile(r"(?m)^(?:.*\\\n)*.*<<'(\w+)'.*\n(?:.*\n)*?\1\n|^(?:.*\\\n)*.*\n")

# Seconds for a page.
LIMIT = 180
# Exit code of a shell that has run the whole page: a command that reads the rest of it as its input must not pass.
DONE = 42

PROLOGUE = r"""
set -euo pipefail
if [ -n "${PAGES_NETWORK:-}" ]; then ip link set lo up; fi
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; wait' EXIT
waits() (
  set +x
  name=$1 log=$2; shift 2
  for _ in $(seq 1200); do
    if "$@" >/dev/null 2>&1; then return; fi
    kill -0 "${started[-1]}" 2>/dev/null || { echo "$name has ended:" >&2; cat "$log" >&2; exit 1; }
    sleep 0.1
  done
  echo "$name did not come up:" >&2; cat "$log" >&2; exit 1
)
"""


def beside(number, block):
    """Starts what is to run in a terminal of its own. `waits` asks COMMAND until it succeeds: NAME FILE COMMAND..."""
    command = block.strip()
    if "\n" in command:
        sys.exit(f"pages: what runs in a terminal of its own has to stand alone in its block:\n{block}")
    log = f"terminal-{number}"
    if command.startswith("belfry phone"):
        wait = f"grep -q waiting.for.notifications {log}"
    elif command.startswith("belfry up"):
        wait = f"grep -q SharedAccessKey {log}"
    elif command.startswith("belfry emulator"):
        wait = f"grep -q CA {log}"
    else:
        port = re.search(r"--port (\d+)", command)
        wait = f"curl -fsS http://127.0.0.1:{port[1] if port else 8080}/health/ready"
    return f"{command} >{log} 2>&1 &\nstarted+=($! )\nwaits {shlex.quote(command)} {log} {wait}\n"


def blocks(text):
    """The blocks of a page, each with whether it is for a terminal of its own, as the paragraph before it says."""
    for match in BLOCK.finditer(text):
        before = text[:match.start()].rstrip("\n").rpartition("\n\n")[2]
        yield match[2], BESIDE in " ".join(before.split())


def script(page):
    text = PROLOGUE + "set -x\n"
    found = list(blocks((ROOT / page).read_text()))
    if not found:
        sys.exit(f"pages: {page} has nothing to run")
    for number, (block, apart) in enumerate(found):
        text += beside(number, block) if apart else block
    return text, len(found)


def transcript(page, machine):
    """The script of one machine. What a terminal of its own has shown stands at the end."""
    text, ends = PROLOGUE, ""
    for number, (block, apart) in enumerate(blocks(MACHINE.split((ROOT / page).read_text())[machine])):
        for command in COMMAND.finditer(block):
            text += f"printf '$ %s\\n' {shlex.quote(command[0].rstrip())}\n"
            text += beside(number, command[0]) if apart else command[0]
            if apart:
                name = " ".join(command[0].split()[:2])
                ends += f"printf '\\n(the terminal of %s)\\n' {shlex.quote(name)}\ncat terminal-{number}\n"
    return text + ends


def run(page, belfry, shell):
    text, count = script(page)
    with tempfile.TemporaryDirectory(prefix="belfry-pages-") as folder:
        programs = pathlib.Path(folder, "bin")
        programs.mkdir()
        (programs / "belfry").symlink_to(belfry)
        place = pathlib.Path(folder, "work")
        place.mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BELFRY_")}
        environment |= {
            "BELFRY_HOME": f"{folder}/home", "PATH": f"{programs}:{environment['PATH']}",
            "EXAMPLES": str(ROOT / "Examples"), "PS1": "", "PS2": "",
        }
        words = SHELLS[shell]
        if sys.platform == "linux":
            words = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"]), *words]
            environment["PAGES_NETWORK"] = "own"
        log, pasted = pathlib.Path(folder, "log"), pathlib.Path(folder, "pasted")
        pasted.write_text(f"{text}exit {DONE}\n")
        with open(log, "wb") as output, open(pasted, "rb") as standard_input:
            child = subprocess.Popen(
                words, cwd=place, env=environment, stdin=standard_input, stdout=output, stderr=output,
                start_new_session=True)
            try:
                code = child.wait(LIMIT)
            except subprocess.TimeoutExpired:
                code = f"not ended within {LIMIT} s"
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if code != DONE:
            print(f"pages: {page}: FAILED in {shell} ({code})\n{log.read_text(errors='replace')}", file=sys.stderr)
            return False
    print(f"pages: {page}: {count} blocks in {shell}, as they stand there", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--belfry")
    parser.add_argument("--shell", choices=SHELLS, help="only in this one")
    parser.add_argument("--machine", type=int, help="print the script of this machine of the one page")
    parser.add_argument("pages", nargs="*", help="only these")
    words = parser.parse_args()
    if words.machine:
        print(transcript(words.pages[0], words.machine))
        return
    if sys.platform == "linux":
        own = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"]), "true"]
        if not shutil.which("ip") or subprocess.run(own, capture_output=True).returncode:
            print("pages: NOT RUN: a network of its own cannot be had (unshare --net, ip)", file=sys.stderr)
            sys.exit(75)
    belfry = pathlib.Path(words.belfry).resolve()
    shells = [words.shell] if words.shell else [shell for shell in SHELLS if shutil.which(shell)]
    for missing in SHELLS.keys() - (words.shell and SHELLS or shells):
        print(f"pages: NOT RUN in {missing}, which is not on this machine", file=sys.stderr)
    results = [run(page, belfry, shell) for page in words.pages or PAGES for shell in shells]
    sys.exit(0 if all(results) else 1)


main()
