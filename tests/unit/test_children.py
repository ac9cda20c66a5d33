"""Children of SDKs: a session of their own, no variable of ours, no stderr, ended with us and with all they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unit.support import variables_for

if TYPE_CHECKING:
    from collections.abc import Mapping

PLUGIN = """
from __future__ import annotations
import os, subprocess, sys, threading, time
from execcred import Credential, Plugin, run

def credential(request, settings, env):
    env.tame("http://metadata.test:80/x", "10.9.8.7")
    CODE

main = run(Plugin("test", "A test.", (), credential))
main()
"""


def run_plugin(code: str, folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """Run a plugin whose function does `code` in a process of its own, and return "status | stdout | stderr"."""
    script = folder / "plugin.py"
    script.write_text(PLUGIN.replace("CODE", textwrap.indent(textwrap.dedent(code), "    ").strip()))
    command = [sys.executable, str(script), *arguments]
    environment = variables_for({"PATH": os.environ["PATH"], **(variables or {})})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return f"{done.returncode} | {done.stdout.strip()} | {done.stderr.strip()}"


def answered(token: str) -> str:
    """Return what a run that answers with `token` leaves."""
    status = f'{{"token":"{token}"}}'
    answer = '{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":' + status + "}"
    return f"0 | {answer} | "


def gone(process: int) -> bool:
    """Tell whether a process has ended, within half a minute; a zombie has."""
    for _ in range(600):
        try:
            if b") Z " in Path(f"/proc/{process}/stat").read_bytes():
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_a_child_has_a_session_of_its_own_and_nothing_to_read(tmp_path: Path) -> None:
    code = """
    child = [sys.executable, "-c", "import os, sys; print(os.getsid(0) == os.getpid(), len(sys.stdin.read()))"]
    return Credential(subprocess.check_output(child, text=True).strip().replace(" ", "-"))
    """
    assert run_plugin(code, tmp_path) == answered("True-0")


def test_a_child_inherits_no_variable_of_ours(tmp_path: Path) -> None:
    code = """
    script = "import os; print(*sorted(os.environ), sep=',')"
    everything = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
    given = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={"PYTHONPATH": "x", "B": ""}
    ).stdout
    names = [name for name in f"{everything.strip()},{given.strip()}".split(",") if not name.startswith("COVERAGE")]
    return Credential(",".join(names))
    """
    variables = {
        "KUBERNETES_EXEC_INFO": "{}",
        "PYTHONVERBOSE": "",
        "LD_LIBRARY_PATH": "/nowhere",
        "DYLD_INSERT_LIBRARIES": "x",
        "OPENSSL_CONF": "/dev/null",
        "LC_ALL": "C.UTF-8",
        "A": "1",
        "EMPTY": "",  # counts as unset
    }
    assert run_plugin(code, tmp_path, variables=variables) == answered("A,LC_ALL,NO_PROXY,PATH,no_proxy,B,LC_CTYPE")


def test_what_a_child_says_on_stderr_goes_nowhere_and_on_stdout_not_into_the_answer(tmp_path: Path) -> None:
    code = """
    subprocess.run([sys.executable, "-c", "import sys; print('noise'); print('hunter2', file=sys.stderr)"])
    os.write(1, b"more noise")
    print("and more", flush=True)
    return Credential("t")
    """
    assert run_plugin(code, tmp_path) == answered("t") + "noise\nmore noiseand more"


def test_a_child_may_have_its_streams_piped(tmp_path: Path) -> None:
    code = """
    script = "import sys; text = input(); print(text); print(text, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], input="t", text=True, capture_output=True)
    return Credential((done.stdout + done.stderr).replace(chr(10), "-"))
    """
    assert run_plugin(code, tmp_path) == answered("t-t-")


@pytest.mark.parametrize(
    ("given", "exempt"),
    [
        ({}, "169.254.169.254"),
        ({"NO_PROXY": "a.test"}, "a.test,169.254.169.254"),
        ({"no_proxy": "b.test", "NO_PROXY": "a.test"}, "b.test,169.254.169.254"),
    ],
)
def test_metadata_servers_are_never_asked_through_a_proxy(given: dict[str, str], exempt: str, tmp_path: Path) -> None:
    code = 'return Credential(os.environ["NO_PROXY"] + ";" + os.environ["no_proxy"])'
    found = run_plugin(code, tmp_path, variables=given)
    token = found.partition('"token":"')[2].partition('"')[0]
    upper, lower = token.split(";")
    assert upper == lower
    assert upper.startswith(exempt)
    assert upper.endswith(",metadata.test:80,10.9.8.7")


def test_who_proxies_nothing_keeps_it_so(tmp_path: Path) -> None:
    code = 'return Credential(os.environ["NO_PROXY"])'
    assert run_plugin(code, tmp_path, variables={"NO_PROXY": "*"}) == answered("*")


STUCK = """
child = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
open(sys.argv[0] + ".pids", "w").write(f"{child.pid} {child.stdout.readline()}")
env.doing("waiting for a child that never answers")
child.wait()
"""
# As `az` is: a script that waits for a program.
WRAPPED = """
script = 'echo $$ > "$0.part"; sleep 60 & echo $! >> "$0.part"; mv "$0.part" "$0"; wait; true'
subprocess.run(["/bin/sh", "-c", script, sys.argv[0] + ".pids"], timeout=60, stdout=subprocess.PIPE)
"""


def test_the_deadline_ends_children_and_grandchildren(tmp_path: Path) -> None:
    found = run_plugin(STUCK, tmp_path, "--timeout=2")
    assert found.startswith("3 |  | test-plugin: error: gave up after the deadline while waiting for a child")
    processes = [int(each) for each in (tmp_path / "plugin.py.pids").read_text().split()]
    assert len(processes) == 2
    assert all(gone(each) for each in processes)


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131), (signal.SIGINT, 3)],
    ids=str,
)
@pytest.mark.parametrize("code", [STUCK, WRAPPED], ids=["waited for", "run by subprocess.run"])
def test_so_does_the_end_that_a_controller_a_terminal_or_a_person_asks_for(
    code: str, number: int, status: int, tmp_path: Path
) -> None:
    script, pids = tmp_path / "plugin.py", tmp_path / "plugin.py.pids"
    script.write_text(PLUGIN.replace("CODE", textwrap.indent(code, "    ").strip()))
    environment = variables_for({"PATH": os.environ["PATH"]})
    with subprocess.Popen([sys.executable, str(script), "--timeout=30"], env=environment) as plugin:
        while not (pids.exists() and pids.read_text().endswith("\n")):
            assert plugin.poll() is None
            time.sleep(0.02)
        plugin.send_signal(number)
        assert plugin.wait(60) == status
    assert all(gone(int(each)) for each in pids.read_text().split())


@pytest.mark.parametrize(("name", "status"), [("TERM", 143), ("INT", 3)])
def test_a_child_that_is_only_starting_when_the_end_comes_is_ended_too(name: str, status: int, tmp_path: Path) -> None:
    """On one processor the child runs, and sends the signal, before its parent knows its number."""
    code = """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    script = 'echo $$ >"$0"; kill -NAME $PPID; exec sleep 60'
    subprocess.Popen(["/bin/sh", "-c", script, sys.argv[0] + ".pid"]).wait()
    """
    for number in range(10):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert run_plugin(code.replace("NAME", name), folder, "--timeout=30").startswith(f"{status} |")
        assert gone(int((folder / "plugin.py.pid").read_text()))


def test_a_browser_that_the_sdk_opens_stays(tmp_path: Path) -> None:
    """As webbrowser does, which Entra ID's interactive login uses: xdg-open may well be the browser itself."""
    code = """
    browser = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, start_new_session=True)
    return Credential(f"{browser.pid}")
    """
    found = run_plugin(code, tmp_path)
    pid = int(found.partition('"token":"')[2].partition('"')[0])
    os.kill(pid, signal.SIGKILL)  # which it can only be told while it lives


def test_a_time_limit_of_the_sdk_ends_grandchildren_too(tmp_path: Path) -> None:
    code = WRAPPED.replace("timeout=60", "timeout=2").replace("subprocess.run(", "try: subprocess.run(").strip()
    found = run_plugin(f"{code}\nexcept subprocess.TimeoutExpired: return Credential('t')", tmp_path)
    assert found == answered("t")
    assert all(gone(int(each)) for each in (tmp_path / "plugin.py.pids").read_text().split())


def test_who_is_to_outlive_the_terminal_does(tmp_path: Path) -> None:
    code = """
    import signal
    os.kill(os.getpid(), signal.SIGHUP)
    return Credential("t")
    """
    script = tmp_path / "plugin.py"
    script.write_text(PLUGIN.replace("CODE", textwrap.indent(textwrap.dedent(code), "    ").strip()))
    command = ["/bin/sh", "-c", 'trap "" HUP; exec "$0" "$1"', sys.executable, str(script)]
    done = subprocess.run(
        command,
        env=variables_for({"PATH": os.environ["PATH"]}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert [done.returncode, done.stderr] == [0, ""]


def test_a_child_that_ends_while_another_thread_waits_for_it_is_no_trouble(tmp_path: Path) -> None:
    code = """
    quick = [subprocess.Popen(["true"]) for _ in range(20)]
    for child in quick:
        threading.Thread(target=child.wait, daemon=True).start()
    subprocess.Popen(["sleep", "60"]).wait()
    """
    assert run_plugin(code, tmp_path, "--timeout=1").startswith("3 |  | test-plugin: error: gave up after the deadline")


def test_a_stuck_library_is_ended_too(tmp_path: Path) -> None:
    code = """
    env.doing("waiting inside of C code")
    import ctypes
    ctypes.CDLL(None).sleep(60)
    """
    found = run_plugin(code, tmp_path, "--timeout=1")
    assert found.startswith("3 |  | test-plugin: error: gave up after the deadline while waiting inside of C code")


@pytest.mark.parametrize("what", ["raise ValueError('hunter2')", "sys.exit('hunter2')", "1 / 0", "raise SystemExit(0)"])
def test_a_foreign_exception_never_crosses_the_border(what: str, tmp_path: Path) -> None:
    found = run_plugin(f"{what}\nreturn Credential('t')", tmp_path)
    assert found.startswith("1 |  | test-plugin: error: unexpected ")
    assert "[internal]" in found
    for each in ("hunter2", "Traceback", "plugin.py"):
        assert each not in found


def test_at_debug_level_the_places_of_a_foreign_exception_are_named_without_its_text(tmp_path: Path) -> None:
    found = run_plugin("raise ValueError('hunter2')", tmp_path, "--log-level=debug")
    assert "debug: at " in found
    assert "plugin.py:" in found
    assert "hunter2" not in found


def test_logs_and_warnings_of_an_sdk_are_not_heard(tmp_path: Path) -> None:
    code = """
    import logging, warnings
    logging.getLogger("sdk").error("hunter2 %s")
    logging.getLogger("sdk").error("%d", "hunter2")
    warnings.warn("hunter2")
    return Credential("t")
    """
    assert run_plugin(code, tmp_path) == answered("t")
