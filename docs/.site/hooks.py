"""Makes a site of docs/ without changing what GitHub shows of it.

- Links that leave docs/ (../README.md, ../belfry.example.json) lead to copies of those files below repository/.
- reference/command-line.md, configuration.md and rest.md are made here: of `--help`, of belfry.example.json, and of
  openapi.yaml. BELFRY names the program whose help it is.
- With DOCC, as script/docs sets it when it puts what DocC makes below sdk/ afterwards, links lead there.
"""

import html
import os
import pathlib
import posixpath
import re
import subprocess

import yaml
from mkdocs.structure.files import File
from mkdocs.structure.nav import Link

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
# The file of a picture in HTML, of which mkdocs checks nothing.
PICTURE = re.compile(r'(?m)^( *<(?:source|img) [^>]*?\b(?:src|srcset)=")([^":]+)()(")')

# Of the libraries that have documentation of their own, the page it begins with.
LIBRARIES = {
    name: f"sdk/{name}/documentation/{name.lower()}/index.html" for name in ("NotificationHubs", "SecurePush")
} if os.environ.get("DOCC") else {}

# Where each file of the site stands in the repository, by its path in the site.
origins = {}


def on_files(files, config):
    origins.clear()
    made = {
        "reference/command-line.md": command_line(),
        "reference/configuration.md": configuration(),
        "reference/rest.md": rest(),
    }
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
        origins[place] = f"docs/{place}"
    waiting = [file.src_uri for file in files if file.is_documentation_page() and file.src_uri not in made]
    for place in waiting:
        origins[place] = f"docs/{place}"
    while waiting:
        place = waiting.pop()
        text = (ROOT / origins[place]).read_text()
        for _, target, _, _ in LINK.findall(text) + PICTURE.findall(text):
            origin = posixpath.normpath(posixpath.join(posixpath.dirname(origins[place]), target))
            copy = f"repository/{origin}"
            if origin.startswith("docs/") or copy in origins or not (ROOT / origin).is_file():
                continue
            origins[copy] = origin
            files.append(File.generated(config, copy, abs_src_path=str(ROOT / origin)))
            if copy.endswith(".md"):
                waiting.append(copy)
    return files


def on_nav(nav, config, files):
    """mkdocs would not find the pages, which are not there yet; so the links come behind its checks."""
    reference = next(item for item in nav.items if item.title == "Reference")
    reference.children += [Link(f"Swift: {name}", page) for name, page in LIBRARIES.items()]
    return nav


def on_page_markdown(markdown, page, config, files):
    place = page.file.src_uri
    origin = origins.get(place)
    if origin is None:
        return markdown

    def moved(match):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2]))
        wanted = target[len("docs/"):] if target.startswith("docs/") else f"repository/{target}"
        if files.get_file_from_path(wanted) is None:
            return match[0]
        relative = posixpath.relpath(wanted, posixpath.dirname(place) or ".")
        return f"{match[1]}{relative}{match[3] or ''}{match[4]}"

    for _, target, _, _ in PICTURE.findall(markdown):
        if not (ROOT / posixpath.join(posixpath.dirname(origin), target)).is_file():
            raise SystemExit(f"docs: {origin} shows {target}, which is not there")
    markdown = PICTURE.sub(moved, LINK.sub(moved, markdown))
    if place == "README.md" and LIBRARIES:
        links = ", ".join(f'<a href="{page}">{name}</a>' for name, page in LIBRARIES.items())
        row = "| find a command"
        assert row in markdown, "docs/README.md has no row for the libraries to stand before"
        markdown = markdown.replace(row, f"| look up a declaration of the Swift libraries | {links} |\n{row}", 1)
    return markdown


def belfry(*words):
    program = os.environ.get("BELFRY")
    if not program:
        raise SystemExit("docs: BELFRY names no belfry; run script/docs")
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


def command_line():
    """Every command's help, in the order of `belfry help all`."""
    overview = belfry("help", "all")
    page = ["# Command line", "", "Made of the `--help` of this version.", "", f"```text\n{overview.rstrip()}\n```", ""]
    commands = []
    for match in re.finditer(r"(?m)^  (?:belfry )?([a-z]+(?: [a-z-]+)*)  +\S", overview):
        if match[1] not in commands:
            commands.append(match[1])
    for command in commands:
        page += [f"## belfry {command}", "", f"```text\n{belfry(*command.split(), '--help').rstrip()}\n```", ""]
    return "\n".join(page)


def configuration():
    """The settings of belfry.example.json, which script/settings writes."""
    lines = (ROOT / "belfry.example.json").read_text().splitlines()
    page = [
        "# Configuration", "",
        "Made of [belfry.example.json](../../belfry.example.json), which has every setting with its default. A "
        "setting has one name: `bodyLimit` in the file, `BELFRY_BODY_LIMIT` in the environment, `--body-limit` on "
        "the command line, where the command has it. The command line wins over the environment, that over the "
        "file. `belfry config` prints what counts.", "",
        "| Setting | Default | Means |", "|---|---|---|",
    ]
    for line in lines:
        match = re.match(r'  "(\w+)": (.*?),?\s*// (.*)', line)
        if match:
            key, value, text = (part.strip().replace("|", "\\|") for part in match.groups())
            page.append(f"| `{key}` | {'none' if value == 'null' else f'`{value}`'} | {html.escape(text, quote=False)} |")
    start = next(index for index, line in enumerate(lines) if '"hubs"' in line)
    page += ["", "## Hubs", "", "```json", *lines[start:-1], "```", ""]
    return "\n".join(page)


def rest():
    """A table of the operations; the file itself is for tools."""
    api = yaml.safe_load((ROOT / "docs/reference/openapi.yaml").read_text())
    page = [
        "# REST API", "",
        "The operations of [openapi.yaml](openapi.yaml) (OpenAPI 3.1), from which clients, mocks and request "
        "collections are made. [protocol/rest.md](../protocol/rest.md) has the wire in full, "
        "[extensions.md](../extensions.md) what the original does not have.", "",
    ]
    sections = {tag["name"]: [] for tag in api["tags"]}
    for path, item in api["paths"].items():
        for method, operation in item.items():
            if not isinstance(operation, dict) or "operationId" not in operation:
                continue
            rights = [r for need in operation["security"] for r in need.get("sharedAccessSignature", [])]
            right = " or ".join(dict.fromkeys(rights)) or "–"
            sections[operation["tags"][0]].append(
                f"| `{method.upper()} {path}` | {operation['summary']} | {right} | {', '.join(s for s in operation['responses'] if s[0] == '2')} |")
    for name, rows in sections.items():
        page += [f"## {name}", "", "| Request | | Right | Success |", "|---|---|---|---|", *rows, ""]
    return "\n".join(page)
