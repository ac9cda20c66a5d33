"""Lint rules for exec configs: each is a function that yields (field, code, message); the remedy is the catalogue's."""

from __future__ import annotations

from execcred._protocol import VERSIONS
from execcred.access._format import (
    CLI_POLICIES,
    ENV_POLICIES,
    EXEC_FIELDS,
    INTERACTIVE_MODES,
    LOADERS,
    PROVIDER_FIELDS,
)

from ._entries import ARGOCD, KNATIVE, KUBECONFIG, KUEUE, Entry, mapping
from ._facts import CLOUDS, SUBJECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ._document import Document, Path

    Found = tuple[Path, str, str]  # the field below the entry's path, code, message

WRAPPERS = (*("sh", "bash", "dash", "ash", "zsh", "env", "busybox", "sudo", "nice", "timeout", "nohup"), "cmd.exe")
SECRET_FLAGS = ("client-secret", "password", "client-certificate-password")
SECRET_VARIABLES = ("SECRET", "TOKEN", "PASSWORD", "SECRET_ACCESS_KEY")
CA_LIMIT = 100_000  # base64; with the rest of the exec info, one variable holds 131072 bytes


class Finding:
    """One thing that is wrong, where it stands, and the rule that says so."""

    __slots__ = ("code", "field", "file", "line", "message")

    def __init__(self, document: Document, path: Path, code: str, message: str) -> None:
        self.file = document.file
        self.line = document.line(path)
        self.field = field_name((*document.base, *path))
        self.code = code
        self.message = message

    def fields(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {name: getattr(self, name) for name in ("file", "line", "field", "code", "message")}


def field_name(path: Path) -> str:
    """Return a path as people write it: `providers[0].execConfig.command`."""
    text = "".join([f"[{part}]" if isinstance(part, int) else f".{part}" for part in path])
    return text.removeprefix(".") or "(file)"


def check_document(document: Document) -> list[Finding]:
    """Return what is wrong with a document as a whole."""
    findings = [Finding(document, path, "key-repeated", f"{path[-1]!r} is given twice") for path in document.repeated]
    data = mapping(document.data)
    if isinstance(data.get("providers"), list) and not document.json:
        findings.append(Finding(document, ("providers",), "provider-file-not-json", "the provider file is YAML"))
    findings += _repeated_names(document, ("providers",), data.get("providers"))
    lists = mapping(mapping(data.get("multiKueue")).get("clusterProfile"))
    for name in ("accessProviders", "credentialsProviders"):
        findings += _repeated_names(document, ("multiKueue", "clusterProfile", name), lists.get(name))
    if lists.get("accessProviders") and lists.get("credentialsProviders"):
        where = ("multiKueue", "clusterProfile", "credentialsProviders")
        findings.append(Finding(document, where, "kueue-both-lists", "both names of the list are there"))
    return findings


def _repeated_names(document: Document, path: Path, value: Any) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, row in enumerate(value if isinstance(value, list) else []):
        name = mapping(row).get("name")
        if not isinstance(name, str) or not name:
            yield Finding(document, (*path, index), "provider-name-missing", "the provider has no name")
        elif name in seen:
            yield Finding(document, (*path, index, "name"), "provider-repeated", f"a second provider {name[:60]!r}")
        else:
            seen.add(name)


def check_entry(entry: Entry) -> list[Finding]:
    """Return what is wrong with one exec config."""
    found = [each for rule in RULES for each in rule(entry)] if entry.config else list(_empty(entry))
    return [Finding(entry.document, _place(entry, path), code, message) for path, code, message in found]


def _place(entry: Entry, path: Path) -> Path:
    """Return the place of a field; ".." before it means the provider's, beside execConfig."""
    return (*entry.path[:-1], *path[1:]) if path[:1] == ("..",) else (*entry.path, *path)


def _empty(_: Entry) -> Iterator[Found]:
    yield (), "exec-config-missing", "there is no execConfig, or it is empty"


# --- the rules ---


def types(entry: Entry) -> Iterator[Found]:
    """What Go's decoder takes: texts, a boolean, a list of texts."""
    wanted = {"command": str, "apiVersion": str, "installHint": str, "interactiveMode": str, "provideClusterInfo": bool}
    for name, kind in wanted.items():
        value = entry.config.get(name)
        if value is not None and not isinstance(value, kind):
            yield (name,), "field-type", f"{name} must be {'a boolean' if kind is bool else 'a string'}"
    args = entry.config.get("args")
    if args is not None and (not isinstance(args, list) or len(entry.arguments) != len(args)):
        yield ("args",), "field-type", "args must be a list of strings"
    env = entry.config.get("env")
    if env is not None and not isinstance(env, dict if entry.kind == ARGOCD else list):
        shape = "a map, NAME: value," if entry.kind == ARGOCD else "a list of {name, value}"
        yield ("env",), "env-shape", f"env must be {shape} for this consumer"


def fields(entry: Entry) -> Iterator[Found]:
    """What the named consumer rejects, or silently ignores."""
    known = (*EXEC_FIELDS[:-1], "config") if entry.kind == ARGOCD else EXEC_FIELDS  # without interactiveMode
    rejects = entry.kind == KUEUE
    code, what = ("field-rejected", "stops Kueue") if rejects else ("field-ignored", "is ignored")
    for name in entry.config:
        if name not in known and entry.kind != KUBECONFIG:
            yield (name,), code, f"{name[:60]!r} is no field here, which {what}"
    outer = ("name", "execConfig") if rejects else PROVIDER_FIELDS
    for name in entry.provider:
        if name not in outer:
            yield ("..", name), code, f"{name[:60]!r} is no field of a provider here, which {what}"


def version(entry: Entry) -> Iterator[Found]:
    """The version that plugin and client must agree on."""
    value = entry.config.get("apiVersion")
    if value not in VERSIONS:
        yield ("apiVersion",), "exec-version-invalid", "apiVersion is missing or none that clients serve"
    elif entry.kind == KUBECONFIG and entry.plugin and value == VERSIONS[0] and not entry.fault:
        if entry.line.admin.get("api-version") == "v1":
            return
        yield ("args",), "api-version-flag-missing", "apiVersion is v1, and --api-version=v1 is not given"


def interactive(entry: Entry) -> Iterator[Found]:
    """What v1 demands in kubeconfigs, and Kueue always, and what no client knows; Argo CD has no such field."""
    mode = entry.config.get("interactiveMode")
    if entry.kind == ARGOCD:
        return
    if not mode:
        if entry.kind != KUBECONFIG or entry.config.get("apiVersion") == VERSIONS[0]:
            yield (), "interactive-mode-missing", "interactiveMode is missing"
    elif isinstance(mode, str) and mode not in INTERACTIVE_MODES:
        yield ("interactiveMode",), "interactive-mode-invalid", "interactiveMode is none that clients know"
    elif mode == "Always" and entry.kind != KUBECONFIG:
        yield ("interactiveMode",), "interactive-mode-always", "no controller has a terminal"


def command(entry: Entry) -> Iterator[Found]:
    """Where the executable is found."""
    text = entry.command
    bare_is_fine = entry.kind == KUBECONFIG and "/" not in text
    if not text:
        yield ("command",), "command-missing", "there is no command"
    elif text.rpartition("/")[2] in WRAPPERS or " " in text:
        yield ("command",), "command-wrapped", f"the command is {text.rpartition('/')[2][:60]!r}, not the plugin"
    elif not text.startswith("/") and not bare_is_fine:
        yield ("command",), "command-relative", "the command is no absolute path"
    if entry.kind == KNATIVE and not any(text.startswith(f"{mount}/") for mount in entry.mounts):
        yield ("command",), "command-outside-mount", "the command lies below no mountPath of plugins"


def hint(entry: Entry) -> Iterator[Found]:
    """What a client prints when the executable is missing."""
    if not entry.config.get("installHint"):
        yield (), "install-hint-missing", "installHint is missing"


def cluster_info(entry: Entry) -> Iterator[Found]:
    """Whether the plugin is told which cluster it is for."""
    if entry.config.get("provideClusterInfo") is True:
        return
    allowed = "allow-server" in entry.line.admin
    if allowed:
        yield (), "cluster-info-missing", "--allow-server compares the cluster's server, which is not sent"
    elif entry.kind in (ARGOCD, KUBECONFIG):
        naming = set(SUBJECTS[entry.plugin].naming) if entry.plugin else set()
        # For both readers the Secret's name says it all.
        unnamed = bool(naming) and not (naming | {"secret-name"}) & set(entry.line.admin) and not entry.fault
        if unnamed or entry.config.get("config"):
            yield (), "cluster-info-missing", "neither cluster info nor flags tell the plugin its cluster"
    else:
        yield (), "cluster-info-missing", "the plugin gets neither server nor config"


def arguments(entry: Entry) -> Iterator[Found]:
    """Whether our own plugin would take them."""
    if entry.fault:
        yield ("args",), "arguments-invalid", entry.fault


def server(entry: Entry) -> Iterator[Found]:
    """A bearer token for a whole cloud must not go to a host that a profile's author chose."""
    sent = entry.config.get("provideClusterInfo") is True
    if entry.plugin not in CLOUDS or entry.fault or entry.kind == KUBECONFIG or not sent:
        return
    patterns = [each.strip() for each in entry.line.admin.get("allow-server", "").split(",")]
    if patterns == [""]:
        yield ("args",), "allow-server-missing", "a cloud token goes to any server that a profile names"
    elif "*" in patterns:
        yield ("args",), "allow-server-missing", "--allow-server allows every server"


def guards(entry: Entry) -> Iterator[Found]:
    """Flags that let a profile choose an identity or a namespace."""
    given = entry.line.admin
    if given.get("allow-profile-identity", "false").lower() in ("true", "1", "t", "yes"):
        yield ("args",), "identity-unpinned", "profiles may choose the identity that the plugin uses"
    if "*" in [each.strip() for each in given.get("allow-namespace", "").split(",")]:
        yield ("args",), "identity-unpinned", "profiles may choose Secrets of every namespace"


def policies(entry: Entry) -> Iterator[Found]:
    """Who has a say besides the admin."""
    args, env = [entry.provider.get(name) for name in PROVIDER_FIELDS[2:]]
    for name, value, known in zip(PROVIDER_FIELDS[2:], (args, env), (CLI_POLICIES, ENV_POLICIES), strict=True):
        if value not in (None, "", *known):
            yield ("..", name), "policy-unknown", f"the policy is none of {', '.join(known)}"
    if args == "Append" and (not entry.arguments or entry.arguments[-1].lstrip("-") != "profile-args"):
        yield ("..", PROVIDER_FIELDS[2]), "policy-append-unsealed", "what a profile appends beats the admin's flags"
    if env == "AppendIfNotExists":
        yield ("..", PROVIDER_FIELDS[3]), "policy-append-if-not-exists", "one cluster is given another's values"
    if env == "Replace":
        yield ("..", PROVIDER_FIELDS[3]), "policy-replace", "a profile's variables beat the admin's"


def environment(entry: Entry) -> Iterator[Found]:
    """Variables that change which code runs, and secrets in plain sight."""
    for name, value in entry.variables().items():
        if name.startswith(LOADERS):
            yield ("env",), "env-dangerous", f"{name[:60]!r} makes programs load other code or write down secrets"
        elif name.upper().endswith(SECRET_VARIABLES) and value:
            yield ("env",), "secret-in-config", f"variable {name[:60]!r} holds a secret"
    if entry.plugin == "eks" and "AWS_PROFILE" in entry.variables() and "profile" not in entry.line.admin:
        yield ("env",), "aws-profile-weak", "keys in the client's own environment beat AWS_PROFILE"
    for name in SECRET_FLAGS:
        if any(each.lstrip("-").partition("=")[0] == name for each in entry.arguments):
            yield ("args",), "secret-in-config", f"--{name} holds a secret"


RULES = (
    *(types, fields, version, interactive, command, hint, cluster_info),
    *(arguments, server, guards, policies, environment),
)
