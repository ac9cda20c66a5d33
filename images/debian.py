"""The interpreter's Debian packages: pinned in debian.lock by version and SHA-256, fetched, checked, unpacked.

No root and no foreign architecture on the machine: apt works in a private folder per architecture, and only to renew
the lock. A build downloads from the mirrors that apt knows, or those in DEBIAN_MIRRORS (a snapshot service, say).
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import shutil
import tarfile
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from layout import CACHE, ROOT, fail, run

LOCK = ROOT / "images" / "debian.lock"
HEADER = (
    "# Debian 12 (bookworm): architecture, package, version, pool path, size, SHA-256. `make images-lock` renews it.\n"
)
ARCHITECTURES = ("amd64", "arm64")
# gcc-12-base holds the licence of libgcc_s, without which glibc aborts when a thread is alive at exit.
PACKAGES = (
    "ca-certificates",
    "gcc-12-base",
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libssl3",
    "libuuid1",
    "python3.11-minimal",
    "zlib1g",
)


class Package(NamedTuple):
    """A row of the lock; `path` is under a mirror's root."""

    architecture: str
    name: str
    version: str
    path: str
    size: int
    sha256: str


class Unpacked(NamedTuple):
    """What came out of a package: its control text and the paths of its files."""

    control: str
    files: set[Path]


def locked(architecture: str) -> list[Package]:
    """Return the packages for an architecture, in the lock's order."""
    rows = [line.split() for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    packages = [Package(row[0], row[1], row[2], row[3], int(row[4]), row[5]) for row in rows]
    found = [package for package in packages if package.architecture in (architecture, "all")]
    if sorted(package.name for package in found) != sorted(PACKAGES):
        fail(f"{LOCK.name} does not hold every package for {architecture}; run: make images-lock")
    return found


def fetch(package: Package) -> bytes:
    """Return the content of a package file: from the cache, else a mirror; its SHA-256 is checked either way."""
    cached = CACHE / "debian" / f"{package.sha256}.deb"
    if cached.exists():
        content = cached.read_bytes()
        if hashlib.sha256(content).hexdigest() == package.sha256:
            return content
        cached.unlink()
    content = _download(package)
    if hashlib.sha256(content).hexdigest() != package.sha256:
        fail(f"{package.name} {package.version}: the mirror's file has another SHA-256 than {LOCK.name} says")
    cached.parent.mkdir(parents=True, exist_ok=True)
    part = cached.with_suffix(f".{os.getpid()}")
    part.write_bytes(content)
    part.rename(cached)
    return content


def _download(package: Package) -> bytes:
    problems = []
    for mirror in _mirrors():
        try:
            with urllib.request.urlopen(f"{mirror}/{urllib.parse.quote(package.path)}", timeout=60) as answer:
                content: bytes = answer.read(package.size + 1)
                return content
        except (OSError, HTTPException, ValueError) as error:  # the latter two: not a mirror's address
            problems.append(f"  {mirror}: {error}")
    tried = "\n".join(problems) or "  no mirror: neither apt nor DEBIAN_MIRRORS names one"
    return fail(
        f"{package.name} {package.version} ({package.architecture}) cannot be downloaded:\n{tried}\n"
        f"Debian removes superseded builds. Now there is {_newest(package.name)}; to take it, run: make images-lock"
    )


def _mirrors() -> list[str]:
    named = os.environ.get("DEBIAN_MIRRORS", "").split()
    if not named and shutil.which("apt-get"):
        named = run(
            ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"]
        ).splitlines()
        named = [line.partition(" ")[2] for line in named if line.startswith("Debian ")]
    return list(dict.fromkeys(mirror.rstrip("/") for mirror in named))


def _newest(name: str) -> str:
    if not shutil.which("apt-cache"):
        return "perhaps a newer one"
    lines = run(["apt-cache", "policy", name]).splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if "Candidate:" in line), "none that apt knows")


def unpack(content: bytes, target: Path) -> Unpacked:
    """Unpack a .deb into `target`: files, folders and links."""
    members, files = _members(content), set[Path]()
    with tarfile.open(fileobj=_uncompressed(members, "data.tar")) as archive:
        for entry in archive:
            path = target / entry.name
            if ".." in Path(entry.name).parts:
                fail(f"a package holds the path {entry.name}")
            if entry.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif entry.issym():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.symlink_to(entry.linkname)
            elif file := archive.extractfile(entry):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.read())
                files.add(path)
                path.chmod(0o755 if entry.mode & 0o111 else 0o644)
    with tarfile.open(fileobj=_uncompressed(members, "control.tar")) as archive:
        file = archive.extractfile("./control")
        control = file.read().decode() if file else fail("a package holds no control file")
    return Unpacked(control, files)


def _members(content: bytes) -> dict[str, bytes]:
    """Return the members of an ar archive by name."""
    if not content.startswith(b"!<arch>\n"):
        fail("a package is not an ar archive")
    members, place = {}, 8
    while place + 60 <= len(content):
        name, size = content[place : place + 16].decode().strip().rstrip("/"), int(content[place + 48 : place + 58])
        members[name] = content[place + 60 : place + 60 + size]
        place += 60 + size + size % 2
    return members


def _uncompressed(members: dict[str, bytes], stem: str) -> io.BytesIO:
    if f"{stem}.xz" not in members:
        fail(f"a package holds no {stem}.xz, but {', '.join(members)}")
    return io.BytesIO(lzma.decompress(members[f"{stem}.xz"]))


# --- renewing the lock ---


def renew() -> None:
    """Write the lock anew from what apt finds, its signatures checked, and print what changed."""
    old = LOCK.read_text() if LOCK.exists() else ""
    rows = {row for architecture in ARCHITECTURES for row in _candidates(architecture)}
    text = HEADER + "".join(" ".join(map(str, row)) + "\n" for row in sorted(rows))
    LOCK.write_text(text)
    before, after = _versions(old), _versions(text)
    for key in sorted(before | after):
        if before.get(key) != after.get(key):
            print(f"{' '.join(key)}: {before.get(key, 'none')} -> {after.get(key, 'none')}")


def _candidates(architecture: str) -> list[Package]:
    state = CACHE / "apt" / architecture
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    options = [
        f"APT::Architecture={architecture}",
        f"APT::Architectures={architecture}",
        f"Dir::State={state}",
        f"Dir::State::status={state}/status",
        f"Dir::Cache={state}/cache",
    ]
    apt = ["apt-get", *(part for option in options for part in ("-o", option))]
    run([*apt, "update"])
    lines = run([*apt, "--print-uris", "download", *PACKAGES]).splitlines()
    return [_package(line) for line in lines if line.startswith("'")]


def _package(line: str) -> Package:
    """Read a line of `apt-get --print-uris`: 'URL' file-name size SHA256:digest."""
    url, file, size, digest = line.split()
    _, pool, path = urllib.parse.unquote(url.strip("'")).rpartition("/pool/")
    name, version, architecture = urllib.parse.unquote(file).removesuffix(".deb").split("_")
    if not pool or not digest.startswith("SHA256:"):
        fail(f"apt printed a line of another kind: {line}")
    return Package(architecture, name, version, f"pool/{path}", int(size), digest.removeprefix("SHA256:"))


def _versions(text: str) -> dict[tuple[str, str], str]:
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {(row[0], row[1]): row[2] for row in rows}


if __name__ == "__main__":
    renew()
