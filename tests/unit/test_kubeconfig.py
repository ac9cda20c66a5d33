"""Kubeconfigs are untrusted text: JSON or YAML, of any shape and size; nothing in them is opened, run or shown."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from execcred import ExecCredError
from execcred._kubeconfig import SIZE_LIMIT, choose, decoded, field, merge, parse, truth
from execcred._yaml import ALIAS_LIMIT, DEPTH_LIMIT, NODE_LIMIT

YAML = b"""\
# a comment
apiVersion: v1
kind: Config
current-context: here
clusters:
- name: there
  cluster: {server: "https://spoke"}
users:
- name: me
  user:
    token: 0123456789
    flag: yes
    nothing: ~
    empty:
contexts:
- name: here
  context: {cluster: there, user: me, namespace: team}
preferences: {}
extensions: [{name: harmless, extension: {a: 1}}]
"""


def fail(what: str) -> ExecCredError:
    return ExecCredError("test", what)


def refused(content: bytes) -> str:
    """Parse what must fail, and return why."""
    with pytest.raises(ExecCredError) as caught:
        parse(content, fail)
    return caught.value.message


def test_yaml_is_read_with_every_plain_value_as_text_and_null_as_nothing() -> None:
    found = parse(YAML, fail)
    assert found == {
        "current-context": "here",
        "clusters": {"there": {"server": "https://spoke"}},
        "users": {"me": {"token": "0123456789", "flag": "yes", "nothing": None, "empty": None}},
        "contexts": {"here": {"cluster": "there", "user": "me", "namespace": "team"}},
    }


def test_json_is_read_as_it_is() -> None:
    body = {"kind": "Config", "users": [{"name": "me", "user": {"token": "t", "n": 1}}], "clusters": None}
    for content in (json.dumps(body).encode(), b"\xef\xbb\xbf \n" + json.dumps(body).encode()):
        assert parse(content, fail)["users"] == {"me": {"token": "t", "n": 1}}


def test_yaml_in_flow_style_looks_like_json_and_is_read_too() -> None:
    assert parse(b"{current-context: here, users: [{name: me, user: {token: t}}]}", fail)["current-context"] == "here"


@pytest.mark.parametrize("content", [b"", b"\n", b"# only a comment\n", b"---\n", b"null", b"~", b"{}", b"kind:\n"])
def test_an_empty_file_is_an_empty_kubeconfig(content: bytes) -> None:
    assert parse(content, fail) == {"current-context": "", "clusters": {}, "users": {}, "contexts": {}}


def test_an_alias_and_an_entry_without_body_are_read() -> None:
    text = b"users: [{name: a, user: &u {token: t}}, {name: b, user: *u}, {name: c}, {name: d, user: null}]"
    assert parse(text, fail)["users"] == {"a": {"token": "t"}, "b": {"token": "t"}, "c": {}, "d": {}}


MERGED = {
    "{<<: *a}": {"server": "a", "proxy-url": "p"},
    "{<<: *a, server: own}": {"server": "own", "proxy-url": "p"},
    "{server: own, <<: *a}": {"server": "a", "proxy-url": "p"},  # unlike PyYAML, as kubectl
    "{<<: [*b, *a]}": {"server": "b", "proxy-url": "p"},
    "{<<: {server: here}}": {"server": "here"},
    "{<<: []}": {},
    "{'<<': *a, server: own}": {"<<": {"server": "a", "proxy-url": "p"}, "server": "own"},
    "{server: <<}": {"server": "<<"},
}


@pytest.mark.parametrize("body", MERGED)
def test_a_merge_key_merges_as_for_kubectl(body: str) -> None:
    text = f"x: &a {{server: a, proxy-url: p}}\ny: &b {{server: b}}\nclusters: [{{name: n, cluster: {body}}}]"
    assert parse(text.encode(), fail)["clusters"] == {"n": MERGED[body]}


@pytest.mark.parametrize("body", ["{<<: text}", "{<<: ~}", "{<<: [text]}", "&own {<<: *own}", "{<<: [[{}]]}"])
def test_what_is_no_mapping_is_not_merged(body: str) -> None:
    assert refused(f"clusters: [{{name: n, cluster: {body}}}]".encode()) == "it is not valid YAML, line 1"


def test_a_bomb_of_merge_keys_is_refused() -> None:
    base = ", ".join([f"k{n}: v" for n in range(2000)])
    chain = "{<<: " * (DEPTH_LIMIT - 5) + "*a" + "}" * (DEPTH_LIMIT - 5)
    text = f"x: &a {{{base}}}\ny: [{', '.join([chain] * (ALIAS_LIMIT - 1))}]"  # 4,455 mappings of 2,000 entries
    assert refused(text.encode()) == "it is not valid YAML"


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!python/name:os.system", "!evil", "!!set"])
def test_a_tag_makes_no_object(tag: str) -> None:
    text = f"users: [{{name: a, user: {{token: {tag} [id]}}}}]".encode()
    assert parse(text, fail)["users"] == {"a": {"token": ["id"]}}


def bomb(width: int = 9, depth: int = 20) -> bytes:
    """Return a billion of words, by aliases."""
    lines = ["a0: &a0 [lol]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * width)}]" for n in range(1, depth)]
    return "\n".join(lines).encode()


REFUSED = {
    "too large": (b" " * (SIZE_LIMIT + 1), f"larger than {SIZE_LIMIT} bytes"),
    "not UTF-8": (b"users:\n\xff", "byte 7 is not UTF-8"),
    "UTF-16": ("kind: Config".encode("utf-16"), "byte 0 is not UTF-8"),
    "NUL": (b"\0", "not valid YAML"),
    "tab": (b"users:\n\t- name: a", "not valid YAML, line 2"),
    "unclosed": (b"users: [", "not valid YAML, line 1"),
    "two documents": (b"kind: Config\n---\nkind: Config", "not valid YAML, line 2"),
    "an unknown alias": (b"a: *b", "not valid YAML, line 1"),
    "a cycle": (b"users: &a [*a]", "not valid YAML, line 1"),
    "a cycle in a mapping": (b"a: &a {b: *a}", "not valid YAML, line 1"),
    "a key that is a list": (b"? [a]\n: b", "not valid YAML, line 1"),
    "an unknown directive": (b"%YAML 9.1\n---\na: b", "not valid YAML, line 1"),
    "alias bomb": (bomb(), "not valid YAML"),
    "aliases beyond the limit": (b"a: &a x\nb: [" + b"*a ," * (ALIAS_LIMIT + 1) + b"]", "not valid YAML"),
    "nodes beyond the limit": (b"- a\n" * NODE_LIMIT, "not valid YAML"),
    "deep YAML": (b"- " * 20_000, "nested too deep"),
    "deep flow": (b"[" * 20_000, "nested too deep"),
    "deep JSON": (b'{"a":' * 100_000, "nested too deep"),
    "a list": (b"[]", "it is not a mapping"),
    "a word": (b"hello", "it is not a mapping"),
    "another kind": (b"kind: Secret", "its kind is not Config"),
    "kind a list": (b"kind: [Config]", "its kind is not Config"),
    "current-context a list": (b"current-context: [a]", "current-context is not a string"),
    "current-context a number": (b'{"current-context": 1}', "current-context is not a string"),
    "users a mapping": (b"users: {a: b}", "users is not a list"),
    "users a word": (b"users: a", "users is not a list"),
    "an entry that is a word": (b"users: [a]", "users[0] needs a name and a user"),
    "an entry without name": (b"users: [{user: {}}]", "users[0] needs a name and a user"),
    "a name that is a list": (b"contexts: [{name: a}, {name: [b]}]", "contexts[1] needs a name and a context"),
    "a name that is null": (b"clusters: [{name: ~}]", "clusters[0] needs a name and a cluster"),
    "a body that is a word": (b"clusters: [{name: a, cluster: b}]", "clusters[0] needs a name and a cluster"),
    "a name twice": (b"users: [{name: a}, {name: b}, {name: a}]", "users[2] repeats the name 'a'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_kubeconfig_is_refused_by_its_place(case: str) -> None:
    content, why = REFUSED[case]
    assert why in refused(content)


@pytest.mark.parametrize(
    "content", [b"users: {token: hunter2: x}", b'{"token": "hunter2"', b"hunter2: [", b"- hunter2"]
)
def test_no_text_of_a_broken_kubeconfig_is_shown(content: bytes) -> None:
    assert "hunter2" not in refused(content)


def test_as_many_aliases_as_the_limit_are_fine() -> None:
    assert parse(b"a: &a x\nb: [" + b"*a ," * ALIAS_LIMIT + b"]", fail)["users"] == {}


@pytest.mark.parametrize("levels", [1, DEPTH_LIMIT - 1, DEPTH_LIMIT, 100_000])
def test_depth_is_limited_so_that_a_small_file_costs_little(levels: int) -> None:
    text = b"a: " + b"[" * levels + b"]" * levels
    started = time.process_time()
    if levels < DEPTH_LIMIT:
        assert parse(text, fail)["users"] == {}
    else:
        assert refused(text) == "it is nested too deep"
    assert time.process_time() - started < 5


def test_of_one_name_the_first_file_wins() -> None:
    first = parse(b"users: [{name: a, user: {token: '1'}}]", fail)
    second = parse(b"current-context: c\nusers: [{name: a, user: {token: '2'}}, {name: b}]", fail)
    assert merge([first, second]) == {
        "current-context": "c",
        "clusters": {},
        "contexts": {},
        "users": {"a": {"token": "1"}, "b": {}},
    }
    assert merge([]) == parse(b"", fail)


def contexts(*names: str, current: str = "", **context: Any) -> dict[str, Any]:
    """Return a parsed kubeconfig with contexts of these names."""
    body = {"cluster": "there", "user": "me", **context}
    return {
        "current-context": current,
        "clusters": {"there": {"server": "https://spoke"}},
        "users": {"me": {}, "you": {}},
        "contexts": dict.fromkeys(names, body),
    }


@pytest.mark.parametrize(
    ("document", "asked", "chosen"),
    [
        (contexts("a", "b", current="a"), "b", "b"),
        (contexts("a", "b", current="a"), "", "a"),
        (contexts("a"), "", "a"),
        (contexts("a", "b"), "b", "b"),
    ],
)
def test_the_context_asked_for_beats_the_current_one_beats_the_only_one(
    document: dict[str, Any], asked: str, chosen: str
) -> None:
    choice = choose(document, asked, fail)
    assert [choice.name, choice.cluster, choice.user] == [chosen, {"server": "https://spoke"}, {}]


@pytest.mark.parametrize(
    ("document", "asked", "why"),
    [
        (contexts(), "", "no current-context and not exactly one context; it has none"),
        (contexts("a", "b"), "", "no current-context and not exactly one context; it has a, b"),
        (contexts("a", "b", current="c"), "", "no context 'c'; it has a, b"),
        (contexts("a"), "c", "no context 'c'; it has a"),
        (contexts("a", user="nope"), "", "context 'a' names the user 'nope', which is missing; it has me, you"),
        (contexts("a", cluster="nope"), "", "context 'a' names the cluster 'nope', which is missing; it has there"),
        (contexts("a", user=None), "", "context 'a' names the user '', which is missing"),
        (contexts("a", user=["me"]), "", "context 'a' names the user '', which is missing"),
        (contexts("a\nb", current="c\x1b"), "", "no context 'c?'; it has a?b"),
    ],
)
def test_a_context_that_leads_nowhere_is_refused_with_the_names_there(
    document: dict[str, Any], asked: str, why: str
) -> None:
    with pytest.raises(ExecCredError) as caught:
        choose(document, asked, fail)
    assert why in caught.value.message


def test_only_the_first_twenty_names_are_listed() -> None:
    with pytest.raises(ExecCredError) as caught:
        choose(contexts(*[f"c{number:03}" for number in range(500)]), "", fail)
    assert caught.value.message.endswith("c018, c019")


def test_a_field_is_text_or_absent() -> None:
    assert [field({"a": "x", "b": None}, name, fail) for name in "abc"] == ["x", "", ""]
    with pytest.raises(ExecCredError, match="a is not a string"):
        field({"a": 5}, "a", fail)


@pytest.mark.parametrize(
    ("value", "true"),
    [(True, True), ("true", True), ("True", True), (False, False), ("false", False), ("yes", False), (None, False)],
)
def test_a_boolean_comes_from_json_or_yaml(value: object, true: bool) -> None:
    assert truth({"a": value}, "a") is true


PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
ONCE = base64.b64encode(PEM.encode()).decode()


def test_data_is_decoded_exactly_once_also_when_broken_into_lines() -> None:
    assert decoded({"d": ONCE}, "d", fail) == PEM
    assert decoded({"d": "\n".join([ONCE[:20], ONCE[20:], ""])}, "d", fail) == PEM
    assert [decoded({"d": empty}, "d", fail) for empty in ("", None, " ")] == [""] * 3


@pytest.mark.parametrize(
    "data", [PEM, base64.b64encode(ONCE.encode()).decode(), "!", "YQ", "é", base64.b64encode(b"\xff").decode(), "YQ=="]
)
def test_data_that_is_not_base64_of_pem_is_refused(data: str) -> None:
    with pytest.raises(ExecCredError, match="d is not base64 of PEM text"):
        decoded({"d": data}, "d", fail)
