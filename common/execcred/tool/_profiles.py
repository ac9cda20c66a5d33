"""ClusterProfiles of a hub: one, or all of a namespace or of the hub by one GET."""

from __future__ import annotations

from execcred._errors import ExecCredError, printable
from execcred.access._format import API_VERSIONS, GROUP
from execcred.kube import ask, bad_answer, refusal

from ._entries import mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from execcred import Env
    from execcred.kube import Hub

LIMIT = 64 << 20  # bytes: a thousand ClusterProfiles with CA bundles and managed fields


def get_all(hub: Hub, namespace: str, env: Env) -> list[dict[str, Any]]:
    """Return the ClusterProfiles of a namespace, "" for all.

    Raises ExecCredError("profiles-unserved") and what `ask` and `refusal` make.
    """
    env.doing(f"asking the hub ({hub.source}) for ClusterProfiles")
    found = _get(hub, namespace, "", env)
    if found is None:
        raise _unserved(hub)
    items = found.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise bad_answer(hub, "it gave no list of ClusterProfiles")
    return items


def get_one(hub: Hub, namespace: str, name: str, env: Env) -> dict[str, Any]:
    """Return a ClusterProfile.

    Raises ExecCredError("profile-missing") and what `ask` and `refusal` make.
    """
    env.doing(f"asking the hub ({hub.source}) for ClusterProfile {printable(namespace)}/{printable(name)}")
    found = _get(hub, namespace, name, env)
    if found is None:
        raise ExecCredError(
            "profile-missing",
            f"the hub ({hub.source}) has no ClusterProfile {printable(namespace, 63)}/{printable(name, 253)}",
            "check name and --namespace: kubectl get clusterprofiles -A",
        )
    if found.get("kind") != "ClusterProfile":
        raise bad_answer(hub, "it gave another object than a ClusterProfile")
    return found


def _unserved(hub: Hub) -> ExecCredError:
    return ExecCredError(
        "profiles-unserved",
        f"the hub ({hub.source}) serves no ClusterProfiles",
        "choose the hub by --kubeconfig and --context; the CRD comes with its cluster manager",
    )


def _get(hub: Hub, namespace: str, name: str, env: Env) -> dict[str, Any] | None:
    """Return one object or a list; None when the hub has it in no version of the API."""
    from json import loads
    from urllib.parse import quote

    scope = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    for version in API_VERSIONS:
        path = f"/apis/{version}{scope}/clusterprofiles"
        response = ask(hub, f"{path}/{quote(name, safe='')}" if name else path, env, LIMIT)
        if response.status == 404:
            continue
        if response.status != 200:
            verb, where = "get" if name else "list", f"in namespace {namespace}" if namespace else "in all namespaces"
            role = "Role" if namespace else "ClusterRole"
            grant = f"{role} with verb {verb}, API group {GROUP}, resource clusterprofiles"
            raise refusal(response.status, hub, f"{verb} clusterprofiles {where}", grant)
        try:
            return mapping(loads(response.body))
        except (ValueError, RecursionError):
            raise bad_answer(hub, "the answer is not JSON") from None
    return None
