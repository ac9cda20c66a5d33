"""`execcred explain CODE`: cause, remedy and example of every stable code of the layer, the plugins and this tool."""

from __future__ import annotations

from difflib import get_close_matches

from execcred._errors import BadRequest, printable

from ._catalogue import CATALOGUE
from ._options import OUTPUT, option, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from execcred import Env

TABLE = (option("all", "explain every code", "flag"), OUTPUT)


def answer(arguments: Sequence[str], _: Env) -> tuple[str, int]:
    """Return the explanation of each code that is asked for.

    Raises BadRequest("usage" | "code-unknown").
    """
    settings, words, help_text = parse("explain CODE…|--all [flags]", TABLE, arguments)
    if help_text:
        return help_text, 0
    codes = sorted(CATALOGUE) if settings.flag("all") else [word.strip("[]") for word in words]
    if not codes:
        raise BadRequest("usage", "no code given", "give what stands in brackets in an error line, or --all")
    for code in codes:
        if code not in CATALOGUE:
            similar = get_close_matches(code, CATALOGUE, 3)
            hint = f"nearest: {', '.join(similar)}" if similar else "execcred explain --all lists them"
            raise BadRequest("code-unknown", f"unknown code {printable(code, 60)!r}", hint)
    rows = [{"code": code, **CATALOGUE[code]} for code in codes]
    if settings.text("output") == "json":
        import json

        return json.dumps(rows, indent=2) + "\n", 0
    return "\n".join([_text(row) for row in rows]), 0


def _text(row: dict[str, str]) -> str:
    return f"{row['code']}\n  cause:   {row['cause']}\n  remedy:  {row['remedy']}\n  example: {row['example']}\n"
