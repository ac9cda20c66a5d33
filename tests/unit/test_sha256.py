"""The layer's SHA-256 and HMAC are those of the standard library."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from execcred import _sha256


@given(st.binary(max_size=200), st.text())
def test_hmac_is_that_of_the_standard_library_for_keys_of_any_length(key: bytes, message: str) -> None:
    assert _sha256.hmac(key, message) == hmac.digest(key, message.encode(), "sha256")


@given(st.text())
def test_a_text_is_hashed_as_utf_8(text: str) -> None:
    assert _sha256.hexdigest(text) == hashlib.sha256(text.encode()).hexdigest()


def test_an_interpreter_without_its_own_hashes_uses_openssl() -> None:
    code = (
        "import sys; sys.modules |= {'_sha2': None, '_sha256': None}; from execcred._sha256 import hexdigest;"
        "print(hexdigest('')[:8], '_hashlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "e3b0c442 True\n"
