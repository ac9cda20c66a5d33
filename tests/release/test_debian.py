"""Debian's packages for the images: fetched from mirrors, checked and unpacked, and their lock renewed through apt."""

from __future__ import annotations

import functools
import hashlib
import io
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from needs import absent

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGES = Path(__file__).parents[2] / "images"
CONTENT = b"a package"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
FETCH = f"""
import debian
package = debian.Package("amd64", "libc6", "2.0-1", "pool/libc6+x.deb", {len(CONTENT)}, "{DIGEST}")
print(debian.fetch(package).decode())
"""
UNPACK = """
import pathlib, sys, debian
found = debian.unpack(pathlib.Path(sys.argv[1]).read_bytes(), pathlib.Path(sys.argv[2]))
print(found.control.strip(), *[path.name for path in found.files])
"""


class Builder:
    """The builders in a folder of their own, with an empty cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(IMAGES, folder / "images", ignore=shutil.ignore_patterns("__pycache__"))

    @property
    def cache(self) -> Path:
        return self.folder / f".cache/images/debian/{DIGEST}.deb"

    @property
    def lock(self) -> Path:
        return self.folder / "images/debian.lock"

    def run(self, script: str, *words: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script that may import them; a failure must be a message."""
        variables |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.folder / "images")}
        command: list[str | Path] = [sys.executable, "-c", script, *words]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)
        assert "Traceback" not in done.stderr
        return done

    def fetch(self, mirrors: str) -> subprocess.CompletedProcess[str]:
        return self.run(FETCH, DEBIAN_MIRRORS=mirrors)


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path)


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """Return the URL of a mirror that has the package."""
    pool = tmp_path / "mirror/pool"
    pool.mkdir(parents=True)
    (pool / "libc6+x.deb").write_bytes(CONTENT)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=pool.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_package_comes_from_the_first_mirror_that_has_it_and_then_from_the_cache(
    builder: Builder, mirror: str
) -> None:
    for mirrors in (f"{mirror}/elsewhere {mirror}/", "http://127.0.0.1:9"):
        done = builder.fetch(mirrors)
        assert (done.returncode, done.stdout) == (0, "a package\n"), done.stderr


def test_a_damaged_file_in_the_cache_is_fetched_again(builder: Builder, mirror: str) -> None:
    builder.cache.parent.mkdir(parents=True)
    builder.cache.write_bytes(b"a pack")
    assert builder.fetch(mirror).stdout == "a package\n"
    assert builder.cache.read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"A package", b"a pack", b"a package and more", b""])
def test_what_a_mirror_sends_must_have_the_locked_digest(
    content: bytes, builder: Builder, mirror: str, tmp_path: Path
) -> None:
    (tmp_path / "mirror/pool/libc6+x.deb").write_bytes(content)
    done = builder.fetch(mirror)
    assert done.returncode == 1
    assert "libc6 2.0-1: the mirror's file has another SHA-256 than debian.lock says" in done.stderr
    assert not builder.cache.exists()


@pytest.mark.parametrize("mirrors", ["http://127.0.0.1:9", "http://127.0.0.1:9 no-url", "http://127.0.0.1:port"])
def test_a_package_that_no_mirror_has_is_named_with_the_remedy(mirrors: str, builder: Builder) -> None:
    done = builder.fetch(mirrors)
    assert done.returncode == 1
    assert "libc6 2.0-1 (amd64) cannot be downloaded" in done.stderr
    assert all(f"  {each}: " in done.stderr for each in mirrors.split())
    assert done.stderr.strip().endswith("run: make images-lock")


def tar(*entries: tuple[str, bytes | str]) -> bytes:
    """Return a compressed tar; text stands for a link's target."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return lzma.compress(buffer.getvalue())


def deb(**members: bytes) -> bytes:
    """Return an ar archive; `_` stands for a dot."""
    text = b"!<arch>\n"
    for name, content in members.items():
        text += f"{name.replace('_', '.'):16}{'0':12}{'0':6}{'0':6}{'100644':8}{len(content):<10}`\n".encode()
        text += content + b"\n" * (len(content) % 2)
    return text


CONTROL = tar(("./control", b"Package: libc6\n"))


def test_a_package_is_unpacked_with_its_links(builder: Builder, tmp_path: Path) -> None:
    data = tar(("./lib/libc.so.6", b"code"), ("./lib/libc.so", "libc.so.6"))
    (tmp_path / "one.deb").write_bytes(deb(control_tar_xz=CONTROL, data_tar_xz=data))
    done = builder.run(UNPACK, tmp_path / "one.deb", tmp_path / "out")
    assert (done.returncode, done.stdout) == (0, "Package: libc6 libc.so.6\n"), done.stderr
    assert (tmp_path / "out/lib/libc.so").read_bytes() == b"code"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK", "a package is not an ar archive"),
        (
            deb(control_tar_xz=CONTROL, data_tar_zst=b""),
            "a package holds no data.tar.xz, but control.tar.xz, data.tar.zst",
        ),
        (deb(control_tar_xz=CONTROL, data_tar_xz=tar(("../out", b""))), "a package holds the path ../out"),
    ],
    ids=["another file", "another compression", "a way out"],
)
def test_what_is_no_package_ends_the_build(content: bytes, message: str, builder: Builder, tmp_path: Path) -> None:
    (tmp_path / "one.deb").write_bytes(content)
    done = builder.run(UNPACK, tmp_path / "one.deb", tmp_path / "out")
    assert (done.returncode, done.stderr) == (1, f"-c: error: {message}\n")


# --- renewing the lock, by apt itself from an archive in a folder ---


def renew(builder: Builder, version: str, *architectures: str) -> subprocess.CompletedProcess[str]:
    """Renew the lock from an archive that holds every package for these architectures."""
    if not shutil.which("apt-get"):
        absent("apt-get is needed: it alone can renew the lock")
    archive = builder.folder / "archive"
    archive.mkdir(exist_ok=True)
    names = builder.run("import debian; print(*debian.PACKAGES)").stdout.split()
    packages = {(name, each if name != "ca-certificates" else "all") for name in names for each in architectures}
    (archive / "Packages").write_text("".join(paragraph(*package, version) for package in packages))
    (builder.folder / "sources").write_text(f"deb [trusted=yes] file:{archive} ./\n")
    settings = {"Dir::Etc::sourcelist": builder.folder / "sources", "Dir::Etc::sourceparts": "/dev/null"}
    settings["APT::Sandbox::User"] = "root"  # the folder is this user's alone
    (builder.folder / "apt.conf").write_text("".join(f'{name} "{text}";\n' for name, text in settings.items()))
    return builder.run("import debian; debian.renew()", APT_CONFIG=str(builder.folder / "apt.conf"))


def paragraph(name: str, architecture: str, version: str) -> str:
    """Return what an archive's index says of a package."""
    digest = hashlib.sha256(f"{name} {architecture}".encode()).hexdigest()
    return (
        f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: nobody\nDescription: none\n"
        f"Filename: pool/{name}_{architecture}.deb\nSize: 7\nSHA256: {digest}\n\n"
    )


def test_renewing_the_lock_takes_what_apt_finds_and_shows_what_changed(builder: Builder) -> None:
    done = renew(builder, "2:1.0-1+b1", "amd64", "arm64")
    assert (done.returncode, done.stderr) == (0, "")
    changes = done.stdout.splitlines()
    assert len(changes) == len(builder.lock.read_text().splitlines()) - 1
    assert any(re.fullmatch(r"arm64 libc6: 2\.\d.* -> 2:1\.0-1\+b1", line) for line in changes)
    digest = hashlib.sha256(b"libc6 amd64").hexdigest()
    assert f"amd64 libc6 2:1.0-1+b1 pool/libc6_amd64.deb 7 {digest}\n" in builder.lock.read_text()
    again = renew(builder, "2:1.0-1+b1", "amd64", "arm64")
    assert (again.returncode, again.stdout) == (0, ""), again.stderr


def test_an_archive_that_lacks_packages_leaves_the_lock_as_it_is(builder: Builder) -> None:
    before = builder.lock.read_text()
    done = renew(builder, "2:1.0-1", "amd64")
    assert done.returncode == 1
    assert "apt-get failed" in done.stderr
    assert builder.lock.read_text() == before
