"""The conformance kit: test vectors, stand-ins on loopback, and what runs any plugin against them.

Neither the layer, nor a plugin, nor another command of the tool imports it. Its needs are the extra `conformance`.
"""

from __future__ import annotations

import os

# On PYTHONPATH it ends a Python process that would leave loopback.
LOOPBACK_ONLY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loopback")
