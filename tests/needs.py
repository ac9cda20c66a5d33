"""What a test cannot do without."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import NoReturn

import pytest


def absent(what: str) -> NoReturn:
    """Skip for want of a tool or a right; under CI=true that is an error, as nobody would notice the skip."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def need_mounts() -> None:
    """Skip what mounts in a namespace of its own: only root may, and not in every container."""
    mounting = not os.geteuid() and shutil.which("unshare")
    if (
        not mounting
        or subprocess.run(["unshare", "--mount", "true"], check=False, stderr=subprocess.DEVNULL).returncode
    ):
        absent("needs unshare, and root that may mount")
