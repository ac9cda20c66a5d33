"""Access to clusters by their ClusterProfiles, for controllers in Python: which plugin, its run, a client for it.

Nothing here but `build_configuration` needs the official `kubernetes` client, and nothing imports it before.
"""

from __future__ import annotations

from ._plugin import TIMEOUT, Answer, run_plugin
from ._profile import Cluster, ExecSpec, is_ready, select
from ._provider_file import Provider, ProviderFile

__all__ = [
    "TIMEOUT",
    "Answer",
    "Cluster",
    "ExecSpec",
    "Provider",
    "ProviderFile",
    "is_ready",
    "run_plugin",
    "select",
]
