"""Changes entries of a kubeconfig's text; all other text stays as it stands, comments and order included. Pure."""

from __future__ import annotations

from execcred._errors import BadRequest, printable

from ._document import parse_text
from ._yaml_text import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Row = dict[str, Any]
    Changes = Mapping[str, Mapping[str, Row | None]]

SECTIONS = ("clusters", "contexts", "users")
EMPTY = "apiVersion: v1\nkind: Config\n"


def read(file: str, text: str) -> Row:
    """Return the data of a kubeconfig's text, each section a list of mappings that have a name.

    Raises BadRequest("file-unusable" | "kubeconfig-unusable").
    """
    documents = list(parse_text(file, text))
    data = documents[0].data if documents else {}
    if len(documents) > 1 or not isinstance(data, dict) or data.get("kind", "Config") not in ("Config", None, ""):
        raise _unusable(file, "it is not one kubeconfig")
    if documents and documents[0].repeated:
        raise _unusable(file, f"{documents[0].repeated[0][-1]!r} is given twice")
    for section in SECTIONS:
        rows = data.get(section) or []
        if not isinstance(rows, list) or not all(isinstance(row, dict) and _name(row) for row in rows):
            raise _unusable(file, f"{section} is not a list of entries with a name")
    return data


def _unusable(file: str, what: str) -> BadRequest:
    hint = "correct it by hand; kubectl config view shows what kubectl makes of it"
    return BadRequest("kubeconfig-unusable", f"{printable(file)} cannot be used: {what}", hint)


def _name(row: Any) -> str:
    name = row.get("name")
    return name if isinstance(name, str) else ""


def changed(file: str, text: str, changes: Changes) -> str:
    """Return the text with entries replaced or added by name, or removed where the new one is None.

    `changes` is {section: {name: entry}}. Text that cannot be cut apart safely is written anew as a whole.
    Raises BadRequest("file-unusable" | "kubeconfig-unusable").
    """
    data = read(file, text if text.strip() else EMPTY)
    wanted = _applied(data, changes)
    if _same(data, wanted):
        return text
    text = text if text.strip() else EMPTY
    if not text.lstrip().startswith("{"):
        attempt = _spliced(text, changes)
        try:
            if _same(read(file, attempt), wanted):
                return attempt
        except BadRequest:
            pass  # what was cut out was needed elsewhere: an anchor, say
        return _yaml(wanted)
    import json

    return json.dumps(wanted, indent=2, ensure_ascii=False) + "\n"


def _applied(data: Row, changes: Changes) -> Row:
    result = dict(data)
    for section in SECTIONS:
        new = dict(changes.get(section, {}))
        kept = [new.pop(row["name"], None) if row["name"] in new else row for row in data.get(section) or []]
        rows = [row for row in [*kept, *new.values()] if row is not None]
        if rows or section in data:
            result[section] = rows
    return result


def _same(one: Row, other: Row) -> bool:
    """Compare; a section without entries is one that is not there."""
    first, second = [
        {key: value for key, value in each.items() if value or key not in SECTIONS} for each in (one, other)
    ]
    return first == second


def _yaml(value: Any, indent: int = 0) -> str:
    text = dump(value, width=1 << 20, allow_unicode=True)
    return "".join([" " * indent + line for line in text.splitlines(keepends=True)])


def _spliced(text: str, changes: Changes) -> str:
    import yaml

    text = text if text.endswith("\n") else text + "\n"
    root: Any = yaml.compose(text, yaml.SafeLoader)
    found = {key.value: (key, value) for key, value in root.value}
    lines = [line + "\n" for line in text.split("\n")[:-1]]
    edits: list[tuple[int, int, str]] = []  # first line, line behind the last one, new text
    for section in reversed(SECTIONS):  # of two that are appended the last one is put there first
        new = dict(changes.get(section, {}))
        key, node = found.get(section, (None, None))
        if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
            edits += _edits(node, new)
        elif rows := [row for row in new.values() if row]:
            place = (key.start_mark.line, _last_line(node) + 1) if key else (len(lines), len(lines))
            edits.append((*place, f"{section}:\n{_yaml(rows)}"))
    # From the last line up; of two at one line what replaces it goes before what is put in front of it.
    for start, end, replacement in sorted(edits, key=lambda each: each[:2], reverse=True):
        lines[start:end] = [replacement]
    return "".join(lines)


def _edits(node: Any, new: dict[str, Row | None]) -> list[tuple[int, int, str]]:
    """Return the edits of one section that is a list in block style."""
    edits = []
    render: Callable[[Row], str] = lambda row: _yaml([row], node.start_mark.column)  # noqa: E731
    for item in node.value:
        name = next((value.value for key, value in item.value if key.value == "name"), "")
        if name in new:
            row = new.pop(name)
            edits.append((item.start_mark.line, _last_line(item) + 1, render(row) if row else ""))
    end = _last_line(node) + 1
    edits.insert(0, (end, end, "".join([render(row) for row in new.values() if row])))
    return edits


def _last_line(node: Any) -> int:
    """Return the last line of a node's own text, without the blank lines and comments behind it."""
    import yaml

    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.line) - (node.style in ("|", ">") if isinstance(node, yaml.ScalarNode) else 0)
    parts = [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]
    return max(_last_line(part) for part in parts)
