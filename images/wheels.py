"""What plugins and tool need from the package index, as hash-pinned requirements files say, unpacked and slimmed."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from layout import ROOT, TOOL, fail, run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# What no flow of a plugin reads. AWS: the plugin uses botocore only.
UNUSED = ("bin", ".lock", "certifi/tests", "_yaml", "boto3", "boto3-*", "s3transfer", "s3transfer-*")
# Of PyYAML the layer imports the scanner, the parser and the composer; with an empty __init__ nothing else is loaded.
YAML_PARTS = ("__init__", "composer", "error", "events", "nodes", "parser", "scanner", "tokens")
# Of botocore's 28 MB of service data: what signing in takes.
SERVICES = ("sts", "sso", "sso-oidc", "eks", "signin")
IN_DIST_INFO = ("METADATA", "licenses", "LICENSE*", "LICENCE*", "NOTICE*", "COPYING*", "AUTHORS*", "sboms")


def install(plugin: str, target: Path, platform: str = "") -> None:
    """Install a plugin's locked wheels into `target`: this machine's, or those of uv's `platform` for Python 3.11."""
    command = [f"{sys.prefix}/bin/uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", str(target)]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--link-mode", "copy"]
    command += ["--python-platform", platform, "--python-version", "3.11"] if platform else []
    shutil.rmtree(target, ignore_errors=True)
    run([*command, "-r", str(ROOT / "requirements" / f"{plugin}.txt")])
    _slim(target)
    if plugin == TOOL:  # which writes YAML, too
        _unlink(path for path in target.glob("yaml/*") if path.suffix != ".py")
    else:
        _slim_yaml(target)


def is_native(target: Path) -> bool:
    """Say whether `target` holds machine code."""
    return any(target.rglob("*.so")) or any(target.rglob("*.so.*"))


def _slim(target: Path) -> None:
    unused = [path for pattern in UNUSED for path in target.glob(pattern)]
    for info in target.glob("*.dist-info"):
        kept = {path for pattern in IN_DIST_INFO for path in info.glob(pattern)}
        unused += [path for path in info.iterdir() if path not in kept]
        if info / "METADATA" not in kept:
            fail(f"{info.name} holds no METADATA")
    unused += _unused_data(target / "botocore" / "data")
    _unlink(unused)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)  # wheels disagree, and nothing in them is started


def _slim_yaml(target: Path) -> None:
    _unlink(path for path in target.glob("yaml/*") if path.suffix != ".py" or path.stem not in YAML_PARTS)
    for init in target.glob("yaml/__init__.py"):
        init.write_text("")


def _unlink(paths: Iterable[Path]) -> None:
    for path in list(paths):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _unused_data(data: Path) -> list[Path]:
    if not data.is_dir():
        return []
    missing = [name for name in SERVICES if not (data / name).is_dir()]
    if missing:
        fail(f"botocore holds no data for {', '.join(missing)}")
    folders = [path for path in data.iterdir() if path.is_dir() and path.name not in SERVICES]
    return folders + [path for name in SERVICES for path in data.glob(f"{name}/*/examples-1.json*")]
