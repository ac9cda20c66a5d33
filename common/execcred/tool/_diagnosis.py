"""A diagnosis: steps that look at one thing each within a time limit, what they saw, and the one thing to do next."""

from __future__ import annotations

from typing import NamedTuple

from execcred._errors import ExecCredError, library_missing, printable

from ._bounded import bounded
from ._progress import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from execcred import Credential, Env, Settings
    from execcred.access import ExecSpec
    from execcred.http import Server
    from execcred.kube import Hub

    from ._entries import Entry, Profile

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"


class Problem(NamedTuple):
    """Something wrong; it fails its step unless `exit_status` is 0."""

    code: str
    message: str
    hint: str
    exit_status: int = 0


def problem(error: ExecCredError, *, fatal: bool = True) -> Problem:
    """Return an error as the problem that it is."""
    return Problem(
        code=error.code, message=error.message, hint=error.hint, exit_status=error.exit_status if fatal else 0
    )


class Seen(NamedTuple):
    """What a step found: a text for people, the same by stable keys, what is wrong with it."""

    text: str
    details: dict[str, Any]
    problems: Sequence[Problem] = ()


class Case:
    """What is known so far. A fact is there once the step that finds it has; `secrets` are shown nowhere."""

    origin: str  # of the ClusterProfile: hub or file
    hub: Hub
    document: dict[str, Any]  # the ClusterProfile
    profile: Profile
    entry: Entry
    spec: ExecSpec
    runnable: bool
    credential: Credential
    plain: Server  # of a context that has a credential of its own
    server: Server  # that the credential may go to
    accepted: bool

    def __init__(self, settings: Settings, env: Env) -> None:
        self.settings = settings
        self.env = env
        self.source = ""  # what the diagnosis is about
        self.namespace = "default"
        self.secrets: list[str] = []
        self.from_profile = False
        self.user = ""  # as the credential itself says
        self.skew: float | None = None  # seconds that the server's clock is ahead of this one's

    def keep(self, *secrets: str) -> None:
        """Note what must not be shown."""
        self.secrets += [secret for secret in secrets if secret]


class Step(NamedTuple):
    """One look: its stable name, the facts of a Case that it needs, the function that looks."""

    name: str
    needs: tuple[str, ...]
    look: Callable[[Case], Seen]


class Result(NamedTuple):
    """A step's outcome."""

    step: str
    status: str
    seen: Seen


def examine(case: Case, steps: Sequence[Step]) -> list[Result]:
    """Take the steps in order; one whose needs are missing is skipped, and none goes on for ever."""
    results = []
    for step in steps:
        if not all(hasattr(case, need) for need in step.needs):
            results.append(Result(step.name, SKIPPED, Seen("", {})))
            continue
        with progress(step.name):
            seen = _hidden(_bounded(step, case), case.secrets)
        failed = any(each.exit_status for each in seen.problems)
        results.append(Result(step.name, FAILED if failed else WARNING if seen.problems else OK, seen))
    return results


def _bounded(step: Step, case: Case) -> Seen:
    case.env.start(case.settings.seconds("timeout"), False)
    case.env.step = step.name
    try:
        return bounded(lambda: step.look(case), case.env)
    except ExecCredError as error:
        return Seen("", {}, [problem(error)])
    except ImportError as error:
        return Seen("", {}, [problem(library_missing(error))])
    except Exception as error:  # what was found till then is still told
        fault = ExecCredError("internal", f"unexpected {type(error).__name__} while {case.env.step}", "report it")
        return Seen("", {}, [problem(fault)])


def _hidden(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "…")
        return value
    if isinstance(value, dict):
        return {key: _hidden(each, secrets) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(_hidden(each, secrets) for each in value)
    return [_hidden(each, secrets) for each in value] if isinstance(value, list | tuple) else value


# --- the report ---


def next_of(results: Sequence[Result]) -> Problem | None:
    """Return the problem to care for first: the first that failed a step, else the first of all."""
    problems = [each for result in results for each in result.seen.problems]
    return next((each for each in problems if each.exit_status), problems[0] if problems else None)


def report(title: str, results: Sequence[Result], output: str) -> tuple[str, int]:
    """Return the report, text or json, and the exit status."""
    first = next_of(results)
    status = first.exit_status if first else 0
    return (_json(title, results, first, status) if output == "json" else _text(title, results, first)), status


def _json(title: str, results: Sequence[Result], first: Problem | None, status: int) -> str:
    import json

    steps = [
        {
            "step": result.step,
            "status": result.status,
            "found": result.seen.text,
            "details": result.seen.details,
            "problems": [
                {"code": each.code, "message": each.message, "hint": each.hint} for each in result.seen.problems
            ],
        }
        for result in results
    ]
    todo = {"code": first.code, "hint": first.hint} if first else None
    return json.dumps({"subject": title, "exitStatus": status, "next": todo, "steps": steps}, indent=2) + "\n"


def _text(title: str, results: Sequence[Result], first: Problem | None) -> str:
    lines = [title]
    for result in results:
        head = f"{result.status:<9}{result.step:<12}"
        told = [printable(result.seen.text, 1000)] if result.seen.text else []
        for each in result.seen.problems:
            told.append(f"{printable(each.message, 1000)} [{each.code}]")
            told += [f"hint: {printable(each.hint, 500)}"] if each.hint else []
        lines += [f"{head if not index else ' ' * len(head)}{line}".rstrip() for index, line in enumerate(told or [""])]
    if first is None:
        lines += ["", "next: nothing to do"]
    else:
        lines += ["", f"next: {printable(first.hint or first.message, 500)}", f"      execcred explain {first.code}"]
    return "\n".join(lines) + "\n"
