"""Bounds the answers that SDKs read: they take any amount into memory, and a pod shares little with its controller.

All SDKs here read by `http.client`, whatever lies between.
"""

from __future__ import annotations

import http.client
import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT = 8 << 20  # bytes of an answer: tokens are kilobytes, a page of clusters not much more
PACKED_LIMIT = 64 << 10  # of a compressed one, which may be a thousand times as large once unpacked


class _Bounded(io.RawIOBase):
    """A socket's bytes, up to a limit."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self.left = LIMIT

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.left <= 0:
            raise ConnectionError("the answer is too large")
        count = self._raw.readinto(buffer)
        self.left -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bounded = _Bounded(self.fp.detach())
        self.fp = io.BufferedReader(self._bounded)

    def begin(self) -> None:
        super().begin()
        if self.headers.get("Content-Encoding", "identity") != "identity":
            self._bounded.left = min(self._bounded.left, PACKED_LIMIT)


def bound() -> None:
    """Bound every answer that this process reads by `http.client` from now on: a larger one is a ConnectionError."""
    http.client.HTTPConnection.response_class = _Response
