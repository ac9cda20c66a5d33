"""Replaces a kubeconfig's text while others may write it, too: kubectl's lock, a temporary file, a rename."""

from __future__ import annotations

import contextlib
import os
import stat
import time

from execcred._errors import ExecCredError, TryAgain, printable

from ._document import KUBECONFIG_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from execcred import Env

PAUSE = 0.05  # seconds between two looks at the lock
ATTEMPTS = 5


def read(path: str) -> str:
    """Return a file's text, "" when there is none.

    Raises ExecCredError("kubeconfig-unwritable").
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for ever, /dev/null would be replaced
            raise _unwritable(path, "it is no regular file")
        with open(path, "rb") as file:
            content = file.read(KUBECONFIG_LIMIT + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise _unwritable(path, error.strerror or "it cannot be read") from None
    if len(content) > KUBECONFIG_LIMIT:
        raise _unwritable(path, f"it is larger than {KUBECONFIG_LIMIT} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unwritable(path, f"byte {error.start} is not UTF-8 text") from None


def _unwritable(path: str, what: str) -> ExecCredError:
    return ExecCredError(
        "kubeconfig-unwritable",
        f"{printable(path)} cannot be updated: {what}",
        "name a kubeconfig that you may write with --to; its folder must be writable, too",
    )


def replace(path: str, change: Callable[[str], str], env: Env) -> bool:
    """Replace the text of a file by what `change` makes of it, at once as a whole; tell whether it differs.

    A new file has mode 0600, another one keeps its mode and owner. A symbolic link is followed.
    Raises ExecCredError("kubeconfig-unwritable"), TryAgain("kubeconfig-locked" | "kubeconfig-changing") and what
    `change` raises; the file is then as it was.
    """
    try:
        os.makedirs(os.path.dirname(path) or ".", 0o700, exist_ok=True)
        with _locked(path, env):
            for _ in range(ATTEMPTS):
                before, text = _state(path), read(path)
                new = change(text)
                if new == text:
                    return False
                if len(new.encode()) > KUBECONFIG_LIMIT:  # the next run could not read it
                    raise _unwritable(path, f"it would be larger than {KUBECONFIG_LIMIT} bytes")
                if _written(os.path.realpath(path), new, before):
                    return True
    except OSError as error:
        raise _unwritable(path, error.strerror or "it cannot be written") from None
    raise TryAgain(
        "kubeconfig-changing",
        f"another program keeps writing {printable(path)}, and takes no lock",
        "end it, or write another file with --to",
    )


@contextlib.contextmanager
def _locked(path: str, env: Env) -> Iterator[None]:
    """Hold the lock that kubectl takes: a file beside it that only one can make."""
    lock = f"{path}.lock"
    env.doing(f"waiting for the lock {printable(lock)}")
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0))
            break
        except FileExistsError:
            if env.remaining() <= PAUSE:
                raise TryAgain(
                    "kubeconfig-locked",
                    f"{printable(path)} is being written by another process: it holds {printable(lock)}",
                    "try again; if no process writes it, one died while it did: remove the lock file",
                ) from None
            time.sleep(PAUSE)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(lock)


def _state(path: str) -> tuple[int, ...]:
    """Return what changes when somebody writes the file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _written(path: str, text: str, before: tuple[int, ...]) -> bool:
    """Write beside the file and rename; False when somebody else has written it since `before`."""
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(text.encode())
            if before:
                old = os.stat(path)
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
                os.fchmod(file.fileno(), old.st_mode & 0o777)
            file.flush()
            os.fsync(file.fileno())
        if _state(path) != before:
            return False
        os.rename(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
    return True
