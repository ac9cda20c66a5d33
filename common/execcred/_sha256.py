"""SHA-256 and its HMAC from the interpreter itself: hashlib loads OpenSSL, a tenth of a cache hit's time and 4 MiB."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:  # an interpreter may be built without
        from hashlib import sha256

BLOCK = 64  # bytes
INNER, OUTER = [bytes(byte ^ mask for byte in range(256)) for mask in (0x36, 0x5C)]


def hexdigest(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def hmac(key: bytes, message: str) -> bytes:
    """Return HMAC-SHA-256 (RFC 2104) of a message."""
    block = (sha256(key).digest() if len(key) > BLOCK else key).ljust(BLOCK, b"\0")
    inner = sha256(block.translate(INNER) + message.encode()).digest()
    return sha256(block.translate(OUTER) + inner).digest()
