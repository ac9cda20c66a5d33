"""Two real API servers, hub and spoke, and for each test a reader on the hub that may get named Secrets only."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interop.cluster import ApiServer, start_etcd, until
from interop.fleet import GO_BIN, INVENTORY, ROOT, Reader
from interop.follower import Follower
from needs import absent

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = ("kube-apiserver", "kubectl", "consumer", "upstream-secretreader", "upstream-kubeconfig-secretreader")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in this folder, and keep it on one worker: two pairs of servers would be waste."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.interop)
            item.add_marker(pytest.mark.xdist_group("interop"))


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the URL of an etcd for both servers, each under its own prefix."""
    missing = [name for name in TOOLS if not (GO_BIN / name).exists()]
    if missing:
        absent(f"not built: {', '.join(missing)}; run `make interop-tools` (needs Go)")
    program = shutil.which("etcd")
    if not program:
        absent("etcd is not installed; Debian's package is etcd-server")
    process, url = start_etcd(program, tmp_path_factory.mktemp("etcd"))
    yield url
    process.stop()


@pytest.fixture(scope="session")
def servers(etcd: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ApiServer, ApiServer]]:
    """Start hub and spoke side by side; the hub knows ClusterProfiles."""
    program = str(GO_BIN / "kube-apiserver")
    with contextlib.ExitStack() as stack:
        hub = ApiServer(program, etcd, tmp_path_factory.mktemp("hub"))
        stack.callback(hub.stop)
        spoke = ApiServer(program, etcd, tmp_path_factory.mktemp("spoke"))
        stack.callback(spoke.stop)
        for server in (hub, spoke):
            server.ready()
        crd = module_file("config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml").read_text()
        name = "clusterprofiles.multicluster.x-k8s.io"
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager=tests"
        hub.patch(path, crd, "application/apply-patch+yaml")
        until("the hub serves ClusterProfiles", lambda: hub.status("GET", f"/{INVENTORY}/clusterprofiles") == 200)
        spoke.welcome()
        yield hub, spoke


def module_file(name: str) -> Path:
    """Return a file of the cluster-inventory-api module that the consumer is built from."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api"]
    found = subprocess.run(command, cwd=ROOT / "tests/interop/go/inventory", capture_output=True, text=True, check=True)
    return Path(found.stdout.strip()) / name


@pytest.fixture
def hub(servers: tuple[ApiServer, ApiServer]) -> ApiServer:
    return servers[0]


@pytest.fixture
def spoke(servers: tuple[ApiServer, ApiServer]) -> ApiServer:
    return servers[1]


@pytest.fixture
def reader(hub: ApiServer, spoke: ApiServer, tmp_path: Path) -> Reader:
    """Return a fresh identity on the hub, which may nothing yet."""
    return Reader(hub, spoke, tmp_path)


@pytest.fixture
def follower(hub: ApiServer, spoke: ApiServer, tmp_path: Path) -> Follower:
    """Return somebody who follows pages from an empty folder."""
    return Follower(hub, spoke, tmp_path)
