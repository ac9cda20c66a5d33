"""Reads a user's recipe: what leads a plugin with its own flags and variables to a credential."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from execcred._errors import BadRequest, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cases import Json

NULL = type(None)
FIELDS: dict[str, tuple[type, ...]] = {
    "words": (dict,),
    "config": (dict, NULL),
    "args": (list, NULL),
    "flags": (list, NULL),
    "env": (dict, NULL),
    "files": (dict, NULL),
    "hub": (dict, NULL),
    "cloud": (str, NULL),
    "server": (str,),
}
CLOUDS = ("a Google metadata server", "Microsoft Entra ID")


def read_recipe(file: str) -> Json:
    """Return the recipe in a file.

    Raises BadRequest("recipe-unusable").
    """
    try:
        recipe = json.loads(Path(file).read_bytes())
    except OSError as error:
        raise _bad(file, error.strerror or "it cannot be read") from None
    except (ValueError, RecursionError):
        raise _bad(file, "it is not JSON") from None
    if not isinstance(recipe, dict):
        raise _bad(file, "it is no JSON object")
    for key, value in recipe.items():
        if key not in FIELDS:
            raise _bad(file, f"no recipe has a key {printable(key, 60)!r}; known are {', '.join(FIELDS)}")
        if not isinstance(value, FIELDS[key]):
            raise _bad(file, f"{key} has the wrong JSON type")
    if recipe.get("cloud") not in (None, *CLOUDS):
        raise _bad(file, f"cloud is none of {', '.join(CLOUDS)}")
    return recipe


def placeholders(command: Sequence[str], recipe: Json) -> bool:
    """Return whether a command has words of the recipe filled in."""
    return any(f"{{{name}}}" in word for name in recipe.get("words", {}) for word in command)


def _bad(file: str, what: str) -> BadRequest:
    return BadRequest("recipe-unusable", f"{printable(file)}: {what}", "the kit's documentation lists a recipe's keys")
