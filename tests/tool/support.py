"""What the tests of the tool share: running it in memory, and as a process in a bare environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from execcred import Env, ExecCredError
from execcred.conformance import LOOPBACK_ONLY
from execcred.tool._main import respond

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]


def printed(*arguments: str) -> str:
    """Run the tool in memory; return what it prints, once it succeeds."""
    text, status = respond(arguments, Env({}))
    assert status == 0
    return text


def refused(*arguments: str) -> ExecCredError:
    """Run the tool in memory; return its error."""
    with pytest.raises(ExecCredError) as caught:
        respond(arguments, Env({}))
    return caught.value


def run(
    arguments: Sequence[str], stdin: bytes = b"", variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the tool as people do."""
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    environment = {"PYTHONPATH": LOOPBACK_ONLY, **measured, **(variables or {})}
    command = [sys.executable, "-m", "execcred.tool", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, env=environment, timeout=60)


def from_yaml(text: str) -> Any:
    """Return a YAML text's data, each by Kubernetes' idea of JSON."""
    return yaml.safe_load(text)


def findings(*files: Path) -> list[dict[str, Any]]:
    """Lint files; return the findings as JSON has them."""
    text, status = respond(("lint", "--output=json", *map(str, files)), Env({}))
    found: list[dict[str, Any]] = json.loads(text)["findings"]
    assert status == bool(found)
    return found
