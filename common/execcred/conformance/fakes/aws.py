"""A local AWS: STS, EC2 metadata, container credentials, SSO portal and OIDC on one loopback server.

It speaks the wire protocols, hands out keys whose secrets it knows, and checks presigned requests as STS does.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable


ROLE = "arn:aws:iam::111122223333:role/"
STATIC = {"AWS_ACCESS_KEY_ID": "AKIASTATIC", "AWS_SECRET_ACCESS_KEY": "secret-of-AKIASTATIC"}


class Asked(NamedTuple):
    """One request that the cloud has seen; `caller` is the access key that signed it, if any."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    caller: str

    @property
    def action(self) -> str:
        return self.query.get("Action") or f"{self.method} {self.path}"


class Cloud:
    """The server; its fields say what it answers."""

    def __init__(self, context: ssl.SSLContext | None = None, ca: str = "") -> None:
        self.ca = ca
        self.asked: list[Asked] = []
        self.lifetime = 3600.0
        self.clock_offset = 0.0
        self.refusals: dict[str, tuple[int, str]] = {}
        self.raw: dict[str, tuple[int, str]] = {}
        self.hanging: set[str] = set()
        self.released = threading.Event()
        self.pod_token = "pod-token-1"
        self.sso_token = "sso-token-1"
        server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"cloud": self}))
        scheme = "https" if context else "http"
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.server = server
        self.port = server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def actions(self) -> list[str]:
        return [each.action for each in self.asked]

    def session(self, name: str) -> dict[str, str]:
        """Keys of a new session, in STS's names."""
        access = f"ASIA{name}"
        end = datetime.fromtimestamp(time.time() + self.lifetime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "AccessKeyId": access,
            "SecretAccessKey": f"secret-of-{access}",
            "SessionToken": f"session/of+{access}==",
            "Expiration": end,
        }

    def answer(self, asked: Asked) -> tuple[int, str]:
        action = asked.action
        if action in self.raw:
            return self.raw[action]
        if action in self.refusals:
            status, code = self.refusals[action]
            return status, _xml_error(code) if asked.method == "POST" else _json_error(code)
        handlers: dict[str, Callable[[Asked], tuple[int, str]]] = {
            "AssumeRole": self._assume_role,
            "AssumeRoleWithWebIdentity": self._assume_role,
            "GetCallerIdentity": self._identity,
            "PUT /latest/api/token": lambda _: (200, "imds-token"),
            "GET /latest/meta-data/iam/security-credentials/": self._imds,
            "GET /latest/meta-data/iam/security-credentials/node": self._imds,
            "GET /v1/credentials": self._container,
            "GET /federation/credentials": self._sso,
            "POST /token": self._oidc,
        }
        return handlers[action](asked) if action in handlers else (404, "not found")

    def _assume_role(self, asked: Asked) -> tuple[int, str]:
        name = asked.query["RoleArn"].rpartition("/")[2]
        fields = "".join([f"<{key}>{value}</{key}>" for key, value in self.session(name).items()])
        arn = f"arn:aws:sts::111122223333:assumed-role/{name}/{asked.query['RoleSessionName']}"
        user = f"<AssumedRoleUser><Arn>{arn}</Arn><AssumedRoleId>A:x</AssumedRoleId></AssumedRoleUser>"
        body = f"<{asked.action}Result><Credentials>{fields}</Credentials>{user}</{asked.action}Result>"
        return 200, f'<R xmlns="https://sts.amazonaws.com/doc/2011-06-15/">{body}</R>'.replace(
            "R>", "Response>"
        ).replace("<R ", "<Response ")

    def _identity(self, asked: Asked) -> tuple[int, str]:
        problem = presign_problem(asked)
        if problem:
            return 403, problem
        who = {"Account": "111122223333", "UserId": "AIDA", "Arn": f"arn:aws:iam::111122223333:user/{asked.caller}"}
        return 200, json.dumps({"GetCallerIdentityResponse": {"GetCallerIdentityResult": who}})

    def _imds(self, asked: Asked) -> tuple[int, str]:
        if asked.headers.get("x-aws-ec2-metadata-token") != "imds-token":
            return 401, ""
        if asked.path.endswith("/"):
            return 200, "node"
        keys = self.session("node")
        return 200, json.dumps({"Code": "Success", "Token": keys.pop("SessionToken"), **keys})

    def _container(self, asked: Asked) -> tuple[int, str]:
        if asked.headers.get("authorization") != self.pod_token:
            return 401, SECRET_TEXT
        keys = self.session("pod")
        return 200, json.dumps({"Token": keys.pop("SessionToken"), **keys})

    def _sso(self, asked: Asked) -> tuple[int, str]:
        if asked.headers.get("x-amz-sso_bearer_token") != self.sso_token:
            return 401, json.dumps({"__type": "UnauthorizedException", "message": SECRET_TEXT})
        keys = self.session(asked.query["role_name"])
        end = int((time.time() + self.lifetime) * 1000)
        body = {"accessKeyId": keys["AccessKeyId"], "secretAccessKey": keys["SecretAccessKey"]}
        return 200, json.dumps({"roleCredentials": {**body, "sessionToken": keys["SessionToken"], "expiration": end}})

    def _oidc(self, _: Asked) -> tuple[int, str]:
        return 200, json.dumps({"accessToken": self.sso_token, "expiresIn": 3600, "tokenType": "Bearer"})


SECRET_TEXT = "wJalrXUtnFEMI-must-not-be-shown"


def _xml_error(code: str) -> str:
    return (
        '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>{SECRET_TEXT}</Message></Error><RequestId>1</RequestId></ErrorResponse>"
    )


def _json_error(code: str) -> str:
    return json.dumps({"__type": code, "message": SECRET_TEXT})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's would ask DNS for a name, too


class _Handler(BaseHTTPRequestHandler):
    cloud: Cloud
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        form = body if "x-www-form-urlencoded" in (self.headers.get("content-type") or "") else ""
        query = {name: values[0] for name, values in parse_qs(url.query + "&" + form).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        signed = headers.get("authorization", "").partition("Credential=")[2] or query.get("X-Amz-Credential", "")
        asked = Asked(self.command, url.path, query, headers, signed.partition("/")[0])
        self.cloud.asked.append(asked)
        if asked.action in self.cloud.hanging:
            self.cloud.released.wait(60)
            return
        status, text = self.cloud.answer(asked)
        self.send_response(status)
        self.send_header("content-length", str(len(text.encode())))
        self.send_header("content-type", "application/json" if text.startswith("{") else "text/xml")
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_PUT = _handle  # noqa: N815  # http.server's names

    def date_time_string(self, _: float | None = None) -> str:
        return formatdate(time.time() + self.cloud.clock_offset, usegmt=True)

    def log_message(self, *_: Any) -> None:
        pass


def presign_problem(asked: Asked) -> str:
    """Return why STS would refuse a presigned request, "" when it would not; own reading of Signature Version 4."""
    query = dict(asked.query)
    signature = query.pop("X-Amz-Signature", "")
    signed = query.get("X-Amz-SignedHeaders", "").split(";")
    access, day, region, service, end = query.get("X-Amz-Credential", "////").split("/")
    canonical = "&".join([f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in sorted(query.items())])
    lines = "".join([f"{name}:{' '.join(asked.headers.get(name, '').split())}\n" for name in signed])
    request = "\n".join([asked.method, asked.path, canonical, lines, ";".join(signed), hashlib.sha256().hexdigest()])
    scope = f"{day}/{region}/{service}/{end}"
    text = f"AWS4-HMAC-SHA256\n{query['X-Amz-Date']}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4secret-of-{access}".encode()
    for part in (day, region, service, end, text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    if key.hex() != signature:
        return "SignatureDoesNotMatch"
    if access.startswith("ASIA") and query.get("X-Amz-Security-Token") != f"session/of+{access}==":
        return "InvalidClientTokenId"
    made = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return "" if abs(time.time() - made.timestamp()) < 900 else "ExpiredToken"


def presigned_problem(token: str, cluster: str) -> str:
    """Return why STS and the cluster's authenticator would refuse a token, "" if they would not."""
    try:
        found = Token(token, cluster)
    except (AssertionError, ValueError, KeyError):
        return "the token is no presigned request to STS"
    return found.problem and f"STS refuses the token: {found.problem}"


class Token:
    """A token taken apart, as the cluster's authenticator does it."""

    def __init__(self, text: str, cluster: str = "demo") -> None:
        prefix, _, encoded = text.partition(".")
        assert prefix == "k8s-aws-v1"
        assert "=" not in encoded
        self.url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        parts = urlsplit(self.url)
        self.scheme, self.host, self.path = parts.scheme, parts.hostname or "", parts.path
        self.query = dict(parse_qsl(parts.query, strict_parsing=True))
        self.access, _, self.region, _, _ = self.query["X-Amz-Credential"].split("/")
        headers = {"host": self.host, "x-k8s-aws-id": cluster}
        self.problem = presign_problem(Asked("GET", self.path, self.query, headers, self.access))
