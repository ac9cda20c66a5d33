"""The tool's shell: sub-commands, help, exit statuses, and errors that look like the plugins'."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from typing import NoReturn

import pytest

from execcred import Env, __version__
from execcred._help import help_text
from execcred.conformance import LOOPBACK_ONLY
from execcred.tool._main import COMMANDS, _run
from execcred_secretreader import PLUGIN
from tool.support import ROOT, printed, refused, run


@pytest.mark.parametrize("words", [(), ("help",), ("--help",), ("-h",)])
def test_help_lists_every_sub_command(words: tuple[str, ...]) -> None:
    text = printed(*words)
    assert all(f"  {name}" in text for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_sub_command_tells_its_flags(name: str) -> None:
    text = printed(name, "--help")
    assert text.startswith(f"usage: execcred {name} ")
    assert "--help" in text
    assert "--output text|json" in text


def test_help_shows_durations_as_flags_take_them() -> None:
    assert "(default 20s)" in printed("doctor", "--help")
    assert "(default 8s)" in help_text(PLUGIN)


def test_the_version_is_the_projects() -> None:
    assert printed("--version") == f"execcred {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["frobnicate"], 2, "usage"),
        (["lint"], 2, "usage"),
        (["lint", "--outptu=json", "x"], 2, "usage"),
        (["lint", "--output=yaml", "x"], 2, "setting-invalid"),
        (["lint", "x", "--profile-args", "--output=json"], 1, "profile-refused"),
        (["lint", "/nonexistent/file"], 2, "file-unusable"),
        (["explain"], 2, "usage"),
        (["explain", "no-such-code"], 2, "code-unknown"),
        (["provider-config"], 2, "usage"),
    ],
)
def test_bad_usage_leaves_stdout_empty_and_tells_what_to_do(arguments: list[str], status: int, code: str) -> None:
    done = run(arguments)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (status, b"")
    assert lines[0].startswith("execcred: error: ")
    assert lines[0].endswith(f"[{code}]")
    assert lines[1].startswith("hint: ")


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {"PYTHONPATH": LOOPBACK_ONLY}
    done = subprocess.run(
        [sys.executable, "-m", "execcred.tool", "explain", "--all"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert done.returncode == 1
    assert b"[stdout-closed]" in done.stderr
    assert b"Traceback" not in done.stderr


class Words(list[str]):
    """Arguments that raise when they are read."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(["lint"])
        self.error = error

    def __getitem__(self, index: object) -> NoReturn:
        raise self.error


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (KeyboardInterrupt(), 3, "interrupted"),
        (RuntimeError("hunter2"), 1, "internal"),
        (BrokenPipeError(), 1, "stdout-closed"),
    ],
)
def test_whatever_is_raised_becomes_an_error_of_ours(
    error: BaseException, status: int, code: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _run(Words(error), Env({}, prefix="execcred: ")) == status
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines()[0].endswith(f"[{code}]")
    assert "hunter2" not in err


def test_control_characters_of_arguments_do_not_reach_the_terminal() -> None:
    error = refused("\x1b[31mred")
    assert "\x1b" not in error.message


def test_neither_the_layer_nor_a_plugin_imports_the_tool_or_the_access_library() -> None:
    for path in [*(ROOT / "common/execcred").glob("*.py"), *(ROOT / "plugins").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{each.name}" for each in node.names]
            assert not [name for name in names if {"tool", "access"} & set(name.split("."))], path


def test_each_module_can_be_read_in_an_evening() -> None:
    for path in (ROOT / "common/execcred/tool").glob("*.py"):
        assert len(path.read_text().splitlines()) <= 300, path
