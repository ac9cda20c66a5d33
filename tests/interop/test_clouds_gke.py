"""gke-gcloud-auth-plugin and gke, given the same application default credentials, get the same kind of token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest

from execcred.conformance.fakes import Authority, ConnectProxy
from execcred.conformance.fakes.google import HOSTS, IAM, ROBOT, SCOPES, TARGET, TOKEN_URI, Google, MetadataServer
from gke.cloud import Cloud
from gke.files import authorized_user, impersonated, service_account
from interop.peers import Answer, ask, gke_peer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from execcred.conformance.fakes.google import Asked
    from execcred.conformance.fakes.listener import Head

PROJECT = "/computeMetadata/v1/project/project-id"
DEFAULT_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem)
    with (
        Google(authority.server_context(*HOSTS)) as google,
        ConnectProxy(dict.fromkeys(HOSTS, google.port)) as proxy,
    ):
        yield Cloud(google, proxy, tmp_path / "ca.pem", tmp_path)


class Seen(NamedTuple):
    """The answer of one tool, and what it asked Google and the metadata server for."""

    answer: Answer
    asked: list[Asked]
    heads: list[Head]


def both(cloud: Cloud, variables: dict[str, str], metadata: MetadataServer | None = None) -> tuple[Seen, Seen]:
    """Run both tools, the peer first."""
    heads = metadata.asked if metadata else []
    seen = []
    for command in (gke_peer(), "gke"):
        home = cloud.folder / command.rpartition("/")[2]
        given = {"SSL_CERT_FILE": str(cloud.ca), **cloud.network(), **variables}
        answer = ask(command, ["--use_application_default_credentials"], home, given)
        seen.append(Seen(answer, list(cloud.google.asked), list(heads)))
        cloud.google.asked.clear()
        heads.clear()
    theirs, ours = seen
    return theirs, ours


def same_tokens(cloud: Cloud, theirs: Seen, ours: Seen, who: str) -> None:
    """Both are the principal's access token as Google issued it, with the scopes that clusters need."""
    for seen in (theirs, ours):
        assert cloud.google.principal(seen.answer.token) == who
        assert cloud.google.scopes(seen.answer.token) >= SCOPES
    # Of its hour, ours keeps a minute for clocks and ways.
    assert 3560 < theirs.answer.left <= 3600
    assert 3500 < ours.answer.left <= 3540


def claims(asked: Asked) -> dict[str, Any]:
    """Return what a service account's key has signed, without the moment."""
    signed: dict[str, Any] = jwt.decode(asked.fields["assertion"], options={"verify_signature": False})
    assert signed.pop("exp") - signed.pop("iat") == 3600
    return {**signed, "scope": set(signed["scope"].split())}


def test_a_service_accounts_key(cloud: Cloud) -> None:
    theirs, ours = both(cloud, cloud.write(service_account()))
    same_tokens(cloud, theirs, ours, ROBOT)
    ((their_request,), (our_request,)) = theirs.asked, ours.asked
    assert claims(our_request) == claims(their_request) == {"iss": ROBOT, "aud": TOKEN_URI, "scope": SCOPES}


def test_a_persons_login(cloud: Cloud) -> None:
    theirs, ours = both(cloud, cloud.write(authorized_user()))
    same_tokens(cloud, theirs, ours, "user@example.test")
    ((their_request,), (our_request,)) = theirs.asked, ours.asked
    # The peer takes all scopes of the login; we ask for the two, so that a login that lacks one is told of at once.
    assert set(our_request.fields.pop("scope").split()) == SCOPES
    assert our_request.fields == their_request.fields


def test_an_impersonated_service_account(cloud: Cloud) -> None:
    theirs, ours = both(cloud, cloud.write(impersonated(service_account())))
    same_tokens(cloud, theirs, ours, TARGET)
    assert [each.what for each in ours.asked] == [each.what for each in theirs.asked] == ["token", "iam"]
    # The source's own token is good for IAM only; the peer's is good for everything.
    assert (claims(theirs.asked[0])["scope"], claims(ours.asked[0])["scope"]) == (SCOPES, {IAM})
    their_request, our_request = theirs.asked[1], ours.asked[1]
    assert our_request.path == their_request.path
    assert our_request.fields.pop("delegates") == []  # which the peer leaves out
    assert our_request.fields == their_request.fields
    assert set(our_request.fields["scope"]) == SCOPES


def test_the_metadata_server(cloud: Cloud) -> None:
    with MetadataServer(cloud.google) as metadata:
        theirs, ours = both(cloud, {"GCE_METADATA_HOST": metadata.netloc}, metadata)
    same_tokens(cloud, theirs, ours, ROBOT)
    assert (theirs.asked, ours.asked, cloud.proxy.targets) == ([], [], [])
    # The peer also asks for a project, which a cluster's token has no use for.
    assert [urlsplit(head.target).path for head in theirs.heads] == [PROJECT, DEFAULT_TOKEN]
    (head,) = ours.heads
    assert parse_qs(urlsplit(head.target).query) == parse_qs(urlsplit(theirs.heads[1].target).query)
    assert urlsplit(head.target).path == DEFAULT_TOKEN
