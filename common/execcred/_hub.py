"""The hub that Secrets are read from: which one, and as whom.

Order: --kubeconfig/--context > KUBECONFIG > in-cluster > ~/.kube/config. Identity and namespace come from one source.
"""

from __future__ import annotations

import os

from . import _kubeconfig as kubeconfig
from ._errors import ExecCredError, printable
from ._protocol import clean_token
from ._settings import Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._env import Env
    from ._errors import Fail
    from ._settings import Settings
    from .http import Server

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
HUB_SETTINGS = (
    Setting("kubeconfig", "the hub's kubeconfig; else KUBECONFIG, in-cluster, ~/.kube/config"),
    Setting("context", "context of the hub's kubeconfig", config=None),
)


class Hub:
    """A cluster to ask: where, as whom, in which namespace; `source` says how it was found."""

    __slots__ = ("namespace", "server", "source", "token")

    def __init__(self, source: str, server: Server, token: str, namespace: str) -> None:
        self.source = source
        self.server = server
        self.token = token
        self.namespace = namespace


def find_hub(settings: Settings, env: Env) -> Hub:
    """Return the hub that flags and environment select.

    Raises ExecCredError("hub-none" | "hub-config").
    """
    variables = env.variables
    home = variables.get("HOME", "")
    listed = [path for path in variables.get("KUBECONFIG", "").split(":") if path]
    if given := settings.text("kubeconfig"):
        return _from_files([given], f"from {settings.source('kubeconfig')}", settings, env, needed=True)
    if listed:
        return _from_files(listed, "from variable KUBECONFIG", settings, env)
    if variables.get("KUBERNETES_SERVICE_HOST") and not settings.text("context"):
        return _in_cluster(env)
    if home:
        return _from_files([f"{home}/.kube/config"], "(no --kubeconfig, no KUBECONFIG, not in a pod)", settings, env)
    raise _no_hub("no --kubeconfig, KUBECONFIG, in-cluster service account or HOME")


def _no_hub(what: str) -> ExecCredError:
    return ExecCredError(
        "hub-none", f"no hub to read the Secret from: {what}", "give --kubeconfig, or run in a pod of the hub"
    )


def _in_cluster(env: Env) -> Hub:
    fail = _failure("in-cluster service account")
    host, port = env.variables["KUBERNETES_SERVICE_HOST"], env.variables.get("KUBERNETES_SERVICE_PORT") or "443"
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    token, ca, namespace = [_read(f"{ACCOUNT}/{name}", name, fail, env) for name in ("token", "ca.crt", "namespace")]
    token = _header_safe(token, fail)
    if not token:
        raise fail("its token is empty")
    return Hub("in-cluster service account", _server({"server": url}, ca, fail, env), token, namespace.strip())


def _failure(source: str) -> Fail:
    """Return the maker of errors about one source of the hub."""

    def fail(what: str) -> ExecCredError:
        return ExecCredError(
            "hub-config",
            f"the hub ({source}) cannot be used: {what}",
            "correct it, or choose another with --kubeconfig",
        )

    return fail


def _read(path: str, name: str, fail: Fail, env: Env) -> str:
    try:
        return env.read_file(path).decode("utf-8-sig")
    except OSError as error:
        raise fail(f"{name}: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise fail(f"{name}: {path} is not text") from None
    except ValueError:
        raise fail(f"{name} is not a file name") from None


def _from_files(paths: list[str], origin: str, settings: Settings, env: Env, needed: bool = False) -> Hub:
    documents = []
    for path in paths:
        fail = _failure(f"kubeconfig {printable(path)} {origin}")
        try:
            content = env.read_file(path)
        except FileNotFoundError:
            if needed:
                raise fail("no such file") from None
            continue  # as kubectl does
        except OSError as error:
            raise fail(str(error.strerror)) from None
        documents.append(_absolute(kubeconfig.parse(content, fail), path))
    if not documents:
        raise _no_hub(f"{printable(':'.join(paths))} {origin} does not exist")
    fail = _failure(f"kubeconfig {printable(':'.join(paths))} {origin}")
    choice = kubeconfig.choose(kubeconfig.merge(documents), settings.text("context"), fail)
    source = f"kubeconfig {printable(':'.join(paths))} {origin}, context {printable(choice.name, 60)}"
    return _from_choice(choice, source, env)


FILES = {"clusters": ("certificate-authority",), "users": ("client-certificate", "client-key", "tokenFile")}


def _absolute(document: dict[str, Any], path: str) -> dict[str, Any]:
    """Make file names absolute: they count from their own kubeconfig's folder."""
    folder = os.path.dirname(path) or "."
    for section, names in FILES.items():
        for title, entry in document[section].items():
            given = {name: entry[name] for name in names if isinstance(entry.get(name), str) and entry[name]}
            # A copy, as YAML aliases may make one mapping of many.
            document[section][title] = entry | {name: os.path.join(folder, text) for name, text in given.items()}
    return document


UNSUPPORTED = {
    **dict.fromkeys(("exec", "auth-provider"), "a plugin runs no other plugin for the hub; give one with a token"),
    **dict.fromkeys(("username", "password"), "Kubernetes knows no basic authentication; give one with a token"),
    **dict.fromkeys(("as", "as-uid", "as-groups", "as-user-extra"), "nobody is impersonated; give that one's own"),
}


def _from_choice(choice: kubeconfig.Choice, source: str, env: Env) -> Hub:
    fail = _failure(source)
    for name, why in UNSUPPORTED.items():
        if choice.user.get(name):
            raise fail(f"its user has {name}, and {why}")
    if kubeconfig.truth(choice.cluster, "insecure-skip-tls-verify"):
        raise fail("insecure-skip-tls-verify: whoever answers could take the token; give the certificate-authority")
    server, token = connection(choice, fail, env)
    return Hub(source, server, token, kubeconfig.field(choice.context, "namespace", fail))


def connection(choice: kubeconfig.Choice, fail: Fail, env: Env) -> tuple[Server, str]:
    """Return the server of a kubeconfig's context, its client certificate loaded, and the token, "" for none.

    File names in it must be absolute. Raises what `fail` makes, ExecCredError("certificate-invalid").
    """
    user = choice.user

    def pem(entry: dict[str, Any], name: str) -> str:
        path = kubeconfig.field(entry, name, fail)
        return kubeconfig.decoded(entry, f"{name}-data", fail) or (_read(path, name, fail, env) if path else "")

    token_file = kubeconfig.field(user, "tokenFile", fail)
    token = kubeconfig.field(user, "token", fail)
    token = _header_safe(_read(token_file, "tokenFile", fail, env) if token_file else token, fail)
    certificate, key = pem(user, "client-certificate"), pem(user, "client-key")
    if bool(certificate) != bool(key):
        raise fail("its user has only one of client-certificate and client-key")
    if not token and not certificate:
        raise fail("its user has neither a token nor a client certificate")
    server = _server(choice.cluster, pem(choice.cluster, "certificate-authority"), fail, env)
    if certificate and server.context:
        from ._x509 import load_pair

        load_pair(server.context, certificate, key)
    return server, token


def _server(cluster: Mapping[str, Any], ca: str, fail: Fail, env: Env) -> Server:
    import ssl

    from ._urls import env_proxy, is_host, parse_url
    from .http import Server

    try:
        parsed = parse_url(kubeconfig.field(cluster, "server", fail))
    except ValueError as error:
        raise fail(f"server: {error}") from None
    if parsed.scheme != "https":
        raise fail("server: http:// would show the token to everybody on the way; use https://")
    address = kubeconfig.field(cluster, "proxy-url", fail) or env_proxy(parsed, env.variables)
    try:
        via = parse_url(address) if address else None
    except ValueError:
        via = None
    if address and (via is None or via.scheme != "http"):
        raise fail("its proxy is not an http:// URL, the only kind supported")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if kubeconfig.truth(cluster, "insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif ca:
        try:
            # Bundles have comments in any language, and ssl takes ASCII only.
            context.load_verify_locations(cadata=ca.encode("ascii", "replace").decode())
        except ssl.SSLError:
            raise fail("certificate-authority is not a PEM certificate") from None
    else:
        context.load_default_certs()
    name = kubeconfig.field(cluster, "tls-server-name", fail)
    if name and not is_host(name):
        raise fail("tls-server-name is not a host name")
    return Server(parsed, context, name, via)


def _header_safe(token: str, fail: Fail) -> str:
    try:
        return clean_token(token)
    except ExecCredError as error:
        raise fail(error.message) from None
