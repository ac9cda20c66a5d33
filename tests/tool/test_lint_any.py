"""lint takes anything: whatever stands in place of a part of a good file, there are findings or none, never a crash."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from execcred import Env
from execcred.tool._catalogue import LINT
from execcred.tool._document import parse_text
from execcred.tool._lint import lint
from execcred.tool._main import respond
from tool.support import from_yaml, printed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GOOD: list[Any] = [
    json.loads(printed("provider-config", "--plugin=eks", "--for=generic", "--env=A=b")),
    *[
        from_yaml(printed("provider-config", "--plugin=eks", *flags))
        for flags in (
            ("--for=kueue",),
            ("--for=knative",),
            ("--for=argocd",),
            ("--for=generic", "--part=cluster-profile"),
        )
    ],
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)


def places(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each part of a document."""
    yield path
    rows = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in rows:
        yield from places(value, (*path, key))


@st.composite
def spoilt(draw: st.DrawFn) -> Any:
    """Return a good document with something else in place of one part."""
    data = copy.deepcopy(draw(st.sampled_from(GOOD)))
    path = draw(st.sampled_from(list(places(data))))
    if not path:
        return {"providers": draw(JSON)}
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = draw(JSON)
    return data


@settings(max_examples=150, deadline=None)
@given(st.lists(spoilt(), min_size=1, max_size=2), st.booleans())
def test_a_spoilt_document_never_crashes_and_each_finding_has_a_rule_and_a_line(data: list[Any], as_json: bool) -> None:
    texts = [json.dumps(each) if as_json else yaml.safe_dump(each) for each in data]
    found = lint([document for text in texts for document in parse_text("file", text)])
    assert {each.code for each in found} <= set(LINT)
    assert all(each.line >= 1 and each.field and each.message for each in found)


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_json_and_yaml_of_the_same_data_read_the_same(data: Any) -> None:
    (first,) = parse_text("file", json.dumps({"x": data}))
    (second,) = parse_text("file", yaml.safe_dump({"x": data}))
    assert first.data == second.data == {"x": data}


def test_no_word_of_a_file_forges_a_line_or_moves_the_terminal(tmp_path: Path) -> None:
    odd = "x\x1b[2J\x07\nforged:1: line\u202e"
    cluster = {"server": "https://a", "extensions": [{"name": f"exec{odd}"}]}
    profile = {
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "kind": "ClusterProfile",
        "status": {"accessProviders": [{"name": odd, "cluster": cluster}]},
    }
    config = {"command": odd, odd: 1, "args": [odd], "env": [{"name": f"LD_{odd}", "value": odd}]}
    provider = {"name": "p", odd: 1, "execConfig": config}
    files = [tmp_path / "profile.json", tmp_path / "providers.json"]
    for file, document in zip(files, (profile, {"providers": [provider, provider]}), strict=True):
        twice = json.dumps(document).removesuffix("}")
        file.write_text(f"{twice}, {json.dumps(odd)}: 1, {json.dumps(odd)}: 2}}")
    text, _ = respond(("lint", *map(str, files)), Env({}))
    assert all(line.isprintable() for line in text.splitlines())
    assert not [line for line in text.splitlines() if line.startswith("forged")]
    assert "given twice" in text
