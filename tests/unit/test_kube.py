"""One GET of one Secret over real TLS: every way a hub or a network may fail has its own error, and none leaks."""

from __future__ import annotations

import base64
import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from execcred import Env, ExecCredError
from execcred._hub import Hub
from execcred._urls import parse_url
from execcred.conformance.fakes.faults import FAULTS, FaultyServer
from execcred.conformance.fakes.kube_server import Identity, KubeServer
from execcred.conformance.fakes.pki import Authority
from execcred.conformance.fakes.proxy import ConnectProxy
from execcred.conformance.stage import has_ipv6
from execcred.http import Server, send
from execcred.kube import Secret, get_secret, value_of
from ports import reserved_port

if TYPE_CHECKING:
    from execcred.conformance.fakes.listener import Listener

AUTHORITY = Authority()
MARK = "hunter2hunter2"
BODY = json.dumps(
    {"kind": "Secret", "type": "Opaque", "data": {"token": base64.b64encode(MARK.encode()).decode()}}
).encode()


def trusting(ca: str) -> ssl.SSLContext:
    """Return a client's TLS context for one authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ca)
    return context


def hub_at(listener: Listener, ca: str = AUTHORITY.pem, token: str = "hub-token", **options: Any) -> Hub:
    """Return a hub at a stand-in."""
    return Hub("test", Server(parse_url(listener.url), trusting(ca), **options), token, "ns")


def patient(seconds: float = 20) -> Env:
    """Return a world with the real network and a deadline."""
    env = Env({})
    env.start(seconds, verbose=False)
    return env


GOOD = {
    "none",
    "answers in chunks",
    "answers in chunks with extensions and trailers",
    "continues first",
    "answers HTTP/1.0",
    "answers without a length",
    "answers without a reason",
    "keeps the connection open",
}
CODES = {
    "answers 401": "hub-unauthorized",
    "answers 401 with a page": "hub-unauthorized",
    "answers 403": "hub-forbidden",
    "answers 403 with a page": "hub-forbidden",
    "answers 404": "secret-missing",
    "answers 404 with a page": "secret-missing",
    "answers 429": "hub-throttled",
    "answers 429 with Retry-After": "hub-throttled",
    **dict.fromkeys([name for name in FAULTS if name.startswith("answers 5")], "hub-error"),
    **dict.fromkeys([name for name in FAULTS if "closes" in name or "resets" in name], "hub-unreachable"),
    "announces more than it sends": "hub-unreachable",
    "speaks no TLS": "hub-tls",
    "is certified by another authority": "hub-tls",
    "is certified for another name": "hub-tls",
    "has an expired certificate": "hub-tls",
    "has a certificate that is not yet valid": "hub-tls",
}
SLOW = {name for name, fault in FAULTS.items() if fault.after == "hang" or fault.drip} - GOOD
ENDLESS = {"continues for ever"}
STATUS = {"hub-throttled": 3, "hub-error": 3, "hub-unreachable": 3}


@pytest.mark.parametrize("fault", sorted(GOOD))
def test_every_good_framing_is_understood(fault: str) -> None:
    with FaultyServer(fault, BODY, authority=AUTHORITY) as server:
        secret = get_secret(hub_at(server), "ns", "one", patient())
    assert [secret.type, secret.data] == ["Opaque", {"token": MARK.encode()}]


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - GOOD - SLOW - ENDLESS))
def test_each_fault_has_its_error_and_no_word_of_the_answer_is_shown(fault: str) -> None:
    with FaultyServer(fault, BODY, authority=AUTHORITY) as server:
        with pytest.raises(ExecCredError) as caught:
            get_secret(hub_at(server), "ns", "one", patient())
        assert server.connections == 1
    error = caught.value
    assert error.code == CODES.get(fault, "hub-bad-answer")
    assert error.exit_status == STATUS.get(error.code, 1)
    assert "test" in error.message
    assert error.hint
    for mark in (MARK, "aHVudGVy", "hub-token", 'Secret"'):
        assert mark not in f"{error.message} {error.hint}"


@pytest.mark.parametrize("fault", sorted(SLOW | ENDLESS))
def test_a_hub_that_stops_or_never_comes_to_an_end_is_given_up(fault: str) -> None:
    with FaultyServer(fault, BODY, authority=AUTHORITY) as server, pytest.raises(ExecCredError) as caught:
        get_secret(hub_at(server), "ns", "one", patient(0.5))
    assert caught.value.code in ("deadline", "hub-bad-answer")


def test_a_redirect_is_not_followed() -> None:
    with (
        FaultyServer("none", BODY, authority=AUTHORITY) as elsewhere,
        FaultyServer("redirects with 302", location=elsewhere.url, authority=AUTHORITY) as server,
        pytest.raises(ExecCredError, match="redirects are not followed"),
    ):
        get_secret(hub_at(server), "ns", "one", patient())
    assert elsewhere.connections == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"5",
        b"<html>",
        b"{}",
        b'{"kind":"SecretList","items":[]}',
        b'{"kind":"Secret","data":[1]}',
        b'{"kind":"Secret","data":{"token":5}}',
        b'{"kind":"Secret","data":{"token":null}}',
        b'{"kind":"Secret","data":{"token":"hunter2!"}}',
        b'{"kind":"Secret","data":{"token":"aHVudGVyMg="}}',
        b'{"kind":"Secret","data":{"token":"\\u00e9"}}',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"kind":"Secret","data":{"token":' + b"9" * 5000 + b"}}",
    ],
    ids=lambda body: body[:50].decode("latin-1"),
)
def test_an_answer_that_is_no_secret_is_told_apart(body: bytes) -> None:
    with FaultyServer("none", body, authority=AUTHORITY) as server, pytest.raises(ExecCredError) as caught:
        get_secret(hub_at(server), "ns", "one", patient())
    assert [caught.value.code, "hunter2" in caught.value.message] == ["hub-bad-answer", False]


@pytest.mark.parametrize("data", [b"", b',"data":null', b',"data":{}'])
def test_a_secret_without_data_has_no_keys(data: bytes) -> None:
    with FaultyServer("none", b'{"kind":"Secret"' + data + b"}", authority=AUTHORITY) as server:
        assert get_secret(hub_at(server), "ns", "one", patient()).data == {}


def test_the_largest_secret_is_read() -> None:
    value = base64.b64encode(b"x" * (1 << 20)).decode()
    body = json.dumps({"kind": "Secret", "data": {"token": value}, "metadata": {"annotations": "y" * 262144}})
    with FaultyServer("none", body.encode(), authority=AUTHORITY) as server:
        assert len(get_secret(hub_at(server), "ns", "one", patient()).data["token"]) == 1 << 20


def test_nobody_listens() -> None:
    server = Server(parse_url(f"https://127.0.0.1:{reserved_port()}"), trusting(AUTHORITY.pem))
    with pytest.raises(ExecCredError) as caught:
        get_secret(Hub("test", server, "hub-token", "ns"), "ns", "one", patient())
    assert [caught.value.code, caught.value.exit_status] == ["hub-unreachable", 3]
    assert "Connection refused" in caught.value.message


def test_a_deadline_that_is_over_is_not_waited_for() -> None:
    with FaultyServer("none", BODY, authority=AUTHORITY) as server:
        with pytest.raises(ExecCredError, match="gave up after the deadline"):
            get_secret(hub_at(server), "ns", "one", patient(-1))
        assert server.connections == 0


def test_one_request_says_what_is_wanted_and_nothing_else() -> None:
    with FaultyServer("none", BODY, authority=AUTHORITY) as server:
        get_secret(hub_at(server), "ns", "one", patient())
    assert [(each.method, each.target) for each in server.requests] == [("GET", "/api/v1/namespaces/ns/secrets/one")]
    assert server.requests[0].headers == {
        "host": server.netloc,
        "accept": "application/json",
        "user-agent": "execcred",
        "authorization": "Bearer hub-token",
        "accept-encoding": "identity",
        "connection": "close",
    }


def test_a_path_of_the_server_comes_first() -> None:
    with FaultyServer("none", BODY, authority=AUTHORITY) as server:
        url = parse_url(f"{server.url}/k8s/clusters/c-1/")
        get_secret(Hub("test", Server(url, trusting(AUTHORITY.pem)), "t", "ns"), "ns", "one", patient())
    assert server.requests[0].target == "/k8s/clusters/c-1/api/v1/namespaces/ns/secrets/one"


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_an_ipv6_hub_is_reached() -> None:
    with FaultyServer("none", BODY, host="::1", authority=AUTHORITY) as server:
        get_secret(hub_at(server), "ns", "one", patient())
    assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


def test_the_certificates_name_may_be_given_apart_from_the_address() -> None:
    with FaultyServer("is certified for another name", BODY, authority=AUTHORITY) as server:
        assert get_secret(hub_at(server, tls_name="elsewhere.test"), "ns", "one", patient()).data


def test_a_client_certificate_is_shown_to_the_hub() -> None:
    pair = AUTHORITY.client("reader", "team")
    with KubeServer(AUTHORITY) as server:
        server.put_secret("ns", "one", {"token": "t"})
        server.allow("reader", "get", "secrets", "ns", "one")
        hub = hub_at(server, token="")
        assert hub.server.context is not None
        from execcred._x509 import load_pair

        load_pair(hub.server.context, pair.certificate, pair.key)
        assert get_secret(hub, "ns", "one", patient()).data == {"token": b"t"}
        assert [(each.user, each.status) for each in server.requests] == [("reader", 200)]


def test_a_refusal_names_verb_resource_namespace_and_name() -> None:
    with KubeServer(AUTHORITY) as server:
        server.tokens["hub-token"] = Identity("reader")
        with pytest.raises(ExecCredError) as caught:
            get_secret(hub_at(server), "ns", "one", patient())
    assert caught.value.code == "hub-forbidden"
    assert "verb get, resource secrets, namespace ns, name one" in caught.value.hint


# --- through a proxy ---


def test_a_proxy_is_asked_for_a_tunnel_and_sees_no_token() -> None:
    with FaultyServer("none", BODY, authority=AUTHORITY) as server, ConnectProxy() as proxy:
        get_secret(hub_at(server, proxy=parse_url(proxy.url)), "ns", "one", patient())
    assert [proxy.targets, proxy.authorizations] == [[server.netloc], [""]]


def test_a_proxys_user_and_password_are_sent_to_it() -> None:
    with FaultyServer("none", BODY, authority=AUTHORITY) as server, ConnectProxy() as proxy:
        url = parse_url(proxy.url.replace("http://", "http://me:p%40ss@"))
        get_secret(hub_at(server, proxy=url), "ns", "one", patient())
    assert proxy.authorizations == ["Basic " + base64.b64encode(b"me:p@ss").decode()]


@pytest.mark.parametrize("status", [403, 407, 502])
def test_a_proxy_that_refuses_is_named(status: int) -> None:
    with FaultyServer("none", BODY, authority=AUTHORITY) as server, ConnectProxy(refuse=status) as proxy:
        with pytest.raises(ExecCredError) as caught:
            get_secret(hub_at(server, proxy=parse_url(proxy.url)), "ns", "one", patient())
        assert server.connections == 0
    assert [caught.value.code, caught.value.exit_status] == ["hub-unreachable", 3]
    assert f"the proxy {proxy.netloc} answered {status}" in caught.value.message


def test_a_proxy_that_hangs_is_given_up() -> None:
    with (
        FaultyServer("none", BODY, authority=AUTHORITY) as server,
        ConnectProxy(hang=True) as proxy,
        pytest.raises(ExecCredError, match="gave up after the deadline"),
    ):
        get_secret(hub_at(server, proxy=parse_url(proxy.url)), "ns", "one", patient(0.5))


@pytest.mark.parametrize("fault", ["closes after the request", "answers binary"])
def test_a_proxy_that_closes_or_talks_nonsense_is_named(fault: str) -> None:
    with (
        FaultyServer("none", BODY, authority=AUTHORITY) as server,
        PlainFault(fault) as proxy,
        pytest.raises(ExecCredError, match=f"the proxy {proxy.netloc} answered"),
    ):
        get_secret(hub_at(server, proxy=parse_url(proxy.url)), "ns", "one", patient())


class PlainFault(FaultyServer):
    """A faulty server without TLS: a proxy that is none."""

    scheme = "http"

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self._context = None


# --- values ---


def test_the_repr_of_a_secret_hides_its_values() -> None:
    assert repr(Secret("Opaque", {"b": b"hunter2", "a": b""})) == "Secret(Opaque, keys=['a', 'b'])"
    assert value_of(Secret("Opaque", {"b": b"hunter2"}), "b", "x") == b"hunter2"


def test_a_post_carries_its_body_and_plain_http_no_tls() -> None:
    with PlainFault("none") as server:
        answer = send(Server(parse_url(server.url), None), "/x", {}, lambda: 20.0, 100, body=b"ab")
    assert [answer.status, answer.body, answer.headers["content-type"]] == [200, b"{}", "application/json"]
    assert [server.requests[0].method, server.requests[0].headers["content-length"]] == ["POST", "2"]


@pytest.mark.parametrize(("path", "header"), [("/x HTTP/1.1\r\nA: b", "c"), ("/x", "b\r\nC: d"), ("/x", "b\nc")])
def test_a_request_with_a_line_break_in_a_line_is_not_sent(path: str, header: str) -> None:
    with PlainFault("none") as server, pytest.raises(ValueError, match="a control character"):
        send(Server(parse_url(server.url), None), path, {"A": header}, lambda: 20.0, 100)
    assert server.connections == 0
