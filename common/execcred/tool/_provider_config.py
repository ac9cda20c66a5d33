"""`execcred provider-config`: prints exactly what a consumer takes to run a plugin."""

from __future__ import annotations

from execcred._arguments import command_line
from execcred._errors import BadRequest, printable
from execcred._protocol import GROUP
from execcred._settings import Setting, parse
from execcred._urls import parse_url
from execcred._version import __version__

from . import _options as options
from ._facts import CONSUMERS, SUBJECTS
from ._rules import SECRET_VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from execcred import Env, Settings

    from ._facts import Consumer, Subject

PARTS = ("config", "cluster-profile", "image-volume", "init-container", "rbac")
PLUGIN = options.option("plugin", "whose configuration", "choice", tuple(SUBJECTS))
TABLE = (
    PLUGIN,
    options.option("for", "who will run it", "choice", tuple(CONSUMERS)),
    options.option("part", "what of it to print", "choice", PARTS, "config"),
    options.option("output", "json instead of YAML", "choice", ("text", "json"), "text"),
    options.option("name", "name of the access provider, as ClusterProfiles have it"),
    options.option("mount", "where the plugin's image, or the directory it is installed to, is mounted"),
    options.option("image", "reference of the plugin's image"),
    options.option("namespace-of-consumer", "namespace that the consumer runs in"),
    options.option("workload", "of a consumer with several: whose pod patch"),
    options.option("cluster", "name of the cluster in Argo CD's Secret and in the ClusterProfile", default="spoke-1"),
    options.option("server", "URL of that cluster"),
    options.option("ca-data", "CA certificates of that cluster, base64 of PEM"),
    options.option("env", "variables for the plugin, NAME=VALUE,NAME=VALUE", "list"),
    options.option("without-cluster-info", "for Argo CD before 3.5: the flags name the cluster", "flag"),
    options.option("credentials-providers", "for Kueue 0.15 to 0.18, by their name for accessProviders", "flag"),
)
# The tool answers these itself; a provider config has no use for them.
NOT_PASSED = ("help", "version", "output")
OCM_ACCOUNT = "controller"  # the ManagedServiceAccount whose tokens are synced
CA_PLACEHOLDER = "cHV0IHRoZSBQRU0gb2YgdGhlIGNsdXN0ZXIncyBDQSBoZXJlLCBiYXNlNjQtZW5jb2RlZAo="


class Task:
    """What is to be printed: the subject, its consumer, names and places."""

    def __init__(self, settings: Settings, own: dict[str, str]) -> None:
        self.settings = settings
        self.target = settings.text("for")
        self.subject: Subject = SUBJECTS[settings.text("plugin")]
        self.consumer: Consumer = CONSUMERS[self.target]
        self.cluster_info = not settings.flag("without-cluster-info")
        self.cluster = settings.text("cluster")
        self.mount = settings.text("mount") or self.consumer.mount.format(plugin=self.subject.name)
        self.image = settings.text("image") or f"registry.example/execcred/{self.subject.name}:{__version__}"
        self.namespace = settings.text("namespace-of-consumer") or self.consumer.namespace
        self.server = settings.text("server") or self.subject.server.format(cluster=self.cluster)
        self.name = settings.text("name") or self._default_name()
        self.known_as = own.get("cluster-name", self.cluster)  # to the plugin: EKS allows other names, and ARNs
        self._own = own
        self._check()

    def _default_name(self) -> str:
        if self.target == "ocm":
            return "open-cluster-management"
        if self.target == "sveltos" and self.subject.name == "kubeconfig-secretreader":
            return "execcred-kubeconfig-secretreader"  # Sveltos runs code of its own for the plain name
        return self.subject.name

    def _check(self) -> None:
        self._check_values()
        if self.target == "ocm" and self.subject.name != "secretreader":
            raise BadRequest(
                "combination-impossible",
                "Open Cluster Management gives a Secret with a token for each cluster: secretreader reads it",
                "give --plugin secretreader, or another --for",
            )
        if self.settings.flag("without-cluster-info") and self.target != "argocd":
            raise BadRequest(
                "combination-impossible",
                "--without-cluster-info is for Argo CD: all others send cluster info",
                "leave it out, or give --for argocd",
            )
        if self.settings.flag("credentials-providers") and self.target != "kueue":
            raise BadRequest(
                "combination-impossible", "--credentials-providers is Kueue's", "leave it out, or give --for kueue"
            )

    def _check_values(self) -> None:
        from re import fullmatch

        names = [each[1] for each in self.consumer.workloads]
        try:
            https = parse_url(self.server).scheme == "https"
        except ValueError:
            https = False
        dns = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
        rules = {
            "mount": (bool(fullmatch(r"(/[^/\s]+)+", self.mount)), "must be an absolute path, such as /plugins"),
            "cluster": (bool(fullmatch(dns, self.cluster)), "must be lower case letters, digits, dashes and dots"),
            "namespace-of-consumer": (bool(fullmatch(dns, self.namespace)), "must be the name of a namespace"),
            "server": (https, "must be an https URL"),
            "ca-data": (_is_base64(self.settings.text("ca-data")), "must be base64"),
            "workload": (self.settings.text("workload") in ("", *names), f"must be one of {', '.join(names)}"),
        }
        for name, (fits, what) in rules.items():
            if not fits:
                raise BadRequest("setting-invalid", f"flag --{name} {what}", "see execcred provider-config --help")

    def ca_data(self) -> str:
        """Return the cluster's CA; "" for hosts whose certificate is of a public CA."""
        public = self.subject.name == "gke" and not self.settings.given("server")
        return self.settings.text("ca-data") or ("" if public else CA_PLACEHOLDER)

    def config(self) -> dict[str, str]:
        """Return what the ClusterProfile's exec extension holds for this plugin."""
        return self._filled_in(self.subject.config)

    def _filled_in(self, texts: dict[str, str]) -> dict[str, str]:
        """Return an example's texts for this cluster; a region that neither flag nor server tells is left out."""
        from execcred_eks import region_of_server

        region = self._own.get("region") or region_of_server(self.server)
        filled = {key: text.format(cluster=self.known_as, region=region) for key, text in texts.items()}
        return {key: text for key, text in filled.items() if text}

    def secret(self) -> str:
        """Return the name of the cluster's Secret, which a reader reads."""
        account = self._own.get("managed-serviceaccount", OCM_ACCOUNT if self.target == "ocm" else "")
        template = self._own.get("secret-name-template", f"{{clusterName}}-{account}" if account else "")
        if template:
            return template.replace("{clusterName}", self.known_as)
        name = next(iter(self._filled_in(self.subject.naming).values()))
        return self._own.get("secret-name", name)

    def version(self) -> str:
        """Return v1 or v1beta1."""
        return self._own.get("api-version", "v1")

    def arguments(self) -> list[str]:
        """Return the plugin's arguments, each one word, so that no order or shell can take it apart."""
        flags = {"api-version": self.version(), **self.subject.settings}
        if self.target == "ocm":
            flags["managed-serviceaccount"] = OCM_ACCOUNT
        if not self.cluster_info:
            flags.pop("allow-server", None)  # there is no server to compare; here the admin writes it anyway
            flags |= self._filled_in(self.subject.naming)
        flags |= self._own
        bare = {each.name for each in self.subject.plugin().settings if each.kind == "flag"}
        return [f"--{name}" if name in bare and text == "true" else f"--{name}={text}" for name, text in flags.items()]

    def variables(self) -> dict[str, str]:
        """Return the plugin's environment; raises BadRequest("setting-invalid" | "secret-in-arguments")."""
        pairs = [item.partition("=") for item in self.settings.items("env")]
        if any(not name or not equals for name, equals, _ in pairs):
            raise BadRequest(
                "setting-invalid", "flag --env must be NAME=VALUE,NAME=VALUE", "--env=AWS_REGION=eu-central-1"
            )
        for name, _, _ in pairs:
            if name.upper().endswith(SECRET_VARIABLES):
                raise _secret(f"variable {printable(name, 60)}", printable(name, 60))
        return {name: value for name, _, value in pairs}

    def exec_config(self) -> dict[str, Any]:
        """Return the exec config that all but Argo CD share."""
        env = [{"name": name, "value": value} for name, value in self.variables().items()]
        return {
            "apiVersion": f"{GROUP}/{self.version()}",
            "command": f"{self.mount}/bin/{self.subject.name}-plugin",
            "args": self.arguments(),
            **({"env": env} if env else {}),
            "installHint": f"mount the image of the {self.subject.name} plugin at {self.mount}, or install it there",
            "provideClusterInfo": True,
            "interactiveMode": "Never",
        }


def answer(arguments: Sequence[str], _: Env) -> tuple[str, int]:
    """Return one part of a consumer's configuration.

    Raises BadRequest("usage" | "setting-invalid" | "combination-impossible" | "secret-in-arguments").
    """
    subject = _chosen(arguments)
    own_table = [each for each in subject.plugin().settings if each.name not in NOT_PASSED] if subject else []
    usage = "provider-config --plugin P --for CONSUMER [flags] [flags of the plugin]"
    settings, words, help_text = options.parse(usage, (*TABLE, *own_table), arguments)
    if help_text:
        return help_text, 0
    missing = [f"--{name}" for name in ("plugin", "for") if not settings.text(name)]
    if missing or words:
        what = f"{' and '.join(missing)} missing" if missing else f"unknown word {words[0][:60]!r}"
        raise BadRequest("usage", what, f"--plugin {'|'.join(SUBJECTS)} --for {'|'.join(CONSUMERS)}")
    line = command_line((*TABLE, *own_table), arguments)
    task = Task(settings, {each.name: _text(each, line.admin) for each in own_table if each.name in line.admin})
    from ._flavours import write

    return write(task, settings.text("part")), 0


def _chosen(arguments: Sequence[str]) -> Subject | None:
    """Return the plugin that is asked for: its settings are among the flags to be parsed."""
    for position, argument in enumerate(arguments):
        name, equals, _ = argument.lstrip("-").partition("=")
        if argument.startswith("-") and name == "plugin":
            line = command_line((PLUGIN,), arguments[position : position + (1 if equals else 2)])
            return SUBJECTS[str(parse(PLUGIN, line.admin["plugin"], "flag --plugin"))]
    return None


def _is_base64(text: str) -> bool:
    import binascii

    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True


def _secret(what: str, variable: str) -> BadRequest:
    hint = f"keep it in a Secret, and give it to the pod by variable {variable}"
    return BadRequest("secret-in-arguments", f"{what} would stand in a file that many can read", hint)


def _text(setting: Setting, given: dict[str, str]) -> str:
    """Return the text of a plugin's flag, once it is known to be valid and no secret."""
    if "secret" in setting.name.split("-")[1:] or "password" in setting.name:
        raise _secret(f"--{setting.name}", setting.env[0])
    value = parse(setting, given[setting.name], f"flag --{setting.name}")
    return str(value).lower() if isinstance(value, bool) else given[setting.name]
