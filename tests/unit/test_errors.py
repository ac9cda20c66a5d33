"""Errors: a stable code, what happened, what to do; the class is the exit status."""

from __future__ import annotations

import copy
import pickle

import pytest

from execcred import BadRequest, ExecCredError, LoginNeeded, TryAgain
from execcred._errors import printable


@pytest.mark.parametrize(("kind", "status"), [(ExecCredError, 1), (BadRequest, 2), (TryAgain, 3), (LoginNeeded, 4)])
def test_each_class_is_an_exit_status(kind: type[ExecCredError], status: int) -> None:
    error = kind("some-code", "it broke", "mend it")
    assert [error.exit_status, error.code, error.message, error.hint, str(error)] == [
        status,
        "some-code",
        "it broke",
        "mend it",
        "it broke",
    ]


@pytest.mark.parametrize("kind", [ExecCredError, BadRequest, TryAgain, LoginNeeded])
def test_an_error_comes_whole_out_of_another_process(kind: type[ExecCredError]) -> None:
    error = kind("some-code", "it broke", "mend it")
    error.add_note("why")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert [type(again), again.code, str(again), again.hint] == [kind, "some-code", "it broke", "mend it"]
        assert again.__notes__ == ["why"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode", "plain ünïcode"),
        ("two\nlines\r\n", "two?lines??"),
        ("\x1b[31mred\x1b[0m", "?[31mred?[0m"),
        ("\u202egnp.exe", "?gnp.exe"),
        ("\udcff\0\x7f\x85\u2028", "?????"),
        ("x" * 201, "x" * 200 + "…"),
        ("x" * 200, "x" * 200),
    ],
)
def test_foreign_text_can_neither_break_a_log_line_nor_flood_it(text: str, shown: str) -> None:
    assert printable(text) == shown
