"""The pages of docs/ promise no more than was checked: every block has a check, every code a remedy, every link an end.

What they run is run by tests/interop/test_pages.py, against real API servers.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from docs.pages import CONSUMERS, DOCS, FOREIGN, LANGUAGES, PAGES, ROOT, SECTIONS, Block, blocks, lines, remedies
from execcred import __version__
from execcred.tool._catalogue import CATALOGUE
from execcred.tool._facts import CONSUMERS as KNOWN
from tool.support import findings

if TYPE_CHECKING:
    from pathlib import Path

TEXT = {"type": "string", "minLength": 1}


def closed(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has these properties, all of them, and no others."""
    return {"type": "object", "additionalProperties": False, "required": [*properties], "properties": properties}


# Kinds that neither lint nor the API server of the tests knows; from the APIs' own types.
SCHEMAS: dict[tuple[str, str], dict[str, Any]] = {
    ("operator.knative.dev/v1beta1", "KnativeServing"): closed(
        apiVersion=TEXT,
        kind=TEXT,
        metadata=closed(name=TEXT, namespace=TEXT),
        spec=closed(clusterProfileRef=closed(name=TEXT, namespace=TEXT)),
    ),
    ("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding"): closed(
        apiVersion=TEXT, kind=TEXT, metadata=closed(name=TEXT, namespace=TEXT), spec=closed(clusterSet=TEXT)
    ),
    ("authentication.open-cluster-management.io/v1beta1", "ManagedServiceAccount"): closed(
        apiVersion=TEXT,
        kind=TEXT,
        metadata=closed(
            name=TEXT,
            namespace=TEXT,
            labels=closed(**{"authentication.open-cluster-management.io/sync-to-clusterprofile": {"const": "true"}}),
        ),
        spec=closed(rotation=closed(enabled={"const": True}, validity={"pattern": r"^\d+h\d+m\d+s$"})),
    ),
}
# Kinds that a test of tests/interop gives to the real reader: kubectl, or the API server with the consumer's CRD.
APPLIED = {
    ("kubectl.config.k8s.io/v1beta1", "Preference"),
    ("kueue.x-k8s.io/v1beta2", "MultiKueueCluster"),
}


def name_of(page: Path) -> str:
    return page.stem


def all_blocks(*languages: str) -> list[Any]:
    return [
        pytest.param(page, block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(blocks(page))
        if block.language in languages
    ]


def test_every_consumer_has_a_page_and_the_index_names_every_page() -> None:
    assert {*KNOWN, "kubectl"} - {"generic"} == set(CONSUMERS)
    assert {page.stem for page in PAGES} >= {*CONSUMERS, "which-form", "README"}
    index = (DOCS / "README.md").read_text()
    assert [page.name for page in PAGES if page.name != "README.md" and f"]({page.name})" not in index] == []


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_consumers_page_begins_at_nothing_and_ends_with_what_goes_wrong(name: str) -> None:
    page = DOCS / f"{name}.md"
    for section in SECTIONS:
        assert f"\n## {section}\n" in page.read_text()
    assert [block for block in blocks(page) if block.language == "sh"]
    for cells in remedies(page):
        assert len(cells) == 3, cells
        code = cells[1].strip("`")
        assert not code or code in CATALOGUE, code
    assert len({cells[1] for cells in remedies(page)} - {""}) >= 4


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_block_goes_without_a_check(page: Path) -> None:
    """An unknown language would be a block that nobody runs or parses."""
    assert page.read_text().count("\n```") == 2 * len(blocks(page)), "a fence is not closed, or indented"
    before = Block("", "", "")
    for block in blocks(page):
        assert block.language in LANGUAGES, block
        if block.language == "text":
            assert before.language == "sh", "a text block shows what the sh block before it prints"
        if block.language in ("yaml", "json"):
            assert block.name, "the line above says under which name the reader saves this"
        before = block


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_shell_of_a_page_parses(page: Path) -> None:
    text = "\n".join([block.text for block in blocks(page) if block.language in ("sh", "console")])
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("page", "block"), all_blocks("yaml", "json"))
def test_every_file_of_a_page_is_one_that_its_consumer_takes(page: Path, block: Block, tmp_path: Path) -> None:
    documents = [json.loads(block.text)] if block.language == "json" else [*yaml.safe_load_all(block.text)]
    rest = []
    for document in documents:
        key = (document.get("apiVersion", ""), document.get("kind", ""))
        if key in SCHEMAS:
            jsonschema.validate(document, SCHEMAS[key])
        elif key not in APPLIED:
            rest.append(document)
    if rest:
        path = tmp_path / block.name
        path.write_text(block.text)
        assert findings(path) == []
    used = "".join([each.text for each in blocks(page) if each.language in ("sh", "console")])
    assert block.name in used, "no command of the page uses it"


@pytest.mark.parametrize(("page", "block"), all_blocks("console"))
def test_a_command_that_no_test_can_run_is_one_that_its_program_knows(page: Path, block: Block) -> None:
    for line in lines(block):
        words = shlex.split(line)
        program = words[0]
        if program == "make":
            makefiles = (ROOT / "Makefile").read_text() + "".join([each.read_text() for each in ROOT.glob("*/*.mk")])
            assert all(f"\n{target}: " in makefiles for target in words[1:]), line
        elif program != "kubectl":  # the real one reads it, in tests/interop
            plain = [word for word in words[1:] if not word.startswith("-")]
            known = [key for key in FOREIGN[program] if plain[: len(key.split())] == key.split()]
            assert known, line
            flags = {word.partition("=")[0] for word in words[1:] if word.startswith("-")}
            assert flags <= FOREIGN[program][max(known, key=len)], line


def test_the_images_in_the_pages_have_this_version() -> None:
    for page in PAGES:
        for word in page.read_text().split():
            if "registry.example/execcred/" in word:
                assert word.rpartition(":")[2].rstrip("`),.") == __version__, (page.name, word)
