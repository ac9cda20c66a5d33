"""A small Kubernetes API server on TLS: enough for the readers, kubectl and the official client; hub or spoke."""

from __future__ import annotations

import base64
import json
import ssl
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.x509.oid import NameOID

from .discovery import DISCOVERY, KINDS, VERSIONS, Kind, resource_list
from .listener import Head, Listener, read_body, read_head
from .pki import LOOPBACK, Authority

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

Json = dict[str, Any]


REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class Identity(NamedTuple):
    """Who asks."""

    user: str
    groups: tuple[str, ...] = ()


class Asked(NamedTuple):
    """One request as it was answered; `user` is "" for nobody, `connection` counts from 1."""

    method: str
    path: str
    user: str
    status: int
    connection: int
    headers: dict[str, str]


class Grant(NamedTuple):
    """A user or group may do `verb` on `resource`; no namespace or names means any."""

    subject: str
    verb: str
    resource: str
    namespace: str = ""
    names: tuple[str, ...] = ()

    def covers(self, who: Identity, verb: str, kind: Kind, namespace: str, name: str) -> bool:
        return (
            self.subject in (who.user, *who.groups)
            and (self.verb, self.resource) == (verb, kind.resource)
            and self.namespace in ("", namespace)
            and (not self.names or name in self.names)
        )


class Refusal(Exception):
    """An answer that is a Status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def status_body(status: int, message: str) -> Json:
    """Return the Status object of a refusal."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": REASONS.get(status, "Unknown"),
        "code": status,
    }


def http_answer(status: int, body: bytes, form: str = "application/json", extra: str = "") -> bytes:
    """Return a whole HTTP/1.1 answer."""
    head = f"HTTP/1.1 {status} {REASONS.get(status, 'OK')}\r\nContent-Type: {form}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{extra}\r\n".encode() + body


class KubeServer(Listener):
    """A Kubernetes API server: `put` objects, `allow` users, then read `requests`."""

    def __init__(self, authority: Authority | None = None, host: str = "127.0.0.1", hostname: str = "") -> None:
        """`hostname` is what URLs and the certificate say."""
        self.authority = authority or Authority()
        names = (hostname,) if hostname else LOOPBACK
        super().__init__(self.authority.server_context(*names, clients=True), host, hostname)
        self.ca_pem = self.authority.pem
        self.tokens: dict[str, Identity] = {}
        self.grants: list[Grant] = []
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.requests: list[Asked] = []

    # --- what a test prepares ---

    def put(self, body: Json) -> None:
        """Store an object, or replace it."""
        kind = next(kind for kind in KINDS if (kind.version, kind.name) == (body["apiVersion"], body["kind"]))
        metadata = {"uid": f"{kind.resource}-{body['metadata']['name']}", "resourceVersion": "1", **body["metadata"]}
        namespace = metadata.get("namespace", "")
        self.objects[kind.resource, namespace, metadata["name"]] = {**body, "metadata": metadata}

    def put_secret(
        self,
        namespace: str,
        name: str,
        data: Mapping[str, str | bytes],
        type: str = "Opaque",  # noqa: A002
    ) -> None:
        """Store a Secret; `data` is not yet base64."""
        encoded = {
            key: base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
            for key, value in data.items()
        }
        metadata = {"namespace": namespace, "name": name}
        self.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type, "data": encoded})

    def allow(self, subject: str, verb: str, resource: str, namespace: str = "", *names: str) -> None:
        """Let a user or group do something; nobody may do anything else."""
        self.grants.append(Grant(subject, verb, resource, namespace, names))

    def kubeconfig(self, user: Mapping[str, Any], namespace: str = "", **cluster: Any) -> Json:
        """Return a kubeconfig for this server; `user` is the user entry, `cluster` adds to or replaces fields."""
        return kubeconfig(self.url, self.ca_pem, user, namespace, **cluster)

    # --- what it answers ---

    def handle(self, connection: socket.socket, number: int) -> None:
        while head := read_head(connection):
            read_body(connection, head)
            who = self._identity(connection, head)
            status, answer = self._answer(who, head)
            user = who.user if who else ""
            self.requests.append(Asked(head.method, head.target, user, status, number, head.headers))
            connection.sendall(http_answer(status, json.dumps(answer).encode()))  # in one write
            if head.headers.get("connection", "").lower() == "close":
                return

    def _identity(self, connection: socket.socket, head: Head) -> Identity | None:
        scheme, _, token = head.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.tokens.get(token)
        certificate = connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLSocket) else None
        if certificate is None:
            return None
        subject = x509.load_der_x509_certificate(certificate).subject
        users, groups = [
            [str(each.value) for each in subject.get_attributes_for_oid(name)]
            for name in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
        ]
        return Identity(users[0], tuple(groups))

    def _answer(self, who: Identity | None, head: Head) -> tuple[int, Json]:
        url = urlsplit(head.target)
        try:
            if who is None:
                raise Refusal(401, "Unauthorized")
            return self._route(who, head.method, url.path.strip("/").split("/"), parse_qs(url.query))
        except Refusal as refusal:
            return refusal.status, status_body(refusal.status, refusal.message)

    def _route(self, who: Identity, method: str, parts: list[str], query: dict[str, list[str]]) -> tuple[int, Json]:
        if len(parts) == 1 and method == "GET" and parts[0] in DISCOVERY:
            return 200, DISCOVERY[parts[0]]
        length = 2 if parts[0] == "api" else 3
        version, rest = "/".join(parts[1:length]), parts[length:]
        if version not in VERSIONS:
            raise Refusal(404, "the server could not find the requested resource")
        if not rest:
            return 200, resource_list(version)
        namespace = rest[1] if len(rest) > 2 and rest[0] == "namespaces" else ""
        resource, name = [*(rest[2:] if namespace else rest), ""][:2]
        kind = next((kind for kind in KINDS if (kind.version, kind.resource) == (version, resource)), None)
        if kind is None or "watch" in query:
            raise Refusal(404, "the server could not find the requested resource")
        return self._objects(who, method, kind, namespace, name)

    def _objects(self, who: Identity, method: str, kind: Kind, namespace: str, name: str) -> tuple[int, Json]:
        if kind.name == "SelfSubjectReview" and method == "POST":
            info = {"username": who.user, "groups": list(who.groups)}
            # kubectl sends it as protobuf; nothing in it matters.
            return 201, {"kind": kind.name, "apiVersion": kind.version, "status": {"userInfo": info}}
        verb = ("get" if name else "list") if method == "GET" else method.lower()
        if not any(grant.covers(who, verb, kind, namespace, name) for grant in self.grants):
            what = f'{kind.resource} "{name}"' if name else kind.resource
            where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
            raise Refusal(
                403,
                f'{what} is forbidden: User "{who.user}" cannot {verb} resource "{kind.resource}"'
                f' in API group "{kind.version.rpartition("/")[0].partition("/")[0]}"{where}',
            )
        if verb == "list":
            items = [
                each
                for (resource, there, _), each in sorted(self.objects.items())
                if resource == kind.resource and namespace in ("", there)
            ]
            metadata = {"resourceVersion": "1"}
            return 200, {"kind": f"{kind.name}List", "apiVersion": kind.version, "metadata": metadata, "items": items}
        found = self.objects.get((kind.resource, namespace, name))
        if verb != "get":
            raise Refusal(405, "this server is read only")
        if found is None:
            raise Refusal(404, f'{kind.resource} "{name}" not found')
        return 200, found


def kubeconfig(server: str, ca: str, user: Mapping[str, Any], namespace: str = "", **cluster: Any) -> Json:
    """Return a kubeconfig of one context; `ca` is PEM text, `cluster` adds to or replaces fields."""
    authority = {"certificate-authority-data": base64.b64encode(ca.encode()).decode()} if ca else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "there", "cluster": {"server": server, **authority, **cluster}}],
        "users": [{"name": "me", "user": dict(user)}],
        "contexts": [
            {
                "name": "here",
                "context": {"cluster": "there", "user": "me", **({"namespace": namespace} if namespace else {})},
            }
        ],
    }
