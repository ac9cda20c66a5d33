"""Access to clusters by their ClusterProfiles, for controllers in Python: which plugin, its run, a client for it.

Nothing here but `build_configuration` needs the official `kubernetes` client, and nothing imports it before.
"""

from __future__ import annotations

from ._metrics import prometheus_hook
from ._plugin import TIMEOUT, Answer, run_plugin
from ._profile import Cluster, ExecSpec, is_ready, select
from ._provider_file import Provider, ProviderFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubernetes.client import Configuration

    from ._credentials import Observe

__all__ = [
    "TIMEOUT",
    "Answer",
    "Cluster",
    "ExecSpec",
    "Provider",
    "ProviderFile",
    "build_configuration",
    "is_ready",
    "prometheus_hook",
    "run_plugin",
    "select",
]


def build_configuration(
    profile: Any, providers: ProviderFile, *, timeout: float = TIMEOUT, observe: Observe | None = None
) -> Configuration:
    """Return what `kubernetes.client.ApiClient` needs to reach a ClusterProfile's cluster; runs nothing yet.

    The plugin, which may take `timeout` seconds, runs when a client is made or asks, at the end of its credential and
    after a 401, once for all clients and threads of equal settings; its errors reach the caller as they are.
    `observe(provider, outcome, seconds)` is called after each run; it is one of these settings, so make it once.
    Needs the extra `access`.
    Raises what `select` raises.
    """
    spec = select(profile, providers)
    from ._configuration import build

    return build(spec, timeout, observe)
