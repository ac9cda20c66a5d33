"""The archives: same bytes anywhere, any Python >= 3.11, nothing writable; the SDK unpacks safely or says why not."""

from __future__ import annotations

import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from needs import absent
from packages.built import (
    HOST,
    NEW,
    OLD,
    PATHS,
    PLUGINS,
    READERS,
    ROOT,
    TOKEN,
    Result,
    archive,
    in_namespace,
    run,
    sources,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS = "[prod]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = a-secret-key\n"
WITHOUT_SDK = ("--cluster-name", "c1", "--region", "eu-west-1", "--output", "token")
# A named profile makes the plugin import botocore. Eight unpack at once on a busy machine: the deadline is no subject.
WITH_SDK = (*WITHOUT_SDK, "--profile", "prod", "--timeout", "60")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_two_builds_are_the_same_file(plugin: str, tmp_path: Path) -> None:
    """Built from a copy in another folder, with other times, another umask, locale, zone and hash seed."""
    builder = sources(tmp_path / "elsewhere") / "images/zipapp.py"
    settings = {"DIST": str(tmp_path / "dist"), "PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    variables = {**os.environ, **settings}
    done = run([sys.executable, builder, plugin], variables, umask=0o077)
    assert done.status == 0, done.err
    [built] = (tmp_path / "dist").iterdir()
    assert built.name == archive(plugin).name
    assert built.read_bytes() == archive(plugin).read_bytes(), "rebuild dist with: make zipapps"


@pytest.mark.parametrize(("asked", "found"), [("1700000000", (2023, 11, 14, 22, 13, 20)), ("0", (1980, 1, 1, 0, 0, 0))])
def test_the_time_in_an_archive_can_be_chosen_as_far_as_zip_knows_it(
    asked: str, found: tuple[int, ...], tmp_path: Path
) -> None:
    variables = {**os.environ, "DIST": str(tmp_path), "SOURCE_DATE_EPOCH": asked}
    done = run([sys.executable, ROOT / "images/zipapp.py", "secretreader"], variables)
    assert done.status == 0, done.err
    with zipfile.ZipFile(tmp_path / "secretreader-plugin.pyz") as file:
        assert {info.date_time for info in file.infolist()} == {found}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_an_archive_holds_no_path_of_the_machine_that_built_it(plugin: str) -> None:
    with zipfile.ZipFile(archive(plugin)) as file:
        for name in file.namelist():
            assert str(ROOT).encode() not in file.read(name)
            assert str(Path.home()).encode() + b"/" not in file.read(name)
        assert "LICENSE" in file.namelist()


@pytest.mark.parametrize("plugin", PLUGINS)
def test_an_archive_is_executable_in_an_empty_environment(plugin: str) -> None:
    if (3, 11) not in NEW or not Path("/usr/bin/python3").exists():
        absent("the system's python3 is needed")
    result = run([archive(plugin), "--version"], {"PATH": f"{Path(NEW[3, 11]).parent}:/usr/bin"})
    assert result == (0, result.out, "")
    assert result.out.startswith(f"{plugin}-plugin ")


@pytest.mark.parametrize("python", NEW.values(), ids=[".".join(map(str, each)) for each in NEW])
def test_a_reader_answers_on_python(python: str, asking: tuple[str, ...]) -> None:
    for flags in (["-I", "-S"], ["-I"], []):
        assert run([python, *flags, archive("secretreader"), *asking]) == (0, TOKEN + "\n", "")


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("version", OLD, ids=lambda version: ".".join(map(str, version)))
def test_an_old_python_gets_one_line(version: tuple[int, ...], plugin: str, tmp_path: Path) -> None:
    """Also where it is the python3 that the archive's first line finds."""
    (tmp_path / "python3").symlink_to(OLD[version])
    starts: list[list[str | Path]] = [[OLD[version], archive(plugin)]]
    if version >= (3, 4):  # whose -I the first line needs
        starts.append([archive(plugin)])
    for start in starts:
        result = run(start, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
        assert (result.status, result.code) == (1, "python-too-old")


def test_an_old_python_was_found() -> None:
    if not OLD:
        pytest.skip("no Python older than 3.11 is here to try")


@pytest.mark.parametrize("plugin", ["gke", "aks"])
def test_machine_code_for_another_python_is_refused_at_once(plugin: str) -> None:
    others = [path for version, path in NEW.items() if version != (3, 11)]
    if not others:
        pytest.skip("no Python newer than 3.11 is here to try")
    result = run([others[0], archive(plugin), "--version"])
    assert (result.status, result.code) == (1, "wrong-platform")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_an_archive_says_that_it_cannot_install(plugin: str, tmp_path: Path) -> None:
    result = run([NEW[3, 11], "-I", "-S", archive(plugin), "install", tmp_path])
    assert (result.status, result.code) == (2, "install-impossible")


@pytest.mark.parametrize("plugin", READERS)
def test_a_reader_is_pure_python_and_small(plugin: str) -> None:
    with zipfile.ZipFile(archive(plugin)) as file:
        assert not [
            name for name in file.namelist() if not name.endswith((".py", ".pyc", "py.typed", "LICENSE", "METADATA"))
        ]
    assert archive(plugin).stat().st_size < 600_000


# --- unpacking, shown with eks: the archive of any Python ---


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home/.aws").mkdir(parents=True)
    (tmp_path / "home/.aws/credentials").write_text(KEYS)
    return tmp_path / "home"


def ask(home: Path, variables: Mapping[str, str] | None = None, arguments: tuple[str, ...] = WITH_SDK) -> Result:
    where = (
        {"HOME": str(home)}
        if variables is None
        else {"AWS_SHARED_CREDENTIALS_FILE": f"{home}/.aws/credentials", **variables}
    )
    return run([NEW[3, 11], "-I", "-S", archive("eks"), *arguments], {"AWS_EC2_METADATA_DISABLED": "true", **where})


def is_token(result: Result) -> bool:
    return result.status == 0 and result.out.startswith("k8s-aws-v1.") and not result.err


def test_the_sdk_is_unpacked_once_and_privately(home: Path) -> None:
    assert is_token(ask(home))
    [folder] = [path for path in (home / ".cache/execcred").iterdir() if path.is_dir()]
    for path in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    before = {path: path.stat().st_ctime_ns for path in home.rglob("*")}
    assert is_token(ask(home))
    assert {path: path.stat().st_ctime_ns for path in home.rglob("*")} == before


def test_where_it_unpacks_can_be_chosen(home: Path, tmp_path: Path) -> None:
    for name, below in (("EXECCRED_UNPACK_DIR", ""), ("XDG_CACHE_HOME", "execcred/")):
        assert is_token(ask(home, {name: str(tmp_path / name), "HOME": "/nonexistent"}))
        assert list((tmp_path / name).glob(f"{below}eks-*/botocore/session.py"))


def test_what_needs_no_sdk_needs_no_directory(home: Path) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a-secret-key"}
    assert is_token(ask(home, keys, WITHOUT_SDK))
    assert ask(home, {}, ("--help",)).status == 0
    assert ask(home, {}, ("--nonsense",)).code == "usage"


NOWHERE = [
    {},
    {"HOME": "/proc"},
    {"HOME": "relative"},
    {"HOME": "/"},
    {"EXECCRED_UNPACK_DIR": "/proc/x"},
    {"EXECCRED_UNPACK_DIR": "relative"},
]


@pytest.mark.parametrize("variables", NOWHERE, ids=str)
def test_without_a_writable_directory_it_says_so(variables: dict[str, str], home: Path) -> None:
    if variables == {"HOME": "/"}:
        command = in_namespace('mount -o remount,bind,ro /; exec "$@"', NEW[3, 11], archive("eks"), *WITH_SDK)
        result = run(command, {**PATHS, **variables, "AWS_SHARED_CREDENTIALS_FILE": f"{home}/.aws/credentials"})
    else:
        result = ask(home, variables)
    assert (result.status, result.code) == (1, "unpack-failed")
    assert "EXECCRED_UNPACK_DIR" in result.err.splitlines()[1]


def test_eight_first_runs_at_once_all_answer(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: is_token(ask(home)), range(8)))
    names = sorted(path.name for path in (home / ".cache/execcred").iterdir())
    assert len(names) == 2, names  # the SDK and its lock
    assert names[1] == f"{names[0]}.lock"


def test_a_killed_first_run_leaves_nothing_that_half_works(home: Path) -> None:
    kills = 0
    for moment in range(10):
        child = subprocess.Popen(
            [NEW[3, 11], "-I", "-S", archive("eks"), *WITH_SDK], env={"HOME": str(home)}, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while not list(home.glob(".cache/execcred/*.new/*")) and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.001)
        time.sleep(0.01 * moment)
        child.send_signal(signal.SIGKILL)
        kills += child.wait() == -signal.SIGKILL
        if moment % 3 == 0:
            assert is_token(ask(home))
            assert not list(home.glob(".cache/execcred/*.new"))
            shutil.rmtree(home / ".cache")
    assert kills, "no kill came in time to test anything"


def test_runs_that_the_deadline_ends_still_get_on(home: Path) -> None:
    """On a disk too slow for one run: what is whole stays as it is, what is cut off is written again."""
    (folder,) = (path for path in unpacked(home).parent.iterdir() if path.is_dir())
    half = folder.rename(f"{folder}.new")
    files = sorted(path for path in half.rglob("*") if path.is_file())
    for path in files[len(files) // 2 :]:
        path.unlink()
    cut, spoiled, *whole = files[: len(files) // 2]
    cut.write_bytes(cut.read_bytes()[:-1])
    spoiled.write_bytes(bytes(len(spoiled.read_bytes())))
    before = {path.relative_to(half): path.stat().st_mtime_ns for path in whole}
    assert is_token(ask(home))
    assert {name: (folder / name).stat().st_mtime_ns for name in before} == before
    with zipfile.ZipFile(archive("eks")) as outer, zipfile.ZipFile(io.BytesIO(outer.read("sdk.zip"))) as sdk:
        for name in sdk.namelist():
            assert (folder / name).read_bytes() == sdk.read(name), name


def unpacked(home: Path) -> Path:
    assert is_token(ask(home))
    [folder] = [path for path in (home / ".cache/execcred").iterdir() if path.is_dir()]
    return folder


@pytest.mark.parametrize("change", ["owner", "mode", "link", "file"])
def test_a_directory_that_another_could_have_filled_is_refused(change: str, home: Path, tmp_path: Path) -> None:
    folder = unpacked(home)
    if change == "owner":
        if os.geteuid():
            pytest.skip("only root can give a directory away")
        os.chown(folder, 12345, 12345)
    elif change == "mode":
        folder.chmod(0o770)
    else:
        folder.rename(tmp_path / "elsewhere")
        if change == "link":
            folder.symlink_to(tmp_path / "elsewhere")
        else:
            folder.touch(0o700)
    result = ask(home)
    assert (result.status, result.code) == (1, "unpack-refused")


@pytest.mark.parametrize("change", ["owner", "link"])
def test_a_directory_around_it_that_another_could_exchange_is_refused(change: str, home: Path, tmp_path: Path) -> None:
    """As one in /tmp that somebody else made first: what lies there can be renamed after any check."""
    if os.geteuid():
        pytest.skip("only root can give a directory away")
    base = unpacked(home).parent
    if change == "link":
        base.rename(tmp_path / "elsewhere")
        base.symlink_to(tmp_path / "elsewhere")
        assert is_token(ask(home))
    os.chown(base, 12345, 12345, follow_symlinks=False)
    result = ask(home)
    assert (result.status, result.code) == (1, "unpack-refused")


def test_a_full_disk_is_named_and_left_clean(home: Path, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    command = in_namespace(
        'mount -t tmpfs -o size=1m none "$1"; dir="$1"; shift; "$@" || { test ! -e "$dir"/*.new; exit 1; }',
        tmp_path / "small", NEW[3, 11], "-I", "-S", archive("eks"), *WITH_SDK,
    )  # fmt: skip
    variables = {**PATHS, "HOME": str(home), "EXECCRED_UNPACK_DIR": str(tmp_path / "small")}
    result = run(command, variables)
    assert (result.status, result.code) == (1, "unpack-failed")
    assert "No space left on device" in result.err


def test_a_noexec_volume_is_named_when_there_is_machine_code(tmp_path: Path) -> None:
    key = tmp_path / "token"
    key.write_text("x")
    command = in_namespace(
        'mount -t tmpfs -o noexec none "$1"; shift; exec "$@"',
        tmp_path, NEW[3, 11], "-I", "-S", archive("aks"), "--login", "azurecli", "--server-id", "s",
    )  # fmt: skip
    result = run(command, {**PATHS, "EXECCRED_UNPACK_DIR": str(tmp_path)})
    assert (result.status, result.code) == (1, "unpack-failed")
    assert "noexec" in result.err


def test_an_archive_that_lost_its_sdk_is_named(home: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pyz"
    with zipfile.ZipFile(archive("eks")) as whole, zipfile.ZipFile(broken, "w") as part:
        for name in whole.namelist():
            if name != "sdk.zip":
                part.writestr(name, whole.read(name))
    result = run([NEW[3, 11], "-I", "-S", broken, *WITH_SDK], {"HOME": str(home)})
    assert (result.status, result.code) == (1, "unpack-failed")


def test_this_machine_has_the_python_that_the_archives_are_for() -> None:
    if (3, 11) not in NEW:
        absent(f"Python 3.11 for {HOST} is needed")
