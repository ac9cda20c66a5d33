"""Every source of AWS credentials, for real against local endpoints."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import stat
import subprocess
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from eks.cloud import PLUGIN, Result, environment, exec_info, run
from execcred.conformance.fakes.aws import ROLE, STATIC, Cloud

if TYPE_CHECKING:
    from pathlib import Path

WHERE = ("--cluster-name", "demo", "--region", "eu-west-1")


def configure(home: Path, config: str = "", credentials: str = "") -> None:
    (home / ".aws").mkdir(exist_ok=True)
    (home / ".aws/config").write_text(config)
    (home / ".aws/credentials").write_text(credentials)


def sts(cloud: Cloud, home: Path, **variables: str) -> dict[str, str]:
    trust = {"AWS_CA_BUNDLE": cloud.ca} if cloud.ca else {}
    return environment(home, AWS_ENDPOINT_URL_STS=cloud.url, **trust, **variables)


def keys_of(name: str) -> str:
    return f"[{name}]\naws_access_key_id = AKIA{name}\naws_secret_access_key = secret-of-AKIA{name}\n"


def signed_by(result: Result, access: str) -> None:
    """Check that the token is good, and signed with the keys of `access`."""
    token = result.token
    assert (token.access, token.problem, token.region) == (access, "", "eu-west-1")


def test_keys_in_the_environment_with_a_session_token(cloud: Cloud, tmp_path: Path) -> None:
    keys = cloud.session("env")
    variables = environment(
        tmp_path,
        AWS_ACCESS_KEY_ID=keys["AccessKeyId"],
        AWS_SECRET_ACCESS_KEY=keys["SecretAccessKey"],
        AWS_SESSION_TOKEN=keys["SessionToken"],
        AWS_CREDENTIAL_EXPIRATION=datetime.fromtimestamp(time.time() + 400, UTC).isoformat(),
    )
    result = run(variables, *WHERE)
    signed_by(result, "ASIAenv")
    assert 300 < result.seconds_left <= 340  # a minute before the session's end


def test_an_answer_ends_a_minute_before_the_fifteen_that_a_cluster_accepts(tmp_path: Path) -> None:
    for zone in ("UTC", "America/Los_Angeles", "Asia/Kathmandu"):
        result = run(environment(tmp_path, **STATIC, TZ=zone), *WHERE)
        assert 800 < result.seconds_left <= 840


def test_a_named_profile_beats_keys_in_the_environment_and_aws_profile_does_not(tmp_path: Path) -> None:
    configure(tmp_path, credentials=keys_of("prod"))
    signed_by(run(environment(tmp_path, **STATIC), *WHERE, "--profile", "prod"), "AKIAprod")
    signed_by(run(environment(tmp_path, **STATIC, EXECCRED_PROFILE="prod"), *WHERE), "AKIAprod")
    both = environment(tmp_path, **STATIC, AWS_PROFILE="prod")
    signed_by(run(both, *WHERE), "AKIASTATIC")
    assert "--profile would beat them" in run(both, *WHERE, "--log-level", "debug").err
    signed_by(run(environment(tmp_path, AWS_PROFILE="prod"), *WHERE), "AKIAprod")


def test_an_empty_variable_of_aws_counts_as_unset(tmp_path: Path) -> None:
    configure(tmp_path, "[default]\nregion = eu-west-1\n", keys_of("default"))
    names = ("PROFILE", "DEFAULT_PROFILE", "CONFIG_FILE", "SHARED_CREDENTIALS_FILE", "CA_BUNDLE", "ROLE_ARN")
    empty = {f"AWS_{name}": "" for name in (*names, "REGION", "DEFAULT_REGION", "ENDPOINT_URL", "ACCESS_KEY_ID")}
    signed_by(run(environment(tmp_path, **empty), "--cluster-name", "demo"), "AKIAdefault")


def test_the_profiles_region_is_used_when_nothing_else_tells_one(tmp_path: Path) -> None:
    configure(tmp_path, "[default]\nregion = eu-west-1\n", keys_of("default"))
    signed_by(run(environment(tmp_path), "--cluster-name", "demo"), "AKIAdefault")


def test_the_files_of_profiles_can_be_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(keys_of("default"))
    variables = environment(tmp_path / "none", AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "c"))
    signed_by(run(variables, *WHERE), "AKIAdefault")


@pytest.mark.parametrize("flag", ["--role-arn", "-r", "--role"])
def test_a_role_is_assumed_with_external_id_and_session_name(sts_cloud: Cloud, tmp_path: Path, flag: str) -> None:
    named = ("--external-id", "abc:1", "--session-name", "kueue@hub")
    result = run(sts(sts_cloud, tmp_path, **STATIC), *WHERE, flag, ROLE + "target", *named)
    signed_by(result, "ASIAtarget")
    assert len(sts_cloud.asked) == 1
    assert sts_cloud.asked[0].caller == "AKIASTATIC"
    assert sts_cloud.asked[0].query["ExternalId"] == "abc:1"
    assert sts_cloud.asked[0].query["RoleSessionName"] == "kueue@hub"


def test_roles_are_assumed_in_turn_and_the_external_id_goes_to_the_last(sts_cloud: Cloud, tmp_path: Path) -> None:
    roles = f"{ROLE}hop,{ROLE}target"
    result = run(sts(sts_cloud, tmp_path, **STATIC), *WHERE, "--role-arn", roles, "-e", "abc")
    signed_by(result, "ASIAtarget")
    assert [(each.caller, each.query.get("ExternalId")) for each in sts_cloud.asked] == [
        ("AKIASTATIC", None),
        ("ASIAhop", "abc"),
    ]


def test_a_session_of_three_minutes_is_announced_two_minutes_ahead(sts_cloud: Cloud, tmp_path: Path) -> None:
    sts_cloud.lifetime = 180
    result = run(sts(sts_cloud, tmp_path, **STATIC), *WHERE, "--role-arn", ROLE + "target")
    assert 80 < result.seconds_left <= 120


def test_roles_are_asked_for_in_the_own_region_if_its_partition_fits(sts_cloud: Cloud, tmp_path: Path) -> None:
    for own, asked in (("us-east-2", "us-east-2"), ("cn-north-1", "eu-west-1"), ("", "eu-west-1")):
        sts_cloud.asked.clear()
        variables = sts(sts_cloud, tmp_path, **STATIC, AWS_REGION=own)
        signed_by(run(variables, *WHERE, "--role-arn", ROLE + "target"), "ASIAtarget")
        assert f"/{asked}/sts/" in sts_cloud.asked[0].headers["authorization"]


def test_a_profile_with_a_role_and_a_source_profile_chain(cloud: Cloud, tmp_path: Path) -> None:
    config = (
        f"[profile target]\nrole_arn = {ROLE}target\nsource_profile = hop\nexternal_id = abc\n"
        f"role_session_name = me\n[profile hop]\nrole_arn = {ROLE}hop\nsource_profile = base\n"
    )
    configure(tmp_path, config, keys_of("base"))
    signed_by(run(sts(cloud, tmp_path), *WHERE, "--profile", "target"), "ASIAtarget")
    assert [(each.caller, each.query.get("ExternalId")) for each in cloud.asked] == [
        ("AKIAbase", None),
        ("ASIAhop", "abc"),
    ]


def irsa(cloud: Cloud, home: Path) -> dict[str, str]:
    (home / "token").write_text("jwt-1")
    return sts(cloud, home, AWS_WEB_IDENTITY_TOKEN_FILE=str(home / "token"), AWS_ROLE_ARN=ROLE + "irsa")


def test_web_identity_reads_its_token_file_each_time(sts_cloud: Cloud, tmp_path: Path) -> None:
    variables = irsa(sts_cloud, tmp_path)
    signed_by(run(variables, *WHERE), "ASIAirsa")
    (tmp_path / "token").write_text("jwt-2")
    signed_by(run(variables, *WHERE), "ASIAirsa")
    assert [each.query["WebIdentityToken"] for each in sts_cloud.asked] == ["jwt-1", "jwt-2"]


def test_the_debug_log_tells_region_host_and_caller_and_no_secret(sts_cloud: Cloud, tmp_path: Path) -> None:
    variables = irsa(sts_cloud, tmp_path)
    result = run(variables, *WHERE, "--role-arn", ROLE + "target", "--log-level", "debug")
    assert result.status == 0
    for words in ("region eu-west-1 from flag", "STS host sts.eu-west-1.amazonaws.com", "assumed-role/target/"):
        assert words in result.err
    for secret in ("jwt-1", "secret-of-", "session/of", json.loads(result.out)["status"]["token"]):
        assert secret not in result.err


def test_a_role_on_top_of_web_identity(sts_cloud: Cloud, tmp_path: Path) -> None:
    signed_by(run(irsa(sts_cloud, tmp_path), *WHERE, "--role-arn", ROLE + "target"), "ASIAtarget")
    assert sts_cloud.actions() == ["AssumeRoleWithWebIdentity", "AssumeRole"]
    assert sts_cloud.asked[1].caller == "ASIAirsa"


def test_pod_identity_reads_its_token_file_each_time_and_goes_through_no_proxy(cloud: Cloud, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("pod-token-1")
    with Cloud() as proxy:
        variables = environment(
            tmp_path,
            AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{cloud.url}/v1/credentials",
            AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(tmp_path / "token"),
            HTTP_PROXY=proxy.url,
            http_proxy=proxy.url,
        )
        signed_by(run(variables, *WHERE), "ASIApod")
        cloud.pod_token = "pod-token-2"
        (tmp_path / "token").write_text("pod-token-2")
        signed_by(run(variables, *WHERE), "ASIApod")
        assert proxy.asked == []


def metadata(cloud: Cloud, home: Path, **variables: str) -> dict[str, str]:
    known = environment(home, AWS_EC2_METADATA_SERVICE_ENDPOINT=cloud.url, **variables)
    del known["AWS_EC2_METADATA_DISABLED"]
    return known


@pytest.mark.parametrize("rules", ["", "example.com"])
def test_the_metadata_server_is_asked_with_version_two_and_through_no_proxy(
    cloud: Cloud, tmp_path: Path, rules: str
) -> None:
    with Cloud() as proxy:
        variables = metadata(cloud, tmp_path, HTTP_PROXY=proxy.url, http_proxy=proxy.url, NO_PROXY=rules)
        signed_by(run(variables, *WHERE), "ASIAnode")
        assert proxy.asked == []
    assert cloud.actions()[0] == "PUT /latest/api/token"
    assert {each.headers.get("x-aws-ec2-metadata-token") for each in cloud.asked[1:]} == {"imds-token"}


def sso(cloud: Cloud, home: Path, left: float) -> dict[str, str]:
    configure(
        home,
        "[profile dev]\nsso_start_url = https://login.example/start\nsso_region = eu-west-1\n"
        "sso_account_id = 111122223333\nsso_role_name = dev\n",
    )
    cached_token(home, "https://login.example/start", left)
    return environment(home, AWS_ENDPOINT_URL_SSO=cloud.url, AWS_ENDPOINT_URL_SSO_OIDC=cloud.url)


def cached_token(home: Path, key: str, left: float, **more: str) -> None:
    folder = home / ".aws/sso/cache"
    folder.mkdir(parents=True, exist_ok=True)
    end = datetime.fromtimestamp(time.time() + left, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    token = {"accessToken": "sso-token-1", "expiresAt": end, "region": "eu-west-1", **more}
    (folder / f"{hashlib.sha1(key.encode()).hexdigest()}.json").write_text(json.dumps(token))


def test_the_sso_cache_of_the_aws_cli(cloud: Cloud, tmp_path: Path) -> None:
    signed_by(run(sso(cloud, tmp_path, 3600), *WHERE, "--profile", "dev"), "ASIAdev")


def sso_to_renew(cloud: Cloud, home: Path, left: float) -> dict[str, str]:
    variables = sso(cloud, home, 3600)
    configure(
        home,
        "[sso-session corp]\nsso_start_url = https://login.example/start\nsso_region = eu-west-1\n"
        "[profile dev]\nsso_session = corp\nsso_account_id = 111122223333\nsso_role_name = dev\n",
    )
    end = datetime.fromtimestamp(time.time() + 86400, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    renew = {"refreshToken": "r", "clientId": "c", "clientSecret": "s", "registrationExpiresAt": end}
    cloud.sso_token = "sso-token-2"
    cached_token(home, "corp", left, **renew)
    return variables


def test_an_sso_session_is_renewed_with_its_refresh_token(cloud: Cloud, tmp_path: Path) -> None:
    variables = sso_to_renew(cloud, tmp_path, -60)
    signed_by(run(variables, *WHERE, "--profile", "dev"), "ASIAdev")
    signed_by(run(variables, *WHERE, "--profile", "dev"), "ASIAdev")
    assert cloud.actions() == ["POST /token", *["GET /federation/credentials"] * 2]


@pytest.mark.parametrize("left", [-60, 600])  # it is renewed a while before its end
def test_a_renewed_sso_session_that_cannot_be_stored_is_used_all_the_same(
    cloud: Cloud, tmp_path: Path, left: float
) -> None:
    variables = {
        name: text for name, text in sso_to_renew(cloud, tmp_path, left).items() if not name.startswith("COVERAGE_")
    }
    command = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", str(PLUGIN), *WHERE, "--profile", "dev"]
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    signed_by(Result(done.returncode, done.stdout, done.stderr, 0.0), "ASIAdev")
    assert cloud.actions() == ["POST /token", "GET /federation/credentials"]


@pytest.mark.parametrize("left", [-60, None])
def test_without_an_sso_session_the_login_command_is_named(cloud: Cloud, tmp_path: Path, left: float | None) -> None:
    variables = sso(cloud, tmp_path, left or 0)
    if left is None:
        for file in (tmp_path / ".aws/sso/cache").iterdir():
            file.unlink()
    result = run(variables, *WHERE, "--profile", "dev")
    assert (result.code, result.status) == ("sso-login-needed", 4)
    assert "run: aws sso login --profile dev\n" in result.err
    named_by_variable = run({**variables, "AWS_PROFILE": "dev"}, *WHERE)
    assert "run: aws sso login --profile dev\n" in named_by_variable.err


def test_a_revoked_sso_session_asks_for_a_login_too(cloud: Cloud, tmp_path: Path) -> None:
    cloud.sso_token = "another"
    result = run(sso(cloud, tmp_path, 3600), *WHERE, "--profile", "dev")
    assert (result.code, result.status) == ("sso-login-needed", 4)


def script(home: Path, body: str) -> None:
    """Make a credential_process of a shell script."""
    path = home / "process"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(stat.S_IRWXU)
    configure(home, f"[default]\ncredential_process = {path}\n")


def process_answer(cloud: Cloud) -> str:
    return json.dumps({"Version": 1, **cloud.session("process")})


def test_credential_process_runs_in_a_session_of_its_own_without_our_variables(cloud: Cloud, tmp_path: Path) -> None:
    cloud.lifetime = 7200
    script(
        tmp_path,
        f"env > {tmp_path}/env; cut -d ' ' -f 6 /proc/$$/stat > {tmp_path}/sid; echo $$ > {tmp_path}/pid\n"
        f"echo chatter >&2; cat; echo '{process_answer(cloud)}'",
    )
    variables = environment(tmp_path, KUBERNETES_EXEC_INFO=exec_info("https://10.0.0.1"), PYTHONPATH="/nowhere")
    signed_by(run(variables, *WHERE), "ASIAprocess")
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert not names & {"KUBERNETES_EXEC_INFO", "PYTHONPATH"}
    assert (tmp_path / "sid").read_text().split() == (tmp_path / "pid").read_text().split()


def test_a_session_that_ends_within_fifteen_minutes_is_renewed_before_it_signs(cloud: Cloud, tmp_path: Path) -> None:
    cloud.lifetime = 300
    short = process_answer(cloud)
    cloud.lifetime = 7200
    script(tmp_path, f"[ -e {tmp_path}/asked ] && echo '{process_answer(cloud)}' || echo '{short}'; >{tmp_path}/asked")
    assert 800 < run(environment(tmp_path), *WHERE).seconds_left <= 840


def test_an_mfa_prompt_is_refused_when_nobody_may_be_asked(cloud: Cloud, tmp_path: Path) -> None:
    mfa(tmp_path)
    result = run(sts(cloud, tmp_path, KUBERNETES_EXEC_INFO=exec_info(interactive=True)), *WHERE, "--profile", "safe")
    assert (result.code, result.status) == ("mfa-needed", 4)
    assert cloud.asked == []


def mfa(home: Path) -> None:
    configure(
        home,
        f"[profile safe]\nrole_arn = {ROLE}safe\nsource_profile = base\nmfa_serial = arn:aws:iam::1:mfa/me\n",
        keys_of("base"),
    )


def in_terminal(variables: dict[str, str], typed: bytes, *arguments: str) -> Result:
    """Run the plugin in a terminal where a person types, once there is a prompt."""
    read, write = os.pipe()
    process, terminal = pty.fork()
    if process == 0:
        os.dup2(write, 1)
        os.execve(PLUGIN, ["eks-plugin", *arguments], variables)
    os.close(write)
    seen = b""
    while b"MFA code" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, typed)
    with os.fdopen(read) as out:
        answer = out.read()
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(terminal)
    return Result(status, answer, "", 0.0)


def test_an_mfa_code_is_asked_for_in_a_terminal(cloud: Cloud, tmp_path: Path) -> None:
    mfa(tmp_path)
    signed_by(in_terminal(sts(cloud, tmp_path), b"123456\n", *WHERE, "--profile", "safe"), "ASIAsafe")
    assert cloud.asked[0].query["TokenCode"] == "123456"
