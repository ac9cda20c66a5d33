"""YAML's merge keys in a kubeconfig: layer and tool read what kubectl reads, which is not what YAML's authors say."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from execcred import ExecCredError
from execcred._kubeconfig import parse
from execcred.tool._document import parse_text
from interop.fleet import GO_BIN
from needs import absent

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
apiVersion: v1
kind: Config
one: &a {server: "https://a", tls-server-name: a}
two: &b {server: "https://b", proxy-url: "http://b:1"}
"""
BODIES = [
    "{<<: *a}",
    "{<<: *a, server: 'https://own'}",
    "{server: 'https://own', <<: *a}",
    "{<<: *a, <<: *b}",
    "{<<: [*a, *b]}",
    "{<<: [*b, *a], server: 'https://own'}",
    "{<<: {<<: *b, server: 'https://inner'}}",
    "{'<<': *a, server: 'https://own'}",
    "{<<: []}",
    "{<<: text}",
    "{<<: [text]}",
]


def fields(row: dict[str, Any]) -> dict[str, str]:
    names = ("server", "tls-server-name", "proxy-url")
    return {name: row[name] for name in names if row.get(name)}


def by_kubectl(path: Path) -> dict[str, str] | None:
    program = GO_BIN / "kubectl"
    if not program.exists():
        absent("kubectl is not built; run `make interop-tools` (needs Go)")
    command = [str(program), "config", "view", "--raw", "--output=json", f"--kubeconfig={path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return None if done.returncode else fields(json.loads(done.stdout)["clusters"][0]["cluster"])


def by_layer(text: str) -> dict[str, str] | None:
    try:
        return fields(parse(text.encode(), lambda what: ExecCredError("test", what))["clusters"]["spoke"])
    except ExecCredError:
        return None


def by_tool(text: str) -> dict[str, str] | None:
    try:
        [document] = parse_text("kubeconfig", text)
    except ExecCredError:
        return None
    return fields(document.data["clusters"][0]["cluster"])


@pytest.mark.parametrize("body", BODIES)
def test_what_is_merged_is_what_kubectl_merges(tmp_path: Path, body: str) -> None:
    path = tmp_path / "config"
    path.write_text(f"{HEAD}clusters: [{{name: spoke, cluster: {body}}}]\n")
    expected = by_kubectl(path)
    assert (by_layer(path.read_text()), by_tool(path.read_text())) == (expected, expected)
