"""What a program shows on a terminal."""

from __future__ import annotations

import os


def shown(terminal: int) -> bytes:
    """Return all that was written to a pseudo-terminal whose other end is closed, and close it."""
    text = b""
    try:
        while part := os.read(terminal, 65536):  # the kernel hands it on in pieces, when it has time
            text += part
    except OSError:  # which is how Linux tells the end
        return text
    finally:
        os.close(terminal)
    return text
