"""Certificates with the standard library alone: when a leaf ends, whether a key is its own, how ssl gets them."""

from __future__ import annotations

from ._errors import ExecCredError
from ._protocol import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ssl import SSLContext
    from typing import IO


def leaf_end(certificate: str, key: str, now: float) -> float:
    """Check a PEM pair and return the leaf's notAfter in epoch seconds; a chain's first certificate is the leaf.

    Raises ExecCredError("certificate-invalid" | "certificate-not-yet-valid").
    """
    import ssl

    load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key)
    try:
        starts, ends = _validity(ssl.PEM_cert_to_DER_cert(_first_block(certificate)))
    except (ValueError, IndexError):
        raise _invalid("its validity cannot be read") from None
    if starts > now:
        raise ExecCredError(
            "certificate-not-yet-valid",
            f"the client certificate is valid from {rfc3339(starts)} to {rfc3339(ends)}, and now it is {rfc3339(now)}",
            "check this machine's clock, or renew the certificate",
        )
    return ends


def load_pair(context: SSLContext, certificate: str, key: str) -> None:
    """Load a PEM pair into `context`, through a file in memory: a disk may not be writable, and keys stay off it.

    Raises ExecCredError("certificate-invalid") when it is not PEM, encrypted, or the key is another certificate's.
    """
    import os

    pem = f"{certificate}\n{key}\n".encode()
    with _memory_file(pem) as file:
        path = f"/proc/self/fd/{file.fileno()}"
        try:
            context.load_cert_chain(path if os.path.exists(path) else file.name, password=lambda: b"")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            reason = getattr(error, "reason", None) or ""
            what = "the key is not the certificate's" if "MISMATCH" in reason else "it is not a PEM certificate and key"
            raise _invalid(what) from None


def _memory_file(content: bytes) -> IO[bytes]:
    import os

    file: IO[bytes]
    if hasattr(os, "memfd_create"):
        file = os.fdopen(os.memfd_create("pem"), "w+b")
    else:  # macOS
        import tempfile

        file = tempfile.NamedTemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(content)
    file.flush()
    return file


def _invalid(what: str) -> ExecCredError:
    return ExecCredError(
        "certificate-invalid",
        f"the client certificate cannot be used: {what}",
        "store the PEM text of the certificate and of its own unencrypted key",
    )


def _first_block(pem: str) -> str:
    head, tail = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    body = pem.partition(head)[2].partition(tail)[0]
    return f"{head}{body}{tail}"


def _validity(der: bytes) -> tuple[float, float]:
    """Return notBefore and notAfter of a DER certificate (RFC 5280 section 4.1)."""
    certificate = _fields(der)[0][1]
    fields = _fields(_fields(certificate)[0][1])
    # version [0] is optional; then come serialNumber, signature, issuer, validity.
    validity = fields[4 if fields[0][0] == 0xA0 else 3][1]
    start, end = [_time(tag, value.decode("ascii")) for tag, value in _fields(validity)[:2]]
    return start, end


def _fields(der: bytes) -> list[tuple[int, bytes]]:
    """Split DER into (tag, content) pairs."""
    fields = []
    while der:
        tag, length, at = der[0], der[1], 2
        if length & 0x80:
            at += length & 0x7F
            length = int.from_bytes(der[2:at])
        fields.append((tag, der[at : at + length]))
        der = der[at + length :]
    return fields


def _time(tag: int, text: str) -> float:
    """Read UTCTime (two-digit year, 50 to 49) or GeneralizedTime."""
    from datetime import datetime

    if tag == 0x17:
        text = ("19" if text >= "50" else "20") + text
    if not text.endswith("Z"):
        raise ValueError(text)  # RFC 5280 allows nothing else
    return datetime.fromisoformat(f"{text[:8]}T{text[8:]}").timestamp()
