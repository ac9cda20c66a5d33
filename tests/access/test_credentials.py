"""One credential for all threads of a cluster: when the plugin runs again, for whom, and what metrics see of it."""

from __future__ import annotations

import copy
import logging
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from access.support import Counted, refused, spec, stamp
from execcred import ExecCredError, TryAgain
from execcred.access import prometheus_hook
from execcred.access._credentials import PAUSE, SHARED_LIMIT, Credentials, shared_credentials
from interop.cluster import until

if TYPE_CHECKING:
    from execcred.access._credentials import Observe

WORKERS = 16


def credentials(counted: Counted, observe: Observe | None = None) -> Credentials:
    return Credentials(spec(counted.command), 30, observe)


def tokens(each: Credentials, calls: int = WORKERS) -> Counter[str]:
    """Ask from many threads at once; return the tokens, or the errors' codes."""
    together = threading.Barrier(calls)

    def ask(_: int) -> str:
        together.wait(30)
        try:
            return each.get().token
        except ExecCredError as error:
            return error.code

    with ThreadPoolExecutor(calls) as pool:
        return Counter(pool.map(ask, range(calls)))


def pauses_since(started: float) -> int:
    """Return how often a pause has passed: 0, unless the machine is very busy."""
    return int((time.monotonic() - started) / PAUSE)


def test_many_threads_share_one_run(tmp_path: Path) -> None:
    counted = Counted(tmp_path, "sleep 0.3")
    counted.says(token="one")
    shared = credentials(counted)
    assert tokens(shared) == {"one": WORKERS}
    assert tokens(shared) == {"one": WORKERS}
    assert counted.runs == 1


def test_at_its_end_the_credential_is_renewed_by_one_run_for_all(tmp_path: Path) -> None:
    counted = Counted(tmp_path, "sleep 0.2")
    counted.says(token="one", expirationTimestamp=stamp(seconds=10))
    shared = credentials(counted)
    first = shared.get()
    assert first.expires
    counted.says(token="two", expirationTimestamp=stamp(hours=1))
    assert tokens(shared) == {"one": WORKERS}
    until("the end", lambda: time.time() >= (first.expires or 0))
    assert tokens(shared) == {"two": WORKERS}
    assert counted.runs == 2


def test_without_an_end_a_credential_is_kept(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    counted.says(token="one")
    shared = credentials(counted)
    assert {shared.get().token for _ in range(5)} == {"one"}
    assert counted.runs == 1


def test_a_failure_is_told_to_all_that_wait_and_not_repeated_at_once(tmp_path: Path) -> None:
    counted = Counted(tmp_path, "sleep 0.3", "exit 3")
    counted.says(token="one")
    shared = credentials(counted)
    started = time.monotonic()
    assert tokens(shared) == {"plugin-failed": WORKERS}
    assert isinstance(refused(shared.get), TryAgain)
    runs = counted.runs
    assert runs <= 1 + pauses_since(started)
    time.sleep(PAUSE)
    refused(shared.get)
    assert counted.runs == runs + 1


def test_each_caller_has_an_error_of_its_own_with_what_the_plugin_said(tmp_path: Path) -> None:
    shared = credentials(Counted(tmp_path, "echo why >&2", "exit 4"))
    first, second = refused(shared.get), refused(shared.get)
    assert first is not second
    assert (type(first), first.message, first.hint) == (type(second), second.message, second.hint)
    assert [note.splitlines()[1] for note in (*first.__notes__, *second.__notes__)] == ["why", "why"]


def test_after_a_failure_the_next_run_may_succeed(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    shared = credentials(counted)
    assert refused(shared.get).code == "plugin-failed"  # there is no answer yet
    counted.says(token="one")
    time.sleep(PAUSE)
    assert shared.get().token == "one"


# --- 401 ---


def test_a_401_ends_the_credential_for_all_with_one_run(tmp_path: Path) -> None:
    counted = Counted(tmp_path, "sleep 0.2")
    counted.says(token="one")
    shared = credentials(counted)
    shared.get()
    time.sleep(PAUSE)
    counted.says(token="two")
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda _: shared.refuse(), range(100)))
    assert tokens(shared) == {"two": WORKERS}
    assert counted.runs == 2


def test_a_401_for_a_credential_that_is_renewed_already_counts_for_nothing(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    counted.says(token="one")
    shared = credentials(counted)
    late, go = threading.Event(), threading.Event()

    def slow() -> None:
        """Use the first credential, and get a 401 when another thread has the second."""
        shared.get()
        late.set()
        go.wait(30)
        shared.refuse()

    thread = threading.Thread(target=slow)
    thread.start()
    assert late.wait(30)
    counted.says(token="two")
    time.sleep(PAUSE)
    shared.get()
    shared.refuse()
    assert shared.get().token == "two"
    time.sleep(PAUSE)
    go.set()
    thread.join()
    shared.get()
    assert counted.runs == 2


def test_a_cluster_that_refuses_every_credential_makes_no_storm(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    counted.says(token="one")
    shared = credentials(counted)
    started = time.monotonic()
    for _ in range(50):
        shared.get()
        shared.refuse()
    assert counted.runs <= 1 + pauses_since(started)


@pytest.mark.parametrize("before", [True, False])
def test_a_401_without_a_credential_counts_for_nothing(tmp_path: Path, before: bool) -> None:
    counted = Counted(tmp_path)
    shared = credentials(counted)
    if not before:
        refused(shared.get)
    shared.refuse()
    counted.says(token="one")
    time.sleep(PAUSE)
    assert shared.get().token == "one"


# --- sharing ---


def test_equal_specs_share_a_credential_and_copies_are_the_same(tmp_path: Path) -> None:
    run = spec(str(tmp_path))
    one = shared_credentials(run, 5, None)
    assert shared_credentials(spec(str(tmp_path)), 5, None) is one
    assert copy.deepcopy(one) is one
    assert shared_credentials(run, 6, None) is not one
    assert shared_credentials(run, 5, print) is not one


def test_the_credential_that_was_not_asked_for_longest_goes_when_there_are_too_many(tmp_path: Path) -> None:
    run = spec(str(tmp_path))
    kept, lost = shared_credentials(run, 0, None), shared_credentials(run, -1, None)
    for number in range(1, SHARED_LIMIT):
        shared_credentials(run, number, None)
        assert shared_credentials(run, 0, None) is kept
    assert shared_credentials(run, -1, None) is not lost


# --- interruption ---

INTERRUPTED = """
import os, signal, sys, threading, time
from execcred.access import Cluster, ExecSpec
from execcred.access._credentials import Credentials

shared = Credentials(ExecSpec("p", "client.authentication.k8s.io/v1", sys.argv[1], Cluster("https://x")), 60, None)

def wait():
    while not os.path.exists(sys.argv[1] + ".pid"):  # the other thread's run has begun
        time.sleep(0.01)
    main = threading.main_thread().ident
    threading.Timer(1, signal.pthread_kill, [main, signal.SIGALRM]).start()  # when this one waits for it
    try:
        shared.get()
    except Exception as error:
        os.write(1, f"{type(error).__name__} {error.code}\\n".encode())  # at once: both threads speak

signal.signal(signal.SIGALRM, signal.default_int_handler)
thread = threading.Thread(target=wait)
thread.start()
try:
    shared.get()
except KeyboardInterrupt:
    os.write(1, b"interrupted\\n")
thread.join()
"""


def test_who_waits_for_a_run_that_is_interrupted_is_told_so(tmp_path: Path) -> None:
    counted = Counted(tmp_path, "echo $$ >>$0.pid", "while :; do sleep 0.05; done")
    command = [sys.executable, "-c", INTERRUPTED, counted.command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert sorted(done.stdout.splitlines()) == ["TryAgain interrupted", "interrupted"], done.stderr
    pid = Path(f"{counted.command}.pid").read_text().split()[0]
    until("the plugin is gone", lambda: not Path(f"/proc/{pid}").exists())


FORKED = """
import os, signal, sys, threading, time
from execcred.access import Cluster, ExecSpec
from execcred.access._credentials import shared_credentials

spec = ExecSpec("p", "client.authentication.k8s.io/v1", sys.argv[1], Cluster("https://x"))
thread = threading.Thread(target=lambda: shared_credentials(spec, 60, None).get())
thread.start()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
child = os.fork()
if not child:
    signal.alarm(60)
    open(sys.argv[3], "w").close()  # from now on a run ends
    os.write(1, shared_credentials(spec, 60, None).get().token.encode())
    os._exit(0)
os.waitpid(child, 0)
thread.join()
"""


def test_a_forked_child_waits_for_no_thread_of_its_parent(tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    counted = Counted(tmp_path, f"touch {begun}", f"until [ -e {go} ]; do sleep 0.05; done")
    counted.says(token="one")
    command = [sys.executable, "-W", "ignore", "-c", FORKED, counted.command, str(begun), str(go)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert [done.stdout, counted.runs] == ["one", 2], done.stderr


# --- metrics ---


def test_each_run_is_told_to_the_hook_once(tmp_path: Path) -> None:
    seen: list[tuple[str, str, float]] = []
    counted = Counted(tmp_path)
    shared = credentials(counted, lambda *told: seen.append(told))
    refused(shared.get)
    counted.says(token="one")
    time.sleep(PAUSE)
    tokens(shared)
    assert [told[:2] for told in seen] == [("reader", "plugin-failed"), ("reader", "success")]
    assert all(0 < told[2] < 30 for told in seen)


def test_a_hook_that_fails_costs_nothing_but_a_line_of_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    counted = Counted(tmp_path)
    counted.says(token="hush")
    with caplog.at_level(logging.ERROR):
        assert credentials(counted, broken).get().token == "hush"
    assert "the hook for metrics failed" in caplog.text
    assert "hush" not in caplog.text


def test_prometheus_shows_how_many_by_outcome_and_how_long(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    counted = Counted(tmp_path)
    shared = credentials(counted, prometheus_hook(registry))
    refused(shared.get)
    counted.says(token="hush")
    time.sleep(PAUSE)
    shared.get()
    text = generate_latest(registry).decode()
    assert 'clusterprofile_credentials_total{outcome="plugin-failed",provider="reader"} 1.0' in text
    assert 'clusterprofile_credentials_total{outcome="success",provider="reader"} 1.0' in text
    assert 'clusterprofile_credential_seconds_count{provider="reader"} 2.0' in text
    assert "hush" not in text
