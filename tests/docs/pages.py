"""The pages of docs/ as the tests see them: blocks, files that the reader saves, what a `console` block may call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Pages with tests of their own: what they show is made by other programs.
ELSEWHERE = ("conformance", "doctor", "release")
PAGES = sorted(page for page in DOCS.glob("*.md") if not page.stem.startswith(ELSEWHERE))
CONSUMERS = ("argocd", "knative", "kubectl", "kueue", "multicluster-runtime", "ocm", "sveltos")
SECTIONS = ("What you need", "What goes wrong")
# sh: run for real; console: needs what no test has (nodes, registries, other tools), so it is only parsed;
# text: what the sh block before it prints; yaml, json: a file that the reader saves under the name in the line above.
LANGUAGES = ("sh", "console", "text", "yaml", "json")
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)^```$", re.MULTILINE)
SAVED = re.compile(r"`([\w.-]+)`:\s*\Z")

# Programs of `console` blocks: {program: {words: flags that they may have}}.
FOREIGN: dict[str, dict[str, set[str]]] = {
    "skopeo": {"copy": {"--all", "--preserve-digests"}},
    "helm": {
        "repo add": set(),
        "upgrade": {"--install", "--namespace", "--create-namespace", "--values", "--set", "--reuse-values"},
    },
    "aws": {
        "eks create-pod-identity-association": {"--cluster-name", "--namespace", "--service-account", "--role-arn"},
        "eks create-access-entry": {"--cluster-name", "--principal-arn"},
        "eks associate-access-policy": {"--cluster-name", "--principal-arn", "--policy-arn", "--access-scope"},
    },
    "clusteradm": {"init": {"--feature-gates"}},
    "argocd": {"cluster get": set(), "cluster list": set()},
    "install": {"": {"-m"}},
    "sha256sum": {"": {"--check", "--ignore-missing"}},
}


class Block(NamedTuple):
    """One fenced block; `name` is the file that it is to be saved as, "" if none."""

    language: str
    text: str
    name: str


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        saved = SAVED.search(text[: match.start()])
        found.append(Block(match[1], match[2], saved[1] if saved else ""))
    return found


def lines(block: Block) -> list[str]:
    """Return the commands of a block, continued lines joined, without comments."""
    joined = re.sub(r"(\\|\|)\n\s*", lambda match: "| " if match[1] == "|" else "", block.text)
    return [line for line in joined.splitlines() if line and not line.startswith("#")]


def remedies(page: Path) -> list[list[str]]:
    """Return the rows of the table of what goes wrong, as cells."""
    section = page.read_text().partition("\n## What goes wrong\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


def script(page: Path) -> str:
    """Return the sh blocks of a page as one program for bash; a line `@@ N` goes before the output of block N."""
    parts = ["set -euo pipefail\n"]
    for number, block in enumerate(blocks(page)):
        if block.language == "sh":
            parts.append(f"echo '@@ {number}'\n{block.text}")
    return "".join(parts)
