"""The stand-ins do what their names say: else every test that uses them proves nothing."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import ssl
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from kubernetes import client, config

from execcred.conformance.fakes import FAULTS, Authority, ConnectProxy, FaultyServer, Identity, KubeServer
from execcred.conformance.fakes.listener import Listener

if TYPE_CHECKING:
    from pathlib import Path

BODY = json.dumps({"kind": "Secret", "data": {"token": "dG9rZW4="}}).encode()
SILENT = {name for name, fault in FAULTS.items() if fault.after == "hang" or fault.flood or fault.drip}


def connect(server: Listener, ca_pem: str = "") -> socket.socket:
    """Return a connection to a server, with TLS when an authority is given."""
    raw = socket.create_connection(("127.0.0.1", server.port), 30)
    return ssl.create_default_context(cadata=ca_pem).wrap_socket(raw, server_hostname="127.0.0.1") if ca_pem else raw


def ask(server: Listener, ca_pem: str, limit: int = 1 << 30, seconds: float = 20) -> bytes:
    """Send one request; return all that comes in `seconds`, up to `limit` bytes."""
    answer, end = b"", time.monotonic() + seconds
    with connect(server, ca_pem) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while len(answer) < limit and (left := end - time.monotonic()) > 0:
            connection.settimeout(left)
            try:
                part = connection.recv(1 << 20)
            except (TimeoutError, ConnectionResetError):
                break
            if not part:
                break
            answer += part
    return answer


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.tls == "good" and name not in SILENT])
def test_a_fault_sends_its_answer_and_ends(name: str) -> None:
    with FaultyServer(name, BODY) as server:
        sent = server.fill(server.fault.answer) + b" " * server.fault.padding
        if server.fault.after == "reset":
            assert sent.startswith(ask(server, server.ca_pem))
        elif server.fault.ask == "head":
            assert ask(server, server.ca_pem) == sent
            assert [head.method for head in server.requests] == ["GET"]
        else:
            with connect(server, server.ca_pem) as connection:
                assert connection.recv(1) == b""


@pytest.mark.parametrize("name", sorted(SILENT))
def test_a_fault_that_does_not_end_keeps_its_client_waiting(name: str) -> None:
    fault = FAULTS[name]
    started = time.monotonic()
    with FaultyServer(name, BODY) as server:
        if fault.tls == "mute":
            with connect(server) as connection:
                connection.settimeout(0.5)
                with pytest.raises(TimeoutError):
                    connection.recv(1)
        else:
            patience = 20 if fault.flood else 0.6
            got = ask(server, server.ca_pem, limit=400 + 5 * len(fault.flood), seconds=patience)
            if fault.flood:
                assert got.count(fault.flood) > 3
            else:
                assert (server.fill(fault.answer) + server.fill(fault.drip)).startswith(got)
    assert time.monotonic() - started < 30  # its end does not wait for anybody


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("speaks no TLS", "WRONG_VERSION_NUMBER"),
        ("is certified by another authority", "CERTIFICATE_VERIFY_FAILED"),
        ("is certified for another name", "CERTIFICATE_VERIFY_FAILED"),
        ("has an expired certificate", "CERTIFICATE_VERIFY_FAILED"),
        ("has a certificate that is not yet valid", "CERTIFICATE_VERIFY_FAILED"),
    ],
)
def test_a_fault_of_tls_shows_in_the_handshake(name: str, reason: str) -> None:
    with FaultyServer(name, BODY) as server, pytest.raises(ssl.SSLError) as caught:
        connect(server, server.ca_pem).close()
    assert caught.value.reason == reason


@pytest.mark.parametrize("key", ["rsa", "ec", "ed25519"])
@pytest.mark.parametrize("chain", [False, True])
def test_a_client_certificate_of_any_key_tells_the_server_who_asks(key: str, chain: bool, tmp_path: Path) -> None:
    with KubeServer() as server:
        pair = server.authority.client("alice", "fleet", "ops", key=key, chain=chain)
        (tmp_path / "pair.pem").write_text(pair.certificate + pair.key)
        context = ssl.create_default_context(cadata=server.ca_pem)
        context.load_cert_chain(tmp_path / "pair.pem")
        raw = socket.create_connection(("127.0.0.1", server.port), 30)
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as connection:
            path = b"POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\n"
            connection.sendall(path + b"Connection: close\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"]["userInfo"] == {
            "username": "alice",
            "groups": ["fleet", "ops"],
        }
        assert [(each.user, each.status) for each in server.requests] == [("alice", 201)]


def test_a_certificate_has_the_lifetime_that_was_asked_for() -> None:
    pem = Authority().client("alice", starts=-7200, ends=-3600).certificate
    certificate = x509.load_pem_x509_certificate(pem.encode())
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds() == 3600


def spoke() -> KubeServer:
    server = KubeServer()
    server.tokens["right"] = Identity("reader", ("fleet",))
    server.allow("fleet", "list", "namespaces")
    server.allow("reader", "get", "secrets", "default", "one")
    for name in ("default", "team-a"):
        server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    server.put_secret("default", "one", {"token": "abc"})
    server.put_secret("default", "two", {"token": "def"})
    return server


def official(server: KubeServer, token: str = "right") -> Any:
    connect: Any = config.new_client_from_config_dict
    return client.CoreV1Api(connect(server.kubeconfig({"token": token})))


def test_the_official_client_reads_what_it_may_and_nothing_else() -> None:
    with spoke() as server:
        api = official(server)
        assert [each.metadata.name for each in api.list_namespace().items] == ["default", "team-a"]
        assert base64.b64decode(api.read_namespaced_secret("one", "default").data["token"]) == b"abc"
        calls: list[Any] = [
            lambda: api.read_namespaced_secret("two", "default"),
            lambda: api.list_namespaced_secret("default"),
            lambda: api.read_namespaced_secret("one", "team-a"),
            lambda: api.create_namespace({}),
        ]
        for call in calls:
            with pytest.raises(client.ApiException) as caught:
                call()
            assert (caught.value.status, json.loads(caught.value.body or "")["reason"]) == (403, "Forbidden")
        with pytest.raises(client.ApiException) as caught:
            official(server, "wrong").list_namespace()
        assert caught.value.status == 401


def test_kubectl_discovers_and_lists(tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if not kubectl:
        pytest.skip("kubectl is not installed")
    with spoke() as server:
        (tmp_path / "config").write_text(json.dumps(server.kubeconfig({"token": "right"})))
        command = [kubectl, "--kubeconfig", str(tmp_path / "config"), "get", "namespaces", "-o", "name"]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=60, env={"HOME": str(tmp_path)}
        )
        assert (done.returncode, done.stdout) == (0, "namespace/default\nnamespace/team-a\n"), done.stderr
        assert {each.user for each in server.requests} == {"reader"}


def test_the_proxy_leads_where_it_should_and_notes_it() -> None:
    with KubeServer() as server, ConnectProxy({"hub.test": server.port}) as proxy:
        with connect(proxy) as connection:
            connection.sendall(b"CONNECT hub.test:443 HTTP/1.1\r\nProxy-Authorization: Basic eDp5\r\n\r\n")
            assert b" 200 " in connection.recv(4096)
            context = ssl.create_default_context(cadata=server.ca_pem)
            with context.wrap_socket(connection, server_hostname="localhost") as secure:
                secure.sendall(b"GET /version HTTP/1.1\r\n\r\n")
                assert b" 401 " in secure.recv(4096)
        assert (proxy.targets, proxy.authorizations) == (["hub.test:443"], ["Basic eDp5"])


@pytest.mark.parametrize(("refuse", "target", "status"), [(407, "127.0.0.1:1", 407), (0, "elsewhere.test:443", 502)])
def test_the_proxy_refuses(refuse: int, target: str, status: int) -> None:
    with ConnectProxy(refuse=refuse) as proxy, connect(proxy) as connection:
        connection.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
        assert f" {status} ".encode() in connection.recv(4096)


def test_threads_that_want_a_key_at_once_get_the_same() -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "from execcred.conformance.fakes.pki import private_key\n"
        "print(len(set(map(id, Pool(4).map(private_key, ['rsa'] * 4)))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "1\n"
