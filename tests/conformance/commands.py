"""How the vectors reach this repository's plugins: as executables, and as functions."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from execcred import Env, ExecCredError
from execcred._run import respond
from execcred.conformance.process import Done
from execcred.conformance.stage import ACCOUNT, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

# The command to test instead of the installed executables, `{name}` being the plugin's: for archives and images.
COMMAND = os.environ.get("EXECCRED_CONFORMANCE_COMMAND", "")


def executable(name: str) -> list[str]:
    """Return the command of a plugin."""
    if COMMAND:
        words = [word.replace("{name}", name) for word in shlex.split(COMMAND)]
        # It runs in another folder, where a relative path would lead nowhere.
        return [str(Path(word).absolute()) if "/" in word and Path(word).exists() else word for word in words]
    return [str(Path(sys.executable).with_name(f"{name}-plugin"))]


def call(stage: Stage, capture: Any) -> Done:
    """Run the plugin as a function; `capture` is pytest's capfd."""
    name = stage.case.plugin
    plugin = importlib.import_module("execcred_" + name.replace("-", "_")).PLUGIN
    account = {f"{ACCOUNT}/{file}": content for file, content in stage.account().items()}
    world = World(stage.variables, account, f"{name}-plugin: ")
    started = time.monotonic()
    try:
        status, stdout, error = 0, respond(plugin, stage.arguments, world), ""
    except ExecCredError as caught:
        hint = f"hint: {caught.hint}\n" if caught.hint else ""
        status, stdout = caught.exit_status, ""
        error = f"{name}-plugin: error: {caught.message} [{caught.code}]\n{hint}"
    return Done(status, stdout, capture.readouterr().err + error, time.monotonic() - started)


class World(Env):
    """The real world, but for a pod's service account in memory."""

    def __init__(self, variables: Mapping[str, str], account: Mapping[str, bytes], prefix: str) -> None:
        super().__init__(variables, prefix=prefix)
        self.account = account

    def read_file(self, path: str) -> bytes:
        return self.account[path] if path in self.account else super().read_file(path)
