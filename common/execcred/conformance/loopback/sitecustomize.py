"""Ends any process that would leave loopback; on PYTHONPATH of every executable that a test starts."""

from __future__ import annotations

import os
import sys


def leaves_loopback(event: str, args: tuple[object, ...]) -> str:
    """Return what an audit event would reach beyond loopback, "" when it would not."""
    if event == "socket.getaddrinfo":
        return _foreign(args[0])
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg") and isinstance(args[1], tuple):
        return _foreign(args[1][0])
    if event in ("socket.gethostbyname", "socket.gethostbyaddr"):
        return _foreign(args[0])
    return ""


def _foreign(host: object) -> str:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
    known = ("", "localhost", "::1", "0.0.0.0", "::")  # the last two: where a test's server listens
    return "" if name in known or name.startswith(("127.", "::ffff:127.")) else name


def _end(event: str, args: tuple[object, ...]) -> None:
    if where := leaves_loopback(event, args):
        os.write(2, f"\nleaves loopback: {event} {where}\n".encode())
        os._exit(99)


if __name__ == "sitecustomize":
    sys.addaudithook(_end)
