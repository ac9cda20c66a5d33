"""What holds for every test: it talks to loopback only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from execcred.conformance.loopback.sitecustomize import leaves_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

VIOLATIONS: list[str] = []


def _forbid(event: str, args: tuple[object, ...]) -> None:
    if where := leaves_loopback(event, args):
        VIOLATIONS.append(f"{event} {where}")
        raise PermissionError(f"a test must not leave loopback: {event} {where}")


sys.addaudithook(_forbid)


@pytest.fixture(autouse=True)
def only_loopback() -> Iterator[None]:
    """Fail a test that tried to leave loopback, also when the code it tested swallowed the refusal."""
    VIOLATIONS.clear()
    yield
    assert not VIOLATIONS
