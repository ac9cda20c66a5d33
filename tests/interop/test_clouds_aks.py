"""kubelogin and aks, given the same Microsoft Entra ID, ask for the same token and hand out what they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jwt
import pytest

from execcred.conformance.fakes import Authority, ConnectProxy
from execcred.conformance.fakes.azure import AKS, CLIENT, SECRET, TENANT, Asked, Entra, Metadata, federated
from interop.peers import Answer, ask, tool

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

    from execcred.conformance.fakes.azure import Server

HOST = "login.microsoftonline.com"
TOKEN = f"/{TENANT}/oauth2/v2.0/token"
# Flags that both take; without the last the peer may look the authority up elsewhere, which we never do.
ARGUMENTS = ["get-token", "--server-id", AKS, "--disable-instance-discovery"]


class Certificates(Authority):
    """An authority whose servers have the name of Entra ID's."""

    def server_context(self, *_: str, **more: Any) -> ssl.SSLContext:
        return super().server_context(HOST, **more)


class Microsoft(Entra):
    """Entra ID under its own name, as the peer takes another one for workload identities only."""

    @property
    def netloc(self) -> str:
        return HOST


@pytest.fixture
def entra(tmp_path: Path) -> Iterator[Entra]:
    authority = Certificates()
    (tmp_path / "ca.pem").write_text(authority.pem)
    with Microsoft(authority) as server:
        yield server


@pytest.fixture
def variables(entra: Entra, tmp_path: Path) -> Iterator[dict[str, str]]:
    (tmp_path / "federated").write_text(federated())
    names = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT}
    with ConnectProxy({HOST: entra.port}) as proxy:
        yield {"SSL_CERT_FILE": str(tmp_path / "ca.pem"), "HTTPS_PROXY": proxy.url, **names}


def both(
    server: Server, folder: Path, variables: dict[str, str], *arguments: str
) -> tuple[list[Answer], list[list[Asked]]]:
    """Return both answers, the peer's first, and what the server was asked for each."""
    answers, asked = [], []
    for command in (tool("kubelogin"), "aks"):
        # A home of its own each time: the peer keeps tokens there without being asked to.
        home = folder / command.rpartition("/")[2]
        answers.append(ask(command, [*ARGUMENTS, *arguments], home, variables))
        asked.append(list(server.asked))
        server.asked.clear()
    return answers, asked


def same_tokens(answers: list[Answer]) -> None:
    """Both are the access token as it was issued; of its hour we keep a minute for clocks and ways."""
    claims = [jwt.decode(each.token, options={"verify_signature": False}) for each in answers]
    assert [{name: each[name] for name in ("aud", "appid", "tid")} for each in claims] == [
        {"aud": AKS, "appid": CLIENT, "tid": TENANT}
    ] * 2
    theirs, ours = answers
    assert 3560 < theirs.left <= 3600
    assert 3500 < ours.left <= 3540


def granted(asked: list[Asked]) -> dict[str, str]:
    """Return what the one token request said about who asks for what."""
    (form,) = [each.form for each in asked if each.path == TOKEN]
    return {name: text for name, text in form.items() if not name.startswith(("x-client-", "client_info"))}


def scopes(form: dict[str, str]) -> set[str]:
    """Take a form's scopes out of it; the peer's SDK adds those of OpenID Connect, which a program has no use for."""
    return set(form.pop("scope").split()) - {"openid", "offline_access", "profile"}


def test_workload_identity(entra: Entra, variables: dict[str, str], tmp_path: Path) -> None:
    file = {"AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "federated")}
    answers, asked = both(entra, tmp_path, variables | file, "--login", "workloadidentity")
    same_tokens(answers)
    theirs, ours = [granted(each) for each in asked]
    assert scopes(theirs) == scopes(ours) == {f"{AKS}/.default"}
    assert ours == theirs
    assert ours["client_assertion"] == (tmp_path / "federated").read_text()
    # The peer first asks where tokens are to be had; we know it.
    assert [len(each) for each in asked] == [2, 1]


def test_a_service_principals_secret(entra: Entra, variables: dict[str, str], tmp_path: Path) -> None:
    answers, asked = both(entra, tmp_path, variables | {"AZURE_CLIENT_SECRET": SECRET}, "--login", "spn")
    same_tokens(answers)
    theirs, ours = [granted(each) for each in asked]
    assert scopes(theirs) == scopes(ours) == {f"{AKS}/.default"}
    assert ours == theirs
    assert ours["client_secret"] == SECRET
    assert [len(each) for each in asked] == [2, 2]


def test_a_managed_identity(tmp_path: Path) -> None:
    with Metadata() as metadata:
        service = {"IDENTITY_ENDPOINT": f"{metadata.url}/msi/token", "IDENTITY_HEADER": metadata.header}
        answers, asked = both(metadata, tmp_path, service, "--login", "msi", "--client-id", CLIENT)
    same_tokens(answers)
    theirs, ours = [(each[0].path, each[0].form, len(each)) for each in asked]
    assert ours == theirs
    assert ours[1]["client_id"] == CLIENT
