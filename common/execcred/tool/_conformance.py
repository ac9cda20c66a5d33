"""`execcred conformance`: hands over to the conformance kit, which archives of the tool leave out."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from execcred._errors import ExecCredError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from execcred import Env

NEEDS = ("execcred.conformance", "trustme", "jwt", "cryptography", "yaml")


def answer(arguments: Sequence[str], env: Env) -> tuple[str, int]:
    """Run the kit; return its report, and 0 when the command conforms, else 1.

    Raises ExecCredError("conformance-not-installed") and what the kit's command raises.
    """
    missing = [name for name in NEEDS if not find_spec(name)]
    if missing:
        raise ExecCredError(
            "conformance-not-installed",
            f"the conformance kit is not installed: {', '.join(missing)} cannot be imported",
            "install execcred with the extra conformance: pip install '.[conformance]' in the project's folder",
        )
    # By name, as nothing but this sub-command may lead to the kit.
    result: tuple[str, int] = import_module("execcred.conformance.command").answer(arguments, env)
    return result
