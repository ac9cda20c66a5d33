"""Steps of the doctor up to the credential: who says what to run, can it be run, what does it answer."""

from __future__ import annotations

import os
import re
import shutil

from execcred._errors import BadRequest, ExecCredError, printable
from execcred.access import ProviderFile, run_plugin, select

from ._catalogue import CATALOGUE, LINT
from ._contexts import load, paths
from ._diagnosis import Problem, Seen, problem
from ._document import Document, read_documents
from ._entries import PROVIDER_FILE, Entry, Profile, find, mapping
from ._peers import find as find_hub
from ._peers import plain_connection, spec_of
from ._profiles import get_one
from ._rules import SECRET_VARIABLES, check_entry
from ._rules_profile import check_ca, check_profile, check_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._diagnosis import Case

# With these, clients do not even start the plugin.
REFUSED_BY_CLIENTS = (
    *("interactive-mode-missing", "interactive-mode-invalid", "exec-version-invalid"),
    *("command-missing", "exec-config-missing", "field-type", "env-shape"),
)
VARIABLE_LIMIT = 131072 - len("KUBERNETES_EXEC_INFO=") - 1  # what Linux lets one variable hold
SECRET = re.compile(r"eyJ[\w-]{10,}[\w.-]*|k8s-aws-v1\.[\w=-]+|ya29\.[\w.-]+|X-Amz-[\w-]+=[^&\s]+|-----BEGIN.*")


def redacted(text: str) -> str:
    """Return a foreign program's words without what looks like a secret."""
    return SECRET.sub("…", text)


# --- who says what to run ---


def context(case: Case) -> Seen:
    """Find the context of the kubeconfig, and what it runs; a context without a plugin has its credential itself."""
    found = load(paths(case.settings, case.env), case.settings.text("context"))
    choice = found.choice
    case.source = found.source
    case.namespace = str(choice.context.get("namespace") or case.namespace)
    server = str(choice.cluster.get("server") or "")
    details = {"context": choice.name, "server": server, "plugin": found.entry is not None}
    if found.entry:
        case.entry, case.spec = found.entry, spec_of(found, case.env)
        return Seen(f"{found.source}, server {server}, runs {case.spec.command}", details)
    case.plain, case.credential = plain_connection(found, case.env)
    case.keep(case.credential.token, case.credential.key)
    return Seen(f"{found.source}, server {server}, has a credential of its own and runs no plugin", details)


def hub(case: Case) -> Seen:
    """Find the hub that has the ClusterProfile; a profile in a file needs none."""
    given = case.settings.text("clusterprofile")
    if "/" in given or os.path.isfile(given):  # no name has a slash
        case.document, case.origin = _from_file(given), given
        return Seen(f"not needed: the ClusterProfile is in {given}", {"source": ""})
    found = find_hub(case.settings, case.env)
    case.keep(found.token)
    case.hub, case.origin = found, found.source
    url = found.server.url
    return Seen(f"{found.source}, server {url.authority}", {"source": found.source, "server": url.authority})


def _from_file(path: str) -> dict[str, object]:
    profiles = [
        document.data for document in read_documents(path) if mapping(document.data).get("kind") == "ClusterProfile"
    ]
    if len(profiles) == 1:
        return dict(profiles[0])
    raise ExecCredError(
        "profile-invalid", f"{printable(path)} holds {len(profiles)} ClusterProfiles", "give a file with one of them"
    )


def profile(case: Case) -> Seen:
    """Get the ClusterProfile."""
    name = case.settings.text("clusterprofile")
    if not hasattr(case, "document"):
        namespace = case.settings.text("namespace") or case.hub.namespace
        if not namespace:
            raise BadRequest(
                "namespace-missing", f"no namespace: the hub ({case.hub.source}) names none", "give --namespace"
            )
        case.document = get_one(case.hub, namespace, name, case.env)
    document = case.document
    metadata, status = mapping(document.get("metadata")), mapping(document.get("status"))
    full = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
    case.source = f"ClusterProfile {printable(full or name)}"
    case.from_profile = True
    case.profile = Profile(Document(case.source, document, {}, json=True), (), document)
    names = list(dict.fromkeys(each for _, each, _ in case.profile.accesses))
    ready = [
        row.get("status")
        for row in status.get("conditions") or []
        if isinstance(row, dict) and row.get("type") == "ControlPlaneHealthy"
    ]
    healthy = str(ready[0]) if ready else "not told"
    details = {"profile": full, "accessProviders": names, "controlPlaneHealthy": healthy}
    text = f"{full}: access providers {', '.join(names) or 'none'}; ControlPlaneHealthy is {healthy}"
    return Seen(text, details)


def provider(case: Case) -> Seen:
    """Choose the provider of the provider file, as controllers do."""
    path = case.settings.text("provider-file")
    case.spec = select(case.document, ProviderFile.load(path))
    entries = [each for document in read_documents(path) for each in find(document) if isinstance(each, Entry)]
    case.entry = next(each for each in entries if (each.kind, each.name) == (PROVIDER_FILE, case.spec.provider))
    details = {"provider": case.spec.provider, "server": case.spec.cluster.server}
    return Seen(f"{case.spec.provider} of {path} runs {case.spec.command}; server {case.spec.cluster.server}", details)


# --- is it complete, can it be run ---


def config(case: Case) -> Seen:
    """Lint the exec config, and the ClusterProfile with it."""
    findings = check_entry(case.entry)
    if case.from_profile:
        findings += [*check_profile(case.profile), *check_together([case.entry], [case.profile])]
    else:
        findings += check_ca(case.entry.document, case.entry.path, case.spec.cluster.ca_data)
    refused = REFUSED_BY_CLIENTS + (("ca-too-large",) if len(case.spec.exec_info()) > VARIABLE_LIMIT else ())
    problems = [
        Problem(
            code=each.code,
            message=f"{each.field}: {each.message}",
            hint=LINT[each.code]["remedy"],
            exit_status=1 if each.code in refused else 0,
        )
        for each in findings
    ]
    mode = case.entry.config.get("interactiveMode")
    details = {
        "plugin": case.entry.plugin,
        "apiVersion": case.spec.api_version,
        "provideClusterInfo": case.spec.provide_cluster_info,
        "interactiveMode": mode if isinstance(mode, str) else "",
    }
    what = f"{case.entry.plugin} of this suite" if case.entry.plugin else "a plugin that is not of this suite"
    informed = "cluster info is sent" if case.spec.provide_cluster_info else "no cluster info is sent"
    return Seen(f"{what}, {case.spec.api_version.rpartition('/')[2]}, {informed}", details, problems)


def command(case: Case) -> Seen:
    """Find the executable, and what would keep it from being started."""
    path = case.spec.command
    if "/" not in path:
        path = shutil.which(path, path=case.env.variables.get("PATH", "")) or ""
    why, hint = obstacle(path, case.spec.command, case.env.variables.get("PATH", ""))
    if why:
        said = f"; its install hint says: {printable(case.spec.install_hint)}" if case.spec.install_hint else ""
        raise ExecCredError("plugin-not-runnable", f"{printable(case.spec.command)}: {why}", hint + said)
    case.runnable = True
    return Seen(f"{path} is there and executable", {"path": path})


def obstacle(path: str, command_: str, search: str) -> tuple[str, str]:
    """Return what keeps a file from being run, and what to do about it; ("", "") when nothing does.

    `path` is "" for a bare name that is not in `search`, the PATH.
    """
    if not path:
        return f"it is not in PATH ({printable(search) or 'which is not set'})", f"install {command_}, or give its path"
    if not os.path.exists(path):
        return _absence(path)
    if not os.path.isfile(path):
        return "it is no file", "name the executable itself"
    if not os.access(path, os.X_OK):
        if os.statvfs(path).f_flag & getattr(os, "ST_NOEXEC", 0):  # Linux tells
            return "its volume is mounted noexec", "mount it without noexec; image volumes need kubelet 1.33 or newer"
        return "it is not executable", f"chmod +x {path}"
    return _interpreter(path, search)


def _absence(path: str) -> tuple[str, str]:
    folder = os.path.dirname(path)
    if os.path.exists(folder):
        return f"it is not in {folder}", "correct the command, or install the plugin there"
    while not os.path.exists(os.path.dirname(folder)):
        folder = os.path.dirname(folder)
    return f"nothing is mounted or installed at {folder}", f"mount the plugin's image at {folder}"


def _interpreter(path: str, search: str) -> tuple[str, str]:
    """Look at the first line of a script."""
    try:
        with open(path, "rb") as file:
            first = file.readline(256)
    except OSError:
        return "", ""  # executable, and not readable: fine
    if not first.startswith(b"#!"):
        return "", ""
    words = first[2:].decode("utf-8", "replace").split()
    if words and os.path.basename(words[0]) == "env":
        name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        missing = name and not shutil.which(name, path=search)
    else:
        name = words[0] if words else ""
        missing = not os.path.exists(name)
    if not missing:
        return "", ""
    return f"it needs {printable(name)}, which is not here", "use the plugin's image form: it brings all that it needs"


# --- what does it answer ---


def credential(case: Case) -> Seen:
    """Run the plugin as client-go does; what it tells at debug level says where the credential comes from."""
    ours = case.entry.plugin
    variables = dict(case.env.variables) | ({"EXECCRED_LOG_LEVEL": "debug"} if ours else {})
    case.env.step = f"running {case.spec.command}"
    case.keep(*[text for name, text in (*variables.items(), *case.spec.env) if _is_secret(name, text)])
    try:
        answer = run_plugin(case.spec, timeout=case.settings.seconds("timeout"), environ=variables)
    except ExecCredError as error:
        log = _log("\n".join(getattr(error, "__notes__", [])), ours)
        return Seen(_told(log), {"log": log}, [_explained(error)])
    case.credential = answer.credential
    case.keep(answer.credential.token, answer.credential.key)
    kinds = [name for name in ("token", "certificate") if getattr(answer.credential, name)]
    log = _log(answer.stderr, ours)
    text = f"a {' and a '.join(kinds)} after {answer.seconds:.1f} s"
    details = {"kinds": kinds, "seconds": round(answer.seconds, 3), "log": log}
    return Seen("; ".join([text, *([_told(log)] if log else [])]), details)


def _is_secret(name: str, text: str) -> bool:
    """Tell whether a variable is one that a plugin's words must not repeat."""
    return name.upper().endswith(SECRET_VARIABLES) and len(text) >= 8


def _log(text: str, plugin: str) -> list[str]:
    """Return our plugin's debug lines but those of defaults; another's stderr may hold anything."""
    mark = f"{plugin}-plugin: debug: "
    lines = [line.removeprefix(mark) for line in text.splitlines() if plugin and line.startswith(mark)]
    return [
        redacted(line) for line in lines if not line.endswith((" from default", " from variable EXECCRED_LOG_LEVEL"))
    ]


def _told(log: list[str]) -> str:
    return "; ".join([line for line in log if not line.startswith("at /")])


def _explained(error: ExecCredError) -> Problem:
    """Return the failure under the plugin's own code, where the catalogue knows it."""
    found = re.search(r" \[([a-z0-9-]+)\]$", error.message)
    code = found[1] if found and found[1] in CATALOGUE else error.code
    message = error.message[: found.start()] if found and code == found[1] else error.message
    return problem(error)._replace(code=code, message=redacted(message), hint=redacted(error.hint))
