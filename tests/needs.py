"""What a test cannot do without."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def absent(what: str) -> NoReturn:
    """Skip for want of a tool or a right; under CI=true that is an error, as nobody would notice the skip."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)
