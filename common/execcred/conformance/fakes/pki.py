"""A throw-away certificate authority: certificates for servers and for clients, good and bad ones."""

from __future__ import annotations

import datetime
import functools
import ssl
import threading
from typing import NamedTuple

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
LOOPBACK = ("localhost", "127.0.0.1", "::1")
HOUR = 3600.0
MAKING = threading.Lock()


class Pair(NamedTuple):
    """A certificate and its key, both PEM text."""

    certificate: str
    key: str


def private_key(kind: str) -> PrivateKey:
    """Return a key, `rsa`, `ec` or `ed25519`; made once, as RSA keys are slow to make."""
    with MAKING:  # else two threads would get two keys, and one of them could verify nothing
        return _made(kind)


@functools.cache
def _made(kind: str) -> PrivateKey:
    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1()) if kind == "ec" else ed25519.Ed25519PrivateKey.generate()


def key_pem(key: PrivateKey) -> str:
    """Return a private key as unencrypted PKCS #8."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def moment(seconds: float) -> datetime.datetime:
    """Return the time `seconds` from now."""
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)


class Authority:
    """A certificate authority that nobody but a test trusts."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self.pem = self._ca.cert_pem.bytes().decode()

    def server_context(
        self, *names: str, starts: float = -HOUR, ends: float = HOUR, clients: bool = False
    ) -> ssl.SSLContext:
        """Return the TLS side of a server for DNS names and IP addresses, valid for seconds from now.

        With `clients`, it asks for a certificate of this authority and goes on without.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued = self._ca.issue_cert(*(names or LOOPBACK), not_before=moment(starts), not_after=moment(ends))
        issued.configure_cert(context)
        if clients:
            context.load_verify_locations(cadata=self.pem)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def client(
        self, user: str, *groups: str, key: str = "ec", starts: float = -HOUR, ends: float = HOUR, chain: bool = False
    ) -> Pair:
        """Return a client certificate for a Kubernetes user and groups, valid for seconds from now.

        With `chain`, the authority's own certificate follows the leaf.
        """
        private = private_key(key)
        signer = serialization.load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        name = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        name += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(name))
            .issuer_name(x509.load_pem_x509_certificate(self.pem.encode()).subject)
            .public_key(private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment(starts))
            .not_valid_after(moment(ends))
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(signer, hashes.SHA256())
        )
        leaf = certificate.public_bytes(serialization.Encoding.PEM).decode()
        return Pair(leaf + self.pem if chain else leaf, key_pem(private))
