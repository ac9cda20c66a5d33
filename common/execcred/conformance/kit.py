"""Runs the vectors of a kind against a command, several at once, and says of each how it went."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .cases import LEVELS, MUST, OWN
from .fakes import Authority
from .isolation import end_orphans
from .judge import Finding, judge
from .stage import Stage, cannot_be_staged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .cases import Case

PASS, FAIL, SHORT, SKIPPED = "pass", "fail", "falls short", "skipped"
GIVEN_UP = 5  # runs in a row that did not start or did not end, after which the rest would only take time


class Row(NamedTuple):
    """How a vector went: pass, fail (a MUST is broken), falls short (a SHOULD or OWN is), skipped; seconds it took."""

    case: Case
    result: str
    findings: list[Finding]
    seconds: float = 0.0

    @property
    def why(self) -> str:
        """What was found, in one line."""
        return "; ".join(each.text for each in self.findings)


class Kit:
    """The runs against one command."""

    def __init__(self, command: Sequence[str], *, limit: float, own: bool) -> None:
        """`limit` is how many seconds a run may take; `own` asks for what only this suite has, too."""
        self.command = found(command)
        self.limit = limit
        self.own = own
        self.authority = Authority()
        self.hopeless = 0
        self.lock = threading.Lock()

    def run(self, cases: Sequence[Case], jobs: int, progress: Callable[[int], None] = lambda _: None) -> list[Row]:
        """Run the vectors, `jobs` at once, in a folder that is gone afterwards; `progress` is told how many."""
        with contextlib.ExitStack() as stack:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="execcred-", ignore_cleanup_errors=True))
            )
            pool = stack.enter_context(ThreadPoolExecutor(jobs))
            waiting = [pool.submit(self.examine, case, folder / str(number)) for number, case in enumerate(cases)]
            rows = []
            try:
                for each in waiting:
                    rows.append(each.result())
                    progress(len(rows))
            except KeyboardInterrupt:
                self.hopeless = GIVEN_UP
                while not all(each.cancel() or each.done() for each in waiting):
                    end_orphans()  # again and again: a run may begin at this moment
                    time.sleep(0.05)
                raise
            return rows

    def examine(self, case: Case, folder: Path) -> Row:
        """Run one vector; whatever goes wrong is its row's matter."""
        if reason := cannot_be_staged(case):
            return Row(case, SKIPPED, [Finding(case.level, reason)])
        if self.hopeless >= GIVEN_UP:
            return Row(case, FAIL, [Finding(MUST, f"given up: {GIVEN_UP} runs in a row did not start or did not end")])
        folder.mkdir()
        try:
            return self._examine(case, folder)
        except Exception as error:
            return Row(case, FAIL, [Finding(MUST, f"the kit itself failed: {type(error).__name__}: {error}")])
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _examine(self, case: Case, folder: Path) -> Row:
        with Stage(case, self.authority, folder) as stage:
            count = case.vector.get("runs", 1)
            with ThreadPoolExecutor(count) as pool:
                runs = list(pool.map(lambda _: stage.execute(self.command, self.limit), range(count)))
            findings = judge(stage, runs, own=self.own)
        with self.lock:
            self.hopeless = self.hopeless + 1 if any(done.problem for done in runs) else 0
        level = findings[0].level if findings else ""
        result = FAIL if level == MUST else SHORT if level else PASS
        return Row(case, result, findings, max(done.seconds for done in runs))


def found(command: Sequence[str]) -> list[str]:
    """Return a command that also works in another folder and without PATH."""
    words = [shutil.which(command[0]) or command[0], *command[1:]]
    return [str(Path(word).absolute()) if "/" in word and Path(word).exists() else word for word in words]


def selected(cases: Sequence[Case], *, own: bool, text: str = "") -> list[Case]:
    """Return the vectors whose id holds `text`, those of this suite only with `own`; the gravest levels first."""
    chosen = [
        case
        for case in cases
        if (own or case.level != OWN) and text in case.id and case.vector.get("only") != "function"
    ]
    return sorted(chosen, key=lambda case: LEVELS.index(case.level))
