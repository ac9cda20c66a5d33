"""Files as lint sees them: plain data, and the line of each field. Reads JSON and YAML, safely and within limits."""

from __future__ import annotations

from execcred._errors import BadRequest, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Path = tuple[str | int, ...]

SIZE_LIMIT = 4 << 20
KUBECONFIG_LIMIT = 64 << 20  # of one's own kubeconfig: a fleet of some thousand clusters
NODE_LIMIT = 500_000  # nodes after aliases are followed: a YAML bomb has more
DEPTH_LIMIT = 100


class Document:
    """One document of a file: `data`, and `lines` by path; `json` tells whether it is written as JSON."""

    def __init__(self, file: str, data: Any, lines: dict[Path, int], json: bool) -> None:
        self.file = file
        self.data = data
        self.lines = lines
        self.json = json
        self.repeated: list[Path] = []
        self.base: Path = ()

    def line(self, path: Path) -> int:
        """Return the line of a field, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def inner(self, path: Path, text: str) -> Document | None:
        """Return the document that a text field holds, with lines of this file; None when it holds none."""
        try:
            inner = next(iter(parse_text(self.file, text)), None)
        except BadRequest:
            return None
        if inner is None or not isinstance(inner.data, dict):
            return None
        block = self.lines.get((*path, "|"), 0)  # of block texts: their lines are lines of the file
        inner.lines = {each: block + line if block else self.line(path) for each, line in inner.lines.items()}
        inner.base = (*self.base, *path)
        return inner


def read_documents(file: str, limit: int = SIZE_LIMIT) -> list[Document]:
    """Return the documents of a file of at most `limit` bytes; "-" is stdin.

    Raises BadRequest("file-unusable"), naming file and line, never what stands there.
    """
    try:
        with open("/dev/stdin" if file == "-" else file, "rb") as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        raise _bad(file, error.strerror or "cannot be read", "name a file that is there and can be read") from None
    if len(content) > limit:
        raise _bad(file, f"it is larger than {limit} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _bad(file, f"byte {error.start} is not UTF-8 text") from None
    if not text.strip():
        raise _bad(file, "it is empty")
    return list(parse_text(file, text))


def _bad(file: str, what: str, hint: str = "correct it, or name another file") -> BadRequest:
    return BadRequest("file-unusable", f"{printable(file)}: {what}", hint)


def parse_text(file: str, text: str) -> Iterator[Document]:
    """Yield the documents of a text; `file` is what errors call it.

    Raises BadRequest("file-unusable").
    """
    if text.lstrip().startswith(("{", "[")):
        found, data = _json(file, text)
        if found:
            yield _located(Document(file, data, {}, json=True), text)
            return
    import yaml

    try:
        for node in yaml.compose_all(text, _loader()):
            document = Document(file, None, {}, json=False)
            document.data = _Reader(file, document).value(node, (), 0)
            if document.data is not None:
                yield document
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise _bad(file, f"line {line} is neither JSON nor YAML") from None
    except (yaml.YAMLError, RecursionError):
        raise _bad(file, "it is neither JSON nor YAML text") from None


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _json(file: str, text: str) -> tuple[bool, Any]:
    import json

    try:
        return True, json.loads(text)
    except RecursionError:
        raise _bad(file, "it is nested too deep") from None
    except json.JSONDecodeError as error:
        # YAML's flow style looks like this too; but a file that is meant to be JSON deserves JSON's error.
        if file.endswith(".json"):
            raise _bad(file, f"line {error.lineno} is not valid JSON: {error.msg}") from None
        return False, None
    except ValueError:
        raise _bad(file, "it holds a number out of range") from None


def _located(document: Document, text: str) -> Document:
    """Fill in the lines of valid JSON: YAML's parser knows them, once tabs, which only JSON takes, are blanks."""
    import yaml

    try:
        node = yaml.compose(text.replace("\t", " "), _loader())
        _Reader(document.file, document).value(node, (), 0)
    except (yaml.YAMLError, BadRequest, RecursionError):
        document.lines = {}  # findings then name the field alone
    return document


class _Reader:
    """Turns nodes into plain data and notes lines; makes no objects, and merges as kubectl does."""

    def __init__(self, file: str, document: Document) -> None:
        self.file = file
        self.document = document
        self.count = 0

    def value(self, node: Any, path: Path, depth: int) -> Any:
        import yaml

        self.count += 1
        if self.count > NODE_LIMIT or depth > DEPTH_LIMIT:
            raise _bad(self.file, "it is nested too deep, or its aliases make it too large")
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, (*path, index), depth + 1) for index, each in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if node.style in ("|", ">"):
            self.document.lines[*path, "|"] = node.start_mark.line + 1
        return _scalar(node)

    def _mapping(self, node: Any, path: Path, depth: int) -> dict[str, Any]:
        from execcred._yaml import MERGE

        entries: dict[str, Any] = {}
        own: set[str] = set()
        for key, value in node.value:
            if key.tag == MERGE:
                entries |= self._merged(value, path, depth)
                continue
            name = str(key.value) if isinstance(key.value, str) else "?"
            if name in own:
                self.document.repeated.append((*path, name))
            own.add(name)
            self.document.lines[*path, name] = key.start_mark.line + 1
            entries[name] = self.value(value, (*path, name), depth + 1)
        return entries

    def _merged(self, node: Any, path: Path, depth: int) -> dict[str, Any]:
        """Return what `<<` brings: the entries of a mapping, or of several, the first of which wins."""
        import yaml

        entries: dict[str, Any] = {}
        for each in reversed(node.value if isinstance(node, yaml.SequenceNode) else [node]):
            if not isinstance(each, yaml.MappingNode):
                raise _bad(self.file, f"line {node.start_mark.line + 1} merges what is no mapping")
            entries |= self.value(each, path, depth + 1)
        return entries


def _scalar(node: Any) -> Any:
    """Return a YAML scalar as JSON has it; dates and binaries stay text."""
    kind = node.tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return node.value.lower() in ("true", "yes", "on")
    if kind in ("int", "float"):
        try:
            return int(node.value, 0) if kind == "int" else float(node.value)
        except ValueError:
            return node.value
    return node.value
