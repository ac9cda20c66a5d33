"""One certificate authority for all vectors."""

from __future__ import annotations

import pytest

from fakes import Authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()
