"""Errors for the reader: what happened, a stable code, what to do next. Imports nothing of the package.

The class of an error is its exit status:

    ExecCredError   1   will not work until something is changed
    ├─ BadRequest   2   bad usage or a bad request
    ├─ TryAgain     3   may work if tried again
    └─ LoginNeeded  4   a person must log in
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Fail = Callable[[str], "ExecCredError"]  # makes the error from what is wrong


class ExecCredError(Exception):
    """A failure that its reader can act on; `code` is stable and kebab-case, texts never hold a secret."""

    exit_status = 1

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Travel whole between processes: a pool of workers breaks over an exception that cannot be made again."""
        return type(self), (self.code, self.message, self.hint), self.__dict__


class BadRequest(ExecCredError):
    """Bad usage or a bad request: a flag, a setting or the exec info must change."""

    exit_status = 2


class TryAgain(ExecCredError):
    """May work if tried again: deadline, network, throttling, a key still empty."""

    exit_status = 3


class LoginNeeded(ExecCredError):
    """A person must log in; the hint holds the command."""

    exit_status = 4


def library_missing(error: ImportError) -> ExecCredError:
    """Return the error for a library that cannot be imported, as after an installation without the extra."""
    name = printable(error.name or "a library", 60)
    hint = "install execcred with the extra that has it, or use the zipapp or the image"
    return ExecCredError("library-missing", f"{name} cannot be imported", hint)


def printable(text: str, limit: int = 200) -> str:
    """Return foreign `text` fit for one line of a log: no control characters, at most `limit` characters."""
    clean = "".join(char if char.isprintable() else "?" for char in text[: limit + 1])
    return clean if len(clean) <= limit else clean[:limit] + "…"
