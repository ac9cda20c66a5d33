"""replace: whole or not at all, one writer at a time, kubectl's lock, and the file's mode."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from execcred import Env, ExecCredError
from execcred.tool._document import KUBECONFIG_LIMIT
from execcred.tool._replace import read, replace
from tool.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def env(seconds: float = 8.0) -> Env:
    made = Env({})
    made.start(seconds, False)
    return made


def refused(path: Path, seconds: float = 8.0) -> ExecCredError:
    with pytest.raises(ExecCredError) as caught:
        replace(str(path), lambda _: "new", env(seconds))
    return caught.value


def test_a_new_file_and_its_folder_are_private(tmp_path: Path) -> None:
    path = tmp_path / "kube" / "config"
    assert replace(str(path), lambda text: text + "new", env()) is True
    assert path.read_text() == "new"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert os.listdir(path.parent) == ["config"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    path.chmod(mode)
    assert replace(str(path), lambda text: text + "new", env()) is True
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("oldnew", mode)


def test_the_same_text_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    before = path.stat()
    assert replace(str(path), lambda text: text, env()) is False
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "real", tmp_path / "config"
    path.write_text("old")
    link.symlink_to(path)
    assert replace(str(link), lambda _: "new", env()) is True
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_kubectls_lock_is_waited_for(tmp_path: Path) -> None:
    path, lock = tmp_path / "config", tmp_path / "config.lock"
    lock.touch()
    releaser = threading.Timer(0.3, lock.unlink)
    releaser.start()
    assert replace(str(path), lambda _: "new", env(60)) is True
    releaser.join()
    assert os.listdir(tmp_path) == ["config"]


def test_a_lock_that_stays_is_told_and_left(tmp_path: Path) -> None:
    path, lock = tmp_path / "config", tmp_path / "config.lock"
    path.write_text("old")
    lock.touch()
    error = refused(path, 0.2)
    assert (error.code, error.exit_status) == ("kubeconfig-locked", 3)
    assert str(lock) in error.message
    assert path.read_text() == "old"
    assert lock.exists()


def test_what_another_process_writes_meanwhile_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    seen: list[str] = []

    def change(text: str) -> str:
        seen.append(text)
        if len(seen) == 1:  # an editor that knows no lock
            (tmp_path / "edited").write_text("edited")
            (tmp_path / "edited").rename(path)
        return text + "+new"

    assert replace(str(path), change, env()) is True
    assert seen == ["old", "edited"]
    assert path.read_text() == "edited+new"


def test_a_program_that_never_stops_writing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("0")

    def change(text: str) -> str:
        path.write_text(text + "0")
        return text + "new"

    with pytest.raises(ExecCredError) as caught:
        replace(str(path), change, env())
    assert (caught.value.code, caught.value.exit_status) == ("kubeconfig-changing", 3)
    assert "new" not in path.read_text()
    assert os.listdir(tmp_path) == ["config"]


def test_an_error_while_changing_leaves_file_and_lock_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        replace(str(path), lambda _: str(1 // 0), env())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["config"]


@pytest.mark.parametrize("size", [2, KUBECONFIG_LIMIT + 1])
def test_what_is_no_text_of_a_sane_size_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\xff\xfe")
    os.truncate(path, size)
    assert refused(path).code == "kubeconfig-unwritable"
    assert path.stat().st_size == size


def test_what_the_next_run_could_not_read_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "config"
    assert replace(str(path), lambda _: "x" * KUBECONFIG_LIMIT, env(60)) is True
    with pytest.raises(ExecCredError, match="it would be larger than"):
        replace(str(path), lambda text: text + "x", env(60))
    assert len(read(str(path))) == KUBECONFIG_LIMIT
    assert os.listdir(tmp_path) == ["config"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_only_a_regular_file_is_read_and_replaced(tmp_path: Path, kind: str) -> None:
    """A pipe would wait for ever; root would put a file in the place of /dev/null, for all programs of the machine."""
    path = tmp_path / "config"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    before = path.lstat()
    error = refused(path)
    assert (error.code, "it is no regular file" in error.message) == ("kubeconfig-unwritable", True)
    assert path.lstat() == before


def test_a_folder_is_no_kubeconfig(tmp_path: Path) -> None:
    assert refused(tmp_path).code == "kubeconfig-unwritable"
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file" / "config").code == "kubeconfig-unwritable"
    with pytest.raises(ExecCredError):
        read(str(tmp_path))


WRITER = """
import sys
from execcred import Env
from execcred.tool._replace import replace
for number in range(20):
    env = Env({})
    env.start(60, False)
    replace(sys.argv[1], lambda text: text + sys.argv[2], env)
"""


def test_writers_in_several_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "config"
    children = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), letter], cwd=ROOT, stderr=subprocess.PIPE)
        for letter in "ab"
    ]
    end = time.monotonic() + 100
    while any(child.poll() is None for child in children) and time.monotonic() < end:
        if path.exists():
            assert set(path.read_text()) <= {"a", "b"}  # a reader never sees half a file
        time.sleep(0.01)
    assert [child.communicate()[1] for child in children] == [b"", b""]
    assert sorted(path.read_text()) == ["a"] * 20 + ["b"] * 20
