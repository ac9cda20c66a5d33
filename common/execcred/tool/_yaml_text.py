"""YAML that readers in Go take for the same data.

PyYAML leaves `1e3`, `089` and `y` bare, as it sees texts in them. Kubernetes' reader sees numbers and truths, and
refuses a whole kubeconfig for one such field.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Looks like a number or truth, or holds a line break that only YAML 1.1 knows.
UNCLEAR = re.compile(r"[-+._]*[0-9][0-9a-fA-FxXoO_.+:-]*|[yYnN]|(?s:.*[\x85\u2028\u2029].*)")


def dump(value: Any, *, width: int, blocks: bool = False, allow_unicode: bool = False) -> str:
    """Return `value` (plain data) as YAML without aliases; with `blocks`, texts of several lines stand as blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, _: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        style = '"' if UNCLEAR.fullmatch(value) else "|" if blocks and "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    written: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=allow_unicode, width=width)
    return written
