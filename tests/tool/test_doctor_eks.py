"""doctor on EKS: STS is asked whose the token is, the token is shown nowhere, and goes to EKS' own hosts only."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from execcred.conformance.fakes import Authority, ConnectProxy
from execcred.conformance.fakes.aws import SECRET_TEXT, STATIC, Cloud
from execcred.tool._checks_identity import presigned
from tool.support import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tool.hubs import Fleet

STS = "sts.eu-central-1.amazonaws.com"
EKS = str(Path(sys.executable).with_name("eks-plugin"))
Steps = dict[str, Any]


class Account:
    """A fleet with one EKS cluster, and the way to a stand-in for STS."""

    def __init__(self, fleet: Fleet, cloud: Cloud, variables: dict[str, str]) -> None:
        self.fleet = fleet
        self.cloud = cloud
        self.variables = variables
        self.status = 0
        self.report: Steps = {}

    def doctor(self, *arguments: str, **variables: str) -> Steps:
        """Return the steps of the report."""
        words = ["doctor", "--output=json", f"--provider-file={self.fleet.providers}", "--clusterprofile=spoke-1"]
        done = run([*words, *arguments], variables={**self.variables, **variables})
        assert done.stderr == b""
        assert b"X-Amz-Signature" not in done.stdout
        assert SECRET_TEXT.encode() not in done.stdout
        self.status, self.report = done.returncode, json.loads(done.stdout)
        return {step["step"]: step for step in self.report["steps"]}


@pytest.fixture
def aws(fleet: Fleet, tmp_path: Path) -> Iterator[Account]:
    authority = Authority()
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(authority.pem)
    with Cloud(authority.server_context(STS)) as cloud, ConnectProxy({STS: cloud.port}) as proxy:
        variables = {
            "PATH": os.environ["PATH"],
            "HTTPS_PROXY": proxy.url,
            "SSL_CERT_FILE": str(bundle),
            "AWS_EC2_METADATA_DISABLED": "true",
            **STATIC,
            **fleet.variables(),
        }
        fleet.provider_file(EKS, "--allow-server=127.0.0.1", name="eks")
        fleet.profile("spoke-1", {"clusterName": "demo", "region": "eu-central-1"}, provider="eks")
        yield Account(fleet, cloud, variables)


def test_the_callers_arn_is_asked_of_sts_and_named_when_the_cluster_does_not_know_it(aws: Account) -> None:
    steps = aws.doctor()
    arn = "arn:aws:iam::111122223333:user/AKIASTATIC"
    assert steps["identity"]["details"] == {
        "type": "eks",
        "host": STS,
        "region": "eu-central-1",
        "arn": arn,
        "account": "111122223333",
    }
    assert aws.cloud.asked[-1].headers["x-k8s-aws-id"] == "demo"
    assert aws.cloud.actions() == ["GetCallerIdentity"]
    assert (steps["accepted"]["problems"][0]["code"], aws.status) == ("cluster-unauthorized", 1)
    assert arn in steps["accepted"]["problems"][0]["message"]
    assert "create-access-entry" in aws.report["next"]["hint"]
    assert 600 < steps["expiry"]["details"]["secondsLeft"] <= 900


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            (403, json.dumps({"Error": {"Code": "InvalidClientTokenId", "Message": SECRET_TEXT}})),
            "InvalidClientTokenId",
        ),
        ((403, json.dumps({"__type": "ExpiredToken"})), "ExpiredToken"),
        ((403, "SignatureDoesNotMatch"), "403"),
        ((500, "[]"), "500"),
    ],
)
def test_what_sts_refuses_the_cluster_would_refuse(aws: Account, answer: tuple[int, str], told: str) -> None:
    aws.cloud.raw["GetCallerIdentity"] = answer
    steps = aws.doctor()
    assert steps["identity"]["problems"][0]["code"] == "identity-refused"
    assert told in steps["identity"]["problems"][0]["message"]
    assert (aws.status, aws.report["next"]["code"]) == (1, "identity-refused")


def test_an_sts_out_of_reach_is_no_failure(aws: Account) -> None:
    aws.variables["HTTPS_PROXY"] = "http://127.0.0.1:9"
    steps = aws.doctor()
    assert (steps["identity"]["status"], steps["identity"]["problems"][0]["code"]) == ("warning", "identity-unknown")
    assert steps["accepted"]["status"] == "failed"


def test_an_sts_that_is_not_trusted_is_sent_nothing(aws: Account) -> None:
    steps = aws.doctor(SSL_CERT_FILE=aws.fleet.write("other.pem", Authority().pem))
    assert steps["identity"]["problems"][0]["code"] == "identity-unknown"
    assert aws.cloud.asked == []


def test_without_allow_server_a_profile_cannot_send_the_token_elsewhere(aws: Account) -> None:
    aws.fleet.provider_file(EKS, name="eks")
    steps = aws.doctor()
    assert steps["server"]["problems"][0]["code"] == "server-refused"
    assert "the hosts that eks gives to clusters" in steps["server"]["problems"][0]["message"]
    assert "allow-server-missing" in [each["code"] for each in steps["config"]["problems"]]
    assert aws.fleet.spoke.requests == []
    aws.doctor("--allow-server=127.0.0.1")
    assert len(aws.fleet.spoke.requests) == 1


@pytest.mark.parametrize(
    "arguments", [["--cluster-name=demo"], ["-i", "demo"], ["--cluster-id", "arn:aws:eks:eu-central-1:1:cluster/demo"]]
)
def test_the_clusters_name_is_found_where_it_is_given(aws: Account, arguments: list[str]) -> None:
    aws.fleet.provider_file(EKS, "--allow-server=127.0.0.1", "--region=eu-central-1", *arguments, name="eks")
    aws.fleet.profile("spoke-1", provider="eks")
    assert aws.doctor()["identity"]["details"]["account"] == "111122223333"
    assert aws.cloud.asked[-1].headers["x-k8s-aws-id"] == "demo"


def printer(fleet: Fleet, token: str) -> str:
    version = "client.authentication.k8s.io/v1"
    answer = {"kind": "ExecCredential", "apiVersion": version, "status": {"token": token}}
    path = fleet.write("printer", f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
    Path(path).chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (f"https://{STS}/?X-Amz-Credential=AKIAX%2F20260101%2Feu-central-1%2Fsts%2Faws4_request", "identity-unknown"),
        ("https://evil.example/?X-Amz-Credential=AKIAX%2F20260101%2Feu-central-1%2Fsts%2Fx", "identity-unknown"),
        ("https://evil.example/", "token-invalid"),
        ("\u00fc", "token-invalid"),
    ],
)
def test_a_foreign_token_is_sent_to_no_host_but_sts(aws: Account, url: str, code: str) -> None:
    token = "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    aws.fleet.provider_file(printer(aws.fleet, token), name="eks")
    aws.fleet.profile("spoke-1", provider="eks")
    assert aws.doctor()["identity"]["problems"][0]["code"] == code
    assert aws.cloud.asked == []


@pytest.mark.parametrize(("name", "end"), [("demo\r\nx-more: 1", ""), ("demo", " HTTP/1.1\r\nx-more: 1\r\n\r\n")])
def test_neither_profile_nor_plugin_adds_a_line_to_what_sts_is_asked(aws: Account, name: str, end: str) -> None:
    url = f"https://{STS}/?X-Amz-Credential=AKIAX%2F20260101%2Feu-central-1%2Fsts%2Faws4_request{end}"
    token = "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    aws.fleet.provider_file(printer(aws.fleet, token), name="eks")
    aws.fleet.profile("spoke-1", {"clusterName": name}, provider="eks")
    assert aws.doctor()["identity"]["problems"][0]["code"] == "identity-unknown"
    assert aws.cloud.asked == []


def test_a_token_in_a_kubeconfig_tells_no_cluster_to_ask_with(aws: Account) -> None:
    url = f"https://{STS}/?X-Amz-Credential=ASIAX%2F20260101%2Feu-central-1%2Fsts%2Faws4_request"
    token = "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    path = aws.fleet.write("static", aws.fleet.spoke.kubeconfig({"token": token}))
    done = run(["doctor", "--kubeconfig", path], variables=aws.variables)
    assert b"signed with temporary keys" in done.stdout
    assert b"[identity-unknown]" in done.stdout
    assert token.encode() not in done.stdout
    assert aws.cloud.asked == []


def test_a_token_that_is_no_base64_is_no_presigned_url() -> None:
    assert presigned("k8s-aws-v1.%%%") is None
