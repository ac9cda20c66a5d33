"""Work within a time limit, though it knows none itself: neither DNS nor a slow disk does."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from execcred import Env

    Result = TypeVar("Result")

GRACE = 3.0  # seconds that work may go on beyond its limit: children get time to end


def bounded(work: Callable[[], Result], env: Env) -> Result:
    """Return what `work()` returns, done in a thread that is left behind when it goes on beyond `env`'s deadline.

    Raises what `work` raises, TryAgain("deadline").
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    wait([future], env.remaining() + GRACE)
    if not future.done():
        raise env.late()
    return future.result()
