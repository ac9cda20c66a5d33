"""Writes tables into READMEs: `.venv/bin/python tests/docs/readme_tables.py`.

Settings are those of the plugin's code. Of errors, codes and exit statuses stand there; the text is that of `execcred
explain`.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from execcred._settings import shown_default
from execcred.tool._catalogue import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from execcred import Setting

ROOT = Path(__file__).resolve().parents[2]
READMES = sorted([*ROOT.glob("plugins/*/README.md"), ROOT / "common/execcred/access/README.md"])
SETTINGS_HEAD = "| flag | variables | config key | default | what it is |\n|---|---|---|---|---|\n"
LEGEND = """
Config keys are the profile's, below flags and variables: plain ones it may set, those with the name of a flag only if
the admin gives that flag; where there is none, it may set nothing. Flags behind `--profile-args` count as
the profile's, too: put it last where a controller appends arguments from profiles.
"""
ERRORS_HEAD = "| code | exit | what happened | what to do |\n|---|---|---|---|\n"
# What is code in a text; what is marked already stays.
CODE = re.compile(r"`[^`]*`|--[a-z][a-z-]*(?:=[\w-]+)?|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:=\w+)?")


def settings(plugin: str) -> str:
    """Return a plugin's settings as Markdown."""
    table: tuple[Setting, ...] = import_module(f"execcred_{plugin.replace('-', '_')}").PLUGIN.settings
    return SETTINGS_HEAD + "".join([_setting(each) for each in table]) + LEGEND


def _setting(setting: Setting) -> str:
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


def codes(table: str) -> list[tuple[str, str]]:
    """Return (code, exit status) of each row."""
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", table, re.MULTILINE)
    return [(code, status) for cell, status in rows for code in re.findall(r"`(.*?)`", cell)]


def errors(table: str) -> str:
    """Return a table of errors with the same codes and today's text."""
    rows = [
        f"| `{code}` | {status} | {_text(code, 'cause')} | {_text(code, 'remedy')} |\n" for code, status in codes(table)
    ]
    return ERRORS_HEAD + "".join(rows)


def _text(code: str, part: str) -> str:
    text = CATALOGUE[code][part].replace("|", "\\|").removesuffix(".")
    return CODE.sub(lambda match: f"`{match[0].strip('`')}`", text)


def between(text: str, mark: str, table: Callable[[str], str]) -> str:
    """Return a page's text with a table made from the one between its marks."""
    before, begin, rest = text.partition(f"<!-- {mark} -->\n")
    old, end, after = rest.partition(f"<!-- /{mark} -->")
    if not begin or not end:
        raise ValueError(f"<!-- {mark} --> … <!-- /{mark} --> is missing")
    return before + begin + table(old) + end + after


def with_tables(path: Path) -> str:
    """Return a README's text with the tables of today."""
    text = between(path.read_text(), "errors", errors)
    return (
        between(text, "settings", lambda _: settings(path.parent.name))
        if path.is_relative_to(ROOT / "plugins")
        else text
    )


if __name__ == "__main__":
    for each in READMES:
        each.write_text(with_tables(each))
