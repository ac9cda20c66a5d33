"""`make release-check` lets nothing out that differs, is damaged, or is not what its bill of materials says."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGES = Path(__file__).parents[2] / "images"
ARCHITECTURES = ("amd64", "arm64")
WRITE = """
import sys
from pathlib import Path
import oci
images = [oci.Image(name, Path(sys.argv[2], name), "/bin/p", {}) for name in ("amd64", "arm64")]
oci.write(Path(sys.argv[1]), images, "p:1")
"""
LIBC, WHEEL = "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64", "pkg:pypi/some-sdk@1.2"


def make(folder: Path, *named: str) -> Path:
    """Make the artefacts of a plugin whose image holds one Debian package and one wheel; its bill says `named`."""
    dist, trees = folder / "dist", folder / "trees"
    bill = {"packages": [{"externalRefs": [{"referenceLocator": each}]} for each in ("pkg:generic/execcred@1", *named)]}
    files = {
        "var/lib/dpkg/status.d/libc6": "Package: libc6\nVersion: 2.36-9+deb12u14\n",
        "lib/p-plugin/app/some_sdk-1.2.dist-info/METADATA": "Name: Some_SDK\nVersion: 1.2\n",
        "lib/p-plugin/sbom.spdx.json": json.dumps(bill),
    }
    (dist / "images").mkdir(parents=True)
    for architecture in ARCHITECTURES:
        for name, text in files.items():
            path = trees / architecture / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (dist / f"images/p-{architecture}.spdx.json").write_text(json.dumps(bill))
    write(dist / "images/p.oci.tar", trees)
    (dist / "p-plugin.pyz").write_text("an archive")
    return dist


def write(archive: Path, trees: Path, **variables: str) -> None:
    run: list[str | Path] = [sys.executable, "-c", WRITE, archive, trees]
    subprocess.run(run, env={"PYTHONPATH": str(IMAGES), **variables}, check=True)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    return make(tmp_path / "one", LIBC, WHEEL)


@pytest.fixture
def other(dist: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dist, tmp_path / "other"))


def check(*words: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, IMAGES / "release.py", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def sums(dist: Path) -> int:
    """Check the sums as anybody would; return the exit status."""
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    return subprocess.run(command, cwd=dist, capture_output=True, check=False).returncode


def test_two_equal_builds_get_their_sums(dist: Path, other: Path) -> None:
    done = check(dist, other)
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.split("  ")[1] for line in (dist / "SHA256SUMS").read_text().splitlines()]
    assert names == ["images/p-amd64.spdx.json", "images/p-arm64.spdx.json", "images/p.oci.tar", "p-plugin.pyz"]
    assert sums(dist) == 0


def test_the_sums_find_a_byte_that_changed_later(dist: Path, other: Path) -> None:
    check(dist, other)
    (dist / "p-plugin.pyz").write_text("an Archive")
    assert sums(dist) == 1


def both(change: Callable[[Path], object]) -> Callable[[Path, Path], object]:
    """Do the same to both builds, so that only what is wrong with each can be found."""
    return lambda dist, other: (change(dist), change(other))


def flip_in_a_blob(dist: Path) -> None:
    path = dist / "images/p.oci.tar"
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"os":"linux"', b'"os":"linuz"', 1))


def truncate(dist: Path) -> None:
    path = dist / "images/p.oci.tar"
    path.write_bytes(path.read_bytes()[:2000])


SPOILED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a byte differs": (
        lambda _, other: (other / "p-plugin.pyz").write_text("an Archive"),
        "p-plugin.pyz: the two builds differ",
    ),
    "an image differs": (lambda _, other: truncate(other), "images/p.oci.tar: the two builds differ"),
    "one is missing": (
        lambda _, other: (other / "p-plugin.pyz").unlink(),
        "p-plugin.pyz: only one of the two builds made it",
    ),
    "one is too many": (
        lambda _, other: (other / "q-plugin.pyz").write_text("x"),
        "q-plugin.pyz: only one of the two builds made it",
    ),
    "a blob is damaged": (both(flip_in_a_blob), "has another SHA-256"),
    "an image is cut off": (both(truncate), "images/p.oci.tar: not a whole image"),
    "a bill is missing": (
        both(lambda dist: (dist / "images/p-arm64.spdx.json").unlink()),
        "p-arm64.spdx.json: not the bill of materials in p.oci.tar",
    ),
    "a bill is another": (
        both(lambda dist: (dist / "images/p-amd64.spdx.json").write_text("{}")),
        "p-amd64.spdx.json: not the bill of materials in p.oci.tar",
    ),
    "nothing is there": (both(shutil.rmtree), "holds no artefacts"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_it_refuses_when(case: str, dist: Path, other: Path) -> None:
    spoil, message = SPOILED[case]
    spoil(dist, other)
    done = check(dist, other)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (dist / "SHA256SUMS").exists()


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ((WHEEL,), "p.oci.tar (arm64): holds deb libc6 2.36-9+deb12u14, which its bill of materials does not name"),
        ((LIBC,), "holds pypi some-sdk 1.2, which its bill"),
        ((LIBC, "pkg:pypi/some-sdk@1.1"), "names pypi some-sdk 1.1, which it does not hold"),
        ((LIBC, WHEEL, "pkg:deb/debian/zlib1g@1"), "names deb zlib1g 1, which it does not hold"),
    ],
)
def test_it_refuses_a_bill_that_does_not_tell_what_is_there(
    named: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    dist = make(tmp_path / "wrong", *named)
    done = check(dist, dist)
    assert done.returncode == 1
    assert message in done.stderr


def test_a_build_that_fails_ends_it(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for name in ("images", "common", "plugins", "requirements"):
        shutil.copytree(IMAGES.parent / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(IMAGES.parent / "LICENSE", copy / "LICENSE")
    (copy / "images/zipapp.py").write_text("raise SystemExit('no')\n")
    done = subprocess.run(
        [sys.executable, copy / "images/release.py"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "zipapp.py failed" in done.stderr
    assert not (copy / "dist").exists()


def test_the_one_time_in_an_image_can_be_chosen(dist: Path, tmp_path: Path) -> None:
    write(tmp_path / "later.tar", dist.parent / "trees", SOURCE_DATE_EPOCH="1700000000")
    with tarfile.open(tmp_path / "later.tar") as archive:
        contents = [file.read() for member in archive if (file := archive.extractfile(member))]
        assert {member.mtime for member in archive.getmembers()} == {1700000000}
    for content in contents:
        if content.startswith(b"\x1f\x8b"):
            with tarfile.open(fileobj=io.BytesIO(content)) as layer:
                assert {member.mtime for member in layer} == {1700000000}
    assert sum(b'"created":"2023-11-14T22:13:20Z"' in content for content in contents) == len(ARCHITECTURES)
