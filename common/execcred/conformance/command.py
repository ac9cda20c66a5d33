"""`execcred conformance … -- COMMAND…`: the kit as people and CI run it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from execcred._errors import BadRequest, ExecCredError, printable
from execcred.tool._options import option, parse

from .cases import KINDS, cases
from .isolation import adopt_orphans, end_orphans, keep_on_loopback
from .kit import Kit, selected
from .recipe import placeholders, read_recipe
from .report import Report, as_json, junit, text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from execcred import Env
    from execcred._settings import Settings

    from .cases import Case

TABLE = (
    option("kind", "what it is meant to be; any: the protocol only", "choice", KINDS, "any"),
    option("recipe", "JSON file with what leads it to a credential, laid over the kind's own"),
    option("own", "ask for the flags, codes and rules of this suite, too", "flag"),
    option("strict", "falling short of a SHOULD is a failure, too", "flag"),
    option("vector", "only vectors whose name holds this text"),
    option("timeout", "limit for one run", "seconds", default=20.0),
    option("jobs", "how many runs at once (default: one per processor)"),
    option("junit", "write JUnit XML to this file, too"),
    option("output", "how the report looks", "choice", ("text", "json"), "text"),
)
USAGE = "conformance [flags] -- COMMAND…   (in it, {clusterName} and other words of the recipe are filled in)"


def answer(arguments: Sequence[str], _: Env) -> tuple[str, int]:
    """Run the vectors against a command; return the report, and 0 when it conforms, else 1.

    Raises BadRequest("usage" | "setting-invalid" | "recipe-unusable"), ExecCredError("report-unwritable").
    """
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    settings, words, help_text = parse(USAGE, TABLE, arguments[:cut])
    if help_text:
        return help_text, 0
    command = arguments[cut + 1 :]
    if words or not command or not command[0]:
        raise BadRequest("usage", "no command given", "put it behind --: execcred conformance --kind=any -- my-plugin")
    chosen, jobs = _chosen(settings, command), _jobs(settings)
    target = settings.text("junit")
    if target:
        _write(target, b"")  # better known now than after minutes
    report = _run(settings, command, chosen, jobs)
    if target:
        _write(target, junit(report))
    return as_json(report) if settings.text("output") == "json" else text(report), int(not report.conforms)


def _chosen(settings: Settings, command: Sequence[str]) -> list[Case]:
    kind = settings.text("kind")
    recipe = read_recipe(settings.text("recipe")) if settings.text("recipe") else {}
    every = cases(kind, recipe=recipe)
    if placeholders(command, every[0].recipe):
        every = cases(kind, recipe={**recipe, "flags": []})  # the command itself says what the flags would
    chosen = selected(every, own=settings.flag("own"), text=settings.text("vector"))
    if not chosen:
        raise BadRequest("usage", f"no vector of {kind} has that text in its name", "the table shows the names")
    return chosen


def _jobs(settings: Settings) -> int:
    given = settings.text("jobs") or str(min(os.cpu_count() or 1, 8))
    if not given.isascii() or not given.isdecimal() or not 1 <= int(given) <= 64:
        raise BadRequest("setting-invalid", f"--jobs is {printable(given, 20)!r}", "give a number from 1 to 64")
    return int(given)


def _run(settings: Settings, command: Sequence[str], chosen: Sequence[Case], jobs: int) -> Report:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)  # so that folders and processes go then, too
    alone = keep_on_loopback()
    network = "one of its own, with loopback only" if alone else "this machine's; Python commands are kept on loopback"
    adopt_orphans()
    kit = Kit(command, limit=settings.seconds("timeout"), own=settings.flag("own"))
    try:
        rows = kit.run(chosen, jobs, _progress(len(chosen)))
    finally:
        end_orphans()
    return Report(settings.text("kind"), command, network, settings.flag("strict"), rows)


def _progress(total: int) -> Callable[[int], None]:
    """Return what shows on a terminal how far it is."""

    def show(done: int) -> None:
        if sys.stderr.isatty():
            end = "\r\033[K" if done == total else ""
            sys.stderr.write(f"\r{done} of {total} vectors{end}")
            sys.stderr.flush()

    return show


def _write(target: str, content: bytes) -> None:
    try:
        Path(target).write_bytes(content)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "that can be no file"
        raise ExecCredError(
            "report-unwritable", f"{printable(target)} cannot be written: {why}", "name another file with --junit"
        ) from None
