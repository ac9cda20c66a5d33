"""Tests of the built packages; `make test-packages` builds what they need, other runs leave them out."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from execcred.conformance.fakes import Identity, KubeServer
from packages.built import HOST, PLUGINS, TOKEN, image

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

collect_ignore_glob = [] if os.environ.get("EXECCRED_TEST_PACKAGES") else ["test_*.py"]


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return every plugin's image of this machine's architecture, unpacked: for reading only."""
    return {plugin: image(plugin).unpack(HOST, tmp_path_factory.mktemp(plugin)) for plugin in PLUGINS}


@pytest.fixture(scope="session")
def tree(trees: dict[str, Path]) -> Path:
    return trees["secretreader"]


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """Return the arguments with which the secretreader gets TOKEN from a hub."""
    with KubeServer() as hub:
        hub.tokens["of-the-reader"] = Identity("reader")
        hub.allow("reader", "get", "secrets")
        hub.put_secret("fleet", "c1", {"token": TOKEN})
        path = tmp_path / "hub.json"
        path.write_text(json.dumps(hub.kubeconfig({"token": "of-the-reader"}, "fleet")))
        path.chmod(0o644)
        yield "--kubeconfig", str(path), "--cluster-name", "c1", "--output", "token"
