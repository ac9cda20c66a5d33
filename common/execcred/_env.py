"""The outside world of one run, as an object that tests can replace: variables, clock, files, network, deadline."""

from __future__ import annotations

import _thread
import os
import time

from ._errors import TryAgain, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .http import Response, Server

TIMEOUT, INTERACTIVE_TIMEOUT = 8.0, 300.0


class Env:
    """What a plugin may know of the world beyond its request and settings."""

    def __init__(self, variables: Mapping[str, str], *, terminal: bool = False, prefix: str = "") -> None:
        self.variables = variables
        self.terminal = terminal  # may a person be asked?
        self.step = "starting"
        self.prefix = prefix
        self._end = time.monotonic() + TIMEOUT
        self._verbose = False
        self.last_word = _thread.allocate_lock()

    def now(self) -> float:
        """Return epoch seconds."""
        return time.time()

    def read_file(self, path: str) -> bytes:
        """Return a file's content, at most 4 MiB; raises OSError."""
        with open(path, "rb") as file:
            return file.read(4 << 20)

    def get(self, server: Server, path: str, headers: Mapping[str, str], limit: int) -> Response:
        """Send one HTTPS GET; see `execcred.http.send`."""
        from .http import send

        return send(server, path, headers, self.remaining, limit)

    def post(self, server: Server, path: str, headers: Mapping[str, str], limit: int, body: bytes) -> Response:
        """Send one HTTPS POST; see `execcred.http.send`."""
        from .http import send

        return send(server, path, headers, self.remaining, limit, body=body)

    def tame(self, *metadata: str) -> None:
        """Tame children and logs of an SDK, and keep metadata servers (also `metadata`: URLs, hosts) off any proxy.

        Call it before the SDK is imported.
        """
        from ._children import tame

        tame(*metadata)

    def start(self, seconds: float, verbose: bool) -> None:
        """Set the deadline and whether debug lines are written."""
        self._end = time.monotonic() + seconds
        self._verbose = verbose

    def remaining(self) -> float:
        """Return the seconds left until the deadline."""
        return self._end - time.monotonic()

    def late(self) -> TryAgain:
        """Return the error of a run that has come to its deadline."""
        return TryAgain("deadline", f"gave up after the deadline while {self.step}", "try again, or raise --timeout")

    def doing(self, step: str) -> None:
        """Name what happens now; the deadline's error repeats it."""
        self.step = step
        self.debug(step)

    def debug(self, text: str) -> None:
        """Write a line to stderr at --log-level debug."""
        if self._verbose:
            stderr(f"{self.prefix}debug: {printable(text, 500)}\n")

    def warn(self, text: str) -> None:
        """Write a line to stderr: for what an admin asked to be warned of, nothing else."""
        stderr(f"{self.prefix}warning: {printable(text, 500)}\n")


def stderr(text: str) -> None:
    """Write to stderr at once, whatever became of it."""
    try:
        os.write(2, text.encode("utf-8", "backslashreplace"))
    except OSError:
        return  # nobody is left to tell
