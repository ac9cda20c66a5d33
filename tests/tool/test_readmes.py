"""Every complete example in the READMEs and docs passes lint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from execcred import BadRequest
from execcred.tool._document import parse_text
from execcred.tool._entries import find
from execcred.tool._lint import lint
from tool.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = sorted([ROOT / "README.md", *(ROOT / "plugins").glob("*/README.md"), *(ROOT / "docs").glob("**/*.md")])


def examples(path: Path) -> list[tuple[str, str]]:
    """Return (line, text) of each JSON and YAML block."""
    text = path.read_text()
    found = re.finditer(r"^```(?:json|yaml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(f"{path.name}:{text[: each.start()].count(chr(10)) + 2}", each[1]) for each in found]


def linted(block: str) -> list[str] | None:
    """Return findings in a block, None when it is of no format that lint knows, or a fragment with an ellipsis."""
    try:
        documents = list(parse_text("block", block))
    except BadRequest:
        return None
    if not any(next(find(document), None) for document in documents):
        return None
    return [f"{each.field}: {each.message} [{each.code}]" for each in lint(documents)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_pass_lint(path: Path) -> None:
    found = {where: linted(block) for where, block in examples(path)}
    assert {where: rows for where, rows in found.items() if rows} == {}


def test_there_are_examples_that_lint_knows() -> None:
    assert sum(linted(block) is not None for _, block in examples(ROOT / "README.md")) >= 2
