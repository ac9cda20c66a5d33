"""Ports that nobody else gets."""

from __future__ import annotations

import socket


def reserved_port() -> int:
    """Return a loopback port where nobody listens and which no other program is given while this process lives.

    A server that is told it may listen there: like Go's and Python's it must set SO_REUSEADDR, as is done here.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port = int(held.getsockname()[1])
    held.detach()  # it stays bound
    return port
