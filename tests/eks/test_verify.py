"""The real verifier of clusters accepts our tokens, and the real client's tokens are like ours."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trustme

from eks.cloud import environment, run
from execcred.conformance.fakes.aws import ROLE, STATIC, Cloud, Token
from execcred_eks_sign import sts_host

GO_BIN = Path(__file__).parents[2] / ".cache/go-bin"
REGIONS = [
    ("eu-west-1", "aws", ()),
    ("us-east-1", "aws", ("--fips",)),
    ("cn-north-1", "aws-cn", ()),
    ("us-gov-west-1", "aws-us-gov", ()),
    ("us-iso-east-1", "aws-iso", ()),
]

pytestmark = pytest.mark.interop


def tool(name: str) -> str:
    path = GO_BIN / name
    if not path.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{path} is missing: make bench-tools")
        pytest.skip(f"{path} is missing: make bench-tools")
    return str(path)


class Judge:
    """The verifier of aws-iam-authenticator, with a local STS that has the name of the real ones."""

    def __init__(self, folder: Path, *hosts: str) -> None:
        ca, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert(*hosts).configure_cert(context)
        self.ca = folder / "ca.pem"
        ca.cert_pem.write_to_path(str(self.ca))
        self.cloud = Cloud(context)

    def verify(
        self, token: str, region: str, partition: str, cluster: str = "demo"
    ) -> subprocess.CompletedProcess[str]:
        where = ["-cluster", cluster, "-partition", partition, "-region", region]
        server = ["-sts", f"127.0.0.1:{self.cloud.port}", "-ca", str(self.ca)]
        command = [tool("eks-verify"), *where, *server]
        return subprocess.run(command, input=token, capture_output=True, text=True, check=False)


def answer_of(variables: dict[str, str], *arguments: str) -> str:
    return str(run(variables, *arguments).answer["status"]["token"])


@pytest.mark.parametrize(("region", "partition", "more"), REGIONS)
def test_a_clusters_own_verifier_accepts_the_token(
    tmp_path: Path, region: str, partition: str, more: tuple[str, ...]
) -> None:
    judge = Judge(tmp_path, sts_host(region, bool(more)))
    with judge.cloud as cloud:
        token = answer_of(environment(tmp_path, **STATIC), "-i", "demo", "--region", region, *more)
        done = judge.verify(token, region, partition)
        assert done.returncode == 0, done.stderr
        identity: dict[str, Any] = json.loads(done.stdout)
        assert "arn:aws:iam::111122223333:user/AKIASTATIC" in identity.values()
        assert cloud.actions() == ["GetCallerIdentity"]


def test_a_roles_token_is_accepted_for_its_own_cluster_only(tmp_path: Path, cloud: Cloud) -> None:
    judge = Judge(tmp_path, sts_host("eu-west-1"))
    with judge.cloud:
        variables = environment(tmp_path, **STATIC, AWS_ENDPOINT_URL_STS=cloud.url)
        token = answer_of(variables, "-i", "demo", "--region", "eu-west-1", "-r", ROLE + "target")
        assert judge.verify(token, "eu-west-1", "aws").returncode == 0
        other = judge.verify(token, "eu-west-1", "aws", cluster="other")
        assert other.returncode == 1
        assert "SignatureDoesNotMatch" in other.stderr


def test_the_token_is_aws_iam_authenticators_but_for_the_seconds_that_the_url_claims_to_last(tmp_path: Path) -> None:
    variables = environment(tmp_path, **STATIC)
    command = [tool("aws-iam-authenticator"), "token", "-i", "demo", "--region", "eu-west-1"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout)
    result = run(variables, "token", "-i", "demo", "--region", "eu-west-1")
    pair = [Token(theirs["status"]["token"]), result.token]
    assert [token.problem for token in pair] == ["", ""]
    assert pair[0].host == pair[1].host
    # Verifiers take 0 to 900 and count from the date; 60 is what the AWS CLI and the EKS documentation have.
    assert [token.query.pop("X-Amz-Expires") for token in pair] == ["0", "60"]
    for token in pair:
        for name in ("X-Amz-Date", "X-Amz-Signature"):
            del token.query[name]
    assert pair[0].query == pair[1].query
    # Both announce a minute less than the fifteen.
    mine, other = [each["status"]["expirationTimestamp"] for each in (result.answer, theirs)]
    assert mine[:13] == other[:13] or mine > other
