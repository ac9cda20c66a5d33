"""Installed without their extra, as by `pip install .`, plugins and tool name the library and what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [str(ROOT / "common"), *(str(path) for path in sorted((ROOT / "plugins").iterdir()))]
FILES = {
    "hub": "{kind: Config}",
    "user": json.dumps(
        {"type": "authorized_user", "client_id": "c", "client_secret": "hunter2", "refresh_token": "hunter2"}
    ),
}


def bare(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter that has nothing but its standard library and our sources."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    code = f"import sys; sys.path[:0] = {SOURCES!r}; import {module} as program; program.main()"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code, *arguments],
        cwd=folder,
        env={"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("module", "arguments", "library"),
    [
        ("execcred_secretreader", "--kubeconfig=hub --cluster-name=c1", "yaml"),
        ("execcred_kubeconfig_secretreader", "--kubeconfig=hub --secret-name=c1", "yaml"),
        ("execcred_eks", "--cluster-name=c1 --region=eu-central-1 --profile=fleet", "botocore"),
        ("execcred_gke", "--credential-file=user", "google"),
        ("execcred_aks", "--login=msi", "azure"),
        ("execcred_aks", "--login=azurecli", "azure"),
        ("execcred.tool", "lint hub", "yaml"),
    ],
)
def test_a_library_that_is_missing_is_named(tmp_path: Path, module: str, arguments: str, library: str) -> None:
    done = bare(tmp_path, module, *arguments.split())
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert first.endswith(f" error: {library} cannot be imported [library-missing]")
    assert second.startswith("hint: install execcred with the extra ")
    assert "hunter2" not in done.stderr


def test_the_doctor_names_it_too(tmp_path: Path) -> None:
    done = bare(tmp_path, "execcred.tool", "doctor", "--kubeconfig=hub", "--output=json")
    assert json.loads(done.stdout)["next"]["code"] == "library-missing"
