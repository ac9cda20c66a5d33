"""The kinds of objects that the small API server knows, and what it says of them."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class Kind(NamedTuple):
    """How a kind of object appears in URLs."""

    version: str
    name: str
    resource: str
    namespaced: bool
    verbs: tuple[str, ...] = ("get", "list")


PROFILES = "multicluster.x-k8s.io/v1alpha1"
KINDS = (
    Kind("v1", "Secret", "secrets", True),
    Kind("v1", "Namespace", "namespaces", False),
    Kind("v1", "Node", "nodes", False),
    Kind(PROFILES, "ClusterProfile", "clusterprofiles", True),
    Kind("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", False, ("create",)),
)
VERSIONS = list(dict.fromkeys([kind.version for kind in KINDS]))


def resource_list(version: str) -> Json:
    """Return the discovery document of one group and version."""
    resources = [
        {
            "name": kind.resource,
            "singularName": kind.name.lower(),
            "namespaced": kind.namespaced,
            "kind": kind.name,
            "verbs": list(kind.verbs),
        }
        for kind in KINDS
        if kind.version == version
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _group(version: str) -> Json:
    entry = {"groupVersion": version, "version": version.partition("/")[2]}
    return {"name": version.partition("/")[0], "versions": [entry], "preferredVersion": entry}


DISCOVERY: dict[str, Json] = {
    "version": {
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.0",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    },
    "api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(version) for version in VERSIONS if "/" in version],
    },
}
