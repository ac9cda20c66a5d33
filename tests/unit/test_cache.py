"""The cache of cloud credentials: private, atomic, shared between processes, and never a reason to fail."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from execcred import Env
from execcred._arguments import CommandLine
from execcred._cache import CACHE_SETTINGS, cached
from execcred._protocol import parse_request
from execcred._settings import resolve

if TYPE_CHECKING:
    from pathlib import Path

    from execcred._cache import Entry

INPUTS = {"role": "reader", "account": "1"}
FETCH_SLOWLY = """
import json, os, sys, time
from execcred import Env
from execcred._cache import CACHE_SETTINGS, cached
from execcred._protocol import parse_request
from execcred._arguments import CommandLine
from execcred._settings import resolve
folder, log, pause, server = sys.argv[1:]
line = CommandLine(); line.admin["cache-dir"] = folder
settings = resolve(CACHE_SETTINGS, line, {}, {})
env = Env({}); env.start(60, False)
def fetch():
    os.close(os.open(f"{log}/{os.getpid()}", os.O_CREAT))
    time.sleep(float(pause))
    return {"token": "t" * 5000}, time.time() + 3600
info = json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "spec": {"cluster": {"server": server}}})
print(cached(parse_request(info), settings, env, {"role": "reader"}, fetch)[0]["token"])
"""


class World(Env):
    """A world whose clock the test turns; `fetched` counts the fetches."""

    def __init__(self, folder: Path | str) -> None:
        super().__init__({})
        self.start(60, False)
        self.clock = 1_800_000_000.0
        self.debugged: list[str] = []
        self.fetched = 0
        self.lifetime: float | None = 3600.0
        line = CommandLine()
        if folder:
            line.admin["cache-dir"] = str(folder)
        self.settings = resolve(CACHE_SETTINGS, line, {}, {})

    def now(self) -> float:
        return self.clock

    def debug(self, text: str) -> None:
        self.debugged.append(text)

    def ask(
        self, server: str = "https://a", inputs: dict[str, str] | None = None, seconds: float = 1e9, target: str = ""
    ) -> str:
        """Ask for a credential; the answer tells the number of the fetch that it came from."""
        info = {"apiVersion": "client.authentication.k8s.io/v1", "spec": {"cluster": {"server": server}}}

        def fetch() -> Entry:
            self.fetched += 1
            return {"token": f"secret-{self.fetched}"}, None if self.lifetime is None else self.clock + self.lifetime

        request = parse_request(json.dumps(info))
        value, _ = cached(request, self.settings, self, inputs or INPUTS, fetch, answer_seconds=seconds, target=target)
        return value["token"]


def entry_of(folder: Path) -> Path:
    (found,) = folder.glob("*.json")
    return found


def test_without_a_directory_nothing_is_kept() -> None:
    world = World("")
    assert [world.ask(), world.ask()] == ["secret-1", "secret-2"]


def test_another_server_hits(tmp_path: Path) -> None:
    world = World(tmp_path / "c")
    assert [world.ask(f"https://{name}") for name in "abc"] == ["secret-1"] * 3


def test_a_repeat_by_the_same_parent_for_the_same_server_fetches_anew_and_serves_the_others(tmp_path: Path) -> None:
    world = World(tmp_path / "c")
    answers = [world.ask(f"https://{name}") for name in ("a", "b", "a", "b", "c")]
    # b has not been answered with the second one, so it is served that.
    assert answers == ["secret-1", "secret-1", "secret-2", "secret-2", "secret-2"]


@pytest.mark.parametrize(("seconds", "after", "fetches"), [(900, 839, 2), (900, 841, 1), (1e9, 841, 2)])
def test_a_repeat_after_the_answers_announced_end_is_no_refusal(
    tmp_path: Path, seconds: float, after: float, fetches: int
) -> None:
    world = World(tmp_path / "c")
    world.ask(seconds=seconds)
    world.clock += after
    world.ask(seconds=seconds)
    assert world.fetched == fetches


def test_an_entry_is_used_until_a_minute_before_its_end(tmp_path: Path) -> None:
    for left, fetches in ((61, 1), (60, 2), (0, 2), (-1, 2)):
        world = World(tmp_path / f"c{left}")
        world.ask("https://a")
        world.clock += 3600 - left
        world.ask("https://b")
        assert (left, world.fetched) == (left, fetches)


def test_what_has_no_end_is_not_kept(tmp_path: Path) -> None:
    world = World(tmp_path / "c")
    world.lifetime = None
    assert [world.ask("https://a"), world.ask("https://b")] == ["secret-1", "secret-2"]
    assert list((tmp_path / "c").glob("*.json")) == []


def test_every_input_and_its_name_count(tmp_path: Path) -> None:
    world = World(tmp_path / "c")
    inputs = [INPUTS, {**INPUTS, "account": "2"}, {"role": "1", "account": "reader"}, {"role": "reader"}, {}]
    for number, each in enumerate(inputs):
        assert world.ask(f"https://{number}", each or {"x": ""}) == f"secret-{number + 1}"
    assert world.ask("https://z", dict(reversed(INPUTS.items()))) == "secret-1"


def test_a_target_tells_clusters_apart_where_the_client_names_no_server(tmp_path: Path) -> None:
    world = World(tmp_path / "c")
    assert [world.ask("", target=name) for name in ("a", "b", "a")] == ["secret-1", "secret-1", "secret-2"]


def test_directory_and_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        World(tmp_path / "c").ask()
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700
    files = list((tmp_path / "c").iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[1, 2]",
        b"[" * 100000,
        b'{"value": {"token": "bad"}}',
        b'{"value": {"token": "bad"}, "expires": null}',
        b'{"value": {"token": "bad"}, "expires": "soon"}',
        b'{"value": {"token": "bad"}, "expires": NaN}',
        b'{"value": {"token": 5}, "expires": 9e9}',
        b'{"value": {"token": "bad"}, "expires": Infinity}',
        b'{"value": {"token": "bad"}, "expires": 1' + b"0" * 400 + b"}",
        b'{"value": {}, "expires": 9e9}',
        b'{"value": {"another": "bad"}, "expires": 9e9}',
        b'{"value": "bad", "expires": 9e9}',
        b'{"value": ["bad"], "expires": 9e9}',
    ],
)
def test_a_bad_entry_is_a_miss_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    world = World(tmp_path / "c")
    world.ask("https://a")
    entry_of(tmp_path / "c").write_bytes(content)
    assert world.ask("https://b") == "secret-2"
    assert world.ask("https://c") == "secret-2"


@pytest.mark.parametrize("content", [b"x", b"0123456789abcdef", b"\xff 5\n", b"a b c\n\n"])
def test_a_bad_note_of_who_asked_does_not_last(tmp_path: Path, content: bytes) -> None:
    world = World(tmp_path / "c")
    world.ask("https://a")
    (seen,) = (tmp_path / "c").glob("*.seen")
    seen.write_bytes(content)
    assert world.ask("https://b") in ("secret-1", "secret-2")
    before = world.fetched
    world.ask("https://c")
    assert world.fetched == before


@pytest.mark.parametrize("suffix", [".json", ".seen", ".lock"])
def test_a_file_that_others_could_read_is_not_used(tmp_path: Path, suffix: str) -> None:
    world = World(tmp_path / "c")
    world.ask("https://a")
    (file,) = (tmp_path / "c").glob(f"*{suffix}")
    file.chmod(0o644)
    world.ask("https://b")
    assert world.fetched == (1 if suffix == ".lock" else 2)
    world.ask("https://c")
    assert world.fetched == (1 if suffix == ".lock" else 2)


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    world = World(tmp_path / "c")
    world.ask("https://a")
    entry = entry_of(tmp_path / "c")
    victim = tmp_path / "victim"
    entry.rename(victim)
    entry.symlink_to(victim)
    text = victim.read_text()
    assert world.ask("https://b") == "secret-2"
    assert victim.read_text() == text


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_directory_that_others_can_enter_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    folder.chmod(mode)
    world = World(folder)
    assert [world.ask(), world.ask("https://b")] == ["secret-1", "secret-2"]
    assert list(folder.iterdir()) == []
    assert "the cache is not used: " in world.debugged[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65532, 65532)
    assert [World(folder).ask(), World(folder).ask("https://b")] == ["secret-1", "secret-1"]
    assert list(folder.iterdir()) == []


def test_a_place_where_no_directory_can_be_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file/below", "/proc/none/below"):
        assert World(folder).ask() == "secret-1"


def test_nothing_that_is_said_holds_a_secret(tmp_path: Path) -> None:
    world = World(tmp_path / "c")
    for server in ("a", "a", "b"):
        world.ask(f"https://{server}")
    entry_of(tmp_path / "c").write_text("secret")
    world.ask("https://d")
    assert world.debugged
    assert "secret" not in "".join(world.debugged)


def start(folder: Path, log: Path, pause: float, server: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCH_SLOWLY, str(folder), str(log), str(pause), server]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_of_many_at_once_one_fetches(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    children = [start(tmp_path / "c", log, 0.3, f"https://{number}") for number in range(12)]
    for child in children:
        assert child.communicate()[0] == "t" * 5000 + "\n"
    assert len(list(log.iterdir())) == 1


def test_a_killed_fetcher_leaves_no_lock_behind(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    first = start(tmp_path / "c", log, 60, "https://a")
    while not list(log.iterdir()):
        time.sleep(0.01)
    second = start(tmp_path / "c", log, 0, "https://b")
    first.send_signal(signal.SIGKILL)
    assert second.communicate()[0] == "t" * 5000 + "\n"
    assert first.wait() == -signal.SIGKILL
    first.communicate()


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    world = World(tmp_path / "c")
    world.ask("https://a")
    entry = entry_of(tmp_path / "c")
    left = entry.with_name(entry.name.replace(".json", ".0123.tmp"))
    left.write_text("half")
    world.ask("https://a")
    assert not left.exists()


def test_a_lock_that_is_held_too_long_is_gone_without(tmp_path: Path) -> None:
    import fcntl

    world = World(tmp_path / "c")
    world.ask("https://a")
    (lock,) = (tmp_path / "c").glob("*.lock")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        world.start(0.4, False)
        entry_of(tmp_path / "c").unlink()
        assert world.ask("https://b") == "secret-2"
    assert any("going on without" in text for text in world.debugged), world.debugged
