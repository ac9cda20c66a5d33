"""The local Google of each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from execcred.conformance.fakes import Authority, ConnectProxy
from execcred.conformance.fakes.google import HOSTS, Google, MetadataServer, SubjectServer
from gke.cloud import Cloud

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def cloud(authority: Authority, tmp_path: Path) -> Iterator[Cloud]:
    ca = tmp_path / "ca.pem"
    ca.write_text(authority.pem)
    with (
        Google(authority.server_context(*HOSTS, "127.0.0.1", "localhost")) as google,
        ConnectProxy(dict.fromkeys(HOSTS, google.port)) as proxy,
    ):
        yield Cloud(google, proxy, ca, tmp_path)


@pytest.fixture
def metadata(cloud: Cloud) -> Iterator[MetadataServer]:
    with MetadataServer(cloud.google) as server:
        yield server


@pytest.fixture
def subjects() -> Iterator[SubjectServer]:
    with SubjectServer() as server:
        yield server
