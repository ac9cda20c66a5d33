"""One GET of one Secret on the hub; no list, watch or discovery."""

from __future__ import annotations

from ._errors import BadRequest, ExecCredError, TryAgain, printable
from ._hub import HUB_SETTINGS, Hub, find_hub
from ._settings import Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._env import Env
    from ._settings import Settings
    from .http import Response

__all__ = [
    "HUB_SETTINGS",
    "NAMESPACE_SETTINGS",
    "Hub",
    "Secret",
    "ask",
    "find_hub",
    "get_secret",
    "namespace_of",
    "value_of",
]

BODY_LIMIT = 3 << 20  # a Secret's data may be 1 MiB, in base64, beside annotations of 256 KiB
NAMESPACE_SETTINGS = (
    Setting("allow-namespace", "namespaces that a profile may choose, * for all", kind="list", guard=True),
)


class Secret:
    """Type and decoded data of a Secret."""

    __slots__ = ("data", "type")

    def __init__(self, type: str, data: dict[str, bytes]) -> None:  # noqa: A002  # the API's word
        self.type = type
        self.data = data

    def __repr__(self) -> str:
        return f"Secret({self.type}, keys={sorted(self.data)})"


def namespace_of(hub: Hub, settings: Settings) -> str:
    """Return the namespace to read in: a profile may name the consumer's own, others only by --allow-namespace.

    Raises BadRequest("namespace-missing"), ExecCredError("profile-refused").
    """
    asked, allowed = settings.text("namespace"), settings.items("allow-namespace")
    if not (asked or hub.namespace):
        raise BadRequest("namespace-missing", f"no namespace: the hub ({hub.source}) names none", "give --namespace")
    if settings.from_profile("namespace") and asked != hub.namespace and not {"*", asked} & set(allowed):
        raise ExecCredError(
            "profile-refused",
            f"a profile may not choose the namespace {printable(asked, 63)!r}; the consumer's own is {hub.namespace!r}",
            "the admin can set --namespace, or allow it with --allow-namespace",
        )
    return asked or hub.namespace


def get_secret(hub: Hub, namespace: str, name: str, env: Env) -> Secret:
    """Read one Secret with one GET.

    Raises BadRequest("secret-name-invalid"); ExecCredError("hub-tls" | "hub-unauthorized" | "hub-forbidden" |
    "secret-missing" | "hub-bad-answer"); TryAgain("hub-unreachable" | "deadline" | "hub-throttled" | "hub-error").
    """
    for what, text, limit in (("namespace", namespace, 63), ("Secret name", name, 253)):
        letters = "abcdefghijklmnopqrstuvwxyz0123456789-" + ("." if limit == 253 else "")
        if text.strip(letters) or not text.strip("-.") or len(text) > limit:
            hint = (
                f"use lower case letters, digits and dashes, in a Secret's name also dots; at most {limit} characters"
            )
            raise BadRequest("secret-name-invalid", f"{printable(text, 80)!r} cannot be a {what}", hint)
    env.doing(f"asking the hub ({hub.source}) at {hub.server.url.authority} for Secret {namespace}/{name}")
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
    response = ask(hub, path, env)
    if response.status == 404:
        hint = "check cluster name, Secret name and namespace; the name comes from the ClusterProfile unless pinned"
        missing = f"there is no Secret {name} in namespace {namespace} ({hub.source})"
        raise ExecCredError("secret-missing", missing, hint)
    if response.status != 200:
        grant = f"Role with verb get, resource secrets, namespace {namespace}, name {name}"
        raise refusal(response.status, hub, f"get secrets {namespace}/{name}", grant)
    return _secret(response.body, hub)


def ask(hub: Hub, path: str, env: Env, limit: int = BODY_LIMIT) -> Response:
    """GET `path` of the hub, a body of at most `limit` bytes, and return the answer, whatever its status.

    Raises ExecCredError("hub-tls" | "hub-bad-answer"), TryAgain("hub-unreachable" | "deadline").
    """
    import ssl

    headers = {"Accept": "application/json", "User-Agent": "execcred"}
    if hub.token:
        headers["Authorization"] = f"Bearer {hub.token}"
    where = f"the hub ({hub.source}) at {hub.server.url.authority}"
    try:
        return env.get(hub.server, path, headers, limit)
    except ssl.SSLCertVerificationError as error:
        raise ExecCredError(
            "hub-tls",
            f"{where} shows a certificate that is not trusted: {error.verify_message}",
            "correct certificate-authority or tls-server-name of the hub's kubeconfig",
        ) from None
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):  # which one depends on the Python
        raise TryAgain(
            "hub-unreachable", f"{where} closed the connection", "try again; check network and proxy"
        ) from None
    except ssl.SSLError as error:
        raise ExecCredError(
            "hub-tls", f"{where} does not speak TLS as asked: {error.reason}", "correct its server URL"
        ) from None
    except TimeoutError:
        if env.remaining() < 0.1:
            raise env.late() from None
        raise TryAgain(
            "hub-unreachable", f"{where} did not answer in time", "check network and proxy, or raise --timeout"
        ) from None
    except OSError as error:
        text = error.strerror or str(error)
        raise TryAgain(
            "hub-unreachable", f"{where} cannot be reached: {printable(text)}", "check network, DNS and proxy"
        ) from None
    except ValueError as error:
        raise bad_answer(hub, str(error)) from None


def bad_answer(hub: Hub, what: str) -> ExecCredError:
    """Return the error for something that no API server says."""
    message = f"the hub ({hub.source}) at {hub.server.url.authority} gave no answer of Kubernetes: {what}"
    return ExecCredError("hub-bad-answer", message, "check that the hub's server URL is a Kubernetes API server's")


def refusal(status: int, hub: Hub, asked: str, grant: str) -> ExecCredError:
    """Return the error for an answer that is neither success nor a plain 404: `asked` is "verb resource name"."""
    what = f"the hub ({hub.source}) answered {status} to {asked}"
    if status == 401:
        return ExecCredError("hub-unauthorized", what, "its credential is wrong or expired: renew it")
    if status == 403:
        return ExecCredError("hub-forbidden", what, f"grant the identity of this hub access a {grant}")
    if status == 429:
        return TryAgain("hub-throttled", what, "it is overloaded: try again later")
    if status >= 500:
        return TryAgain("hub-error", what, "try again; if it lasts, look at the hub's API server")
    return bad_answer(
        hub, f"it answered {status}; redirects are not followed" if status < 400 else f"it answered {status}"
    )


def _secret(body: bytes, hub: Hub) -> Secret:
    import binascii
    import json

    try:
        found = json.loads(body)
        if found["kind"] != "Secret":
            raise bad_answer(hub, "the answer is another object")
        data = {key: binascii.a2b_base64(text, strict_mode=True) for key, text in (found.get("data") or {}).items()}
        return Secret(str(found.get("type", "")), data)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise bad_answer(hub, "the answer is not a Secret in JSON") from None


def value_of(secret: Secret, key: str, where: str) -> bytes:
    """Return one value of a Secret.

    Raises ExecCredError("secret-key-missing") listing the keys there, TryAgain("secret-key-empty").
    """
    if key not in secret.data:
        there = ", ".join([printable(name, 60) for name in sorted(secret.data)[:20]]) or "none"
        hint = f"store it there, or choose another with --key; keys there: {there}"
        raise ExecCredError("secret-key-missing", f"{where} has no key {printable(key, 60)!r}", hint)
    if not secret.data[key].strip():
        raise TryAgain("secret-key-empty", f"key {key!r} of {where} is empty", "it is not filled in yet: try again")
    return secret.data[key]
