"""The exec credential protocol: what is accepted as a request, what is answered, when a credential ends."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import Any

import pytest

from execcred import BadRequest, Credential, ExecCredError, Request, TryAgain
from execcred._protocol import (
    announced_end,
    clean_token,
    finish,
    jwt_claims,
    parse_request,
    render,
    rfc3339,
    token_end,
)
from unit.support import NOW, V1, V1BETA1, exec_info


def cluster(**fields: Any) -> str:
    """Return a request whose spec.cluster is `fields`."""
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "spec": {"cluster": fields}})


def no_certificate(certificate: str, key: str, now: float) -> float:
    """Stand for the certificate check where no certificate is expected."""
    raise AssertionError


# --- the request ---


@pytest.mark.parametrize("raw", [None, "", " \n"])
def test_no_request_at_all_is_stand_alone_use(raw: str | None) -> None:
    request = parse_request(raw)
    assert [request.api_version, request.interactive, request.cluster, request.config] == ["", True, None, {}]


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_the_version_asked_for_is_kept(version: str) -> None:
    assert parse_request(exec_info(version=version)).api_version == version


@pytest.mark.parametrize(
    "raw", ["{}", '{"apiVersion":""}', '{"apiVersion":null,"kind":null,"spec":null}', '\ufeff{"kind":""}']
)
def test_an_object_that_names_no_version_leaves_the_choice_to_us(raw: str) -> None:
    request = parse_request(raw)
    assert [request.api_version, request.interactive, request.cluster] == ["", False, None]


@pytest.mark.parametrize(
    "version", ["client.authentication.k8s.io/v1alpha1", "client.authentication.k8s.io/V1", "v1", 1, 0, False, [], {}]
)
def test_another_version_is_refused_and_the_supported_ones_are_named(version: object) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_request(json.dumps({"apiVersion": version}))
    assert caught.value.code == "api-version-unsupported"
    assert V1 in caught.value.message
    assert V1BETA1 in caught.value.message


INVALID = {
    "not JSON": ("{not json", "at character 1 of 9"),
    "text behind the object": ("{} {}", "at character 3 of 5"),
    "an array": ("[]", "must be an object, is an array"),
    "a string": ('"x"', "must be an object, is a string"),
    "a number": ("7", "must be an object, is a number"),
    "null": ("null", "must be an object, is null"),
    "a boolean": ("true", "must be an object, is a boolean"),
    "another kind": ('{"kind":"Pod"}', "kind is not ExecCredential"),
    "a kind that is no string": ('{"kind":{}}', "kind is not ExecCredential"),
    "not UTF-8": ('{"a":"\udcff"}', "not UTF-8"),
    "nested too deep": ("[" * 100_000, "nested too deep"),
    "a number of 5,000 digits": ('{"a":' + "9" * 5000 + "}", "out of range"),
    "NaN": ('{"a":NaN}', "out of range"),
    "spec an array": ('{"spec":[]}', "spec must be an object, is an array"),
    "spec false": ('{"spec":false}', "spec must be an object, is a boolean"),
    "interactive a string": ('{"spec":{"interactive":"false"}}', "spec.interactive must be true or false"),
    "interactive a number": ('{"spec":{"interactive":0}}', "spec.interactive must be true or false"),
    "cluster a string": ('{"spec":{"cluster":"x"}}', "spec.cluster must be an object, is a string"),
    "cluster an array": ('{"spec":{"cluster":[]}}', "spec.cluster must be an object, is an array"),
    "server a number": (cluster(server=1), "spec.cluster.server must be a string, is a number"),
    "proxy an object": (cluster(**{"proxy-url": {}}), "spec.cluster.proxy-url must be a string, is an object"),
    "CA a number": (
        cluster(**{"certificate-authority-data": 1}),
        "spec.cluster.certificate-authority-data must be a string, is a number",
    ),
    "insecure a string": (
        cluster(**{"insecure-skip-tls-verify": "true"}),
        "spec.cluster.insecure-skip-tls-verify must be true or false",
    ),
    "config a string": (cluster(config="x"), "spec.cluster.config must be an object, is a string"),
    "config an array": (cluster(config=[]), "spec.cluster.config must be an object, is an array"),
    "config false": (cluster(config=False), "spec.cluster.config must be an object, is a boolean"),
}


@pytest.mark.parametrize("case", INVALID)
def test_a_request_of_a_wrong_shape_is_refused_with_its_place(case: str) -> None:
    raw, why = INVALID[case]
    with pytest.raises(BadRequest) as caught:
        parse_request(raw)
    assert caught.value.code == "exec-info-invalid"
    assert why in caught.value.message


def test_an_invalid_request_is_never_repeated() -> None:
    with pytest.raises(BadRequest) as caught:
        parse_request('{"spec":{"cluster":{"config":{"password":"hunter2"}}},}')
    assert "hunter2" not in f"{caught.value.message}{caught.value.hint}"


@pytest.mark.parametrize("config", [None, {}])
def test_null_and_an_empty_object_are_both_no_config(config: object) -> None:
    assert parse_request(exec_info(config)).config == {}


def test_a_cluster_without_config_has_none() -> None:
    assert parse_request(cluster(server="https://x")).config == {}


def test_null_fields_and_unknown_fields_are_harmless() -> None:
    request = parse_request(cluster(server=None, future={"a": [1]}, **{"insecure-skip-tls-verify": None}))
    assert request.server == ""
    assert not parse_request('{"spec":{"interactive":null},"more":1}').interactive


HYPHENATED = {
    "server": "https://spoke",
    "tls-server-name": "inner",
    "proxy-url": "http://proxy",
    "certificate-authority-data": "Q0E=",
    "insecure-skip-tls-verify": True,
    "config": {"a": 1},
}
CAMEL = {
    "server": "https://spoke",
    "tlsServerName": "inner",
    "proxyUrl": "http://proxy",
    "certificateAuthorityData": "Q0E=",
    "insecureSkipTlsVerify": True,
    "config": {"a": 1},
}
GO = {**CAMEL, "proxyURL": "http://proxy", "insecureSkipTLSVerify": True, "TLSServerName": "inner"}
for name in ("proxyUrl", "insecureSkipTlsVerify", "tlsServerName"):
    del GO[name]


@pytest.mark.parametrize("fields", [HYPHENATED, CAMEL, GO], ids=["hyphenated", "camelCase", "acronyms"])
def test_every_spelling_of_the_cluster_fields_is_understood(fields: dict[str, Any]) -> None:
    found = parse_request(cluster(**fields)).cluster
    assert found is not None
    assert [found.server, found.tls_server_name, found.proxy_url] == ["https://spoke", "inner", "http://proxy"]
    assert [found.ca_data, found.insecure_skip_tls_verify, found.config] == ["Q0E=", True, {"a": 1}]


def test_of_two_spellings_the_hyphenated_one_wins() -> None:
    for fields in ({"tlsServerName": "b", "tls-server-name": "a"}, {"tls-server-name": "a", "tlsServerName": "b"}):
        found = parse_request(cluster(**fields)).cluster
        assert found is not None
        assert found.tls_server_name == "a"


def test_the_kubeconfig_map_of_the_official_python_client_is_understood() -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "one"}}
    other = {"name": "minikube", "extension": {"clusterName": "two"}}
    raw = cluster(server="https://spoke", extensions=[other, "odd", extension])
    assert parse_request(raw).config == {"clusterName": "one"}


@pytest.mark.parametrize(
    "extensions", [None, [], {}, "x", [{"name": "other"}], [{"name": "client.authentication.k8s.io/exec"}]]
)
def test_extensions_that_hold_no_config_are_no_config(extensions: object) -> None:
    assert parse_request(cluster(extensions=extensions)).config == {}


def test_a_request_without_cluster_has_neither_server_nor_config() -> None:
    request = Request(V1, False, None)
    assert [request.server, request.config] == ["", {}]


# --- tokens ---


@pytest.mark.parametrize(
    "stored", ["abc", "abc\n", "\r\nabc\r\n", " \tabc\v\f", "\ufeffabc", "\ufeff abc", "  \ufeffabc"]
)
def test_outer_whitespace_and_a_byte_order_mark_are_stripped(stored: str) -> None:
    assert clean_token(stored) == "abc"


@pytest.mark.parametrize(
    ("stored", "place"),
    [
        ("ab\ncd", "character 3 of 5 is U+000A"),
        ("Bearer abc", "character 7 of 10 is U+0020"),
        ("abc\xa0", "character 4 of 4 is U+00A0"),
        ("\u2028abc", "character 1 of 4 is U+2028"),
        ("abc\0", "character 4 of 4 is U+0000"),
        ("ä", "character 1 of 1 is U+00E4"),
        ("a\ufeffb", "character 2 of 3 is U+FEFF"),
        ("\udcff", "character 1 of 1 is U+DCFF"),
        ("١٢٣", "character 1 of 3 is U+0661"),
        ("a\x7f", "character 2 of 2 is U+007F"),
    ],
)
def test_what_a_header_cannot_carry_is_refused_by_its_position(stored: str, place: str) -> None:
    with pytest.raises(ExecCredError) as caught:
        clean_token(stored)
    assert caught.value.code == "token-invalid"
    assert place in caught.value.message
    assert stored not in caught.value.message


def jwt(claims: object) -> str:
    """Return an unsigned JWT."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{body}.c2ln"


def presigned(url: str, pad: bool = False) -> str:
    """Return a token as EKS takes it."""
    text = base64.urlsafe_b64encode(url.encode()).decode()
    return "k8s-aws-v1." + (text if pad else text.rstrip("="))


STS = "https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Date=20270115T080000Z&X-Amz-Expires=60"
ENDS = {
    "JWT": (jwt({"exp": 1_800_000_600}), 1_800_000_600.0),
    "JWT, fraction": (jwt({"exp": 1_800_000_600.5}), 1_800_000_600.5),
    "EKS": (presigned(STS), NOW + 900),
    "EKS, padded": (presigned(STS + "1", pad=True), NOW + 900),
    "no dot": ("opaque", None),
    "dots only": ("..", None),
    "two parts": ("a.b", None),
    "JWT without exp": (jwt({"sub": "x"}), None),
    "exp a string": (jwt({"exp": "1800000600"}), None),
    "exp a boolean": (jwt({"exp": True}), None),
    "exp null": (jwt({"exp": None}), None),
    "exp zero": (jwt({"exp": 0}), 0.0),
    "exp negative": (jwt({"exp": -5.5}), 0.0),
    "exp beyond a float": (jwt({"exp": -(10**400)}), 0.0),
    "exp in milliseconds": (jwt({"exp": 1_800_000_600_000}), None),
    "exp infinite": ("e30." + base64.urlsafe_b64encode(b'{"exp":1e999}').decode().rstrip("=") + ".x", None),
    "exp not a number": ("e30." + base64.urlsafe_b64encode(b'{"exp":NaN}').decode().rstrip("=") + ".x", None),
    "exp of 5,000 digits": (
        "e30." + base64.urlsafe_b64encode(b'{"exp":' + b"9" * 5000 + b"}").decode().rstrip("=") + ".x",
        None,
    ),
    "claims an array": (jwt([1]), None),
    "claims not base64": ("a.!!!.c", None),
    "claims not UTF-8": ("a." + base64.urlsafe_b64encode(b"\xff\xfe\xfd").decode() + ".c", None),
    "claims nested too deep": ("a." + base64.urlsafe_b64encode(b"[" * 99_999).decode() + ".c", None),
    "EKS, not base64": ("k8s-aws-v1.!!!", None),
    "EKS, no date": (presigned("https://sts.amazonaws.com/?Action=GetCallerIdentity"), None),
    "EKS, date cut off": (presigned("https://sts.amazonaws.com/?X-Amz-Date=2027"), None),
    "EKS, date without zone": (presigned("https://sts.amazonaws.com/?X-Amz-Date=20270115T080000&a"), None),
    "EKS, date without zone at the end": (presigned("https://sts.amazonaws.com/?X-Amz-Date=20270115T080000"), None),
    "EKS, the first of all dates": (
        presigned("https://sts.amazonaws.com/?X-Amz-Date=00010101T000000Z"),
        -62135595900.0,
    ),
    "EKS, not a URL": (presigned("X-Amz-Date=20270115T080000Z"), None),
    "EKS, not ASCII": (presigned("https://ä/?X-Amz-Date=20270115T080000Z"), None),
}


@pytest.mark.parametrize("case", ENDS)
def test_a_token_that_tells_its_end_is_believed_and_any_other_has_none(case: str) -> None:
    token, end = ENDS[case]
    assert token_end(token) == end


def test_claims_of_what_is_no_jwt_are_empty() -> None:
    assert jwt_claims("opaque") == {}
    assert jwt_claims(jwt({"sub": "x"})) == {"sub": "x"}


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Kathmandu", "Europe/Berlin", ":nonsense", ""])
def test_ends_do_not_depend_on_the_time_zone(zone: str) -> None:
    code = "import sys; from execcred._protocol import *; print([rfc3339(token_end(each)) for each in sys.argv[1:]])"
    berlin_changes_clocks = presigned(STS.replace("20270115T080000Z", "20270328T003000Z"))
    command = [sys.executable, "-c", code, presigned(STS), jwt({"exp": 1_800_000_900}), berlin_changes_clocks]
    done = subprocess.run(command, env={"TZ": zone}, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['2027-01-15T08:15:00Z', '2027-01-15T08:15:00Z', '2027-03-28T00:45:00Z']"


# --- expiry ---


@pytest.mark.parametrize(
    ("left", "announced"),
    [
        (-1, None),
        (0, None),
        (0.5, None),
        (1, 1),
        (1.9, 1),
        (19, 19),
        (20, 20),
        (20.5, 10),
        (21, 11),
        (60, 50),
        (60.5, 30),
        (61, 31),
        (120, 90),
        (120.5, 60),
        (121, 61),
        (900, 840),
        (86400, 86340),
    ],
)
def test_the_end_is_announced_early_but_never_in_the_past(left: float, announced: int | None) -> None:
    assert announced_end(NOW + left, NOW) == (None if announced is None else NOW + announced)


def test_the_announced_end_stays_the_same_between_two_steps() -> None:
    assert {announced_end(NOW + 900, NOW + passed) for passed in range(779)} == {int(NOW + 840)}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-5, "1970-01-01T00:00:00Z"),
        (1_800_000_000.99, "2027-01-15T08:00:00Z"),
        (4e9, "2096-10-02T07:06:40Z"),
        (1e18, "9999-12-31T23:59:59Z"),
    ],
)
def test_time_is_written_in_whole_seconds_of_utc(seconds: float, text: str) -> None:
    assert rfc3339(seconds) == text


# --- the answer ---


def test_a_token_gets_its_own_end_unless_the_plugin_knows_better() -> None:
    token = jwt({"exp": NOW + 600})
    assert finish(Credential(token + "\n"), NOW, no_certificate).expires == NOW + 600
    assert finish(Credential(token, expires=NOW + 300), NOW, no_certificate).expires == NOW + 300
    assert finish(Credential("opaque"), NOW, no_certificate).expires is None


@pytest.mark.parametrize(("token_left", "certificate_left"), [(600, 300), (300, 600)])
def test_of_two_kinds_the_one_that_ends_first_counts(token_left: int, certificate_left: int) -> None:
    credential = Credential(jwt({"exp": NOW + token_left}), "PEM", "KEY")
    assert finish(credential, NOW, lambda *_: NOW + certificate_left).expires == NOW + 300


@pytest.mark.parametrize("left", [-86400, -1, 0, 0.9])
def test_an_expired_credential_is_a_failure_that_says_when_it_ended(left: float) -> None:
    with pytest.raises(TryAgain) as caught:
        finish(Credential("opaque", expires=NOW + left), NOW, no_certificate)
    assert caught.value.code == "credential-expired"
    assert rfc3339(NOW + left) in caught.value.message


@pytest.mark.parametrize(
    ("credential", "why"),
    [
        (Credential(), "neither a token nor a client certificate"),
        (Credential(" \n"), "neither a token nor a client certificate"),
        (Credential("token", certificate="PEM"), "clientKeyData is missing"),
        (Credential("token", key="KEY"), "clientCertificateData is missing"),
    ],
)
def test_half_a_credential_is_a_failure(credential: Credential, why: str) -> None:
    with pytest.raises(ExecCredError) as caught:
        finish(credential, NOW, no_certificate)
    assert caught.value.code == "credential-incomplete"
    assert why in caught.value.message


def test_the_answer_is_one_line_of_json_with_what_is_known_and_nothing_else() -> None:
    assert render(Credential("abc"), V1, NOW) == (
        '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"abc"}}\n'
    )
    answer = render(Credential("abc", "PEM\n", "KEY\n", NOW + 900), V1BETA1, NOW)
    assert answer.count("\n") == 1
    assert json.loads(answer) == {
        "apiVersion": V1BETA1,
        "kind": "ExecCredential",
        "status": {
            "expirationTimestamp": "2027-01-15T08:14:00Z",
            "token": "abc",
            "clientCertificateData": "PEM\n",
            "clientKeyData": "KEY\n",
        },
    }


def test_the_repr_of_a_credential_hides_it() -> None:
    shown = repr(Credential("abc", "PEM", "KEY", 5.0))
    assert shown == "Credential(token, certificate, key, expires=5.0)"
