"""What goes wrong, for real: its code, its exit status, its remedy; nothing on stdout, nothing leaked, in time."""

from __future__ import annotations

import os
import ssl
import time
from typing import TYPE_CHECKING

import pytest
import trustme

from eks.cloud import environment, run
from eks.test_sources import WHERE, configure, irsa, keys_of, metadata, mfa, process_answer, script, signed_by, sso, sts
from execcred.conformance.fakes.aws import ROLE, SECRET_TEXT, STATIC, Cloud
from ports import reserved_port

if TYPE_CHECKING:
    from pathlib import Path

ASSUME = (*WHERE, "--role-arn", ROLE + "target")


@pytest.mark.parametrize(
    ("status", "code", "ours", "exit_status", "hint"),
    [
        (403, "AccessDenied", "aws-refused", 1, "grant the caller sts:AssumeRole"),
        (400, "ExpiredToken", "credentials-expired", 3, "renew the credentials"),
        (403, "InvalidClientTokenId", "credentials-refused", 1, "AWS_SESSION_TOKEN"),
        (403, "SignatureDoesNotMatch", "credentials-refused", 1, "check the keys"),
        (403, "RegionDisabledException", "region-disabled", 1, "enable the region"),
        (400, "Throttling", "aws-throttled", 3, "--cache-dir"),
        (429, "TooManyRequestsException", "aws-throttled", 3, "try again later"),
        (503, "ServiceUnavailable", "aws-error", 3, "try again later"),
        (400, "PackedPolicyTooLarge", "aws-refused", 1, "grant the caller"),
    ],
)
def test_a_refusal_of_sts_is_told_with_its_remedy(
    sts_cloud: Cloud, tmp_path: Path, status: int, code: str, ours: str, exit_status: int, hint: str
) -> None:
    sts_cloud.refusals["AssumeRole"] = (status, code)
    result = run(sts(sts_cloud, tmp_path, **STATIC), *ASSUME)
    assert (result.code, result.status) == (ours, exit_status)
    assert f"assuming role {ROLE}target with keys of the environment: AWS answered {code}" in result.err
    assert hint in result.err


@pytest.mark.parametrize("config", [False, True])  # with an AWS config file, the SDK asks
def test_a_refusal_of_sts_names_the_callers_source(sts_cloud: Cloud, tmp_path: Path, config: bool) -> None:
    if config:
        configure(tmp_path, credentials=keys_of("prod"))
    sts_cloud.refusals["AssumeRole"] = (403, "AccessDenied")
    both = sts(sts_cloud, tmp_path, **STATIC, AWS_PROFILE="prod" if config else "")
    beaten = ", which beat AWS_PROFILE (--profile would beat them)" if config else ""
    assert f"{ROLE}target with keys of the environment{beaten}: AWS answered" in run(both, *ASSUME).err
    named = run(irsa(sts_cloud, tmp_path), *ASSUME).err
    assert f"{ROLE}target with the web identity token (IRSA): AWS answered" in named


@pytest.mark.parametrize(
    ("code", "ours", "exit_status", "hint"),
    [
        ("InvalidIdentityToken", "web-identity-refused", 1, "OIDC issuer"),
        ("ExpiredTokenException", "credentials-expired", 3, "renew"),
        ("AccessDenied", "aws-refused", 1, "trust policy"),
    ],
)
def test_a_refused_web_identity_is_told_with_its_remedy(
    sts_cloud: Cloud, tmp_path: Path, code: str, ours: str, exit_status: int, hint: str
) -> None:
    sts_cloud.refusals["AssumeRoleWithWebIdentity"] = (400, code)
    result = run(irsa(sts_cloud, tmp_path), *WHERE)
    assert (result.code, result.status) == (ours, exit_status)
    assert "web identity token (IRSA)" in result.err
    assert hint in result.err


def test_throttling_that_passes_is_not_noticed(sts_cloud: Cloud, tmp_path: Path) -> None:
    class Once(dict[str, tuple[int, str]]):
        def __getitem__(self, action: str) -> tuple[int, str]:
            return self.pop(action)

    sts_cloud.refusals = Once({"AssumeRole": (400, "Throttling")})
    signed_by(run(sts(sts_cloud, tmp_path, **STATIC), *ASSUME), "ASIAtarget")
    assert sts_cloud.actions() == ["AssumeRole"] * 2


@pytest.mark.parametrize(("offset", "words"), [(600, "10 min behind"), (-420, "7 min ahead of")])
@pytest.mark.parametrize("refused", [False, True])
def test_a_wrong_clock_is_told_from_the_date_of_sts(
    sts_cloud: Cloud, tmp_path: Path, offset: float, words: str, refused: bool
) -> None:
    sts_cloud.clock_offset = offset
    if refused:
        sts_cloud.refusals["AssumeRole"] = (403, "SignatureDoesNotMatch")
    result = run(sts(sts_cloud, tmp_path, **STATIC), *ASSUME)
    assert (result.code, result.status) == ("clock-wrong", 1)
    assert f"this machine's clock is {words} the server's" in result.err


@pytest.mark.parametrize(
    "answer",
    [
        {"Expiration": "2099-01-01T00:00:00Z"},
        {"AccessKeyId": "A", "SecretAccessKey": "S", "Expiration": "2099-01-01T00:00:00Z"},
        {"AccessKeyId": "A", "SecretAccessKey": "S", "SessionToken": "T", "Expiration": "2099-01-01T00:00:00"},
    ],
    ids=str,
)
def test_half_an_answer_of_sts_signs_nothing(tls_cloud: Cloud, tmp_path: Path, answer: dict[str, str]) -> None:
    tls_cloud.raw["AssumeRole"] = (200, "".join([f"<{name}>{text}</{name}>" for name, text in answer.items()]))
    result = run(sts(tls_cloud, tmp_path, **STATIC), *ASSUME)
    assert (result.code, result.status) == ("aws-bad-answer", 3)


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"])
@pytest.mark.parametrize("url", ["sts.example", "https://", f"https://{SECRET_TEXT}/a b", "ftp://sts.example"])
def test_an_endpoint_that_is_no_url_is_told_by_its_variable(tmp_path: Path, name: str, url: str) -> None:
    result = run(environment(tmp_path, **STATIC, **{name: url}), *ASSUME)
    assert (result.code, result.status) == ("endpoint-invalid", 1)
    assert name in result.err
    assert SECRET_TEXT not in result.err


def test_a_password_in_the_url_of_sts_is_not_shown(tmp_path: Path) -> None:
    url = f"https://user:{SECRET_TEXT}@127.0.0.1:{reserved_port()}"
    result = run(environment(tmp_path, **STATIC, AWS_ENDPOINT_URL_STS=url), *ASSUME, "--log-level", "debug")
    assert result.status == 3
    assert "127.0.0.1" in result.err
    assert SECRET_TEXT not in result.err


@pytest.mark.parametrize("name", ["AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME"])
def test_a_variable_that_is_not_utf8_is_for_sts_to_refuse(tls_cloud: Cloud, tmp_path: Path, name: str) -> None:
    tls_cloud.refusals["AssumeRoleWithWebIdentity"] = (400, "ValidationError")
    result = run({**irsa(tls_cloud, tmp_path), name: "r\udcff"}, *WHERE)
    assert (result.code, result.status) == ("aws-refused", 1)


def test_a_clock_that_is_a_little_off_is_fine(sts_cloud: Cloud, tmp_path: Path) -> None:
    sts_cloud.clock_offset = 120
    signed_by(run(sts(sts_cloud, tmp_path, **STATIC), *ASSUME), "ASIAtarget")


def test_no_credentials_anywhere(tmp_path: Path) -> None:
    result = run(environment(tmp_path), *WHERE)
    assert (result.code, result.status) == ("credentials-none", 1)
    assert "not asked (AWS_EC2_METADATA_DISABLED)" in result.err
    assert result.seconds < 30


def test_without_home_and_passwd_entry_there_are_none_either(tmp_path: Path) -> None:
    variables = environment(tmp_path)
    del variables["HOME"]
    assert run(variables, *WHERE).code == "credentials-none"


def test_a_metadata_server_behind_the_hop_limit_ends_with_that_hint(cloud: Cloud, tmp_path: Path) -> None:
    cloud.hanging |= {"PUT /latest/api/token", "GET /latest/meta-data/iam/security-credentials/"}
    result = run(metadata(cloud, tmp_path, EXECCRED_TIMEOUT=""), *WHERE)
    assert (result.code, result.status) == ("credentials-none", 1)
    assert "hop limit to 2 (HttpPutResponseHopLimit)" in result.err
    assert result.seconds < 30


@pytest.mark.parametrize(
    ("variables", "code", "text"),
    [
        ({"AWS_ACCESS_KEY_ID": "AKIA"}, "credentials-partial", "AWS_SECRET_ACCESS_KEY is not"),
        ({**STATIC, "AWS_SECRET_ACCESS_KEY": "abc\n"}, "credentials-invalid", "character 4 of 4 in variable AWS_SEC"),
        ({**STATIC, "AWS_CREDENTIAL_EXPIRATION": "soon"}, "credentials-invalid", "is not a date"),
        ({**STATIC, "AWS_CREDENTIAL_EXPIRATION": "2020-01-01T00:00:00"}, "credential-expired", "2020-01-01T00:00:00Z"),
    ],
)
def test_bad_keys_in_the_environment(tmp_path: Path, variables: dict[str, str], code: str, text: str) -> None:
    result = run(environment(tmp_path, **variables), *WHERE)
    assert result.code == code
    assert text in result.err


@pytest.mark.parametrize(
    ("config", "arguments", "code", "text"),
    [
        ("", ("--profile", "nobody"), "aws-profile-missing", "AWS profile nobody is not in the AWS config"),
        ("[default\nx", (), "aws-config-invalid", "/.aws/config cannot be parsed"),
        (f"[default]\nrole_arn = {ROLE}x\n", (), "aws-config-invalid", "settings of the AWS profile"),
        (f"[default]\nrole_arn = {ROLE}x\nsource_profile = y\n", (), "aws-config-invalid", "settings of the AWS"),
        (
            (
                f"[default]\nrole_arn = {ROLE}x\nsource_profile = y\n"
                f"[profile y]\nrole_arn = {ROLE}y\nsource_profile = default\n"
            ),
            (),
            "aws-config-invalid",
            "settings of the AWS",
        ),
        ("[default]\nsso_account_id = 1\nsso_role_name = x\n", (), "aws-config-invalid", "settings of the AWS"),
        ("[default]\nlogin_session = me\n", (), "source-unsupported", "native library"),
    ],
)
def test_a_broken_aws_config(tmp_path: Path, config: str, arguments: tuple[str, ...], code: str, text: str) -> None:
    configure(tmp_path, config)
    result = run(environment(tmp_path), *WHERE, *arguments)
    assert (result.code, result.status) == (code, 1)
    assert text in result.err


def test_an_unreadable_web_identity_token_is_not_passed_over(sts_cloud: Cloud, tmp_path: Path) -> None:
    variables = irsa(sts_cloud, tmp_path)
    (tmp_path / "token").unlink()
    result = run(variables, *WHERE)
    assert (result.code, result.status) == ("aws-file-unreadable", 1)
    assert f"{tmp_path}/token: No such file or directory" in result.err
    assert f"it must be there, and user {os.geteuid()} able to read it" in result.err
    assert sts_cloud.asked == []


def test_web_identity_without_a_role(sts_cloud: Cloud, tmp_path: Path) -> None:
    variables = irsa(sts_cloud, tmp_path)
    del variables["AWS_ROLE_ARN"]
    assert run(variables, *WHERE).code == "aws-config-invalid"


@pytest.mark.parametrize(
    "body",
    [
        f"echo {SECRET_TEXT}",
        f"echo {SECRET_TEXT} >&2; exit 1",
        f"""echo '{{"Version": 2, "SecretAccessKey": "{SECRET_TEXT}"}}'""",
        f"""echo '{{"Version": 1, "SecretAccessKey": "{SECRET_TEXT}"}}'""",
        f"""echo '["{SECRET_TEXT}"]'""",
        "printf '\\377'",
    ],
)
def test_a_credential_process_that_fails_leaks_nothing(tmp_path: Path, body: str) -> None:
    script(tmp_path, body)
    result = run(environment(tmp_path), *WHERE, "--log-level", "error")
    assert (result.code, result.status) == ("credential-process-failed", 1)
    loud = run(environment(tmp_path), *WHERE, "--log-level", "debug")
    assert SECRET_TEXT not in loud.err


def test_a_credential_process_that_is_missing(tmp_path: Path) -> None:
    configure(tmp_path, "[default]\ncredential_process = /nowhere/tool --secret abc\n")
    result = run(environment(tmp_path), *WHERE)
    assert "/nowhere/tool: No such file" in result.err
    assert result.code == "aws-file-unreadable"
    assert "abc" not in result.err


def test_expired_credentials_of_a_process(cloud: Cloud, tmp_path: Path) -> None:
    cloud.lifetime = -60
    script(tmp_path, f"echo '{process_answer(cloud)}'")
    result = run(environment(tmp_path), *WHERE)
    assert (result.code, result.status) == ("credentials-expired", 3)


def test_container_credentials_that_are_refused_leak_nothing(cloud: Cloud, tmp_path: Path) -> None:
    variables = environment(
        tmp_path,
        AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{cloud.url}/v1/credentials",
        AWS_CONTAINER_AUTHORIZATION_TOKEN="wrong",
    )
    result = run(variables, *WHERE)
    assert (result.code, result.status) == ("container-credentials-failed", 3)
    assert "Pod Identity association" in result.err
    foreign = run({**variables, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/"}, *WHERE)
    assert foreign.code == "container-credentials-failed"


def test_what_answers_for_sts_is_no_aws(sts_cloud: Cloud, tmp_path: Path) -> None:
    sts_cloud.raw["AssumeRole"] = (200, f"<html>{SECRET_TEXT}")
    result = run(sts(sts_cloud, tmp_path, **STATIC), *ASSUME)
    assert (result.code, result.status) == ("aws-bad-answer", 3)
    sts_cloud.raw["AssumeRole"] = (403, f"<html><body>{SECRET_TEXT}</body></html>")
    assert run(sts(sts_cloud, tmp_path, **STATIC), *ASSUME).status in (1, 3)


def test_an_endpoint_that_is_down(tmp_path: Path) -> None:
    variables = environment(tmp_path, **STATIC, AWS_ENDPOINT_URL_STS=f"http://127.0.0.1:{reserved_port()}")
    result = run(variables, *ASSUME)
    assert (result.code, result.status) == ("aws-unreachable", 3)
    assert "127.0.0.1:" in result.err


def test_a_proxy_that_is_down_is_named_without_its_password(tmp_path: Path) -> None:
    proxy = f"http://user:{SECRET_TEXT}@127.0.0.1:{reserved_port()}"
    result = run(environment(tmp_path, **STATIC, HTTPS_PROXY=proxy), *ASSUME)
    assert (result.code, result.status) == ("proxy-unreachable", 3)
    assert "HTTPS_PROXY" in result.err


def test_the_ca_of_an_inspecting_proxy_comes_from_any_of_three_variables(tmp_path: Path) -> None:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(bundle))
    with Cloud(context) as cloud:
        unknown = run(sts(cloud, tmp_path, **STATIC), *ASSUME)
        assert (unknown.code, unknown.status) == ("aws-tls", 1)
        assert "not trusted by the built-in CA certificates" in unknown.err
        assert "AWS_CA_BUNDLE" in unknown.err
        for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
            signed_by(run(sts(cloud, tmp_path, **STATIC, **{name: str(bundle)}), *ASSUME), "ASIAtarget")
        other = tmp_path / "other.pem"
        trustme.CA().cert_pem.write_to_path(str(other))
        wrong = run(sts(cloud, tmp_path, **STATIC, AWS_CA_BUNDLE=str(other)), *ASSUME)
        assert f"not trusted by AWS_CA_BUNDLE={other}" in wrong.err


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("sts", "assuming role arn:aws:iam::111122223333:role/target"),
        ("irsa", "the web identity token (IRSA)"),
        ("pod", "the container credentials endpoint (EKS Pod Identity, ECS)"),
        ("sso", "IAM Identity Center (SSO)"),
        ("process", "the credential_process"),
        ("profile", "the role of the AWS profile"),
    ],
)
def test_a_source_that_hangs_ends_at_the_deadline_with_its_name(
    cloud: Cloud, tmp_path: Path, source: str, name: str
) -> None:
    cloud.hanging |= {"AssumeRole", "AssumeRoleWithWebIdentity", "GET /v1/credentials", "GET /federation/credentials"}
    arguments = list(WHERE)
    if source == "sts":
        variables = sts(cloud, tmp_path, **STATIC)
        arguments += ["--role-arn", ROLE + "target"]
    elif source == "irsa":
        variables = irsa(cloud, tmp_path)
    elif source == "pod":
        variables = environment(tmp_path, AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{cloud.url}/v1/credentials")
    elif source == "sso":
        variables = sso(cloud, tmp_path, 3600)
        arguments += ["--profile", "dev"]
    elif source == "process":
        script(tmp_path, f"sleep 60 & echo $! > {tmp_path}/pid; sleep 60")
        variables = environment(tmp_path)
    else:
        configure(tmp_path, f"[default]\nrole_arn = {ROLE}x\nsource_profile = base\n", keys_of("base"))
        variables = sts(cloud, tmp_path)
    result = run(variables, *arguments, "--timeout", "5")
    assert (result.code, result.status) == ("deadline", 3)
    assert name in result.err
    assert result.seconds < 30
    if source == "process":
        assert ended(int((tmp_path / "pid").read_text()))


def ended(process: int) -> bool:
    """Tell whether a process goes away within half a minute."""
    for _ in range(3000):
        try:
            with open(f"/proc/{process}/stat") as file:
                if file.read().split()[2] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def test_the_deadline_that_nobody_set_is_eight_seconds(sts_cloud: Cloud, tmp_path: Path) -> None:
    sts_cloud.hanging.add("AssumeRole")
    result = run(sts(sts_cloud, tmp_path, **STATIC, EXECCRED_TIMEOUT=""), *ASSUME)
    assert result.code in ("deadline", "aws-unreachable")
    assert result.status == 3
    assert result.seconds < 30


def test_an_mfa_profile_without_a_terminal_names_what_to_run(cloud: Cloud, tmp_path: Path) -> None:
    mfa(tmp_path)
    result = run(sts(cloud, tmp_path), *WHERE, "--profile", "safe")
    assert (result.code, result.status) == ("mfa-needed", 4)
    assert "--cache-dir" in result.err
