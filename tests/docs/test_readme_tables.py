"""Every README tells the settings that the code has, and of errors what `execcred explain` tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from docs.readme_tables import READMES, ROOT, codes, with_tables
from tool.codes import errors_in_code, statuses_in_code

if TYPE_CHECKING:
    from pathlib import Path

MANUALS = [path for path in READMES if path.is_relative_to(ROOT / "plugins")]
ERRORS = errors_in_code()


def name_of(path: Path) -> str:
    return path.parent.name


def listed(path: Path) -> set[str]:
    """Return the codes in a README's table of errors."""
    return {code for code, _ in codes(path.read_text().partition("<!-- errors -->")[2])}


def test_every_plugin_has_a_readme() -> None:
    plugins = {path.parent.name for path in ROOT.glob("plugins/*/execcred_*.py")}
    assert plugins == {name_of(path) for path in MANUALS}


@pytest.mark.parametrize("path", READMES, ids=name_of)
def test_a_readme_tells_the_settings_of_the_code_and_the_errors_of_explain(path: Path) -> None:
    assert with_tables(path) == path.read_text(), "run .venv/bin/python tests/docs/readme_tables.py"


@pytest.mark.parametrize("path", READMES, ids=name_of)
def test_a_readme_tells_the_exit_statuses_of_the_code(path: Path) -> None:
    told = dict(codes(path.read_text().partition("<!-- errors -->")[2]))
    known = {code: found for code, found in statuses_in_code().items() if told.get(code, "").isdigit()}
    assert {code: {int(told[code])} for code in known} == known
    assert len(known) >= len(told) / 2


@pytest.mark.parametrize("path", MANUALS, ids=name_of)
def test_a_readme_leaves_no_error_of_its_plugin_out(path: Path) -> None:
    own = {code for code, places in ERRORS.items() if any(f"plugins/{name_of(path)}/" in each for each in places)}
    both = listed(path) | (
        listed(ROOT / "plugins/secretreader/README.md") if "secretreader" in name_of(path) else set()
    )
    assert own <= both
