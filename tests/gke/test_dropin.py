"""The command lines of the replaced tools are understood; what a profile may not choose is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import execcred_gke
from execcred import ExecCredError
from execcred._run import respond
from execcred.conformance.fakes.google import LAST, TARGET, MetadataServer
from gke.cloud import Cloud, answered
from gke.files import authorized_user, service_account
from gke.test_metadata import Machine
from unit.support import V1BETA1, exec_info

if TYPE_CHECKING:
    from collections.abc import Iterator

# Arguments as the replaced tools' own documentation has them, and kubeconfigs in the field.
ACCEPTED = [
    ["gcp"],  # argocd-k8s-auth gcp
    [],  # gke-gcloud-auth-plugin
    ["--use_application_default_credentials"],
    ["--use_application_default_credentials=true"],
    ["--use_application_default_credentials=false"],
    ["-use_application_default_credentials"],
    ["--use-application-default-credentials"],
    ["gcp", "--timeout", "5s"],
    ["--use_application_default_credentials"] * 300,
]


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    with MetadataServer() as server:
        yield server


@pytest.mark.parametrize("arguments", ACCEPTED, ids=lambda each: " ".join(each[:3]) or "none")
def test_arguments_of_the_replaced_tools_are_accepted(server: MetadataServer, arguments: list[str]) -> None:
    machine = Machine({"GCE_METADATA_HOST": server.netloc})
    answer = json.loads(respond(execcred_gke.PLUGIN, arguments, machine))
    assert (answer["apiVersion"], answer["status"]["token"]) == (V1BETA1, "ya29.attached")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--use_application_default_credential"], "--use_application_default_credentials"),
        (["--impersonate-service-acount=x"], "--impersonate-service-account"),
        (["--metadatahost=x"], "--metadata-host"),
        (["gke"], "gcp"),
        (["gcp", "gcp"], "gcp"),
    ],
)
def test_what_is_not_known_is_refused_with_the_nearest(arguments: list[str], hint: str) -> None:
    with pytest.raises(ExecCredError) as caught:
        respond(execcred_gke.PLUGIN, arguments, Machine({}))
    assert (caught.value.code, caught.value.exit_status) == ("usage", 2)
    assert hint in caught.value.hint


def test_the_impersonation_flag_has_an_underscored_spelling_too(cloud: Cloud) -> None:
    token = cloud.token(f"--impersonate_service_account={TARGET}", variables=cloud.write(service_account()))
    assert cloud.google.principal(token) == TARGET


# --- profiles ---

REFUSED = [
    ("impersonateServiceAccount", TARGET, "impersonate-service-account"),
    ("credentialFile", "/etc/passwd", "credential-file"),
    ("metadataHost", "evil.test", "metadata-host"),
    ("universeDomain", "evil.test", "universe-domain"),
    ("quotaProject", "theirs", "quota-project"),
    ("lifetime", 60, "lifetime"),
    ("cacheDir", "/tmp/theirs", "cache-dir"),
    ("timeout", 300, "timeout"),
]


@pytest.mark.parametrize(("key", "value", "flag"), REFUSED)
def test_a_profile_chooses_neither_identity_nor_file_nor_endpoint(
    server: MetadataServer, key: str, value: Any, flag: str
) -> None:
    variables = {"GCE_METADATA_HOST": server.netloc, "KUBERNETES_EXEC_INFO": exec_info({key: value})}
    with pytest.raises(ExecCredError) as caught:
        respond(execcred_gke.PLUGIN, (), Machine(variables))
    assert (caught.value.code, caught.value.exit_status) == ("profile-refused", 1)
    assert f"--{flag}" in caught.value.hint
    assert server.asked == []


@pytest.mark.parametrize(("key", "value", "flag"), REFUSED)
def test_arguments_of_a_profile_are_refused_behind_the_seal(
    server: MetadataServer, key: str, value: Any, flag: str
) -> None:
    arguments = ["--profile-args", f"--{flag}={value}"]
    with pytest.raises(ExecCredError) as caught:
        respond(execcred_gke.PLUGIN, arguments, Machine({"GCE_METADATA_HOST": server.netloc}))
    assert caught.value.code == "profile-refused"
    assert server.asked == []


def test_the_admin_can_let_a_profile_choose_whom_to_impersonate(cloud: Cloud) -> None:
    info = exec_info({"impersonateServiceAccount": TARGET})
    variables = {**cloud.write(service_account()), "KUBERNETES_EXEC_INFO": info}
    token = cloud.token("--allow-profile-identity", variables=variables)
    assert cloud.google.principal(token) == TARGET


def test_a_profile_may_repeat_the_admins_own_choice_and_no_other(cloud: Cloud) -> None:
    variables = cloud.write(service_account())
    flag = f"--impersonate-service-account={TARGET}"
    same = {**variables, "KUBERNETES_EXEC_INFO": exec_info({"impersonateServiceAccount": TARGET})}
    assert cloud.google.principal(cloud.token(flag, variables=same)) == TARGET
    other = {**variables, "KUBERNETES_EXEC_INFO": exec_info({"impersonateServiceAccount": LAST})}
    assert "[profile-refused]" in cloud.run(flag, variables=other).stderr


def test_keys_of_other_plugins_are_ignored(server: MetadataServer) -> None:
    info = exec_info({"clusterName": "c1", "region": "x", "project": "p", "location": "l"})
    machine = Machine({"GCE_METADATA_HOST": server.netloc, "KUBERNETES_EXEC_INFO": info})
    assert json.loads(respond(execcred_gke.PLUGIN, (), machine))["status"]["token"] == "ya29.attached"


def test_a_config_key_of_the_wrong_type_is_named(server: MetadataServer) -> None:
    info = exec_info({"impersonateServiceAccount": [TARGET]})
    machine = Machine({"GCE_METADATA_HOST": server.netloc, "KUBERNETES_EXEC_INFO": info})
    with pytest.raises(ExecCredError, match="impersonateServiceAccount must be a string, is an array"):
        respond(execcred_gke.PLUGIN, ["--allow-profile-identity"], machine)


def test_a_run_that_must_not_prompt_never_does(cloud: Cloud) -> None:
    cloud.google.logins.clear()
    variables = {**cloud.write(authorized_user()), "KUBERNETES_EXEC_INFO": exec_info(None)}
    done = cloud.run(variables=variables)
    assert done.returncode == 4
    assert "hint: run: gcloud auth application-default login\n" in done.stderr


def test_output_token_prints_the_bare_token(cloud: Cloud, metadata: MetadataServer) -> None:
    done = cloud.run("--output=token", variables={"GCE_METADATA_HOST": metadata.netloc})
    assert (done.stdout, done.stderr) == ("ya29.attached-1\n", "")
    assert answered(cloud.run(variables={"GCE_METADATA_HOST": metadata.netloc}))["token"] == "ya29.attached-2"
