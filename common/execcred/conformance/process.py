"""One run of a command under test: bounded in time and output, and nothing of it survives."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LIMIT = 60.0  # seconds
OUTPUT_LIMIT = 4 << 20  # bytes of each stream that are kept; the rest is read and dropped
LATE = 1.0  # seconds that a late reader waits
GRACE = 2.0  # seconds in which the streams of a process that has ended must end, too


class Done(NamedTuple):
    """What a run left: exit status (negative: the signal), stdout, stderr, seconds; why it is no whole run."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    problem: str = ""
    survivors: bool = False  # processes of its group were left


class Streams:
    """Reads stdout and stderr side by side."""

    def __init__(self, child: subprocess.Popen[bytes], reader: str) -> None:
        self.child = child
        self.kept = {"out": bytearray(), "err": bytearray()}
        self.selector = selectors.DefaultSelector()
        self._watch(child.stderr, "err")
        self.late = time.monotonic() + LATE if reader == "late" else 0.0
        if reader == "eager":
            self._watch(child.stdout, "out")

    def _watch(self, stream: IO[bytes] | None, name: str) -> None:
        if stream:  # which both are
            self.selector.register(stream, selectors.EVENT_READ, name)

    def read(self, seconds: float) -> None:
        """Read what comes within `seconds`."""
        if self.late and time.monotonic() >= self.late:
            self.late = 0.0
            self._watch(self.child.stdout, "out")
        for key, _ in self.selector.select(seconds):
            part = os.read(key.fd, 1 << 16)
            kept = self.kept[key.data]
            kept += part[: OUTPUT_LIMIT - len(kept)]
            if not part:
                self.selector.unregister(key.fileobj)

    def ended(self) -> bool:
        return not self.late and not self.selector.get_map()

    def close(self) -> None:
        self.selector.close()
        for stream in (self.child.stdout, self.child.stderr, self.child.stdin):
            if stream:
                stream.close()


def run(
    words: Sequence[str],
    variables: Mapping[str, str],
    folder: Path,
    *,
    open_stdin: bool = False,
    reader: str = "eager",
    limit: float = LIMIT,
) -> Done:
    """Run a command with nothing but `variables` in `folder`, and end it and its group after `limit` seconds.

    `reader` of stdout is eager, late or never there; with `open_stdin`, stdin is a pipe that nobody writes to.
    """
    started = time.monotonic()
    try:
        child = subprocess.Popen(
            words,
            stdin=subprocess.PIPE if open_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(variables),
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        return Done(127, "", "", 0.0, f"it did not start: {why}")
    streams = Streams(child, reader)
    try:
        problem = _problem(child, limit) if _follow(child, streams, started + limit) else ""
    finally:
        survivors = child.poll() is not None and _signal(child.pid, 0)
        _signal(child.pid, signal.SIGKILL)
        child.wait()
        streams.close()
    stdout, stderr = [bytes(streams.kept[name]).decode(errors="replace") for name in ("out", "err")]
    return Done(child.returncode, stdout, stderr, time.monotonic() - started, problem, survivors)


def _follow(child: subprocess.Popen[bytes], streams: Streams, end: float) -> bool:
    """Read until process and streams have ended; return whether the time was over before."""
    gone = 0.0
    while not (streams.ended() and child.poll() is not None):
        now = time.monotonic()
        gone = gone or (now if child.poll() is not None else 0.0)
        if now >= end or (gone and now >= gone + GRACE):
            return True
        if streams.ended():
            with suppress(subprocess.TimeoutExpired):
                child.wait(min(0.2, end - now))
        else:
            streams.read(min(0.05, end - now))
    return False


def _problem(child: subprocess.Popen[bytes], limit: float) -> str:
    if child.poll() is None:
        return f"it did not end within {limit:g} s"
    return "a child of it keeps stdout or stderr open, and client-go waits for their end"


def _signal(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
