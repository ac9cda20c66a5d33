"""Measures size and start-up of each form of the plugins, and writes the table of docs/which-form.md.

Sizes are those of the files in dist/, start-up is the median of `--version`; from the least to the greatest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "which-form.md"
BEGIN, END = "<!-- forms: written by make bench-forms -->\n", "<!-- /forms -->"
RUNS = int(os.environ.get("BENCH_RUNS", "31"))
READERS, CLOUDS = ("secretreader", "kubeconfig-secretreader"), ("eks", "gke", "aks")
HEAD = """\
| you run | form | file | readers MB | clouds MB | readers start, ms | clouds start, ms |
|---|---|---|---|---|---|---|
"""


class Figures(NamedTuple):
    """What was measured of one form: megabytes and milliseconds, of readers and of cloud plugins."""

    sizes: dict[str, float]
    starts: dict[str, float]


# Form: who takes it, what it is, which file.
FORMS = {
    "zipapp": (
        ("kubectl on a laptop", "one file, for Python 3.11 or newer", "`dist/<name>-plugin*.pyz`"),
        ("a CI job", "the same file, checked by its sum", "`dist/<name>-plugin*.pyz`, `dist/SHA256SUMS`"),
    ),
    "image": (
        ("a controller, Kubernetes 1.35 or newer", "image volume: brings all it needs", "`dist/images/<name>.oci.tar`"),
        (
            "a controller, older Kubernetes",
            "the same image as initContainer: `install` copies its tree into an emptyDir",
            "`dist/images/<name>.oci.tar`",
        ),
    ),
    "pip": (
        (
            "a controller whose image has Python",
            "installed beside it, or the one file copied into its image",
            "`pip install '.[<name>]'`",
        ),
    ),
}


def table(figures: dict[str, Figures]) -> str:
    """Return the table; `figures` by form."""
    text = HEAD
    for form, rows in FORMS.items():
        sizes, starts = figures[form]
        cells = [
            span(values, names, digits) for values, digits in ((sizes, 1), (starts, 0)) for names in (READERS, CLOUDS)
        ]
        for who, what, file in rows:
            text += "| " + " | ".join([who, what, file, *cells]) + " |\n"
    return text


def span(values: dict[str, float], names: tuple[str, ...], digits: int) -> str:
    """Return the least and the greatest value, or one if they look the same; a dash where nothing was measured."""
    found = [f"{values[name]:.{digits}f}" for name in names if name in values]
    least, most = (min(found, key=float), max(found, key=float)) if found else ("–", "–")
    return least if least == most else f"{least}–{most}"


def starts(commands: dict[str, list[str]]) -> dict[str, float]:
    """Return how many ms each command takes to say its version, all in turn."""
    lines = "\n".join(["\x1e" + "\x1f".join([*command, "--version"]) for command in commands.values()])
    worker = [os.path.realpath(sys.executable), "-I", "-S", str(ROOT / "bench" / "measure.py"), str(RUNS)]
    done = subprocess.run(worker, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    columns = zip(*[line.split("\t") for line in done.stdout.splitlines()], strict=True)
    found = {}
    for name, column in zip(commands, columns, strict=True):
        if any(cell.split()[2] != "0" for cell in column):
            raise SystemExit(f"{name}: --version failed")
        found[name] = median([int(cell.split()[0]) for cell in column]) / 1e6
    return found


def measured(folder: Path) -> dict[str, Figures]:
    """Return the figures of every form, from dist/ and .venv/; images are unpacked into `folder`."""
    from image import unpack
    from rows import zipapp_command

    dist, python = ROOT / "dist", os.path.realpath(sys.executable)
    zipapps = {name: one(dist, f"{name}-plugin*.pyz") for name in (*READERS, *CLOUDS)}
    sizes = {name: unpack(one(dist / "images", f"{name}.oci.tar"), folder / name) / 1e6 for name in zipapps}
    return {
        "zipapp": Figures(
            {name: path.stat().st_size / 1e6 for name, path in zipapps.items()},
            starts({name: zipapp_command(python, path) for name, path in zipapps.items()}),
        ),
        "image": Figures(sizes, starts({name: [str(folder / name / "bin" / f"{name}-plugin")] for name in sizes})),
        "pip": Figures({}, starts({name: [str(ROOT / ".venv/bin" / f"{name}-plugin")] for name in zipapps})),
    }


def one(folder: Path, pattern: str) -> Path:
    """Return the one file of a pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{len(found)} files {folder}/{pattern}: make clean zipapps images")
    return found[0]


def with_table(text: str, figures: dict[str, Figures]) -> str:
    """Return the page's text with a new table between the marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE}: {BEGIN.strip()} … {END} is missing")
    return before + begin + table(figures) + end + after


def main() -> None:
    """Measure, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        text = with_table(PAGE.read_text(), measured(Path(folder)))
    PAGE.write_text(text)
    print(text.partition(BEGIN)[2].partition(END)[0], end="")


if __name__ == "__main__":
    main()
