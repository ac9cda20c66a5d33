"""splice: entries change, and all other text stays as it stood; what cannot be cut apart is written anew, rightly."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from execcred import BadRequest
from execcred.tool._splice import EMPTY, SECTIONS, changed, read

HAND = """\
# my clusters
apiVersion: v1
kind: Config
current-context: home   # the one at home
clusters:
# at home
- name: home
  cluster: {server: "https://home.example"}

# mine
- cluster:
    server: https://old.example
    certificate-authority-data: |
      LS0t
      LS0t
  name: fleet/spoke-1
# the last comment
contexts:
  - context:
      cluster: home
      user: home
    name: home
users: []
preferences: {}
"""
CLUSTER = {"name": "fleet/spoke-1", "cluster": {"server": "https://new.example"}}


def change(text: str, **changes: dict[str, Any]) -> str:
    return changed("file", text, changes)


def test_a_replaced_entry_leaves_every_other_line_as_it_was() -> None:
    text = change(HAND, clusters={"fleet/spoke-1": CLUSTER})
    assert text == HAND.replace(
        """\
- cluster:
    server: https://old.example
    certificate-authority-data: |
      LS0t
      LS0t
  name: fleet/spoke-1
""",
        """\
- name: fleet/spoke-1
  cluster:
    server: https://new.example
""",
    )


def test_a_new_entry_follows_the_last_one_in_its_indentation() -> None:
    context = {"name": "fleet/spoke-1", "context": {"cluster": "fleet/spoke-1", "user": "fleet/spoke-1"}}
    user = {"name": "fleet/spoke-1", "user": {"exec": {"args": ["- #'"]}}}
    text = change(HAND, contexts={"fleet/spoke-1": context}, users={"fleet/spoke-1": user})
    assert "    name: home\n  - name: fleet/spoke-1\n    context:\n" in text
    assert text.startswith(HAND.partition("users: []")[0][:-1])
    assert read("file", text)["users"] == [user]
    assert text.endswith("preferences: {}\n")


def test_a_removed_entry_takes_its_lines_along_and_no_comment() -> None:
    text = change(HAND, clusters={"fleet/spoke-1": None, "unknown": None})
    assert text == HAND.partition("- cluster:")[0] + HAND.partition("name: fleet/spoke-1\n")[2]


def test_removing_all_entries_leaves_an_empty_section() -> None:
    text = change(HAND, contexts={"home": None})
    assert "# my clusters\n" in text
    assert not read("file", text).get("contexts")


def test_what_is_there_already_changes_nothing() -> None:
    once = change(HAND, clusters={"fleet/spoke-1": CLUSTER}, users={"gone": None})
    assert change(once, clusters={"fleet/spoke-1": CLUSTER}, users={"gone": None}) == once


def test_an_empty_file_becomes_a_kubeconfig() -> None:
    text = change("", clusters={"a": {"name": "a", "cluster": {}}}, users={"a": {"name": "a", "user": {}}})
    assert text == EMPTY + "clusters:\n- name: a\n  cluster: {}\nusers:\n- name: a\n  user: {}\n"


@pytest.mark.parametrize(
    "text",
    [
        "{kind: Config, clusters: [{name: home, cluster: {server: x}}]}",
        "kind: Config\nclusters: [{name: home, cluster: {server: x}}]\n",
        "kind: Config\nclusters:\n-\n  name: home\n  cluster: {server: x}\n",
        "kind: Config\nclusters:\n- &c\n  name: home\n  cluster: {server: x}\ncopy: *c\n",
        "kind: Config\nclusters:\n- name: home\n  cluster: {server: x}",
        "---\nkind: Config\nclusters:\n- name: home\n  cluster: {server: x}\n...\n",
        '{"kind": "Config", "clusters": [{"name": "home", "cluster": {"server": "x"}}]}',
        "kind: Config\r\nclusters:\r\n- name: home\r\n  cluster: {server: x}\r\n",
    ],
)
@pytest.mark.parametrize("new", [None, {"name": "home", "cluster": {"server": "y"}}])
def test_any_form_of_the_file_gives_the_same_data(text: str, new: dict[str, Any] | None) -> None:
    user = {"name": "u", "user": {"token": "0123", "on": "yes"}}
    data = read("file", change(text, clusters={"home": new}, users={"u": user}))
    assert (data.get("clusters") or []) == ([new] if new else [])
    assert data["users"] == [user]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: [", "file-unusable"),
        ("- 1\n", "kubeconfig-unusable"),
        ("kind: Secret\n", "kubeconfig-unusable"),
        ("kind: Config\n---\nkind: Config\n", "kubeconfig-unusable"),
        ("users: 5\n", "kubeconfig-unusable"),
        ("users: [5]\n", "kubeconfig-unusable"),
        ("users: [{user: {token: hunter2}}]\n", "kubeconfig-unusable"),
        ("users: [{name: [hunter2]}]\n", "kubeconfig-unusable"),
        ("users: []\nusers: []\n", "kubeconfig-unusable"),
    ],
)
def test_what_is_no_kubeconfig_is_refused_without_its_content(text: str, code: str) -> None:
    with pytest.raises(BadRequest) as caught:
        change(text, users={"a": {"name": "a", "user": {}}})
    assert caught.value.code == code
    assert "hunter2" not in f"{caught.value.message}{caught.value.hint}"


NAMES = st.sampled_from(["a", "b", "c/d", "#e", "- f", "null", "1", "ü", "x: y"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=3)
LISTS = st.dictionaries(NAMES, BODIES, max_size=4)
CHANGES = st.dictionaries(st.sampled_from(SECTIONS), st.dictionaries(NAMES, st.none() | BODIES, max_size=3))


@settings(max_examples=150, deadline=None, database=None)
@given(st.dictionaries(st.sampled_from(SECTIONS), LISTS), CHANGES, st.booleans())
def test_whatever_stands_there_the_others_keep_their_data_and_order(
    old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]], flow: bool
) -> None:
    rows = {section: [{"name": name, "body": body} for name, body in each.items()] for section, each in old.items()}
    text = yaml.safe_dump({"kind": "Config", **rows}, default_flow_style=flow or None, allow_unicode=True)
    changes = {
        section: {name: None if body is None else {"name": name, "body": body} for name, body in each.items()}
        for section, each in new.items()
    }
    data = read("file", changed("file", text, changes))
    for section in SECTIONS:
        kept = {**old.get(section, {}), **new.get(section, {})}
        wanted = [{"name": name, "body": body} for name, body in kept.items() if body is not None]
        assert (data.get(section) or []) == wanted


MERGED = """\
base: &base {server: "https://home.example", tls-server-name: home}
clusters:
- name: home
  cluster: {<<: *base}
- name: fleet/spoke-1
  cluster: &old {<<: *base, tls-server-name: spoke}
"""


@pytest.mark.parametrize("needed", [False, True], ids=["as it stands", "written anew, where what goes is needed"])
def test_what_an_entry_merges_stays(needed: bool) -> None:
    text = MERGED + ("- name: other\n  cluster: {<<: *old}\n" if needed else "")
    before = {row["name"]: row["cluster"] for row in read("file", text)["clusters"]}
    assert before["home"] == {"server": "https://home.example", "tls-server-name": "home"}
    after = change(text, clusters={"fleet/spoke-1": CLUSTER})
    assert ("<<" in after) is not needed
    assert {row["name"]: row["cluster"] for row in yaml.safe_load(after)["clusters"]} == {
        **before,
        "fleet/spoke-1": CLUSTER["cluster"],
    }
