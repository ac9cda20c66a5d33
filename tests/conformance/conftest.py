"""One certificate authority for all vectors."""

from __future__ import annotations

import pytest

from execcred.conformance.fakes import Authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()
