"""YAML as kubeconfigs have it: strings, null, lists and mappings, read by PyYAML's scanner, parser and composer.

What else PyYAML has costs half of its import: a reader of byte streams, resolvers and constructors of types that would
make dates of tokens. So the package's parts are imported one by one, and archives leave out the rest.
"""

from __future__ import annotations

from yaml.composer import Composer
from yaml.error import Mark, MarkedYAMLError, YAMLError
from yaml.events import AliasEvent
from yaml.nodes import ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.scanner import Scanner

__all__ = ["YAMLError", "load"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ALIAS_LIMIT = 100
DEPTH_LIMIT = 50
NODE_LIMIT = 20_000
NULL = "tag:yaml.org,2002:null"
MERGE = "tag:yaml.org,2002:merge"
NULLS = ("~", "null", "Null", "NULL", "")
BREAKS = "\r\n\x85\u2028\u2029"


def load(text: str) -> Any:
    """Return the one document in `text`, None when it is empty.

    Raises YAMLError, with `problem_mark` where a line is known, RecursionError.
    """
    loader = _Loader(text)
    node = loader.get_single_node()
    return None if node is None else loader.value(node)


class _Text:
    """What the scanner reads from: PyYAML's reader for a text that is there as a whole."""

    encoding = None

    def __init__(self, text: str) -> None:
        for char in set(text):
            if (char < " " and char not in "\t\r\n") or ("\x7f" <= char < "\xa0" and char != "\x85"):
                raise YAMLError("a control character")
        self.buffer = text + "\0"  # the scanner's end
        self.index = self.line = self.column = 0

    def peek(self, index: int = 0) -> str:
        return self.buffer[self.index + index : self.index + index + 1] or "\0"

    def prefix(self, length: int = 1) -> str:
        return self.buffer[self.index : self.index + length]

    def forward(self, length: int = 1) -> None:
        for char in self.prefix(length):
            self.index += 1
            if char in BREAKS and not (char == "\r" and self.peek() == "\n"):
                self.line += 1
                self.column = 0
            elif char != "\ufeff":
                self.column += 1

    def get_mark(self) -> Mark:
        return Mark("the file", self.index, self.line, self.column, None, 0)


class _Loader(_Text, Scanner, Parser, Composer):
    """Composes nodes, untyped scalars among them, then data; bounds aliases, depth, nodes and what is merged."""

    def __init__(self, text: str) -> None:
        _Text.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        self.aliases = self.depth = self.nodes = 0
        self.made: dict[Any, Any] = {}  # what anchors may refer to, by node

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(AliasEvent):
            self.aliases += 1
        self.count(1)
        self.depth += 1
        if self.depth > DEPTH_LIMIT:  # PyYAML's own end comes late: its time grows with the square of the depth
            raise RecursionError
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def resolve(self, _kind: Any, value: Any, implicit: Any) -> str:
        """Return the tag of a node that bears none: NULL and MERGE for plain text that says so, else any other."""
        plain = implicit == (True, False)
        return NULL if plain and value in NULLS else MERGE if plain and value == "<<" else ""

    def descend_resolver(self, *_: Any) -> None:
        """Do nothing: here no path decides a type."""

    def ascend_resolver(self) -> None:
        """Do nothing, as above."""

    def count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.aliases > ALIAS_LIMIT or self.nodes > NODE_LIMIT:
            raise YAMLError("too many nodes or aliases")

    def value(self, node: Any) -> Any:
        """Return a node as text, None, list or mapping."""
        made = self.made
        if node.tag == NULL:
            return None
        if isinstance(node, ScalarNode):
            return node.value
        if node in made:
            if made[node] is made:
                raise MarkedYAMLError(problem="it contains itself", problem_mark=node.start_mark)
            return made[node]
        made[node] = made  # under way
        if isinstance(node, SequenceNode):
            made[node] = [self.value(item) for item in node.value]
        else:
            entries: dict[Any, Any] = {}  # of one key the last wins, as kubectl has it, also where one is merged
            for key, value in node.value:
                entries |= self.merged(value) if key.tag == MERGE else {self.key(key): self.value(value)}
            made[node] = entries
        return made[node]

    def key(self, node: Any) -> Any:
        key = self.value(node)
        if isinstance(key, list | dict):
            raise MarkedYAMLError(problem="a key is not a text", problem_mark=node.start_mark)
        return key

    def merged(self, node: Any) -> dict[Any, Any]:
        """Return what `<<` brings: the entries of a mapping, or of several, the first of which wins."""
        found = self.value(node)
        entries: dict[Any, Any] = {}
        for each in reversed(found if isinstance(found, list) else [found]):
            if not isinstance(each, dict):
                raise MarkedYAMLError(problem="only mappings can be merged", problem_mark=node.start_mark)
            self.count(len(each))  # chains of merges would make gigabytes of a few lines
            entries |= each
        return entries
