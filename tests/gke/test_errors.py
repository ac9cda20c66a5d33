"""Every fault ends in a clear error with its code, exit status and remedy, and leaks nothing."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

import execcred_gke
from execcred import Env, ExecCredError
from execcred._run import respond
from execcred.conformance.fakes import FAULTS, Authority, ConnectProxy, FaultyServer
from execcred.conformance.fakes.google import (
    AUDIENCE,
    HOSTS,
    SCOPES,
    SECRETS,
    STS_URI,
    TARGET,
    Answer,
    Json,
    MetadataServer,
    SubjectServer,
    api_error,
    oauth_error,
)
from gke.cloud import Cloud, answered, failed
from gke.files import authorized_user, external_account, external_user, impersonated, service_account
from gke.test_sources import ALLOWED, executable, subject_file
from unit.support import executable as executable_of
from unit.support import variables_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FLAG = f"--impersonate-service-account={TARGET}"
LOGIN = "gcloud auth application-default login"
FILES: dict[str, Callable[[Path], Json]] = {
    "key": lambda _: service_account(),
    "login": lambda _: authorized_user(),
    "workforce login": lambda _: external_user(),
    "federated": lambda folder: external_account(subject_file(folder)),
}


class Inside(Env):
    """A run inside this process, whose SDKs stay as they are."""

    def tame(self, *metadata: str) -> None:
        pass


def refusal(cloud: Cloud, variables: Mapping[str, str], *arguments: str) -> ExecCredError:
    """Return the error of a run that must fail, once it is known to hold no secret."""
    with pytest.raises(ExecCredError) as caught:
        respond(execcred_gke.PLUGIN, arguments, Inside({**cloud.network(), **variables}))
    assert not [secret for secret in SECRETS if secret in caught.value.message + caught.value.hint]
    assert caught.value.hint
    assert caught.value.__cause__ is None
    return caught.value


REFUSED = [
    # file, who refuses, answer, code, exit status, in the hint
    ("login", "token", oauth_error("invalid_grant"), "login-expired", 4, LOGIN),
    ("login", "token", oauth_error("invalid_scope"), "login-scopes", 4, f"--scopes=openid,{execcred_gke.SCOPES[0]}"),
    ("login", "token", oauth_error("invalid_client", status=401), "credentials-refused", 1, "anew"),
    ("login", "token", oauth_error("deleted_client", status=401), "credentials-refused", 1, "anew"),
    ("workforce login", "sts", oauth_error("invalid_grant"), "login-expired", 4, LOGIN),
    ("key", "token", oauth_error("invalid_grant"), "key-refused", 1, "new key"),
    ("key", "token", oauth_error("invalid_client", status=401), "credentials-refused", 1, "anew"),
    ("federated", "sts", oauth_error("invalid_grant"), "federation-refused", 1, "attribute condition"),
    ("federated", "sts", oauth_error("invalid_target"), "federation-refused", 1, "audience"),
    ("federated", "sts", oauth_error("invalid_request"), "federation-refused", 1, "audience"),
    ("federated", "sts", oauth_error("unauthorized_client", status=403), "federation-refused", 1, "condition"),
    ("key", "iam", api_error(403, "PERMISSION_DENIED", "IAM_PERMISSION_DENIED"), "impersonation-denied", 1, "TokenCre"),
    ("key", "iam", api_error(403, "PERMISSION_DENIED"), "impersonation-denied", 1, "serviceAccountTokenCreator"),
    ("key", "iam", api_error(403, "PERMISSION_DENIED", "SERVICE_DISABLED"), "api-disabled", 1, "services enable iamc"),
    ("key", "iam", api_error(403, "PERMISSION_DENIED", "USER_PROJECT_DENIED"), "quota-project-denied", 1, "--quota-pr"),
    ("key", "iam", api_error(404, "NOT_FOUND"), "account-missing", 1, "--impersonate-service-account"),
    ("key", "iam", api_error(400, "INVALID_ARGUMENT"), "impersonation-invalid", 1, "LifetimeExtension"),
    ("key", "iam", api_error(401, "UNAUTHENTICATED"), "credentials-refused", 1, "anew"),
    ("key", "iam", api_error(403, "RESOURCE_EXHAUSTED"), "throttled", 3, "later"),
    ("key", "token", oauth_error("slow", status=429), "throttled", 3, "later"),
    ("federated", "sts", Answer(429, "slow down"), "throttled", 3, "later"),
    ("key", "iam", api_error(429, "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED"), "throttled", 3, "later"),
    ("key", "token", Answer(503, "<html>"), "google-error", 3, "later"),
    ("federated", "sts", Answer(502, "<html>"), "google-error", 3, "later"),
    ("key", "iam", api_error(500, "INTERNAL"), "google-error", 3, "later"),
    ("key", "token", Answer(200, "<html>ya29.secret</html>"), "answer-invalid", 1, "credential file"),
    ("key", "token", Answer(200, {"token": "ya29.secret"}), "answer-invalid", 1, "credential file"),
    ("key", "token", Answer(200, {"access_token": "", "expires_in": 5}), "answer-invalid", 1, "token_uri"),
    ("federated", "sts", Answer(200, {"access_token": "ya29.x", "expires_in": None}), "answer-invalid", 1, "file"),
    ("key", "iam", Answer(200, {"accessToken": "ya29.x", "expireTime": "soon"}), "answer-invalid", 1, "file"),
    ("key", "token", Answer(302, "", ("Location: https://elsewhere.test/",)), "answer-invalid", 1, "URL"),
    ("key", "token", Answer(400, "[]"), "credentials-refused", 1, "anew"),
    ("key", "token", Answer(400, {"error": 7}), "credentials-refused", 1, "anew"),
    ("key", "token", Answer(400, {"error": {"status": ["ya29."], "details": 5}}), "credentials-refused", 1, "anew"),
    ("key", "token", Answer(400, {"error": "client-secret-1 " * 9}), "credentials-refused", 1, "anew"),
    ("key", "token", Answer(400, "[" * 100_000), "credentials-refused", 1, "anew"),
]


@pytest.mark.parametrize(("file", "who", "answer", "code", "exit_status", "hint"), REFUSED)
def test_a_refusal_of_googles_is_explained(
    cloud: Cloud, tmp_path: Path, file: str, who: str, answer: Answer, code: str, exit_status: int, hint: str
) -> None:
    cloud.google.says[who] = [answer, answer]
    flags = [FLAG] if who == "iam" else []
    error = refusal(cloud, cloud.write(FILES[file](tmp_path)), *flags)
    assert (error.code, error.exit_status) == (code, exit_status)
    assert hint in error.hint


def test_a_missing_token_creator_names_the_account_that_must_grant_it(cloud: Cloud) -> None:
    error = refusal(cloud, cloud.write(authorized_user()), FLAG)
    assert error.code == "impersonation-denied"
    assert TARGET in error.message
    assert "iam.serviceAccounts.getAccessToken" in error.message


@pytest.mark.parametrize("who", ["token", "sts", "iam"])
def test_one_hiccup_of_googles_is_smoothed_over(cloud: Cloud, tmp_path: Path, who: str) -> None:
    cloud.google.says[who] = [Answer(503, "hiccup")]
    file = FILES["federated" if who == "sts" else "key"](tmp_path)
    flags = [FLAG] if who == "iam" else []
    assert respond(execcred_gke.PLUGIN, flags, Inside({**cloud.network(), **cloud.write(file)}))


# --- clocks ---


@pytest.mark.parametrize(("clock", "words"), [(-900, "15 min ahead"), (3600, "60 min behind")])
def test_a_wrong_clock_is_told(cloud: Cloud, clock: int, words: str) -> None:
    cloud.google.clock = clock
    error = refusal(cloud, cloud.write(service_account()))
    assert (error.code, error.exit_status) == ("clock-wrong", 1)
    assert words in error.message


def test_a_wrong_clock_is_told_when_a_subject_token_is_refused(cloud: Cloud, tmp_path: Path) -> None:
    cloud.google.clock = 1200
    error = refusal(cloud, cloud.write(external_account(subject_file(tmp_path, "expired"))))
    assert (error.code, "20 min behind" in error.message) == ("clock-wrong", True)


def test_a_token_that_a_wrong_clock_takes_for_over_is_told(cloud: Cloud) -> None:
    cloud.google.clock = -7200
    cloud.google.may("user@example.test", TARGET)
    error = refusal(cloud, cloud.write(authorized_user()), FLAG)
    assert (error.code, "120 min ahead" in error.message) == ("clock-wrong", True)


def test_a_small_error_of_the_clock_is_no_matter(cloud: Cloud) -> None:
    cloud.google.clock = 100
    cloud.google.says["token"] = [oauth_error("invalid_grant")]
    assert refusal(cloud, cloud.write(service_account())).code == "key-refused"


# --- credential files ---

ANYTHING: dict[str, Any] = {
    "empty": "",
    "half": '{"type": "service_account"',
    "array": [],
    "no type": {},
    "unknown type": {"type": "gdch_service_account"},
    "type is a list": {"type": ["service_account"]},
    "deep": "[" * 100_000,
    "binary": "\x00\x01",
    "key without fields": {"type": "service_account"},
    "key that is none": service_account(
        private_key="-----BEGIN PRIVATE KEY-----\nrubbish\n-----END PRIVATE KEY-----\n"
    ),
    "key that is a number": service_account(private_key=7),
    "endpoint that is no URL": service_account(token_uri="nowhere"),
    "endpoint with a user": service_account(token_uri="https://me@oauth2.googleapis.com/token"),
    "login without refresh token": authorized_user(refresh_token=""),
    "login with a wrong expiry": authorized_user(expiry="yesterday"),
    "external without source": external_account({}),
    "external with a strange source": external_account({"nothing": "known"}),
    "external whose source is text": external_account("text"),  # type: ignore[arg-type]
    "external with environment": external_account({"environment_id": "azure1"}),
    "impersonated without source": impersonated({}),
    "impersonated from nothing known": impersonated({"type": "gdch_service_account"}),
    "impersonated with a wrong URL": {
        **impersonated(service_account()),
        "service_account_impersonation_url": "https://x/",
    },
    "executable without command": external_account({"executable": {"timeout_millis": 5000}}),
    "executable with a short timeout": external_account({"executable": {"command": "x", "timeout_millis": 1}}),
}


@pytest.mark.parametrize("content", ANYTHING.values(), ids=ANYTHING)
def test_a_file_that_is_no_credential_is_told_as_such(cloud: Cloud, content: Any) -> None:
    error = refusal(cloud, {**cloud.write(content), **ALLOWED})
    assert (error.code, error.exit_status) == ("credential-file-invalid", 1)
    assert "credentials.json (variable GOOGLE_APPLICATION_CREDENTIALS)" in error.message
    assert cloud.google.asked == []


def test_the_missing_fields_are_told_all_at_once(cloud: Cloud) -> None:
    error = refusal(cloud, cloud.write({"type": "authorized_user"}))
    assert "without client_id, client_secret, refresh_token" in error.message


@pytest.mark.parametrize("path", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_named(cloud: Cloud, tmp_path: Path, path: str) -> None:
    error = refusal(cloud, {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / path)})
    assert (error.code, error.exit_status) == ("file-unreadable", 1)
    assert str(tmp_path) in error.message


def test_gclouds_file_that_cannot_be_read_is_named_instead_of_passed_over(cloud: Cloud, tmp_path: Path) -> None:
    (tmp_path / "application_default_credentials.json").mkdir()
    error = refusal(cloud, {"CLOUDSDK_CONFIG": str(tmp_path)})
    assert error.code == "file-unreadable"
    assert "application_default_credentials.json" in error.message


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_a_subject_token_file_that_no_path_can_name_is_the_credential_files_fault(cloud: Cloud, path: str) -> None:
    error = refusal(cloud, cloud.write(external_account({"file": path})))
    assert (error.code, error.exit_status) == ("credential-file-invalid", 1)


def test_a_subject_token_file_that_is_missing_is_named(cloud: Cloud) -> None:
    error = refusal(cloud, cloud.write(external_account({"file": "/nonexistent/token"})))
    assert error.code == "file-unreadable"
    assert "/nonexistent/token" in error.message


@pytest.mark.parametrize("text", ["", "{}", "no json"])
def test_a_subject_token_file_of_another_shape_is_told(cloud: Cloud, tmp_path: Path, text: str) -> None:
    source = {**subject_file(tmp_path, text), "format": {"type": "json", "subject_token_field_name": "token"}}
    assert refusal(cloud, cloud.write(external_account(source))).code == "subject-token"


def test_a_source_url_that_refuses_is_told(cloud: Cloud, subjects: SubjectServer) -> None:
    error = refusal(cloud, cloud.write(external_account({"url": f"{subjects.url}/token"})))
    assert (error.code, error.exit_status) == ("subject-token", 1)
    assert "127.0.0.1 answered 400" in error.message


# --- executables ---


def test_an_executable_needs_the_sdks_opt_in(cloud: Cloud, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    file = external_account(executable(tmp_path, f"open({str(ran)!r}, 'w')"))
    for value in ("", "0", "true"):
        error = refusal(cloud, {**cloud.write(file), "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": value})
        assert (error.code, error.exit_status) == ("executable-not-allowed", 1)
        assert "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1" in error.hint
    assert not ran.exists()


FAILURE = '{"version": 1, "success": false, "code": "401", "message": "ya29.secret"}'
EXECUTABLES = {
    "fails": "sys.stderr.write('client-secret-1'); print('ya29.secret'); sys.exit(3)",
    "says nothing": "pass",
    "says something else first": "print('hello'); print('{}')",
    "reports a failure": f"print({FAILURE!r})",
    "answers another version": 'print(\'{"version": 9, "success": true}\')',
    "answers an array": "print('[]')",
    "answers binary": "os.write(1, bytes([255, 254]))",
    "crashes": "os.abort()",
}


@pytest.mark.parametrize("body", EXECUTABLES.values(), ids=EXECUTABLES)
def test_an_executable_that_fails_is_told_without_its_words(cloud: Cloud, tmp_path: Path, body: str) -> None:
    file = cloud.write(external_account(executable(tmp_path, body)))
    failed(cloud.run(variables={**file, **ALLOWED}), "executable-failed", 1)
    assert cloud.google.asked == []


def test_an_executable_that_is_missing_is_told(cloud: Cloud) -> None:
    file = cloud.write(external_account({"executable": {"command": "/nonexistent/program"}}))
    assert refusal(cloud, {**file, **ALLOWED}).code == "executable-failed"


def test_an_executable_that_hangs_is_ended_with_all_that_it_started(cloud: Cloud, tmp_path: Path) -> None:
    body = (
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(tmp_path / 'ids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(60)"
    )
    file = cloud.write(external_account(executable(tmp_path, body)))
    begun = time.monotonic()
    done = cloud.run(variables={**file, **ALLOWED, "EXECCRED_TIMEOUT": ""})
    assert time.monotonic() - begun < 40
    assert "running the executable of" in failed(done, "deadline", 3)
    ids = (tmp_path / "ids").read_text().split()
    assert len(ids) == 2
    while any(alive(int(each)) for each in ids):  # what was killed may take a moment to be gone
        assert time.monotonic() - begun < 50
        time.sleep(0.02)


def alive(process: int) -> bool:
    """Tell whether a process runs; one that nobody has waited for counts as ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- the network ---


@pytest.mark.parametrize(
    ("who", "file", "words"),
    [
        ("token", "key", "the token endpoint at oauth2.googleapis.com"),
        ("token", "login", "the token endpoint at oauth2.googleapis.com"),
        ("sts", "federated", "the token exchange at sts.googleapis.com"),
        ("iam", "key", f"IAM at iamcredentials.googleapis.com for a token of {TARGET}"),
    ],
)
def test_an_endpoint_that_hangs_is_named_within_the_deadline(
    cloud: Cloud, tmp_path: Path, who: str, file: str, words: str
) -> None:
    cloud.google.hangs.add(who)
    begun = time.monotonic()
    error = refusal(cloud, cloud.write(FILES[file](tmp_path)), "--timeout=2", *([FLAG] if who == "iam" else []))
    assert time.monotonic() - begun < 30
    assert (error.code, error.exit_status) == ("unreachable", 3)
    assert words in error.message


def test_a_source_url_that_hangs_is_named_within_the_deadline(cloud: Cloud, subjects: SubjectServer) -> None:
    error = refusal(cloud, cloud.write(external_account({"url": f"{subjects.url}/hang"})), "--timeout=1")
    assert (error.code, error.exit_status) == ("unreachable", 3)
    assert "the source of the subject token" in error.message


def test_a_metadata_server_that_hangs_is_named_within_the_deadline(cloud: Cloud, metadata: MetadataServer) -> None:
    metadata.says = [None] * 9
    begun = time.monotonic()
    done = cloud.run("--timeout=2", variables={"GCE_METADATA_HOST": metadata.netloc})
    assert time.monotonic() - begun < 30
    assert f"the metadata server at {metadata.netloc} does not answer" in failed(done, "metadata-unavailable", 3)


ENDLESS = [name for name, fault in FAULTS.items() if fault.flood or fault.drip]


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in ENDLESS])
def test_a_token_endpoint_that_misbehaves_is_an_error_of_ours(cloud: Cloud, authority: Authority, name: str) -> None:
    body = b'{"access_token": "ya29.good", "expires_in": 3599}'
    with FaultyServer(name, body, authority=authority) as server:
        variables = cloud.write(service_account(token_uri=f"https://localhost:{server.port}/token"))
        begun = time.monotonic()
        try:
            code = respond(execcred_gke.PLUGIN, ["--timeout=1.5"], Inside({**cloud.network(), **variables}))
        except ExecCredError as error:
            code = error.code
            told = error.message + error.hint
        else:
            told = ""
    assert time.monotonic() - begun < 30
    assert "ya29" not in told
    assert "ya29.good" in code or code in CODES_OF_FAULTS


CODES_OF_FAULTS = (
    *("unreachable", "tls-untrusted", "answer-invalid", "google-error", "throttled"),
    *("credentials-refused", "key-refused"),
)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_token_endpoint_that_never_ends_meets_the_deadline(cloud: Cloud, authority: Authority, name: str) -> None:
    with FaultyServer(name, b" " * 500, authority=authority) as server:
        variables = cloud.write(service_account(token_uri=f"https://localhost:{server.port}/token"))
        done = cloud.run(variables={**variables, "EXECCRED_TIMEOUT": ""})
    assert (done.stdout, done.returncode in (1, 3)) == ("", True)
    assert "localhost" in done.stderr


# --- TLS and proxies ---


def test_a_foreign_certificate_is_told_with_the_file_that_does_not_trust_it(cloud: Cloud, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text(Authority().pem)
    error = refusal(cloud, {**cloud.write(service_account()), "REQUESTS_CA_BUNDLE": str(other)})
    assert (error.code, error.exit_status) == ("tls-untrusted", 1)
    assert f"REQUESTS_CA_BUNDLE={other}" in error.message
    assert "SSL_CERT_FILE" in error.hint


def test_without_a_ca_file_the_bundled_one_is_used(cloud: Cloud) -> None:
    error = refusal(cloud, {**cloud.write(service_account()), "REQUESTS_CA_BUNDLE": ""})
    assert (error.code, "certifi" in error.message) == ("tls-untrusted", True)


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_each_usual_variable_names_a_ca_file(cloud: Cloud, name: str) -> None:
    variables = {**cloud.network(), "REQUESTS_CA_BUNDLE": "", name: str(cloud.ca), **cloud.write(service_account())}
    assert respond(execcred_gke.PLUGIN, (), Inside(variables))


@pytest.mark.parametrize("content", [None, "no PEM"])
def test_a_ca_file_that_cannot_be_used_is_named(cloud: Cloud, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "strange.pem"
    if content:
        path.write_text(content)
    error = refusal(cloud, {**cloud.write(service_account()), "SSL_CERT_FILE": str(path), "REQUESTS_CA_BUNDLE": ""})
    assert error.code in ("ca-file", "tls-untrusted")
    assert str(path) in error.message


@pytest.mark.parametrize("status", [403, 407, 502])
def test_a_proxy_that_refuses_is_named_without_its_password(cloud: Cloud, status: int) -> None:
    with ConnectProxy(refuse=status) as proxy:
        url = proxy.url.replace("//", "//me:hunter2@")
        error = refusal(cloud, {**cloud.write(service_account()), "HTTPS_PROXY": url})
    assert (error.code, error.exit_status) == ("proxy-failed", 3)
    assert proxy.netloc in error.message
    assert "hunter2" not in error.message + error.hint


def test_a_proxy_gets_its_password(cloud: Cloud) -> None:
    url = cloud.proxy.url.replace("//", "//me:hunter2@")
    variables = {**cloud.network(), **cloud.write(service_account()), "HTTPS_PROXY": url}
    assert respond(execcred_gke.PLUGIN, (), Inside(variables))
    assert cloud.proxy.authorizations == ["Basic bWU6aHVudGVyMg=="]


def test_a_proxy_that_hangs_meets_the_deadline(cloud: Cloud) -> None:
    with ConnectProxy(hang=True) as proxy:
        error = refusal(cloud, {**cloud.write(service_account()), "HTTPS_PROXY": proxy.url}, "--timeout=1")
    assert error.exit_status == 3
    assert "oauth2.googleapis.com" in error.message


def test_a_proxy_that_is_no_url_is_bad_usage(cloud: Cloud) -> None:
    error = refusal(cloud, {**cloud.write(service_account()), "HTTPS_PROXY": "http://a b/"})
    assert (error.code, error.exit_status) == ("proxy-invalid", 2)


def test_a_netrc_of_the_user_is_not_read(cloud: Cloud, tmp_path: Path) -> None:
    lines = [f"machine {host} login me password hunter2\n" for host in HOSTS]
    (tmp_path / ".netrc").write_text("".join(lines))
    (tmp_path / ".netrc").chmod(0o600)
    answered(cloud.run(FLAG, variables={**cloud.write(service_account()), "HOME": str(tmp_path)}))
    given = [asked.headers.get("authorization", "") for asked in cloud.google.asked]
    assert not [text for text in given if text.startswith("Basic")]


# --- nothing leaks ---


def test_debug_names_choices_and_no_secret(cloud: Cloud) -> None:
    done = cloud.run(FLAG, "--log-level=debug", variables=cloud.write(service_account()))
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert all(line.startswith("gke-plugin: debug: ") for line in lines)
    assert any("credentials: service_account" in line and TARGET in line for line in lines)
    assert any("asking IAM" in line for line in lines)
    assert not [secret for secret in SECRETS if secret in done.stderr]


def test_an_sdk_that_logs_and_warns_is_not_heard(cloud: Cloud) -> None:
    variables = {"GOOGLE_SDK_PYTHON_LOGGING_SCOPE": "google", "PYTHONWARNINGS": "always"}
    done = cloud.run(variables={**cloud.write(authorized_user()), **variables})
    assert (done.returncode, done.stderr) == (0, "")


def test_neither_home_nor_a_writable_disk_nor_a_readable_folder_is_needed(cloud: Cloud, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    variables = {**cloud.write(service_account()), "HOME": "/nonexistent", "TMPDIR": "/nonexistent", "LC_ALL": "C"}
    command = 'cd "$1" && rmdir "$1" && exec "$0" --output=token'
    done = subprocess.run(
        ["/bin/sh", "-c", command, executable_of("gke"), str(gone)],
        env=variables_for({**cloud.network(), **variables}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert cloud.google.scopes(done.stdout.strip()) == SCOPES


def test_the_constants_that_the_fake_checks_are_those_of_the_file(cloud: Cloud, tmp_path: Path) -> None:
    file = external_account(subject_file(tmp_path))
    assert (file["audience"], file["token_url"]) == (AUDIENCE, STS_URI)
    respond(execcred_gke.PLUGIN, (), Inside({**cloud.network(), **cloud.write(file)}))
    assert cloud.google.asked[-1].fields["audience"] == AUDIENCE
