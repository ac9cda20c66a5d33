"""Build dist/images/<name>.oci.tar: one image per plugin, for amd64 and arm64, without root, daemon or base image."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import closure
import debian
import oci
import sbom
import wheels
from layout import BUILD, CACHE, DIST, ROOT, compile_tree, copy_sources, fail, module, plugins, run, version

PYTHON = "python3.11"
UNRESOLVED = ROOT / "images" / "unresolved.txt"
OS_RELEASE = 'PRETTY_NAME="execcred on Debian GNU/Linux 12"\nNAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n'


class Machine(NamedTuple):
    """How Debian, uv and zig call an architecture, and its loader."""

    debian: str
    triplet: str
    loader: str
    wheels: str
    zig: str


MACHINES = {
    "amd64": Machine("amd64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2", "x86_64-manylinux_2_36", "x86_64-linux-musl"),
    "arm64": Machine(
        "arm64", "aarch64-linux-gnu", "ld-linux-aarch64.so.1", "aarch64-manylinux_2_36", "aarch64-linux-musl"
    ),
}
HOST = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, "")


class Base(NamedTuple):
    """The Debian packages of an architecture, unpacked into one folder."""

    machine: Machine
    root: Path
    packages: list[debian.Package]
    unpacked: dict[str, debian.Unpacked]

    @property
    def stdlib(self) -> Path:
        """The whole standard library."""
        return self.root / "usr/lib" / PYTHON

    @property
    def folders(self) -> list[Path]:
        """Where its shared libraries lie."""
        return [self.root / "usr/lib" / self.machine.triplet, self.root / "lib" / self.machine.triplet]

    @property
    def loader(self) -> Path:
        """What starts its programs."""
        return next(path for folder in self.folders if (path := folder / self.machine.loader).exists())


@functools.cache
def base(architecture: str) -> Base:
    """Unpack the locked packages of an architecture, once per build."""
    root = BUILD / "images" / "debian" / architecture
    shutil.rmtree(root, ignore_errors=True)
    packages = debian.locked(architecture)
    unpacked = {package.name: debian.unpack(debian.fetch(package), root) for package in packages}
    return Base(MACHINES[architecture], root, packages, unpacked)


@functools.cache
def interpreter() -> list[str]:
    """Return the command of the whole, unpruned interpreter for this machine: it compiles, also for the other."""
    if not HOST:
        fail(f"images are built on amd64 or arm64, not on {os.uname().machine}")
    host = base(HOST)
    libraries = ":".join(map(str, host.folders))
    command = [str(host.loader), "--inhibit-cache", "--library-path", libraries, str(host.root / "usr/bin" / PYTHON)]
    return [*command, "-I", "-S", "-B"]


def tree(plugin: str, architecture: str) -> Path:
    """Make the tree of a plugin's image for an architecture and return its folder."""
    root = BUILD / "images" / plugin / architecture
    shutil.rmtree(root, ignore_errors=True)
    home = root / "lib" / f"{plugin}-plugin"
    source = base(architecture)
    _application(plugin, source.machine, home / "app")
    used = _packages_of(_runtime(source, home / "app", home / "rt"), source)
    _compile(source, home)
    (home / "etc").mkdir()
    (home / "etc/openssl.cnf").write_text("# Empty: the container's OpenSSL settings are not meant for the plugin.\n")
    (home / "etc/ca-certificates.crt").write_bytes(_ca_bundle(source.root))
    _licences(source, used, home / "licenses")
    (home / "sbom.spdx.json").write_text(sbom.document(plugin, architecture, used, home / "app"))
    _for_scanners(source, used, root)
    (root / "bin").mkdir()
    _launcher(plugin, source.machine, root / "bin" / f"{plugin}-plugin")
    return root


def _application(plugin: str, machine: Machine, app: Path) -> None:
    wheels.install(plugin, app, machine.wheels)
    copy_sources(plugin, app)
    shutil.copyfile(ROOT / "images/image_main.py", app / "__main__.py")
    shutil.copyfile(ROOT / "images/execcred_install.py", app / "execcred_install.py")


def _runtime(source: Base, app: Path, rt: Path) -> set[Path]:
    """Copy what the application can reach: modules, the interpreter, libraries, their loader; return the originals."""
    reached = closure.closure(app, source.stdlib, builtins())
    _check_unresolved(reached.unresolved)
    for path in reached.files:
        _copy(path, rt / "lib" / PYTHON / path.relative_to(source.stdlib))
    (rt / "lib" / PYTHON / "lib-dynload").mkdir(exist_ok=True)  # where it is not, the interpreter warns
    binary = source.root / "usr/bin" / PYTHON
    _copy(binary, rt / "bin" / PYTHON, executable=True)
    objects = [rt / "bin" / PYTHON, *rt.rglob("*.so"), *app.rglob("*.so"), *app.rglob("*.so.*")]
    try:
        libraries = closure.libraries(objects, source.folders, app, source.machine.debian)
    except (OSError, ValueError) as error:
        fail(str(error))
    for name, path in libraries.items():
        _copy(path, rt / "lib" / name)
    _copy(source.loader, rt / "ld.so", executable=True)
    return {*reached.files, *libraries.values(), binary, source.loader}


def _packages_of(paths: set[Path], source: Base) -> list[debian.Package]:
    """Return the packages that gave one of `paths`, and those used as a whole: certificates, libgcc's licence."""
    resolved = {path.resolve() for path in paths}
    whole = ("ca-certificates", "gcc-12-base")
    used = {name for name, unpacked in source.unpacked.items() if not resolved.isdisjoint(unpacked.files)}
    return [package for package in source.packages if package.name in {*whole, *used}]


@functools.cache
def builtins() -> set[str]:
    """Return the names of the modules inside the interpreter itself."""
    return set(run([*interpreter(), "-c", "import sys; print(*sys.builtin_module_names)"]).split())


def _check_unresolved(names: set[str]) -> None:
    reviewed = {line for line in UNRESOLVED.read_text().splitlines() if line and line[0] != "#"}
    new = sorted(name for name in names if not any(f"{name}.".startswith(f"{known}.") for known in reviewed))
    if new:
        fail(f"imports that lead nowhere and are not in {UNRESOLVED.name}: {' '.join(new)}")


def _compile(source: Base, home: Path) -> None:
    if _python_version(source) != _python_version(base(HOST)):
        fail("debian.lock holds different Python versions for the two architectures; run: make images-lock")
    compile_tree(interpreter(), home)
    main = home / "app" / "__pycache__" / "__main__.cpython-311.pyc"
    main.rename(home / "app" / "__main__.pyc")


def _python_version(source: Base) -> str:
    return next(package.version for package in source.packages if package.name == f"{PYTHON}-minimal")


def _ca_bundle(root: Path) -> bytes:
    """Return Mozilla's CA certificates in one file, as Debian ships them."""
    paths = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    if len(paths) < 50:
        fail("ca-certificates holds hardly any certificates")
    return b"".join(path.read_bytes().rstrip() + b"\n" for path in paths)


def _licences(source: Base, used: list[debian.Package], target: Path) -> None:
    _copy(ROOT / "LICENSE", target / "execcred" / "LICENSE")
    for package in used:
        copyright_file = source.root / "usr/share/doc" / package.name / "copyright"
        if not copyright_file.exists():
            fail(f"{package.name} holds no copyright file")
        _copy(copyright_file, target / package.name / "copyright")
    zig = importlib.util.find_spec("ziglang")
    where = zig.submodule_search_locations if zig else None
    if not where:
        fail("the package ziglang is not installed; run: make setup")
    _copy(Path(where[0]) / "lib/libc/musl/COPYRIGHT", target / "musl" / "COPYRIGHT")


def _for_scanners(source: Base, used: list[debian.Package], root: Path) -> None:
    """Name the distribution and its packages where vulnerability scanners look for them."""
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text(OS_RELEASE)
    status = root / "var/lib/dpkg/status.d"
    status.mkdir(parents=True)
    for package in used:
        (status / package.name).write_text(source.unpacked[package.name].control)


def _launcher(plugin: str, machine: Machine, target: Path) -> None:
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = os.environ["ZIG_LOCAL_CACHE_DIR"] = str(CACHE / "zig")
    flags = ["-target", machine.zig, "-static", "-Os", "-s", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    name = f'-DNAME="{plugin}-plugin"'
    run([sys.executable, "-m", "ziglang", "cc", *flags, name, "-o", str(target), "images/launcher.c"])
    target.chmod(0o555)


def _copy(path: Path, target: Path, *, executable: bool = False) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(path.read_bytes())
    target.chmod(0o555 if executable else 0o444)


def labels(plugin: str) -> dict[str, str]:
    """Return the labels of a plugin's image."""
    summary = (ROOT / "plugins" / plugin / f"{module(plugin)}.py").read_text().partition('"""')[2].partition("\n")[0]
    return {
        "org.opencontainers.image.title": f"{plugin}-plugin",
        "org.opencontainers.image.description": summary.rstrip('".'),
        "org.opencontainers.image.version": version(),
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.base.name": "scratch",
    }


def build(plugin: str, target: Path) -> str:
    """Build one plugin's image; return a line for the log."""
    trees = {architecture: tree(plugin, architecture) for architecture in MACHINES}
    images = [oci.Image(name, folder, f"/bin/{plugin}-plugin", labels(plugin)) for name, folder in trees.items()]
    archive = target / f"{plugin}.oci.tar"
    digest = oci.write(archive, images, f"{plugin}-plugin:{version()}")
    for architecture, folder in trees.items():
        shutil.copyfile(
            folder / "lib" / f"{plugin}-plugin" / "sbom.spdx.json", target / f"{plugin}-{architecture}.spdx.json"
        )
    sizes = " ".join(f"{name} {_size(folder) / 1e6:.1f} MB" for name, folder in trees.items())
    return f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}  {digest}  {sizes}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Build the images named on the command line, or all."""
    for plugin in sys.argv[1:] or plugins():
        print(build(plugin, Path(os.environ.get("DIST") or DIST) / "images"), flush=True)


if __name__ == "__main__":
    main()
