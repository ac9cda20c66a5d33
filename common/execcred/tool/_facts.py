"""What the tool knows of plugins and consumers: names, places, and what an example of each needs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from execcred import Plugin

# Hosts that the clouds give to clusters only; globs cross dots.
EKS_HOSTS = "*.eks.amazonaws.com,*.eks.amazonaws.com.cn,*.eks-cluster.*.api.aws"
GKE_HOSTS = "connectgateway.googleapis.com,*-connectgateway.googleapis.com,*.gke.goog"
AKS_HOSTS = "*.azmk8s.io,*.cx.prod.service.azk8s.cn,*.cx.aks.containerservice.azure.us"
CLOUDS = ("eks", "gke", "aks")


class Subject:
    """A plugin as examples show it; `{cluster}` stands for the cluster's name, `{region}` for an EKS cluster's region.

    settings: what each example sets; config: the ClusterProfile's extension for it; naming: flags that say the same
    where no config arrives; server: of the example's cluster.
    """

    __slots__ = ("config", "name", "naming", "reads_secrets", "server", "settings")

    def __init__(
        self, name: str, settings: dict[str, str], config: dict[str, str], naming: dict[str, str], server: str
    ) -> None:
        self.name = name
        self.settings = settings
        self.config = config
        self.naming = naming
        self.server = server
        self.reads_secrets = name not in CLOUDS

    def plugin(self) -> Plugin:
        """Return the plugin itself, for its settings table."""
        from importlib import import_module

        plugin: Plugin = import_module(f"execcred_{self.name.replace('-', '_')}").PLUGIN
        return plugin


SUBJECTS = {
    each.name: each
    for each in (
        Subject(
            "secretreader",
            {},
            {"clusterName": "{cluster}"},
            {"cluster-name": "{cluster}"},
            "https://{cluster}.example:6443",
        ),
        Subject(
            "kubeconfig-secretreader",
            {},
            {"name": "{cluster}-kubeconfig", "key": "value"},
            {"secret-name": "{cluster}-kubeconfig", "key": "value"},
            "https://{cluster}.example:6443",
        ),
        Subject(
            "eks",
            {"allow-server": EKS_HOSTS},
            {"clusterName": "{cluster}", "region": "{region}"},
            {"cluster-name": "{cluster}", "region": "{region}"},
            "https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-central-1.eks.amazonaws.com",
        ),
        Subject(
            "gke",
            {"allow-server": GKE_HOSTS},
            {},
            {},
            "https://connectgateway.googleapis.com/v1/projects/123456789012/locations/global/gkeMemberships/{cluster}",
        ),
        Subject(
            "aks",
            {"login": "workloadidentity", "allow-server": AKS_HOSTS},
            {},
            {},
            "https://{cluster}-abcd1234.hcp.westeurope.azmk8s.io:443",
        ),
    )
}


def plugin_of(command: str) -> str:
    """Return the name of this suite's plugin that a command runs, "" for another's."""
    file = command.rpartition("/")[2]
    return next((name for name in SUBJECTS if file.startswith(f"{name}-plugin")), "")


class Consumer:
    """Who runs a plugin: where it mounts images (`{plugin}` is filled in), its namespace, service accounts, workloads.

    A workload is (kind, name, container); provider_file tells whether its pod mounts one from a ConfigMap.
    """

    __slots__ = ("accounts", "mount", "namespace", "provider_file", "workloads")

    def __init__(
        self,
        mount: str,
        namespace: str,
        accounts: tuple[str, ...],
        workloads: tuple[tuple[str, str, str], ...],
        provider_file: bool = False,
    ) -> None:
        self.mount = mount
        self.namespace = namespace
        self.accounts = accounts
        self.workloads = workloads
        self.provider_file = provider_file


# Any controller on the access library: names to be replaced by one's own.
_OWN = ("fleet", ("controller",), (("Deployment", "controller", "manager"),), True)
CONSUMERS = {
    "generic": Consumer("/plugins", *_OWN),
    "kueue": Consumer(
        "/plugins",
        "kueue-system",
        ("kueue-controller-manager",),
        (("Deployment", "kueue-controller-manager", "manager"),),
    ),
    "argocd": Consumer(
        "/plugins/{plugin}",
        "argocd",
        ("argocd-application-controller", "argocd-server"),
        (
            ("StatefulSet", "argocd-application-controller", "argocd-application-controller"),
            ("Deployment", "argocd-server", "argocd-server"),
        ),
    ),
    "multicluster-runtime": Consumer("/plugin", *_OWN),
    # The chart mounts the images itself.
    "knative": Consumer("/access-plugins/{plugin}", "knative-operator", ("knative-operator",), ()),
    "sveltos": Consumer(
        "/plugins",
        "projectsveltos",
        ("clusterinventory-controller",),
        (("Deployment", "clusterinventory-controller", "manager"),),
        True,
    ),
    "ocm": Consumer("/plugins", *_OWN),
}
