"""How long the property tests run: short in `make test`, long in `make fuzz`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "short", max_examples=300, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("short")
