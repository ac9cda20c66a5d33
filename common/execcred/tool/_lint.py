"""`execcred lint FILE…`: finds in configuration what users of exec plugins ran into, with rule code and remedy."""

from __future__ import annotations

from execcred._errors import BadRequest, printable

from ._catalogue import LINT
from ._document import Document, read_documents
from ._entries import Entry, Profile, find
from ._options import OUTPUT, parse
from ._rules import Finding, check_document, check_entry
from ._rules_profile import check_clusters, check_profile, check_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from execcred import Env

TABLE = (OUTPUT,)


def answer(arguments: Sequence[str], _: Env) -> tuple[str, int]:
    """Return the findings and 1, or that there are none and 0.

    Raises BadRequest("usage" | "file-unusable").
    """
    settings, files, help_text = parse("lint FILE… [flags]   (- is stdin)", TABLE, arguments)
    if help_text:
        return help_text, 0
    if not files:
        raise BadRequest("usage", "no file given", "give provider files, ClusterProfiles, kubeconfigs, … together")
    findings = lint([document for file in files for document in known(file)])
    if settings.text("output") == "json":
        return _json(findings), bool(findings)
    lines = [line for finding in findings for line in _text(finding)]
    return "\n".join([*lines, f"{_count(findings, 'finding')} in {_count(files, 'file')}", ""]), bool(findings)


def known(file: str) -> list[Document]:
    """Return the documents of a file, at least one of which lint must know.

    Raises BadRequest("file-unusable").
    """
    documents = read_documents(file)
    if not any(_known(document) for document in documents):
        raise BadRequest(
            "file-unusable",
            f"{printable(file)}: none of the formats that lint knows",
            "it knows provider files, ClusterProfiles, kubeconfigs, Argo CD cluster Secrets, Kueue configuration,"
            " Knative chart values, and ConfigMaps and lists of them",
        )
    return documents


def _known(document: Document) -> bool:
    if next(find(document), None) is not None:
        return True
    data = document.data if isinstance(document.data, dict) else {}
    version = str(data.get("apiVersion") or "")
    return (
        version.startswith(("config.kueue.x-k8s.io/", "multicluster.x-k8s.io/"))
        or any(isinstance(data.get(key), list) for key in ("providers", "users", "clusters", "items"))
        or data.get("kind") in ("Secret", "ConfigMap", "Config")
    )


def lint(documents: Sequence[Document]) -> list[Finding]:
    """Return what is wrong in documents that are used together, in the order of the files."""
    findings: list[Finding] = []
    entries: list[Entry] = []
    profiles: list[Profile] = []
    seen: list[Document] = []
    for document in documents:
        for found in (None, *find(document)):
            inside = found.document if found else document  # another one, when a Secret or ConfigMap holds it
            if inside not in seen:
                seen.append(inside)
                findings += [*check_document(inside), *check_clusters(inside)]
            if isinstance(found, Entry):
                entries.append(found)
                findings += check_entry(found)
            elif found:
                profiles.append(found)
                findings += check_profile(found)
    findings += check_together(entries, profiles)
    order = {file: position for position, file in enumerate(dict.fromkeys(each.file for each in documents))}
    return sorted(findings, key=lambda each: (order[each.file], each.line, each.code))


def _count(things: Sequence[object], word: str) -> str:
    return f"{len(things)} {word}{'s' if len(things) != 1 else ''}"


def _text(finding: Finding) -> list[str]:
    where = f"{printable(finding.file)}:{finding.line}"
    return [
        f"{where}: {printable(finding.field, 300)}: {printable(finding.message, 500)} [{finding.code}]",
        f"  remedy: {LINT[finding.code]['remedy']}",
    ]


def _json(findings: list[Finding]) -> str:
    import json

    rows = [{**each.fields(), "remedy": LINT[each.code]["remedy"]} for each in findings]
    return json.dumps({"findings": rows}, indent=2) + "\n"
