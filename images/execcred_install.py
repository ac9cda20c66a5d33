"""`<name>-plugin install DIR`, in images only: copy the whole tree into a directory, for a pod without image volumes.

One install at a time works in DIR; what it makes appears by rename, the launcher last, so that a killed one leaves
no half tree. A copy that equals the image's is left alone, any other is replaced.
"""

from __future__ import annotations

import os
import stat

from execcred import BadRequest, ExecCredError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # IMAGE/lib/<name>-plugin
IMAGE = os.path.dirname(os.path.dirname(TREE))
BLOCK = 1 << 20


def install(words: list[str]) -> str:
    """Install into the one directory in `words`; return the line for stdout.

    Raises BadRequest("usage"), ExecCredError("install-impossible" | "install-noexec" | "install-no-space" |
    "install-failed").
    """
    if len(words) != 1:
        raise BadRequest("usage", "install takes one directory", "install /plugins")
    target = os.path.abspath(words[0])
    _check(target)
    name = os.path.basename(TREE)
    try:
        with _Lock(target):
            _remove(*_working(target, name))  # what a killed one left
            if _is_installed(target, name):
                return f"{target}/bin/{name} is installed already\n"
            _check_space(target)
            _replace(target, name)
    except OSError as error:
        raise ExecCredError(
            "install-failed",
            f"cannot install into {target}: {error.strerror} ({error.filename or 'while copying'})",
            "give a directory on a writable volume with room, for uid 65532 a pod's emptyDir does",
        ) from None
    return f"{target}/bin/{name} installed\n"


def _check(target: str) -> None:
    """Refuse a directory in which the plugin could not be installed or started."""
    if not os.path.isdir(target):
        raise ExecCredError(
            "install-impossible", f"{target} is not a directory", "mount a volume there, or make the directory"
        )
    for folder in ("bin", "lib"):
        path = f"{target}/{folder}"
        if os.path.lexists(path) and not stat.S_ISDIR(os.lstat(path).st_mode):
            raise ExecCredError("install-impossible", f"{path} is not a directory", "remove it, or install elsewhere")
    if os.path.realpath(target) == os.path.realpath(IMAGE):
        raise ExecCredError("install-impossible", f"{target} is the image itself", "install into another directory")
    if os.statvfs(target).f_flag & os.ST_NOEXEC:
        raise ExecCredError(
            "install-noexec",
            f"{target} is mounted noexec, so the plugin could not start from there",
            "mount a volume that allows execution, or use an image volume",
        )


class _Lock:
    """Holds the directory's lock: it ends with the process, however that ends."""

    def __init__(self, target: str) -> None:
        self.target = target

    def __enter__(self) -> None:
        import fcntl

        for folder in ("bin", "lib"):
            _make_folder(f"{self.target}/{folder}")
        self.descriptor = os.open(f"{self.target}/lib", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


def _is_installed(target: str, name: str) -> bool:
    """Compare every file with the image's, byte by byte: a copy may be damaged."""
    copy = f"{target}/lib/{name}"
    own, there = sorted(_entries(TREE)), sorted(_entries(copy))
    pairs = [(f"{TREE}/{path}", f"{copy}/{path}") for path, is_folder in own if not is_folder]
    pairs.append((f"{IMAGE}/bin/{name}", f"{target}/bin/{name}"))
    return own == there and all(_same(*pair) for pair in pairs)


def _entries(folder: str, under: str = "") -> Iterator[tuple[str, bool]]:
    """Yield (relative path, is it a folder) for all in a folder; nothing when it is missing or no folder."""
    try:
        scan = os.scandir(f"{folder}/{under}")
    except (FileNotFoundError, NotADirectoryError):
        return
    with scan:
        for entry in scan:
            path = f"{under}{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            yield path, is_folder
            if is_folder:
                yield from _entries(folder, f"{path}/")


def _same(one: str, other: str) -> bool:
    try:
        a, b = os.stat(one), os.lstat(other)
        if not stat.S_ISREG(b.st_mode) or a.st_size != b.st_size or (a.st_mode ^ b.st_mode) & 0o555:
            return False
        with open(one, "rb") as first, open(other, "rb") as second:
            while block := first.read(BLOCK):
                if block != second.read(BLOCK):
                    return False
    except OSError:
        return False
    return True


def _check_space(target: str) -> None:
    """Refuse early what would fail after megabytes; the old copy stays until the new one is there."""
    volume = os.statvfs(target)
    size = volume.f_frsize
    blocks = sum(
        1 + (0 if folder else -(-os.stat(f"{TREE}/{path}").st_size // size)) for path, folder in _entries(TREE)
    )
    if volume.f_blocks and blocks > volume.f_bavail:  # a tmpfs without a limit has no blocks
        raise ExecCredError(
            "install-no-space",
            f"{target} has {volume.f_bavail * size >> 20} MiB left, and {(blocks * size >> 20) + 1} are needed",
            "raise the volume's sizeLimit",
        )


def _working(target: str, name: str) -> tuple[str, str, str]:
    """Return the names that an install works under: of the new tree, the old one, the new launcher."""
    return f"{target}/lib/.{name}.new", f"{target}/lib/.{name}.old", f"{target}/bin/.{name}.new"


def _replace(target: str, name: str) -> None:
    """Put the tree in place of whatever is there, then the launcher."""
    new, old, launcher = _working(target, name)
    place, start = f"{target}/lib/{name}", f"{target}/bin/{name}"
    try:
        _make_folder(new)
        for path, is_folder in _entries(TREE):
            if is_folder:
                _make_folder(f"{new}/{path}")
            else:
                _copy(f"{TREE}/{path}", f"{new}/{path}")
        _copy(f"{IMAGE}/bin/{name}", launcher)
        if os.path.lexists(place):
            os.rename(place, old)
        os.rename(new, place)
        if os.path.isdir(start):
            _remove(start)
        os.rename(launcher, start)
    finally:
        _remove(new, old, launcher)


def _make_folder(path: str) -> None:
    try:
        os.mkdir(path)
    except FileExistsError:
        return
    os.chmod(path, 0o755)  # whatever the umask: the consumer may be another user


def _copy(source: str, target: str) -> None:
    mode = os.stat(source).st_mode & 0o555
    with open(source, "rb") as reader, open(target, "xb") as writer:
        while block := reader.read(BLOCK):
            writer.write(block)
        os.fchmod(writer.fileno(), mode)


def _remove(*paths: str) -> None:
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            _remove(*[f"{path}/{entry}" for entry in os.listdir(path)])
            os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)
