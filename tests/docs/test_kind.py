"""The walk-through for Kind, as far as a machine without Docker can judge it; the rest is in tests/interop."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from docs.pages import ROOT

FOLDER = ROOT / "examples/kind"
SCRIPT = FOLDER / "run.sh"


def run(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script, whose three programs are ones that do nothing unless `variables` say otherwise."""
    programs = dict.fromkeys(("KIND", "KUBECTL", "DOCKER"), "true")
    archive = tmp_path / "secretreader.oci.tar"
    archive.touch()
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "IMAGE_ARCHIVE": str(archive)}
    return subprocess.run(
        [str(SCRIPT)],
        env={**environment, **programs, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_script_parses() -> None:
    done = subprocess.run(["bash", "-n", str(SCRIPT)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(SCRIPT, os.X_OK)


def test_shellcheck_has_nothing_to_say() -> None:
    program = shutil.which("shellcheck")
    if not program:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run([program, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"KIND": "no-such-program"}, "no-such-program is not in PATH"),
        ({"IMAGE_ARCHIVE": "/dev/null/none"}, "/dev/null/none is missing: run make images"),
        ({"KIND": "echo", "HUB": "get clusters"}, "there is a cluster get clusters already"),
    ],
)
def test_before_the_clusters_are_made_it_says_what_is_missing(
    variables: dict[str, str], says: str, tmp_path: Path
) -> None:
    done = run(tmp_path, **variables)
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stdout == ""


def test_a_failure_leaves_no_files_and_deletes_only_the_clusters_that_it_made(tmp_path: Path) -> None:
    """`false` stands where kind is asked to make a cluster: the script ends there, and cleans up."""
    done = run(tmp_path, KUBECTL="false", KIND="echo")
    assert done.returncode != 0
    assert done.stdout.rstrip().endswith("delete clusters execcred-hub execcred-spoke")
    assert [path.name for path in tmp_path.iterdir()] == ["secretreader.oci.tar"]


def test_what_is_asked_to_be_kept_is_kept(tmp_path: Path) -> None:
    done = run(tmp_path, KUBECTL="false", KIND="echo", KEEP="1")
    assert "kept: kind delete clusters execcred-hub execcred-spoke" in done.stdout
    assert "\ndelete clusters" not in done.stdout


def test_the_readme_names_every_file_and_every_variable() -> None:
    text = (FOLDER / "README.md").read_text()
    assert [path.name for path in FOLDER.glob("*.yaml") if f"]({path.name})" not in text] == []
    variables = set(re.findall(r"\$\{([A-Z_]+):-", SCRIPT.read_text()))
    assert [name for name in variables if f"`{name}" not in text] == []
