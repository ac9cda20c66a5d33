"""The official client on a profile's cluster: tokens and certificates, renewed; TLS, names and proxies of a profile."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client
from urllib3 import HTTPResponse

from access.socks import SocksProxy
from access.support import EXEC, Counted, Json, access, load, profile, provider, refused, stamp
from execcred.access import ProviderFile, build_configuration
from execcred.access._configuration import PATIENCE, PairFile
from execcred.access._credentials import PAUSE
from execcred.conformance.fakes.faults import FAULTS, FaultyServer
from execcred.conformance.fakes.kube_server import Identity, KubeServer
from execcred.conformance.fakes.pki import Authority
from execcred.conformance.fakes.proxy import ConnectProxy
from interop.cluster import b64, until

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

    from execcred.conformance.fakes.listener import Head


class Spoke(KubeServer):
    """An API server that no longer takes the certificates of `gone` users."""

    def __init__(self, authority: Authority | None = None, hostname: str = "") -> None:
        super().__init__(authority, hostname=hostname)
        self.gone: set[str] = set()
        self.allow("fleet", "list", "nodes")
        self.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})

    def token(self, name: str) -> str:
        """Take a token from now on; return it."""
        self.tokens[name] = Identity(name, ("fleet",))
        return name

    def _identity(self, connection: socket.socket, head: Head) -> Identity | None:
        who = super()._identity(connection, head)
        return None if who and who.user in self.gone else who

    @property
    def answers(self) -> list[tuple[str, int]]:
        return [(each.user, each.status) for each in self.requests]


@pytest.fixture
def spoke() -> Iterator[Spoke]:
    with Spoke() as server:
        yield server


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    return Counted(tmp_path / "plugin")


def configure(tmp_path: Path, counted: Counted, spoke: Spoke | FaultyServer, **cluster: Any) -> client.Configuration:
    """Return the configuration for a profile of the spoke."""
    fields = {"server": spoke.url, "certificate_authority_data": b64(spoke.ca_pem), **cluster}
    providers = load(tmp_path, provider(command=counted.command, provideClusterInfo=True))
    return build_configuration(profile(access(extensions={EXEC: {"clusterName": "c1"}}, **fields)), providers)


def nodes(api: client.ApiClient, **options: Any) -> list[str]:
    listing: Any = client.CoreV1Api(api).list_node(**options)
    return [each.metadata.name for each in (listing.get(60) if "async_req" in options else listing).items]


def status_of(api: client.ApiClient) -> int:
    """Return the status of a request that must fail."""
    with pytest.raises(client.ApiException) as caught:
        nodes(api)
    return int(caught.value.status)


# --- tokens ---


def test_building_runs_nothing_and_many_requests_run_the_plugin_once(
    tmp_path: Path, counted: Counted, spoke: Spoke
) -> None:
    counted.says(token=spoke.token("one"))
    configuration = configure(tmp_path, counted, spoke)
    assert counted.runs == 0
    with client.ApiClient(configuration) as api, ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda _: nodes(api), range(64))) == [["node-1"]] * 64
    assert counted.runs == 1
    assert set(spoke.answers) == {("one", 200)}


def test_a_token_is_renewed_at_its_end(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(token=spoke.token("one"), expirationTimestamp=stamp(seconds=10))
    with client.ApiClient(configure(tmp_path, counted, spoke)) as api:
        nodes(api)
        counted.says(token=spoke.token("two"))
        until("the second token is used", lambda: nodes(api) and spoke.answers[-1][0] == "two")
    assert counted.runs == 2
    assert {status for _, status in spoke.answers} == {200}


@pytest.mark.parametrize(
    "options", [{}, {"async_req": True}], ids=["in the same thread", "in the client's own threads"]
)
def test_after_a_401_the_next_request_has_a_new_token(
    tmp_path: Path, counted: Counted, spoke: Spoke, options: Json
) -> None:
    counted.says(token=spoke.token("one"))
    with client.ApiClient(configure(tmp_path, counted, spoke)) as api:
        nodes(api, **options)
        time.sleep(PAUSE)
        spoke.tokens.clear()
        counted.says(token=spoke.token("two"))
        with pytest.raises(client.ApiException) as caught:
            nodes(api, **options)
        assert caught.value.status == 401
        assert nodes(api, **options) == ["node-1"]
    assert spoke.answers == [("one", 200), ("", 401), ("two", 200)]
    assert counted.runs == 2


def test_a_403_and_other_answers_leave_the_credential_alone(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(token=spoke.token("one"))
    spoke.grants.clear()
    with client.ApiClient(configure(tmp_path, counted, spoke)) as api:
        assert [status_of(api), status_of(api)] == [403, 403]
    assert counted.runs == 1


def test_a_storm_of_401s_makes_one_run(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(token=spoke.token("one"))
    with client.ApiClient(configure(tmp_path, counted, spoke)) as api, ThreadPoolExecutor(16) as pool:
        nodes(api)
        time.sleep(PAUSE)
        spoke.tokens.clear()
        counted.says(token=spoke.token("two"))

        def ask(_: int) -> int:
            try:
                return len(nodes(api))
            except client.ApiException as error:
                return int(error.status)

        results = list(pool.map(ask, range(64)))
    assert set(results) <= {1, 401}
    assert results.count(401) <= 16
    assert counted.runs == 2


def test_clients_that_are_built_anew_and_copies_share_the_credential(
    tmp_path: Path, counted: Counted, spoke: Spoke
) -> None:
    counted.says(token=spoke.token("one"))
    first = configure(tmp_path, counted, spoke)
    for configuration in (first, configure(tmp_path, counted, spoke), copy.deepcopy(first)):
        with client.ApiClient(configuration) as api:
            assert nodes(api) == ["node-1"]
    assert counted.runs == 1


def test_the_header_is_there_for_whoever_asks_the_configuration(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(token="one")
    configuration = configure(tmp_path, counted, spoke)
    assert configuration.get_api_key_with_prefix("authorization") == "Bearer one"
    assert configuration.get_api_key_with_prefix("BearerToken", alias="authorization") == "Bearer one"
    assert configuration.get_api_key_with_prefix("other") is None


def test_an_error_of_the_plugin_reaches_the_caller_as_it_is(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    configuration = configure(tmp_path, counted, spoke)
    error = refused(lambda: client.ApiClient(configuration))
    assert error.code == "plugin-failed"
    counted.says(token=spoke.token("one"))
    time.sleep(PAUSE)
    with client.ApiClient(configuration) as api:
        assert nodes(api) == ["node-1"]


# --- client certificates ---


def certificate(spoke: Spoke, user: str) -> Json:
    pair = spoke.authority.client(user, "fleet")
    return {"clientCertificateData": pair.certificate, "clientKeyData": pair.key}


def test_a_client_certificate_is_used_without_a_file_on_disk(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(**certificate(spoke, "alice"))
    configuration = configure(tmp_path, counted, spoke)
    with client.ApiClient(configuration) as api:
        assert nodes(api) == nodes(api) == ["node-1"]
    assert spoke.answers == [("alice", 200)] * 2
    assert {each.connection for each in spoke.requests} == {1}
    assert "authorization" not in spoke.requests[0].headers
    assert configuration.key_file == configuration.cert_file
    assert str(configuration.cert_file).startswith("/proc/self/fd/")


def bob_follows(api: client.ApiClient, counted: Counted, spoke: Spoke) -> None:
    """Use alice's certificate until bob's has taken its place; from then on the spoke refuses hers."""
    counted.says(**certificate(spoke, "bob"))
    until("the second run", lambda: nodes(api) and counted.runs == 2)
    spoke.gone.add("alice")


def test_a_certificate_is_renewed_at_its_end_on_new_connections(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(**certificate(spoke, "alice"), expirationTimestamp=stamp(seconds=10))
    with client.ApiClient(configure(tmp_path, counted, spoke)) as api:
        nodes(api)
        bob_follows(api, counted, spoke)
        assert nodes(api) == nodes(api) == ["node-1"]
    assert spoke.answers[-3:] == [("", 401), ("bob", 200), ("bob", 200)]
    assert counted.runs == 2


def test_after_a_401_on_a_new_connection_the_next_request_has_a_new_certificate(
    tmp_path: Path, counted: Counted, spoke: Spoke
) -> None:
    counted.says(**certificate(spoke, "alice"))
    with client.ApiClient(configure(tmp_path, counted, spoke)) as api:
        nodes(api)
        time.sleep(PAUSE)
        spoke.gone.add("alice")
        counted.says(**certificate(spoke, "bob"))
        assert status_of(api) == 401
        assert nodes(api) == ["node-1"]
    assert spoke.answers == [("alice", 200), ("", 401), ("", 401), ("", 401), ("bob", 200)]
    assert counted.runs == 2


def test_no_connection_with_an_old_certificate_stays_in_the_pool(
    tmp_path: Path, counted: Counted, spoke: Spoke
) -> None:
    counted.says(**certificate(spoke, "alice"), expirationTimestamp=stamp(seconds=10))
    with client.ApiClient(configure(tmp_path, counted, spoke)) as api, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: nodes(api), range(64)))
        bob_follows(api, counted, spoke)
        assert nodes(api) == ["node-1"]
        seen = len(spoke.requests)
        assert list(pool.map(lambda _: nodes(api), range(64))) == [["node-1"]] * 64
    assert set(spoke.answers[seen:]) == {("bob", 200)}
    assert counted.runs == 2


def test_a_body_is_sent_again_with_the_new_certificate(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(**certificate(spoke, "alice"), expirationTimestamp=stamp(seconds=10))
    with client.ApiClient(configure(tmp_path, counted, spoke)) as api:
        nodes(api)
        bob_follows(api, counted, spoke)
        review: Any = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
    assert review.status.user_info.username == "bob"


def test_token_and_certificate_may_come_together(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(token=spoke.token("one"), **certificate(spoke, "alice"))
    with client.ApiClient(configure(tmp_path, counted, spoke)) as api:
        nodes(api)
    assert spoke.answers == [("one", 200)]


def test_many_threads_write_one_pair_at_a_time() -> None:
    from execcred import Credential

    pair = PairFile()
    texts = [str(number) * 3000 for number in range(10)]

    def write(number: int) -> str:
        return str(pair.path(Credential(certificate=texts[number % 10], key="k")))

    with ThreadPoolExecutor(16) as pool:
        [path] = set(pool.map(write, range(500)))
    with open(path) as file:
        assert file.read() in [f"{text}\nk" for text in texts]
    assert copy.deepcopy(pair) is pair


# --- the cluster's fields ---


def test_a_hundred_profiles_built_in_any_order_and_in_threads_are_as_each_alone(tmp_path: Path) -> None:
    authorities = [b64(Authority().pem) for _ in range(2)]
    profiles = [
        profile(
            access(
                server=f"https://c{n}.example",
                certificate_authority_data=authorities[n % 2],
                tls_server_name=f"name-{n}" if n % 3 else None,
                proxy_url=f"http://proxy-{n}:1" if n % 5 else None,
            ),
            name=f"c{n}",
        )
        for n in range(100)
    ]

    def built(number: int, providers: ProviderFile) -> tuple[Any, ...]:
        each: Any = build_configuration(profiles[number], providers)
        spec = each.retries._credentials.spec  # what will be run
        return each.host, each.ca_cert_data, each.tls_server_name, each.verify_ssl, each.proxy, each.proxy_headers, spec

    alone = [built(number, load(tmp_path, provider())) for number in range(100)]
    order = random.Random(5).sample(range(100), 100)
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(built, order, [load(tmp_path, provider())] * 100))
    assert together == [alone[number] for number in order]


def test_a_server_of_another_authority_is_not_trusted(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(token=spoke.token("one"))
    other = b64(Authority().pem)
    api = client.ApiClient(configure(tmp_path, counted, spoke, certificate_authority_data=other))
    with api, pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        nodes(api)
    assert spoke.requests == []


def test_insecure_skip_tls_verify_is_honoured(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(token=spoke.token("one"))
    fields = {"certificate_authority_data": None, "insecure_skip_tls_verify": True}
    api = client.ApiClient(configure(tmp_path, counted, spoke, **fields))
    with api, pytest.warns(match="Unverified HTTPS request"):
        assert nodes(api) == ["node-1"]


def test_tls_server_name_is_the_name_that_the_certificate_must_have(tmp_path: Path, counted: Counted) -> None:
    with Spoke(hostname="spoke.internal") as spoke:
        counted.says(token=spoke.token("one"))
        server = f"https://127.0.0.1:{spoke.port}"
        api = client.ApiClient(configure(tmp_path, counted, spoke, server=server))
        with api, pytest.raises(Exception, match="IP address mismatch"):
            nodes(api)
        named = configure(tmp_path, counted, spoke, server=server, tls_server_name="spoke.internal")
        with client.ApiClient(named) as api:
            assert nodes(api) == ["node-1"]


def test_the_profiles_proxy_is_used_with_its_password(tmp_path: Path, counted: Counted, spoke: Spoke) -> None:
    counted.says(token=spoke.token("one"))
    with ConnectProxy() as proxy:
        url = proxy.url.replace("://", "://user:p%40ss@")
        with client.ApiClient(configure(tmp_path, counted, spoke, proxy_url=url)) as api:
            assert nodes(api) == ["node-1"]
    assert proxy.targets == [spoke.netloc]
    assert proxy.authorizations == [f"Basic {b64('user:p@ss')}"]


@pytest.mark.parametrize(("login", "told"), [("", []), ("user:p%40ss@", ["user:p@ss"])])
def test_a_socks_proxy_is_used_and_resolves_the_servers_name(
    tmp_path: Path, counted: Counted, login: str, told: list[str]
) -> None:
    with Spoke(hostname="spoke.internal") as spoke, SocksProxy() as proxy:
        counted.says(token=spoke.token("one"))
        url = proxy.url.replace("://", f"://{login}")
        with client.ApiClient(configure(tmp_path, counted, spoke, proxy_url=url)) as api:
            assert nodes(api) == ["node-1"]
        assert not [name for each in spoke.requests for name in each.headers if name.startswith("proxy-")]
    assert proxy.targets == [f"spoke.internal:{spoke.port}"]
    assert proxy.logins == told


WITHOUT_SOCKS = """
import json, sys
sys.modules["socks"] = None
from execcred.access import ProviderFile, build_configuration
try:
    build_configuration(json.load(sys.stdin), ProviderFile.load(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error.code, error, error.hint)
"""


def test_without_the_library_a_socks_proxy_is_told_to_need_it(tmp_path: Path) -> None:
    load(tmp_path, provider())
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SOCKS, str(tmp_path / "providers.json")],
        input=json.dumps(profile(access(proxy_url="SOCKS5://u:hush@p:1"))),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("ExecCredError library-missing PySocks, "), done.stderr
    assert "hush" not in done.stdout


@pytest.mark.parametrize("fault", [name for name in FAULTS if name.startswith("redirects")])
def test_a_redirect_is_not_followed(tmp_path: Path, counted: Counted, fault: str) -> None:
    counted.says(token="t")
    authority = Authority()
    with (
        FaultyServer("none", authority=authority) as elsewhere,
        FaultyServer(fault, location=f"{elsewhere.url}/api/v1/nodes", authority=authority) as server,
        client.ApiClient(configure(tmp_path, counted, server)) as api,
    ):
        assert status_of(api) == int(fault.rpartition(" ")[2])
    assert elsewhere.connections == 0


@pytest.mark.parametrize("asked", ["86400", formatdate(time.time() + 86400, usegmt=True)], ids=["seconds", "a date"])
def test_a_server_cannot_hold_up_a_controller_for_a_day(
    tmp_path: Path, counted: Counted, spoke: Spoke, asked: str
) -> None:
    retries: Any = configure(tmp_path, counted, spoke).retries
    answer = HTTPResponse(status=503, headers={"Retry-After": asked})
    assert retries.get_retry_after(answer) == PATIENCE
    assert retries.increment("GET", "/", response=answer).get_retry_after(answer) == PATIENCE


def test_a_path_and_a_slash_at_the_servers_end_are_kept_apart_from_the_requests(
    tmp_path: Path, counted: Counted, spoke: Spoke
) -> None:
    configuration = configure(tmp_path, counted, spoke, server=f"{spoke.url}/c1/?agentName=x")
    assert configuration.host == f"{spoke.url}/c1"


ENVIRONMENT = """
import json, sys
from execcred.access import ProviderFile, build_configuration
for row in json.load(sys.stdin):
    configuration = build_configuration(row, ProviderFile.load(sys.argv[1]))
    print(configuration.proxy, configuration.no_proxy)
"""


def test_without_a_proxy_url_the_environments_proxy_counts(tmp_path: Path) -> None:
    load(tmp_path, provider())
    rows = [profile(access()), profile(access(proxy_url="http://other:1"))]
    done = subprocess.run(
        [sys.executable, "-c", ENVIRONMENT, str(tmp_path / "providers.json")],
        input=json.dumps(rows),
        env={"HTTPS_PROXY": "http://proxy:8080", "NO_PROXY": ".internal"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == ["http://proxy:8080 .internal", "http://other:1 "], done.stderr


def test_the_package_loads_without_the_official_client() -> None:
    script = "import sys, execcred.access; print({'kubernetes', 'urllib3', 'prometheus_client'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"
