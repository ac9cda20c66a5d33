"""One credential for each cluster: had from the plugin when it is first needed, and again at its end or after a 401."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from concurrent.futures import Future

from execcred._errors import ExecCredError, TryAgain

from ._plugin import run_plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from execcred._protocol import Credential

    from ._profile import ExecSpec

    Observe = Callable[[str, str, float], object]  # provider, outcome ("success" or an error's code), seconds

PAUSE = 1.0  # seconds in which neither a failure nor a 401 makes the plugin run again
SHARED_LIMIT = 10_000  # clusters; the one that was not asked for longest goes
_shared: OrderedDict[tuple[Any, ...], Credentials] = OrderedDict()
_shared_lock = threading.Lock()
_all: weakref.WeakSet[Credentials] = weakref.WeakSet()


class Credentials:
    """The credential of one cluster, for any number of threads: whoever needs a new one runs the plugin for all."""

    def __init__(self, spec: ExecSpec, timeout: float, observe: Observe | None) -> None:
        self.spec = spec
        self._timeout = timeout
        self._observe = observe
        self._used = threading.local()
        self.forget()
        _all.add(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Credentials:
        return self  # copies of a client's configuration share it

    def forget(self) -> None:
        """Begin anew, without a credential."""
        self._lock = threading.Lock()
        self._last: Future[Credential] | None = None  # under way, had, or failed
        self._since = 0.0  # when it was had, or failed (monotonic)
        self._stale = False

    def get(self) -> Credential:
        """Return the credential, new if need be; the caller's thread is noted to use it.

        Raises what `run_plugin` raises; all that wait for one run get its error.
        """
        with self._lock:
            last = self._last
            mine = last is None or self._over(last)
            if last is None or mine:
                last = self._last = Future()
                self._stale = False
        if mine:
            self._run(last)
        error = last.exception()  # which waits
        if isinstance(error, ExecCredError):
            raise _again(error)
        credential = last.result()
        self._used.credential = credential
        return credential

    def refuse(self) -> None:
        """Take a 401 for the end of the credential that the caller's thread used: the next `get` runs the plugin.

        A credential that another thread has renewed since stays, and so does one that is hardly a second old.
        """
        with self._lock:
            last = self._last
            if last is None or not last.done() or last.exception():
                return
            current = last.result()
            if getattr(self._used, "credential", current) is current and time.monotonic() - self._since >= PAUSE:
                self._stale = True

    def _over(self, last: Future[Credential]) -> bool:
        if not last.done():
            return False
        if last.exception():
            return time.monotonic() - self._since >= PAUSE
        expires = last.result().expires
        return self._stale or (expires is not None and time.time() >= expires)

    def _run(self, future: Future[Credential]) -> None:
        start = time.monotonic()
        try:
            credential = run_plugin(self.spec, timeout=self._timeout).credential
        except ExecCredError as error:
            self._since = time.monotonic()
            future.set_exception(error)
            self._tell(error.code, start)
        except BaseException:  # those who wait must not wait for ever
            self._since = time.monotonic() - PAUSE
            future.set_exception(TryAgain("interrupted", "the run of the plugin was interrupted", "try again"))
            raise
        else:
            self._since = time.monotonic()
            future.set_result(credential)
            self._tell("success", start)

    def _tell(self, outcome: str, start: float) -> None:
        if self._observe:
            try:
                self._observe(self.spec.provider, outcome, time.monotonic() - start)
            except Exception:  # a fault of metrics must not cost the cluster
                logging.getLogger("execcred.access").exception("the hook for metrics failed")


def _again(error: ExecCredError) -> ExecCredError:
    """Return the same error for one more caller: a single object's traceback would grow with each."""
    same = type(error)(error.code, error.message, error.hint)
    for note in getattr(error, "__notes__", ()):
        same.add_note(note)
    return same


def shared_credentials(spec: ExecSpec, timeout: float, observe: Observe | None) -> Credentials:
    """Return the one object for equal arguments: a client that is built anew runs no plugin."""
    key = (spec, timeout, observe)
    with _shared_lock:
        if key not in _shared:
            _shared[key] = Credentials(*key)
        _shared.move_to_end(key)
        while len(_shared) > SHARED_LIMIT:
            _shared.popitem(last=False)
        return _shared[key]


def _after_fork() -> None:
    """In a forked child, wait for no run and no lock of a thread that is not there."""
    global _shared_lock  # noqa: PLW0603  # the old one may be held for ever
    _shared_lock = threading.Lock()
    for each in _all:
        each.forget()


os.register_at_fork(after_in_child=_after_fork)
