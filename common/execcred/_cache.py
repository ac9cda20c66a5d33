"""A cache of cloud credentials between processes: off unless asked for, private, and never a reason to fail.

One entry is one JSON file named by the hash over every input that shapes the credential. Beside it, `.seen` notes who
was answered until when: the same parent asking again for the same server before that means a 401, so it is fetched anew
(client-go in one process asks again for no other reason, while each kubectl is a new process).
"""

from __future__ import annotations

import os
import time

from ._json import loads
from ._settings import Setting
from ._sha256 import hexdigest
from ._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ._env import Env
    from ._protocol import Request
    from ._settings import Settings

    # What is cached (never a Secret's content) and its true end in epoch seconds; without an end it is not kept.
    Entry = tuple[dict[str, str], float | None]

CACHE_SETTINGS = (Setting("cache-dir", "keep credentials in this private directory; best in memory"),)
MARGIN = 60.0
LOCK_WAIT = 0.75  # of the time left: who holds the lock asks the same, and for no longer


def cached(
    request: Request,
    settings: Settings,
    env: Env,
    inputs: Mapping[str, str],
    fetch: Callable[[], Entry],
    *,
    fields: tuple[str, ...] = ("token",),
    answer_seconds: float = 1e9,
    target: str = "",
) -> Entry:
    """Return a cached entry for `inputs`, or what `fetch()` returns, which is then kept.

    `fields` is what an entry must hold; `answer_seconds` is how long an answer made of the entry lasts, where that is
    less than the entry's own time; `target` tells clusters apart where the client names no server.
    """
    directory = settings.text("cache-dir")
    if not directory:
        return fetch()
    try:
        store = _Store(directory, inputs, request.server or target, answer_seconds)
    except OSError as error:
        env.debug(f"the cache is not used: {error.strerror or error}")
        return fetch()
    with store:
        entry = store.load(env, fields)
        if entry is None:
            store.lock(env)
            entry = store.load(env, fields)  # who held the lock may have fetched it
        if entry is None:
            entry = fetch()
            store.save(entry, env)
        return entry


class _Store:
    """The files of one entry, in a directory that only this user can reach."""

    def __init__(self, directory: str, inputs: Mapping[str, str], server: str, answer_seconds: float) -> None:
        os.makedirs(directory, 0o700, exist_ok=True)
        self._folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        status = os.fstat(self._folder)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            os.close(self._folder)
            raise OSError(f"{directory} must belong to this user, with mode 0700")
        self._name = hexdigest(repr([__version__, sorted(inputs.items())]))
        asker = repr([os.getppid(), _start_of(os.getppid()), server])
        self._asker = hexdigest(asker)[:16]
        self._answer_seconds = answer_seconds
        self._lock = -1
        self._locked = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._lock >= 0:
            os.close(self._lock)
        os.close(self._folder)

    def lock(self, env: Env) -> None:
        """Wait for others who fetch the same; go on unlocked when that takes too long or is impossible."""
        import fcntl

        try:
            self._lock = self._open(f"{self._name}.lock", os.O_RDWR | os.O_CREAT)
            end = time.monotonic() + env.remaining() * LOCK_WAIT
            while not self._locked:
                try:
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._locked = True
                except BlockingIOError:
                    if time.monotonic() > end:
                        return env.debug("the cache's lock is held by another process: going on without")
                    time.sleep(0.01)
        except OSError as error:
            env.debug(f"the cache cannot be locked: {error.strerror or error}")

    def load(self, env: Env, fields: tuple[str, ...]) -> Entry | None:
        """Return the entry unless it is missing, bad, over, or taken for refused by the server."""
        try:
            entry = loads(self._read(f"{self._name}.json").decode())
            value = {name: entry["value"][name] for name in fields}
            expires, now = float(entry["expires"]), env.now()
            if not expires - MARGIN > now:  # also true of NaN
                return None
            if expires > 1e11 or not all(isinstance(text, str) for text in value.values()):
                raise TypeError
            if self._seen_until() > now:
                env.debug("the same process asks again for the same server: taken for a 401, fetched anew")
                return None
            self._note(expires, now, os.O_APPEND)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
            env.debug("a bad cache entry is not used")
            return None
        env.debug("from the cache")
        return value, expires

    def save(self, entry: Entry, env: Env) -> None:
        """Replace the entry whole; a reader sees the old one or the new one."""
        import json

        value, expires = entry
        if expires is None:
            return env.debug("credentials without an end are not cached")
        temporary = f"{self._name}.{os.urandom(8).hex()}.tmp"
        try:
            self._sweep()
            self._note(expires, env.now(), os.O_TRUNC)
            self._write(temporary, json.dumps({"value": value, "expires": expires}), os.O_EXCL)
            os.replace(temporary, f"{self._name}.json", src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            env.debug(f"the cache cannot be written: {error.strerror or error}")

    def _sweep(self) -> None:
        """Remove what belongs to the entry before, or was left by a killed writer."""
        if not self._locked:
            return
        for name in os.listdir(self._folder):
            if name.startswith(self._name) and name.endswith((".tmp", ".seen")):
                os.unlink(name, dir_fd=self._folder)

    def _note(self, expires: float, now: float, flags: int) -> None:
        """Note that this parent has an answer, until the second that the answer announces as its end."""
        until = min(now // 1 + self._answer_seconds, expires) - MARGIN
        self._write(f"{self._name}.seen", f"{self._asker} {until}\n", flags)

    def _seen_until(self) -> float:
        try:
            lines = self._read(f"{self._name}.seen").decode().splitlines()
        except FileNotFoundError:
            return 0.0
        return max([float(line.split()[1]) for line in lines if line.startswith(self._asker)], default=0.0)

    def _open(self, name: str, flags: int) -> int:
        file = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._folder)
        status = os.fstat(file)
        if status.st_uid != os.geteuid() or status.st_mode & 0o177:
            os.close(file)
            raise OSError(f"{name} must belong to this user, with mode 0600")
        return file

    def _read(self, name: str) -> bytes:
        with os.fdopen(self._open(name, os.O_RDONLY), "rb") as file:
            return file.read(1 << 20)

    def _write(self, name: str, text: str, flags: int) -> None:
        with os.fdopen(self._open(name, os.O_WRONLY | os.O_CREAT | flags), "wb", 0) as file:
            file.write(text.encode())


def _start_of(process: int) -> str:
    """Return when a process started, as its number alone may come again; "" where /proc does not say."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""
