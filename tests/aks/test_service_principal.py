"""Service principals: secret, PEM, PFX, chain; and Azure Pipelines' service connections."""

from __future__ import annotations

import base64
import datetime
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from aks.plugin import run_plugin, status_of
from execcred import Env, ExecCredError
from execcred._protocol import jwt_claims
from execcred._run import respond
from execcred.conformance.fakes.azure import AKS, CLIENT, SECRET, TENANT, Asked, Entra, federated, refusal
from execcred.conformance.fakes.pki import private_key
from execcred_aks import PLUGIN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FLAGS = ("--login", "spn", "--client-id", CLIENT, "--tenant-id", TENANT)
KEY = private_key("rsa")
assert isinstance(KEY, rsa.RSAPrivateKey)
PASSWORD = b"pfx-password"


def certificate(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = KEY) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sp")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )


CERTIFICATE = certificate()
PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


def pem(protection: serialization.KeySerializationEncryption) -> bytes:
    return KEY.private_bytes(PEM, PKCS8, protection) + CERTIFICATE.public_bytes(PEM)


def pfx(protection: serialization.KeySerializationEncryption) -> bytes:
    return pkcs12.serialize_key_and_certificates(b"sp", KEY, CERTIFICATE, None, protection)


OPEN, CLOSED = serialization.NoEncryption(), serialization.BestAvailableEncryption(PASSWORD)
FILES: dict[str, tuple[Callable[[serialization.KeySerializationEncryption], bytes], bool]] = {
    "PEM": (pem, False),
    "PEM with password": (pem, True),
    "PFX": (pfx, False),
    "PFX with password": (pfx, True),
}


@pytest.fixture
def cert_file(tmp_path: Path) -> Path:
    path = tmp_path / "sp.pem"
    path.write_bytes(pem(OPEN))
    return path


def test_a_secret_makes_two_calls_and_reaches_only_the_form(entra: Entra, base: dict[str, str]) -> None:
    """OpenID metadata, then the token; the secret goes into the body alone."""
    answer = run_plugin(*FLAGS, env={**base, "AZURE_CLIENT_SECRET": SECRET}).credential
    assert jwt_claims(answer["token"])["aud"] == AKS
    assert [asked.method for asked in entra.asked] == ["GET", "POST"]
    assert entra.tokens[0].form["client_secret"] == SECRET
    assert all(SECRET not in asked.path for asked in entra.asked)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("chain", [False, True])
def test_each_kind_of_certificate_file_signs_the_assertion(
    entra: Entra, base: dict[str, str], cert_file: Path, name: str, chain: bool
) -> None:
    """Entra ID verifies the signature; the chain is sent only when asked."""
    make, locked = FILES[name]
    cert_file.write_bytes(make(CLOSED if locked else OPEN))
    entra.certificate_key = KEY.public_key()
    flags = ["--client-certificate", str(cert_file), *(["--send-certificate-chain"] if chain else [])]
    env = {**base, "AZURE_CLIENT_CERTIFICATE_PASSWORD": PASSWORD.decode()} if locked else base
    answer = status_of(respond(PLUGIN, [*FLAGS, *flags], Env(env)))
    assert jwt_claims(answer["token"])["aud"] == AKS
    assert ("x5c" in entra.assertion_header) == chain
    if chain:
        der = base64.b64decode(entra.assertion_header["x5c"][0])
        assert der == CERTIFICATE.public_bytes(serialization.Encoding.DER)


def _ec_pem() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(PEM, PKCS8, OPEN) + certificate(key).public_bytes(PEM)


BAD_FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "garbage": (lambda: b"LEAKED", ""),
    "empty": (lambda: b"", ""),
    "PFX, wrong password": (lambda: pfx(CLOSED), "LEAKED"),
    "PFX, no password": (lambda: pfx(CLOSED), ""),
    "PEM, wrong password": (lambda: pem(CLOSED), "LEAKED"),
    "PEM, no password": (lambda: pem(CLOSED), ""),
    "key alone": (lambda: KEY.private_bytes(PEM, PKCS8, OPEN), ""),
    "certificate alone": (lambda: CERTIFICATE.public_bytes(PEM), ""),
    "not RSA": (_ec_pem, ""),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_certificate_file_is_told_by_its_path(
    entra: Entra, base: dict[str, str], cert_file: Path, name: str
) -> None:
    """Neither content nor password is shown, and nobody is asked."""
    make, password = BAD_FILES[name]
    cert_file.write_bytes(make())
    env = {**base, **({"AZURE_CLIENT_CERTIFICATE_PASSWORD": password} if password else {})}
    with pytest.raises(ExecCredError) as caught:
        respond(PLUGIN, [*FLAGS, "--client-certificate", str(cert_file)], Env(env))
    assert caught.value.code == "client-certificate-invalid"
    assert str(cert_file) in caught.value.message
    assert "LEAKED" not in f"{caught.value.message}{caught.value.hint}"
    assert entra.asked == []


def test_a_missing_certificate_file_is_told(base: dict[str, str], cert_file: Path) -> None:
    """The reason is the system's."""
    cert_file.unlink()
    told = run_plugin(*FLAGS, "--client-certificate", str(cert_file), env=base).failed(1, "file-unreadable")
    assert "No such file" in told


def test_a_certificate_that_the_application_does_not_know_is_told(
    entra: Entra, base: dict[str, str], cert_file: Path
) -> None:
    """AADSTS700027 has its own remedy."""
    entra.certificate_key = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    done = run_plugin(*FLAGS, "--client-certificate", str(cert_file), env=base)
    assert "--send-certificate-chain" in done.failed(1, "client-certificate-refused")


def test_a_wrong_secret_names_the_sources_of_the_mixture(entra: Entra, base: dict[str, str]) -> None:
    """An id of one family with a secret of another is the usual cause, so both sources are told."""
    env = {**base, "AZURE_CLIENT_ID": CLIENT, "AZURE_TENANT_ID": TENANT, "ARM_CLIENT_SECRET": "LEAKED"}
    told = run_plugin("--login", "spn", env=env).failed(1, "client-secret-wrong")
    assert "client-id from variable AZURE_CLIENT_ID" in told
    assert "client-secret from variable ARM_CLIENT_SECRET" in told


def test_secret_and_certificate_of_the_same_rank_are_refused(base: dict[str, str], cert_file: Path) -> None:
    """Two variables conflict; a flag settles it."""
    env = {**base, "AZURE_CLIENT_SECRET": SECRET, "AZURE_CLIENT_CERTIFICATE_PATH": str(cert_file)}
    told = run_plugin(*FLAGS, env=env).failed(2, "settings-conflict")
    assert "client-secret (variable AZURE_CLIENT_SECRET)" in told
    assert SECRET not in told


def test_a_flag_settles_between_secret_and_certificate(entra: Entra, base: dict[str, str], cert_file: Path) -> None:
    """A certificate's flag beats a secret's variable."""
    entra.certificate_key = KEY.public_key()
    env = {**base, "AZURE_CLIENT_SECRET": SECRET}
    respond(PLUGIN, [*FLAGS, "--client-certificate", str(cert_file)], Env(env))
    assert "client_secret" not in entra.tokens[0].form


REFUSALS = {
    7000222: (1, "client-secret-expired"),
    700016: (1, "client-unknown"),
    90002: (1, "tenant-unknown"),
    500011: (1, "server-id-unknown"),
    53003: (1, "access-blocked"),
    50105: (1, "access-blocked"),
    700024: (3, "assertion-expired"),
    50196: (3, "throttled"),
    90033: (3, "server-error"),
    50076: (4, "login-expired"),
    999999: (1, "entra-refused"),
}


@pytest.mark.parametrize("code", REFUSALS)
def test_each_known_refusal_has_its_code_and_exit_status(entra: Entra, base: dict[str, str], code: int) -> None:
    """AADSTS codes become ours, and Entra ID's own text is not shown."""
    status, ours = REFUSALS[code]
    entra.script = [entra.answer(_metadata()), refusal(code)]
    with pytest.raises(ExecCredError) as caught:
        respond(PLUGIN, [*FLAGS, "--client-secret", SECRET], Env(base))
    assert (caught.value.exit_status, caught.value.code) == (status, ours)
    assert f"AADSTS{code}" in caught.value.message
    assert "LEAKED" not in f"{caught.value.message}{caught.value.hint}"
    assert SECRET not in f"{caught.value.message}{caught.value.hint}"


def _metadata() -> Asked:
    return Asked("GET", f"/{TENANT}/v2.0/.well-known/openid-configuration", {}, {})


def test_an_unknown_tenant_is_told_from_the_metadata(entra: Entra, base: dict[str, str]) -> None:
    """MSAL hears of a wrong tenant before any token is asked for."""
    flags = ["--login", "spn", "--client-id", CLIENT, "--tenant-id", "nobody.example", "--client-secret", SECRET]
    assert "AADSTS90002" in run_plugin(*flags, env=base).failed(1, "tenant-unknown")


def test_azure_pipelines_exchanges_its_oidc_token(entra: Entra, base: dict[str, str]) -> None:
    """The variables of an AzureCLI task are enough."""
    entra.oidc_token = federated()
    env = {
        **base,
        "SYSTEM_OIDCREQUESTURI": f"{entra.url}/oidc",
        "SYSTEM_ACCESSTOKEN": "system-access-token",
        "AZURESUBSCRIPTION_CLIENT_ID": CLIENT,
        "AZURESUBSCRIPTION_TENANT_ID": TENANT,
        "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID": "connection",
    }
    run_plugin("--login", "azurepipelines", env=env).credential["token"]
    assert [asked.path for asked in entra.asked] == ["/oidc", f"/{TENANT}/oauth2/v2.0/token"]
    assert entra.asked[0].form["serviceConnectionId"] == "connection"


def test_a_wrong_pipeline_token_is_told_without_it(entra: Entra, base: dict[str, str]) -> None:
    """The OIDC endpoint redirects to a sign-in page then."""
    env = {
        **base,
        "SYSTEM_OIDCREQUESTURI": f"{entra.url}/oidc",
        "SYSTEM_ACCESSTOKEN": "LEAKED",
        "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID": "connection",
    }
    flags = ["--login", "azurepipelines", "--client-id", CLIENT, "--tenant-id", TENANT]
    assert "HTTP 302" in run_plugin(*flags, env=env).failed(1, "entra-refused")
