"""The `execcred` tool: what admins and users of the plugins run. Neither the layer nor a plugin imports it."""

from __future__ import annotations

from ._main import main

__all__ = ["main"]
