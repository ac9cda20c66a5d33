"""doctor on real API servers: who is accepted, as whom, what it may do, and what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from interop.cluster import Json, kubeconfig
from interop.fleet import executable

if TYPE_CHECKING:
    from interop.fleet import Reader


class Admin:
    """The doctor, run by somebody who may read all of the hub."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        content = kubeconfig(reader.hub.url, reader.hub.ca, {"token": reader.hub.admin}, reader.namespace)
        self.kubeconfig = reader.write("admin.kubeconfig", content)
        providers = json.loads(Path(reader.providers("secretreader")).read_text())
        providers["providers"][0]["execConfig"]["installHint"] = "install it"
        self.providers = reader.write("providers.json", providers)
        self.status = 0

    def run(self, *words: str, **variables: str) -> dict[str, Json]:
        """Return the steps of a report."""
        done = subprocess.run(
            [sys.executable, "-m", "execcred.tool", "doctor", "--output=json", *words],
            env={**self.reader.environment, "KUBECONFIG": self.kubeconfig, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stderr == ""
        self.status = done.returncode
        return {step["step"]: step for step in json.loads(done.stdout)["steps"]}

    def profile(self, name: str) -> dict[str, Json]:
        return self.run(f"--provider-file={self.providers}", f"--clusterprofile={name}")


@pytest.fixture
def admin(reader: Reader) -> Admin:
    reader.profile("spoke-1", "secretreader", {"clusterName": "c1"})
    return Admin(reader)


def codes(steps: dict[str, Any]) -> dict[str, list[str]]:
    return {name: [each["code"] for each in step["problems"]] for name, step in steps.items() if step["problems"]}


def test_a_whole_chain_is_found_in_order(admin: Admin) -> None:
    admin.reader.secret("c1", token=admin.reader.spoke.member)
    steps = admin.profile("spoke-1")
    assert (admin.status, codes(steps)) == (0, {})
    assert steps["accepted"]["details"] == {"user": "member", "groups": ["fleet", "system:authenticated"]}
    assert steps["permissions"]["details"]["complete"]
    assert steps["permissions"]["details"]["rules"] >= 1  # other tests grant the same user more
    assert abs(steps["expiry"]["details"]["clockSkewSeconds"]) < 30
    assert admin.reader.spoke.member not in json.dumps(steps)


def test_a_service_accounts_token_is_told_with_its_true_end(admin: Admin) -> None:
    reader = admin.reader
    reader.spoke.account(reader.namespace, "guest")
    token, _ = reader.spoke.account_token(reader.namespace, "guest", 3600)
    reader.secret("c1", token=token)
    steps = admin.profile("spoke-1")
    user = f"system:serviceaccount:{reader.namespace}:guest"
    assert (steps["identity"]["details"]["user"], steps["accepted"]["details"]["user"]) == (user, user)
    assert 3000 < steps["expiry"]["details"]["secondsLeft"] <= 3600


def test_a_user_without_any_role_is_told(admin: Admin) -> None:
    certificate, key = admin.reader.spoke.certificate("nobody", "nobodies")
    data = {"tls.crt": certificate, "tls.key": key}
    admin.reader.hub.put_secret(admin.reader.namespace, "c1", data, "kubernetes.io/tls")
    steps = admin.profile("spoke-1")
    assert (admin.status, codes(steps)) == (0, {"permissions": ["permissions-none"]})
    assert steps["identity"]["details"]["groups"] == ["nobodies"]


def test_a_token_of_the_hub_is_refused_by_the_spoke(admin: Admin) -> None:
    admin.reader.secret("c1", token=admin.reader.token)
    steps = admin.profile("spoke-1")
    assert (admin.status, codes(steps)) == (1, {"accepted": ["cluster-unauthorized"]})
    assert admin.reader.user in steps["accepted"]["problems"][0]["message"]


def test_missing_grants_on_the_hub_are_named(admin: Admin) -> None:
    reader = admin.reader
    content = kubeconfig(
        reader.spoke.url,
        reader.spoke.ca,
        {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": executable("secretreader"),
                "args": ["--api-version=v1", f"--kubeconfig={reader.kubeconfig}", "--cluster-name=c1"],
                "installHint": "install it",
                "interactiveMode": "Never",
            }
        },
    )
    reader.secret("c1", token=reader.spoke.member)
    path = reader.write("spoke.kubeconfig", content)
    steps = admin.run(f"--kubeconfig={path}")
    assert (admin.status, codes(steps)) == (1, {"credential": ["hub-forbidden"]})
    assert f"namespace {reader.namespace}, name c1" in steps["credential"]["problems"][0]["hint"]
    reader.allow("c1")
    assert codes(admin.run(f"--kubeconfig={path}")) == {}
    steps = admin.run(f"--provider-file={admin.providers}", "--clusterprofile=spoke-1", KUBECONFIG=reader.kubeconfig)
    assert codes(steps) == {"profile": ["hub-forbidden"]}
