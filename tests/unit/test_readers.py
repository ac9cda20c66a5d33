"""The two Secret readers: which Secret, which key, and what may not come from a profile."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from execcred import ExecCredError
from execcred._run import respond
from execcred.conformance.fakes.kube_server import kubeconfig
from execcred.conformance.fakes.pki import Authority
from unit.support import KUBECONFIG_READER, NOW, READER, World, exec_info, in_pod, read

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTHORITY = Authority()
PAIR = AUTHORITY.client("reader")
OTHER = AUTHORITY.client("other", key="rsa")
CA = base64.b64encode(AUTHORITY.pem.encode()).decode()


def pod(
    secrets: Mapping[str, Mapping[str, bytes]],
    config: object = None,
    variables: Mapping[str, str] | None = None,
    **options: Any,
) -> World:
    """Return a pod of namespace kueue, asked with `config`, on a hub with these Secrets."""
    asked = {} if config is None else {"KUBERNETES_EXEC_INFO": exec_info(config)}
    return in_pod(World({**asked, **(variables or {})}, secrets=secrets, **options))


def refused(world: World, *arguments: str, plugin: Any = READER) -> ExecCredError:
    """Run a plugin, which must fail."""
    with pytest.raises(ExecCredError) as caught:
        respond(plugin, arguments, world)
    return caught.value


# --- secretreader: which Secret ---

NAMED = [
    ({"clusterName": "one"}, [], "kueue/one", "token"),
    ({"secretName": "one"}, [], "kueue/one", "token"),
    ({"tokenSecretName": "one"}, [], "kueue/one", "token"),
    ({"clusterName": "x", "secretName": "one"}, [], "kueue/one", "token"),
    ({"clusterName": "one", "key": "k"}, [], "kueue/one", "k"),
    ({"clusterName": "one", "tokenSecretKey": "k"}, [], "kueue/one", "k"),
    ({"clusterName": "one", "namespace": "kueue"}, [], "kueue/one", "token"),
    ({"secretName": "one", "secretNamespace": "kueue", "key": "k"}, [], "kueue/one", "k"),
    ({"tokenSecretName": "one", "tokenSecretNamespace": "kueue"}, [], "kueue/one", "token"),
    ({}, ["--cluster-name=one"], "kueue/one", "token"),
    (None, ["--cluster-name=one"], "kueue/one", "token"),
    (None, ["--secret-name=one", "--namespace=other"], "other/one", "token"),
    ({"clusterName": "one"}, ["--secret-name-template={clusterName}-mysa"], "kueue/one-mysa", "token"),
    ({"clusterName": "one"}, ["--secret-name-template=fixed"], "kueue/fixed", "token"),
    ({}, ["--secret-name-template=fixed"], "kueue/fixed", "token"),
    ({"clusterName": "one"}, ["--managed-serviceaccount=mysa"], "kueue/one-mysa", "token"),
    ({"clusterName": "one", "secretName": "one-mysa"}, ["--managed-serviceaccount=mysa"], "kueue/one-mysa", "token"),
    ({"clusterName": "evil"}, ["--cluster-name=one"], "kueue/one", "token"),
    ({"secretName": "evil", "key": "evil"}, ["--secret-name=one", "--key=k"], "kueue/one", "k"),
    ({"namespace": "b", "clusterName": "one"}, ["--allow-namespace=a,b"], "b/one", "token"),
    ({"namespace": "b", "clusterName": "one"}, ["--allow-namespace=*"], "b/one", "token"),
    ({"clusterName": "one"}, ["--profile-args", "--key=k"], "kueue/one", "k"),
]


@pytest.mark.parametrize(("config", "arguments", "place", "key"), NAMED)
def test_one_get_of_the_secret_that_admin_and_profile_name(
    config: object, arguments: list[str], place: str, key: str
) -> None:
    world = pod({place: {key: b"abc\n", "other": b"x"}}, config)
    assert read(world, *arguments) == {"token": "abc"}
    namespace, name = place.split("/")
    assert world.asked == [f"/api/v1/namespaces/{namespace}/secrets/{name}"]
    assert world.sent["Authorization"] == "Bearer pod-token"


@pytest.mark.parametrize("name", ["NAMESPACE", "EXECCRED_NAMESPACE"])
def test_the_namespace_may_come_from_the_admins_environment(name: str) -> None:
    assert read(pod({"other/one": {"token": b"t"}}, {"clusterName": "one"}, {name: "other"})) == {"token": "t"}


PROFILES = [
    ({"clusterName": "one", "namespace": "kube-system"}, [], "a profile may not choose the namespace 'kube-system'"),
    ({"clusterName": "one", "secretNamespace": "kube-system"}, [], "may not choose the namespace 'kube-system'"),
    ({"clusterName": "one", "namespace": "a"}, ["--namespace=b"], "a profile may not set namespace"),
    ({"clusterName": "one", "namespace": "c"}, ["--allow-namespace=a,b"], "may not choose the namespace 'c'"),
    ({"clusterName": "one", "namespace": "*"}, ["--allow-namespace=a"], "may not choose the namespace '*'"),
    ({"clusterName": "one"}, ["--profile-args", "--namespace=x"], "may not choose the namespace 'x'"),
    ({"secretName": "evil"}, ["--secret-name-template=fixed"], "the admin's template gives 'fixed'"),
    ({"clusterName": "a", "secretName": "evil"}, ["--managed-serviceaccount=m"], "the admin's template gives 'a-m'"),
    ({"clusterName": "a", "secretNameTemplate": "evil"}, [], "may not set secret-name-template"),
    ({"clusterName": "a", "managedServiceaccount": "x"}, [], "may not set managed-serviceaccount"),
    ({"clusterName": "a", "kubeconfig": "/evil"}, [], "may not set kubeconfig"),
    ({"clusterName": "a"}, ["--profile-args", "--kubeconfig=/evil"], "may not set kubeconfig"),
    ({"clusterName": "a"}, ["--profile-args", "--context=evil"], "may not set context"),
    ({"clusterName": "a", "allowNamespace": "*"}, [], "may not set allow-namespace"),
    ({"clusterName": "a", "allowServer": "*"}, [], "may not set allow-server"),
    ({"clusterName": "a", "timeout": 3600}, [], "may not set timeout"),
    ({"clusterName": "a", "output": "token"}, [], "may not set output"),
    ({"clusterName": "a", "logLevel": "debug"}, [], "may not set log-level"),
]


@pytest.mark.parametrize(("config", "arguments", "why"), PROFILES)
def test_what_a_profile_may_not_choose_is_refused_before_the_hub_is_asked(
    config: object, arguments: list[str], why: str
) -> None:
    world = pod({}, config)
    error = refused(world, *arguments)
    assert [error.code, error.exit_status, world.asked] == ["profile-refused", 1, []]
    assert why in error.message


@pytest.mark.parametrize("reader", [READER, KUBECONFIG_READER])
@pytest.mark.parametrize(
    "name", ["..", ".", "a/../../b", "a%2fb", "a?x", "a b", "A", "ä", "a\n", "a{clusterName}", "x" * 254, "-", "١"]
)
def test_a_name_that_no_secret_can_have_never_becomes_a_path(name: str, reader: Any) -> None:
    world = pod({}, {"secretName": name})
    error = refused(world, plugin=reader)
    assert [error.exit_status, world.asked] == [2, []]
    assert error.code in ("secret-name-invalid", "setting-invalid")


@pytest.mark.parametrize("name", ["a.b", "a/b", "", "x" * 64])
def test_a_name_that_no_namespace_can_have_never_becomes_a_path(name: str) -> None:
    world = pod({}, {"clusterName": "one"})
    error = refused(world, "--namespace", name)
    assert [error.exit_status, error.code in ("secret-name-invalid", "usage"), world.asked] == [2, True, []]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("", "no cluster info; set provideClusterInfo: true"),
        ('{"spec":{}}', "no cluster info; set provideClusterInfo: true"),
        ('{"spec":{"cluster":{"server":""}}}', "the cluster info holds no config; add the extension"),
        (exec_info(None), "the cluster info holds no config; add the extension"),
        (exec_info({}), "the cluster info holds no config; add the extension"),
        (exec_info({"a": "b"}), "the config holds no clusterName"),
        (exec_info({"clusterName": ""}), "the config holds no clusterName"),
    ],
)
def test_each_way_of_lacking_a_cluster_name_has_its_own_remedy(raw: str, why: str) -> None:
    error = refused(in_pod(World({"KUBERNETES_EXEC_INFO": raw})))
    assert [error.code, error.exit_status, "--cluster-name" in error.hint] == ["cluster-name-missing", 2, True]
    assert why in error.message


def test_a_hub_without_a_namespace_needs_the_flag() -> None:
    body = kubeconfig("https://127.0.0.1", "", {"token": "t"})
    world = World({"KUBECONFIG": "/c"}, files={"/c": json.dumps(body).encode()}, secrets={"own/one": {"token": b"t"}})
    error = refused(world, "--cluster-name=one")
    assert [error.code, error.exit_status] == ["namespace-missing", 2]
    assert read(world, "--cluster-name=one", "--namespace=own") == {"token": "t"}


def test_a_certificate_alone_sends_no_token_to_the_hub() -> None:
    user = {
        f"client-{name}-data": base64.b64encode(text.encode()).decode()
        for name, text in (("certificate", PAIR.certificate), ("key", PAIR.key))
    }
    body = kubeconfig("https://127.0.0.1", AUTHORITY.pem, user, "own")
    world = World({"KUBECONFIG": "/c"}, files={"/c": json.dumps(body).encode()}, secrets={"own/one": {"token": b"t"}})
    assert read(world, "--cluster-name=one") == {"token": "t"}
    assert "Authorization" not in world.sent


# --- secretreader: what is in it ---


def test_a_secret_of_type_tls_gives_a_client_certificate() -> None:
    data = {"tls.crt": PAIR.certificate.encode(), "tls.key": PAIR.key.encode(), "ca.crt": b"x"}
    world = pod({"kueue/one": data}, {"clusterName": "one"}, type="kubernetes.io/tls", now=time.time())
    found = read(world)
    assert found.pop("expirationTimestamp").endswith("Z")
    assert found == {"clientCertificateData": PAIR.certificate, "clientKeyData": PAIR.key}
    assert refused(world, "--output=token").code == "output-impossible"


CONTENTS: dict[str, tuple[dict[str, bytes], str, int, str]] = {
    "key missing": ({"b": b"x", "a": b"y"}, "secret-key-missing", 1, "keys there: a, b"),
    "no keys": ({}, "secret-key-missing", 1, "keys there: none"),
    "hostile keys": ({"a\n[x]": b"x"}, "secret-key-missing", 1, "keys there: a?[x]"),
    "empty": ({"token": b""}, "secret-key-empty", 3, "not filled in yet"),
    "blank": ({"token": b" \n"}, "secret-key-empty", 3, "not filled in yet"),
    "binary": ({"token": b"hunter2\xff"}, "token-invalid", 1, "byte 8 of 8"),
    "two lines": ({"token": b"hunter2\nhunter2"}, "token-invalid", 1, "character 8 of 15"),
    "a whole header": ({"token": b"Bearer hunter2"}, "token-invalid", 1, "character 7 of 14"),
    "only a byte order mark": ({"token": b"\xef\xbb\xbf"}, "credential-incomplete", 1, "neither a token"),
    "a kubeconfig": ({"token": b"apiVersion: v1\n"}, "token-invalid", 1, "character 12"),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_a_value_that_is_no_token_is_told_apart_and_not_shown(case: str) -> None:
    data, code, status, why = CONTENTS[case]
    error = refused(pod({"kueue/one": data}, {"clusterName": "one"}))
    assert [error.code, error.exit_status] == [code, status]
    assert why in f"{error.message} {error.hint}"
    assert "hunter2" not in f"{error.message}{error.hint}"


TLS: dict[str, tuple[dict[str, bytes], str]] = {
    "key missing": ({"tls.crt": PAIR.certificate.encode()}, "secret-key-missing"),
    "key empty": ({"tls.crt": PAIR.certificate.encode(), "tls.key": b""}, "secret-key-empty"),
    "key of another": ({"tls.crt": PAIR.certificate.encode(), "tls.key": OTHER.key.encode()}, "certificate-invalid"),
    "swapped": ({"tls.crt": PAIR.key.encode(), "tls.key": PAIR.certificate.encode()}, "certificate-invalid"),
    "base64 twice": (
        {"tls.crt": base64.b64encode(PAIR.certificate.encode()), "tls.key": PAIR.key.encode()},
        "certificate-invalid",
    ),
    "binary": ({"tls.crt": b"\xff", "tls.key": b"\xff"}, "token-invalid"),
}


@pytest.mark.parametrize("case", TLS)
def test_half_or_broken_pairs_are_refused(case: str) -> None:
    data, code = TLS[case]
    world = pod({"kueue/one": data}, {"clusterName": "one"}, type="kubernetes.io/tls", now=time.time())
    assert refused(world).code == code


def test_an_expired_certificate_is_a_failure() -> None:
    pair = AUTHORITY.client("late", starts=-7200, ends=-3600)
    data = {"tls.crt": pair.certificate.encode(), "tls.key": pair.key.encode()}
    world = pod({"kueue/one": data}, {"clusterName": "one"}, type="kubernetes.io/tls", now=time.time())
    assert [refused(world).code, refused(world).exit_status] == ["credential-expired", 3]


def test_the_answer_is_the_same_byte_for_byte_while_the_secret_is() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": NOW + 3600}).encode()).decode().rstrip("=")
    world = pod({"kueue/one": {"token": f"e30.{claims}.x".encode()}}, {"clusterName": "one"})
    first = respond(READER, [], world)
    world.clock += 1000
    assert respond(READER, [], world) == first
    assert '"expirationTimestamp":"2027-01-15T08:59:00Z"' in first


def test_a_bare_token_is_printed_on_request() -> None:
    assert respond(READER, ["--output=token"], pod({"kueue/one": {"token": b"t\n"}}, {"clusterName": "one"})) == "t\n"


# --- kubeconfig-secretreader ---


def stored(user: object, server: str = "https://spoke.example:6443", **more: Any) -> bytes:
    """Return a kubeconfig as a Secret holds it."""
    body = kubeconfig(server, "", {}, **more)
    body["users"][0]["user"] = user
    return json.dumps(body).encode()


def read_kubeconfig(data: Mapping[str, bytes], config: Any = None, *arguments: str, **options: Any) -> dict[str, str]:
    """Read a kubeconfig from Secret `one`."""
    world = pod({"kueue/one": data}, {"name": "one", **(config or {})}, **options)
    return read(world, *arguments, plugin=KUBECONFIG_READER)


def refused_kubeconfig(data: Mapping[str, bytes], *arguments: str, config: Any = None) -> ExecCredError:
    """Read a kubeconfig from Secret `one`, which must fail."""
    world = pod({"kueue/one": data}, {"name": "one", **(config or {})})
    return refused(world, *arguments, plugin=KUBECONFIG_READER)


TOKEN = {"token": "abc"}


@pytest.mark.parametrize(
    ("keys", "config", "arguments", "found"),
    [
        (["value", "kubeconfig", "Config"], {}, [], "value"),
        (["kubeconfig", "Config", "z"], {}, [], "kubeconfig"),
        (["Config", "a"], {}, [], "Config"),
        (["value", "mine"], {"key": "mine"}, [], "mine"),
        (["value", "mine", "theirs"], {"key": "theirs"}, ["--key=mine"], "mine"),
    ],
)
def test_without_a_key_the_common_ones_are_tried_in_order(
    keys: list[str], config: dict[str, str], arguments: list[str], found: str
) -> None:
    data = {key: stored({"token": f"of-{key}"}) for key in keys}
    assert read_kubeconfig(data, config, *arguments) == {"token": f"of-{found}"}


def test_without_any_common_key_those_there_are_listed() -> None:
    error = refused_kubeconfig({"a": b"x", "b": b"y"})
    assert [error.code, "keys there: a, b" in error.hint] == ["secret-key-missing", True]


def test_an_empty_key_may_be_filled_later() -> None:
    assert refused_kubeconfig({"value": b""}).exit_status == 3


def test_reading_the_kubeconfig_is_a_step_of_its_own_for_the_deadlines_error() -> None:
    world = pod({"kueue/one": {"value": stored(TOKEN)}}, {"name": "one"})
    assert read(world, plugin=KUBECONFIG_READER) == {"token": "abc"}
    assert world.step == "reading the kubeconfig in key 'value' of Secret kueue/one"


def test_the_context_may_be_chosen_by_profile_or_admin() -> None:
    body = json.loads(stored(TOKEN))
    body["users"].append({"name": "you", "user": {"token": "def"}})
    body["contexts"].append({"name": "second", "context": {"cluster": "there", "user": "you"}})
    data = {"value": json.dumps(body).encode()}
    assert read_kubeconfig(data) == {"token": "abc"}
    assert read_kubeconfig(data, {"context": "second"}) == {"token": "def"}
    assert read_kubeconfig(data, {"context": "second"}, "--secret-context=here") == {"token": "abc"}


def test_a_kubeconfig_may_hold_token_and_certificate_and_yaml() -> None:
    text = f"""
current-context: here
clusters: [{{name: there, cluster: {{server: "https://spoke", certificate-authority: /etc/ca}}}}]
users:
- name: me
  user:
    token: 0123
    client-certificate-data: {base64.b64encode(PAIR.certificate.encode()).decode()}
    client-key-data: {base64.b64encode(PAIR.key.encode()).decode()}
    extensions: [{{name: harmless}}]
contexts: [{{name: here, context: {{cluster: there, user: me}}}}]
"""
    found = read_kubeconfig({"value": text.encode()}, now=time.time())
    assert [found["token"], found["clientCertificateData"], found["clientKeyData"]] == ["0123", *PAIR]


USERS: dict[str, tuple[object, str]] = {
    "exec": ({"exec": {"command": "touch", "args": ["/tmp/pwned"]}}, "has exec, which is never followed; embed token"),
    "exec beside a token": ({**TOKEN, "exec": {"command": "sh"}}, "has exec"),
    "auth-provider": ({"auth-provider": {"name": "oidc"}}, "has auth-provider"),
    "tokenFile": ({"tokenFile": "/etc/passwd"}, "has tokenFile, which is never followed; embed token instead"),
    "tokenFile beside a token": ({**TOKEN, "tokenFile": "/etc/passwd"}, "has tokenFile"),
    "certificate file": ({"client-certificate": "/c", "client-key": "/k"}, "embed client-certificate-data instead"),
    "key file": ({"client-key": "/k"}, "embed client-key-data instead"),
    "basic auth": ({"username": "u", "password": "hunter2"}, "has username"),
    "password": ({"password": "hunter2"}, "has password"),
    "impersonation": ({**TOKEN, "as": "admin"}, "has as"),
    "impersonated groups": ({**TOKEN, "as-groups": ["system:masters"]}, "has as-groups"),
    "only a certificate": ({"client-certificate-data": CA}, "only one of client-certificate-data and client-key-data"),
    "only a key": ({"client-key-data": CA}, "only one of client-certificate-data and client-key-data"),
    "not base64": ({"client-key-data": "hunter2"}, "client-key-data is not base64 of PEM"),
    "nothing": ({}, "neither token nor client-certificate-data"),
    "null": (None, "neither token nor client-certificate-data"),
    "token a number": ({"token": 5}, "token is not a string"),
    "token a list": ({"token": ["hunter2"]}, "token is not a string"),
}


@pytest.mark.parametrize("case", USERS)
def test_a_user_that_leads_elsewhere_or_nowhere_is_refused_by_its_field(case: str) -> None:
    user, why = USERS[case]
    error = refused_kubeconfig({"value": stored(user)})
    assert [error.code, error.exit_status] == ["kubeconfig-refused", 1]
    assert error.message.startswith("the kubeconfig in key 'value' of Secret kueue/one cannot be used: ")
    assert why in error.message
    assert "hunter2" not in f"{error.message}{error.hint}"


@pytest.mark.parametrize(
    ("raw", "why"),
    [("", "no cluster info (provideClusterInfo: true)"), (exec_info({}), "no name in the config")],
)
def test_each_way_of_lacking_a_secret_name_has_its_own_remedy(raw: str, why: str) -> None:
    error = refused(in_pod(World({"KUBERNETES_EXEC_INFO": raw})), plugin=KUBECONFIG_READER)
    assert [error.code, error.exit_status, "--secret-name" in error.hint] == ["secret-name-missing", 2, True]
    assert why in error.message


@pytest.mark.parametrize(
    ("config", "arguments", "why"),
    [
        ({"namespace": "kube-system"}, [], "may not choose the namespace 'kube-system'"),
        ({"checkServer": "off"}, ["--check-server=enforce"], "may not set check-server"),
        ({"kubeconfig": "/evil"}, [], "may not set kubeconfig"),
        ({}, ["--profile-args", "--check-server=off"], "may not set check-server"),
    ],
)
def test_a_profile_may_not_choose_more_than_name_key_and_context(config: Any, arguments: list[str], why: str) -> None:
    error = refused_kubeconfig({"value": stored(TOKEN)}, *arguments, config=config)
    assert [error.code, why in error.message] == ["profile-refused", True]


def test_a_profile_may_name_the_consumers_own_namespace() -> None:
    assert read_kubeconfig({"value": stored(TOKEN)}, {"namespace": "kueue"}) == {"token": "abc"}


@pytest.mark.parametrize("mode", ["off", "warn", "enforce"])
def test_the_same_server_passes_every_check(mode: str) -> None:
    data = {"value": stored(TOKEN, server="HTTPS://Spoke.Example:6443/")}
    world = pod({"kueue/one": data}, {"name": "one"})
    assert read(world, f"--check-server={mode}", plugin=KUBECONFIG_READER) == {"token": "abc"}
    assert world.warned == []


@pytest.mark.parametrize("server", ["https://elsewhere", "https://u:hunter2@elsewhere", "", 5])
def test_another_server_is_warned_of_or_refused_as_the_admin_says(server: Any) -> None:
    data = {"value": stored(TOKEN, server=server)}
    world = pod({"kueue/one": data}, {"name": "one"})
    assert read(world, "--check-server=off", plugin=KUBECONFIG_READER) == {"token": "abc"}
    assert world.warned == []
    assert read(world, "--check-server=warn", plugin=KUBECONFIG_READER) == {"token": "abc"}
    assert [len(world.warned), "hunter2" in world.warned[0]] == [1, False]
    error = refused(world, "--check-server=enforce", plugin=KUBECONFIG_READER)
    assert [error.code, error.exit_status, error.message] == ["server-mismatch", 1, world.warned[0]]


# --- what the admin pins ---

EVIL = {"clusterName": "evil", "secretName": "evil", "name": "evil", "key": "evil", "context": "evil"}
PINNED = ["--secret-name=one", "--key=k", "--secret-context=here"]


@pytest.mark.parametrize("by", ["flags", "variables", "flags against the sealed"])
@pytest.mark.parametrize("plugin", [READER, KUBECONFIG_READER])
def test_what_the_admin_pins_no_profile_chooses_be_it_name_key_or_context(plugin: Any, by: str) -> None:
    pins = PINNED if plugin is KUBECONFIG_READER else PINNED[:2]
    variables = {
        f"EXECCRED_{name.upper().replace('-', '_')}": value
        for name, value in [pin.removeprefix("--").split("=") for pin in pins]
    }
    sealed = ["--profile-args", *[f"{pin.partition('=')[0]}=evil" for pin in pins]]
    data = {"k": stored(TOKEN) if plugin is KUBECONFIG_READER else b"abc"}
    world = pod({"kueue/one": data, "kueue/evil": {}}, EVIL, variables if by == "variables" else {})
    arguments = {"flags": pins, "variables": [], "flags against the sealed": [*pins, *sealed]}[by]
    assert read(world, *arguments, plugin=plugin) == {"token": "abc"}
    assert world.asked == ["/api/v1/namespaces/kueue/secrets/one"]


# --- where a credential may go ---


def asks(server: str = "https://spoke.example", **cluster: Any) -> World:
    """Return a pod asked for a credential for a cluster."""
    fields = {"server": server, "config": {"clusterName": "one", "name": "one"}, **cluster}
    raw = json.dumps({"spec": {"cluster": fields}})
    data = {"token": b"t", "value": stored(TOKEN)}
    return in_pod(World({"KUBERNETES_EXEC_INFO": raw}, secrets={"kueue/one": data}))


@pytest.mark.parametrize("plugin", [READER, KUBECONFIG_READER])
def test_a_listed_server_gets_the_credential(plugin: Any) -> None:
    for world in (asks(), asks(**{"proxy-url": "http://proxy.example:3128"}), asks("https://SPOKE.example:443/x")):
        assert "token" in read(world, "--allow-server=*.example", plugin=plugin)


@pytest.mark.parametrize("plugin", [READER, KUBECONFIG_READER])
@pytest.mark.parametrize(
    "world",
    [
        asks("https://evil.test"),
        asks("http://spoke.example"),
        asks("https://user@spoke.example"),
        asks("https://spoke.example@evil.test"),
        asks("https://evil.test?@spoke.example"),
        asks("https://evil.test\\@spoke.example"),
        asks("https://spoke.example", **{"proxy-url": "http://evil.test"}),
        asks("https://spoke.example", proxyURL="http://evil.test"),
        asks("https://spoke.example", **{"insecure-skip-tls-verify": True}),
        asks("https://spoke.example", insecureSkipTLSVerify=True),
    ],
)
def test_no_other_server_does_and_the_hub_is_not_even_asked(world: World, plugin: Any) -> None:
    error = refused(world, "--allow-server=*.example", plugin=plugin)
    assert [error.code, error.exit_status, world.asked] == ["server-refused", 1, []]


@pytest.mark.parametrize("raw", ["", '{"spec":{"cluster":{"config":{"clusterName":"one"}}}}'])
def test_nor_does_a_server_that_was_not_named(raw: str) -> None:
    error = refused(in_pod(World({"KUBERNETES_EXEC_INFO": raw})), "--allow-server=*", "--cluster-name=one")
    assert [error.code, error.exit_status] == ["server-unknown", 2]
