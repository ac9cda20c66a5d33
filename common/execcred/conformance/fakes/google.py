"""A local Google: OAuth token endpoint, STS, IAM Credentials and a metadata server.

It checks what it is asked as Google does: signatures, audiences, scopes, who may act as whom, the form of delegates.
"""

from __future__ import annotations

import base64
import json
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from .listener import Head, Listener, read_body, read_head
from .pki import private_key

if TYPE_CHECKING:
    import socket
    import ssl


Json = dict[str, Any]
PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
EMAIL = "https://www.googleapis.com/auth/userinfo.email"
IAM = "https://www.googleapis.com/auth/iam"
SCOPES = {PLATFORM, EMAIL}
TOKEN_URI = "https://oauth2.googleapis.com/token"
STS_URI = "https://sts.googleapis.com/v1/token"
AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/provider"
OTHER_UNIVERSE = "universe.test"
HOSTS = (
    "oauth2.googleapis.com",
    "sts.googleapis.com",
    "iamcredentials.googleapis.com",
    f"iamcredentials.{OTHER_UNIVERSE}",
)
ROBOT, TARGET, MIDDLE, LAST = [f"{name}@project.iam.gserviceaccount.com" for name in ("robot", "target", "mid", "last")]
SECRETS = ("refresh-token-1", "client-secret-1", "subject-token-1", "PRIVATE KEY", "ya29.")


class Asked(NamedTuple):
    """One request that Google has seen; `what` is token, sts or iam."""

    what: str
    host: str
    path: str
    headers: dict[str, str]
    fields: Json


class Answer(NamedTuple):
    """What a server answers."""

    status: int
    body: Json | str
    headers: tuple[str, ...] = ()


def oauth_error(word: str, description: str = "why, with ya29.a-secret in it", status: int = 400) -> Answer:
    """Return a refusal of the token endpoint or STS."""
    return Answer(status, {"error": word, "error_description": description})


def api_error(status: int, word: str, *reasons: str) -> Answer:
    """Return a refusal of a Google API."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason} for reason in reasons]
    error = {"code": status, "message": "why, with ya29.a-secret in it", "status": word, "details": details}
    return Answer(status, {"error": error})


class Http(Listener):
    """A server of JSON answers that keeps connections open."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__(context)
        self.scheme = "https" if context else "http"
        self.clock = 0.0  # how far its clock is ahead, in seconds

    def handle(self, connection: socket.socket, number: int) -> None:  # noqa: ARG002  # the base class's
        while head := read_head(connection):
            answer = self.answer(head, read_body(connection, head))
            if answer is None:
                self.closing.wait(60)
                return
            form = "text/plain" if isinstance(answer.body, str) else "application/json"
            body = (answer.body if isinstance(answer.body, str) else json.dumps(answer.body)).encode()
            lines = [f"HTTP/1.1 {answer.status} Said", f"Content-Type: {form}", f"Content-Length: {len(body)}"]
            lines += [f"Date: {formatdate(self.now(), usegmt=True)}", *answer.headers, "", ""]
            connection.sendall("\r\n".join(lines).encode() + body)

    def now(self) -> float:
        return time.time() + self.clock

    def answer(self, head: Head, body: bytes) -> Answer | None:
        """Answer one request; None hangs."""
        raise NotImplementedError


class Google(Http):
    """Token endpoint, STS and IAM Credentials, for every host of HOSTS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context)
        self.asked: list[Asked] = []
        self.says: dict[str, list[Answer]] = {}  # what it says first, instead of what is right
        self.hangs: set[str] = set()
        self.lifetime = 3599
        self.issued: dict[str, tuple[str, set[str]]] = {}  # access token: who, scopes
        self.logins = {"refresh-token-1": ("user@example.test", {*SCOPES, "openid"})}
        self.subjects = {"subject-token-1": "principal://subject-1"}
        self.creators = {ROBOT: {TARGET, MIDDLE}, MIDDLE: {LAST}, LAST: {TARGET}}  # who may act as whom
        self.key = private_key("rsa")

    def principal(self, token: str) -> str:
        return self.issued[token][0]

    def scopes(self, token: str) -> set[str]:
        return self.issued[token][1]

    def what(self) -> list[str]:
        return [asked.what for asked in self.asked]

    def may(self, who: str, account: str) -> None:
        """Grant roles/iam.serviceAccountTokenCreator on `account`."""
        self.creators.setdefault(who, set()).add(account)

    def answer(self, head: Head, body: bytes) -> Answer | None:
        host, path = head.headers["host"], urlsplit(head.target).path
        form = head.headers.get("content-type", "")
        fields = (
            json.loads(body) if "json" in form else {name: value for name, (value,) in parse_qs(body.decode()).items()}
        )
        parts = {"/token": "token", "/v1/token": "sts"}
        what = "iam" if path.endswith(":generateAccessToken") else parts.get(path, "unknown")
        self.asked.append(Asked(what, host, path, head.headers, fields))
        if what in self.hangs:
            return None
        if self.says.get(what):
            return self.says[what].pop(0)
        known: dict[str, Any] = {"token": self._token, "sts": self._sts, "iam": self._iam}
        answer = known[what](self.asked[-1])
        assert isinstance(answer, Answer)
        return answer

    def _issue(self, kind: str, who: str, scopes: set[str]) -> str:
        token = f"ya29.{kind}-{len(self.issued) + 1}"
        self.issued[token] = (who, scopes)
        return token

    def _token(self, asked: Asked) -> Answer:
        fields = asked.fields
        if fields["grant_type"] == "refresh_token":
            if fields["client_id"] != "client-1" or fields["client_secret"] != "client-secret-1":
                return oauth_error("invalid_client", status=401)
            if fields["refresh_token"] not in self.logins:
                return oauth_error("invalid_grant")
            who, consented = self.logins[fields["refresh_token"]]
            scopes = set(fields.get("scope", " ".join(consented)).split())
            if not scopes <= consented:
                return oauth_error("invalid_scope")
            token = self._issue("user", who, scopes)
        else:
            assert fields["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            claims = self._claims(fields["assertion"])
            timely = claims and abs(claims["iat"] - self.now()) < 300 and claims["exp"] > self.now()
            if not timely or claims["aud"] != TOKEN_URI:
                return oauth_error("invalid_grant", "Invalid JWT")
            token = self._issue("robot", claims["iss"], set(claims["scope"].split()))
        return Answer(200, {"access_token": token, "expires_in": self.lifetime, "token_type": "Bearer"})

    def _claims(self, assertion: str) -> Json:
        """Return the claims of a JWT that ROBOT's key signed, `{}` for another one."""
        signed, _, signature = assertion.rpartition(".")
        public = self.key.public_key()
        assert isinstance(public, rsa.RSAPublicKey)
        try:
            public.verify(unbase64(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return {}
        claims: Json = json.loads(unbase64(signed.partition(".")[2]))
        return claims

    def _sts(self, asked: Asked) -> Answer:
        fields = asked.fields
        if fields["grant_type"] == "refresh_token":
            return Answer(200, self._exchanged(self.logins[fields["refresh_token"]][0], {PLATFORM}))
        assert fields["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
        if fields["audience"] != AUDIENCE:
            return oauth_error("invalid_target")
        if fields["subject_token"] not in self.subjects:
            return oauth_error("invalid_grant")
        return Answer(200, self._exchanged(self.subjects[fields["subject_token"]], set(fields["scope"].split())))

    def _exchanged(self, who: str, scopes: set[str]) -> Json:
        token = self._issue("federated", who, scopes)
        return {"access_token": token, "expires_in": self.lifetime, "token_type": "Bearer"}

    def _iam(self, asked: Asked) -> Answer:
        target = asked.path.rpartition("/")[2].partition(":")[0]
        bearer = asked.headers["authorization"].removeprefix("Bearer ")
        if bearer not in self.issued:
            return api_error(401, "UNAUTHENTICATED")
        who, scopes = self.issued[bearer]
        if not scopes & {PLATFORM, IAM}:
            return api_error(403, "PERMISSION_DENIED", "ACCESS_TOKEN_SCOPE_INSUFFICIENT")
        delegates = asked.fields.get("delegates") or []
        if not all(each.startswith("projects/-/serviceAccounts/") for each in delegates):
            return api_error(400, "INVALID_ARGUMENT")
        for account in [*[each.rpartition("/")[2] for each in delegates], target]:
            if account not in self.creators.get(who, ()):
                return api_error(403, "PERMISSION_DENIED", "IAM_PERMISSION_DENIED")
            who = account
        seconds = int(asked.fields["lifetime"].removesuffix("s"))
        if seconds > 3600:
            return api_error(400, "INVALID_ARGUMENT")
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now() + seconds))
        token = self._issue("impersonated", target, set(asked.fields["scope"]))
        return Answer(200, {"accessToken": token, "expireTime": end})


class MetadataServer(Http):
    """A metadata server; `says` is what it answers first, `google` is who issues its tokens."""

    def __init__(self, google: Google | None = None) -> None:
        super().__init__(None)
        self.google = google
        self.asked: list[Head] = []
        self.issued: set[str] = set()
        self.says: list[Answer | None] = []
        self.expires_in: Any = 3599
        self.universe = ""
        self.flavor: tuple[str, ...] = ("Metadata-Flavor: Google",)

    def paths(self) -> list[str]:
        return [urlsplit(head.target).path.removeprefix("/computeMetadata/v1/") for head in self.asked]

    def answer(self, head: Head, body: bytes) -> Answer | None:  # noqa: ARG002  # the base class's
        self.asked.append(head)
        if self.says:
            said = self.says.pop(0)
            return said and said._replace(headers=(*said.headers, *self.flavor))
        if head.headers.get("metadata-flavor") != "Google":
            return Answer(403, "Missing Metadata-Flavor:Google header.")
        url = urlsplit(head.target)
        if url.path == "/computeMetadata/v1/universe/universe-domain":
            return Answer(200 if self.universe else 404, self.universe, self.flavor)
        if url.path != "/computeMetadata/v1/instance/service-accounts/default/token":
            return Answer(404, "Not Found", self.flavor)
        scopes = set(parse_qs(url.query)["scopes"][0].split(","))
        token = self.google._issue("attached", ROBOT, scopes) if self.google else "ya29.attached"
        self.issued.add(token)
        fields = {"access_token": token, "expires_in": self.expires_in, "token_type": "Bearer"}
        return Answer(200, fields, self.flavor)


class SubjectServer(Http):
    """Where a URL-sourced external account gets its subject token."""

    def __init__(self) -> None:
        super().__init__(None)
        self.asked: list[Head] = []

    def answer(self, head: Head, body: bytes) -> Answer | None:  # noqa: ARG002  # the base class's
        self.asked.append(head)
        if head.target == "/hang":
            return None
        if head.headers.get("metadata") != "True":
            return Answer(400, {"error": "invalid_request"})
        return Answer(200, {"access_token": "subject-token-1"})


def unbase64(text: str) -> bytes:
    """Return the bytes of unpadded base64url."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
