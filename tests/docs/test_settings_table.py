"""Every README tells the settings that the code has."""

from __future__ import annotations

import pytest

from docs.settings_table import NAMES, PLUGINS, readme, with_table


def test_every_plugin_has_a_readme() -> None:
    assert [path.parent.name for path in sorted(PLUGINS.glob("*/execcred_*.py")) if path.parent.name not in NAMES] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_readme_tells_the_settings_of_the_code(name: str) -> None:
    text = readme(name).read_text()
    assert with_table(text, name) == text, "run .venv/bin/python tests/docs/settings_table.py"
