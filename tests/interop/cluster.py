"""Real API servers on loopback: etcd, kube-apiserver with RBAC and an audit log, and the credentials to reach them."""

from __future__ import annotations

import base64
import http.client
import json
import secrets
import ssl
import subprocess
import time
from typing import TYPE_CHECKING, Any, TypeVar

import trustme
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from ports import reserved_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

T = TypeVar("T")
Json = dict[str, Any]
ISSUER = "https://issuer.test"
FLEET = "fleet"  # members may list namespaces on every server
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}


def until(what: str, probe: Callable[[], T | None], seconds: float = 30.0) -> T:
    """Return the first true result of `probe`, or fail after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := probe():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds:.0f} s: {what}")


def b64(data: str | bytes) -> str:
    """Encode as Secrets and kubeconfigs do."""
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


class Process:
    """A server in the background, its output in a file; `stop` ends this one process by its id."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self.child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def check(self) -> None:
        """Fail with the end of its log if it has ended."""
        if self.child.poll() is not None:
            tail = self.log.read_text(errors="replace")[-3000:]
            raise AssertionError(f"{self.child.args!r} ended with {self.child.returncode}:\n{tail}")

    def stop(self) -> None:
        self.child.terminate()
        try:
            self.child.wait(15)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def start_etcd(program: str, folder: Path) -> tuple[Process, str]:
    """Start etcd; return its process and URL."""
    url, peer = f"http://127.0.0.1:{reserved_port()}", f"http://127.0.0.1:{reserved_port()}"
    command = [program, "--data-dir", str(folder / "data"), "--unsafe-no-fsync"]
    command += ["--listen-client-urls", url, "--advertise-client-urls", url]
    command += [
        "--listen-peer-urls",
        peer,
        "--initial-advertise-peer-urls",
        peer,
        "--initial-cluster",
        f"default={peer}",
    ]
    return Process(command, folder / "etcd.log"), url


class ApiServer:
    """One kube-apiserver: its URL and CA, an administrator's requests, credentials that it accepts, its audit log."""

    def __init__(self, program: str, etcd: str, folder: Path) -> None:
        self.folder = folder
        self.port = reserved_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.authority = trustme.CA()
        self.ca = self.authority.cert_pem.bytes().decode()
        self.account_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.admin = secrets.token_urlsafe(24)
        self.member = secrets.token_urlsafe(24)  # token of the user `member` in the group FLEET
        self._trust = ssl.create_default_context(cadata=self.ca)
        self.process = Process([program, *self._flags(etcd)], folder / "apiserver.log")

    def _flags(self, etcd: str) -> list[str]:
        served = self.authority.issue_cert("127.0.0.1", "localhost")
        key = self.account_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        files = {
            "tls-cert-file": served.cert_chain_pems[0].bytes(),
            "tls-private-key-file": served.private_key_pem.bytes(),
            "client-ca-file": self.ca.encode(),
            "service-account-signing-key-file": key,
            "service-account-key-file": key,
            "token-auth-file": f'{self.admin},admin,1,"system:masters"\n{self.member},member,2,"{FLEET}"\n'.encode(),
            "audit-policy-file": json.dumps(AUDIT_POLICY).encode(),
        }
        flags = [
            f"--etcd-servers={etcd}",
            f"--etcd-prefix=/{self.folder.name}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--authorization-mode=RBAC",
            f"--service-account-issuer={ISSUER}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            f"--audit-log-path={self.folder}/audit.log",
            f"--cert-dir={self.folder}",
        ]
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
            flags.append(f"--{name}={self.folder}/{name}")
        return flags

    def ready(self) -> None:
        """Wait until it serves."""

        def probe() -> bool:
            self.process.check()
            try:
                return self.status("GET", "/readyz") == 200
            except OSError:
                return False

        until("the API server is ready", probe, 90)

    def stop(self) -> None:
        self.process.stop()

    # --- requests ---

    def call(
        self, method: str, path: str, body: Json | str | None = None, token: str = "", form: str = "application/json"
    ) -> tuple[int, Json]:
        """Send one request, as the administrator unless a token is given; return status and answer."""
        headers = {"Authorization": f"Bearer {token or self.admin}", "Content-Type": form}
        data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self._trust)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        parsed = json.loads(content) if content.startswith(b"{") else {"text": content.decode(errors="replace")}
        return response.status, parsed

    def status(self, method: str, path: str, token: str = "") -> int:
        return self.call(method, path, None, token)[0]

    def post(self, path: str, body: Json) -> Json:
        """Create an object; anything but success fails the test."""
        status, answer = self.call("POST", path, body)
        assert status in (200, 201), f"POST {path}: {status} {answer.get('message')}"
        return answer

    def patch(self, path: str, body: Json | str, form: str = "application/merge-patch+json") -> Json:
        status, answer = self.call("PATCH", path, body, form=form)
        assert status in (200, 201), f"PATCH {path}: {status} {answer.get('message')}"
        return answer

    def put_secret(self, namespace: str, name: str, data: Mapping[str, str], kind: str = "Opaque") -> None:
        """Create a Secret or replace it, as whoever rotates it would."""
        path = f"/api/v1/namespaces/{namespace}/secrets"
        body = {
            "metadata": {"name": name},
            "type": kind,
            "data": {key: b64(value) for key, value in data.items()},
        }
        if self.call("PUT", f"{path}/{name}", body)[0] == 404:
            self.post(path, body)

    # --- RBAC ---

    def welcome(self) -> None:
        """Let the group FLEET and all service accounts list namespaces: what a spoke grants."""
        rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}
        group = "rbac.authorization.k8s.io"
        self.post(f"/apis/{group}/v1/clusterroles", {"metadata": {"name": FLEET}, "rules": [rule]})
        binding = {
            "metadata": {"name": FLEET},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": FLEET},
            "subjects": [
                {"kind": "Group", "apiGroup": group, "name": name} for name in (FLEET, "system:serviceaccounts")
            ],
        }
        self.post(f"/apis/{group}/v1/clusterrolebindings", binding)

    def allow_get(self, namespace: str, account: str, secrets_: tuple[str, ...]) -> None:
        """Let an account get these Secrets and nothing else; return when the authorizer knows it."""
        group = "rbac.authorization.k8s.io"
        path = f"/apis/{group}/v1/namespaces/{namespace}"
        rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": list(secrets_)}
        self.post(f"{path}/roles", {"metadata": {"name": account}, "rules": [rule]})
        binding = {
            "metadata": {"name": account},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
        }
        self.post(f"{path}/rolebindings", binding)
        wanted = {"verb": "get", "resource": "secrets", "namespace": namespace, "name": secrets_[0]}
        review = {"spec": {"user": f"system:serviceaccount:{namespace}:{account}", "resourceAttributes": wanted}}

        def allowed() -> bool:
            return bool(self.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"])

        until("the Role is in force", allowed)

    # --- credentials ---

    def certificate(self, user: str, group: str = FLEET, ends: datetime | None = None) -> tuple[str, str]:
        """Return a client certificate and its key, in PEM, for a user of one group."""
        # A subject alternative name, as trustme would else write an empty critical one, which Go refuses.
        issued = self.authority.issue_cert(f"{user}.test", common_name=user, organization_name=group, not_after=ends)
        return issued.cert_chain_pems[0].bytes().decode(), issued.private_key_pem.bytes().decode()

    def account(self, namespace: str, name: str) -> Json:
        """Create a service account."""
        return self.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})

    def account_token(self, namespace: str, name: str, seconds: int = 3600) -> tuple[str, str]:
        """Ask for a token of a service account, as kubelets do; return it and when it ends (RFC 3339)."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        status = self.post(path, {"spec": {"expirationSeconds": seconds}})["status"]
        return status["token"], status["expirationTimestamp"]

    def sign(self, claims: Json) -> str:
        """Sign claims with the key of the service accounts: a token that ends sooner than TokenRequest allows."""
        parts = [{"alg": "RS256", "typ": "JWT"}, claims]
        signed = b".".join([base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts])
        signature = self.account_key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        return (signed + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()

    def short_token(self, namespace: str, name: str, uid: str, seconds: float) -> str:
        """Return a service account token that ends in `seconds`, which TokenRequest refuses below ten minutes."""
        now = int(time.time())
        account = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}}
        return self.sign(
            {
                "iss": ISSUER,
                "aud": [ISSUER],
                "sub": f"system:serviceaccount:{namespace}:{name}",
                "iat": now,
                "nbf": now,
                "exp": now + seconds,
                "kubernetes.io": account,
            }
        )

    def legacy_token(self, namespace: str, account: Json, secret: str) -> str:
        """Make a Secret of type service-account-token for an account, as the token controller fills it."""
        name, uid = account["metadata"]["name"], account["metadata"]["uid"]
        prefix = "kubernetes.io/serviceaccount"
        token = self.sign(
            {
                "iss": "kubernetes/serviceaccount",
                "sub": f"system:serviceaccount:{namespace}:{name}",
                f"{prefix}/namespace": namespace,
                f"{prefix}/secret.name": secret,
                f"{prefix}/service-account.name": name,
                f"{prefix}/service-account.uid": uid,
            }
        )
        data = {"token": token, "ca.crt": self.ca, "namespace": namespace}
        notes = {"kubernetes.io/service-account.name": name, "kubernetes.io/service-account.uid": uid}
        self.post(
            f"/api/v1/namespaces/{namespace}/secrets",
            {
                "metadata": {"name": secret, "annotations": notes},
                "type": "kubernetes.io/service-account-token",
                "data": {key: b64(value) for key, value in data.items()},
            },
        )
        return token

    # --- what the audit log says ---

    def audited(self, user: str) -> list[str]:
        """Return all requests of a user so far, `verb path status`; one still unanswered has no status.

        The log is written before the request is worked on, and again before the client has the whole answer.
        """
        requests: dict[str, str] = {}
        whole, _, _ = (self.folder / "audit.log").read_text().rpartition("\n")  # more is being written
        for line in whole.splitlines():
            event = json.loads(line)
            if event["user"].get("username") == user:
                code = event.get("responseStatus", {}).get("code", "")
                requests[event["auditID"]] = f"{event['verb']} {event['requestURI']} {code}".strip()
        return list(requests.values())


def kubeconfig(server: str, ca: str, user: Json, namespace: str = "", **cluster: Any) -> Json:
    """Return a kubeconfig of one context."""
    context = {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}
    fields = {"server": server, "certificate-authority-data": b64(ca), **cluster}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": fields}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": context}],
    }
