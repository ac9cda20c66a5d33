"""A context of kubeconfigs as kubectl sees it: files merged, names followed, paths counted from their own file."""

from __future__ import annotations

import os

from execcred._errors import ExecCredError, printable
from execcred._hub import FILES
from execcred._kubeconfig import SECTIONS, Choice, choose

from ._document import KUBECONFIG_LIMIT, read_documents
from ._entries import KUBECONFIG, Entry, mapping, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from execcred import Env, Settings

    from ._document import Document


class Context:
    """A context: `choice` is its entries, `entry` its exec config (None without), `source` tells where it stands."""

    __slots__ = ("choice", "entry", "source")

    def __init__(self, choice: Choice, entry: Entry | None, source: str) -> None:
        self.choice = choice
        self.entry = entry
        self.source = source


def paths(settings: Settings, env: Env) -> list[str]:
    """Return the kubeconfigs that flag or environment name; [] in a pod, where there is none."""
    variables = env.variables
    listed = [path for path in variables.get("KUBECONFIG", "").split(":") if path]
    if settings.text("kubeconfig"):
        return [settings.text("kubeconfig")]
    if listed:
        return [path for path in listed if os.path.exists(path)] or listed[:1]
    if variables.get("KUBERNETES_SERVICE_HOST") and not settings.text("context"):
        return []
    return [f"{variables['HOME']}/.kube/config"] if variables.get("HOME") else []


def load(files: Sequence[str], asked: str) -> Context:
    """Return the context that is asked for, "" for the current one.

    Raises ExecCredError("context-missing"), BadRequest("file-unusable").
    """
    if not files:
        raise _missing("there is no --kubeconfig, KUBECONFIG or HOME")
    where = printable(":".join(files))
    # Of several, kubectl does not mind one that is empty.
    filled = [file for file in files if len(files) == 1 or os.path.getsize(file)]
    documents = [each for file in filled for each in read_documents(file, KUBECONFIG_LIMIT)]
    merged: dict[str, Any] = {"current-context": "", **{section: {} for section in SECTIONS}}
    entries: dict[str, Entry] = {}  # by user
    for document in documents:
        _merge(document, merged, entries)
    choice = choose(merged, asked, lambda what: _missing(f"{where}: {what}"))
    source = f"context {printable(choice.name, 60)} of {where}"
    return Context(choice, entries.get(str(choice.context.get("user"))), source)


def _merge(document: Document, merged: dict[str, Any], entries: dict[str, Entry]) -> None:
    """Add what a document has to `merged` and `entries`; of one name the first wins."""
    data = mapping(document.data)
    current = data.get("current-context")
    merged["current-context"] = merged["current-context"] or (current if isinstance(current, str) else "")
    for section in SECTIONS:
        for index, row in enumerate(rows(data.get(section))):
            name, body = row.get("name"), mapping(row.get(section[:-1]))
            if not isinstance(name, str) or name in merged[section]:
                continue
            merged[section][name] = _absolute(section, body, document.file)
            if section == "users" and isinstance(body.get("exec"), dict):
                where = ("users", index, "user", "exec")
                entries[name] = Entry(document, where, KUBECONFIG, body["exec"])


def _missing(what: str) -> ExecCredError:
    return ExecCredError(
        "context-missing",
        f"no context to look at: {what}",
        "give --kubeconfig and --context, or look at a ClusterProfile",
    )


def _absolute(section: str, body: dict[str, Any], file: str) -> dict[str, Any]:
    """Return an entry with absolute file names: they count from their own kubeconfig's folder."""
    folder = os.path.dirname(os.path.abspath(file))
    given = {name: body[name] for name in FILES.get(section, ()) if isinstance(body.get(name), str) and body[name]}
    result = body | {name: os.path.join(folder, path) for name, path in given.items()}
    config = body.get("exec")
    if section == "users" and isinstance(config, dict):
        command = config.get("command")
        named = isinstance(command, str) and "/" in command  # a bare name is looked up in PATH
        result["exec"] = {**config, "command": os.path.join(folder, str(command))} if named else dict(config)
    return result
