"""Build dist/<name>-plugin.pyz and dist/execcred.pyz: one file that any Python >= 3.11 runs, reproducible by the byte.

The Secret readers run from inside the archive. A cloud plugin's SDK lies in it as `sdk.zip` and is unpacked when it
is first imported, see execcred_unpack.py; with machine code in it, the archive fits one Python and platform.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import wheels
from layout import DIST, EPOCH, ROOT, TOOL, compile_tree, copy_sources, copy_tool, fail, module, plugins

# Run as a file, the archive starts without the interpreter's runpy, a third of the time that --help takes.
SHEBANG = (
    b'#!/usr/bin/env -S python3 -I -S -c "import sys;sys.path.insert(0,sys.argv.pop(1));'
    b'from execcred_start import main;main()"\n'
)
# Run as `python3 FILE`, it starts here.
MAIN = """\
from execcred_start import main

main()
"""
# Any Python can read this, so that an old one says what is wrong; %s are filled in below.
START = """\
import sys

if sys.version_info < (3, 11):
    sys.stderr.write("{name}: error: Python 3.11 or newer is needed, this is %d.%d [python-too-old]\\n"
                     "hint: name a newer one: python3.11 FILE\\n" % sys.version_info[:2])
    sys.exit(1)
{sdk}
from {module} import main
"""
NATIVE = """
import os

if sys.version_info[:2] != {python} or sys.platform != {system!r} or os.uname().machine != {machine!r}:
    sys.stderr.write("{name}: error: this archive holds machine code for Python %d.%d on {system} {machine} "
                     "[wrong-platform]\\nhint: take the archive for this machine, or the image form\\n" % {python})
    sys.exit(1)
"""
SDK = """
from execcred_unpack import SdkFinder

sys.meta_path.append(SdkFinder(__loader__, {folder!r}, {names!r}, {native!r}))
"""


def build(plugin: str, target: Path) -> Path:
    """Build one archive in `target` and return its path."""
    with tempfile.TemporaryDirectory() as folder:
        tree, sdk = Path(folder, "tree"), Path(folder, "sdk")
        tree.mkdir()
        copy_sources(plugin, tree)
        wheels.install(plugin, sdk)
        tags, start = "", ""
        if plugin.endswith("secretreader"):
            if wheels.is_native(sdk):
                fail(f"{plugin} must be pure Python, but its wheels hold machine code")
            shutil.copytree(sdk, tree, dirs_exist_ok=True)
        else:
            tags, start = _add_sdk(plugin, sdk, tree)
        start = START.format(name=f"{plugin}-plugin", module=module(plugin), sdk=start)
        return _finished(tree, start, target / f"{plugin}-plugin{tags}.pyz")


def build_tool(target: Path) -> Path:
    """Build the archive of the tool `execcred` in `target`: with all plugins' settings, and without any SDK."""
    with tempfile.TemporaryDirectory() as folder:
        tree, sdk = Path(folder, "tree"), Path(folder, "sdk")
        copy_tool(tree)
        wheels.install(TOOL, sdk)
        shutil.copytree(sdk, tree, dirs_exist_ok=True)
        return _finished(tree, START.format(name="execcred", module="execcred.tool", sdk=""), target / "execcred.pyz")


def _finished(tree: Path, start: str, archive: Path) -> Path:
    """Write an archive of `tree` whose module execcred_start is the text `start`; return its path."""
    shutil.copyfile(ROOT / "LICENSE", tree / "LICENSE")
    (tree / "__main__.py").write_text(MAIN)
    (tree / "execcred_start.py").write_text(start)
    compile_tree([sys.executable, "-I", "-S", "-B"], tree, adjacent=True)
    archive.parent.mkdir(parents=True, exist_ok=True)
    _write(archive, SHEBANG + zipped(tree, len(SHEBANG), stored=(".pyc", ".zip")))  # a start needs no zlib
    return archive


def _add_sdk(plugin: str, sdk: Path, tree: Path) -> tuple[str, str]:
    """Add `sdk.zip` to `tree`; return the tags for the archive's name and the code that makes it importable."""
    names = sorted({path.name.partition(".")[0] for path in sdk.iterdir() if path.suffix in ("", ".py", ".so")})
    native = wheels.is_native(sdk)
    compile_tree([sys.executable, "-I", "-S", "-B"], sdk)
    content = zipped(sdk)
    (tree / "sdk.zip").write_bytes(content)
    shutil.copyfile(ROOT / "images" / "execcred_unpack.py", tree / "execcred_unpack.py")
    folder = f"{plugin}-{hashlib.sha256(content).hexdigest()[:16]}"
    start = SDK.format(folder=folder, names=tuple(names), native=native)
    if not native:
        return "", start
    python, system, machine = sys.version_info[:2], sys.platform, os.uname().machine
    check = NATIVE.format(name=f"{plugin}-plugin", python=python, system=system, machine=machine)
    return f"-cp{python[0]}{python[1]}-{system}_{machine}", check + start


def zipped(tree: Path, offset: int = 0, stored: tuple[str, ...] = ()) -> bytes:
    """Return a zip of all files in `tree`: sorted names, one time, one mode, and offsets from `offset`.

    Files with a suffix in `stored` are not compressed.
    """
    buffer = io.BytesIO(bytes(offset))
    buffer.seek(offset)
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(path for path in tree.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(str(path.relative_to(tree)), time.gmtime(EPOCH)[:6])
            info.create_system = 3  # Unix, whatever builds
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_STORED if path.suffix in stored else zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes(), compresslevel=9)
    return buffer.getvalue()[offset:]


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.chmod(0o755)
    part.rename(path)


def main() -> None:
    """Build the archives named on the command line, or all, into the folder DIST."""
    target = Path(os.environ.get("DIST") or DIST)
    for name in sys.argv[1:] or [*plugins(), TOOL]:
        archive = build_tool(target) if name == TOOL else build(name, target)
        print(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}  {archive.stat().st_size}")


if __name__ == "__main__":
    main()
