"""Stand-ins that speak the wire protocol on loopback: Kubernetes API, faults, proxy, CA."""

from __future__ import annotations

from .faults import FAULTS, FaultyServer
from .kube_server import Asked, Identity, KubeServer
from .pki import Authority, Pair
from .proxy import ConnectProxy

__all__ = ["FAULTS", "Asked", "Authority", "ConnectProxy", "FaultyServer", "Identity", "KubeServer", "Pair"]
