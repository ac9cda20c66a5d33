"""kubeconfig-secretreader: prints the token or client certificate of a kubeconfig that a Secret on the hub holds."""

from __future__ import annotations

from execcred import PROFILE, BadRequest, Credential, ExecCredError, Plugin, Setting, run
from execcred import _kubeconfig as kubeconfig
from execcred.kube import HUB_SETTINGS, NAMESPACE_SETTINGS, find_hub, get_secret, namespace_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from execcred import Env, Request, Settings
    from execcred._kubeconfig import Choice
    from execcred.kube import Secret

SETTINGS = (
    Setting("secret-name", "name of the Secret", config=("name",), trust=PROFILE),
    Setting("key", "key of the kubeconfig in the Secret; else value, kubeconfig, Config", trust=PROFILE),
    Setting(
        "secret-context", "context in the Secret's kubeconfig; else its current one", config=("context",), trust=PROFILE
    ),
    Setting(
        "check-server",
        "compare the kubeconfig's server with the cluster's",
        kind="choice",
        choices=("off", "warn", "enforce"),
        default="off",
    ),
    Setting("namespace", "namespace of the Secret; else the hub's own", trust="allow-namespace", own=True),
    *NAMESPACE_SETTINGS,
    *HUB_SETTINGS,
)
# Cluster API, Sveltos and Flux, the KEP's push model: in this order.
KEYS = ("value", "kubeconfig", "Config")
# What a kubeconfig of somebody else's may not make us open or run, and the embedded twin.
FORBIDDEN = {
    "exec": "token or client-certificate-data",
    "auth-provider": "token or client-certificate-data",
    "tokenFile": "token",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
    "username": "token or client-certificate-data",
    "password": "token or client-certificate-data",
    # No exec credential carries impersonation: without it the credential would do more.
    **dict.fromkeys(("as", "as-uid", "as-groups", "as-user-extra"), "a token of that identity"),
}


def credential(request: Request, settings: Settings, env: Env) -> Credential:
    """Return the credential of the kubeconfig in the Secret; raises what `execcred.kube` raises."""
    name = settings.text("secret-name")
    if not name:
        hint = "give --secret-name, or the key name in the extension client.authentication.k8s.io/exec"
        what = "no cluster info (provideClusterInfo: true)" if request.cluster is None else "no name in the config"
        raise BadRequest("secret-name-missing", f"no Secret name: the client sent {what}", hint)
    hub = find_hub(settings, env)
    namespace = namespace_of(hub, settings)
    secret = get_secret(hub, namespace, name, env)
    where = f"Secret {namespace}/{name}"
    key = settings.text("key") or first_key(secret)
    fail = failure(f"key {key!r} of {where}")
    env.doing(f"reading the kubeconfig in key {key!r} of {where}")  # YAML of a megabyte may take up the deadline
    choice = kubeconfig.choose(
        kubeconfig.parse(value_of(secret, key, where), fail), settings.text("secret-context"), fail
    )
    compare_server(choice, request, settings.text("check-server"), env)
    return credential_of(choice, fail)


def failure(where: str) -> Callable[[str], ExecCredError]:
    """Return the maker of this kubeconfig's errors."""

    def fail(what: str) -> ExecCredError:
        return ExecCredError(
            "kubeconfig-refused",
            f"the kubeconfig in {where} cannot be used: {what}",
            "correct the kubeconfig in the Secret",
        )

    return fail


def first_key(secret: Secret) -> str:
    """Return the first of KEYS that the Secret has, the first of all when it has none."""
    return next((key for key in KEYS if key in secret.data), KEYS[0])


def credential_of(choice: Choice, fail: Callable[[str], ExecCredError]) -> Credential:
    """Return the credential of a context's user; never follows or runs what the kubeconfig names."""
    user = choice.user
    for field, twin in FORBIDDEN.items():
        if user.get(field):
            raise fail(f"its user has {field}, which is never followed; embed {twin} instead")
    token = kubeconfig.field(user, "token", fail)
    certificate = kubeconfig.decoded(user, "client-certificate-data", fail)
    key = kubeconfig.decoded(user, "client-key-data", fail)
    if bool(certificate) != bool(key):
        raise fail("its user has only one of client-certificate-data and client-key-data")
    if not token and not certificate:
        raise fail("its user has neither token nor client-certificate-data")
    return Credential(token, certificate, key)


def compare_server(choice: Choice, request: Request, mode: str, env: Env) -> None:
    """Compare where the credential will go with the server that its kubeconfig names.

    Raises ExecCredError("server-mismatch") in mode enforce.
    """
    if mode == "off":
        return
    from execcred._urls import same_server, shown

    own = choice.cluster.get("server")
    own = own if isinstance(own, str) else ""
    if same_server(own, request.server):
        return
    message = f"the client's server, {shown(request.server)}, is not the kubeconfig's, {shown(own)}"
    if mode == "enforce":
        raise ExecCredError(
            "server-mismatch", message, "correct the ClusterProfile's server, or the kubeconfig in the Secret"
        )
    env.warn(message)


PLUGIN = Plugin("kubeconfig-secretreader", __doc__.partition(": ")[2], SETTINGS, credential)
main = run(PLUGIN)
