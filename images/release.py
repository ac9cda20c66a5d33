"""`make release-check`: build everything once more elsewhere, compare, check what the images say they hold, sum up.

release.py               build into dist/ and elsewhere, compare and check; write dist/SHA256SUMS
release.py DIST OTHER    the same without building
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from layout import DIST, ROOT, fail

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = ("images", "common", "plugins", "requirements", "LICENSE")
BUILDERS = ("zipapp.py", "build.py")
# What a builder may not depend on.
ELSEWHERE = {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}


def artefacts(dist: Path) -> list[str]:
    """Return what is released of a folder, sorted: archives, images, bills of materials."""
    patterns = ("*.pyz", "images/*.oci.tar", "images/*.spdx.json")
    return sorted(str(path.relative_to(dist)) for pattern in patterns for path in dist.glob(pattern))


def problems(dist: Path, other: Path) -> Iterator[str]:
    """Yield what is wrong with the artefacts in `dist`, and what differs from another build of them in `other`."""
    names = artefacts(dist)
    if not names:
        yield f"{dist} holds no artefacts"
    for name in sorted({*names} ^ {*artefacts(other)}):
        yield f"{name}: only one of the two builds made it"
    for name in names:
        if (other / name).exists() and (dist / name).read_bytes() != (other / name).read_bytes():
            yield f"{name}: the two builds differ"
    for name in names:
        if name.endswith(".oci.tar"):
            try:
                yield from _image_problems(dist / name)
            except (tarfile.TarError, KeyError, ValueError, OSError, EOFError) as error:
                yield f"{name}: not a whole image ({type(error).__name__}: {error})"


def _image_problems(path: Path) -> Iterator[str]:
    """Compare blobs with their digests, and each bill of materials with the layer that it is about."""
    with tarfile.open(path) as archive:
        files = {member.name: file.read() for member in archive if (file := archive.extractfile(member))}
    blobs = {name.rpartition("/")[2]: content for name, content in files.items() if name.startswith("blobs/")}
    for digest, content in blobs.items():
        if hashlib.sha256(content).hexdigest() != digest:
            yield f"{path.name}: the blob {digest} has another SHA-256"

    def blob(entry: dict[str, Any]) -> Any:
        return json.loads(blobs[entry["digest"].partition(":")[2]])

    for entry in blob(json.loads(files["index.json"])["manifests"][0])["manifests"]:
        architecture = entry["platform"]["architecture"]
        [layer] = blob(entry)["layers"]
        texts = _texts(blobs[layer["digest"].partition(":")[2]])
        [inside] = [texts[name] for name in texts if name.endswith("/sbom.spdx.json")]
        beside = path.with_name(f"{path.name.removesuffix('.oci.tar')}-{architecture}.spdx.json")
        if not beside.exists() or beside.read_bytes() != inside:
            yield f"{beside.name}: not the bill of materials in {path.name}"
        named, there = _named(json.loads(inside)), _parts(texts)
        for part in sorted(there - named):
            yield f"{path.name} ({architecture}): holds {part}, which its bill of materials does not name"
        for part in sorted(named - there):
            yield f"{path.name} ({architecture}): its bill of materials names {part}, which it does not hold"


def _texts(layer: bytes) -> dict[str, bytes]:
    """Return what a layer says of itself: package lists, metadata of wheels, the bill of materials."""
    wanted = ("var/lib/dpkg/status.d/", ".dist-info/METADATA", "/sbom.spdx.json")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer))) as archive:
        members = [member for member in archive if any(word in member.name for word in wanted)]
        return {member.name: file.read() for member in members if (file := archive.extractfile(member))}


def _parts(texts: dict[str, bytes]) -> set[str]:
    """Return `deb name version` and `pypi name version` of all that is installed in a layer."""
    parts = set()
    for name, text in texts.items():
        head = BytesHeaderParser().parsebytes(text)
        if "/status.d/" in name:
            parts.add(f"deb {head['Package']} {head['Version']}")
        elif name.endswith("/METADATA"):
            parts.add(f"pypi {head['Name'].lower().replace('_', '-')} {head['Version']}")
    return parts


def _named(bill: dict[str, Any]) -> set[str]:
    """Return the Debian packages and wheels that a bill of materials names, in the same form."""
    named = set()
    for package in bill["packages"]:
        locator = package["externalRefs"][0]["referenceLocator"].removeprefix("pkg:").partition("?")[0]
        kind, _, rest = locator.partition("/")
        name, _, version = rest.removeprefix("debian/").rpartition("@")
        if kind in ("deb", "pypi"):
            named.add(f"{kind} {unquote(name)} {unquote(version)}")
    return named


def write_sums(dist: Path) -> Path:
    """Write SHA256SUMS, which `sha256sum --check` reads, and return its path."""
    lines = [f"{hashlib.sha256((dist / name).read_bytes()).hexdigest()}  {name}\n" for name in artefacts(dist)]
    path = dist / "SHA256SUMS"
    path.write_text("".join(lines))
    return path


def build_twice(folder: Path) -> Path:
    """Build into dist/, and in a copy of the sources under `folder` with its own compiler cache; return its dist."""
    copy = folder / "a copy"
    for name in SOURCES:
        source, target = ROOT / name, copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    shutil.rmtree(DIST, ignore_errors=True)  # nothing of an earlier version is released by accident
    _build(ROOT, {})
    downloads = ROOT / ".cache/images/debian"
    (copy / ".cache/images").mkdir(parents=True)
    (copy / ".cache/images/debian").symlink_to(downloads)
    _build(copy, ELSEWHERE)
    return copy / "dist"


def _build(root: Path, variables: dict[str, str]) -> None:
    kept = {name: text for name, text in os.environ.items() if name != "DIST"}
    for builder in BUILDERS:
        command = [sys.executable, str(root / "images" / builder)]
        if subprocess.run(command, env={**kept, **variables}, check=False, umask=0o077 if variables else -1).returncode:
            fail(f"{builder} failed in {root}")


def main() -> None:
    """Check, and write the sums if all is well."""
    with tempfile.TemporaryDirectory(prefix="execcred-") as folder:
        dist, other = map(Path, sys.argv[1:]) if len(sys.argv) == 3 else (DIST, build_twice(Path(folder)))
        found = list(problems(dist, other))
    if found:
        fail("this cannot be released:\n" + "\n".join(f"  {problem}" for problem in found))
    print(f"{write_sums(dist)}: {len(artefacts(dist))} files, the same in both builds")


if __name__ == "__main__":
    main()
