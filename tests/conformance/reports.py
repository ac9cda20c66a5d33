"""Writes docs/conformance/<peer>.md: the kit against the Go plugins of others, built into .cache/go-bin."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/conformance"
GO_BIN = ROOT / ".cache/go-bin"
Json = dict[str, Any]


class Peer(NamedTuple):
    """A plugin of others: `source` is the folder whose go.mod requires `module`; `arguments` are its own."""

    name: str
    title: str
    kind: str
    module: str
    source: str
    arguments: tuple[str, ...] = ()


INVENTORY = "sigs.k8s.io/cluster-inventory-api"
AWS = "sigs.k8s.io/aws-iam-authenticator"
PEERS = (
    Peer("upstream-secretreader", "secretreader of cluster-inventory-api", "secretreader", INVENTORY, "inventory"),
    Peer(
        "upstream-kubeconfig-secretreader",
        "kubeconfig-secretreader of cluster-inventory-api",
        "kubeconfig-secretreader",
        INVENTORY,
        "inventory",
    ),
    Peer(
        "aws-iam-authenticator",
        "aws-iam-authenticator",
        "eks",
        AWS,
        "aws-iam-authenticator",
        ("token", "-i", "{clusterName}"),
    ),
)


def version(peer: Peer) -> str:
    """Return the version of a peer's module that is built."""
    text = (ROOT / "tests/interop/go" / peer.source / "go.mod").read_text()
    found = re.search(rf"{re.escape(peer.module)} (v\S+)", text)
    if not found:
        raise SystemExit(f"{peer.source}/go.mod does not require {peer.module}")
    return found[1]


def examine(peer: Peer, *flags: str) -> Json:
    """Return the kit's report on a peer."""
    recipe = FOLDER / f"{peer.name}.json"
    command = [sys.executable, "-m", "execcred.tool", "conformance", f"--kind={peer.kind}", f"--recipe={recipe}"]
    command += [*flags, "--output=json", "--", str(GO_BIN / peer.name), *peer.arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"the kit failed for {peer.name}")
    found: Json = json.loads(done.stdout)
    return found


def page(peer: Peer, report: Json, number: str, day: datetime.date) -> str:
    """Return the page about a peer."""
    recipe = (FOLDER / f"{peer.name}.json").read_text().strip()
    flags = f"--kind {peer.kind} --recipe {peer.name}.json"
    rows = [row for row in report["vectors"] if row["result"] != "pass"]
    passed = [row for row in report["vectors"] if row["result"] == "pass"]
    summary = [
        f"| {level} | {' | '.join(str(results.get(each, 0)) for each in RESULTS)} |"
        for level, results in report["summary"].items()
    ]
    return "\n".join(
        [
            f"# {peer.title}",
            "",
            f"Version {number} of the Go module `{peer.module}`, on {day:%Y-%m-%d}; by `make conformance-reports`.",
            "",
            "[Levels](../conformance.md#levels): MUST is what clients rely on. SHOULD is what this suite asks of its",
            "own plugins beyond that, and no specification does: falling short of it tells a difference, not a fault.",
            "",
            f"    execcred conformance {flags} -- {' '.join([peer.name, *peer.arguments])}",
            "",
            f"The recipe [`{peer.name}.json`]({peer.name}.json) says how this plugin is led to a credential:",
            "",
            f"```json\n{recipe}\n```",
            "",
            f"| level | {' | '.join(RESULTS)} |",
            "|---|---|---|---|---|",
            *summary,
            "",
            "## What differs",
            "",
            "| level | result | vector | what was found |",
            "|---|---|---|---|",
            *[f"| {row['level']} | {row['result']} | {cell(row['vector'])} | {why(row)} |" for row in rows],
            "",
            "## What passes",
            "",
            "| level | vector |",
            "|---|---|",
            *[f"| {row['level']} | {cell(row['vector'])} |" for row in passed],
            "",
        ]
    )


RESULTS = ("pass", "fail", "falls short", "skipped")


def why(row: Json) -> str:
    """Return what was found in one cell."""
    return cell("; ".join(each["text"] for each in row["findings"]))


def cell(text: str) -> str:
    """Return text as a cell of a table, in which nothing is markup."""
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)


def main() -> None:
    """Write the page of each peer that is built, or of those named."""
    for peer in PEERS:
        if sys.argv[1:] and peer.name not in sys.argv[1:]:
            continue
        if not (GO_BIN / peer.name).exists():
            raise SystemExit(f"not built: {peer.name}; run `make bench-tools` (needs Go)")
        target = FOLDER / f"{peer.name}.md"
        target.write_text(page(peer, examine(peer), version(peer), datetime.datetime.now(datetime.UTC).date()))
        print(target.relative_to(ROOT))


if __name__ == "__main__":
    main()
