"""explain: every code that can be raised anywhere, and every lint rule, has cause, remedy and example."""

from __future__ import annotations

import json
import re

import pytest

from execcred.tool._catalogue import CATALOGUE, LINT, read
from tool.codes import errors_in_code, findings_in_code
from tool.support import ROOT, printed, refused

ERRORS = errors_in_code()
FINDINGS = findings_in_code()


def test_the_collector_reads_each_code_that_the_code_makes() -> None:
    assert "" not in ERRORS, f"codes that are no plain text: {ERRORS.get('')}"
    assert len(ERRORS) > 60
    assert len(FINDINGS) > 30


def test_every_code_that_is_raised_is_explained() -> None:
    assert {code: places for code, places in ERRORS.items() if code not in CATALOGUE} == {}


def test_every_lint_rule_is_explained_and_no_other() -> None:
    assert set(LINT) == FINDINGS


def test_nothing_is_explained_that_cannot_happen() -> None:
    assert set(CATALOGUE) - set(ERRORS) - FINDINGS == set()


def test_the_codes_of_launcher_and_archives_are_collected_too() -> None:
    assert {"tree-incomplete", "python-too-old", "unpack-refused", "install-noexec"} <= set(ERRORS)


def test_every_code_in_a_plugins_readme_is_explained() -> None:
    """The tables of errors begin each row with codes."""
    for path in sorted((ROOT / "plugins").glob("*/README.md")):
        section = path.read_text().partition("\n## Errors")[2].partition("\n## ")[0]
        first = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
        codes = {code for cell in first for code in re.findall(r"`([a-z0-9-]+)`", cell)}
        assert codes <= set(CATALOGUE), path


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_each_explanation_is_whole(code: str) -> None:
    entry = CATALOGUE[code]
    assert len(entry["cause"]) > 15
    assert entry["cause"].endswith(".")
    assert entry["remedy"].endswith(".")
    assert entry["example"]
    assert code == code.lower()


def test_the_text_names_cause_remedy_and_example() -> None:
    text = printed("explain", "hub-forbidden")
    assert text.splitlines()[0] == "hub-forbidden"
    assert [line.split(":")[0].strip() for line in text.splitlines()[1:]] == ["cause", "remedy", "example"]


def test_a_code_may_be_given_as_it_stands_in_an_error_line() -> None:
    assert printed("explain", "[hub-forbidden]") == printed("explain", "hub-forbidden")


def test_json_holds_the_same() -> None:
    rows = json.loads(printed("explain", "usage", "deadline", "--output=json"))
    assert rows == [{"code": code, **CATALOGUE[code]} for code in ("usage", "deadline")]


def test_all_lists_every_code_once() -> None:
    rows = json.loads(printed("explain", "--all", "--output=json"))
    assert [row["code"] for row in rows] == sorted(CATALOGUE)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("hub-forbiden", "nearest: hub-forbidden"),
        ("secret-mising", "nearest: secret-missing"),
        ("zzz", "execcred explain --all lists them"),
    ],
)
def test_an_unknown_code_names_the_nearest(given: str, nearest: str) -> None:
    error = refused("explain", given)
    assert (error.exit_status, error.code) == (2, "code-unknown")
    assert error.hint.startswith(nearest)


@pytest.mark.parametrize(
    "text",
    ["no-colon\n-> x\neg y", "a: b\nx\neg y", "a: b\n-> x\ny", "a: b\n-> x", "a: b\n-> x\neg y\na: b\n-> x\neg y"],
)
def test_a_broken_catalogue_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"bad entry|shorter"):
        read(text)
