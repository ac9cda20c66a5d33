"""Kubeconfigs as untrusted text: parse, merge, choose a context. Opens nothing and runs nothing.

Source of the rules: `k8s.io/client-go/tools/clientcmd` (first file wins in a merge, a duplicate name is an error).
"""

from __future__ import annotations

from ._errors import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ._errors import Fail

SIZE_LIMIT = 1 << 20
SECTIONS = ("clusters", "contexts", "users")


class Choice:
    """One context of a kubeconfig with its cluster and user entries."""

    __slots__ = ("cluster", "context", "name", "user")

    def __init__(self, name: str, context: dict[str, Any], cluster: dict[str, Any], user: dict[str, Any]) -> None:
        self.name = name
        self.context = context
        self.cluster = cluster
        self.user = user


def parse(content: bytes, fail: Fail) -> dict[str, Any]:
    """Return a kubeconfig as {"current-context": str, "clusters": {name: entry}, "contexts": …, "users": …}.

    `fail` makes the error for what is wrong; texts name places, never values. An empty file is an empty kubeconfig.
    """
    if len(content) > SIZE_LIMIT:
        raise fail(f"it is larger than {SIZE_LIMIT} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fail(f"byte {error.start} is not UTF-8 text") from None
    document = _load(text, fail)
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise fail("it is not a mapping")
    if document.get("kind", "Config") not in ("Config", "", None):
        raise fail("its kind is not Config")
    current = document.get("current-context") or ""
    if not isinstance(current, str):
        raise fail("current-context is not a string")
    return {"current-context": current, **{name: _named(document, name, fail) for name in SECTIONS}}


def _load(text: str, fail: Fail) -> Any:
    if text.lstrip().startswith("{"):  # JSON needs no PyYAML
        import json

        try:
            return json.loads(text)
        except RecursionError:
            raise fail("it is nested too deep") from None
        except ValueError:
            pass  # YAML's flow style looks like this too
    from ._yaml import YAMLError, load

    try:
        return load(text)
    except RecursionError:
        raise fail("it is nested too deep") from None
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise fail(f"it is not valid YAML{f', line {mark.line + 1}' if mark else ''}") from None


def _named(document: dict[str, Any], section: str, fail: Fail) -> dict[str, dict[str, Any]]:
    """Return the entries of a section by name; each holds its body under the section's singular."""
    entries: dict[str, dict[str, Any]] = {}
    rows = document.get(section) or []
    if not isinstance(rows, list):
        raise fail(f"{section} is not a list")
    for position, row in enumerate(rows):
        name = row.get("name") if isinstance(row, dict) else None
        body = (row.get(section[:-1]) or {}) if isinstance(row, dict) else None
        if not isinstance(name, str) or not isinstance(body, dict):
            raise fail(f"{section}[{position}] needs a name and a {section[:-1]}")
        if name in entries:
            raise fail(f"{section}[{position}] repeats the name {printable(name, 60)!r}")
        entries[name] = body
    return entries


def merge(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge parsed kubeconfigs as kubectl does: of one name the first wins."""
    merged: dict[str, Any] = {"current-context": "", **{name: {} for name in SECTIONS}}
    for document in documents:
        merged["current-context"] = merged["current-context"] or document["current-context"]
        for section in SECTIONS:
            merged[section] = {**document[section], **merged[section]}
    return merged


def choose(document: dict[str, Any], asked: str, fail: Fail) -> Choice:
    """Choose a context: the one asked for > current-context > the only one."""
    contexts = document["contexts"]
    name = asked or document["current-context"] or (next(iter(contexts)) if len(contexts) == 1 else "")
    if not name:
        raise fail(f"it has no current-context and not exactly one context; {names(contexts)}")
    if name not in contexts:
        raise fail(f"it has no context {printable(name, 60)!r}; {names(contexts)}")
    context = contexts[name]
    found = []
    for field in ("cluster", "user"):
        wanted, known = context.get(field), document[f"{field}s"]
        if not isinstance(wanted, str) or wanted not in known:
            shown = printable(wanted, 60) if isinstance(wanted, str) else ""
            raise fail(f"context {printable(name, 60)!r} names the {field} {shown!r}, which is missing; {names(known)}")
        found.append(known[wanted])
    return Choice(name, context, *found)


def names(known: dict[str, Any]) -> str:
    """List names for an error text."""
    listed = ", ".join([printable(name, 60) for name in sorted(known)[:20]])
    return f"it has {listed}" if listed else "it has none"


def field(entry: Mapping[str, Any], name: str, fail: Fail) -> str:
    """Return a text field of an entry, "" when absent."""
    value = entry.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    raise fail(f"{name} is not a string")


def truth(entry: Mapping[str, Any], name: str) -> bool:
    """Return a boolean field of an entry, from JSON or YAML."""
    return entry.get(name) in (True, "true", "True", "TRUE")


def decoded(entry: Mapping[str, Any], name: str, fail: Fail) -> str:
    """Return the PEM text of a `…-data` field, decoded exactly once, "" when absent."""
    import binascii

    text = "".join(field(entry, name, fail).split())
    try:
        pem = binascii.a2b_base64(text, strict_mode=True).decode("ascii") if text else ""
    except ValueError:
        raise fail(f"{name} is not base64 of PEM text") from None
    if pem and "-----BEGIN" not in pem:
        raise fail(f"{name} is not base64 of PEM text")
    return pem
