"""Networks, clocks, proxies and servers that misbehave."""

from __future__ import annotations

import email.utils
import ssl
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from aks.plugin import run_plugin
from execcred import Env
from execcred._run import respond
from execcred.conformance.fakes.azure import CLIENT, SECRET, TENANT, Answer, Asked, Entra, federated, refusal
from execcred.conformance.fakes.listener import Listener
from execcred.conformance.fakes.pki import Authority
from execcred.conformance.fakes.proxy import ConnectProxy
from execcred_aks import PLUGIN

if TYPE_CHECKING:
    import socket
    from pathlib import Path

SPN = ("--login", "spn", "--client-id", CLIENT, "--tenant-id", TENANT, "--client-secret", SECRET)
MODES = {"workloadidentity": (), "spn": SPN}


@pytest.mark.parametrize("mode", MODES)
def test_passing_faults_are_overcome_within_the_deadline(entra: Entra, workload: dict[str, str], mode: str) -> None:
    """5xx and 429 are asked again, Retry-After is kept."""
    entra.script = [Answer(503, {}), Answer(429, {}, {"Retry-After": "1"}), Answer(500, b"LEAKED")]
    start = time.monotonic()
    respond(PLUGIN, MODES[mode], Env(workload))
    assert len(entra.asked) == (4 if mode == "workloadidentity" else 5)
    assert 1 <= time.monotonic() - start < 40


@pytest.mark.parametrize("mode", MODES)
def test_a_wait_beyond_the_deadline_is_told_at_once(entra: Entra, workload: dict[str, str], mode: str) -> None:
    """Retry-After: 60 does not keep a controller waiting, and says how to ask less."""
    entra.script = [Answer(429, {}, {"Retry-After": "60"})]
    done = run_plugin(*MODES[mode], env=workload)
    told = done.failed(3, "throttled")
    assert "told to wait 60 s" in told
    assert "--cache-dir" in told
    assert len(entra.asked) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_asks_too_often_is_told_so_and_asks_no_more(
    entra: Entra, workload: dict[str, str], mode: str
) -> None:
    """AADSTS50196 comes as HTTP 400: asking again at once is what it complains of."""
    metadata = Asked("GET", f"/{TENANT}/v2.0/.well-known/openid-configuration", {}, {})
    looped = refusal(50196, "invalid_grant", 400)
    entra.script = [looped] if mode == "workloadidentity" else [entra.answer(metadata), looped]
    told = run_plugin(*MODES[mode], env=workload).failed(3, "throttled")
    assert "AADSTS50196" in told
    assert "--cache-dir" in told
    assert len(entra.tokens) == 1


@pytest.mark.parametrize("mode", MODES)
def test_lasting_faults_end_with_try_again(entra: Entra, workload: dict[str, str], mode: str) -> None:
    """After some tries the server's status is told."""
    entra.script = [Answer(503, {"error": "temporarily_unavailable"})] * 9
    assert "HTTP 503 temporarily_unavailable" in run_plugin(*MODES[mode], env=workload).failed(3, "server-error")


@pytest.mark.parametrize("mode", MODES)
def test_a_hung_server_ends_at_the_deadline_with_its_name(entra: Entra, workload: dict[str, str], mode: str) -> None:
    """Host, port and login mode are in the error."""
    entra.script = [Answer(hang=-1)]
    done = run_plugin(*MODES[mode], env={**workload, "EXECCRED_TIMEOUT": ""})
    assert (done.status, done.stdout) == (3, "")
    assert f"asking localhost:{entra.port} for a token ({mode})" in done.stderr
    assert done.seconds < 30


def test_a_hung_pipeline_endpoint_is_named(entra: Entra, base: dict[str, str]) -> None:
    """The OIDC endpoint of Azure Pipelines is a source of its own."""
    entra.script = [Answer(hang=-1)]
    env = {
        **base,
        "SYSTEM_OIDCREQUESTURI": f"{entra.url}/oidc",
        "SYSTEM_ACCESSTOKEN": "system-access-token",
        "AZURESUBSCRIPTION_CLIENT_ID": CLIENT,
        "AZURESUBSCRIPTION_TENANT_ID": TENANT,
        "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID": "connection",
    }
    done = run_plugin("--login", "azurepipelines", env={**env, "EXECCRED_TIMEOUT": ""})
    assert f"asking localhost:{entra.port} for a token (azurepipelines)" in done.stderr
    assert (done.status, done.stdout) == (3, "")


@pytest.mark.parametrize("mode", MODES)
def test_an_untrusted_certificate_points_to_the_file_of_cas(
    entra: Entra, workload: dict[str, str], tmp_path: Path, mode: str
) -> None:
    """As behind a proxy that inspects TLS."""
    other = tmp_path / "other.pem"
    other.write_text(Authority().pem)
    done = run_plugin(*MODES[mode], env={**workload, "SSL_CERT_FILE": str(other)})
    assert "SSL_CERT_FILE" in done.failed(1, "tls-untrusted")
    assert entra.asked == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_each_variable_for_cas_is_heard(workload: dict[str, str], mode: str, name: str) -> None:
    """What Python, curl and Go tools are configured with."""
    path = workload.pop("SSL_CERT_FILE")
    assert run_plugin(*MODES[mode], env={**workload, name: path}).credential["token"]


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_file_of_cas_is_told_by_its_variable(workload: dict[str, str], mode: str) -> None:
    """It is not passed over."""
    done = run_plugin(*MODES[mode], env={**workload, "SSL_CERT_FILE": "/nonexistent/ca.pem"})
    assert "variable SSL_CERT_FILE: /nonexistent/ca.pem" in done.failed(1, "file-unreadable")


def test_a_file_without_cas_is_told(workload: dict[str, str], tmp_path: Path) -> None:
    """A key or an empty file in its place."""
    (tmp_path / "empty").write_text("")
    run_plugin(env={**workload, "SSL_CERT_FILE": str(tmp_path / "empty")}).failed(1, "ca-invalid")


@pytest.mark.parametrize("mode", MODES)
def test_nobody_listening_is_told_with_host_and_port(workload: dict[str, str], mode: str) -> None:
    """The connection is refused."""
    done = run_plugin(*MODES[mode], env={**workload, "AZURE_AUTHORITY_HOST": "https://127.0.0.1:9/"})
    assert "127.0.0.1:9" in done.failed(3, "network")


@pytest.mark.parametrize("mode", MODES)
def test_plain_http_on_the_port_is_told(workload: dict[str, str], mode: str) -> None:
    """The handshake fails, and no assertion has been sent."""
    with Plain(None) as plain:
        env = {**workload, "AZURE_AUTHORITY_HOST": plain.url}
        run_plugin(*MODES[mode], env=env).failed(3, "network")


@pytest.mark.parametrize("mode", MODES)
def test_the_proxy_of_the_environment_is_used(
    entra: Entra, workload: dict[str, str], authority: Authority, mode: str
) -> None:
    """HTTPS_PROXY leads to Entra ID; the name is resolved by the proxy."""
    name = "login.example.test"
    with Named(authority, name) as server, ConnectProxy({name: server.port}) as proxy:
        server.named_url = f"https://{name}"
        env = {**workload, "HTTPS_PROXY": proxy.url, "AZURE_AUTHORITY_HOST": f"https://{name}/"}
        assert run_plugin(*MODES[mode], env=env).credential["token"]
        assert set(proxy.targets) == {f"{name}:443"}


class Plain(Listener):
    """An HTTP server on what should be a TLS port."""

    def handle(self, connection: socket.socket, number: int) -> None:  # noqa: ARG002
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


class Named(Entra):
    """Entra ID under a name that only a proxy knows."""

    named_url = ""

    def __init__(self, authority: Authority, name: str) -> None:
        super().__init__(authority)
        self._context = authority.server_context(name)

    @property
    def url(self) -> str:
        return self.named_url


@pytest.mark.parametrize("mode", MODES)
def test_a_proxy_that_refuses_is_told(workload: dict[str, str], mode: str) -> None:
    """407 of the proxy is not Entra ID's."""
    with ConnectProxy(refuse=407) as proxy:
        env = {**workload, "HTTPS_PROXY": proxy.url, "AZURE_AUTHORITY_HOST": "https://login.example.test/"}
        assert "HTTPS_PROXY" in run_plugin(*MODES[mode], env=env).failed(3, "proxy-failed")


@pytest.mark.parametrize("proxy", ["https://127.0.0.1:1", "socks5://127.0.0.1:1", "http://LEAKED:x@h:99999", "http://"])
def test_a_proxy_of_another_kind_is_told(workload: dict[str, str], proxy: str) -> None:
    """It is not passed over, and its user name is not shown."""
    env = {**workload, "HTTPS_PROXY": proxy, "AZURE_AUTHORITY_HOST": "https://login.example.test/"}
    assert "HTTPS_PROXY" in run_plugin(env=env).failed(2, "proxy-invalid")


TRUSTED = """
import sys
from execcred import Env
from execcred._arguments import command_line
from execcred._protocol import Request
from execcred._settings import resolve
from execcred_aks import PLUGIN, Login
from execcred_aks_workload import trusted
line = command_line(PLUGIN.settings, ["--login", "msi"])
print(trusted(Login(Request("", False, None), resolve(PLUGIN.settings, line, {}, {}), Env({}))))
"""


def test_without_cas_of_the_system_there_are_those_of_mozilla(tmp_path: Path) -> None:
    """An image has no folder of CAs; what is named then holds some."""
    env = {"SSL_CERT_DIR": str(tmp_path), "SSL_CERT_FILE": str(tmp_path / "none")}
    command = [sys.executable, "-c", TRUSTED]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(done.stdout.strip())
    assert len(context.get_ca_certs()) > 50


@pytest.mark.parametrize(("minutes", "words"), [(15, "15 min ahead of"), (-30, "30 min behind")])
def test_a_wrong_clock_is_seen_in_the_date_header(
    entra: Entra, workload: dict[str, str], minutes: int, words: str
) -> None:
    """A refused assertion with a Date minutes off says which way the clock is wrong."""
    date = email.utils.formatdate(time.time() - minutes * 60, usegmt=True)
    entra.script = [refusal(700024, Date=date)]
    assert f"clock is {words} the server's" in run_plugin(env=workload).failed(3, "assertion-expired")


def test_a_right_clock_is_not_mentioned(entra: Entra, workload: dict[str, str], token_file: Path) -> None:
    """Seconds apart are usual."""
    token_file.write_text(federated(audience="other"))
    entra.script = [refusal(700212, Date=email.utils.formatdate(time.time() - 30, usegmt=True))]
    assert "clock" not in run_plugin(env=workload).failed(1, "federated-credential-mismatch")


@pytest.mark.parametrize("date", ["", "yesterday", "Sun, 99 Foo 2026 00:00:00 GMT"])
def test_a_date_that_is_none_does_no_harm(entra: Entra, workload: dict[str, str], date: str) -> None:
    """Proxies write what they like."""
    entra.script = [refusal(700024, Date=date)]
    run_plugin(env=workload).failed(3, "assertion-expired")


@pytest.mark.parametrize("wait", ["soon", "-5", "1.5e99", "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_a_wait_that_is_no_number_does_no_harm(entra: Entra, workload: dict[str, str], wait: str) -> None:
    """It is taken for no wait told."""
    entra.script = [Answer(429, {}, {"Retry-After": wait})]
    assert run_plugin(env=workload).credential["token"]
