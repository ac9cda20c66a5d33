"""The layer's YAML reads what PyYAML's own base loader reads, for any text."""

from __future__ import annotations

import re
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from execcred._yaml import load

MERGE = "tag:yaml.org,2002:merge"


class Reference(yaml.BaseLoader):
    """Strings, lists, mappings; null where it stands bare; and what is merged, in kubectl's order."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        for key, value in node.value:
            if key.tag == MERGE:
                listed = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for each in reversed(listed):
                    if not isinstance(each, yaml.MappingNode) or each.tag == NULL:
                        raise yaml.YAMLError
                    entries.update(self.construct_object(each, deep=True))
            else:
                pair = yaml.MappingNode(node.tag, [(key, value)], node.start_mark)
                entries.update(super().construct_mapping(pair, deep))
        return entries


NULL = "tag:yaml.org,2002:null"
Reference.add_implicit_resolver(MERGE, re.compile("<<$"), None)
Reference.add_implicit_resolver(NULL, re.compile(r"(?:~|null|Null|NULL|)$"), None)
Reference.add_constructor(NULL, lambda *_: None)

FAILURES = (yaml.YAMLError, RecursionError)
PIECES = st.sampled_from(
    [
        *"ab{}[],:-?é😀\n\r\t'\"\x00\x1b\x85\u2028\ufeff",
        *(
            ": ",
            "- ",
            "  ",
            "|\n",
            ">-\n",
            "&x ",
            "*x ",
            "#c",
            "---\n",
            "...\n",
            "!!str ",
            "!!null ",
            "!!map ",
            "~",
            "null",
            "%YAML 1.1\n",
            "\\x41",
            "<<: ",
            "<<: *x",
            "<<",
        ),
    ]
)
DATA = st.recursive(
    st.none() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def outcome(read: Any, text: str) -> Any:
    try:
        return ("read", read(text))
    except FAILURES:
        return "refused"


def reference(text: str) -> Any:
    return yaml.load(text, Reference)  # makes text, lists and mappings only


@given(DATA, st.booleans(), st.sampled_from([None, "'", '"', "|", ">"]))
def test_what_was_written_is_read(data: Any, flow: bool, style: str | None) -> None:
    text = yaml.safe_dump(data, default_flow_style=flow, default_style=style, allow_unicode=True)
    assert load(text) == reference(text)


@given(st.lists(PIECES, max_size=30).map("".join) | st.text())
@example("&a [*a]")
@example("a: 1\na: 2")
@example("? {a: b}\n: c")
@example("--- a\n--- b")
@example("- &x {a: b}\n- {a: c, <<: *x, d: e}\n- {<<: [*x, {a: f}], '<<': *x}")
@example("!!null ''")
@example("!!null \n- a")
@example("!!null {a: b}: c")
@example("a:\r\n  b\r  c")
def test_any_text_is_read_or_refused_alike(text: str) -> None:
    assert outcome(load, text) == outcome(reference, text)
