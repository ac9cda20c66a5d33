"""Workload identity: one POST with the federated token of the pod."""

from __future__ import annotations

import base64
import os
import time
from typing import TYPE_CHECKING

import pytest

from aks.plugin import exec_info, run_plugin, status_of
from execcred import Env, ExecCredError
from execcred._protocol import jwt_claims
from execcred._run import respond
from execcred.conformance.fakes.azure import (
    AKS,
    CLIENT,
    ISSUER,
    SUBJECT,
    TENANT,
    Answer,
    Entra,
    federated,
    refusal,
    token,
)
from execcred_aks import PLUGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def test_the_webhooks_variables_alone_are_enough_and_cost_one_call(entra: Entra, workload: dict[str, str]) -> None:
    """With the pod's variables no flag is needed, and Entra ID is asked once."""
    answer = run_plugin(env=workload, info=exec_info()).credential
    (asked,) = entra.asked
    assert asked.path == f"/{TENANT}/oauth2/v2.0/token"
    assert asked.form["scope"] == f"{AKS}/.default"
    assert asked.form["grant_type"] == "client_credentials"
    assert asked.form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    assert jwt_claims(asked.form["client_assertion"])["sub"] == SUBJECT
    claims = jwt_claims(answer["token"])
    assert (claims["aud"], claims["appid"]) == (AKS, CLIENT)
    assert claims["exp"] - 61 <= _epoch(answer["expirationTimestamp"]) <= claims["exp"] - 60


def _epoch(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def test_the_plugin_as_a_function_gives_the_same_answer(entra: Entra, workload: dict[str, str]) -> None:
    """`respond` takes everything from the Env it is given."""
    answer = status_of(respond(PLUGIN, ["--tenant-id", TENANT], Env(workload)))
    assert jwt_claims(answer["token"])["aud"] == AKS
    assert len(entra.asked) == 1


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati", "Europe/Berlin"])
def test_no_time_zone_moves_the_expiry(entra: Entra, workload: dict[str, str], zone: str) -> None:
    """The announced end is the token's, wherever the machine is."""
    answer = run_plugin(env={**workload, "TZ": zone}).credential
    assert 0 < jwt_claims(answer["token"])["exp"] - _epoch(answer["expirationTimestamp"]) <= 61
    assert answer["expirationTimestamp"].endswith("Z")


def test_the_earlier_of_two_ends_is_announced(entra: Entra, workload: dict[str, str]) -> None:
    """Where expires_in and exp disagree, as with a wrong clock, the earlier one is safe."""
    end = int(time.time()) + 7200
    entra.script = [Answer(200, {"access_token": token(exp=end), "expires_in": 600})]
    answer = run_plugin(env=workload).credential
    assert 500 < _epoch(answer["expirationTimestamp"]) - time.time() < 600


def test_the_file_is_read_anew_each_time(entra: Entra, workload: dict[str, str], token_file: Path) -> None:
    """A rotated token is used at once."""
    variables = Env(workload)
    respond(PLUGIN, [], variables)
    rotated = federated(1800)
    token_file.write_text(rotated + "\n")
    respond(PLUGIN, [], variables)
    assert [asked.form["client_assertion"] == rotated for asked in entra.asked] == [False, True]


BAD_FILES: Mapping[str, tuple[Callable[[], str], int, str, str]] = {
    "expired": (lambda: federated(-90), 3, "federated-token-expired", "expired at 20"),
    "not yet valid": (lambda: federated(7200, starts=1000), 3, "federated-token-early", "is valid from 20"),
    "no token": (lambda: "LEAKED-content", 1, "federated-token-invalid", "holds no token (14 characters)"),
    "over for ever": (lambda: federated(-(10**12)), 3, "federated-token-expired", "expired at 1970"),
    "empty": (lambda: "", 1, "federated-token-invalid", "holds no token (0 characters)"),
    "binary": (lambda: "\0LEAKED\x1b[31m", 1, "federated-token-invalid", "holds no token"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_federated_token_is_explained_without_a_call(
    entra: Entra, workload: dict[str, str], token_file: Path, name: str
) -> None:
    """Path and time are told, the content is not, and nobody is asked."""
    make, status, code, words = BAD_FILES[name]
    token_file.write_text(make())
    told = run_plugin(env=workload).failed(status, code)
    assert words in told
    assert str(token_file) in told
    assert "eyJ" not in told
    assert entra.asked == []


def test_a_missing_token_file_names_path_and_reason(workload: dict[str, str], token_file: Path) -> None:
    """The error says what is not there."""
    token_file.unlink()
    told = run_plugin(env=workload).failed(1, "file-unreadable")
    assert f"{token_file} cannot be read: No such file" in told


def test_a_wrong_audience_is_explained_after_the_refusal(
    entra: Entra, workload: dict[str, str], token_file: Path
) -> None:
    """An audience may be the federated credential's own, so Entra ID judges, and the error shows what to configure."""
    token_file.write_text(federated(audience="https://kubernetes.default.svc"))
    told = run_plugin(env=workload).failed(1, "federated-credential-mismatch")
    assert "AADSTS700212" in told
    for words in (ISSUER, SUBJECT, "https://kubernetes.default.svc", "api://AzureADTokenExchange"):
        assert words in told
    assert len(entra.asked) == 1


def test_a_token_file_of_another_identity_is_refused_with_the_subject(entra: Entra, workload: dict[str, str]) -> None:
    """AADSTS700213 names the subject that the federated credential must have."""
    entra.script = [refusal(700213, "invalid_client")]
    assert f"subject {SUBJECT}" in run_plugin(env=workload).failed(1, "federated-credential-mismatch")


GARBAGE: Mapping[str, Answer] = {
    "html": Answer(200, b"<html>LEAKED</html>", {"Content-Type": "text/html"}),
    "no token": Answer(200, {"token_type": "Bearer", "expires_in": 3599}),
    "an array": Answer(200, ["LEAKED"]),
    "null": Answer(200, None),
    "no end": Answer(200, {"access_token": "LEAKED"}),
    "a null token": Answer(200, {"access_token": None, "expires_in": 3599}),
    "an end that is none": Answer(200, {"access_token": "LEAKED", "expires_in": "nan"}),
    "an end that never comes": Answer(200, {"access_token": "LEAKED", "expires_in": float("inf")}),
    "an end beyond a float": Answer(200, {"access_token": "LEAKED", "expires_in": 10**400}),
    "a date beyond all": Answer(400, b"LEAKED", {"Date": "Sun, 29 Nov 99999999999999999999 17:31:49 GMT"}),
    "a redirect": Answer(302, b"LEAKED", {"Location": "https://127.0.0.1:1/"}),
    "not UTF-8": Answer(200, b"\xff\xfe{"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_an_answer_that_is_none_of_entra_ids_is_an_error(entra: Entra, workload: dict[str, str], name: str) -> None:
    """A captive portal's page or half an answer never becomes a credential."""
    entra.script = [GARBAGE[name]]
    with pytest.raises(ExecCredError) as caught:
        respond(PLUGIN, [], Env(workload))
    assert caught.value.code in ("answer-invalid", "entra-refused")
    assert "LEAKED" not in f"{caught.value.message} {caught.value.hint}"


def test_a_token_that_no_header_can_carry_is_refused(entra: Entra, workload: dict[str, str]) -> None:
    """The layer's check of tokens holds here, too."""
    entra.script = [Answer(200, {"access_token": "two words", "expires_in": 3599})]
    run_plugin(env=workload).failed(1, "token-invalid")


def test_it_runs_as_a_stranger_without_a_home(entra: Entra, workload: dict[str, str], tmp_path: Path) -> None:
    """HOME unset and an unwritable, unreadable working directory do not matter."""
    assert run_plugin(env=workload).credential["token"]
    folder = tmp_path / "closed"
    folder.mkdir()
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        folder.chmod(0o000)  # once inside: only root would come in
        assert run_plugin(env={**workload, "HOME": "/nonexistent"}).credential["token"]
    finally:
        os.chdir(here)
        os.close(here)


def test_output_token_prints_the_bare_token(entra: Entra, workload: dict[str, str]) -> None:
    """For scripts there is the token alone."""
    answer = run_plugin("--output", "token", env=workload)
    assert jwt_claims(answer.stdout.strip())["aud"] == AKS


@pytest.mark.parametrize(
    ("claims", "left_out"),
    [
        ({"hasgroups": True}, True),
        ({"hasgroups": "true"}, True),
        ({"_claim_names": {"groups": "src1"}}, True),
        ({"hasgroups": False, "groups": ["a"]}, False),
        ({"_claim_names": {"other": "src1"}}, False),
        ({"_claim_names": ["groups"]}, False),
        ({}, False),
    ],
    ids=str,
)
def test_debug_names_choices_and_the_group_overage_but_no_secret(
    entra: Entra, workload: dict[str, str], claims: dict[str, object], left_out: bool
) -> None:
    """The debug log says where settings came from; neither token is in it."""
    entra.claims = claims
    answer = run_plugin("--log-level", "debug", env=workload)
    assert answer.status == 0
    assert "client-id from variable AZURE_CLIENT_ID" in answer.stderr
    assert ("more groups than a token can name" in answer.stderr) is left_out
    assert "eyJ" not in answer.stderr
    assert base64.urlsafe_b64encode(SUBJECT.encode()).decode()[:12] not in answer.stderr
