"""The archive of the tool: one file that needs nothing but a Python, and knows all plugins."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from execcred.tool._main import COMMANDS
from needs import absent
from packages.built import DIST, PLUGINS, ROOT, run

if TYPE_CHECKING:
    from packages.built import Result

TOOL = DIST / "execcred.pyz"
if not TOOL.exists():
    absent("dist/execcred.pyz is missing: make zipapps")


def tool(*words: str) -> Result:
    return run([sys.executable, "-I", "-S", TOOL, *words])


def test_two_builds_are_the_same_file(tmp_path: Path) -> None:
    variables = {**os.environ, "DIST": str(tmp_path), "PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    done = run([sys.executable, ROOT / "images/zipapp.py", "tool"], variables, umask=0o077)
    assert done.status == 0, done.err
    assert (tmp_path / "execcred.pyz").read_bytes() == TOOL.read_bytes(), "rebuild dist with: make zipapps"


def test_it_holds_no_path_of_the_machine_that_built_it_and_no_sdk() -> None:
    with zipfile.ZipFile(TOOL) as file:
        names = file.namelist()
        assert not [name for name in names if str(ROOT).encode() in file.read(name)]
    assert "LICENSE" in names
    assert {name.split("/")[0] for name in names if "/" in name and ".dist-info" not in name} == {"execcred", "yaml"}
    assert not [name for name in names if name.endswith(".so") or "conformance/" in name]


def test_it_is_executable_in_an_empty_environment() -> None:
    result = run([TOOL, "--version"], {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    assert result == (0, result.out, "")
    assert result.out.startswith("execcred ")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_sub_command_is_in_it(name: str) -> None:
    result = tool(name, "--help")
    if name == "conformance":  # left out: it brings servers and their libraries
        assert result.code == "conformance-not-installed"
    else:
        assert (result.status, result.err) == (0, "")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_it_knows_each_plugin_without_its_sdk(plugin: str, tmp_path: Path) -> None:
    result = tool("provider-config", f"--plugin={plugin}", "--for=generic")
    assert (result.status, result.err) == (0, "")
    path = tmp_path / "providers.json"
    path.write_text(result.out)
    assert tool("lint", str(path)).status == 0


def test_the_doctor_and_the_kubeconfig_work_from_the_archive(asking: tuple[str, ...], tmp_path: Path) -> None:
    result = tool("doctor", "--output=json", f"--kubeconfig={asking[1]}")
    steps = {step["step"]: step["status"] for step in json.loads(result.out)["steps"]}
    assert (result.status, steps["accepted"]) == (0, "ok")
    words = ["kubeconfig", f"--kubeconfig={asking[1]}", f"--to={tmp_path}/config", "--provider-file"]
    providers = tmp_path / "providers.json"
    providers.write_text(tool("provider-config", "--plugin=eks", "--for=generic").out)
    assert tool(*words, str(providers)).code == "hub-forbidden"
