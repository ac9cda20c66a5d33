"""In real containers: an empty one with only a static Go consumer uses each plugin from its image, or installed.

The consumer is the access library's own. The Secret readers' hub and spoke are real API servers; the clouds, and the
spokes under their names, are stand-ins on loopback.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from execcred.conformance.fakes import KubeServer
from interop.conftest import etcd, hub, reader, servers, spoke
from packages.built import PLUGINS, READERS, ROOT
from packages.containers import Podman, consume, tag
from packages.pods import pod

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["etcd", "hub", "reader", "servers", "spoke"]  # fixtures
pytestmark = pytest.mark.timeout(600)
CONFIGS = ROOT / "provider-configs"


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    podman = Podman(tmp_path_factory.mktemp("podman"))
    yield podman
    podman.close()


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """Return the folder that a container sees as /conf."""
    folder = tmp_path / "conf"
    folder.mkdir()
    return folder


def providers_of(name: str) -> list[dict[str, Any]]:
    """Return what a file of provider-configs gives to the access library; Argo CD's and Kueue's in its form."""
    text = (CONFIGS / name).read_text()
    found = json.loads(text) if name.endswith(".json") else yaml.safe_load(text)
    if "stringData" in found:
        config = json.loads(found["stringData"]["config"])["execProviderConfig"]
        fields = {key: value for key, value in config.items() if key not in ("config", "env")}
        environment = [{"name": key, "value": value} for key, value in config.get("env", {}).items()]
        return [{"name": Path(name).parent.name, "execConfig": {**fields, "env": environment}}]
    found = found.get("multiKueue", {}).get("clusterProfile", found)
    found = found.get("knative_operator", {}).get("multicluster", {}).get("accessProvidersConfig", found)
    [rows] = found.values()
    return list(rows)


def mount_of(providers: list[dict[str, Any]]) -> str:
    """Return where a provider's command wants the image."""
    [provider] = providers
    mounted, _, rest = provider["execConfig"]["command"].partition("/bin/")
    assert "/" not in rest
    return str(mounted)


FILES = sorted(
    str(path.relative_to(CONFIGS))
    for path in CONFIGS.glob("*/*.*")
    if path.suffix in (".json", ".yaml") and path.name != "clusterprofile.yaml"
)


@pytest.mark.parametrize("name", FILES)
def test_the_access_library_gets_a_credential_with_the_ready_file(
    name: str, podman: Podman, conf: Path, request: pytest.FixtureRequest
) -> None:
    """From the image, mounted where the file says, in a pod as its consumer's."""
    plugin, providers = Path(name).parent.name, providers_of(name)
    with pod(plugin, conf, request.getfixturevalue("reader") if plugin in READERS else None) as here:
        here.profile["status"]["accessProviders"][0]["name"] = providers[0]["name"]
        options = [*here.options, *podman.mounted(plugin, mount_of(providers))]
        assert consume(podman, conf, providers, here.profile, options).get("user") == here.user


@pytest.mark.parametrize("plugin", PLUGINS)
def test_it_gets_one_from_what_an_init_container_installed(
    plugin: str, podman: Podman, conf: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    volume = tmp_path / "emptydir"
    volume.mkdir()
    volume.chmod(0o777)
    shared = ["--volume", f"{volume}:/plugins"]
    for said in ("installed", "is installed already"):
        line = f"/plugins/bin/{plugin}-plugin {said}\n"
        assert podman.run(shared, tag(plugin), "install", "/plugins") == (0, line, "")
    providers = providers_of(f"{plugin}/generic.json")
    with pod(plugin, conf, request.getfixturevalue("reader") if plugin in READERS else None) as here:
        options = [*here.options, "--volume", f"{volume}:/plugins:ro"]
        assert consume(podman, conf, providers, here.profile, options).get("user") == here.user


@pytest.mark.parametrize("where", ["/odd path/ünï", "/-a=b/%2e\\'*?/bin"])
@pytest.mark.parametrize("plugin", PLUGINS)
def test_an_image_volume_works_at_an_odd_path(
    plugin: str, where: str, podman: Podman, conf: Path, request: pytest.FixtureRequest
) -> None:
    providers = providers_of(f"{plugin}/generic.json")
    providers[0]["execConfig"]["command"] = f"{where}/bin/{plugin}-plugin"
    with pod(plugin, conf, request.getfixturevalue("reader") if plugin in READERS else None) as here:
        options = [*here.options, *podman.mounted(plugin, where)]
        assert consume(podman, conf, providers, here.profile, options).get("user") == here.user


def test_the_hub_sees_one_read_of_one_secret(podman: Podman, conf: Path, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue("reader")
    with pod("secretreader", conf, found) as here:
        options = [*here.options, *podman.mounted("secretreader", "/plugins")]
        consume(podman, conf, providers_of("secretreader/generic.json"), here.profile, options)
    assert found.audited(1) == [found.one_get("spoke-1")]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_image_itself_runs_without_tmp_and_home(plugin: str, podman: Podman) -> None:
    done = podman.run([], tag(plugin), "--version")
    assert done == (0, done.out, "")
    assert done.out.startswith(f"{plugin}-plugin ")


def test_a_failure_in_a_container_reaches_the_log_in_two_lines(podman: Podman, conf: Path) -> None:
    """The hub refuses: what a pod's log shows, with the identity and what to grant."""
    with KubeServer() as server:
        (conf / "hub.json").write_text(json.dumps(server.kubeconfig({"token": "unknown"}, "fleet")))
        (conf / "hub.json").chmod(0o644)
        words = ["--kubeconfig", "/conf/hub.json", "--cluster-name", "c1"]
        done = podman.run(["--volume", f"{conf}:/conf:ro"], tag("secretreader"), *words)
    assert (done.status, done.code) == (1, "hub-unauthorized")
