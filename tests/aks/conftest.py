"""Fixtures: a throw-away Azure."""

from __future__ import annotations

import http.client
import logging
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from aks.plugin import PATIENT
from execcred.conformance.fakes.azure import CLIENT, TENANT, Entra, Metadata, federated
from execcred.conformance.fakes.pki import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def untamed() -> Iterator[None]:
    """Undo what `Env.tame` does to a process, as this one does not end with the answer."""
    popen, last_resort, raising = subprocess.Popen, logging.lastResort, logging.raiseExceptions
    response = http.client.HTTPConnection.response_class
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    handlers = {number: signal.getsignal(number) for number in numbers}
    proxied = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy")}
    yield
    for name, text in proxied.items():
        os.environ.pop(name, None)
        os.environ |= {} if text is None else {name: text}
    subprocess.Popen = popen  # type: ignore[misc]
    http.client.HTTPConnection.response_class = response
    logging.lastResort, logging.raiseExceptions = last_resort, raising
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def ca_file(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    path.write_text(authority.pem)
    return str(path)


@pytest.fixture
def entra(authority: Authority) -> Iterator[Entra]:
    with Entra(authority) as server:
        yield server


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    with Metadata() as server:
        yield server


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "federated"
    path.write_text(federated())
    return path


@pytest.fixture
def base(entra: Entra, ca_file: str) -> dict[str, str]:
    """The variables that lead to the throw-away Entra ID."""
    return {"SSL_CERT_FILE": ca_file, "AZURE_AUTHORITY_HOST": f"{entra.url}/", **PATIENT}


@pytest.fixture
def workload(base: dict[str, str], token_file: Path) -> dict[str, str]:
    """The variables that the webhook of workload identity puts into a pod."""
    ours = {"AZURE_CLIENT_ID": CLIENT, "AZURE_TENANT_ID": TENANT, "AZURE_FEDERATED_TOKEN_FILE": str(token_file)}
    return {**base, **ours}
