"""`execcred kubeconfig`: a kubeconfig's contexts for the ClusterProfiles of a hub; all else stays as it is."""

from __future__ import annotations

import os
from collections import Counter

from execcred._errors import BadRequest, ExecCredError, printable
from execcred._protocol import EXEC_EXTENSION
from execcred.access import ExecSpec, ProviderFile, select

from ._bounded import bounded
from ._entries import extensions, mapping, rows
from ._facts import plugin_of
from ._options import HUB, OUTPUT, option, parse
from ._peers import find
from ._profiles import get_all
from ._progress import progress
from ._replace import read, replace
from ._splice import SECTIONS, changed
from ._splice import read as parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from execcred import Env, Settings
    from execcred.kube import Hub

    Row = dict[str, Any]

TABLE = (
    option("provider-file", "JSON that names the plugins, as controllers have it, with this machine's paths"),
    option("to", "the kubeconfig to write or update"),
    *HUB,
    option("namespace", "take the ClusterProfiles of this namespace only"),
    option("name-template", "name of contexts, clusters and users", default="{namespace}/{name}"),
    option("dry-run", "tell what would change, write nothing", "flag"),
    option("timeout", "limit for the hub, and for the file's lock", "seconds", default=30.0),
    OUTPUT,
)
MARK = "fleet.execcred"  # of our own entries: the name of an extension, which kubectl keeps
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-."


class Target:
    """A ClusterProfile on its way into the kubeconfig: `spec` is what to run, None when `error` says why not."""

    __slots__ = ("error", "mark", "name", "spec")

    def __init__(self, name: str, mark: dict[str, str], spec: ExecSpec | None, error: ExecCredError | None) -> None:
        self.name = name
        self.mark = mark
        self.spec = spec
        self.error = error


def answer(arguments: Sequence[str], env: Env) -> tuple[str, int]:
    """Update the kubeconfig; return what changed, and the allowlist for kubectl.

    Raises BadRequest("usage" | "provider-file-invalid" | "kubeconfig-unusable" | "context-repeated"),
    ExecCredError("context-taken" | "kubeconfig-unwritable"), TryAgain("kubeconfig-locked" | "kubeconfig-changing"),
    and what asking the hub raises.
    """
    settings, words, help_text = parse("kubeconfig --provider-file FILE --to FILE [flags]", TABLE, arguments)
    if help_text:
        return help_text, 0
    path = settings.text("to")
    if words or not path or not settings.text("provider-file"):
        raise BadRequest("usage", "--provider-file and --to are needed, and no words", "see execcred kubeconfig --help")
    env.start(settings.seconds("timeout"), False)
    providers = ProviderFile.load(settings.text("provider-file"))
    namespace = settings.text("namespace")
    with progress("asking the hub for ClusterProfiles"):
        hub, profiles = bounded(lambda: _asked(settings, env), env)
    targets = [_target(profile, providers, settings.text("name-template"), hub) for profile in profiles]
    _distinct(targets)
    done: dict[str, str] = {}

    def change(text: str) -> str:
        done.clear()
        changes = _changes(parsed(path, text) if text.strip() else {}, targets, hub, namespace, done)
        return changed(path, text, changes)

    if settings.flag("dry-run"):
        change(read(path))
    else:
        with progress(f"writing {printable(path)}"):
            replace(path, change, env)
    if settings.text("output") == "json":
        return _json(path, settings.flag("dry-run"), targets, done), 0
    return _text(path, settings.flag("dry-run"), targets, done), 0


def _asked(settings: Settings, env: Env) -> tuple[Hub, list[Row]]:
    env.doing("looking for the hub")
    hub = find(settings, env)
    return hub, get_all(hub, settings.text("namespace"), env)


def _target(profile: Row, providers: ProviderFile, template: str, hub: Hub) -> Target:
    metadata = mapping(profile.get("metadata"))
    names = {key: str(metadata.get(key) or "") for key in ("namespace", "name")}
    mark = {"hub": _hub_name(hub), "namespace": names["namespace"], "clusterProfile": names["name"]}
    name = template.replace("{namespace}", names["namespace"]).replace("{name}", names["name"])
    try:
        if not all(text and not text.strip(LETTERS) for text in names.values()):
            raise ExecCredError("profile-invalid", "its name or namespace cannot be one", "look at the hub")
        return Target(name, mark, select(profile, providers), None)
    except ExecCredError as error:
        return Target(printable(name), mark, None, error)


def _hub_name(hub: Hub) -> str:
    return hub.server.url.authority + hub.server.url.path.rstrip("/")


def _distinct(targets: Sequence[Target]) -> None:
    names = Counter([target.name for target in targets])
    twice, count = next(iter(names.most_common(1)), ("", 0))
    if count > 1:
        raise BadRequest(
            "context-repeated",
            f"two ClusterProfiles would have the context {printable(twice, 80)!r}",
            "put {namespace} and {name} into --name-template",
        )


# --- what changes ---


def _changes(data: Row, targets: Sequence[Target], hub: Hub, namespace: str, done: dict[str, str]) -> Mapping[str, Row]:
    """Return {section: {name: new entry, None when gone}}; `done` is filled with {context: what happens}.

    Raises ExecCredError("context-taken").
    """
    changes: dict[str, Row] = {section: {} for section in SECTIONS}
    there = {section: {row["name"]: row for row in rows(data.get(section))} for section in SECTIONS}
    wanted = {target.name: _entries(target.name, target.spec, target.mark) for target in targets if target.spec}
    kept = {target.name for target in targets if not target.spec}  # still on the hub: perhaps usable again soon
    for section in SECTIONS:
        for name, old in there[section].items():
            mark = mark_of(old, section)
            if name in wanted and mark is None:
                raise ExecCredError(
                    "context-taken",
                    f"{section} already has an entry {printable(name, 80)!r} that this tool has not written",
                    "rename or remove it, or choose other names with --name-template",
                )
            ours = mark and mark.get("hub") == _hub_name(hub) and mark.get("namespace")
            if ours and namespace in ("", ours) and name not in kept | wanted.keys():
                changes[section][name] = None
                done[name] = "removed"
        for name, entries in wanted.items():
            if _plain(there[section].get(name)) != _plain(entries[section]):
                changes[section][name] = entries[section]
                done[name] = "changed" if name in there["contexts"] else "added"
    for name in wanted:
        done.setdefault(name, "unchanged")
    return changes


def _plain(value: Any) -> Any:
    """Return data without nulls, which kubectl adds to what it writes."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def mark_of(row: Row, section: str) -> dict[str, Any] | None:
    """Return the mark of an entry that this tool has written, None for another's."""
    found = [value for _, name, value in extensions(mapping(row.get(section[:-1]))) if name == MARK]
    return mapping(found[0]) if found else None


def _entries(name: str, spec: ExecSpec, mark: dict[str, str]) -> dict[str, Row]:
    """Return a ClusterProfile's entry of each section."""
    import json

    own = {"name": MARK, "extension": mark}
    config = json.loads(spec.config)
    passed = [] if config is None else [{"name": EXEC_EXTENSION, "extension": config}]
    cluster = {**spec.cluster.as_kubeconfig(), "extensions": [*passed, own]}
    context = {"cluster": name, "user": name, "extensions": [own]}
    user = {"exec": _exec(spec), "extensions": [own]}
    bodies = {"clusters": cluster, "contexts": context, "users": user}
    return {section: {"name": name, section[:-1]: body} for section, body in bodies.items()}


def _exec(spec: ExecSpec) -> Row:
    version = spec.api_version.rpartition("/")[2]
    # For clients that send no exec info; in front, where no seal makes it a profile's.
    flag = [f"--api-version={version}"] if plugin_of(spec.command) and version == "v1" else []
    config = {
        "apiVersion": spec.api_version,
        "command": spec.command,
        "args": [*(each for each in flag if each not in spec.args), *spec.args],
        "env": [{"name": name, "value": value} for name, value in spec.env],
        "installHint": spec.install_hint,
        "interactiveMode": "IfAvailable",  # people read kubeconfigs
        "provideClusterInfo": spec.provide_cluster_info,
    }
    return {key: value for key, value in config.items() if value or key == "provideClusterInfo"}


# --- what is told ---


def _rows(targets: Sequence[Target], done: Mapping[str, str]) -> list[Row]:
    """Return one row per context, those that are gone at the end."""
    found = []
    for target in targets:
        row = {"context": target.name, "change": done.get(target.name, "skipped")}
        if target.spec:
            row |= {"server": target.spec.cluster.server, "provider": target.spec.provider}
        if target.error:
            row |= {"code": target.error.code, "message": target.error.message, "hint": target.error.hint}
        found.append(row)
    known = {target.name for target in targets}
    return found + [{"context": name, "change": done[name]} for name in done if name not in known]


def allowlist(targets: Sequence[Target]) -> str:
    """Return the part of a kuberc that lets kubectl run these plugins and no others, "" for none."""
    import json

    commands = sorted({target.spec.command for target in targets if target.spec})
    if not commands:
        return ""
    head = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: Allowlist\n"
    entries = "".join([f"- command: {json.dumps(command)}\n" for command in commands])
    return f"{head}credentialPluginAllowlist:\n{entries}"


def _json(path: str, dry: bool, targets: Sequence[Target], done: Mapping[str, str]) -> str:
    import json

    answer = {
        "file": os.path.abspath(path),
        "dryRun": dry,
        "contexts": _rows(targets, done),
        "kuberc": allowlist(targets),
    }
    return json.dumps(answer, indent=2) + "\n"


def _text(path: str, dry: bool, targets: Sequence[Target], done: Mapping[str, str]) -> str:
    listed = _rows(targets, done)
    words = ("added", "changed", "removed", "unchanged", "skipped")
    counts = ", ".join([f"{sum(row['change'] == word for row in listed)} {word}" for word in words])
    lines = [f"{printable(path)}{' (dry run)' if dry else ''}: {counts}"]
    for row in listed:
        why = f": {printable(row['message'], 300)} [{row['code']}]" if "code" in row else ""
        what = f"  {printable(row['server'])}  {printable(row['provider'], 60)}" if "server" in row else ""
        if row["change"] != "unchanged":
            lines.append(f"  {row['change']:<9}{printable(row['context'])}{what}{why}")
    snippet = allowlist(targets)
    if snippet:
        lines += [
            "",
            "To let kubectl 1.35 or newer run no other plugins, put into ~/.kube/kuberc:",
            "",
            snippet.rstrip(),
        ]
    return "\n".join(lines) + "\n"
