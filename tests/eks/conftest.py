"""Fixtures of the eks tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eks.cloud import Cloud

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as server:
        yield server
