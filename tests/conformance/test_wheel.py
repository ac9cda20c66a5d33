"""What is installed brings the kit, and no plugin's archive does."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from execcred.conformance.cases import PLUGINS, VECTORS

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_brings_vectors_stand_ins_and_the_guard_of_loopback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        metadata = next(opened.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    folder = "execcred/conformance"
    assert {f"{folder}/vectors/{path.name}" for path in VECTORS.glob("*.json")} <= names
    assert {f"{folder}/loopback/sitecustomize.py", f"{folder}/fakes/faults.py", f"{folder}/kit.py"} <= names
    needs = {line.partition("; ")[0] for line in metadata.splitlines() if "extra == 'conformance'" in line}
    assert needs == {f"Requires-Dist: {each}" for each in ("pyjwt[crypto]>=2.8", "pyyaml>=6.0.2", "trustme>=1.2")}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_what_goes_into_a_plugins_archive_and_image_has_nothing_from_beside_the_layer(
    plugin: str, tmp_path: Path
) -> None:
    code = "import sys; from pathlib import Path; import layout; layout.copy_sources(sys.argv[1], Path(sys.argv[2]))"
    command = [sys.executable, "-c", code, plugin, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT / "images")}, check=True, timeout=60)
    assert (tmp_path / "execcred/_run.py").exists()
    assert not [path for part in ("access", "conformance", "tool") for path in tmp_path.rglob(f"*{part}*")]
