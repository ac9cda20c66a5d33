"""Turns what a vector describes into the real thing; `vectors/README.md` lists the makers."""

from __future__ import annotations

import base64
import datetime
import json
import time
from typing import TYPE_CHECKING, Any

from .fakes.azure import federated
from .fakes.kube_server import kubeconfig

if TYPE_CHECKING:
    from .fakes import Authority

HUB_TOKEN = "token-of-the-reader-itself"
Json = dict[str, Any]


class Maker:
    """Builds values that JSON cannot hold or that change from run to run; remembers each secret that it made."""

    def __init__(self, authority: Authority, words: Json) -> None:
        self.authority = authority
        self.words = {"ca": authority.pem, **words}  # what {dir}, {hub} … stand for
        self.secrets = {HUB_TOKEN}
        self.certificates: dict[str, str] = {}
        self.now = time.time()

    def build(self, value: Any) -> Any:
        """Return `value` with words replaced and every {"$maker": argument} made."""
        if isinstance(value, str):
            for word, text in self.words.items():
                value = value.replace(f"{{{word}}}", str(text))
            return value
        if isinstance(value, list):
            built = [self.build(each) for each in value]
            return [each for item in built for each in (item if isinstance(item, Times) else [item])]
        if not isinstance(value, dict):
            return value
        [maker, argument] = next(iter(value.items())) if len(value) == 1 else ("", None)
        if not maker.startswith("$"):
            return {key: self.build(each) for key, each in value.items()}
        make = getattr(self, f"_{maker[1:]}", None)
        if make is None:
            raise ValueError(f"no maker {maker!r}")
        made = make(self.build(argument))
        if maker in ("$jwt", "$eks", "$key", "$secret", "$federated"):
            self.secrets.add(made)
        return made

    def text(self, value: Any) -> str:
        """Return a built value as the content of a file or variable."""
        made = self.build(value)
        return made if isinstance(made, str) else json.dumps(made)

    def data(self, value: Any) -> bytes:
        """Return a built value as the content of a Secret's key, which from now on is a secret."""
        if isinstance(value, str) and len(value.strip()) > 7:
            self.secrets.add(value.strip())
        return self.content(value)

    def content(self, value: Any) -> bytes:
        """Return a built value as bytes."""
        made = self.build(value)
        return made if isinstance(made, bytes) else self.text(made).encode("utf-8", "surrogatepass")

    # --- makers ---

    def _hub(self, wanted: Json) -> Json:
        """Make a kubeconfig for the hub: user, namespace, server, ca, and fields of the cluster."""
        address, authority = wanted.get("server", self.words.get("hub", "")), wanted.get("ca", self.authority.pem)
        user, namespace = wanted.get("user", {"token": HUB_TOKEN}), wanted.get("namespace", "fleet")
        return kubeconfig(address, authority, user, namespace, **wanted.get("cluster", {}))

    def _bytes(self, encoded: str) -> bytes:
        return base64.b64decode(encoded)

    def _base64(self, value: Any) -> str:
        data = value if isinstance(value, bytes) else self.text(value).encode()
        return base64.b64encode(data).decode()

    def _text(self, value: Any) -> str:
        return self.text(value)

    def _secret(self, text: str) -> str:
        return text

    def _join(self, parts: list[str]) -> str:
        return "".join(parts)

    def _repeat(self, arguments: list[Any]) -> str:
        text, times = arguments
        return str(text) * int(times)

    def _nested(self, arguments: list[Any]) -> str:
        opening, closing, depth = arguments
        return str(opening) * int(depth) + str(closing) * int(depth)

    def _times(self, arguments: list[Any]) -> Times:
        return Times(arguments[1:] * int(arguments[0]))

    def _jwt(self, claims: Json) -> str:
        """Make an unsigned JWT; its times are seconds from now."""
        moved = {
            name: int(self.now) + value if name in ("exp", "iat", "nbf") and isinstance(value, int) else value
            for name, value in claims.items()
        }
        parts = [json.dumps(part).encode() for part in ({"alg": "RS256", "typ": "JWT"}, moved)] + [b"a signature"]
        return ".".join([base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts])

    def _eks(self, seconds: float) -> str:
        """Make a token as the AWS tools print it, signed `seconds` from now."""
        signed = datetime.datetime.fromtimestamp(self.now + seconds, datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        url = f"https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Date={signed}&X-Amz-Expires=60"
        return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")

    def _federated(self, seconds: float) -> str:
        """Make the token of a service account, as Entra ID takes it."""
        return federated(seconds)

    def _certificate(self, wanted: Json) -> str:
        """Make a client certificate: user, groups, key, starts, ends (seconds from now), chain."""
        wanted = {"user": "alice", "groups": [], **wanted}
        name = json.dumps(wanted)
        if name not in self.certificates:  # one vector names it twice: as what is stored, and as what is expected
            user, groups = wanted.pop("user"), wanted.pop("groups")
            self.certificates[name] = self.authority.client(user, *groups, **wanted).certificate
        return self.certificates[name]

    def _key(self, kind: str) -> str:
        return self.authority.client("whoever", key=kind).key

    def _utc(self, seconds: float) -> str:
        return datetime.datetime.fromtimestamp(self.now + seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Times(list[Any]):
    """Items that go into the list around them."""
