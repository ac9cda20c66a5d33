"""The access library on real API servers: the example controller, from a kubeconfig and in a pod; tokens that end."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client

from execcred.access import ProviderFile, build_configuration
from execcred.access._credentials import PAUSE
from interop.cluster import Json, b64, kubeconfig, until
from interop.fleet import INVENTORY, ROOT
from interop.test_accounts import Pod
from needs import need_mounts
from ports import reserved_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interop.fleet import Reader

EXAMPLE = ROOT / "examples/list_nodes.py"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def controller(reader: Reader) -> Iterator[Reader]:
    """Return a reader that may also watch ClusterProfiles, and a spoke with a node that a guest may list."""
    rule = {"apiGroups": ["multicluster.x-k8s.io"], "resources": ["clusterprofiles"], "verbs": ["get", "list", "watch"]}
    path = f"/apis/{RBAC}/v1/namespaces/{reader.namespace}"
    reader.hub.post(f"{path}/roles", {"metadata": {"name": "profiles"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "namespace": reader.namespace, "name": "reader"}
    role = {"apiGroup": RBAC, "kind": "Role", "name": "profiles"}
    body = {"metadata": {"name": "profiles"}, "roleRef": role, "subjects": [subject]}
    reader.hub.post(f"{path}/rolebindings", body)
    node = f"node-of-{reader.namespace}"
    reader.spoke.post("/api/v1/nodes", {"metadata": {"name": node}})
    grant(reader)
    profiles = f"/{INVENTORY}/namespaces/{reader.namespace}/clusterprofiles"
    until("the Role is in force", lambda: reader.hub.status("GET", profiles, reader.token) == 200)
    yield reader
    reader.spoke.call("DELETE", f"/api/v1/nodes/{node}")


def grant(reader: Reader) -> None:
    """Let the guest of this reader's namespace, and the group of its certificates, list the spoke's nodes."""
    name = f"nodes-{reader.namespace}"
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    reader.spoke.post(f"/apis/{RBAC}/v1/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    group = f"system:serviceaccounts:{reader.namespace}"
    subjects = [{"kind": "Group", "apiGroup": RBAC, "name": each} for each in (group, "fleet")]
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    body = {"metadata": {"name": name}, "roleRef": role, "subjects": subjects}
    reader.spoke.post(f"/apis/{RBAC}/v1/clusterrolebindings", body)


def add_token(reader: Reader, name: str) -> None:
    """Store a token of the spoke on the hub, as secretreader finds it."""
    reader.spoke.account(reader.namespace, name)
    reader.secret(name, token=reader.spoke.account_token(reader.namespace, name)[0])


def add_profile(reader: Reader, name: str, provider: str, config: object, healthy: str | None) -> None:
    reader.profile(name, provider, config)
    if healthy:
        set_health(reader, name, healthy)


def set_health(reader: Reader, name: str, healthy: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    condition = {"type": "ControlPlaneHealthy", "status": healthy, "reason": "Tests", "message": "set by a test"}
    path = f"/{INVENTORY}/namespaces/{reader.namespace}/clusterprofiles/{name}/status"
    reader.hub.patch(path, {"status": {"conditions": [{**condition, "lastTransitionTime": now}]}})


def command(reader: Reader, *arguments: str) -> list[str]:
    """Return the example's command line."""
    entries: list[Json] = []
    for name in ("secretreader", "kubeconfig-secretreader"):
        with open(reader.providers(name)) as file:
            entries += json.load(file)["providers"]
    file_name = reader.write("providers.json", {"providers": entries})
    program = [sys.executable, str(EXAMPLE), "--clusterprofile-provider-file", file_name]
    return [*program, "--namespace", reader.namespace, *arguments]


@contextlib.contextmanager
def running(reader: Reader, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the example until the end of the block."""
    program = command(reader, *arguments)
    with subprocess.Popen(program, env=reader.environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.terminate()


def line_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return child.stdout.readline()


def prepare(reader: Reader) -> list[str]:
    """Make a fleet of four; return what the controller says of it in the end."""
    add_token(reader, "with-token")
    certificate, key = reader.spoke.certificate("dave")
    user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    document = json.dumps(kubeconfig(reader.spoke.url, reader.spoke.ca, user))
    reader.hub.put_secret(reader.namespace, "with-certificate", {"value": document})
    reader.allow("with-token", "with-certificate", "without-secret")
    add_profile(reader, "with-token", "secretreader", {"clusterName": "with-token"}, "True")
    add_profile(reader, "with-certificate", "kubeconfig-secretreader", {"name": "with-certificate"}, "True")
    add_profile(reader, "without-secret", "secretreader", {"clusterName": "without-secret"}, "True")
    add_profile(reader, "unhealthy", "secretreader", {"clusterName": "with-token"}, "False")
    node = f"node-of-{reader.namespace}"
    return [
        "unhealthy: not ready: ControlPlaneHealthy is not True",
        f"with-certificate: {node}",
        f"with-token: {node}",
        "without-secret: error: ",
    ]


def check(output: str, expected: list[str]) -> None:
    lines = sorted(output.splitlines())
    assert len(lines) == len(expected), output
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start)
    assert "[secret-missing] [plugin-failed]; hint: " in output


def test_from_a_kubeconfig_the_example_lists_the_nodes_of_every_ready_cluster(controller: Reader) -> None:
    expected = prepare(controller)
    with running(controller) as child:
        lines = [line_of(child) for _ in expected]
    check("".join(lines), expected)


def test_in_a_pod_the_example_does_the_same_with_its_service_account(controller: Reader) -> None:
    need_mounts()
    expected = prepare(controller)
    program = shlex.join(command(controller))
    # It would run for ever: it is over when it has said a line of each cluster.
    done = Pod(controller).run(
        f"{program} >/run/lines & pid=$!",
        f"until [ $(wc -l </run/lines) -ge {len(expected)} ]; do sleep 0.1; done",
        "kill $pid; cat /run/lines",
    )
    assert done.returncode == 0, done.stderr
    check(done.stdout, expected)


def test_the_example_follows_what_becomes_of_a_cluster_and_shows_metrics(controller: Reader) -> None:
    add_token(controller, "c1")
    controller.allow("c1")
    add_profile(controller, "c1", "secretreader", {"clusterName": "c1"}, None)
    port = reserved_port()
    with running(controller, "--metrics-port", str(port)) as child:
        assert line_of(child) == "c1: not ready: ControlPlaneHealthy is not True\n"
        set_health(controller, "c1", "True")
        assert line_of(child) == f"c1: node-of-{controller.namespace}\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            metrics = answer.read().decode()
        path = f"/{INVENTORY}/namespaces/{controller.namespace}/clusterprofiles/c1"
        assert controller.hub.call("DELETE", path)[0] == 200
        assert line_of(child) == "c1: gone\n"
    assert 'clusterprofile_credentials_total{outcome="success",provider="secretreader"} 1.0' in metrics


# --- credentials that end, on a real API server ---


def cluster_client(reader: Reader, name: str) -> client.ApiClient:
    """Return a client of the spoke by a ClusterProfile of the hub."""
    path = f"/{INVENTORY}/namespaces/{reader.namespace}/clusterprofiles/{name}"
    found = reader.hub.call("GET", path)[1]
    arguments = [f"--kubeconfig={reader.kubeconfig}"]
    providers = ProviderFile.load(reader.providers("secretreader", "v1", *arguments))
    return client.ApiClient(build_configuration(found, providers))


def who(api: client.ApiClient) -> str:
    review: Any = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
    return str(review.status.user_info.username)


def test_a_token_that_ends_soon_is_renewed_before_the_server_refuses_it(reader: Reader) -> None:
    account = reader.spoke.account(reader.namespace, "guest")
    uid = account["metadata"]["uid"]
    reader.allow("c1")
    reader.profile("c1", "secretreader", {"clusterName": "c1"})
    end = time.monotonic() + 10
    reader.secret("c1", token=reader.spoke.short_token(reader.namespace, "guest", uid, 10))
    with cluster_client(reader, "c1") as api:
        assert who(api).endswith(":guest")
        # As whoever rotates it would do in time.
        reader.secret("c1", token=reader.spoke.short_token(reader.namespace, "guest", uid, 600))
        while time.monotonic() < end + 2:
            assert who(api).endswith(":guest")
            time.sleep(0.2)
    assert reader.audited(2) == [reader.one_get("c1")] * 2


def test_a_token_that_the_server_refuses_is_replaced_for_the_next_request(reader: Reader) -> None:
    reader.allow("c1")
    reader.profile("c1", "secretreader", {"clusterName": "c1"})
    reader.spoke.account(reader.namespace, "old")
    reader.spoke.account(reader.namespace, "new")
    reader.secret("c1", token=reader.spoke.account_token(reader.namespace, "old")[0])
    with cluster_client(reader, "c1") as api:
        assert who(api).endswith(":old")
        time.sleep(PAUSE)
        reader.secret("c1", token=reader.spoke.account_token(reader.namespace, "new")[0])
        reader.spoke.call("DELETE", f"/api/v1/namespaces/{reader.namespace}/serviceaccounts/old")

        def refused_once() -> bool:
            try:
                return who(api).endswith(":new")
            except client.ApiException as error:
                return bool(error.status != 401)

        # The server believes a deleted account's token for some seconds.
        until("the new token is used", refused_once, 60)
    assert reader.audited(2) == [reader.one_get("c1")] * 2


def test_a_certificate_that_ends_soon_is_renewed_before_the_server_refuses_it(reader: Reader) -> None:
    reader.allow("c1")
    reader.profile("c1", "secretreader", {"clusterName": "c1"})

    def store(user: str, seconds: float) -> None:
        ends = datetime.now(UTC) + timedelta(seconds=seconds)
        certificate, key = reader.spoke.certificate(user, ends=ends)
        reader.hub.put_secret(reader.namespace, "c1", {"tls.crt": certificate, "tls.key": key}, "kubernetes.io/tls")

    store("alice", 10)
    with cluster_client(reader, "c1") as api:
        assert who(api) == "alice"
        store("bob", 600)
        users = [who(api)]
        while users[-1] == "alice":
            time.sleep(0.2)
            users.append(who(api))
    assert users[-1] == "bob"
    assert reader.audited(2) == [reader.one_get("c1")] * 2
