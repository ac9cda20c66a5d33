"""Writes each plugin's settings table into its README: `.venv/bin/python tests/docs/settings_table.py`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from execcred._settings import shown_default

if TYPE_CHECKING:
    from execcred import Setting

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
NAMES = sorted(path.parent.name for path in PLUGINS.glob("*/README.md"))
BEGIN, END = "<!-- settings -->\n", "<!-- /settings -->"
HEAD = "| flag | variables | config key | default | what it is |\n|---|---|---|---|---|\n"
LEGEND = """
Config keys are the profile's, below flags and variables: plain ones it may set, those with the name of a flag only if
the admin gives that flag; where there is none, it may set nothing. Flags behind `--profile-args` count as
the profile's, too: put it last where a controller appends arguments from profiles.
"""


def readme(name: str) -> Path:
    """Return where a plugin's README is."""
    return PLUGINS / name / "README.md"


def table(settings: tuple[Setting, ...]) -> str:
    """Return the settings as Markdown."""
    return HEAD + "".join([row(each) for each in settings]) + LEGEND


def row(setting: Setting) -> str:
    """Return one setting as a row."""
    spellings = [setting.name, *[each.partition("=")[0] for each in setting.aliases]]
    flags = ", ".join([f"`{'-' if len(each) == 1 else '--'}{each}`" for each in spellings])
    variables = ", ".join([f"`{each}`" for each in setting.env])
    keys = ", ".join([f"`{each}`" for each in setting.config])
    may = {"profile": keys, "admin": ""}.get(setting.trust, f"{keys} (`--{setting.trust}`)")
    default = f"`{text}`" if (text := shown_default(setting)) else ""
    what = setting.help.replace("|", "\\|")
    if setting.choices:
        what += f": {', '.join([f'`{each}`' for each in setting.choices])}"
    return f"| {flags} | {variables} | {may} | {default} | {what} |\n"


def with_table(text: str, name: str) -> str:
    """Return a README's text with the table of today's code between the marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{name}: {BEGIN.strip()} … {END} is missing")
    plugin = import_module(f"execcred_{name.replace('-', '_')}").PLUGIN
    return before + begin + table(plugin.settings) + end + after


if __name__ == "__main__":
    for each in NAMES:
        path = readme(each)
        path.write_text(with_table(path.read_text(), each))
