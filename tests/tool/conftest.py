"""A fleet per test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from execcred.conformance.fakes import KubeServer
from tool.hubs import Fleet, Spoke

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with KubeServer() as hub, Spoke() as spoke:
        yield Fleet(hub, spoke, tmp_path)
