"""The metadata server: asked directly and again while it starts; its absence is told quickly."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import execcred_gke
from execcred import Env, ExecCredError, TryAgain
from execcred._run import respond
from execcred.conformance.fakes.google import Answer, MetadataServer
from execcred.conformance.fakes.listener import Listener, read_head
from gke.cloud import Cloud, answered
from unit.support import V1, V1BETA1, exec_info

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STARTING = (404, 408, 429, 500, 502, 503, 504)


class Machine(Env):
    """A machine with one file: what its firmware says it is."""

    def __init__(self, variables: Mapping[str, str], product: str = "") -> None:
        super().__init__(variables)
        self.product = product

    def read_file(self, path: str) -> bytes:
        if path.startswith("/sys/class/dmi") and self.product:
            return self.product.encode()
        raise FileNotFoundError(2, "No such file or directory", path)


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    with MetadataServer() as server:
        yield server


@pytest.fixture
def closed_port() -> Iterator[str]:
    """An address that refuses connections as long as the test runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def ask(machine: Env, *arguments: str) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(respond(execcred_gke.PLUGIN, arguments, machine))["status"]
    return status


def on_google_cloud(server: MetadataServer) -> Machine:
    return Machine({"GCE_METADATA_HOST": server.netloc})


@pytest.mark.parametrize("name", ["GCE_METADATA_HOST", "GCE_METADATA_ROOT", "EXECCRED_METADATA_HOST"])
def test_one_question_gives_a_token(server: MetadataServer, name: str) -> None:
    assert ask(Machine({name: server.netloc}))["token"] == "ya29.attached"
    assert len(server.asked) == 1
    assert server.asked[0].headers["metadata-flavor"] == "Google"


@pytest.mark.parametrize("status", STARTING)
def test_a_server_that_is_not_ready_is_asked_again(server: MetadataServer, status: int) -> None:
    server.says = [Answer(status, "not yet")] * 2
    assert ask(on_google_cloud(server))["token"] == "ya29.attached"
    assert len(server.asked) == 3


def test_a_server_that_starts_late_is_waited_for() -> None:
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))  # refuses, until it listens

        def start() -> None:
            held.listen()
            connection, _ = held.accept()
            with connection:
                connection.recv(4096)
                body = b'{"access_token": "ya29.late", "expires_in": 3599}'
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
                )

        timer = threading.Timer(1.0, start)
        timer.start()
        try:
            token = ask(Machine({"GCE_METADATA_HOST": f"127.0.0.1:{held.getsockname()[1]}"}))["token"]
        finally:
            timer.join()
    assert token == "ya29.late"


def test_a_server_that_hangs_once_is_asked_again(server: MetadataServer) -> None:
    server.says = [None]
    assert ask(on_google_cloud(server))["token"] == "ya29.attached"


@pytest.mark.parametrize("product", ["Google\n", "Google Compute Engine\n"])
def test_the_firmware_tells_that_this_is_google_cloud(closed_port: str, product: str) -> None:
    with pytest.raises(TryAgain, match="until the deadline"):
        ask(Machine({"GCE_METADATA_IP": closed_port}, product), "--timeout=1")


@pytest.mark.parametrize("name", ["K_SERVICE", "CLOUD_RUN_JOB", "GAE_SERVICE"])
def test_serverless_variables_tell_that_this_is_google_cloud(closed_port: str, name: str) -> None:
    with pytest.raises(TryAgain, match="until the deadline"):
        ask(Machine({"GCE_METADATA_IP": closed_port, name: "x"}), "--timeout=1")


def test_a_server_that_stays_down_is_told_at_the_deadline(closed_port: str) -> None:
    begun = time.monotonic()
    with pytest.raises(TryAgain) as caught:
        ask(Machine({"GCE_METADATA_HOST": closed_port}), "--timeout=2")
    assert caught.value.code == "metadata-unavailable"
    assert closed_port in caught.value.message
    assert "Connection refused" in caught.value.message
    assert 0.3 < time.monotonic() - begun < 30  # asked again: the pauses are random, 0.35 s together at least


@pytest.mark.parametrize(("status", "words"), [(403, "workloadIdentityUser"), (400, "attach a service account")])
def test_a_refusal_is_told_at_once(server: MetadataServer, status: int, words: str) -> None:
    server.says = [Answer(status, "IAM said ya29.a-secret")]
    with pytest.raises(ExecCredError) as caught:
        ask(on_google_cloud(server))
    assert (caught.value.code, caught.value.exit_status) == ("metadata-refused", 1)
    assert words in caught.value.hint
    assert "ya29" not in caught.value.message
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        "[]",
        {},
        {"access_token": "ya29.x"},
        {"access_token": "", "expires_in": 3599},
        {"access_token": 7, "expires_in": 3599},
        {"access_token": "ya29.x", "expires_in": "soon"},
        {"access_token": "ya29.x", "expires_in": None},
        {"access_token": "ya29.x", "expires_in": -5},
        {"access_token": "ya29.x", "expires_in": 1e300},
        {"access_token": "ya29.x", "expires_in": 10**400},
    ],
    ids=str,
)
def test_what_is_no_token_is_refused(server: MetadataServer, body: Any) -> None:
    server.says = [Answer(200, body)]
    with pytest.raises(ExecCredError, match="no token") as caught:
        ask(on_google_cloud(server))
    assert caught.value.code == "metadata-invalid"
    assert "ya29" not in caught.value.message + caught.value.hint


def test_a_page_of_somebody_elses_is_no_token(server: MetadataServer) -> None:
    server.flavor = ()
    with pytest.raises(ExecCredError, match="without being Google's") as caught:
        ask(on_google_cloud(server))
    assert caught.value.code == "metadata-refused"


@pytest.mark.parametrize(("left", "margin"), [(40, 10), (3599, 60), (90, 30), (15, 0)])
def test_a_token_with_little_time_left_is_announced_with_a_smaller_margin(
    server: MetadataServer, left: int, margin: int
) -> None:
    from datetime import datetime

    server.expires_in = left
    before = time.time()
    announced = datetime.fromisoformat(ask(on_google_cloud(server))["expirationTimestamp"]).timestamp()
    assert before + left - margin - 1 <= announced <= time.time() + left - margin


def test_a_token_that_is_over_is_no_answer(server: MetadataServer) -> None:
    server.expires_in = 0
    with pytest.raises(ExecCredError):
        ask(on_google_cloud(server))


def test_scopes_are_asked_for(server: MetadataServer) -> None:
    ask(on_google_cloud(server))
    assert server.asked[0].target.endswith(f"?scopes={','.join(execcred_gke.SCOPES)}")


@pytest.mark.parametrize("host", ["a b", "x/y", "http://x", "[::1", "x:99999", "me@x", "::1"])
def test_what_is_no_host_is_bad_usage(host: str) -> None:
    with pytest.raises(ExecCredError) as caught:
        ask(Machine({}), f"--metadata-host={host}")
    assert (caught.value.code, caught.value.exit_status) == ("setting-invalid", 2)


# --- not on Google Cloud ---


def test_nothing_configured_and_nobody_there_fails_at_once(closed_port: str) -> None:
    begun = time.monotonic()
    with pytest.raises(ExecCredError) as caught:
        ask(Machine({"GCE_METADATA_IP": closed_port}))
    assert (caught.value.code, caught.value.exit_status) == ("credentials-none", 1)
    assert "gcloud auth application-default login" in caught.value.hint
    assert time.monotonic() - begun < 1.5  # for which a pod would have gone on


def test_nothing_configured_and_a_black_hole_fails_within_three_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as hole:
        address = hole.getsockname()
        filled = [socket.socket() for _ in range(4)]
        for each in filled:  # what finds the queue full is never answered
            each.setblocking(False)
            each.connect_ex(address)
        begun = time.monotonic()
        with pytest.raises(ExecCredError, match="does not answer") as caught:
            ask(Machine({"GCE_METADATA_IP": f"127.0.0.1:{address[1]}"}))
        took = time.monotonic() - begun
        for each in filled:
            each.close()
    assert (caught.value.code, caught.value.exit_status) == ("credentials-none", 1)
    assert took < 3


@pytest.mark.parametrize("status", [200, 400, 401, 404])
def test_another_clouds_metadata_server_is_not_googles(server: MetadataServer, status: int) -> None:
    server.flavor = ()
    server.says = [Answer(status, "hello from another cloud")]
    with pytest.raises(ExecCredError, match=f"answered {status}") as caught:
        ask(Machine({"GCE_METADATA_IP": server.netloc}))
    assert caught.value.code == "credentials-none"


def test_what_does_not_speak_http_is_no_metadata_server() -> None:
    class Mail(Listener):
        def handle(self, connection: socket.socket, number: int) -> None:  # noqa: ARG002  # the base class's
            read_head(connection)
            connection.sendall(b"220 mail.test ESMTP\r\n")

    with Mail(None) as server, pytest.raises(ExecCredError) as caught:
        ask(Machine({"GCE_METADATA_IP": server.netloc}))
    assert caught.value.code == "credentials-none"
    assert "does not speak HTTP" in caught.value.message


def test_in_a_pod_a_refused_connection_is_tried_again_for_a_while(closed_port: str) -> None:
    begun = time.monotonic()
    with pytest.raises(ExecCredError, match="Connection refused"):
        ask(Machine({"GCE_METADATA_IP": closed_port, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}))
    assert 1.5 <= time.monotonic() - begun < 8  # the deadline, until which Google Cloud would have gone on


@pytest.mark.parametrize("value", ["true", "True", "1"])
def test_no_gce_check_keeps_the_metadata_server_unasked(server: MetadataServer, value: str) -> None:
    with pytest.raises(ExecCredError, match="NO_GCE_CHECK") as caught:
        ask(Machine({"GCE_METADATA_IP": server.netloc, "NO_GCE_CHECK": value}))
    assert caught.value.code == "credentials-none"
    assert server.asked == []


# --- proxies ---


@pytest.mark.parametrize("flags", [(), ("--impersonate-service-account=target@project.iam.gserviceaccount.com",)])
def test_no_proxy_is_asked_for_the_metadata_server(
    cloud: Cloud, metadata: MetadataServer, flags: tuple[str, ...]
) -> None:
    names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
    variables = {"GCE_METADATA_HOST": metadata.netloc, **dict.fromkeys(names, cloud.proxy.url)}
    answered(cloud.run(*flags, variables=variables))
    assert metadata.asked
    assert cloud.proxy.targets == (["iamcredentials.googleapis.com:443"] if flags else [])


# --- requests of clients ---


@pytest.mark.parametrize(
    ("info", "version"),
    [
        ("", V1BETA1),
        (exec_info(None), V1),
        (exec_info({}), V1),
        (exec_info(None, version=V1BETA1), V1BETA1),
        (exec_info(None, "https://connectgateway.googleapis.com/v1/projects/1/locations/global/gkeMemberships/c"), V1),
        (json.dumps({"apiVersion": V1BETA1, "kind": "ExecCredential", "spec": {"interactive": False}}), V1BETA1),
    ],
)
def test_every_client_gets_the_version_that_it_asks_for(server: MetadataServer, info: str, version: str) -> None:
    machine = Machine({"GCE_METADATA_HOST": server.netloc, "KUBERNETES_EXEC_INFO": info})
    answer = json.loads(respond(execcred_gke.PLUGIN, (), machine))
    assert (answer["apiVersion"], answer["status"]["token"]) == (version, "ya29.attached")


def test_connect_gateway_is_allowed_by_its_host_only(server: MetadataServer) -> None:
    gateway = "https://europe-west1-connectgateway.googleapis.com/v1/projects/1/locations/global/gkeMemberships/c"
    for url, good in ((gateway, True), (gateway.replace("googleapis.com", "evil.test"), False)):
        machine = Machine({"GCE_METADATA_HOST": server.netloc, "KUBERNETES_EXEC_INFO": exec_info(None, url)})
        if good:
            assert ask(machine, "--allow-server=*connectgateway.googleapis.com")["token"]
        else:
            with pytest.raises(ExecCredError, match=r"evil\.test"):
                ask(machine, "--allow-server=*connectgateway.googleapis.com")
    assert len(server.asked) == 1


def test_the_debug_log_tells_what_the_connect_gateway_asks_of_the_identity(
    server: MetadataServer, capfd: pytest.CaptureFixture[str]
) -> None:
    gateway = "https://connectgateway.googleapis.com/v1/projects/1/locations/global/gkeMemberships/c"
    machine = Machine({"GCE_METADATA_HOST": server.netloc, "KUBERNETES_EXEC_INFO": exec_info(None, gateway)})
    assert ask(machine, "--log-level=debug")["token"]
    assert "roles/gkehub.gatewayEditor" in capfd.readouterr().err
