"""Which hub, as whom, in which namespace: one source decides all three, and each error names it."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from execcred import Env, ExecCredError
from execcred._arguments import command_line
from execcred._hub import HUB_SETTINGS, Hub, find_hub
from execcred._settings import resolve
from execcred.conformance.fakes.kube_server import kubeconfig
from execcred.conformance.fakes.pki import Authority
from unit.support import ACCOUNT, World, in_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTHORITY = Authority()
PAIR = AUTHORITY.client("reader")
OTHER = AUTHORITY.client("other", key="rsa")


def config(
    user: Mapping[str, Any] | None = None, server: str = "https://127.0.0.1:6443", ca: str = "", **cluster: Any
) -> bytes:
    """Return a kubeconfig as JSON; by default its user has a token."""
    body = kubeconfig(server, ca, {"token": "file-token"} if user is None else user, "team", **cluster)
    return json.dumps(body).encode()


def hub_of(world: World, *arguments: str) -> Hub:
    """Return the hub that arguments and `world` select."""
    line = command_line(HUB_SETTINGS, arguments)
    return find_hub(resolve(HUB_SETTINGS, line, world.variables, {}), world)


def refused(world: World, *arguments: str) -> ExecCredError:
    """Look for the hub, which must fail."""
    with pytest.raises(ExecCredError) as caught:
        hub_of(world, *arguments)
    return caught.value


def reads(user: Any = None, files: Any = None, **cluster: Any) -> World:
    """Return a world whose KUBECONFIG is one file."""
    return World({"KUBECONFIG": "/etc/hub"}, files={"/etc/hub": config(user, **cluster), **(files or {})})


# --- which one ---

EVERYWHERE = {
    "/flag": config({"token": "flag"}),
    "/variable": config({"token": "variable"}),
    "/home/me/.kube/config": config({"token": "home"}),
}
ALL = {"KUBECONFIG": "/variable", "KUBERNETES_SERVICE_HOST": "127.0.0.1", "HOME": "/home/me"}


@pytest.mark.parametrize(
    ("arguments", "missing", "token", "source"),
    [
        (["--kubeconfig=/flag"], [], "flag", "kubeconfig /flag from flag --kubeconfig, context here"),
        ([], [], "variable", "kubeconfig /variable from variable KUBECONFIG, context here"),
        ([], ["KUBECONFIG"], "pod-token", "in-cluster service account"),
        (
            ["--context=here"],
            ["KUBECONFIG"],
            "home",
            "kubeconfig /home/me/.kube/config (no --kubeconfig, no KUBECONFIG, not in a pod), context here",
        ),
        (
            [],
            ["KUBECONFIG", "KUBERNETES_SERVICE_HOST"],
            "home",
            "kubeconfig /home/me/.kube/config (no --kubeconfig, no KUBECONFIG, not in a pod), context here",
        ),
    ],
)
def test_flag_beats_variable_beats_pod_beats_the_default_file(
    arguments: list[str], missing: list[str], token: str, source: str
) -> None:
    world = in_pod(World(files=EVERYWHERE))
    world.variables = {name: value for name, value in ALL.items() if name not in missing}
    hub = hub_of(world, *arguments)
    assert [hub.token, hub.source] == [token, source]


def test_identity_and_namespace_come_from_one_source() -> None:
    world = in_pod(World({"KUBECONFIG": "/variable"}, files=EVERYWHERE), namespace="pods-own")
    assert hub_of(world).namespace == "team"
    assert hub_of(in_pod(World(), namespace="pods-own\n")).namespace == "pods-own"


@pytest.mark.parametrize("variables", [{}, {"KUBECONFIG": ""}, {"KUBECONFIG": ":", "HOME": ""}])
def test_without_any_source_there_is_no_hub(variables: dict[str, str]) -> None:
    error = refused(World(variables))
    assert [error.code, error.exit_status] == ["hub-none", 1]
    assert "--kubeconfig" in error.hint


@pytest.mark.parametrize("variables", [{"KUBECONFIG": "/gone:/too"}, {"HOME": "/home/me"}])
def test_files_that_do_not_exist_are_no_hub(variables: dict[str, str]) -> None:
    error = refused(World(variables))
    assert error.code == "hub-none"
    assert "does not exist" in error.message


def test_a_file_that_was_asked_for_must_exist() -> None:
    error = refused(World({"KUBERNETES_SERVICE_HOST": "127.0.0.1"}), "--kubeconfig=/gone")
    assert [error.code, "/gone from flag --kubeconfig" in error.message] == ["hub-config", True]


# --- in a pod ---


def test_the_pods_token_is_read_again_each_time() -> None:
    world = in_pod(World())
    assert hub_of(world).token == "pod-token"
    world.files[f"{ACCOUNT}/token"] = b"rotated\n"
    assert hub_of(world).token == "rotated"


@pytest.mark.parametrize(
    ("host", "port", "authority"),
    [
        ("10.0.0.1", "", "10.0.0.1:443"),
        ("10.0.0.1", "6443", "10.0.0.1:6443"),
        ("fd00::1", "6443", "[fd00::1]:6443"),
        ("kubernetes.default", "443", "kubernetes.default:443"),
    ],
)
def test_the_address_comes_from_the_pods_variables(host: str, port: str, authority: str) -> None:
    world = in_pod(World({"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}))
    assert hub_of(world).server.url.authority == authority


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("token", None, "token: /var/run/secrets/kubernetes.io/serviceaccount/token: No such file or directory"),
        ("token", b" \n", "its token is empty"),
        ("token", b"a\nb", "character 2 of 3 is U+000A"),
        ("token", b"\xff\xfe", "is not text"),
        ("ca.crt", None, "ca.crt: "),
        ("ca.crt", b"nonsense", "certificate-authority is not a PEM certificate"),
        ("namespace", None, "namespace: "),
    ],
)
def test_a_broken_service_account_is_named(name: str, content: bytes | None, why: str) -> None:
    world = in_pod(World())
    if content is None:
        del world.files[f"{ACCOUNT}/{name}"]
    else:
        world.files[f"{ACCOUNT}/{name}"] = content
    error = refused(world)
    assert [error.code, error.message.startswith("the hub (in-cluster service account) cannot be used: ")] == [
        "hub-config",
        True,
    ]
    assert why in error.message


def test_an_address_that_is_none_is_refused() -> None:
    assert "not a" in refused(in_pod(World({"KUBERNETES_SERVICE_HOST": "evil path"}))).message


# --- kubeconfig files ---

ONE = {"token": "one"}
TWO = {"token": "two"}


def test_of_several_files_the_first_wins_name_by_name_as_in_kubectl() -> None:
    first = {"users": [{"name": "me", "user": ONE}], "current-context": None}
    second = json.loads(config(TWO))
    third = json.loads(config({"token": "three"}, server="https://third"))
    files = {f"/{name}": json.dumps(body).encode() for name, body in (("1", first), ("2", second), ("3", third))}
    hub = hub_of(World({"KUBECONFIG": "/1:/gone::/2:/3:"}, files=files))
    assert [hub.token, hub.server.url.host] == ["one", "127.0.0.1"]
    assert hub.source == "kubeconfig /1:/gone:/2:/3 from variable KUBECONFIG, context here"


def test_the_context_asked_for_beats_the_current_one() -> None:
    body = json.loads(config(ONE))
    body["users"].append({"name": "you", "user": TWO})
    body["contexts"].append({"name": "second", "context": {"cluster": "there", "user": "you"}})
    world = World({"KUBECONFIG": "/c"}, files={"/c": json.dumps(body).encode()})
    assert [hub_of(world).token, hub_of(world).namespace] == ["one", "team"]
    assert [hub_of(world, "--context=second").token, hub_of(world, "--context=second").namespace] == ["two", ""]
    assert "it has here, second" in refused(world, "--context=third").message


@pytest.mark.parametrize(
    ("place", "written", "found"),
    [
        ("/etc/kube/config", "token", "/etc/kube/token"),
        ("/etc/kube/config", "../token", "/etc/kube/../token"),
        ("/etc/kube/config", "/run/token", "/run/token"),
        ("/config", "token", "/token"),
        ("config", "token", "./token"),
        ("kube/config", "token", "kube/token"),
    ],
)
def test_file_names_count_from_the_folder_of_their_own_kubeconfig(place: str, written: str, found: str) -> None:
    world = World({"KUBECONFIG": place}, files={place: config({"tokenFile": written}), found: b"from-file\n"})
    assert hub_of(world).token == "from-file"


def test_one_mapping_under_two_names_by_a_yaml_alias_keeps_its_file_name() -> None:
    text = b"""
current-context: here
clusters: [{name: there, cluster: {server: "https://127.0.0.1"}}]
users: [{name: a, user: &same {tokenFile: token}}, {name: me, user: *same}]
contexts: [{name: here, context: {cluster: there, user: me}}]
"""
    world = World({"KUBECONFIG": "kube/config"}, files={"kube/config": text, "kube/token": b"t"})
    assert hub_of(world).token == "t"


def test_a_token_file_beats_a_token_as_in_client_go() -> None:
    assert hub_of(reads({"token": "old", "tokenFile": "/t"}, {"/t": b"new"})).token == "new"


def test_embedded_data_beats_files() -> None:
    encoded = json.loads(config({}, ca=PAIR.certificate))["clusters"][0]["cluster"]["certificate-authority-data"]
    key = json.loads(config({}, ca=PAIR.key))["clusters"][0]["cluster"]["certificate-authority-data"]
    user = {
        "client-certificate-data": encoded,
        "client-certificate": "/gone",
        "client-key-data": key,
        "client-key": "/gone",
    }
    assert hub_of(reads(user)).token == ""


def test_a_client_certificate_may_stand_in_files() -> None:
    files = {"/etc/a.crt": PAIR.certificate.encode(), "/etc/a.key": PAIR.key.encode()}
    assert hub_of(reads({"client-certificate": "a.crt", "client-key": "a.key"}, files)).token == ""


def context_of(world: World) -> ssl.SSLContext:
    """Return the TLS side of the hub that `world` selects."""
    context = hub_of(world).server.context
    assert context is not None
    return context


def test_tls_is_always_verified() -> None:
    contexts = [
        context_of(reads()),
        context_of(reads(ca=AUTHORITY.pem)),
        context_of(reads(**{"insecure-skip-tls-verify": False})),
        context_of(reads(**{"insecure-skip-tls-verify": "yes"})),
    ]
    assert [(each.verify_mode, each.check_hostname) for each in contexts] == [(ssl.CERT_REQUIRED, True)] * 4
    assert contexts[1].cert_store_stats()["x509_ca"] == 1
    for value in (True, "true"):
        error = refused(reads(**{"insecure-skip-tls-verify": value}))
        assert (error.code, "certificate-authority" in error.message) == ("hub-config", True)


def test_a_bundle_with_comments_in_any_language_is_read() -> None:
    files = {"/etc/ca.pem": f"# AC Raíz Fábrica\n{AUTHORITY.pem}".encode()}
    context = context_of(reads(files=files, **{"certificate-authority": "ca.pem"}))
    assert context.cert_store_stats()["x509_ca"] == 1


def test_the_name_on_the_certificate_may_be_another() -> None:
    assert hub_of(reads()).server.tls_name == "127.0.0.1"
    assert hub_of(reads(**{"tls-server-name": "hub.internal"})).server.tls_name == "hub.internal"


@pytest.mark.parametrize(
    ("variables", "cluster", "proxy"),
    [
        ({}, {}, None),
        ({"HTTPS_PROXY": "http://from-env:3128"}, {}, "from-env:3128"),
        ({"HTTPS_PROXY": "http://from-env:3128", "NO_PROXY": "hub.example"}, {}, None),
        ({"HTTPS_PROXY": "http://from-env:3128"}, {"proxy-url": "http://own:8080"}, "own:8080"),
        ({"HTTPS_PROXY": "http://from-env:3128"}, {"proxy-url": ""}, "from-env:3128"),
    ],
)
def test_the_kubeconfigs_proxy_beats_the_environments(
    variables: dict[str, str], cluster: dict[str, str], proxy: str | None
) -> None:
    world = reads(server="https://hub.example", **cluster)
    world.variables = {**world.variables, **variables}
    via = hub_of(world).server.proxy
    assert (via and via.authority) == proxy


REFUSED: dict[str, tuple[World, str]] = {
    "exec": (reads({"exec": {"command": "sh"}}), "its user has exec"),
    "auth-provider": (reads({"auth-provider": {"name": "gcp"}}), "its user has auth-provider"),
    "user name": (reads({"username": "u", "password": "hunter2"}), "its user has username"),
    "password": (reads({"password": "hunter2"}), "its user has password"),
    "impersonation": (reads({"token": "t", "as": "admin"}), "its user has as, and nobody is impersonated"),
    "impersonated groups": (reads({"token": "t", "as-groups": ["a"]}), "its user has as-groups"),
    "nothing": (reads({}), "neither a token nor a client certificate"),
    "blank token": (reads({"token": " "}), "neither a token nor a client certificate"),
    "token of two lines": (reads({"token": "hunter2\nhunter2"}), "character 8 of 15"),
    "token a number": (reads({"token": 5}), "token is not a string"),
    "token file gone": (reads({"tokenFile": "/gone"}), "tokenFile: /gone: No such file"),
    "token file binary": (reads({"tokenFile": "/t"}, {"/t": b"\xff"}), "tokenFile: /t is not text"),
    "half a pair": (
        reads({"client-certificate": "/c"}, {"/c": PAIR.certificate.encode()}),
        "only one of client-certificate and client-key",
    ),
    "data not base64": (reads({"client-certificate-data": "hunter2"}), "client-certificate-data is not base64"),
    "data not PEM": (reads({"client-certificate-data": "aHVudGVyMg=="}), "client-certificate-data is not base64 of"),
    "plain http": (reads(server="http://hub"), "server: http://"),
    "no server": (reads(server=""), "server: not a URL"),
    "server a number": (reads(server=5), "server is not a string"),
    "hostile server": (reads(server="https://a\\@b"), "server: not a URL"),
    "SOCKS proxy": (reads(**{"proxy-url": "socks5://proxy"}), "proxy is not an http:// URL"),
    "proxy over TLS": (reads(**{"proxy-url": "https://proxy"}), "proxy is not an http:// URL"),
    "proxy nonsense": (reads(**{"proxy-url": "http://"}), "proxy is not an http:// URL"),
    "CA nonsense": (reads(ca="nonsense"), "certificate-authority-data is not base64 of PEM"),
    "CA damaged": (reads(ca="-----BEGIN CERTIFICATE-----\nx\n"), "certificate-authority is not a PEM certificate"),
    "CA file gone": (reads(**{"certificate-authority": "ca"}), "certificate-authority: /etc/ca: No such file"),
    "TLS name": (reads(**{"tls-server-name": "bücher"}), "tls-server-name is not a host name"),
    "TLS name with empty labels": (reads(**{"tls-server-name": ".hub"}), "tls-server-name is not a host name"),
    "empty file": (World({"KUBECONFIG": "/c"}, files={"/c": b""}), "no current-context"),
    "not a kubeconfig": (World({"KUBECONFIG": "/c"}, files={"/c": b"[]"}), "it is not a mapping"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_kubeconfig_that_cannot_serve_is_refused_by_its_field_and_no_value_is_shown(case: str) -> None:
    world, why = REFUSED[case]
    error = refused(world)
    assert [error.code, error.exit_status] == ["hub-config", 1]
    assert error.message.startswith(f"the hub (kubeconfig {world.variables['KUBECONFIG']} from variable KUBECONFIG")
    assert why in error.message
    assert "hunter2" not in f"{error.message}{error.hint}"


def test_a_pair_that_does_not_fit_is_refused() -> None:
    files = {"/c": PAIR.certificate.encode(), "/k": OTHER.key.encode()}
    error = refused(reads({"client-certificate": "/c", "client-key": "/k"}, files))
    assert [error.code, "the key is not the certificate's" in error.message] == ["certificate-invalid", True]


class Disk(World):
    """A world whose files are the real ones."""

    def read_file(self, path: str) -> bytes:
        return Env.read_file(self, path)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "/proc", "/proc/self/mem"])
def test_a_token_file_that_cannot_be_read_is_refused(name: str, tmp_path: Any) -> None:
    (tmp_path / "config").write_bytes(config({"tokenFile": name}))
    error = refused(Disk({"KUBECONFIG": str(tmp_path / "config")}))
    assert [error.code, "tokenFile" in error.message] == ["hub-config", True]


def test_a_kubeconfig_that_is_a_folder_is_refused(tmp_path: Any) -> None:
    assert "Is a directory" in refused(Disk({"KUBECONFIG": str(tmp_path)})).message
