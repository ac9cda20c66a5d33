"""Client certificates with the standard library alone: how ssl gets them, when one ends, whether a key is its own."""

from __future__ import annotations

import os

from ._errors import ExecCredError
from ._protocol import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ssl import SSLContext
    from typing import IO, Any


def leaf_end(certificate: str, key: str, now: float) -> float:
    """Check a PEM pair and return the leaf's notAfter in epoch seconds; a chain's first certificate is the leaf.

    Raises ExecCredError("certificate-invalid" | "certificate-not-yet-valid").
    """
    import ssl

    load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key)
    fields = leaf_fields(certificate)
    try:
        starts, ends = [float(ssl.cert_time_to_seconds(fields[name])) for name in ("notBefore", "notAfter")]
    except ValueError:  # OpenSSL's word for such a one is "Bad time value"
        raise _unusable("its dates cannot be read") from None
    if starts > now:
        raise ExecCredError(
            "certificate-not-yet-valid",
            f"the client certificate is valid from {rfc3339(starts)} to {rfc3339(ends)}, and now it is {rfc3339(now)}",
            "check this machine's clock, or renew the certificate",
        )
    return ends


def leaf_fields(certificate: str) -> dict[str, Any]:
    """Return a PEM certificate as `ssl.SSLSocket.getpeercert` does.

    Raises ExecCredError("certificate-invalid").
    """
    import ssl

    try:
        with memory_file(certificate) as file:
            # The standard library shows the fields of a certificate without a connection nowhere else.
            fields: dict[str, Any] = ssl._ssl._test_decode_cert(memory_path(file))  # type: ignore[attr-defined]
    except (OSError, ValueError):
        raise _unusable("its dates cannot be read") from None
    return fields


def load_pair(context: SSLContext, certificate: str, key: str) -> None:
    """Load a PEM pair into `context`, through a file in memory: a disk may not be writable, and keys stay off it.

    Raises ExecCredError("certificate-invalid") when it is not PEM, encrypted, or the key is another certificate's.
    """
    if "ENCRYPTED" in key:
        raise _unusable("the key is encrypted")
    # Two files, as clients take the certificate from the one text and the key from the other.
    with memory_file(certificate) as chain, memory_file(key) as own:
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(memory_path(chain), memory_path(own), password=lambda: b"")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            # The second is OpenSSL's word for a key of another algorithm.
            other = getattr(error, "reason", None) in ("KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
            what = "the key is not the certificate's" if other else "it is not a PEM certificate and key"
            raise _unusable(what) from None


def _unusable(what: str) -> ExecCredError:
    return ExecCredError(
        "certificate-invalid",
        f"the client certificate cannot be used: {what}",
        "store the PEM text of the certificate and of its own unencrypted key",
    )


def memory_file(text: str) -> IO[bytes]:
    """Return an open file that holds `text`, in memory where the system can (Linux); its caller closes it."""
    file: IO[bytes]
    if hasattr(os, "memfd_create"):
        file = os.fdopen(os.memfd_create("pem"), "w+b")
    else:  # macOS
        import tempfile

        file = tempfile.NamedTemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(text.encode("utf-8", "replace"))
    file.flush()
    return file


def memory_path(file: IO[bytes]) -> str:
    """Return a path by which OpenSSL, which takes no open files, reads such a file."""
    path = f"/proc/self/fd/{file.fileno()}"
    return path if os.path.exists(path) else str(file.name)
