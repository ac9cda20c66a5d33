"""Keeps the kit and all that it starts on loopback, and ends what a plugin left running. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from pathlib import Path

NEW_USER, NEW_NET = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET
SET_CHILD_SUBREAPER = 36
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP, IFF_RUNNING


def keep_on_loopback() -> bool:
    """Move this process, while it has one thread only, into a network that has nothing but loopback.

    Return whether that was possible; where the kernel does not allow it, nothing has changed.
    """
    if not sys.platform.startswith("linux"):
        return False
    # A child tries it first: half of it would leave this process in a strange place.
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            _enter()
            os._exit(0)
        os._exit(1)
    possible = os.waitpid(child, 0)[1] == 0
    if possible:
        _enter()
    return possible


def _enter() -> None:
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_USER | NEW_NET):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, SET_FLAGS, struct.pack("16sh14x", b"lo", UP_AND_RUNNING))


def adopt_orphans() -> None:
    """Become the parent of processes that lose theirs, so that `end_orphans` finds them."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans() -> None:
    """End every process that is left below this one: daemons that a plugin under test has started."""
    while left := _children():
        for each in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(each, 0)


def _children() -> list[int]:
    found: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, path.read_text().split())
    return found
