"""In the cloud plugins' archives: unpack the SDK into a private directory when something of it is first imported.

Machine code and data files cannot be used from inside a zip. What needs no SDK (--help, bad input, a cached
answer) needs no directory either.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from zipimport import zipimporter

    from execcred import ExecCredError


class SdkFinder:
    """An import hook for the SDK's top-level names; it does its work once."""

    def __init__(self, archive: zipimporter, name: str, names: tuple[str, ...], native: bool) -> None:
        self.archive = archive
        self.name = name  # of the directory: plugin and digest of its content
        self.names = names
        self.native = native

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Find a module of the SDK; raises ExecCredError when the SDK can be unpacked nowhere."""
        if fullname not in self.names or self not in sys.meta_path:
            return None
        folder = self.unpacked()
        sys.meta_path.remove(self)
        sys.path.append(folder)
        return PathFinder.find_spec(fullname)

    def unpacked(self) -> str:
        """Return the directory that holds the SDK, unpacked now if it is not there yet."""
        base = _base()
        folder = f"{base}/{self.name}"
        try:
            if not os.path.lexists(folder):
                self._unpack(base, folder)
            _check_private(folder)
        except OSError as error:
            raise _cannot_unpack(
                "unpack-failed", f"the SDK cannot be unpacked into {folder}: {error.strerror or error}"
            ) from None
        return folder

    def _unpack(self, base: str, folder: str) -> None:
        """Unpack under a lock, so that of several first runs one works; where one was killed, the next goes on."""
        import fcntl

        os.umask(0o077)
        os.makedirs(base, exist_ok=True)
        if self.native and os.statvfs(base).f_flag & os.ST_NOEXEC:
            raise _cannot_unpack("unpack-failed", f"{base} is mounted noexec, and the SDK holds machine code")
        lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.lexists(folder):
                self._extract(f"{folder}.new")
                os.rename(f"{folder}.new", folder)
        finally:
            os.close(lock)

    def _extract(self, folder: str) -> None:
        """Write every file that is not there whole: on a slow disk the deadline may end more than one run."""
        import io
        import shutil
        import zipfile

        if os.path.lexists(folder):
            _check_private(folder)
        else:
            os.mkdir(folder)
        try:
            content = self.archive.get_data(f"{self.archive.archive}/sdk.zip")
            with zipfile.ZipFile(io.BytesIO(content)) as sdk:
                for entry in sdk.infolist():  # names are relative and without "..": the builder wrote them
                    path = f"{folder}/{entry.filename}"
                    if not _is_whole(path, entry.file_size, entry.CRC):
                        os.makedirs(os.path.dirname(path), exist_ok=True)
                        with open(path, "wb") as file:
                            file.write(sdk.read(entry))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _is_whole(path: str, size: int, checksum: int) -> bool:
    """Say whether a killed run has written this file to its end."""
    import zlib

    try:
        with open(path, "rb") as file:
            content = file.read(size + 1)
    except FileNotFoundError:
        return False
    return len(content) == size and zlib.crc32(content) == checksum


def _base() -> str:
    """Return where to unpack: EXECCRED_UNPACK_DIR, else `execcred` in the user's cache directory."""
    asked = os.environ.get("EXECCRED_UNPACK_DIR", "")
    if asked:
        if not os.path.isabs(asked):
            raise _cannot_unpack("unpack-failed", "EXECCRED_UNPACK_DIR is not an absolute path")
        return asked.rstrip("/") or "/"
    cache, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if os.path.isabs(cache):
        return f"{cache}/execcred"
    if os.path.isabs(home):
        return f"{home.rstrip('/')}/.cache/execcred"
    raise _cannot_unpack("unpack-failed", "no directory to unpack the SDK into: HOME and XDG_CACHE_HOME are not set")


def _check_private(folder: str) -> None:
    """Refuse a directory that somebody else could have filled or could exchange: its code handles credentials."""
    import stat

    base = os.path.dirname(folder)
    if not {os.lstat(base).st_uid, os.stat(base).st_uid} <= {0, os.geteuid()}:
        raise _cannot_unpack("unpack-refused", f"{base} belongs to another user, so nothing in it is used")
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise _cannot_unpack("unpack-refused", f"{folder} is not a directory of this user's alone, so it is not used")


def _cannot_unpack(code: str, message: str) -> ExecCredError:
    from execcred import ExecCredError

    hint = "set EXECCRED_UNPACK_DIR to a writable directory of your own, or use the image form"
    return ExecCredError(code=code, message=message, hint=hint)
