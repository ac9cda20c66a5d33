"""Every kind of application default credentials gives a token with both scopes and its true end."""

from __future__ import annotations

import ast
import json
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from execcred.conformance.fakes.google import (
    ROBOT,
    SCOPES,
    TARGET,
    Answer,
    Json,
    MetadataServer,
    SubjectServer,
    unbase64,
)
from gke.cloud import Cloud, answered
from gke.files import authorized_user, external_account, external_user, impersonated, impersonation_url, service_account

if TYPE_CHECKING:
    from pathlib import Path

ALLOWED = {"GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": "1"}
FEDERATED = "principal://subject-1"
USER = "user@example.test"


def subject_file(folder: Path, text: str = "subject-token-1") -> Json:
    path = folder / "subject"
    path.write_text(text)
    return {"file": str(path)}


def executable(folder: Path, body: str = "") -> Json:
    """Return a source that runs a program; by default one that answers well and writes a secret to stderr."""
    answer = {
        "version": 1,
        "success": True,
        "token_type": "urn:ietf:params:oauth:token-type:jwt",
        "id_token": "subject-token-1",
    }
    program = folder / "program"
    program.write_text(
        f"#!{sys.executable} -IS\nimport os, sys, time\n{body or f'print({json.dumps(json.dumps(answer))})'}\n"
    )
    program.chmod(0o755)
    return {"executable": {"command": str(program)}}


def test_a_service_account_key(cloud: Cloud) -> None:
    token = cloud.token(variables=cloud.write(service_account()))
    assert cloud.google.principal(token) == ROBOT
    assert cloud.google.scopes(token) == SCOPES
    assert cloud.google.what() == ["token"]


def test_a_service_account_key_of_another_universe_signs_its_token_itself(cloud: Cloud) -> None:
    token = cloud.token(variables=cloud.write(service_account(universe_domain="universe.test")))
    claims = json.loads(unbase64(token.split(".")[1]))
    assert (claims["iss"], set(claims["scope"].split())) == (ROBOT, SCOPES)
    assert cloud.google.asked == []


def test_a_user_login(cloud: Cloud) -> None:
    token = cloud.token(variables=cloud.write(authorized_user()))
    assert (cloud.google.principal(token), cloud.google.scopes(token)) == (USER, SCOPES)


def test_a_workforce_login(cloud: Cloud) -> None:
    token = cloud.token(variables=cloud.write(external_user()))
    assert cloud.google.principal(token) == USER


@pytest.mark.parametrize("source", [service_account(), authorized_user()], ids=["key", "login"])
def test_an_impersonated_service_account_file(cloud: Cloud, source: Json) -> None:
    cloud.google.may(USER, TARGET)
    token = cloud.token(variables=cloud.write(impersonated(source)))
    assert (cloud.google.principal(token), cloud.google.scopes(token)) == (TARGET, SCOPES)
    assert cloud.google.what() == ["token", "iam"]


def test_an_external_account_with_a_file(cloud: Cloud, tmp_path: Path) -> None:
    token = cloud.token(variables=cloud.write(external_account(subject_file(tmp_path))))
    assert (cloud.google.principal(token), cloud.google.scopes(token)) == (FEDERATED, SCOPES)
    assert cloud.google.what() == ["sts"]


def test_an_external_account_with_a_field_of_a_json_file(cloud: Cloud, tmp_path: Path) -> None:
    source = {
        **subject_file(tmp_path, '{"token": "subject-token-1"}'),
        "format": {"type": "json", "subject_token_field_name": "token"},
    }
    assert cloud.google.principal(cloud.token(variables=cloud.write(external_account(source)))) == FEDERATED


def test_the_subject_token_file_is_read_anew_each_time(cloud: Cloud, tmp_path: Path) -> None:
    variables = cloud.write(external_account(subject_file(tmp_path, "old")))
    assert cloud.run(variables=variables).returncode == 1
    subject_file(tmp_path)
    assert cloud.google.principal(cloud.token(variables=variables)) == FEDERATED


def test_an_external_account_with_a_url_which_no_proxy_sees(cloud: Cloud, subjects: SubjectServer) -> None:
    source = {
        "url": f"{subjects.url}/token",
        "headers": {"Metadata": "True"},
        "format": {"type": "json", "subject_token_field_name": "access_token"},
    }
    variables = {**cloud.write(external_account(source)), "HTTP_PROXY": cloud.proxy.url, "http_proxy": cloud.proxy.url}
    assert cloud.google.principal(cloud.token(variables=variables)) == FEDERATED
    assert len(subjects.asked) == 1
    assert cloud.proxy.targets == ["sts.googleapis.com:443"]


def test_an_external_account_with_an_executable(cloud: Cloud, tmp_path: Path) -> None:
    variables = {**cloud.write(external_account(executable(tmp_path))), **ALLOWED}
    assert cloud.google.principal(cloud.token(variables=variables)) == FEDERATED


def test_the_executable_inherits_nothing_of_ours_and_reads_no_stdin(cloud: Cloud, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    body = f"open({str(seen)!r}, 'w').write(repr((sys.stdin.read(), sorted(os.environ), os.getsid(0) == os.getpid())))"
    variables = {**cloud.write(external_account(executable(tmp_path, body))), **ALLOWED, "KUBERNETES_EXEC_INFO": "{}"}
    cloud.run(variables=variables)
    stdin, names, own_session = ast.literal_eval(seen.read_text())
    assert stdin == ""
    assert own_session
    assert not [name for name in names if name.startswith(("KUBERNETES_EXEC_INFO", "PYTHON", "LD_"))]


def test_an_external_account_that_impersonates(cloud: Cloud, tmp_path: Path) -> None:
    cloud.google.may(FEDERATED, TARGET)
    fields = {
        "service_account_impersonation_url": impersonation_url(TARGET),
        "service_account_impersonation": {"token_lifetime_seconds": 1800},
    }
    token = cloud.token(variables=cloud.write(external_account(subject_file(tmp_path), **fields)))
    assert (cloud.google.principal(token), cloud.google.scopes(token)) == (TARGET, SCOPES)
    assert cloud.google.what() == ["sts", "iam"]
    assert cloud.google.asked[-1].fields["lifetime"] == "1800s"


def test_the_metadata_server(cloud: Cloud, metadata: MetadataServer) -> None:
    token = cloud.token(variables={"GCE_METADATA_HOST": metadata.netloc})
    assert (cloud.google.principal(token), cloud.google.scopes(token)) == (ROBOT, SCOPES)
    assert metadata.paths() == ["instance/service-accounts/default/token"]


# --- where they are found ---


def test_an_empty_variable_counts_as_unset(cloud: Cloud) -> None:
    names = [
        *("CLOUDSDK_CONFIG", "CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT", "GOOGLE_CLOUD_QUOTA_PROJECT", "HOME"),
        *("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP", "NO_GCE_CHECK"),
        *("GCE_METADATA_TIMEOUT", "GCE_METADATA_DETECT_RETRIES", "GOOGLE_API_USE_CLIENT_CERTIFICATE", "NO_PROXY"),
        *("GOOGLE_API_CERTIFICATE_CONFIG", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "AWS_REGION", "EXECCRED_LIFETIME"),
    ]
    assert cloud.token(variables={**dict.fromkeys(names, ""), **cloud.write(service_account())})


def test_gclouds_own_file_is_found_in_the_home(cloud: Cloud, tmp_path: Path) -> None:
    cloud.write(authorized_user(), ".config/gcloud/application_default_credentials.json")
    assert cloud.google.principal(cloud.token(variables={"HOME": str(tmp_path)})) == USER


def test_cloudsdk_config_moves_gclouds_file(cloud: Cloud, tmp_path: Path) -> None:
    cloud.write(authorized_user(), "moved/application_default_credentials.json")
    variables = {"HOME": "/nonexistent", "CLOUDSDK_CONFIG": str(tmp_path / "moved")}
    assert cloud.google.principal(cloud.token(variables=variables)) == USER


def test_a_flag_beats_the_variable_which_beats_gclouds_file_which_beats_the_metadata_server(
    cloud: Cloud, metadata: MetadataServer, tmp_path: Path
) -> None:
    cloud.google.logins["refresh-token-2"] = ("gcloud@example.test", SCOPES)
    cloud.write(authorized_user(refresh_token="refresh-token-2"), ".config/gcloud/application_default_credentials.json")
    variables = {"GCE_METADATA_HOST": metadata.netloc, "HOME": str(tmp_path)}
    assert cloud.google.principal(cloud.token(variables=variables)) == "gcloud@example.test"
    variables |= cloud.write(authorized_user())
    assert cloud.google.principal(cloud.token(variables=variables)) == USER
    cloud.write(service_account(), "flag.json")
    flag = f"--credential-file={tmp_path}/flag.json"
    assert cloud.google.principal(cloud.token(flag, variables=variables)) == ROBOT
    assert metadata.asked == []


def test_a_token_endpoint_on_loopback_is_asked_without_the_proxy(cloud: Cloud) -> None:
    token = cloud.token(
        variables=cloud.write(service_account(token_uri=f"https://localhost:{cloud.google.port}/token"))
    )
    assert cloud.google.principal(token) == ROBOT
    assert cloud.proxy.targets == []


def test_the_quota_project_goes_to_iam(cloud: Cloud) -> None:
    cloud.google.may(USER, TARGET)
    file = cloud.write(authorized_user(quota_project_id="from-file"))
    flag = f"--impersonate-service-account={TARGET}"
    for variables, expected in (
        (file, "from-file"),
        ({**file, "GOOGLE_CLOUD_QUOTA_PROJECT": "from-variable"}, "from-variable"),
    ):
        cloud.token(flag, variables=variables)
        assert cloud.google.asked[-1].headers["x-goog-user-project"] == expected


# --- when it ends ---


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kolkata"])
@pytest.mark.parametrize("flags", [(), (f"--impersonate-service-account={TARGET}", "--lifetime=20m")])
def test_the_end_is_the_true_one_in_every_time_zone(cloud: Cloud, zone: str, flags: tuple[str, ...]) -> None:
    cloud.google.lifetime = 1200
    before = time.time()
    done = cloud.run(*flags, variables={**cloud.write(service_account()), "TZ": zone})
    stamp = answered(done)["expirationTimestamp"]
    assert stamp.endswith("Z")
    announced = datetime.fromisoformat(stamp).timestamp()
    assert before + 1200 - 62 <= announced <= time.time() + 1200 - 58


def test_a_token_endpoint_that_names_no_end_gives_an_answer_without_one(cloud: Cloud) -> None:
    cloud.google.says["token"] = [Answer(200, {"access_token": "ya29.endless", "token_type": "Bearer"})]
    assert answered(cloud.run(variables=cloud.write(service_account()))) == {"token": "ya29.endless"}
