"""The other suites, run against the built files: as archives on each Python, in the image's tree, installed, on arm64.

They start `<name>-plugin` beside their own interpreter, so they get an environment in which that is the built file.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from needs import absent
from packages.built import HOST, NEW, PATHS, PLUGINS, READERS, ROOT, archive, emulated, image, run

VECTORS = "test_as_an_executable"
# What an image says otherwise: its answers to `install` are in test_install.py, and its CA certificates are a file's.
IMAGE = "not (install and belongs) and not ca_of_an_inspecting_proxy"


class Suite(NamedTuple):
    """A folder of tests, those of them that are run, and the plugins that have to be there."""

    folder: str
    chosen: str = ""
    plugins: tuple[str, ...] = PLUGINS


CLOUDS = {name: Suite(name, plugins=(name,)) for name in ("eks", "gke", "aks")}
EVERY = {"vectors": Suite("conformance", VECTORS), **CLOUDS}
# The archives that any Python runs; those of gke and aks hold machine code for 3.11.
ANY = {"vectors": Suite("conformance", f"{VECTORS} and (secretreader or eks)", (*READERS, "eks"))}
# The installed tree is the image's, byte for byte: one plugin has to do.
ONE = {"vectors": Suite("conformance", f"{VECTORS} and secretreader and not kubeconfig", READERS[:1])}
# For what has a deadline of its own or fifty starts at once, emulation is too slow.
SLOW = {"vectors": Suite("conformance", f"{VECTORS} and not (deadline or fifty)")}
FORMS = {
    "archive": EVERY,
    "image": EVERY,
    "installed": ONE,
    "arm64": SLOW,
    **{f"archive-{major}.{minor}": ANY for major, minor in NEW if (major, minor) != (3, 11)},
}
CASES = [(form, suite) for form, suites in FORMS.items() for suite in suites]


def script(start: Path, command: list[str], folder: Path) -> None:
    """Write an executable that turns into `command`, with a place to unpack in unless it is told one.

    In Python, as a shell would complain about closed descriptors and lost folders on its own.
    """
    variable = f'os.environ.setdefault("EXECCRED_UNPACK_DIR", {str(folder)!r})'
    lines = [f"#!{NEW[3, 11]} -IS", "import os, sys", variable, f"os.execv({command[0]!r}, {command!r} + sys.argv[1:])"]
    start.write_text("\n".join([*lines, ""]))
    start.chmod(0o755)


def put(form: str, plugin: str, start: Path, trees: dict[str, Path]) -> None:
    """Make `start` run a plugin in a form."""
    folder = start.parent.parent
    if form == "image":
        start.symlink_to(trees[plugin] / "bin" / start.name)
    elif form == "installed":
        (folder / "plugins").mkdir(exist_ok=True)
        assert run([trees[plugin] / "bin" / start.name, "install", folder / "plugins"]).status == 0
        start.symlink_to(folder / "plugins/bin" / start.name)
    elif form == "arm64":
        tree = image(plugin).unpack("arm64", folder / "arm64")
        script(start, emulated(tree, plugin), folder / "sdk")
    else:
        version = form.partition("-")[2] or "3.11"
        python = NEW[int(version[0]), int(version[2:])]
        script(start, [python, "-I", "-S", str(archive(plugin))], folder / "sdk")


def environment(form: str, plugins: tuple[str, ...], folder: Path, trees: dict[str, Path]) -> Path:
    """Make an environment with this one's packages and the built executables; return its interpreter."""
    own = Path(sys.prefix)
    (folder / "bin").mkdir(parents=True)
    shutil.copyfile(own / "pyvenv.cfg", folder / "pyvenv.cfg")
    (folder / "lib").symlink_to(own / "lib")
    for path in (own / "bin").iterdir():
        if not path.name.endswith("-plugin"):
            (folder / "bin" / path.name).symlink_to(path.resolve() if path.name.startswith("python") else path)
    for plugin in plugins:
        put(form, plugin, folder / "bin" / f"{plugin}-plugin", trees)
    return folder / "bin" / "python"


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("form", "name"), CASES)
def test_suite(form: str, name: str, trees: dict[str, Path], tmp_path: Path) -> None:
    if form == "arm64" and HOST != "amd64":
        absent("arm64 is emulated on amd64")
    suite = FORMS[form][name]
    python = environment(form, suite.plugins, tmp_path / "env", trees)
    chosen = [each for each in (suite.chosen, "" if form.startswith("archive") else IMAGE) if each]
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("COV", "PYTEST", "EXECCRED"))}
    command: list[str | Path] = [python, "-m", "pytest", "-q", "-n", "2", "--timeout", "300"]
    command += [f"--basetemp={tmp_path}/base", "-k", " and ".join(chosen), ROOT / "tests" / suite.folder]
    done = run(command, {**PATHS, **kept}, cwd=ROOT, timeout=2900)
    assert done.status == 0, done.out[-6000:]
    assert " passed" in done.out
