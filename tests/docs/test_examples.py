"""What the pages show can be copied: blocks parse, flags and codes exist, links lead somewhere."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from execcred._arguments import command_line
from execcred.tool._catalogue import CATALOGUE
from execcred.tool._facts import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from execcred import Plugin

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("bench", "common", "demo", "docs", "examples", "images", "plugins", "provider-configs", "tests")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
MANUALS = sorted((ROOT / "plugins").glob("*/README.md"))
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The command and arguments of an exec block in Terraform's language.
HCL_EXEC = re.compile(r'\bcommand\s*=\s*"([^"]+)"\s*args\s*=\s*(\[[^\]]*\])')
INLINE = re.compile(r"`([^`\n]+)`")
# A plugin's name with arguments, up to what the shell takes for itself; a colon behind it makes it an error line.
RUN = re.compile(
    r"(?:^|[\s/(])(secretreader|kubeconfig-secretreader|eks|gke|aks)-plugin((?: [^\n`#|;&<>)]+)?)"
    r"(?=$|[\d]*>| [|&]|\))",
    re.MULTILINE,
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def plugin(name: str) -> Plugin:
    found: Plugin = import_module(f"execcred_{name.replace('-', '_')}").PLUGIN
    return found


def documents(page: Path) -> list[Any]:
    """Return what the JSON and YAML blocks of a page hold."""
    found: list[Any] = []
    for kind, text in FENCED.findall(page.read_text()):
        if kind == "json":
            found.append(json.loads(text))
        elif kind == "yaml":
            found += yaml.safe_load_all(text)
    return found


def exec_blocks(value: Any, key: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (key, block) of every mapping that tells a client what to run."""
    if isinstance(value, dict):
        if "command" in value and str(value.get("apiVersion", "")).startswith("client.authentication.k8s.io/"):
            yield key, value
        for name, each in value.items():
            yield from exec_blocks(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from exec_blocks(each)


def command_lines(page: Path) -> list[tuple[str, list[str]]]:
    """Return (plugin, arguments) of every command line in blocks, indented lines, words set as code and exec blocks."""
    text = page.read_text()
    blocks = [body for kind, body in FENCED.findall(text) if kind == "sh"]
    indented = re.findall(r"^    (\S.*)$", text, re.MULTILINE)
    shown = "\n".join([*blocks, *indented, *INLINE.findall(FENCED.sub("", text))]).replace("\\\n", " ")
    lines = [(name, shlex.split(arguments)) for name, arguments in RUN.findall(shown)]
    for document in documents(page):
        for _, block in exec_blocks(document):
            lines.append((Path(block["command"]).name.removesuffix("-plugin"), block.get("args", [])))
    for command, arguments in hcl_execs(page):
        lines.append((Path(command).name.removesuffix("-plugin"), arguments))
    return lines


def hcl_execs(page: Path) -> list[tuple[str, list[str]]]:
    """Return (command, arguments) of the exec blocks in Terraform's language."""
    text = "".join([body for kind, body in FENCED.findall(page.read_text()) if kind == "hcl"])
    return [(command, json.loads(arguments)) for command, arguments in HCL_EXEC.findall(text)]


def anchors(page: Path) -> set[str]:
    """Return the fragments that the headings of a page answer to."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_json_and_yaml_block_parses_and_is_not_empty(page: Path) -> None:
    assert all(documents(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_line_uses_flags_and_words_that_the_plugin_knows(page: Path) -> None:
    for name, arguments in command_lines(page):
        known = plugin(name)
        line = command_line(known.settings, [each for each in arguments if each != "…"])
        words = line.words[:1] if line.words[:1] == ["install"] else line.words  # a directory comes after it
        assert " ".join(words) in ("", "install", *known.words), arguments


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_exec_block_names_an_absolute_command_and_says_whether_it_may_ask(page: Path) -> None:
    """Argo CD's own format has no interactiveMode: nobody is there to be asked."""
    for key, block in [found for document in documents(page) for found in exec_blocks(document)]:
        assert block["command"].startswith("/"), block
        if key != "execProviderConfig":
            assert block["interactiveMode"] in ("Never", "IfAvailable", "Always"), block


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_shell_leaves_the_words_of_every_exec_block_alone_as_some_clients_start_plugins_by_one(page: Path) -> None:
    for _, block in [found for document in documents(page) for found in exec_blocks(document)]:
        words = [block["command"], *block.get("args", [])]
        script = f"printf '%s\\n' {' '.join(words)}"
        assert (
            subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
            == words
        )


@pytest.mark.parametrize("page", [page for page in PAGES if "  exec {" in page.read_text()], ids=name_of)
def test_an_exec_block_of_terraform_says_all_by_flags_as_some_providers_send_no_exec_info(page: Path) -> None:
    found = hcl_execs(page)
    assert len(found) == page.read_text().count("  exec {")
    for command, arguments in found:
        name = Path(command).name.removesuffix("-plugin")
        given = command_line(plugin(name).settings, arguments).admin
        assert command.startswith("/")
        assert given["api-version"] == "v1"
        assert not SUBJECTS[name].naming.keys() - given.keys()


@pytest.mark.parametrize("page", MANUALS, ids=name_of)
def test_every_plugins_page_has_its_parts_and_a_config_that_runs_this_plugin(page: Path) -> None:
    for part in ("What it needs", "Provider config", "Settings", "Replace … with …", "Errors and remedies"):
        assert f"\n## {part}\n" in page.read_text()
    providers = [each for each in documents(page) if isinstance(each, dict) and "execConfig" in each]
    assert [Path(each["execConfig"]["command"]).name for each in providers] == [f"{page.parent.name}-plugin"]


@pytest.mark.parametrize("page", [ROOT / "README.md", *MANUALS], ids=name_of)
def test_every_error_code_that_a_page_names_is_explained(page: Path) -> None:
    """Codes begin the rows below headings about errors, stand in brackets in error lines, and behind `explain`."""
    text = page.read_text()
    codes = set(re.findall(r": error: .*\[([a-z0-9-]+)\]$|execcred explain ([a-z][a-z0-9-]+)", text, re.MULTILINE))
    found = {code for pair in codes for code in pair if code}
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        if "rror" in section.partition("\n")[0]:
            cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
            found |= {code for cell in cells for code in re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)*)`", cell)}
    assert found
    assert found - set(CATALOGUE) == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", page.read_text())):
        path, _, fragment = link.partition("#")
        if "://" not in link:
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not fragment or fragment in anchors(target), link


def test_the_pages_show_something_to_check() -> None:
    shown = {name for page in PAGES for name, arguments in command_lines(page) if arguments}
    assert shown == {page.parent.name for page in MANUALS}
