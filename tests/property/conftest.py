"""How long the property tests run: short in `make test`, long in `make fuzz`."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("short", settings.get_profile("steady"), max_examples=300)
settings.load_profile("short")
