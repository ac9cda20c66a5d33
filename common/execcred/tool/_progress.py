"""Says on a terminal what is going on, in one line that is gone afterwards; elsewhere nothing."""

from __future__ import annotations

import contextlib
import os

from execcred._env import stderr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CLEAR = "\r\x1b[K"


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Show `text` on stderr while the body runs, if that is a terminal."""
    terminal = os.isatty(2)
    if terminal:
        stderr(f"{CLEAR}{text} …")
    try:
        yield
    finally:
        if terminal:
            stderr(CLEAR)
