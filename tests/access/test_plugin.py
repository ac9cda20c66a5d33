"""Running a plugin: the environment of client-go, limits of time and size, and every bad answer by its own words."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from access.support import SERVER, V1, V1BETA1, answer, plugin, refused, spec, stamp
from execcred import BadRequest, ExecCredError, LoginNeeded, TryAgain
from execcred.access import Cluster, run_plugin
from execcred.conformance.fakes.pki import Authority
from interop.cluster import b64, until

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN = answer(token="t")
HANG = "while :; do sleep 0.05; done"


def says(text: str) -> str:
    """Return a line of shell that prints a text."""
    return f"cat <<'END'\n{text}\nEND"


# --- what a plugin gets ---


@pytest.mark.parametrize("version", [V1, V1BETA1])
@pytest.mark.parametrize("informed", [True, False])
def test_a_plugin_gets_the_exec_info_its_arguments_and_both_environments(
    tmp_path: Path, version: str, informed: bool
) -> None:
    command = plugin(
        tmp_path,
        'printf "%s" "$KUBERNETES_EXEC_INFO" >info',
        'echo "$0 $# $1 $2" >args',
        'echo "$FROM_CONTROLLER $FROM_FILE $BOTH" >env',
        "cat >stdin; pwd >cwd",
        says(answer(version, token="t")),
    )
    run = spec(
        command,
        api_version=version,
        args=("--a=b", "c d"),
        env=(("FROM_FILE", "file"), ("BOTH", "first"), ("BOTH", "file"), ("KUBERNETES_EXEC_INFO", "forged")),
        provide_cluster_info=informed,
        config='{"clusterName":"c1"}',
    )
    environ = {"PATH": os.environ["PATH"], "FROM_CONTROLLER": "controller", "BOTH": "controller"}
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        assert run_plugin(run, environ=environ).credential.token == "t"
    finally:
        os.chdir(here)
    text = (tmp_path / "info").read_text()
    assert text == run.exec_info()
    assert text.endswith("\n")
    assert json.loads(text) == {
        "kind": "ExecCredential",
        "apiVersion": version,
        "spec": {"interactive": False}
        | ({"cluster": {"server": SERVER, "config": {"clusterName": "c1"}}} if informed else {}),
    }
    assert (tmp_path / "args").read_text() == f"{command} 2 --a=b c d\n"
    assert (tmp_path / "env").read_text() == "controller file file\n"
    assert (tmp_path / "stdin").read_text() == ""
    assert (tmp_path / "cwd").read_text() == f"{tmp_path}\n"


def test_a_bare_name_is_looked_up_in_the_controllers_path(tmp_path: Path) -> None:
    plugin(tmp_path, says(TOKEN), name="some-plugin")
    found = run_plugin(spec("some-plugin"), environ={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert found.credential.token == "t"


def test_a_plugin_is_the_leader_of_a_session_of_its_own(tmp_path: Path) -> None:
    command = plugin(tmp_path, f"cut -d ' ' -f 6 /proc/$$/stat >{tmp_path}/sid; echo $$ >{tmp_path}/pid", says(TOKEN))
    run_plugin(spec(command))
    assert (tmp_path / "sid").read_text().strip() == (tmp_path / "pid").read_text().strip()


# --- what it answers ---


def test_a_token_and_the_time_to_renew_it_are_taken(tmp_path: Path) -> None:
    text = answer(token="t", expirationTimestamp=stamp(minutes=10))
    credential = run_plugin(spec(plugin(tmp_path, says(text)))).credential
    assert credential.token == "t"
    assert credential.expires
    assert 500 < credential.expires - time.time() < 541  # a minute early


@pytest.mark.parametrize(
    ("hours", "zone", "left"), [(0, "Z", 540), (0, "+00:00", 540), (2, ".25+02:00", 540), (24 * 365, "Z", 31e6)]
)
def test_times_are_read_in_any_zone(tmp_path: Path, hours: int, zone: str, left: float) -> None:
    text = stamp(hours=hours, minutes=10).replace("Z", zone)
    expires = run_plugin(spec(plugin(tmp_path, says(answer(token="t", expirationTimestamp=text))))).credential.expires
    assert expires
    assert expires - time.time() > left - 60


def test_the_last_time_that_can_be_written_is_read(tmp_path: Path) -> None:
    text = answer(token="t", expirationTimestamp="9999-12-31T23:59:59Z")
    assert run_plugin(spec(plugin(tmp_path, says(text)))).credential.expires


@pytest.mark.parametrize("fields", [{}, {"expirationTimestamp": None}])
def test_without_a_time_the_token_itself_may_tell_its_end(tmp_path: Path, fields: dict[str, Any]) -> None:
    jwt = f"{b64('{}')}.{b64(json.dumps({'exp': int(time.time()) + 600})).rstrip('=')}.c2ln"
    credential = run_plugin(spec(plugin(tmp_path, says(answer(token=jwt, **fields))))).credential
    assert credential.expires
    assert 500 < credential.expires - time.time() < 541
    assert run_plugin(spec(plugin(tmp_path, says(TOKEN)))).credential.expires is None


def test_a_client_certificate_is_taken_until_its_own_end(tmp_path: Path) -> None:
    certificate, key = Authority().client("alice", ends=2 * 86400)
    text = answer(clientCertificateData=certificate, clientKeyData=key, expirationTimestamp="9999-12-31T23:59:59Z")
    credential = run_plugin(spec(plugin(tmp_path, says(text)))).credential
    assert (credential.certificate, credential.key, credential.token) == (certificate, key, "")
    assert credential.expires
    assert credential.expires - time.time() < 2 * 86400 + 60


def test_unknown_fields_and_blanks_around_the_answer_do_not_matter(tmp_path: Path) -> None:
    document = json.loads(TOKEN) | {"spec": {"interactive": False}, "note": 1}
    assert run_plugin(spec(plugin(tmp_path, "echo", says(json.dumps(document)), "echo"))).credential.token == "t"


def test_what_a_plugin_that_succeeds_writes_to_stderr_is_kept_and_in_no_repr(tmp_path: Path) -> None:
    found = run_plugin(spec(plugin(tmp_path, "echo warning >&2", says(answer(token="hush")))))
    assert found.stderr == "warning"
    assert found.seconds > 0
    assert "hush" not in repr(found)
    assert "warning" not in repr(found)


BAD: list[tuple[str, str]] = [
    ("true", "it printed nothing"),
    ("echo; echo", "it printed nothing"),
    ("echo garbage", "it is not JSON, at character 0"),
    ("printf '\\377'", "it is not JSON text"),
    (says(TOKEN + TOKEN), "there is something behind the JSON object"),
    (says(TOKEN + "\n---\n" + TOKEN), "there is something behind the JSON object"),
    (f"echo log line; {says(TOKEN)}", "it is not JSON, at character 0"),
    (says(TOKEN[:-1]), "it is not JSON"),
    (says("kind: ExecCredential"), "it is not JSON"),
    (says("[" * 100_000), "it is not JSON"),
    (says("[]"), "it must be an object, is an array"),
    (says("{}"), "kind is not ExecCredential"),
    (says(TOKEN.replace("ExecCredential", "Status")), "kind is not ExecCredential"),
    (says(answer(V1BETA1, token="t")), f"apiVersion is not {V1}, which was asked for"),
    (says(answer("", token="t")), f"apiVersion is not {V1}"),
    (says(json.dumps({"apiVersion": V1, "kind": "ExecCredential"})), "status is missing"),
    (says(json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": "t"})), "status must be an object"),
    (says(answer()), "there is neither a token nor a client certificate"),
    (says(answer(token="")), "there is neither a token nor a client certificate"),
    (says(answer(token=5)), "status.token must be a string, is a number"),
    (says(answer(token="hush hush")), "not a token: character 5 of 9"),
    (says(answer(token="hush\0")), "status.token holds a character"),
    (says(answer(clientCertificateData="x")), "half a credential: clientKeyData is missing"),
    (says(answer(clientKeyData="x")), "half a credential: clientCertificateData is missing"),
    (says(answer(clientCertificateData="x", clientKeyData="y")), "it is not a PEM certificate and key"),
    (says(answer(token="t", expirationTimestamp="")), "expirationTimestamp is no time of RFC 3339"),
    (says(answer(token="t", expirationTimestamp="2099-01-01T00:00:00")), "is no time of RFC 3339 with a zone"),
    (says(answer(token="t", expirationTimestamp="2099-01-01")), "is no time of RFC 3339"),
    (says(answer(token="t", expirationTimestamp="2099-13-01T00:00:00Z")), "is no time of RFC 3339"),
    (says(answer(token="t", expirationTimestamp=4e9)), "expirationTimestamp must be a string, is a number"),
    ("yes hush", "printed more than 1048576 bytes"),
]


@pytest.mark.parametrize(("line", "told"), BAD)
def test_a_bad_answer_is_told_and_never_repeated(tmp_path: Path, line: str, told: str) -> None:
    command = plugin(tmp_path, "echo said >&2", line)
    error = refused(lambda: run_plugin(spec(command)))
    assert error.code == "plugin-bad-answer"
    assert error.message.startswith(f"provider 'reader': {command} ")
    assert told in error.message
    assert "hush" not in error.message
    assert error.__notes__ == [f"stderr of {command}:\nsaid"]


def test_a_credential_that_has_ended_may_be_had_again_later(tmp_path: Path) -> None:
    error = refused(
        lambda: run_plugin(spec(plugin(tmp_path, says(answer(token="t", expirationTimestamp=stamp(seconds=-1))))))
    )
    assert (error.code, type(error)) == ("credential-expired", TryAgain)


# --- how it fails ---


@pytest.mark.parametrize(
    ("status", "kind"), [(1, ExecCredError), (2, BadRequest), (3, TryAgain), (4, LoginNeeded), (77, ExecCredError)]
)
def test_the_exit_status_is_the_class_of_the_error(tmp_path: Path, status: int, kind: type[ExecCredError]) -> None:
    command = plugin(
        tmp_path,
        "echo debug >&2; echo 'x-plugin: error: no such thing [thing-missing]' >&2",
        "echo 'hint: make the thing' >&2",
        f"exit {status}",
    )
    error = refused(lambda: run_plugin(spec(command)))
    assert (error.code, type(error)) == ("plugin-failed", kind)
    assert error.message == f"provider 'reader': {command} exited with {status}: no such thing [thing-missing]"
    assert error.hint == "make the thing"
    [note] = error.__notes__
    assert note.splitlines()[1] == "debug"


@pytest.mark.parametrize("end", ["exit 1", f"echo '{answer(token='t')}'"], ids=["failure", "success"])
def test_what_a_plugin_says_moves_no_terminal(tmp_path: Path, end: str) -> None:
    command = plugin(tmp_path, r"printf '\033]0;title\007one\ttwo\r\nthree\033[2J' >&2", end)
    try:
        said = run_plugin(spec(command)).stderr
    except ExecCredError as error:
        said = error.__notes__[0].partition("\n")[2]
    assert said == "?]0;title?one   two\nthree?[2J"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("exit 1", "exited with 1, and said nothing"),
        ("echo one >&2; echo two >&2; echo >&2; exit 1", "exited with 1: two"),
        ("kill -9 $$", "was ended by signal 9, and said nothing"),
        (f"{says(TOKEN)}\nexit 1", "exited with 1, and said nothing"),
        ("printf 'a\\033[31mb' >&2; exit 1", "exited with 1: a?[31mb"),
    ],
)
def test_any_other_failure_is_told_with_the_last_thing_that_was_said(tmp_path: Path, line: str, told: str) -> None:
    assert refused(lambda: run_plugin(spec(plugin(tmp_path, line)))).message.endswith(told)


def test_ten_megabytes_on_stderr_do_no_harm_and_their_end_is_kept(tmp_path: Path) -> None:
    flood = "head -c 10000000 /dev/zero | tr '\\0' x >&2; echo last >&2"
    found = run_plugin(spec(plugin(tmp_path, flood, says(TOKEN))))
    assert found.credential.token == "t"
    assert found.stderr.endswith("xlast")
    assert len(found.stderr) <= 16384
    error = refused(lambda: run_plugin(spec(plugin(tmp_path, flood, "exit 1"))))
    assert error.message.endswith("…")
    assert len(error.message) < 1000


def missing(folder: Path) -> str:
    return f"{folder}/nothing"


def not_executable(folder: Path) -> str:
    path = Path(plugin(folder, says(TOKEN)))
    path.chmod(0o644)
    return str(path)


def without_interpreter(folder: Path) -> str:
    path = Path(plugin(folder))
    path.write_text("#!/nowhere/python3\n")
    return str(path)


def other_machine(folder: Path) -> str:
    path = Path(plugin(folder))
    path.write_bytes(b"\x7fELF\x00\x00 nonsense")
    return str(path)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (missing, "no such file or directory"),
        (not_executable, "permission denied"),
        (str, "permission denied"),
        (without_interpreter, "the interpreter of its first line, or its loader, does not exist"),
        (other_machine, "it is no executable of this machine's kind"),
        (lambda _: "no-such-plugin", "it is not in PATH"),
        (lambda _: "no-such\0plugin", "it is not in PATH"),
    ],
)
def test_a_command_that_cannot_be_run_says_why_and_shows_the_install_hint(
    tmp_path: Path, make: Callable[[Path], str], told: str
) -> None:
    error = refused(lambda: run_plugin(spec(make(tmp_path), install_hint="mount the image at /plugins")))
    assert error.code == "plugin-not-runnable"
    assert error.message.endswith(told)
    assert error.hint == "mount the image at /plugins"


def test_without_an_install_hint_there_is_another(tmp_path: Path) -> None:
    assert "provider file" in refused(lambda: run_plugin(spec(missing(tmp_path)))).hint


def test_a_null_character_in_arguments_is_told(tmp_path: Path) -> None:
    error = refused(lambda: run_plugin(spec(plugin(tmp_path), args=("a\0b",))))
    assert error.message.endswith("hold a character that none can have")


def test_cluster_info_beyond_what_a_variable_holds_is_told(tmp_path: Path) -> None:
    large = Cluster(SERVER, ca_data="QUFB" * 50_000)
    error = refused(lambda: run_plugin(spec(plugin(tmp_path), cluster=large, provide_cluster_info=True)))
    assert error.code == "plugin-not-runnable"
    assert "most likely the cluster's CA data" in error.message


STARVED = """
import os, resource, sys
from execcred import ExecCredError
from execcred.access import Cluster, ExecSpec, run_plugin

spec = ExecSpec("p", "client.authentication.k8s.io/v1", sys.argv[1], Cluster("https://x"))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
while len(held) < 64:
    try:
        held.append(os.open("/", os.O_RDONLY))
    except OSError:
        break
told = set()
while held:
    try:
        told.add(run_plugin(spec).credential.token)
    except ExecCredError as error:
        told.add(f"{type(error).__name__} {error.code}")
    os.close(held.pop())
print(sorted(told))
"""


def test_a_controller_without_a_file_left_is_told_to_try_again(tmp_path: Path) -> None:
    """With any number of files left there is an answer or this error."""
    command = [sys.executable, "-c", STARVED, plugin(tmp_path, says(TOKEN))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "['TryAgain plugin-starved', 't']\n", done.stderr


# --- how long it may take ---


def gone(pid: str) -> bool:
    """Tell whether a process has ended, a zombie included."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


@pytest.mark.parametrize("trap", ["", "trap '' TERM"], ids=["polite", "deaf"])
def test_a_plugin_that_hangs_is_ended_with_all_its_children(tmp_path: Path, trap: str) -> None:
    command = plugin(
        tmp_path, trap, f"({HANG}) & echo $! >{tmp_path}/child; echo $$ >{tmp_path}/self", "echo why >&2", HANG
    )
    error = refused(lambda: run_plugin(spec(command), timeout=1))
    assert (error.code, type(error)) == ("plugin-timeout", TryAgain)
    assert "did not end within 1 s and was killed" in error.message
    assert error.__notes__ == [f"stderr of {command}:\nwhy"]
    for name in ("self", "child"):
        pid = (tmp_path / name).read_text().strip()
        until(f"{name} is gone", lambda pid=pid: gone(pid))  # type: ignore[misc]  # the default binds the name


def test_a_plugin_that_closed_its_outputs_but_goes_on_is_ended_too(tmp_path: Path) -> None:
    command = plugin(tmp_path, says(TOKEN), "exec >&- 2>&-", HANG)
    assert refused(lambda: run_plugin(spec(command), timeout=1)).code == "plugin-timeout"


def test_on_sigterm_a_plugin_may_end_its_own_sessions_first(tmp_path: Path) -> None:
    command = plugin(tmp_path, f"trap 'echo ended >{tmp_path}/trace; exit 1' TERM", HANG)
    refused(lambda: run_plugin(spec(command), timeout=1))
    assert (tmp_path / "trace").read_text() == "ended\n"


def test_a_child_that_a_plugin_leaves_behind_holds_nobody_up(tmp_path: Path) -> None:
    command = plugin(tmp_path, f"({HANG}) & echo $! >{tmp_path}/child", says(TOKEN))
    found = run_plugin(spec(command), timeout=60)
    assert found.credential.token == "t"
    pid = (tmp_path / "child").read_text().strip()
    until("the child is gone", lambda: gone(pid))


def test_no_run_leaves_an_open_file_behind(tmp_path: Path) -> None:
    commands = [plugin(tmp_path, says(TOKEN), name="good"), plugin(tmp_path, "exit 1", name="bad"), missing(tmp_path)]

    def run() -> int:
        for command in commands:
            with contextlib.suppress(ExecCredError):
                run_plugin(spec(command))
        gc.collect()  # what another test has left to it may hold files, too
        return len(os.listdir("/proc/self/fd"))

    assert run() == run() == run()
