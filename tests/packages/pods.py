"""What a pod finds per plugin: the spoke of its ClusterProfile, who gives it a credential, its variables and files."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from execcred._protocol import jwt_claims
from execcred.conformance.fakes import Authority, Identity, KubeServer
from execcred.conformance.fakes.aws import ROLE, Cloud, Token
from execcred.conformance.fakes.azure import AKS, CLIENT, TENANT, Entra, federated
from execcred.conformance.fakes.google import MetadataServer
from interop.cluster import b64, kubeconfig
from packages.built import READERS, ROOT
from packages.containers import ACCOUNT

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from execcred.conformance.fakes.listener import Head
    from interop.fleet import Reader

PATIENT = {"EXECCRED_TIMEOUT": "60"}  # test machines may be busy


class Pod(NamedTuple):
    """The options of its container, the ClusterProfile, and as whom the spoke knows the credential."""

    options: list[str]
    profile: dict[str, Any]
    user: str


class Spoke(KubeServer):
    """An API server under a cloud's name that takes the tokens that `accepts` takes; `prefix` is a gateway's path."""

    def __init__(self, hostname: str, prefix: str, accepts: Callable[[str], bool]) -> None:
        super().__init__(Authority(), hostname=hostname)
        self.prefix = prefix
        self.accepts = accepts
        self.allow("controller", "list", "namespaces")

    def _identity(self, connection: socket.socket, head: Head) -> Identity | None:  # noqa: ARG002  # the base class's
        token = head.headers.get("authorization", "").removeprefix("Bearer ")
        return Identity("controller") if self.accepts(token) else None

    def _answer(self, who: Identity | None, head: Head) -> tuple[int, dict[str, Any]]:
        return super()._answer(who, head._replace(target=head.target.removeprefix(self.prefix)))


def profile_of(plugin: str) -> dict[str, Any]:
    """Return the ClusterProfile that is shown with a plugin's files."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "provider-configs" / plugin / "clusterprofile.yaml").read_text())
    return found


@contextlib.contextmanager
def pod(plugin: str, folder: Path, reader: Reader | None = None) -> Iterator[Pod]:
    """Set up everything around a plugin's pod; `folder` is mounted at /conf; Secret readers need the hub's `reader`."""
    profile = profile_of(plugin)
    cluster = profile["status"]["accessProviders"][0]["cluster"]
    if plugin in READERS:
        assert reader
        options = _on_the_hub(reader, folder)
        cluster |= {"server": reader.spoke.url, "certificate-authority-data": b64(reader.spoke.ca)}
        yield Pod(options, profile, "member")
        return
    url = urlsplit(cluster["server"])
    host = url.hostname or ""
    with contextlib.ExitStack() as stack:
        variables = {"eks": _aws, "gke": _google, "aks": _azure}[plugin](stack, folder)
        spoke = stack.enter_context(Spoke(host.lower(), url.path, ACCEPTS[plugin]))
        cluster |= {"server": f"https://{host}:{spoke.port}{url.path}", "certificate-authority-data": b64(spoke.ca_pem)}
        yield Pod(["--add-host", f"{host.lower()}:127.0.0.1", *_environment(variables)], profile, "controller")


def _environment(variables: dict[str, str]) -> list[str]:
    return [word for name, text in {**PATIENT, **variables}.items() for word in ("--env", f"{name}={text}")]


def _on_the_hub(reader: Reader, folder: Path) -> list[str]:
    """Put the Secrets of all files on the hub, and the pod's service account where a pod has it."""
    names = ("spoke-1", "spoke-1-controller", "spoke-1-kubeconfig")
    reader.secret("spoke-1", token=reader.spoke.member)
    reader.secret("spoke-1-controller", token=reader.spoke.member)
    user = {"token": reader.spoke.member}
    reader.secret("spoke-1-kubeconfig", value=yaml.safe_dump(kubeconfig(reader.spoke.url, reader.spoke.ca, user)))
    reader.allow(*names)
    (folder / "account").mkdir()
    for name, text in {"token": reader.token, "ca.crt": reader.hub.ca, "namespace": reader.namespace}.items():
        (folder / "account" / name).write_text(text)
    hub = urlsplit(reader.hub.url)
    variables = {"KUBERNETES_SERVICE_HOST": str(hub.hostname), "KUBERNETES_SERVICE_PORT": str(hub.port)}
    return ["--volume", f"{folder}/account:{ACCOUNT}:ro", *_environment(variables)]


def _aws(stack: contextlib.ExitStack, folder: Path) -> dict[str, str]:
    """Return what the webhook of IAM roles for service accounts puts into a pod; STS is local."""
    cloud = stack.enter_context(Cloud())
    (folder / "token").write_text("a-service-account-token")
    variables = {"AWS_ROLE_ARN": f"{ROLE}pod", "AWS_WEB_IDENTITY_TOKEN_FILE": "/conf/token", "AWS_REGION": "eu-west-1"}
    return {**variables, "AWS_ENDPOINT_URL_STS": cloud.url}


def _google(stack: contextlib.ExitStack, folder: Path) -> dict[str, str]:
    return {"GCE_METADATA_HOST": stack.enter_context(MetadataServer()).netloc}


def _azure(stack: contextlib.ExitStack, folder: Path) -> dict[str, str]:
    """Return what the webhook of workload identity puts into a pod; Entra ID is local."""
    authority = Authority()
    entra = stack.enter_context(Entra(authority))
    (folder / "federated").write_text(federated())
    (folder / "ca.pem").write_text(authority.pem)
    variables = {"AZURE_CLIENT_ID": CLIENT, "AZURE_TENANT_ID": TENANT, "AZURE_AUTHORITY_HOST": f"{entra.url}/"}
    return {**variables, "AZURE_FEDERATED_TOKEN_FILE": "/conf/federated", "SSL_CERT_FILE": "/conf/ca.pem"}


ACCEPTS: dict[str, Callable[[str], bool]] = {
    "eks": lambda token: Token(token, "spoke-1").problem == "",
    "gke": lambda token: token == "ya29.attached",
    "aks": lambda token: jwt_claims(token)["aud"] == AKS,
}
