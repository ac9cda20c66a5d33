"""What the builders share: where things are, which plugins there are, the one time stamp."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "images"
BUILD = ROOT / "build"
DIST = ROOT / "dist"
TOOL = "tool"  # the extra of `execcred`
# In every archive and image: 1980, unless told otherwise; zip knows no earlier year.
EPOCH = max(int(os.environ.get("SOURCE_DATE_EPOCH") or 0), 315532800)


def plugins() -> list[str]:
    """Return the plugins' names, sorted: every folder that holds its module."""
    return sorted(
        path.parent.name for path in ROOT.glob("plugins/*/execcred_*.py") if path.stem == module(path.parent.name)
    )


def module(plugin: str) -> str:
    """Return the name of a plugin's module."""
    return "execcred_" + plugin.replace("-", "_")


def version() -> str:
    """Return the suite's version."""
    text = (ROOT / "common/execcred/_version.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return found[1] if found else fail("common/execcred/_version.py holds no version")


def copy_sources(plugin: str, target: Path) -> None:
    """Copy the layer and a plugin's modules into `target`."""
    not_for_plugins = shutil.ignore_patterns("__pycache__", "access", "conformance", "tool")
    shutil.copytree(ROOT / "common/execcred", target / "execcred", ignore=not_for_plugins)
    for path in sorted((ROOT / "plugins" / plugin).glob("*.py")):
        shutil.copyfile(path, target / path.name)


def copy_tool(target: Path) -> None:
    """Copy the layer, the tool, and the modules of all plugins, whose settings it knows, into `target`."""
    ignored = shutil.ignore_patterns("__pycache__", "conformance")
    shutil.copytree(ROOT / "common/execcred", target / "execcred", ignore=ignored)
    for path in sorted(ROOT.glob("plugins/*/*.py")):
        shutil.copyfile(path, target / path.name)


def compile_tree(python: list[str], tree: Path, *, adjacent: bool = False) -> None:
    """Write bytecode for all of `tree` with the interpreter `python`, the same bytes anywhere and at any time.

    One fresh process for a whole tree in sorted order: what marshal writes depends on what was compiled before.
    """
    flags = ["-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", str(tree), "-p", ""]
    run([*python, "-m", "compileall", *flags, *(["-b"] if adjacent else []), str(tree)])


def run(command: list[str]) -> str:
    """Return a command's output; end the build with its error text when it fails."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        fail(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def fail(text: str) -> NoReturn:
    """End the build with a message."""
    sys.exit(f"{Path(sys.argv[0]).name}: error: {text}")
