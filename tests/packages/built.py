"""The built archives and images, unpacked for tests, and runs of what is in them."""

from __future__ import annotations

import functools
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from needs import absent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
READERS = ("secretreader", "kubeconfig-secretreader")
PLUGINS = (*READERS, "aks", "eks", "gke")
HOST = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
TAGS = f"-cp311-linux_{os.uname().machine}"
TOKEN = "token-of-the-spoke"


class Result(NamedTuple):
    """What a run left behind."""

    status: int
    out: str
    err: str

    @property
    def code(self) -> str:
        """The stable code of the error line; the error must be one line, with a hint at most, and no answer."""
        assert not self.out, "a failure prints no answer"
        first, *rest = self.err.splitlines()
        assert "error: " in first
        assert len(rest) < 2
        return first.rpartition("[")[2].rstrip("]")


def run(command: Sequence[str | Path], variables: Mapping[str, str] | None = None, **how: Any) -> Result:
    """Run a command in an otherwise empty environment, from /, without stdin."""
    how = {"cwd": "/", "stdin": subprocess.DEVNULL, "timeout": 100, "env": dict(variables or {}), **how}
    done = subprocess.run([str(word) for word in command], check=False, capture_output=True, **how)
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def archive(plugin: str) -> Path:
    """Return the path of a plugin's zipapp."""
    path = DIST / f"{plugin}-plugin{'' if plugin in (*READERS, 'eks') else TAGS}.pyz"
    assert path.exists(), "run: make test-packages"
    return path


class OciImage:
    """An OCI archive of ours, read as its specification says."""

    def __init__(self, path: Path) -> None:
        with tarfile.open(path) as archive_file:
            self.members = archive_file.getmembers()
            self.files = {member.name: archive_file.extractfile(member).read() for member in self.members}  # type: ignore[union-attr]
        self.top = json.loads(self.files["index.json"])
        self.index = self.blob(self.top["manifests"][0]["digest"])

    def blob(self, digest: str) -> Any:
        return json.loads(self.raw(digest))

    def raw(self, digest: str) -> bytes:
        return self.files["blobs/" + digest.replace(":", "/")]

    def manifest(self, architecture: str) -> Any:
        [entry] = [each for each in self.index["manifests"] if each["platform"]["architecture"] == architecture]
        return self.blob(entry["digest"])

    def config(self, architecture: str) -> Any:
        return self.blob(self.manifest(architecture)["config"]["digest"])

    def layer(self, architecture: str) -> tarfile.TarFile:
        [layer] = self.manifest(architecture)["layers"]
        return tarfile.open(fileobj=io.BytesIO(self.raw(layer["digest"])))

    def unpack(self, architecture: str, target: Path) -> Path:
        """Unpack the layer as a container runtime does: all modes as they are."""
        with self.layer(architecture) as layer:
            layer.extractall(target, filter="fully_trusted")
        return target


@functools.cache
def image(plugin: str) -> OciImage:
    """Return a plugin's image, read once."""
    path = DIST / "images" / f"{plugin}.oci.tar"
    assert path.exists(), "run: make test-packages"
    return OciImage(path)


def python_of(home: Path) -> list[str]:
    """Return the command of the interpreter in a tree's lib/<name>-plugin, as the launcher starts it."""
    loader = [str(home / "rt/ld.so"), "--inhibit-cache", "--library-path", str(home / "rt/lib")]
    return [*loader, str(home / "rt/bin/python3.11"), "-I", "-S", "-B", "-X", "utf8"]


def emulated_python(home: Path) -> list[str]:
    """Return the command of an arm64 tree's interpreter; the launcher itself cannot start it without binfmt."""
    qemu = shutil.which("qemu-aarch64-static")
    if not qemu:
        absent("qemu-aarch64-static is not installed; Debian's package is qemu-user-static")
    return [qemu, *python_of(home)]


def emulated(tree: Path, plugin: str) -> list[str]:
    """Return the command that starts a plugin of an arm64 tree on another machine: what its launcher would start."""
    home = tree / "lib" / f"{plugin}-plugin"
    return [*emulated_python(home), str(home / "app/__main__.pyc")]


def copied(tree: Path, target: Path) -> Path:
    """Copy a tree, so that a test may damage it."""
    shutil.copytree(tree, target, symlinks=True)
    return target


def sources(target: Path) -> Path:
    """Copy what the builders read into a new folder, with new times, beside a cache with what was downloaded."""
    for name in ("images", "common", "plugins", "requirements"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, target / name, copy_function=shutil.copyfile, ignore=ignored)
    shutil.copyfile(ROOT / "LICENSE", target / "LICENSE")
    (target / ".cache/images").mkdir(parents=True)
    (target / ".cache/images/debian").symlink_to(ROOT / ".cache/images/debian")
    return target


def in_namespace(script: str, *words: str | Path) -> list[str]:
    """Return a command that runs a shell script with mounts of its own; "$@" are `words`."""
    if not shutil.which("unshare") or run(["unshare", "--user", "--map-root-user", "--mount", "true"], PATHS).status:
        absent("unshare with user and mount namespaces is not allowed here")
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script, "sh", *map(str, words)]


PATHS = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def pythons() -> dict[tuple[int, ...], str]:
    """Return the interpreters of this machine by version: those in PATH, pyenv's, the system's."""
    folders = [*os.get_exec_path(), "/usr/bin", *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    found = {}
    for path in sorted({path for folder in folders for path in Path(folder).glob("python[23].[0-9]*")}):
        if re.fullmatch(r"python\d\.\d+", path.name):
            done = subprocess.run(
                [path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, check=False
            )
            if not done.returncode:
                found[tuple(map(int, re.findall(r"\d+", done.stdout.decode())))] = str(path)
    return found


PYTHONS = pythons()
NEW = {version: path for version, path in PYTHONS.items() if version >= (3, 11)}
OLD = {version: path for version, path in PYTHONS.items() if version < (3, 11)}
