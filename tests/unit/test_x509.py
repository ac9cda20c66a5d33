"""Client certificates: a pair is checked before it is handed out, and its leaf says when it ends."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from execcred import ExecCredError
from execcred._x509 import leaf_end
from unit.support import NOW

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes as PrivateKey

DAY = 86400.0
EC = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
KEYS: dict[str, PrivateKey] = {
    "RSA": rsa.generate_private_key(65537, 2048),
    "EC": EC,
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
}


def pem(
    key: PrivateKey = EC,
    starts: float = NOW - DAY,
    ends: float = NOW + DAY,
    encryption: KeySerializationEncryption | None = None,
    form: PrivateFormat = PrivateFormat.PKCS8,
) -> tuple[str, str]:
    """Return certificate and key as PEM text."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "reader")])
    at = [datetime.datetime.fromtimestamp(each, datetime.UTC) for each in (starts, ends)]
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(7).not_valid_before(at[0]).not_valid_after(at[1])
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    certificate = builder.sign(key, digest).public_bytes(Encoding.PEM).decode()
    return certificate, key.private_bytes(Encoding.PEM, form, encryption or NoEncryption()).decode()


@pytest.mark.parametrize("kind", KEYS)
def test_a_pair_of_any_common_kind_ends_with_its_certificate(kind: str) -> None:
    assert leaf_end(*pem(KEYS[kind]), NOW) == NOW + DAY


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_both_forms_of_a_key_are_read(form: PrivateFormat) -> None:
    assert leaf_end(*pem(form=form), NOW) == NOW + DAY


def test_the_first_certificate_of_a_chain_is_the_leaf() -> None:
    leaf, key = pem(ends=NOW + DAY)
    issuer, _ = pem(OTHER, ends=NOW + 9 * DAY)
    assert leaf_end(leaf + issuer, key, NOW) == NOW + DAY


def test_text_around_the_pem_blocks_is_harmless() -> None:
    certificate, key = pem()
    assert leaf_end(f"subject: é\n{certificate}\n", f"note\n{key}", NOW) == NOW + DAY


def test_a_date_beyond_2049_which_is_written_in_another_form_is_read() -> None:
    year_2060 = 2_840_140_800.0
    assert leaf_end(*pem(ends=year_2060), NOW) == year_2060


def test_a_certificate_that_has_ended_is_still_read_so_that_the_error_can_say_when() -> None:
    assert leaf_end(*pem(ends=NOW - 1), NOW) == NOW - 1


def test_a_certificate_of_tomorrow_is_refused_with_both_dates() -> None:
    with pytest.raises(ExecCredError) as caught:
        leaf_end(*pem(starts=NOW + DAY, ends=NOW + 2 * DAY), NOW)
    assert caught.value.code == "certificate-not-yet-valid"
    for date in ("2027-01-15T08:00:00Z", "2027-01-16T08:00:00Z", "2027-01-17T08:00:00Z"):
        assert date in caught.value.message


CERTIFICATE, KEY = pem()
ENCRYPTED = pem(encryption=BestAvailableEncryption(b"\0"))[1]
OLD_ENCRYPTED = pem(encryption=BestAvailableEncryption(b"x"), form=PrivateFormat.TraditionalOpenSSL)[1]
PUBLIC = CERTIFICATE.replace("CERTIFICATE", "PUBLIC KEY")
REFUSED = {
    "another certificate's key": (CERTIFICATE, pem(OTHER)[1], "the key is not the certificate's"),
    "another kind of key": (CERTIFICATE, pem(KEYS["RSA"])[1], "the key is not the certificate's"),
    "encrypted key, even with a password that OpenSSL guesses": (CERTIFICATE, ENCRYPTED, "the key is encrypted"),
    "encrypted key of the old form": (CERTIFICATE, OLD_ENCRYPTED, "the key is encrypted"),
    "swapped": (KEY, CERTIFICATE, "not a PEM"),
    "no key": (CERTIFICATE, "none", "not a PEM"),
    "key beside the certificate only": (CERTIFICATE + KEY, "none", "not a PEM"),
    "certificate beside the key only": ("none", CERTIFICATE + KEY, "not a PEM"),
    "base64 without its frame": (CERTIFICATE.split("-----")[2], KEY, "not a PEM"),
    "a public key": (PUBLIC, KEY, "not a PEM"),
    "damaged": (CERTIFICATE.replace("MII", "AAA"), KEY, "not a PEM"),
    "cut off": (CERTIFICATE[:200], KEY, "not a PEM"),
    "NUL": ("\0", "\0", "not a PEM"),
    "empty frame": ("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", KEY, "not a PEM"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_client_could_not_use_is_refused_and_not_repeated(case: str) -> None:
    certificate, key, why = REFUSED[case]
    with pytest.raises(ExecCredError) as caught:
        leaf_end(certificate, key, NOW)
    assert caught.value.code == "certificate-invalid"
    assert why in caught.value.message
    assert "MII" not in f"{caught.value.message} {caught.value.hint}"
