"""secretreader: prints the token, or the client certificate, that a Secret on the hub holds for a cluster."""

from __future__ import annotations

from execcred import PROFILE, BadRequest, Credential, ExecCredError, Plugin, Setting, run
from execcred.kube import HUB_SETTINGS, NAMESPACE_SETTINGS, find_hub, get_secret, namespace_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from execcred import Env, Request, Settings
    from execcred.kube import Secret

SETTINGS = (
    Setting("cluster-name", "the cluster, by the name its Secret bears", trust=PROFILE),
    Setting(
        "secret-name",
        "name of the Secret, instead of a template",
        config=("tokenSecretName",),
        trust=PROFILE,
    ),
    Setting("secret-name-template", "name of the Secret, with {clusterName}", default="{clusterName}"),
    Setting(
        "managed-serviceaccount",
        "short for the template {clusterName}-NAME, as Open Cluster Management names its Secrets",
    ),
    Setting(
        "key",
        "key of the token in the Secret",
        config=("tokenSecretKey",),
        default="token",
        trust=PROFILE,
    ),
    Setting(
        "namespace",
        "namespace of the Secret; else the hub's own",
        env=("NAMESPACE",),
        config=("secretNamespace", "tokenSecretNamespace"),
        trust="allow-namespace",
        own=True,
    ),
    *NAMESPACE_SETTINGS,
    *HUB_SETTINGS,
)


def credential(request: Request, settings: Settings, env: Env) -> Credential:
    """Return the credential in the cluster's Secret; raises what `execcred.kube` raises."""
    name = secret_name(request, settings)
    hub = find_hub(settings, env)
    namespace = namespace_of(hub, settings)
    secret = get_secret(hub, namespace, name, env)
    return credential_in(secret, settings, f"Secret {namespace}/{name}")


def secret_name(request: Request, settings: Settings) -> str:
    """Return the Secret's name: the one given, or the template's.

    Raises BadRequest("cluster-name-missing"), ExecCredError("profile-refused").
    """
    template = settings.text("secret-name-template")
    if settings.given("managed-serviceaccount"):
        template = "{clusterName}-" + settings.text("managed-serviceaccount")
    given, cluster = settings.text("secret-name"), settings.text("cluster-name")
    # An admin's template pins the name: a profile then chooses the cluster only.
    pinned = settings.given("secret-name-template") or settings.given("managed-serviceaccount")
    if given and not (pinned and settings.from_profile("secret-name")):
        return given
    if not cluster and "{clusterName}" in template:
        raise BadRequest("cluster-name-missing", f"no cluster name: {_absence(request)}", "or give --cluster-name")
    name = template.replace("{clusterName}", cluster)
    if given not in ("", name):
        raise ExecCredError(
            "profile-refused", f"a profile may not set secret-name: the admin's template gives {name!r}"
        )
    return name


def _absence(request: Request) -> str:
    """Say why the config gave nothing, with its remedy."""
    if request.cluster is None:
        return "the client sent no cluster info; set provideClusterInfo: true in the exec config"
    if not request.config:
        return (
            "the cluster info holds no config; add the extension client.authentication.k8s.io/exec with"
            " clusterName to the ClusterProfile's access provider"
        )
    return "the config holds no clusterName; add it to the extension client.authentication.k8s.io/exec"


def credential_in(secret: Secret, settings: Settings, where: str) -> Credential:
    """Return what a Secret holds: a client certificate in type kubernetes.io/tls, else a token."""
    if secret.type == "kubernetes.io/tls" and not settings.given("key"):
        certificate, key = [_text(value_of(secret, name, where), name, where) for name in ("tls.crt", "tls.key")]
        return Credential(certificate=certificate, key=key)
    name = settings.text("key")
    return Credential(token=_text(value_of(secret, name, where), name, where))


def _text(value: bytes, name: str, where: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ExecCredError(
            "token-invalid",
            f"key {name!r} of {where} is not text: byte {error.start + 1} of {len(value)}",
            "store the bare token or PEM text",
        ) from None


PLUGIN = Plugin("secretreader", __doc__.partition(": ")[2], SETTINGS, credential)
main = run(PLUGIN)
