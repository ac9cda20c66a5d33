"""The catalogue of all stable codes: {code: {"cause": …, "remedy": …, "example": …}}.

Its text is kept in seven modules, three lines a code: `code: cause`, `-> remedy`, `eg example`.
"""

from __future__ import annotations

from ._codes import CODES
from ._codes_access import ACCESS_CODES
from ._codes_cloud import CLOUD_CODES
from ._codes_conformance import CONFORMANCE_CODES
from ._codes_lint import LINT_CODES
from ._codes_packages import PACKAGE_CODES
from ._codes_tool import TOOL_CODES


def read(text: str) -> dict[str, dict[str, str]]:
    """Return the entries of a catalogue text; ValueError when it is not made of threes, or repeats a code."""
    lines = text.strip().splitlines()
    entries: dict[str, dict[str, str]] = {}
    for head, remedy, example in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        code, colon, cause = head.partition(": ")
        if not colon or not remedy.startswith("-> ") or not example.startswith("eg ") or code in entries:
            raise ValueError(f"bad entry {head!r}")
        entries[code] = {"cause": cause, "remedy": remedy[3:], "example": example[3:]}
    return entries


LINT = read(LINT_CODES)
CATALOGUE = {
    **read(CODES),
    **read(ACCESS_CODES),
    **read(CLOUD_CODES),
    **read(TOOL_CODES),
    **read(CONFORMANCE_CODES),
    **read(PACKAGE_CODES),
    **LINT,
}
