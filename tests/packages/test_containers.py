"""In real containers: an empty one with only a static Go consumer uses the plugin from an image volume, or installed.

The consumer is the access library's own; hub and spoke are one API server on loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from typing import TYPE_CHECKING

import pytest

from execcred.conformance.fakes import Identity, KubeServer
from packages.built import DIST, PATHS, ROOT, TOKEN, Result, absent, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CONSUMER = ROOT / ".cache/go-bin/consumer"
IMAGE = "localhost/secretreader-plugin:test"
# As strict as a pod can be. The limits are for machines that may not raise their own.
STRICT = "--read-only --read-only-tmpfs=false --user 65532:65532 --cap-drop ALL --security-opt no-new-privileges"
STRICT += " --network host --pull never --ulimit nofile=1024:1024 --ulimit nproc=1024:1024"


class Podman:
    """Podman with a storage of its own."""

    def __init__(self, folder: Path) -> None:
        self.command = ["podman", "--runtime", "runc", "--root", f"{folder}/root", "--runroot", f"{folder}/run"]

    def __call__(self, *words: str | Path) -> Result:
        return run([*self.command, *words], {**PATHS, "HOME": "/nonexistent"}, timeout=300)

    def run(self, options: Sequence[str], image: str, *arguments: str) -> Result:
        return self("run", "--rm", *STRICT.split(), *options, image, *arguments)


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Podman:
    """Return Podman with two images: the plugin's, and an empty one with the consumer."""
    if os.geteuid() or not shutil.which("podman") or not shutil.which("runc"):
        absent("podman and runc, as root, are needed")
    if not CONSUMER.exists():
        absent("the consumer is not built; run: make interop-tools")
    folder = tmp_path_factory.mktemp("podman")
    podman = Podman(folder)
    loaded = podman("load", "-i", DIST / "images/secretreader.oci.tar")
    assert loaded.status == 0, loaded.err
    assert podman("tag", loaded.out.strip().rpartition(": ")[2], IMAGE).status == 0
    with tarfile.open(folder / "consumer.tar", "w") as archive:
        archive.add(CONSUMER, "consumer")
    assert podman("import", folder / "consumer.tar", "localhost/consumer:test").status == 0
    return podman


@pytest.fixture
def conf(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with the hub's kubeconfig and one ClusterProfile, for /conf."""
    folder = tmp_path / "conf"
    folder.mkdir(mode=0o755)
    with KubeServer() as server:
        server.tokens |= {"of-the-reader": Identity("reader"), TOKEN: Identity("controller")}
        server.allow("reader", "get", "secrets")
        server.allow("controller", "list", "namespaces")
        server.put_secret("fleet", "c1", {"token": TOKEN})
        hub = server.kubeconfig({"token": "of-the-reader"}, "fleet")
        (folder / "hub.json").write_text(json.dumps(hub))
        entry = hub["clusters"][0]["cluster"]
        name = "client.authentication.k8s.io/exec"
        cluster = {**entry, "extensions": [{"name": name, "extension": {"clusterName": "c1"}}]}
        profile = {
            "metadata": {"name": "c1", "namespace": "fleet"},
            "status": {"accessProviders": [{"name": "secretreader", "cluster": cluster}]},
        }
        (folder / "profiles.json").write_text(json.dumps([profile]))
        yield folder


def consume(podman: Podman, conf: Path, mounted: str, options: Sequence[str]) -> dict[str, object]:
    """Let the consumer in an otherwise empty container use the plugin under `mounted`; return what it found out."""
    execution = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": f"{mounted}/bin/secretreader-plugin",
        "args": ["--kubeconfig", "/conf/hub.json"],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    (conf / "providers.json").write_text(json.dumps({"providers": [{"name": "secretreader", "execConfig": execution}]}))
    for path in (conf, *conf.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    files = ["-clusterprofile-provider-file", "/conf/providers.json", "-profile-file", "/conf/profiles.json"]
    options = [*options, "--volume", f"{conf}:/conf:ro", "--entrypoint", "/consumer"]
    done = podman.run(options, "localhost/consumer:test", *files)
    assert (done.status, done.err) == (0, ""), done
    fact: dict[str, object] = json.loads(done.out)
    return fact


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mounted", ["/access-plugins/secretreader", "/odd path/ünï"])
def test_an_image_volume_works_at(mounted: str, podman: Podman, conf: Path) -> None:
    fact = consume(podman, conf, mounted, ["--mount", f"type=image,source={IMAGE},destination={mounted}"])
    assert fact.get("user") == "controller", fact


@pytest.mark.timeout(600)
def test_an_init_container_installs_for_the_consumer(podman: Podman, conf: Path, tmp_path: Path) -> None:
    volume = tmp_path / "emptydir"
    volume.mkdir()
    volume.chmod(0o777)
    shared = ["--volume", f"{volume}:/plugins"]
    assert podman.run(shared, IMAGE, "install", "/plugins") == (0, "/plugins/bin/secretreader-plugin installed\n", "")
    again = podman.run(shared, IMAGE, "install", "/plugins")
    assert again == (0, "/plugins/bin/secretreader-plugin is installed already\n", "")
    fact = consume(podman, conf, "/plugins", ["--volume", f"{volume}:/plugins:ro"])
    assert fact.get("user") == "controller", fact


@pytest.mark.timeout(600)
def test_the_image_itself_runs_without_tmp_and_home(podman: Podman) -> None:
    done = podman.run([], IMAGE, "--version")
    assert done == (0, done.out, "")
    assert done.out.startswith("secretreader-plugin ")
