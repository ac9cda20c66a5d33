"""The pages about conformance say what is so: levels, recipes, commands, and reports on what is built today."""

from __future__ import annotations

import datetime
import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from execcred.conformance.cases import LEVELS, MUST, cases
from execcred.conformance.command import TABLE, USAGE
from execcred.conformance.kit import selected
from execcred.conformance.recipe import read_recipe
from execcred.tool._options import parse

from .reports import FOLDER, PEERS, RESULTS, ROOT, Peer, cell, page, version

if TYPE_CHECKING:
    from pathlib import Path

MANUAL = (ROOT / "docs/conformance.md").read_text()


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_report_is_of_the_version_and_the_vectors_of_today(peer: Peer) -> None:
    """When it is not: `make conformance-reports`."""
    text = (FOLDER / f"{peer.name}.md").read_text()
    told = re.search(r"^Version (\S+) of the Go module `(\S+)`, on (\S+);", text, re.MULTILINE)
    assert told
    assert told.groups()[:2] == (version(peer), peer.module)
    assert datetime.date.fromisoformat(told[3]) >= datetime.date(2026, 11, 29)
    chosen = selected(cases(peer.kind, recipe=read_recipe(str(FOLDER / f"{peer.name}.json"))), own=False)
    rows = re.findall(
        r"^\| (?:MUST|SHOULD) \| (?:(?:fail|falls short|skipped) \| )?([^|]*[a-z][^|]*) \|", text, re.MULTILINE
    )
    assert sorted(rows) == sorted(cell(case.id) for case in chosen)


def test_a_page_tells_each_vector_in_its_place() -> None:
    row = {"level": MUST, "vector": "a first", "result": "fail", "findings": [{"level": MUST, "text": "a|b *c*"}]}
    good = {"level": MUST, "vector": "a second", "result": "pass", "findings": []}
    report = {"vectors": [row, good], "summary": {"MUST": {"pass": 1, "fail": 1}}}
    text = page(PEERS[0], report, "v1.2.3", datetime.date(2026, 1, 2))
    assert "Version v1.2.3 of the Go module" in text
    assert "on 2026-01-02" in text
    assert "\n| MUST | fail | a first | a\\|b \\*c\\* |\n" in text
    assert "\n| MUST | a second |\n" in text
    assert "\n| MUST | 1 | 1 | 0 | 0 |\n" in text


def test_the_manual_tells_every_level_kind_and_result() -> None:
    assert all(f"\n| {level} |" in MANUAL for level in LEVELS)
    kinds = next(each for each in TABLE if each.name == "kind").choices
    assert all(f"`{kind}`" in MANUAL for kind in kinds)
    assert all(result.rstrip("s") in MANUAL for result in RESULTS)


def test_the_manuals_commands_are_the_tools() -> None:
    texts = [MANUAL, *[(FOLDER / f"{peer.name}.md").read_text() for peer in PEERS]]
    lines = re.findall(r"^    execcred conformance (.*)$", "\n".join(texts), re.MULTILINE)
    assert len(lines) == 2 + len(PEERS)
    for line in lines:
        words = shlex.split(line)
        _, rest, _ = parse(USAGE, TABLE, words[: words.index("--")])
        assert (rest, words[-1] != "--") == ([], True), line


def test_the_manuals_recipe_is_one(tmp_path: Path) -> None:
    [block] = re.findall(r"^```json\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)
    (tmp_path / "recipe.json").write_text(block)
    assert read_recipe(str(tmp_path / "recipe.json")) == json.loads(block)
