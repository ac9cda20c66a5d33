"""The clusters that the tool talks to: what contexts and profiles say of them, and the credential of a plugin."""

from __future__ import annotations

import base64
import json

from execcred import _kubeconfig as kubeconfig
from execcred._errors import ExecCredError
from execcred._hub import connection
from execcred._protocol import EXEC_EXTENSION, VERSIONS, Credential
from execcred.access import Cluster, ExecSpec, run_plugin
from execcred.kube import Hub, find_hub

from ._contexts import Context, load, paths
from ._entries import extensions, mapping, rows, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from execcred import Env, Settings
    from execcred.http import Server


def _fail(context: Context) -> Any:
    def fail(what: str) -> ExecCredError:
        return ExecCredError("context-invalid", f"{context.source}: {what}", "correct it in the kubeconfig")

    return fail


def spec_of(context: Context, env: Env) -> ExecSpec:
    """Return what a client runs for a context whose user has an exec plugin.

    Raises ExecCredError("context-invalid").
    """
    fail = _fail(context)
    cluster, config = context.choice.cluster, mapping(context.choice.user.get("exec"))
    texts = {name: kubeconfig.field(config, name, fail) for name in ("apiVersion", "command", "installHint")}
    if not texts["command"]:
        raise fail("its exec config has no command")
    if texts["apiVersion"] not in VERSIONS:
        raise fail(f"apiVersion of its exec config is none of {', '.join(VERSIONS)}")
    server, tls_name, proxy = [
        kubeconfig.field(cluster, name, fail) for name in ("server", "tls-server-name", "proxy-url")
    ]
    own = [value for _, name, value in extensions(cluster) if name == EXEC_EXTENSION]
    return ExecSpec(
        provider=context.choice.name,
        api_version=texts["apiVersion"],
        command=texts["command"],
        cluster=Cluster(
            server=server,
            tls_server_name=tls_name,
            insecure_skip_tls_verify=kubeconfig.truth(cluster, "insecure-skip-tls-verify"),
            ca_data=_ca_data(cluster, fail, env),
            proxy_url=proxy,
            disable_compression=kubeconfig.truth(cluster, "disable-compression"),
        ),
        args=tuple(strings(config.get("args"))),
        env=tuple((str(row.get("name") or ""), str(row.get("value") or "")) for row in rows(config.get("env"))),
        provide_cluster_info=kubeconfig.truth(config, "provideClusterInfo"),
        config=json.dumps(own[0] if own else None),
        install_hint=texts["installHint"],
    )


def _ca_data(cluster: dict[str, Any], fail: Any, env: Env) -> str:
    """Return the CA bundle in base64, embedded or from its file, as a client puts it into the exec info."""
    pem = kubeconfig.decoded(cluster, "certificate-authority-data", fail).encode()
    path = kubeconfig.field(cluster, "certificate-authority", fail)
    if path and not pem:
        try:
            pem = env.read_file(path)
        except OSError as error:
            raise fail(f"certificate-authority: {error.strerror}") from None
    return base64.b64encode(pem).decode()


def plain_connection(context: Context, env: Env) -> tuple[Server, Credential]:
    """Return the server of a context without a plugin, and the credential that it holds itself.

    Raises ExecCredError("context-invalid" | "certificate-invalid").
    """
    fail = _fail(context)
    user = context.choice.user
    if user.get("auth-provider"):
        raise fail("its user has an auth-provider, which clients do not run any more; use an exec plugin")
    server, token = connection(context.choice, fail, env)
    certificate = kubeconfig.decoded(user, "client-certificate-data", fail)
    path = kubeconfig.field(user, "client-certificate", fail)
    if path and not certificate:
        certificate = env.read_file(path).decode("ascii", "replace")  # it has just been read for the connection
    return server, Credential(token, certificate)


def connect(cluster: Cluster, credential: Credential, source: str, env: Env) -> tuple[Server, str]:
    """Return the server of a cluster, set up for a credential, and the token, "" for none.

    Raises ExecCredError("cluster-fields-invalid" | "certificate-invalid").
    """

    def fail(what: str) -> ExecCredError:
        hint = "correct the cluster's entry; this tool, unlike clients, speaks to http:// proxies only"
        return ExecCredError("cluster-fields-invalid", f"the cluster ({source}) cannot be reached: {what}", hint)

    user = {
        "token": credential.token,
        "client-certificate-data": base64.b64encode(credential.certificate.encode()).decode(),
        "client-key-data": base64.b64encode(credential.key.encode()).decode(),
    }
    return connection(kubeconfig.Choice("", {}, cluster.as_kubeconfig(), user), fail, env)


def find(settings: Settings, env: Env) -> Hub:
    """Return the hub that flags and environment select; unlike for a plugin, its user may have an exec plugin itself.

    Raises ExecCredError("hub-none" | "hub-config" | …), and what running that plugin raises.
    """
    context = _context(settings, env)
    if context is None or context.entry is None:
        return find_hub(settings, env)
    spec = spec_of(context, env)
    env.doing(f"running {spec.command} for the hub")
    credential = run_plugin(spec, timeout=max(env.remaining(), 0.1), environ=env.variables).credential
    server, token = connect(spec.cluster, credential, context.source, env)
    namespace = context.choice.context.get("namespace")
    return Hub(context.source, server, token, namespace if isinstance(namespace, str) else "")


def _context(settings: Settings, env: Env) -> Context | None:
    try:
        return load(paths(settings, env), settings.text("context"))
    except ExecCredError:
        return None  # the layer says what is wrong with it, or knows another way
