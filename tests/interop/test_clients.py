"""A kubeconfig whose user is our plugin, in the hands of kubectl and of the official Python client."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kubernetes import client, config

from interop.cluster import Json, b64, kubeconfig
from interop.fleet import EXEC_EXTENSION, GO_BIN, executable

if TYPE_CHECKING:
    from interop.fleet import Reader


def exec_kubeconfig(reader: Reader, plugin: str, exec_config: object, version: str = "v1") -> str:
    """Write a YAML kubeconfig for the spoke whose user runs a plugin; return its path."""
    command = {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "command": executable(plugin),
        "args": ["--kubeconfig", reader.kubeconfig],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    extension = {"name": EXEC_EXTENSION, "extension": exec_config}
    document = kubeconfig(reader.spoke.url, reader.spoke.ca, {"exec": command}, extensions=[extension])
    path = reader.folder / "spoke.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def kubectl(reader: Reader, path: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the kubectl of the API server's release."""
    environment = {name: value for name, value in reader.environment.items() if name != "KUBECONFIG"}
    return subprocess.run(
        [str(GO_BIN / "kubectl"), "--kubeconfig", path, *args],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def prepare(reader: Reader, kind: str) -> tuple[str, Json, str]:
    """Put a token or a certificate of the spoke into a Secret; return plugin, its config and the user's name."""
    reader.allow("c1")
    if kind == "token":
        reader.spoke.account(reader.namespace, "guest")
        reader.secret("c1", token=reader.spoke.account_token(reader.namespace, "guest")[0])
        return "secretreader", {"clusterName": "c1"}, f"system:serviceaccount:{reader.namespace}:guest"
    certificate, key = reader.spoke.certificate("dave")
    user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    reader.secret("c1", kubeconfig=yaml.safe_dump(kubeconfig(reader.spoke.url, reader.spoke.ca, user)))
    return "kubeconfig-secretreader", {"name": "c1"}, "dave"


@pytest.mark.parametrize("kind", ["token", "certificate"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_kubectl_reaches_the_spoke(reader: Reader, kind: str, version: str) -> None:
    plugin, exec_config, user = prepare(reader, kind)
    path = exec_kubeconfig(reader, plugin, exec_config, version)
    whoami = kubectl(reader, path, "auth", "whoami", "--output", "json")
    listing = kubectl(reader, path, "get", "namespaces", "--output", "name")
    assert (whoami.stderr, listing.stderr) == ("", "")
    assert json.loads(whoami.stdout)["status"]["userInfo"]["username"] == user
    assert f"namespace/{reader.namespace}" in listing.stdout.split()
    assert reader.audited(2) == [reader.one_get("c1")] * 2  # one for each kubectl


def test_kubectl_shows_our_error_and_hint(reader: Reader) -> None:
    done = kubectl(reader, exec_kubeconfig(reader, "secretreader", {"clusterName": "c1"}), "get", "namespaces")
    assert done.returncode != 0
    assert "secretreader-plugin: error: " in done.stderr
    assert "[hub-forbidden]\nhint: " in done.stderr


def test_kubectl_is_the_api_servers_release(reader: Reader) -> None:
    path = exec_kubeconfig(reader, *prepare(reader, "token")[:2])
    versions = json.loads(kubectl(reader, path, "version", "--output", "json").stdout)
    assert versions["clientVersion"]["gitVersion"] == versions["serverVersion"]["gitVersion"] == "v1.36.3"


@pytest.mark.parametrize("kind", ["token", "certificate"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_official_python_client_reaches_the_spoke(reader: Reader, kind: str, version: str) -> None:
    plugin, exec_config, user = prepare(reader, kind)
    path = exec_kubeconfig(reader, plugin, exec_config, version)
    with config.new_client_from_config(path) as api:  # type: ignore[no-untyped-call]
        listing: Any = client.CoreV1Api(api).list_namespace()
        review: Any = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
    assert reader.namespace in [each.metadata.name for each in listing.items]
    assert review.status.user_info.username == user
    assert reader.audited(1) == [reader.one_get("c1")]
