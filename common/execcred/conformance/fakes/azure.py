"""Stand-ins for Azure on loopback: Microsoft Entra ID over TLS, and the metadata endpoints of machines."""

from __future__ import annotations

import base64
import json
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import jwt

from .listener import Head, Listener, read_body, read_head
from .pki import Authority, private_key

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

TENANT = "11111111-2222-3333-4444-555555555555"
CLIENT = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
SECRET = "s3cr3t~value"
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
AUDIENCE = "api://AzureADTokenExchange"
SUBJECT = "system:serviceaccount:argocd:controller"
ISSUER = "https://oidc.example.test/cluster"


def encoded(part: object) -> str:
    """Return a part of a JWT."""
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def token(**claims: object) -> str:
    """Return a JWT that nobody could verify, with `claims`."""
    return f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{encoded(claims)}.{'c2ln'}"


def federated(seconds: float = 3600, audience: str = AUDIENCE, starts: float = -60) -> str:
    """Return a service account token that ends in `seconds`."""
    now = int(time.time())
    claims = {"iss": ISSUER, "sub": SUBJECT, "aud": [audience], "exp": now + seconds, "nbf": now + starts}
    return jwt.encode(claims, private_key("rsa"), "RS256")


class Asked(NamedTuple):
    """One request that a stand-in got: `form` holds query and body."""

    method: str
    path: str
    headers: dict[str, str]
    form: dict[str, str]


NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Answer(NamedTuple):
    """What a stand-in answers; `hang` waits first, for ever if negative."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = NO_HEADERS
    hang: float = 0


class Server(Listener):
    """Answers each request by `answer`, unless `script` still holds a canned one."""

    def __init__(self, authority: Authority | None, hostname: str = "localhost") -> None:
        super().__init__(authority.server_context() if authority else None, hostname=hostname)
        self.scheme = "https" if authority else "http"
        self.asked: list[Asked] = []
        self.issued: set[str] = set()
        self.script: list[Answer] = []
        self.lifetime = 3599
        self.delay = 0.0

    def handle(self, connection: socket.socket, number: int) -> None:  # noqa: ARG002
        while head := read_head(connection):
            asked = self._asked(head, read_body(connection, head))
            self.asked.append(asked)
            answer = self.script.pop(0) if self.script else self.answer(asked)
            self.closing.wait(60 if answer.hang < 0 else answer.hang + self.delay)
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answer.headers}
            lines = [f"HTTP/1.1 {answer.status} Whatever", *[f"{name}: {text}" for name, text in headers.items()]]
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def _asked(self, head: Head, body: bytes) -> Asked:
        url = urlsplit(head.target)
        return Asked(head.method, url.path, head.headers, dict(parse_qsl(f"{url.query}&{body.decode()}")))

    def answer(self, asked: Asked) -> Answer:
        raise NotImplementedError

    def issue(self, audience: str, **claims: object) -> dict[str, Any]:
        """Return a token answer."""
        end = int(time.time()) + self.lifetime
        access = token(aud=audience, exp=end, appid=CLIENT, tid=TENANT, **claims)
        self.issued.add(access)
        return {"token_type": "Bearer", "expires_in": self.lifetime, "access_token": access}


def refusal(code: int, error: str = "invalid_client", status: int = 401, **headers: str) -> Answer:
    """Return a refusal as Entra ID words it, with a text that must never be shown."""
    text = f"AADSTS{code}: LEAKED text of the service. Trace ID: 0 Correlation ID: 1"
    body = {"error": error, "error_description": text, "error_codes": [code]}
    return Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


class Entra(Server):
    """Microsoft Entra ID: OpenID metadata, token, device code and sign-in page of one tenant."""

    def __init__(self, authority: Authority) -> None:
        super().__init__(authority)
        self.certificate_key: Any = None  # the public key that a client certificate's assertion must verify with
        self.assertion_header: dict[str, Any] = {}
        self.pending = 1  # polls of a device code before the person has signed in
        self.oidc_token = ""
        self.claims: dict[str, object] = {}
        self.nonce = ""  # of the sign-in page that a browser opened

    @property
    def tokens(self) -> list[Asked]:
        """The requests for a token."""
        return [asked for asked in self.asked if asked.path.endswith("/token")]

    def answer(self, asked: Asked) -> Answer:
        base = f"/{TENANT}/oauth2/v2.0"
        if asked.path == "/oidc":
            right = asked.headers.get("authorization") == "Bearer system-access-token"
            return Answer(200, {"oidcToken": self.oidc_token}) if right else Answer(302, b"")
        return (
            self._tenant(asked, base)
            if asked.path.startswith(f"/{TENANT}/")
            else refusal(90002, "invalid_request", 400)
        )

    def _tenant(self, asked: Asked, base: str) -> Answer:
        if asked.path == f"/{TENANT}/v2.0/.well-known/openid-configuration":
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token"}
            names["device_authorization_endpoint"] = "devicecode"
            urls = {name: f"{self.url}{base}/{last}" for name, last in names.items()}
            return Answer(200, {"issuer": f"{self.url}/{TENANT}/v2.0", **urls})
        if asked.path == f"{base}/devicecode":
            told = {"device_code": "device-secret", "user_code": "ABC-DEF", "expires_in": 900, "interval": 1}
            return Answer(200, {**told, "verification_uri": "https://device.example.test", "message": "LEAKED"})
        if asked.path == f"{base}/authorize":
            self.nonce = asked.form["nonce"]
            return Answer(200, {})
        if asked.path == f"{base}/token" and asked.method == "POST":
            return self.grant(asked.form)
        return Answer(404, {"error": "not_found"})

    def grant(self, form: dict[str, str]) -> Answer:
        kinds = {
            "client_credentials": self._client,
            "urn:ietf:params:oauth:grant-type:device_code": self._device,
            "device_code": self._device,
            "authorization_code": self._code,
        }
        if form.get("client_id") != CLIENT:
            return refusal(700016, "unauthorized_client", 400)
        return kinds[form["grant_type"]](form)

    def _granted(self, form: dict[str, str], person: bool = False) -> Answer:
        scope = next(each for each in form["scope"].split() if each.endswith("/.default"))
        issued = self.issue(scope.removesuffix("/.default"), **self.claims)
        if person:
            now = int(time.time())
            claims = {"iss": f"{self.url}/{TENANT}/v2.0", "aud": CLIENT, "sub": "sub", "oid": "oid", "tid": TENANT}
            issued["id_token"] = token(
                **claims, preferred_username="a@b.test", exp=now + 3600, iat=now, nonce=self.nonce
            )
            issued["client_info"] = encoded({"uid": "oid", "utid": TENANT})
        return Answer(200, issued)

    def _client(self, form: dict[str, str]) -> Answer:
        if "client_secret" in form:
            return self._granted(form) if form["client_secret"] == SECRET else refusal(7000215)
        assertion = form["client_assertion"]
        self.assertion_header = jwt.get_unverified_header(assertion)
        if self.certificate_key:
            try:
                url = f"{self.url}/{TENANT}/oauth2/v2.0/token"
                jwt.decode(assertion, self.certificate_key, ["RS256", "PS256"], audience=url, issuer=CLIENT)
            except jwt.InvalidTokenError:
                return refusal(700027)
            return self._granted(form)
        try:
            key = private_key("rsa").public_key()
            jwt.decode(assertion, key, ["RS256"], audience=AUDIENCE, issuer=ISSUER)
        except jwt.InvalidAudienceError:
            return refusal(700212, "invalid_request", 400)
        except jwt.InvalidTokenError:
            return refusal(700024)
        return self._granted(form)

    def _device(self, form: dict[str, str]) -> Answer:
        self.pending -= 1
        if self.pending >= 0:
            return refusal(70016, "authorization_pending", 400)
        return self._granted({**form, "scope": f"{form.get('scope', '')} {AKS}/.default"}, person=True)

    def _code(self, form: dict[str, str]) -> Answer:
        good = form["code"] == "authorization-code" and form.get("code_verifier")
        return self._granted(form, person=True) if good else refusal(70008, "invalid_grant", 400)


class Metadata(Server):
    """The plain HTTP endpoints for managed identities: IMDS, Arc (with `key`, kept in `key_file`), App Service."""

    def __init__(self) -> None:
        super().__init__(None, "127.0.0.1")
        self.header = "identity-header"
        self.key = ""
        self.key_file = ""

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/msi/token":
            if asked.headers.get("x-identity-header") != self.header:
                return Answer(401, {"error": "LEAKED"})
        elif asked.path != "/metadata/identity/oauth2/token" or asked.headers.get("metadata") != "true":
            return Answer(400, {"error": "invalid_request", "error_description": "Required metadata header"})
        elif self.key and asked.headers.get("authorization") != f"Basic {self.key}":
            return Answer(401, {}, {"WWW-Authenticate": f"Basic realm={self.key_file}"})
        if "unknown" in asked.form.values():
            return Answer(400, {"error": "invalid_request", "error_description": "LEAKED Identity not found"})
        issued = self.issue(asked.form["resource"])
        end = int(time.time()) + self.lifetime
        return Answer(200, {**issued, "expires_on": str(end), "expires_in": str(self.lifetime), **asked.form})
