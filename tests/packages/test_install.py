"""`<name>-plugin install DIR` copies the whole tree: atomic, repeatable, repairing, and says what it cannot do."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from packages.built import HOST, PATHS, PLUGINS, ROOT, TOKEN, copied, image, in_namespace, run

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "secretreader-plugin"


def install(tree: Path, target: Path, plugin: str = "secretreader") -> str:
    """Install and return the line on stdout."""
    result = run([tree / "bin" / f"{plugin}-plugin", "install", target])
    assert (result.status, result.err) == (0, ""), result.err
    return result.out


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and bytes of each file, and the modes of folders."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, b"" if path.is_dir() else path.read_bytes())
        for path in folder.rglob("*")
    }


def times(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_ino, path.stat().st_ctime_ns) for path in folder.rglob("*")}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "plugins"
    path.mkdir()
    return path


def test_the_copy_is_the_whole_tree_and_works(tree: Path, target: Path, asking: tuple[str, ...]) -> None:
    assert install(tree, target) == f"{target}/bin/{NAME} installed\n"
    assert content(target / "lib") == content(tree / "lib")
    assert content(target / "bin") == content(tree / "bin")
    assert run([target / "bin" / NAME, *asking]) == (0, TOKEN + "\n", "")


def test_a_good_copy_is_left_alone(tree: Path, target: Path) -> None:
    install(tree, target)
    before = times(target)
    assert install(tree, target) == f"{target}/bin/{NAME} is installed already\n"
    assert times(target) == before


def test_a_copy_installs_further(tree: Path, target: Path, tmp_path: Path) -> None:
    install(tree, target)
    further = tmp_path / "further"
    further.mkdir()
    install(target, further)
    assert content(further) == content(target)


def test_all_plugins_share_a_directory(trees: dict[str, Path], target: Path) -> None:
    for plugin, tree in trees.items():
        install(tree, target, plugin)
    for plugin in PLUGINS:
        assert run([target / "bin" / f"{plugin}-plugin", "--version"]).out.startswith(f"{plugin}-plugin ")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"\1")


def replaced(path: Path) -> None:
    path.unlink()
    path.mkdir()


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def unreadable(path: Path) -> None:
    path.chmod(0o200)


DAMAGES: list[Callable[[Path], None]] = [truncated, changed, replaced, linked, unreadable, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("part", [f"bin/{NAME}", f"lib/{NAME}/app/execcred/_run.py", f"lib/{NAME}/rt/ld.so"])
def test_a_damaged_copy_is_repaired(damage: Callable[[Path], None], part: str, tree: Path, target: Path) -> None:
    install(tree, target)
    (target / part).chmod(0o755)
    damage(target / part)
    assert install(tree, target) == f"{target}/bin/{NAME} installed\n"
    assert content(target / "lib") == content(tree / "lib")
    assert (target / "bin" / NAME).read_bytes() == (tree / "bin" / NAME).read_bytes()


def test_what_does_not_belong_to_the_tree_is_removed(tree: Path, target: Path) -> None:
    install(tree, target)
    (target / "lib" / NAME / "app" / "json.py").write_text("raise SystemExit('planted')")
    install(tree, target)
    assert content(target / "lib") == content(tree / "lib")


def test_another_architectures_copy_is_replaced(tree: Path, target: Path) -> None:
    image("secretreader").unpack("arm64" if HOST == "amd64" else "amd64", target)
    install(tree, target)
    assert content(target / "lib") == content(tree / "lib")


def test_four_at_once_end_well(tree: Path, target: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        lines = list(pool.map(lambda _: install(tree, target), range(4)))
    assert sorted(lines)[1:] == [f"{target}/bin/{NAME} is installed already\n"] * 3
    assert content(target / "lib") == content(tree / "lib")


@pytest.mark.parametrize("before", ["nothing", "another version"])
def test_a_killed_one_leaves_nothing_that_half_works(before: str, tree: Path, target: Path, tmp_path: Path) -> None:
    """Killed at 24 moments: the plugin is missing and says so, or works, and the next install ends well."""
    other = copied(tree, tmp_path / "other")
    (other / "lib" / NAME / "app" / "of_another_version.py").touch()
    launcher = target / "bin" / NAME
    started = time.monotonic()
    install(tree, target)
    whole = time.monotonic() - started
    in_time = 0
    for moment in range(24):
        shutil.rmtree(target)
        if before == "nothing":
            target.mkdir()
        else:
            copied(other, target)
        child = subprocess.Popen(
            [tree / "bin" / NAME, "install", target], env={}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(whole * moment / 20)
        child.send_signal(signal.SIGKILL)
        in_time += child.wait() == -signal.SIGKILL
        if launcher.exists():
            result = run([launcher, "--version"])
            assert result.status == 0 or (before, result.code) == ("another version", "tree-incomplete")
        if moment % 6 == 5:
            install(tree, target)
            assert content(target / "lib") == content(tree / "lib")
    assert in_time, "no kill came in time to test anything"


@pytest.mark.parametrize("before", ["nothing", "a good copy"])
def test_leftovers_of_a_killed_one_are_removed(before: str, tree: Path, target: Path) -> None:
    if before == "a good copy":
        install(tree, target)
    for leftover in (f"lib/.{NAME}.new/app", f"lib/.{NAME}.old/rt"):
        (target / leftover).mkdir(parents=True)
    (target / "bin").mkdir(exist_ok=True)
    (target / "bin" / f".{NAME}.new").write_text("half")
    install(tree, target)
    assert sorted(path.name for path in target.glob("*/*")) == [NAME, NAME]


def test_an_unprivileged_user_can_install_and_repair(tree: Path, target: Path, asking: tuple[str, ...]) -> None:
    """As uid 65532 on a pod's emptyDir, which is root's with mode 0777."""
    if os.geteuid():
        pytest.skip("only root can become another user; as one, every other test shows the same")
    for folder in (target, *target.parents, tree, *tree.parents):
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o777 if folder == target else folder.stat().st_mode | 0o055)
    for _ in range(2):
        done = run([tree / "bin" / NAME, "install", target], user=65532, group=65532, extra_groups=[])
        assert done == (0, f"{target}/bin/{NAME} installed\n", "")
        (target / "lib" / NAME / "app" / "execcred" / "_run.py").unlink()
    assert run([tree / "bin" / NAME, "install", target], user=65532, group=65532, extra_groups=[]).status == 0
    assert run([target / "bin" / NAME, *asking], user=65532, group=65532, extra_groups=[]).out == TOKEN + "\n"


def test_a_volume_mounted_noexec_is_refused(tree: Path, target: Path) -> None:
    command = in_namespace(
        'mount -t tmpfs -o noexec none "$1"; "$2" install "$1" || { test -z "$(ls "$1")"; exit 1; }',
        target, tree / "bin" / NAME,
    )  # fmt: skip
    assert run(command, PATHS).code == "install-noexec"


def test_a_volume_without_room_is_refused_and_left_empty(tree: Path, target: Path) -> None:
    command = in_namespace(
        'mount -t tmpfs -o size=8m none "$1"; "$2" install "$1" || { test -z "$(find "$1" -type f)" && exit 1; }',
        target, tree / "bin" / NAME,
    )  # fmt: skip
    result = run(command, PATHS)
    assert result.code == "install-no-space"
    assert "7 MiB left" in result.err or "8 MiB left" in result.err


@pytest.mark.parametrize(
    ("plugin", "told"),
    [("secretreader", "28 MiB for a Secret reader"), ("eks", "40 MiB for eks"), ("aks", "63 MiB for gke or aks")],
)
def test_a_volume_as_large_as_the_readme_says_has_room(
    plugin: str, told: str, trees: dict[str, Path], target: Path
) -> None:
    assert told in " ".join((ROOT / "images/README.md").read_text().split())
    script = f'mount -t tmpfs -o size={told.partition(" ")[0]}m none "$1"; "$2" install "$1"'
    command = in_namespace(script, target, trees[plugin] / f"bin/{plugin}-plugin")
    assert run(command, PATHS) == (0, f"{target}/bin/{plugin}-plugin installed\n", "")


def test_a_volume_without_a_limit_has_room(tree: Path, target: Path) -> None:
    command = in_namespace('mount -t tmpfs -o size=0 none "$1"; "$2" install "$1"', target, tree / "bin" / NAME)
    assert run(command, PATHS) == (0, f"{target}/bin/{NAME} installed\n", "")


def test_a_volume_that_fills_up_while_copying_is_left_without_the_plugin(tree: Path, target: Path) -> None:
    """Free inodes run out, which nobody counts beforehand."""
    command = in_namespace(
        'mount -t tmpfs -o size=90m,nr_inodes=50 none "$1";'
        '"$2" install "$1" || { test -z "$(find "$1" -type f)"; exit 1; }',
        target, tree / "bin" / NAME,
    )  # fmt: skip
    result = run(command, PATHS)
    assert result.code == "install-failed"
    assert "No space left on device" in result.err


@pytest.mark.parametrize("prepare", ["missing", "file", "lib is a file", "bin is a link", "read only", "the image"])
def test_a_directory_that_cannot_take_it_is_refused(prepare: str, tree: Path, target: Path, tmp_path: Path) -> None:
    start: list[str | Path] = [tree / "bin" / NAME, "install", target]
    if prepare == "missing":
        target.rmdir()
    elif prepare == "file":
        target.rmdir()
        target.touch()
    elif prepare == "lib is a file":
        (target / "lib").touch()
    elif prepare == "bin is a link":
        (target / "bin").symlink_to(tmp_path)
    elif prepare == "the image":
        start = [tree / "bin" / NAME, "install", tree]
    if prepare == "read only":
        start = [*in_namespace('mount --bind -o ro "$3" "$3"; exec "$@"', *start)]
    result = run(start, PATHS)
    assert result.status == 1
    assert result.code in ("install-impossible", "install-failed")


@pytest.mark.parametrize("words", [(), ("a", "b")])
def test_it_takes_one_directory(words: tuple[str, ...], tree: Path) -> None:
    result = run([tree / "bin" / NAME, "install", *words])
    assert (result.status, result.code) == (2, "usage")
