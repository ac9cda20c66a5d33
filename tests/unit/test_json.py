"""The layer's JSON is that of the standard library, without its import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import execcred
from execcred._json import loads, quoted

ROOT = str(Path(execcred.__file__).parent.parent)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
TEXTS = st.lists(st.sampled_from([*'{}[]:,"\\0123e.- \n\tatrue', "null", "\\u00e9", "é", "\x00"]), max_size=12).map(
    "".join
)


def refuse(name: str) -> Any:
    raise ValueError(name)


def outcome(read: Any, text: str) -> Any:
    try:
        return ("read", read(text))
    except ValueError as error:
        return (type(error), getattr(error, "pos", None))


def reference(text: str) -> Any:
    return json.loads(text, parse_constant=refuse)


@given(VALUES, st.sampled_from([None, 2]))
def test_what_was_written_is_read(value: Any, indent: int | None) -> None:
    assert loads(json.dumps(value, indent=indent)) == value


@given(TEXTS)
@example("")
@example(' {"a": 1}\n')
@example('{"a": 1} x')
@example('{"a": NaN}')
@example("9" * 5000)
def test_any_text_is_read_or_refused_alike(text: str) -> None:
    assert outcome(loads, text) == outcome(reference, text)


def test_a_text_nested_too_deep_is_an_error_of_its_own() -> None:
    with pytest.raises(RecursionError):
        loads("[" * 100_000)


@given(st.text())
def test_a_string_is_quoted_as_json(text: str) -> None:
    assert quoted(text) == json.dumps(text)


@pytest.mark.parametrize("blocked", ["None", "'_json'"])
def test_an_interpreter_without_its_own_scanner_uses_the_package(blocked: str) -> None:
    code = (
        f"import sys; sys.path.append({ROOT!r}); sys.modules[{blocked}] = None;"
        "from execcred._json import loads, quoted;"
        "print(loads('{\"a\": [1]}'), quoted('é'), 'json' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == f"{{'a': [1]}} \"\\u00e9\" {blocked != 'None'}\n"
