"""KEP-4322's two metrics for Prometheus: credentials obtained by provider and outcome, and how long each took."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ._credentials import Observe

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def prometheus_hook(registry: CollectorRegistry | None = None) -> Observe:
    """Return a hook for `build_configuration` that counts in `registry`, the default one if None; make it once.

    `clusterprofile_credentials_total{provider,outcome}`, the outcome being "success" or an error's code, and
    `clusterprofile_credential_seconds{provider}`. Needs the extra `metrics`.
    """
    from prometheus_client import REGISTRY, Counter, Histogram

    where = REGISTRY if registry is None else registry
    count = Counter(
        "clusterprofile_credentials",
        "Credentials asked of access provider plugins, by provider and outcome.",
        ["provider", "outcome"],
        registry=where,
    )
    seconds = Histogram(
        "clusterprofile_credential_seconds",
        "How long an access provider plugin took to answer or to fail.",
        ["provider"],
        registry=where,
        buckets=BUCKETS,
    )

    def observe(provider: str, outcome: str, took: float) -> None:
        count.labels(provider, outcome).inc()
        seconds.labels(provider).observe(took)

    return observe
