"""Managed identities on IMDS, App Service and Arc, and that no proxy ever sees their tokens."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aks.plugin import run_plugin
from execcred._protocol import jwt_claims
from execcred.conformance.fakes.azure import AKS, CLIENT, TENANT, Answer, Metadata
from execcred.conformance.fakes.proxy import ConnectProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

RESOURCE = "/subscriptions/s/resourcegroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/n"
IMDS_PATH = "/metadata/identity/oauth2/token"


@pytest.fixture
def imds(metadata: Metadata) -> dict[str, str]:
    return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": metadata.url}


IDENTITIES = {
    "system-assigned": ([], {}, {}),
    "client id": (["--client-id", CLIENT], {}, {"client_id": CLIENT}),
    "client id of the variable": ([], {"AZURE_CLIENT_ID": CLIENT}, {"client_id": CLIENT}),
    "object id": (["--identity-object-id", CLIENT], {}, {"object_id": CLIENT}),
    "resource id": (["--identity-resource-id", RESOURCE], {}, {"msi_res_id": RESOURCE}),
    "flag over the webhook's variable": (
        ["--identity-resource-id", RESOURCE],
        {"AZURE_CLIENT_ID": CLIENT},
        {"msi_res_id": RESOURCE},
    ),
    "variables off": (["--disable-environment-override"], {"AZURE_CLIENT_ID": CLIENT}, {}),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_imds_is_asked_for_the_identity_that_was_named(metadata: Metadata, imds: dict[str, str], name: str) -> None:
    """One request, for the AKS audience, naming the identity as IMDS wants it."""
    flags, variables, sent = IDENTITIES[name]
    answer = run_plugin("--login", "msi", *flags, env={**imds, **variables}).credential
    assert jwt_claims(answer["token"])["aud"] == AKS
    (asked,) = metadata.asked
    assert asked.path == IMDS_PATH
    assert {key: text for key, text in asked.form.items() if key not in ("resource", "api-version")} == sent


def test_an_explicit_msi_is_not_turned_into_workload_identity(
    metadata: Metadata, imds: dict[str, str], workload: dict[str, str]
) -> None:
    """The SDK would prefer workload identity where its variables are set; what was asked for counts."""
    run_plugin("--login", "msi", env={**workload, **imds}).credential["token"]
    assert [asked.path for asked in metadata.asked] == [IMDS_PATH]


def test_two_identities_of_the_same_rank_are_refused(imds: dict[str, str], metadata: Metadata) -> None:
    """Nobody guesses which one was meant."""
    flags = ["--login", "msi", "--client-id", CLIENT, "--identity-object-id", CLIENT]
    told = run_plugin(*flags, env=imds).failed(2, "settings-conflict")
    assert "client-id (flag --client-id) and identity-object-id (flag --identity-object-id)" in told
    assert metadata.asked == []


def test_app_service_gets_its_secret_header(metadata: Metadata) -> None:
    """IDENTITY_ENDPOINT and IDENTITY_HEADER mean App Service, Functions or Container Apps."""
    env = {"IDENTITY_ENDPOINT": f"{metadata.url}/msi/token", "IDENTITY_HEADER": metadata.header}
    run_plugin("--login", "msi", "--client-id", CLIENT, env=env).credential["token"]
    (asked,) = metadata.asked
    assert (asked.form["client_id"], asked.form["resource"]) == (CLIENT, AKS)


def test_a_wrong_app_service_header_is_told_without_the_header(metadata: Metadata) -> None:
    """The header is a secret, and 401 is an answer."""
    env = {"IDENTITY_ENDPOINT": f"{metadata.url}/msi/token", "IDENTITY_HEADER": "LEAKED"}
    assert "HTTP 401" in run_plugin("--login", "msi", env=env).failed(1, "identity-unassigned")


@pytest.fixture
def arc(metadata: Metadata) -> Iterator[dict[str, str]]:
    """An Arc agent, with its key where the SDK insists that it be."""
    folder = Path("/var/opt/azcmagent/tokens")
    key = folder / f"execcred-test-{os.getpid()}.key"
    metadata.key_file, metadata.key = str(key), "arc-key"
    made: list[Path] = []
    while not key.exists():
        made += [each for each in (folder, *folder.parents) if not each.exists()]
        try:
            with contextlib.suppress(FileNotFoundError):  # another test has removed the folder at this moment
                folder.mkdir(parents=True, exist_ok=True)
                key.write_text(metadata.key)
        except PermissionError:
            pytest.skip("the SDK reads Arc keys in /var/opt/azcmagent/tokens only, which this user cannot make")
    yield {"IDENTITY_ENDPOINT": f"{metadata.url}{IMDS_PATH}", "IMDS_ENDPOINT": metadata.url}
    key.unlink(missing_ok=True)
    for each in made:
        with contextlib.suppress(OSError):  # another test may still use it
            each.rmdir()


def test_arc_answers_the_challenge_with_the_agents_key(metadata: Metadata, arc: dict[str, str]) -> None:
    """The first answer names the key's file, the second request carries its content."""
    run_plugin("--login", "msi", env=arc).credential["token"]
    assert [asked.headers.get("authorization") for asked in metadata.asked] == [None, "Basic arc-key"]


def test_a_missing_arc_key_is_an_error(metadata: Metadata, arc: dict[str, str]) -> None:
    """An agent that names a key nobody has gives an error of ours."""
    Path(metadata.key_file).unlink()
    run_plugin("--login", "msi", env=arc).failed(1, "identity-unassigned")


PROXY_NAMES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


@pytest.mark.parametrize("kind", ["imds", "app service", "arc"])
def test_no_proxy_is_asked_for_a_managed_identity(
    request: pytest.FixtureRequest, metadata: Metadata, kind: str
) -> None:
    """With every proxy variable set and no NO_PROXY, the endpoint is asked directly."""
    env = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": metadata.url}
    if kind == "app service":
        env = {"IDENTITY_ENDPOINT": f"{metadata.url}/msi/token", "IDENTITY_HEADER": metadata.header}
    if kind == "arc":
        env = request.getfixturevalue("arc")
    with ConnectProxy() as proxy:
        proxies = dict.fromkeys(PROXY_NAMES, proxy.url)
        run_plugin("--login", "msi", env={**env, **proxies}).credential["token"]
        assert proxy.connections == 0
    assert metadata.asked


def test_no_such_identity_is_told_with_where_it_came_from(metadata: Metadata, imds: dict[str, str]) -> None:
    """IMDS answers 400 for an identity that the machine does not have."""
    told = run_plugin("--login", "msi", "--client-id", "unknown", env=imds).failed(1, "identity-unassigned")
    assert "client-id from flag --client-id" in told


def test_passing_faults_of_the_endpoint_are_overcome(metadata: Metadata, imds: dict[str, str]) -> None:
    """404, 410 and 429 happen while a machine starts; they are asked again within the deadline."""
    metadata.script = [Answer(404, {}), Answer(503, {}), Answer(429, {}, {"Retry-After": "1"})]
    start = time.monotonic()
    run_plugin("--login", "msi", env=imds).credential["token"]
    assert len(metadata.asked) == 4
    assert time.monotonic() - start < 40


def test_off_azure_the_error_comes_soon_and_names_the_endpoint() -> None:
    """Nothing answers: an error that says so, and what else could be chosen."""
    env = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:9", "EXECCRED_TIMEOUT": ""}
    done = run_plugin("--login", "msi", env=env)
    told = done.failed(3, "network")
    assert "127.0.0.1:9" in told
    assert "choose another --login" in told
    assert done.seconds < 30


def test_a_hung_endpoint_ends_at_the_deadline_with_its_name(metadata: Metadata, imds: dict[str, str]) -> None:
    """The hard deadline holds for metadata, too."""
    metadata.script = [Answer(hang=-1)]
    done = run_plugin("--login", "msi", env={**imds, "EXECCRED_TIMEOUT": ""})
    assert f"127.0.0.1:{metadata.port}" in done.stderr
    assert (done.status, done.stdout) == (3, "")
    assert done.seconds < 30


def test_tenant_and_authority_play_no_role(metadata: Metadata, imds: dict[str, str]) -> None:
    """What a kubeconfig says for other modes does no harm."""
    flags = ["-l", "msi", "-t", TENANT, "-e", "AzureChinaCloud", "--authority-host", "https://127.0.0.1:1/"]
    assert run_plugin(*flags, env=imds).credential["token"]
