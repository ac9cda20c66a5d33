"""The other suites, run against the built files: as archives, in the image's tree, and in a tree that was installed.

They start `<name>-plugin` beside their own interpreter, so they get an environment in which that is the built file.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from packages.built import PATHS, PLUGINS, ROOT, archive, run

FORMS = ("archive", "image", "installed")
SUITES = {"readers": ["conformance"], "eks": ["eks"], "gke": ["gke"], "aks": ["aks"]}


def environment(form: str, folder: Path, trees: dict[str, Path]) -> Path:
    """Make an environment with this one's packages and the built executables; return its interpreter."""
    own = Path(sys.prefix)
    (folder / "bin").mkdir(parents=True)
    shutil.copyfile(own / "pyvenv.cfg", folder / "pyvenv.cfg")
    (folder / "lib").symlink_to(own / "lib")
    for path in (own / "bin").iterdir():
        if not path.name.endswith("-plugin"):
            (folder / "bin" / path.name).symlink_to(path.resolve() if path.name.startswith("python") else path)
    plugins = folder / "plugins"
    plugins.mkdir()
    for plugin in PLUGINS:
        start = folder / "bin" / f"{plugin}-plugin"
        if form == "image":
            start.symlink_to(trees[plugin] / "bin" / start.name)
        elif form == "installed":
            assert run([trees[plugin] / "bin" / start.name, "install", plugins]).status == 0
            start.symlink_to(plugins / "bin" / start.name)
        else:
            start.write_text(
                f"#!/bin/sh\n: ${{EXECCRED_UNPACK_DIR={folder}/sdk}}\nexport EXECCRED_UNPACK_DIR\n"
                f'exec {Path(sys.executable).resolve()} -I -S {archive(plugin)} "$@"\n'
            )
            start.chmod(0o755)
    return folder / "bin" / "python"


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("form", FORMS)
def test_suite(form: str, suite: str, trees: dict[str, Path], tmp_path: Path) -> None:
    python = environment(form, tmp_path / "env", trees)
    folders = [ROOT / "tests" / name for name in SUITES[suite] if (ROOT / "tests" / name).is_dir()]
    variables = {name: text for name, text in os.environ.items() if not name.startswith(("COV", "PYTEST", "EXECCRED"))}
    command: list[str | Path] = [python, "-m", "pytest", "-q", "-n", "2", "--timeout", "300", *folders]
    # What other forms say to `install`; the image's answers are in test_install.py.
    command += [] if form == "archive" else ["-k", "not (install and belongs)"]
    done = run(command, {**PATHS, **variables}, cwd=ROOT, timeout=2900)
    assert done.status == 0, done.out[-6000:]
    assert " passed" in done.out
