"""The formats of the consumers, as text: provider file, Kueue configuration, cluster Secret, chart values, patches."""

from __future__ import annotations

from ._yaml_text import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._provider_config import Task

    # Documents, each with the lines of comment that stand above it in YAML.
    Documents = list[tuple[dict[str, Any], list[str]]]

CONFIG_MAP = "clusterprofile-provider-file"
FILE_KEY = "provider-file.json"


def write(task: Task, part: str) -> str:
    """Return one part of what the consumer of `task` takes, as the text of a file.

    Raises BadRequest("combination-impossible").
    """
    makers = {
        "cluster-profile": cluster_profile,
        "rbac": rbac,
        "image-volume": patches,
        "init-container": patches,
        "config": {"kueue": kueue, "argocd": argocd, "knative": knative}.get(task.target, provider_file),
    }
    found = makers[part](task)
    if task.settings.text("output") == "json" or makers[part] is provider_file:
        rows = [document for document, _ in found]
        return _json(rows[0] if len(rows) == 1 else {"apiVersion": "v1", "kind": "List", "items": rows})
    return "---\n".join([_yaml(document, comments) for document, comments in found])


def _json(document: Any) -> str:
    import json

    return json.dumps(document, indent=2) + "\n"


def _yaml(document: Any, comments: Sequence[str]) -> str:
    head = "".join([f"# {comment}\n" for comment in comments])
    return head + dump(document, width=120, blocks=True)


# --- configuration ---


def providers(task: Task) -> dict[str, Any]:
    """Return a provider file of the access library; policies stay at their default, Ignore."""
    return {"providers": [{"name": task.name, "execConfig": task.exec_config()}]}


def provider_file(task: Task) -> Documents:
    """Return the provider file."""
    return [(providers(task), [])]


def kueue(task: Task) -> Documents:
    """Return the part of Kueue's configuration; it decodes strictly, so nothing else may be in it."""
    old = task.settings.flag("credentials-providers")
    document = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "featureGates": {"MultiKueueClusterProfile": True},
        "multiKueue": {
            "clusterProfile": {"credentialsProviders" if old else "accessProviders": providers(task)["providers"]}
        },
    }
    versions = "0.15 to 0.18" if old else "0.19 and newer"
    comment = (
        f"Kueue {versions}: merge it into controller_manager_config.yaml of ConfigMap kueue-manager-config, restart."
    )
    return [(document, [comment])]


def argocd(task: Task) -> Documents:
    """Return a cluster Secret of Argo CD; `env` is a map there, and config exists from 3.5 on."""
    config = task.exec_config()
    for absent in ("interactiveMode", "provideClusterInfo", "env"):
        config.pop(absent, None)
    if task.variables():
        config["env"] = task.variables()
    if task.cluster_info:
        config["provideClusterInfo"] = True
        if task.config():
            config["config"] = task.config()
    tls = {"insecure": False, **({"caData": task.ca_data()} if task.ca_data() else {})}
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"cluster-{task.cluster}",
            "namespace": task.namespace,
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "type": "Opaque",
        "stringData": {
            "name": task.cluster,
            "server": task.server,
            "config": _json({"execProviderConfig": config, "tlsClientConfig": tls}),
        },
    }
    versions = "3.5 and newer, which send cluster info" if task.cluster_info else "before 3.5: the flags say it all"
    return [(document, [f"Argo CD {versions}.", *_examples(task)])]


def knative(task: Task) -> Documents:
    """Return values of the Knative Operator's chart, which mounts the image below the command's path."""
    plugin = {"name": task.subject.name, "image": task.image, "mountPath": task.mount}
    multicluster = {"enabled": True, "accessProvidersConfig": providers(task), "plugins": [plugin]}
    comment = "Values of the Knative Operator's chart; each command must lie below a mountPath."
    return [({"knative_operator": {"multicluster": multicluster}}, [comment])]


def cluster_profile(task: Task) -> Documents:
    """Return a ClusterProfile that this configuration gives access to."""
    cluster: dict[str, Any] = {"server": task.server}
    if task.ca_data():
        cluster["certificate-authority-data"] = task.ca_data()
    if task.config():
        cluster["extensions"] = [{"name": "client.authentication.k8s.io/exec", "extension": task.config()}]
    document = {
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "kind": "ClusterProfile",
        "metadata": {"name": task.cluster, "namespace": task.namespace},
        "spec": {"displayName": task.cluster, "clusterManager": {"name": "fleet-admin"}},
        "status": {"accessProviders": [{"name": task.name, "cluster": cluster}]},
    }
    return [(document, [f"What a producer writes for a cluster that {task.name} gives access to.", *_examples(task)])]


def _examples(task: Task) -> list[str]:
    """Return the comment on what was not given and so is an example: nobody sees that of a CA in base64."""
    shown = ("server", "ca-data") if task.ca_data() else ("server",)
    flags = [f"--{name}" for name in shown if not task.settings.given(name)]
    return [f"Not given, so examples stand for them: {', '.join(flags)}."] if flags else []


# --- the pod ---


def patches(task: Task) -> Documents:
    """Return strategic merge patches that bring the plugin into the consumer's pods."""
    from execcred._errors import BadRequest

    if not task.consumer.workloads:
        raise BadRequest(
            "combination-impossible",
            "the Knative Operator's chart mounts the image itself",
            "its values (--part config) say it all",
        )
    part, wanted = task.settings.text("part"), task.settings.text("workload")
    since = "Kubernetes 1.35 and newer" if part == "image-volume" else "any Kubernetes"
    comments = []
    if task.consumer.provider_file:
        comments.append(f"kubectl create configmap {CONFIG_MAP} -n {task.namespace} --from-file={FILE_KEY}=FILE")
        comments.append(f"Its container also needs --clusterprofile-provider-file=/config/{FILE_KEY} in args.")
    found: Documents = []
    for kind, name, container in task.consumer.workloads:
        if wanted in ("", name):
            command = f"kubectl patch {kind.lower()} {name} -n {task.namespace} --patch-file FILE"
            found.append((_patch(task, part, kind, name, container), [f"{since}: {command}", *comments]))
    return found


def _patch(task: Task, part: str, kind: str, name: str, container: str) -> dict[str, Any]:
    volume = f"{task.subject.name}-plugin"
    mount = {"name": volume, "mountPath": task.mount, "readOnly": True}
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = [mount]
    spec: dict[str, Any] = {}
    if part == "image-volume":
        volumes.append({"name": volume, "image": {"reference": task.image, "pullPolicy": "IfNotPresent"}})
    else:
        volumes.append({"name": volume, "emptyDir": {"sizeLimit": "256Mi"}})
        spec["initContainers"] = [_installer(task, volume)]
    if task.consumer.provider_file:
        volumes.append({"name": CONFIG_MAP, "configMap": {"name": CONFIG_MAP}})
        mounts.append({"name": CONFIG_MAP, "mountPath": "/config", "readOnly": True})
    spec |= {"containers": [{"name": container, "volumeMounts": mounts}], "volumes": volumes}
    metadata = {"name": name, "namespace": task.namespace}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"template": {"spec": spec}}}


def _installer(task: Task, volume: str) -> dict[str, Any]:
    """Return the initContainer: the image's entrypoint is the plugin, and `install` copies its whole tree."""
    return {
        "name": f"install-{volume}",
        "image": task.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["install", task.mount],
        "volumeMounts": [{"name": volume, "mountPath": task.mount}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "runAsNonRoot": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def rbac(task: Task) -> Documents:
    """Return what a reader needs on the hub: get on the Secrets of the consumer's own namespace, nothing else."""
    from execcred._errors import BadRequest

    if not task.subject.reads_secrets:
        raise BadRequest(
            "combination-impossible",
            f"{task.subject.name} reads nothing on the hub, so it needs no RBAC there",
            "its cloud's IAM decides; the README of the plugin has the least permissions",
        )
    name = f"execcred-{task.subject.name}"
    metadata = {"name": name, "namespace": task.namespace}
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [task.secret()], "verbs": ["get"]}
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    subjects = [
        {"kind": "ServiceAccount", "name": account, "namespace": task.namespace} for account in task.consumer.accounts
    ]
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": subjects,
    }
    comment = "One resourceName for each cluster's Secret; without resourceNames, all of the namespace."
    return [(role, [comment]), (binding, [])]
