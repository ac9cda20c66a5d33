"""Fixtures of the eks tests."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
import trustme

from execcred.conformance.fakes.aws import Cloud

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as server:
        yield server


@pytest.fixture
def tls_cloud(tmp_path: Path) -> Iterator[Cloud]:
    ca, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with Cloud(context, str(tmp_path / "ca.pem")) as server:
        yield server


@pytest.fixture(params=["the SDK asks", "we ask"])
def sts_cloud(request: pytest.FixtureRequest) -> Cloud:
    """A cloud that the SDK asks, as its STS speaks plain HTTP, or we, as it speaks TLS."""
    found: Cloud = request.getfixturevalue("cloud" if request.param == "the SDK asks" else "tls_cloud")
    return found
