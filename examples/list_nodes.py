"""A controller that watches ClusterProfiles on a hub and lists the nodes of each cluster that is ready.

    python examples/list_nodes.py --clusterprofile-provider-file providers.json --namespace fleet

The hub is that of KUBECONFIG, or in a pod that of its service account, which needs get, list and watch of
ClusterProfiles. Needs the extras `access` and `metrics`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from kubernetes import client, config, watch
from prometheus_client import start_http_server
from urllib3.exceptions import HTTPError

from execcred import ExecCredError
from execcred.access import ProviderFile, build_configuration, is_ready, prometheus_hook

if TYPE_CHECKING:
    from collections.abc import Iterator

PROFILES = {"group": "multicluster.x-k8s.io", "version": "v1alpha1", "plural": "clusterprofiles"}
BEGIN = {"resource_version": "0", "timeout_seconds": 300}  # what the hub has at hand, then what is new; then again


def events(namespace: str) -> Iterator[dict[str, Any]]:
    """Yield what becomes of ClusterProfiles, for ever; all that are there come again now and then."""
    profiles = client.CustomObjectsApi().list_namespaced_custom_object
    while True:
        try:
            yield from watch.Watch().stream(profiles, namespace=namespace, **PROFILES, **BEGIN)
        except (client.ApiException, HTTPError) as error:
            print(f"the hub: {error}", file=sys.stderr)
            time.sleep(1)


def nodes(profile: dict[str, Any], providers: ProviderFile, observe: Any) -> str:
    """Return the names of a cluster's nodes, or why they are not to be had."""
    try:
        if not is_ready(profile):
            return "not ready: ControlPlaneHealthy is not True"
        with client.ApiClient(build_configuration(profile, providers, observe=observe)) as api:
            listing: Any = client.CoreV1Api(api).list_node(_request_timeout=10)
    except ExecCredError as error:
        return f"error: {error} [{error.code}]; hint: {error.hint}"
    except (client.ApiException, HTTPError) as error:
        return f"error: {getattr(error, 'reason', None) or error}"
    return ", ".join([each.metadata.name for each in listing.items]) or "no nodes"


def main() -> None:
    """Say of each cluster what is new."""
    parser = argparse.ArgumentParser(description="List the nodes of every ready cluster.")
    parser.add_argument("--clusterprofile-provider-file", default="clusterprofile-provider-file.json")
    parser.add_argument("--namespace", default="default", help="namespace of the ClusterProfiles")
    parser.add_argument("--metrics-port", type=int, help="serve Prometheus metrics there")
    parser.add_argument("--metrics-address", default="127.0.0.1")
    options = parser.parse_args()
    providers = ProviderFile.load(options.clusterprofile_provider_file)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
        config.load_incluster_config()
    else:
        config.load_kube_config()
    observe = prometheus_hook()
    if options.metrics_port:
        start_http_server(options.metrics_port, options.metrics_address)
    for event in events(options.namespace):
        profile = event["object"]
        line = "gone" if event["type"] == "DELETED" else nodes(profile, providers, observe)
        print(f"{profile['metadata']['name']}: {line}", flush=True)


if __name__ == "__main__":
    main()
