"""Measures ours against its peers, in turn, and writes the table to bench/README.md.

Ratios are what counts: both sides run in the same minute on the same machine. A row whose peer cannot be built says
`absent` and shows ours against the bare interpreter.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from statistics import median
from typing import NamedTuple

from clouds import Clouds
from rows import Command, Row, World

ROOT = Path(__file__).resolve().parent.parent
RUNS = int(os.environ.get("BENCH_RUNS", "31"))
INTRO = """# Benchmarks

Written by `make bench`; do not edit. Whole processes, medians of {runs} runs, both sides in turn. "bare" is
`python3 -I -S -c pass`. The plugins are the zipapps. Cloud stand-ins answer after 50 ms. Absolute times depend on the
machine, so the bars, in brackets, are for the ratios.

{machine}

| what | peer | ms, ours / peer | ratio | MiB, ours / peer | ratio | besides | holds |
|---|---|---|---|---|---|---|---|
"""


class Figures(NamedTuple):
    """Medians over all runs, and how many runs failed in a way the row does not expect."""

    ms: float
    mib: float
    bad: int


def measure(commands: list[Command], within: list[str], runs: int) -> list[Figures]:
    """Run `commands` in turn, `runs` times each, in the namespace that the command prefix `within` makes."""
    lines = [
        "\x1f".join([f"{name}={value}" for name, value in command.env.items()]) + "\x1e" + "\x1f".join(command.argv)
        for command in commands
    ]
    worker = [*within, os.path.realpath(sys.executable), "-I", "-S", str(ROOT / "bench" / "measure.py"), str(runs)]
    done = subprocess.run(worker, input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    table = [[[int(word) for word in cell.split()] for cell in line.split("\t")] for line in done.stdout.splitlines()]
    figures = []
    for number, command in enumerate(commands):
        column = [row[number] for row in table]
        bad = len([cell for cell in column if cell[2] != command.status])
        figures.append(Figures(median([c[0] for c in column]) / 1e6, median([c[1] for c in column]) / 1024, bad))
    return figures


def line_of(row: Row, bare: Command) -> tuple[str, bool]:
    """Measure one row; return its line of the table and whether its bars hold."""
    peer = row.peer or bare
    runs = row.runs or RUNS
    ours, theirs = measure([row.ours, peer], row.within, runs)
    if ours.bad or theirs.bad:
        raise SystemExit(f"{row.what}: {ours.bad} of ours and {theirs.bad} of the peer's {runs} runs failed")
    wall, memory = ours.ms / theirs.ms, ours.mib / theirs.mib
    absent = row.peer is None and row.peer_name != "bare"
    wall_bar, memory_bar = (None, None) if absent else (row.wall_bar, row.memory_bar)
    other, other_holds = row.other() if row.other else ("", True)
    holds = other_holds and (wall_bar is None or wall <= wall_bar) and (memory_bar is None or memory <= memory_bar)
    cells = [
        row.what,
        f"{row.peer_name}{' (absent: bare)' if absent else ''}",
        f"{ours.ms:.1f} / {theirs.ms:.1f}",
        f"{wall:.2f}×{f' (≤ {wall_bar}×)' if wall_bar else ''}",
        f"{ours.mib:.1f} / {theirs.mib:.1f}",
        f"{memory:.2f}×{f' (≤ {memory_bar}×)' if memory_bar else ''}",
        other,
        "yes" if holds else "**no**",
    ]
    return "| " + " | ".join(cells) + " |", holds


def main() -> int:
    """Print and write the table; 1 when a bar does not hold. With words, print only rows that have one of them."""
    python = os.environ.get("BENCH_PYTHON") or os.path.realpath(sys.executable)
    bare = Command([python, "-I", "-S", "-c", "pass"], {})
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    machine = f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.machine()}, {version}"
    text = INTRO.format(runs=RUNS, machine=machine)
    print(text, end="")
    good = True
    words = sys.argv[1:]
    with (
        tempfile.TemporaryDirectory() as folder,
        World(Path(folder), ROOT, python, RUNS) as world,
        Clouds(world) as clouds,
    ):
        for row in chain(world.rows(), clouds.rows()):
            if words and not any(word in row.what for word in words):
                continue
            line, holds = line_of(row, bare)
            good = good and holds
            print(line, flush=True)
            text += line + "\n"
    if not words:
        (ROOT / "bench" / "README.md").write_text(text)
    return 0 if good else 1


sys.exit(main())
