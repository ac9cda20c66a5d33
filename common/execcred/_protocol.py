"""The exec credential protocol: read an ExecCredential request, render the answer. Pure: no clock, no files.

Source of the rules: KEP-541 and the API types `client.authentication.k8s.io/v1` and `/v1beta1`.
"""

from __future__ import annotations

from ._errors import BadRequest, ExecCredError, TryAgain, printable
from ._json import loads, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
EXEC_EXTENSION = f"{GROUP}/exec"
STRINGS = ("server", "tls-server-name", "proxy-url", "certificate-authority-data")
CLUSTER_FIELDS = (*STRINGS, "insecure-skip-tls-verify", "config", "extensions")
SET_CLUSTER_INFO = "set provideClusterInfo: true in the exec config"


class Cluster:
    """`spec.cluster` of a request: written by the profile's author, not trusted."""

    __slots__ = ("ca_data", "config", "insecure_skip_tls_verify", "proxy_url", "server", "tls_server_name")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.server, self.tls_server_name, self.proxy_url, self.ca_data = [_string(fields, key) for key in STRINGS]
        self.insecure_skip_tls_verify = _boolean(fields, "insecure-skip-tls-verify", "spec.cluster")
        self.config = _config(fields)


class Request:
    """One question of a client: which version to answer, may a person be asked, for which cluster."""

    __slots__ = ("api_version", "cluster", "interactive")

    def __init__(self, api_version: str, interactive: bool, cluster: Cluster | None) -> None:
        self.api_version = api_version  # "" when the client named none
        self.interactive = interactive
        self.cluster = cluster

    @property
    def config(self) -> dict[str, Any]:
        """The plugin's own per-cluster configuration, `{}` when there is none."""
        return self.cluster.config if self.cluster else {}

    @property
    def server(self) -> str:
        """The cluster's server URL, "" when the client did not say."""
        return self.cluster.server if self.cluster else ""


class Credential:
    """What a plugin hands back; `expires` is the true end in epoch seconds, None when unknown."""

    __slots__ = ("certificate", "expires", "key", "token")

    def __init__(self, token: str = "", certificate: str = "", key: str = "", expires: float | None = None) -> None:
        self.token = token
        self.certificate = certificate
        self.key = key
        self.expires = expires

    def __repr__(self) -> str:
        kinds = [name for name in ("token", "certificate", "key") if getattr(self, name)]
        return f"Credential({', '.join(kinds)}, expires={self.expires})"


def parse_request(raw: str | None) -> Request:
    """Read the text of KUBERNETES_EXEC_INFO; None and empty text mean stand-alone use.

    Raises BadRequest("exec-info-invalid" | "api-version-unsupported"); the text itself is never repeated.
    """
    if raw is None or not raw.strip():
        return Request("", True, None)
    info = _object(_parse_json(raw), "KUBERNETES_EXEC_INFO")
    if info.get("kind") not in (None, "", "ExecCredential"):
        raise _invalid("kind is not ExecCredential")
    version = "" if info.get("apiVersion") is None else info["apiVersion"]
    if version not in ("", *VERSIONS):
        shown = printable(version, 60) if isinstance(version, str) else type(version).__name__
        raise BadRequest(
            "api-version-unsupported",
            f"the client asks for apiVersion {shown}; supported are {' and '.join(VERSIONS)}",
            "set apiVersion of the exec config to one of these",
        )
    spec = {} if info.get("spec") is None else _object(info["spec"], "spec")
    interactive = _boolean(spec, "interactive", "spec")
    cluster = spec.get("cluster")
    if cluster is None:
        return Request(version, interactive, None)
    return Request(version, interactive, Cluster(_hyphenated(_object(cluster, "spec.cluster"))))


def _parse_json(raw: str) -> Any:
    try:
        # A non-UTF-8 variable arrives with surrogates, which no JSON text may hold.
        return loads(raw.encode().decode("utf-8-sig"))
    except UnicodeError:
        raise _invalid("it is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        where = getattr(error, "pos", None)
        what = (
            ": nested too deep, or a number out of range" if where is None else f" at character {where} of {len(raw)}"
        )
        raise _invalid(f"not valid JSON{what}") from None


def _invalid(what: str) -> BadRequest:
    return BadRequest(
        "exec-info-invalid",
        f"bad KUBERNETES_EXEC_INFO: {what}",
        f"send an ExecCredential object of {' or '.join(VERSIONS)}, or unset the variable",
    )


def json_type(value: object) -> str:
    """Return JSON's word for the type of a parsed `value`."""
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return names.get(type(value), "null")


def _object(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _invalid(f"{where} must be an object, is {json_type(value)}")


def _hyphenated(fields: dict[str, Any]) -> dict[str, Any]:
    """Bring other spellings of keys to the hyphenated one; a hyphenated key that is there wins."""
    known = {name.replace("-", ""): name for name in CLUSTER_FIELDS}
    return {**{known.get(key.replace("-", "").lower(), key): value for key, value in fields.items()}, **fields}


def _boolean(fields: dict[str, Any], key: str, where: str) -> bool:
    value = fields.get(key)
    if value is None or isinstance(value, bool):
        return value is True
    raise _invalid(f"{where}.{key} must be true or false, is {json_type(value)}")


def _string(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    raise _invalid(f"spec.cluster.{key} must be a string, is {json_type(value)}")


def _config(fields: dict[str, Any]) -> dict[str, Any]:
    """Return `config`; the official Python client sends the kubeconfig's map, where it is still an extension."""
    config = fields.get("config")
    extensions = fields.get("extensions")
    if config is None and isinstance(extensions, list):
        named = [each for each in extensions if isinstance(each, dict) and each.get("name") == EXEC_EXTENSION]
        config = named[0].get("extension") if named else None
    return {} if config is None else _object(config, "spec.cluster.config")


# --- the answer ---


def finish(credential: Credential, now: float, leaf_end: Callable[[str, str, float], float]) -> Credential:
    """Check a credential and derive its true end; `leaf_end(certificate, key, now)` checks the pair.

    Raises ExecCredError("credential-incomplete" | "token-invalid"), TryAgain("credential-expired").
    """
    token = clean_token(credential.token)
    ends = [token_end(token) if credential.expires is None else credential.expires]
    if bool(credential.certificate) != bool(credential.key):
        missing = "clientKeyData" if credential.certificate else "clientCertificateData"
        raise ExecCredError("credential-incomplete", f"half a credential: {missing} is missing", "provide both")
    if credential.certificate:
        ends.append(leaf_end(credential.certificate, credential.key, now))
    if not token and not credential.certificate:
        raise ExecCredError("credential-incomplete", "there is neither a token nor a client certificate")
    known = [end for end in ends if end is not None]
    end = min(known) if known else None
    if end is not None and announced_end(end, now) is None:
        raise TryAgain("credential-expired", f"the credential expired at {rfc3339(end)}", "renew it at its source")
    return Credential(token, credential.certificate, credential.key, end)


def render(credential: Credential, api_version: str, now: float) -> str:
    """Return the ExecCredential as one line of JSON, for a credential that `finish` has checked."""
    status: dict[str, str] = {}
    if credential.expires is not None:
        status["expirationTimestamp"] = rfc3339(announced_end(credential.expires, now) or credential.expires)
    if credential.token:
        status["token"] = credential.token
    if credential.certificate:
        status["clientCertificateData"] = credential.certificate
        status["clientKeyData"] = credential.key
    fields = ",".join([f'"{name}":{quoted(text)}' for name, text in status.items()])
    return f'{{"apiVersion":{quoted(api_version)},"kind":"ExecCredential","status":{{{fields}}}}}\n'


def announced_end(end: float, now: float) -> int | None:
    """Return the second to announce for a true `end`: 60 s early, less when little is left; None when it is over.

    The margin moves in steps, so that the answer stays the same while the credential does.
    """
    left = end - now
    margin = 60 if left > 120 else 30 if left > 60 else 10 if left > 20 else 0
    announced = int((end - margin) // 1)
    return announced if announced > now else None


def rfc3339(seconds: float) -> str:
    """Return epoch `seconds` as whole-second RFC 3339 in UTC, with `Z`: some clients parse nothing else."""
    import time

    # A year past 9999 has no RFC 3339 form.
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(min(max(seconds, 0), 253402300799)))


def clean_token(token: str) -> str:
    """Strip outer ASCII whitespace and a BOM; refuse by position, never by value, what a header cannot carry."""
    text = token.removeprefix("\ufeff").strip(" \t\r\n\f\v").removeprefix("\ufeff")
    for position, char in enumerate(text):
        if not "!" <= char <= "~":
            raise ExecCredError(
                "token-invalid",
                f"not a token: character {position + 1} of {len(text)} is U+{ord(char):04X}, which no header can carry",
                "store the bare token, as it is, once base64-encoded by the Secret's data",
            )
    if text.startswith("ZXlK") and "." not in text:  # as every JWT begins once more in base64
        raise ExecCredError("token-invalid", "not a token: a JWT in base64 once too often", "store the bare token")
    return text


def token_end(token: str) -> float | None:
    """Return the true end in epoch seconds that a token itself tells: JWT `exp`, or `k8s-aws-v1.`; else None."""
    prefix, dot, rest = token.partition(".")
    if not dot:
        return None
    try:
        return _presigned_end(rest) if prefix == "k8s-aws-v1" else claimed_time(jwt_claims(token), "exp")
    except ValueError:
        return None


def jwt_claims(token: str) -> dict[str, Any]:
    """Return the claims of a JWT, unverified; `{}` when the token is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = loads(base64url(parts[1]).decode())
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def claimed_time(claims: dict[str, Any], name: str) -> float | None:
    """Return a claim in epoch seconds, None when it is no time."""
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not value < 1e11:
        return None
    return float(max(value, 0))  # before 1970 is over like any other end, whatever a float can hold


def _presigned_end(encoded: str) -> float | None:
    """Return X-Amz-Date + 15 min: EKS counts from the signature, whatever X-Amz-Expires says."""
    from datetime import datetime

    marker, _, rest = base64url(encoded).decode("ascii").partition("X-Amz-Date=")
    if rest[15:16] != "Z" or not marker.startswith("https://"):
        return None
    return datetime.fromisoformat(rest[:16]).timestamp() + 900.0


def base64url(text: str) -> bytes:
    """Decode base64 of JWTs and EKS tokens; ValueError when it is none."""
    import binascii

    # ValueError covers binascii.Error; padding is optional in both formats.
    return binascii.a2b_base64(text.translate({45: "+", 95: "/"}) + "=" * (-len(text) % 4), strict_mode=True)
