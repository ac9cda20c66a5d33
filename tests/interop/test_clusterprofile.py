"""ClusterProfile on the hub → provider file → access library → our executable → a request on the spoke."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from interop.cluster import FLEET, Json, b64, kubeconfig

if TYPE_CHECKING:
    from interop.fleet import Reader

ARGS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
ENVS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
BUILDS = 200
RUNS = 20


def guest(reader: Reader, name: str = "guest") -> tuple[str, str]:
    """Make a service account on the spoke; return its token and its user name."""
    reader.spoke.account(reader.namespace, name)
    return reader.spoke.account_token(reader.namespace, name)[0], f"system:serviceaccount:{reader.namespace}:{name}"


def certificate_user(reader: Reader, name: str) -> Json:
    """Return a kubeconfig's user with a client certificate of the spoke, embedded."""
    certificate, key = reader.spoke.certificate(name)
    return {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_token_leads_from_the_profile_to_the_spoke_with_exactly_one_get(reader: Reader, version: str) -> None:
    token, user = guest(reader)
    reader.secret("c1", token=token)
    reader.allow("c1")
    reader.profile("c1", "secretreader", {"clusterName": "c1"})
    [fact] = reader.reach(reader.providers("secretreader", version), "c1")
    assert "error" not in fact
    assert (fact["user"], fact["runs"]) == (user, 1)
    assert reader.namespace in fact["namespaces"]
    assert reader.audited(1) == [reader.one_get("c1")]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_client_certificate_leads_from_the_profile_to_the_spoke_with_exactly_one_get(
    reader: Reader, version: str
) -> None:
    document = kubeconfig(reader.spoke.url, reader.spoke.ca, certificate_user(reader, "alice"))
    reader.hub.put_secret(reader.namespace, "c1-kubeconfig", {"value": json.dumps(document)})
    reader.allow("c1-kubeconfig")
    reader.profile("c1", "kubeconfig-secretreader", {"name": "c1-kubeconfig", "key": "value"})
    [fact] = reader.reach(reader.providers("kubeconfig-secretreader", version), "c1")
    assert "error" not in fact
    assert (fact["user"], fact["runs"]) == ("alice", 1)
    assert FLEET in fact["groups"]
    assert reader.audited(1) == [reader.one_get("c1-kubeconfig")]


def test_a_tls_secret_gives_secretreader_a_client_certificate(reader: Reader) -> None:
    certificate, key = reader.spoke.certificate("bob")
    reader.hub.put_secret(reader.namespace, "c1", {"tls.crt": certificate, "tls.key": key}, "kubernetes.io/tls")
    reader.allow("c1")
    reader.profile("c1", "secretreader", {"clusterName": "c1"})
    [fact] = reader.reach(reader.providers("secretreader"), "c1")
    assert (fact.get("error"), fact["user"]) == (None, "bob")


def test_the_admins_arguments_choose_the_secrets_name_for_every_profile(reader: Reader) -> None:
    token, user = guest(reader)
    reader.secret("c1-controller", token=token)
    reader.allow("c1-controller")
    reader.profile("c1", "secretreader", {"clusterName": "c1"})
    [fact] = reader.reach(reader.providers("secretreader", "v1", "--managed-serviceaccount", "controller"), "c1")
    assert (fact.get("error"), fact["user"]) == (None, user)
    assert reader.audited(1) == [reader.one_get("c1-controller")]


def test_many_requests_with_one_config_run_the_plugin_once(reader: Reader) -> None:
    token, user = guest(reader)
    reader.secret("c1", token=token)
    reader.allow("c1")
    reader.profile("c1", "secretreader", {"clusterName": "c1"})
    with reader.controller(reader.providers("secretreader"), "-again", "c1", rounds=1) as rounds:
        facts = rounds.first() + [fact for _ in range(20) for fact in rounds.again()]
    assert {(fact.get("user"), fact["runs"]) for fact in facts} == {(user, 1)}
    assert reader.audited(1) == [reader.one_get("c1")]


def test_two_profiles_of_one_provider_get_each_its_own_credential(reader: Reader) -> None:
    users = []
    for name in ("a", "b"):
        token, user = guest(reader, name)
        reader.secret(name, token=token)
        reader.profile(name, "secretreader", {"clusterName": name})
        users.append(user)
    reader.allow("a", "b")
    facts = reader.reach(reader.providers("secretreader"), "-builds", "5", "a", "b", lines=2)
    assert [fact.get("user") for fact in facts] == users
    assert sorted(reader.audited(2)) == [reader.one_get("a"), reader.one_get("b")]


@pytest.mark.parametrize("seal", [(), ("--profile-args",)], ids=["bare", "behind the seal"])
def test_arguments_that_the_library_appends_hundreds_of_times_do_no_harm(reader: Reader, seal: tuple[str, ...]) -> None:
    users = []
    profiles = []
    for name in ("a", "b"):
        token, user = guest(reader, name)
        reader.secret(name, token=token)
        profiles.append(reader.profile_object(name, "secretreader", None, {ARGS: [f"--cluster-name={name}"]}))
        users.append(user)
    reader.allow("a", "b")
    providers = reader.providers("secretreader", "v1", *seal, profileSourcedCLIArgsPolicy="Append")
    # From a file: the hub's CRD allows objects only as extensions, the library reads a list.
    file = reader.write("profiles.json", profiles)
    facts = reader.reach(providers, "-profile-file", file, "-builds", str(BUILDS), lines=2)
    assert [fact.get("user") for fact in facts] == users
    assert facts[1]["args"] == len(seal) + 2 * BUILDS  # the library's growth, which is what this is about
    assert sorted(reader.audited(2)) == [reader.one_get("a"), reader.one_get("b")]


def test_environment_that_the_library_replaces_hundreds_of_times_does_no_harm(reader: Reader) -> None:
    users = []
    for name in ("a", "b"):
        token, user = guest(reader, name)
        reader.secret(name, token=token)
        reader.profile(name, "secretreader", None, **{ENVS: {"EXECCRED_CLUSTER_NAME": name}})
        users.append(user)
    reader.allow("a", "b")
    providers = reader.providers("secretreader", profileSourcedEnvVarsPolicy="Replace")
    facts = reader.reach(providers, "-builds", str(BUILDS), "a", "b", lines=2)
    assert [fact.get("user") for fact in facts] == users


def test_runs_at_the_same_time_get_each_their_own_secret(reader: Reader) -> None:
    names = [f"c{number}" for number in range(RUNS)]
    for name in names:
        reader.secret(name, token=f"token-of-{name}")
    reader.allow(*names)
    with ThreadPoolExecutor(RUNS) as pool:
        statuses = list(pool.map(lambda name: reader.status("secretreader", {"clusterName": name}), names))
    assert statuses == [{"token": f"token-of-{name}"} for name in names]
    assert sorted(reader.audited(RUNS)) == sorted(reader.one_get(name) for name in names)
