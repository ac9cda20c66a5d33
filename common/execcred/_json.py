"""JSON by the interpreter's own scanner: the package json compiles regular expressions, a fifth of a hit's time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from json.encoder import encode_basestring_ascii as quoted
    from typing import Any, NoReturn

    def make_scanner(_: object) -> Callable[[str, int], tuple[Any, int]]: ...
else:
    try:
        from _json import encode_basestring_ascii as quoted
        from _json import make_scanner
    except ImportError:  # an interpreter may be built without
        from json.decoder import JSONDecoder
        from json.encoder import encode_basestring_ascii as quoted

        def make_scanner(options):
            return JSONDecoder(parse_constant=options.parse_constant).scan_once


__all__ = ["loads", "quoted"]


class _Options:
    """What the scanner asks for: as strict as json.loads, and without NaN and its kind, which JSON does not know."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012  # the scanner's own

    @staticmethod
    def parse_constant(name: str) -> NoReturn:
        raise ValueError(name)


_scan = make_scanner(_Options())


def loads(text: str) -> Any:
    """Return the value of a JSON text; raises json.JSONDecodeError and other ValueErrors, RecursionError."""
    try:
        value, end = _scan(text, 0)
    except Exception:
        end = -1
    if end == len(text):
        return value
    import json  # takes blanks around the value, and says what is wrong

    return json.loads(text, parse_constant=_Options.parse_constant)
