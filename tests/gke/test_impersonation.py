"""Impersonation works on every source, through delegates, and keeps what a credential file says itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from execcred.conformance.fakes.google import (
    EMAIL,
    IAM,
    LAST,
    MIDDLE,
    OTHER_UNIVERSE,
    PLATFORM,
    ROBOT,
    SCOPES,
    TARGET,
    Json,
    MetadataServer,
)
from gke.cloud import Cloud, failed
from gke.files import authorized_user, external_account, external_user, impersonated, impersonation_url, service_account
from gke.test_sources import ALLOWED, FEDERATED, USER, executable, subject_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FLAG = f"--impersonate-service-account={TARGET}"
SOURCES: dict[str, tuple[str, Callable[[Path], Json]]] = {
    "key": (ROBOT, lambda _: service_account()),
    "login": (USER, lambda _: authorized_user()),
    "workforce login": (USER, lambda _: external_user()),
    "impersonated": (MIDDLE, lambda _: impersonated(service_account(), MIDDLE)),
    "file": (FEDERATED, lambda folder: external_account(subject_file(folder))),
    "executable": (FEDERATED, lambda folder: external_account(executable(folder))),
    "federated and impersonated": (
        MIDDLE,
        lambda folder: external_account(
            subject_file(folder), service_account_impersonation_url=impersonation_url(MIDDLE)
        ),
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_can_impersonate_and_the_token_has_both_scopes(cloud: Cloud, tmp_path: Path, name: str) -> None:
    source, make = SOURCES[name]
    cloud.google.may(FEDERATED, MIDDLE)
    cloud.google.may(source, TARGET)
    token = cloud.token(FLAG, variables={**cloud.write(make(tmp_path)), **ALLOWED})
    assert (cloud.google.principal(token), cloud.google.scopes(token)) == (TARGET, SCOPES)


WORKLOAD = {"cert_configs": {"workload": {"cert_path": "/nonexistent", "key_path": "/nonexistent"}}}


@pytest.mark.parametrize(
    ("wanted", "content"),
    [("true", ""), ("", json.dumps(WORKLOAD)), ("", "\udcff"), ("", "[" * 100_000)],
    ids=["asked for", "found", "no text", "nested too deep"],
)
def test_client_certificates_of_the_machine_do_not_lead_to_another_host(
    cloud: Cloud, tmp_path: Path, wanted: str, content: str
) -> None:
    cloud.google.may(ROBOT, TARGET)
    config = tmp_path / "certificate_config.json"
    config.write_text(content, errors="surrogateescape")
    more = {"GOOGLE_API_USE_CLIENT_CERTIFICATE": wanted, "GOOGLE_API_CERTIFICATE_CONFIG": str(config)}
    token = cloud.token(FLAG, variables={**cloud.write(service_account()), **more})
    assert cloud.google.principal(token) == TARGET


def test_the_impersonation_of_an_external_account_file_survives_the_change_of_scopes(
    cloud: Cloud, tmp_path: Path
) -> None:
    cloud.google.may(FEDERATED, MIDDLE)
    cloud.google.may(MIDDLE, TARGET)
    file = external_account(subject_file(tmp_path), service_account_impersonation_url=impersonation_url(MIDDLE))
    cloud.token(FLAG, variables=cloud.write(file))
    asked = [(each.what, each.path.rpartition("/")[2], each.fields.get("scope")) for each in cloud.google.asked]
    assert asked == [
        ("sts", "token", IAM),
        ("iam", f"{MIDDLE}:generateAccessToken", [IAM]),
        ("iam", f"{TARGET}:generateAccessToken", [PLATFORM, EMAIL]),
    ]


def test_the_metadata_servers_account_impersonates_with_two_questions(cloud: Cloud, metadata: MetadataServer) -> None:
    token = cloud.token(FLAG, variables={"GCE_METADATA_HOST": metadata.netloc})
    assert (cloud.google.principal(token), cloud.google.scopes(token)) == (TARGET, SCOPES)
    assert metadata.paths() == ["universe/universe-domain", "instance/service-accounts/default/token"]


def test_delegates_come_first_and_the_target_last(cloud: Cloud) -> None:
    chain = f"{MIDDLE}, {LAST},projects/-/serviceAccounts/{TARGET}"
    token = cloud.token(f"--impersonate-service-account={chain}", variables=cloud.write(service_account()))
    assert cloud.google.principal(token) == TARGET
    assert cloud.google.what() == ["token", "iam"]


def test_delegates_of_a_credential_file_are_kept(cloud: Cloud) -> None:
    token = cloud.token(variables=cloud.write(impersonated(service_account(), TARGET, MIDDLE, LAST)))
    assert cloud.google.principal(token) == TARGET


@pytest.mark.parametrize("name", ["EXECCRED_IMPERSONATE_SERVICE_ACCOUNT", "CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT"])
def test_variables_name_the_account_too(cloud: Cloud, name: str) -> None:
    token = cloud.token(variables={**cloud.write(service_account()), name: TARGET})
    assert cloud.google.principal(token) == TARGET


def test_the_flag_beats_the_variable(cloud: Cloud) -> None:
    variables = {**cloud.write(service_account()), "CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT": LAST}
    assert cloud.google.principal(cloud.token(FLAG, variables=variables)) == TARGET


@pytest.mark.parametrize(("text", "seconds"), [("600", "600s"), ("15m", "900s"), ("1h", "3600s")])
def test_the_lifetime_is_asked_for(cloud: Cloud, text: str, seconds: str) -> None:
    cloud.token(FLAG, "--lifetime", text, variables=cloud.write(service_account()))
    assert cloud.google.asked[-1].fields["lifetime"] == seconds


def test_a_lifetime_that_the_organization_does_not_allow_is_explained(cloud: Cloud) -> None:
    done = cloud.run(FLAG, "--lifetime=2h", variables=cloud.write(service_account()))
    assert "allowServiceAccountCredentialLifetimeExtension" in failed(done, "impersonation-invalid", 1)


@pytest.mark.parametrize("text", ["13h", "1.5"])
def test_a_lifetime_that_nobody_allows_is_refused_unasked(cloud: Cloud, text: str) -> None:
    done = cloud.run(FLAG, f"--lifetime={text}", variables=cloud.write(service_account()))
    assert done.returncode == 2
    assert "[setting-invalid]" in done.stderr
    assert cloud.google.asked == []


@pytest.mark.parametrize("name", ["../../v1/x", "a b", "me@x.test?alt=media", "-@x", "ünï@x.test", "a@b:sign"])
def test_what_is_no_account_never_becomes_part_of_a_url(cloud: Cloud, name: str) -> None:
    done = cloud.run(f"--impersonate-service-account={name}", variables=cloud.write(service_account()))
    failed(done, "account-invalid", 2)
    assert cloud.google.asked == []


# --- universes ---


def test_iam_is_asked_in_the_universe_of_the_key(cloud: Cloud) -> None:
    done = cloud.run(FLAG, variables=cloud.write(service_account(universe_domain=OTHER_UNIVERSE)))
    assert cloud.proxy.targets == [f"iamcredentials.{OTHER_UNIVERSE}:443"]
    failed(done, "credentials-refused", 1)  # as this Google does not know tokens that a key signed itself


@pytest.mark.parametrize("told_by", ["metadata", "variable"])
def test_iam_is_asked_in_the_universe_of_the_machine(cloud: Cloud, metadata: MetadataServer, told_by: str) -> None:
    variables = {"GCE_METADATA_HOST": metadata.netloc}
    if told_by == "metadata":
        metadata.universe = OTHER_UNIVERSE
    else:
        variables["GOOGLE_CLOUD_UNIVERSE_DOMAIN"] = OTHER_UNIVERSE
    token = cloud.token(FLAG, variables=variables)
    assert cloud.google.principal(token) == TARGET
    assert cloud.google.asked[-1].host == f"iamcredentials.{OTHER_UNIVERSE}"
    assert len(metadata.asked) == (2 if told_by == "metadata" else 1)


def test_a_universe_that_is_no_domain_never_becomes_a_host(cloud: Cloud, metadata: MetadataServer) -> None:
    metadata.universe = "evil.test/?"
    failed(cloud.run(FLAG, variables={"GCE_METADATA_HOST": metadata.netloc}), "metadata-invalid", 1)
    assert cloud.proxy.targets == []


def test_a_credential_of_another_universe_than_asked_for_is_refused(cloud: Cloud) -> None:
    done = cloud.run(f"--universe-domain={OTHER_UNIVERSE}", variables=cloud.write(service_account()))
    assert OTHER_UNIVERSE in failed(done, "universe-mismatch", 2)
