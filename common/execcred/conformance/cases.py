"""Reads the vectors: which apply to which kind of plugin, and what each lays over the kind's recipe."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .maker import Maker

VECTORS = Path(__file__).with_name("vectors")
PLUGINS = ("secretreader", "kubeconfig-secretreader", "eks", "gke", "aks")
KINDS = (*PLUGINS, "any")
# MUST: what client-go's contract or the KEP asks for. SHOULD: what is asked of any plugin beyond it. OWN: flags,
# variables, codes and rules of this suite, of which another plugin need not know.
MUST, SHOULD, OWN = LEVELS = ("MUST", "SHOULD", "OWN")
SERVER = "https://spoke.test:6443"
Json = dict[str, Any]


class Case(NamedTuple):
    """One vector for one kind of plugin, laid over its recipe."""

    plugin: str
    id: str
    level: str
    recipe: Json
    vector: Json

    def __str__(self) -> str:
        return f"{self.plugin}: {self.id}"


def cases(*kinds: str, recipe: Json | None = None) -> list[Case]:
    """Return every vector for each of `kinds` (this suite's plugins, unless named) that it applies to.

    `recipe` is laid over the kind's own.
    """
    recipes = json.loads((VECTORS / "recipes.json").read_text())
    found: list[Case] = []
    for document, vector in _vectors():
        names, level = [{**document, **vector}[key] for key in ("plugins", "level")]
        found += [
            Case(kind, vector["id"], level, merged(recipes[kind], recipe or {}), vector)
            for kind in kinds or PLUGINS
            if names == "any" or kind in names
        ]
    return found


def _vectors() -> Iterator[tuple[Json, Json]]:
    for file in sorted(VECTORS.glob("*.json")):
        if file.name != "recipes.json":
            document = json.loads(file.read_text())
            for vector in document["vectors"]:
                yield document, vector


def merged(below: Json, above: Json) -> Json:
    """Lay objects over each other; null takes a key away."""
    result = copy.deepcopy(below)
    for key, value in above.items():
        if value is None:
            result.pop(key, None)
        elif (
            isinstance(value, dict) and isinstance(result.get(key), dict) and not next(iter(value), "").startswith("$")
        ):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def exec_info(case: Case, maker: Maker) -> str | bytes | None:
    """Return KUBERNETES_EXEC_INFO: the vector's own, or the usual one with the vector's changes."""
    vector = case.vector
    if "exec_info" in vector or vector.get("stand_alone"):
        given = maker.build(vector.get("exec_info"))
        return given if given is None or isinstance(given, str | bytes) else json.dumps(given)
    known, changes = case.recipe.get("config"), vector.get("config", {})
    config = None if known is None and not changes else merged(known or {}, changes)
    cluster = merged({"server": case.recipe.get("server", SERVER), "config": config}, vector.get("cluster", {}))
    spec = merged({"interactive": False, "cluster": cluster}, vector.get("spec", {}))
    info = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "spec": spec}
    return json.dumps(maker.build(merged(info, vector.get("info", {})))) + "\n"
