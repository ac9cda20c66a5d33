"""Service accounts: the tokens that API servers issue, with their true expiry, and our plugins inside a pod's files."""

from __future__ import annotations

import json
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from interop.cluster import ApiServer, Json
from interop.fleet import GO_BIN, bare_environment, executable
from needs import need_mounts

if TYPE_CHECKING:
    from interop.fleet import Reader

ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"


def user_of(server: ApiServer, token: str) -> str:
    """Ask a server whose token this is."""
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    status, review = server.call("POST", path, {}, token)
    assert status == 201, review
    return str(review["status"]["userInfo"]["username"])


@pytest.mark.parametrize("seconds", [600, 86400])
def test_a_requested_token_is_announced_to_end_a_minute_early(reader: Reader, seconds: int) -> None:
    reader.spoke.account(reader.namespace, "guest")
    token, ends = reader.spoke.account_token(reader.namespace, "guest", seconds)
    reader.secret("c1", token=token)
    reader.allow("c1")
    status = reader.status("secretreader", {"clusterName": "c1"})
    early = datetime.strptime(ends, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) - timedelta(minutes=1)
    assert status == {"token": token, "expirationTimestamp": early.strftime("%Y-%m-%dT%H:%M:%SZ")}
    assert user_of(reader.spoke, status["token"]).endswith(":guest")


def test_a_service_account_token_secret_is_used_as_it_is_and_announces_no_end(reader: Reader) -> None:
    account = reader.hub.account(reader.namespace, "guest")
    token = reader.hub.legacy_token(reader.namespace, account, "guest-token")
    reader.allow("guest-token")
    status = reader.status("secretreader", {"clusterName": "guest"}, "--secret-name-template", "{clusterName}-token")
    assert status == {"token": token}
    assert user_of(reader.hub, status["token"]).endswith(":guest")


@pytest.fixture
def pod(reader: Reader) -> Pod:
    """Return what looks to a process like a pod of the reader's namespace."""
    need_mounts()
    return Pod(reader)


class Pod:
    """A mount namespace with a service account's files, and the variables of a pod: no kubeconfig, no HOME."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.folder = reader.folder / "account"
        self.folder.mkdir()
        self.write(reader.token)
        (self.folder / "ca.crt").write_text(reader.hub.ca)
        (self.folder / "namespace").write_text(reader.namespace)

    def write(self, token: str, name: str = "token") -> None:
        (self.folder / name).write_text(token)

    def run(self, *lines: str) -> subprocess.CompletedProcess[str]:
        """Run shell lines in the pod; nothing outside sees its mounts."""
        info = {
            "kind": "ExecCredential",
            "apiVersion": "client.authentication.k8s.io/v1",
            "spec": {"cluster": {"server": self.reader.spoke.url, "config": {"clusterName": "c1"}}},
        }
        environment = {
            **bare_environment(),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.reader.hub.port),
            "KUBERNETES_EXEC_INFO": json.dumps(info),
        }
        script = [
            "set -eu",
            "mount -t tmpfs tmpfs /run",
            f"mkdir -p {ACCOUNT}",
            f"cp {shlex.quote(str(self.folder))}/* {ACCOUNT}",
            *lines,
        ]
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", "\n".join(script)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def statuses(done: subprocess.CompletedProcess[str]) -> list[Json]:
    """Return the status of each answer."""
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line)["status"] for line in done.stdout.splitlines()]


def test_in_a_pod_the_service_account_reads_the_secret(pod: Pod) -> None:
    reader = pod.reader
    reader.secret("c1", token="of-the-spoke")
    reader.allow("c1")
    assert statuses(pod.run(executable("secretreader"))) == [{"token": "of-the-spoke"}]
    assert reader.audited(1) == [reader.one_get("c1")]


def test_in_a_pod_upstreams_plugin_answers_the_same(pod: Pod) -> None:
    pod.reader.secret("c1", token="of-the-spoke")
    pod.reader.allow("c1")
    ours, theirs = statuses(pod.run(executable("secretreader"), str(GO_BIN / "upstream-secretreader")))
    assert ours == theirs == {"token": "of-the-spoke"}


def test_in_a_pod_a_service_account_token_that_kubelet_renewed_is_read_again(pod: Pod) -> None:
    reader = pod.reader
    reader.secret("c1", token="of-the-spoke")
    reader.allow("c1")
    pod.write(reader.token, "renewed")
    pod.write("stale")
    plugin = executable("secretreader")
    done = pod.run(f"{plugin} || echo $?", f"mv {ACCOUNT}/renewed {ACCOUNT}/token", plugin)
    assert "[hub-unauthorized]" in done.stderr
    assert "in-cluster" in done.stderr
    code, answer = done.stdout.splitlines()
    assert (code, json.loads(answer)["status"]) == ("1", {"token": "of-the-spoke"})


def test_in_a_pod_a_403_says_that_it_was_the_service_account(pod: Pod) -> None:
    pod.reader.secret("c1", token="of-the-spoke")
    done = pod.run(executable("secretreader"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "in-cluster service account" in done.stderr
    assert "[hub-forbidden]" in done.stderr
    assert pod.reader.audited(1) == [f"get /api/v1/namespaces/{pod.reader.namespace}/secrets/c1 403"]
