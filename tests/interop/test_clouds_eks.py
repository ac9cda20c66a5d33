"""aws-iam-authenticator and eks, given the same AWS, make the same token; a cluster's verifier sees no difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from execcred.conformance.fakes import Authority, ConnectProxy
from execcred.conformance.fakes.aws import ROLE, STATIC, Asked, Cloud, Token
from interop.peers import Answer, ask, tool, verified

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REGION = "eu-west-1"
STS = f"sts.{REGION}.amazonaws.com"
ARGUMENTS = ["token", "-i", "demo", "--region", REGION]
CHANGING = ("X-Amz-Date", "X-Amz-Signature")


class Aws:
    """AWS behind a proxy, under the names of its hosts."""

    def __init__(self, folder: Path, cloud: Cloud, proxy: ConnectProxy) -> None:
        self.folder, self.cloud, self.proxy = folder, cloud, proxy
        self.network = {"HTTPS_PROXY": proxy.url, "AWS_CA_BUNDLE": cloud.ca, "AWS_EC2_METADATA_DISABLED": "true"}

    def both(self, variables: dict[str, str], *arguments: str) -> tuple[list[Answer], list[list[Asked]]]:
        """Return both answers, the peer's first, and what AWS was asked for each."""
        answers, asked = [], []
        for command in (tool("aws-iam-authenticator"), "eks"):
            given = {**self.network, **variables}
            answers.append(ask(command, [*ARGUMENTS, *arguments], self.folder / command.rpartition("/")[2], given))
            asked.append(list(self.cloud.asked))
            self.cloud.asked.clear()
        return answers, asked

    def accepted(self, answers: list[Answer]) -> list[str]:
        """Return whom the verifier of clusters takes the tokens for."""
        return [verified(each.token, REGION, self.cloud.port, self.cloud.ca) for each in answers]


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Aws]:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem)
    with (
        Cloud(authority.server_context(STS), str(tmp_path / "ca.pem")) as cloud,
        ConnectProxy({STS: cloud.port}) as proxy,
    ):
        yield Aws(tmp_path, cloud, proxy)


def same_tokens(answers: list[Answer]) -> None:
    """Both must hold: a right signature over the same host, query and headers, but for the moment."""
    tokens = [Token(each.token) for each in answers]
    assert [token.problem for token in tokens] == ["", ""]
    assert [(token.scheme, token.host, token.path) for token in tokens] == [("https", STS, "/")] * 2
    theirs, ours = [{name: text for name, text in token.query.items() if name not in CHANGING} for token in tokens]
    # The peer means 60 seconds, too, but gives its SDK nanoseconds; clusters take any number up to 900.
    assert (theirs.pop("X-Amz-Expires"), ours.pop("X-Amz-Expires")) == ("0", "60")
    assert ours == theirs
    assert theirs["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert set(CHANGING) <= tokens[1].query.keys()


def minute_before_fifteen(answer: Answer) -> bool:
    """Tell whether a minute is kept of the quarter of an hour that a cluster accepts a token for."""
    return 13.5 * 60 < answer.left <= 14 * 60


def test_static_keys(aws: Aws) -> None:
    answers, asked = aws.both(STATIC)
    same_tokens(answers)
    assert (asked, aws.proxy.targets) == ([[], []], [])
    assert [minute_before_fifteen(each) for each in answers] == [True, True]
    theirs, ours = aws.accepted(answers)
    assert theirs == ours
    assert ":user/AKIASTATIC" in ours


def form(asked: list[Asked]) -> dict[str, str]:
    """Return what the one request asked STS for."""
    assert len(asked) == 1
    return {**asked[0].query, "signed by": asked[0].caller, "host": asked[0].headers["host"]}


def test_an_assumed_role(aws: Aws) -> None:
    answers, asked = aws.both(STATIC, "-r", ROLE + "target", "-e", "external-1", "-s", "session-1")
    same_tokens(answers)
    theirs, ours = [form(each) for each in asked]
    # The peer asks for a quarter of an hour; we for STS's hour, which a cache can make use of.
    assert theirs.pop("DurationSeconds") == "900"
    assert ours == theirs
    assert (ours["Action"], ours["signed by"], ours["host"]) == ("AssumeRole", "AKIASTATIC", STS)
    assert [minute_before_fifteen(each) for each in answers] == [True, True]
    theirs_seen, ours_seen = aws.accepted(answers)
    assert theirs_seen == ours_seen
    assert ours_seen


def test_a_web_identity(aws: Aws) -> None:
    file = aws.folder / "web-identity"
    file.write_text("header.payload.signature")
    irsa = {"AWS_ROLE_ARN": ROLE + "pod", "AWS_WEB_IDENTITY_TOKEN_FILE": str(file), "AWS_REGION": REGION}
    # The last as EKS sets it in pods; without it the peer's SDK asks the STS of us-east-1.
    more = {"AWS_ROLE_SESSION_NAME": "session-1", "AWS_STS_REGIONAL_ENDPOINTS": "regional"}
    answers, asked = aws.both({**irsa, **more})
    same_tokens(answers)
    theirs, ours = [form(each) for each in asked]
    assert ours == theirs
    assert (ours["Action"], ours["signed by"]) == ("AssumeRoleWithWebIdentity", "")
    theirs_seen, ours_seen = aws.accepted(answers)
    assert theirs_seen == ours_seen


def test_a_session_that_ends_sooner_ends_our_token_only(aws: Aws) -> None:
    aws.cloud.lifetime = 180.0
    (theirs, ours), _ = aws.both(STATIC, "-r", ROLE + "target", "-s", "session-1")
    assert minute_before_fifteen(theirs)  # announced, although STS refuses the token after three minutes
    assert 100 < ours.left <= 120
