"""The installed executables at their borders: streams, environment, disk, user, time; and what they import."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import execcred
import execcred_secretreader as reader
from execcred import BadRequest, ExecCredError
from execcred._run import check_server, respond
from execcred._version import __version__
from execcred.conformance import LOOPBACK_ONLY
from execcred.conformance.fakes.faults import FaultyServer
from execcred.conformance.fakes.kube_server import Identity, KubeServer, kubeconfig
from needs import absent, need_mounts
from unit.support import (
    KUBECONFIG_READER,
    NOW,
    READER,
    V1,
    World,
    exec_info,
    executable,
    execute,
    in_pod,
    variables_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

READERS = ("secretreader", "kubeconfig-secretreader")
PLUGINS = (*READERS, "eks", "gke", "aks")
ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def hub() -> Iterator[KubeServer]:
    """Return a hub with Secret ns/one, which its reader may get."""
    with KubeServer() as server:
        server.tokens["hub-token"] = Identity("reader")
        server.allow("reader", "get", "secrets", "ns", "one")
        inner = json.dumps(kubeconfig("https://spoke.example", "", {"token": "t"}))
        server.put_secret("ns", "one", {"token": "t\n", "value": inner})
        yield server


@pytest.fixture
def config(hub: KubeServer, tmp_path: Path) -> dict[str, str]:
    """Return the variables that lead to the hub."""
    return leading_to(hub.url, hub.ca_pem, tmp_path)


def leading_to(url: str, ca: str, folder: Path) -> dict[str, str]:
    """Return the variables that lead to a hub, through a kubeconfig that anybody may read."""
    path = folder / "hub"
    path.write_text(json.dumps(kubeconfig(url, ca, {"token": "hub-token"}, "ns")))
    path.chmod(0o644)
    return {"KUBECONFIG": str(path), "EXECCRED_SECRET_NAME": "one"}


ANSWER = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t"}}

# --- the answer ---


@pytest.mark.parametrize("name", READERS)
def test_success_is_one_line_on_stdout_and_nothing_on_stderr(name: str, config: dict[str, str]) -> None:
    done = execute(name, [], {**config, "KUBERNETES_EXEC_INFO": exec_info()})
    assert [json.loads(done.stdout), done.stdout.count("\n"), done.stderr, done.returncode] == [ANSWER, 1, "", 0]


@pytest.mark.parametrize(("arguments", "version"), [([], "v1beta1"), (["--api-version=v1"], "v1")])
def test_by_hand_the_version_is_v1beta1_unless_asked(
    arguments: list[str], version: str, config: dict[str, str]
) -> None:
    answer = json.loads(execute("secretreader", arguments, config).stdout)
    assert answer["apiVersion"] == f"client.authentication.k8s.io/{version}"


def test_the_version_flag_counts_only_when_the_client_asks_for_none(config: dict[str, str]) -> None:
    done = execute("secretreader", ["--api-version=v1beta1"], {**config, "KUBERNETES_EXEC_INFO": exec_info()})
    assert json.loads(done.stdout)["apiVersion"] == V1


def test_at_debug_level_each_choice_is_named_on_stderr(config: dict[str, str]) -> None:
    raw = exec_info({"clusterName": "x", "future": "hunter2"})
    done = execute("secretreader", ["--log-level=debug"], {**config, "KUBERNETES_EXEC_INFO": raw})
    assert json.loads(done.stdout) == ANSWER
    lines = done.stderr.splitlines()
    assert "secretreader-plugin: debug: secret-name from variable EXECCRED_SECRET_NAME" in lines
    assert "secretreader-plugin: debug: config key 'future' is not known here and ignored" in lines
    for secret in ("hunter2", "hub-token"):
        assert secret not in done.stderr


def test_failure_is_one_line_and_a_hint_on_stderr_and_nothing_on_stdout(config: dict[str, str]) -> None:
    done = execute("secretreader", ["--secret-name=two"], config)
    assert [done.stdout, done.returncode] == ["", 1]
    first, second = done.stderr.splitlines()
    assert first.startswith("secretreader-plugin: error: the hub (kubeconfig ")
    assert first.endswith("[hub-forbidden]")
    assert second == (
        "hint: grant the identity of this hub access a Role with verb get, resource secrets, namespace ns, name two"
    )


def test_a_profile_cannot_write_lines_of_its_own_into_the_log(config: dict[str, str]) -> None:
    forged = "x\nsecretreader-plugin: error: all is well\x1b[2J"
    raw = exec_info({"clusterName": "x", forged: 1, "key": forged}, version=V1)
    done = execute("secretreader", ["--log-level=debug"], {**config, "KUBERNETES_EXEC_INFO": raw})
    assert done.returncode == 2
    for line in done.stderr.splitlines():
        assert line.startswith(("secretreader-plugin: debug: ", "secretreader-plugin: error: config key key", "hint: "))
    assert "\x1b" not in done.stderr


# --- streams ---


def test_stdout_closed_is_an_error(config: dict[str, str]) -> None:
    command = ["sh", "-c", 'exec "$0" >&-', executable("secretreader")]
    done = subprocess.run(command, env=variables_for(config), capture_output=True, text=True, check=False, timeout=60)
    assert [done.returncode, "stdout cannot be written: Bad file descriptor [stdout-closed]" in done.stderr] == [
        1,
        True,
    ]


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_stdin_and_stderr_may_be_closed(closed: str, config: dict[str, str]) -> None:
    command = ["sh", "-c", f'exec "$0" {closed}', executable("secretreader")]
    done = subprocess.run(
        command, env=variables_for(config), stdout=subprocess.PIPE, text=True, check=False, timeout=60
    )
    assert [json.loads(done.stdout)["status"], done.returncode] == [{"token": "t"}, 0]


def test_with_everything_closed_a_failure_is_still_an_exit_status(config: dict[str, str]) -> None:
    command = ["sh", "-c", 'exec "$0" --secret-name=two <&- >&- 2>&-', executable("secretreader")]
    done = subprocess.run(command, env=variables_for(config), check=False, timeout=60)
    assert done.returncode == 1


def test_a_reader_that_went_away_is_an_error(config: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [executable("secretreader")],
            env=variables_for(config),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert [done.returncode, "stdout cannot be written: Broken pipe [stdout-closed]" in done.stderr] == [1, True]


def test_a_full_disk_is_an_error(config: dict[str, str]) -> None:
    with open("/dev/full", "wb") as full:
        done = execute("secretreader", [], config, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert [done.returncode, "No space left on device [stdout-closed]" in done.stderr] == [1, True]


def test_a_pipe_that_nobody_reads_ends_at_the_deadline(config: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b" " * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb") as pipe:
        done = execute(
            "secretreader", ["--timeout=2"], config, capture_output=False, stdout=pipe, stderr=subprocess.PIPE
        )
    assert [done.returncode, "gave up after the deadline while writing the answer" in done.stderr] == [3, True]


def test_an_open_stdin_is_not_read(config: dict[str, str]) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stdin, os.fdopen(writing, "wb"):
        done = execute("secretreader", [], config, stdin=stdin)
    assert done.returncode == 0


# --- environment, disk, user ---


@pytest.mark.parametrize(
    "more",
    [
        {"HOME": "/nonexistent"},
        {"HOME": ""},
        {"LC_ALL": "C", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"},
        {"LC_ALL": "nonsense", "TZ": ":nonsense"},
        {"TMPDIR": "/nonexistent"},
        {"HTTPS_PROXY": "http://127.0.0.1:1"},
        {"AWS_DEFAULT_OUTPUT": "text", "KUBECTL_EXTERNAL_DIFF": "x"},
        {"PYTHONWARNINGS": "always", "PYTHONDEVMODE": "0", "PYTHONIOENCODING": "utf-16"},
    ],
    ids=str,
)
def test_the_environment_changes_nothing(more: dict[str, str], config: dict[str, str]) -> None:
    done = execute("secretreader", [], {**config, **more})
    assert [done.stderr, json.loads(done.stdout)["status"]] == ["", {"token": "t"}]


@pytest.mark.parametrize("name", ["secretreader", "kubeconfig-secretreader"])
def test_a_run_leaves_nothing_behind(name: str, config: dict[str, str], tmp_path: Path) -> None:
    """A client may run a plugin and not use its answer."""
    home = tmp_path / "home"
    home.mkdir()
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), str(home))
    for arguments in ([], ["--secret-name=absent"], ["--nonsense"]):
        execute(name, arguments, {**config, **folders}, cwd=home)
        assert list(home.rglob("*")) == []


def test_variables_that_are_not_utf8_are_left_alone_unless_they_are_ours(config: dict[str, str]) -> None:
    done = execute("secretreader", [], {**config, "OTHER": "\udcff"})
    assert done.returncode == 0
    done = execute("secretreader", [], {**config, "EXECCRED_KEY": "\udcff"})
    assert [done.returncode, "variable EXECCRED_KEY holds a control character or is not UTF-8" in done.stderr] == [2, 1]
    done = execute("secretreader", [], {**config, "KUBERNETES_EXEC_INFO": '{"a":"\udcff"}'})
    assert [done.returncode, "it is not UTF-8 text [exec-info-invalid]" in done.stderr] == [2, True]


def test_a_kubeconfig_may_have_a_name_that_is_not_utf8(hub: KubeServer, tmp_path: Path) -> None:
    config = leading_to(hub.url, hub.ca_pem, tmp_path)
    strange = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    os.rename(config["KUBECONFIG"], strange)
    assert execute("secretreader", [], {**config, "KUBECONFIG": strange}).returncode == 0
    assert (
        "[hub-forbidden]"
        in execute("secretreader", ["--key=x", "--secret-name=two"], {**config, "KUBECONFIG": strange}).stderr
    )


def test_a_folder_that_is_gone_or_unreadable_is_no_trouble(config: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    command = ["sh", "-c", 'rmdir "$1" && exec "$0"', executable("secretreader"), str(folder)]
    done = subprocess.run(
        command, cwd=folder, env=variables_for({**config, "PATH": os.environ["PATH"]}), capture_output=True, check=False
    )
    assert [done.returncode, done.stderr] == [0, b""]


def test_an_image_like_place_is_enough(hub: KubeServer, tmp_path: Path) -> None:
    """Read-only disk, user 65532 without an entry in passwd, no HOME, a folder that it may not read."""
    need_mounts()
    if not shutil.which("setpriv"):
        absent("needs setpriv")
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and str(parent) not in ("/", "/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)
    config = leading_to(hub.url, hub.ca_pem, tmp_path)
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o700)
    script = 'mount -o remount,ro,bind / / && cd "$1" && shift && exec "$@"'
    runner = shutil.which("unshare") or ""
    python = [sys.executable, executable("secretreader")]
    nobody = ["setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups", *python]
    bare = {"PYTHONPATH": LOOPBACK_ONLY, "PATH": os.environ["PATH"]}
    if subprocess.run([*nobody, "--version"], env=bare, capture_output=True, check=False, timeout=60).returncode:
        absent("the environment is not readable for other users")
    command = [runner, "--mount", "sh", "-c", script, "sh", str(secret), *nobody]
    done = subprocess.run(
        command,
        env={**bare, **config},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert [done.stderr, done.returncode] == ["", 0]
    assert json.loads(done.stdout)["status"] == {"token": "t"}


def test_a_limit_on_processes_is_an_error_and_no_traceback() -> None:
    if not ROOT or not shutil.which("setpriv") or not shutil.which("prlimit"):
        absent("needs root, setpriv and prlimit")
    nobody = str(50_000 + os.getpid() % 10_000)  # whose processes are counted: no other test runs any as this user
    limited = ["prlimit", "--nproc=1:1", "setpriv", "--reuid", nobody, "--regid", nobody, "--clear-groups"]
    command = [*limited, sys.executable, executable("secretreader"), "--version"]
    bare = {"PYTHONPATH": LOOPBACK_ONLY, "PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=bare, capture_output=True, text=True, check=False, timeout=60)
    if "Permission denied" in done.stderr:
        absent("the environment is not readable for other users")
    assert [done.stdout, done.returncode, "Traceback" in done.stderr] == ["", 1, False]
    assert "unexpected RuntimeError while starting the thread of the deadline [internal]" in done.stderr


def test_fifty_at_once_all_answer(config: dict[str, str], hub: KubeServer) -> None:
    before = len(hub.requests)
    with ThreadPoolExecutor(50) as pool:
        done = list(pool.map(lambda _: execute("secretreader", ["--timeout=60"], config, timeout=110), range(50)))
    assert {(each.returncode, each.stderr) for each in done} == {(0, "")}
    assert len({each.stdout for each in done}) == 1
    assert [each.status for each in hub.requests[before:]] == [200] * 50


def test_three_hundred_repeated_flags_are_no_trouble(config: dict[str, str]) -> None:
    done = execute("secretreader", ["--key", "nope", "-secret-name=one"] * 300 + ["--key=token"], config)
    assert [done.returncode, done.stderr] == [0, ""]


def test_a_pipe_that_does_not_block_gets_the_whole_answer(hub: KubeServer, config: dict[str, str]) -> None:
    hub.put_secret("ns", "large", {"token": "x" * 300_000})
    hub.allow("reader", "get", "secrets", "ns", "large")
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    command = [executable("secretreader"), "--secret-name=large", "--output=token"]
    with subprocess.Popen(command, env=variables_for(config), stdin=subprocess.DEVNULL, stdout=write_end) as plugin:
        os.close(write_end)
        time.sleep(0.5)  # the pipe is full by then
        with open(read_end, "rb") as stream:
            answer = stream.read()
    assert [plugin.returncode, answer] == [0, b"x" * 300_000 + b"\n"]


def test_too_few_file_descriptors_are_an_error_in_one_line() -> None:
    start = "import sys; sys.path[:0] = sys.argv.pop(1).split(':'); from execcred_secretreader import main; main()"
    sources = ":".join([str(Path(module.__file__ or "").parents[up]) for module, up in ((execcred, 1), (reader, 0))])
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -n 4; exec "$@"', "sh", sys.executable, "-I", "-S", "-c", start, sources],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert [done.stdout, done.returncode] == ["", 1]
    assert done.stderr.startswith(
        "secretreader-plugin: error: unexpected OSError while taking over stdout [internal]\n"
    )
    assert "Traceback" not in done.stderr


# --- time ---


@pytest.mark.parametrize(
    "fault", ["never answers", "says nothing, not even TLS", "drips the body", "continues for ever"]
)
def test_a_hub_that_does_not_answer_is_given_up_at_the_deadline(fault: str, tmp_path: Path) -> None:
    with FaultyServer(fault, b" " * 1000) as server:
        started = time.monotonic()
        done = execute("secretreader", ["--timeout=2"], leading_to(server.url, server.ca_pem, tmp_path))
        took = time.monotonic() - started
    assert [done.stdout, done.returncode] == ["", 3]
    assert done.stderr.count("error:") == 1
    assert "for Secret ns/one" in done.stderr or "did not answer in time" in done.stderr
    assert 2 <= took < 30


def test_stuck_dns_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    """The name server of a namespace of our own is a loopback socket that never answers."""
    config = leading_to("https://hub.test:6443", "", tmp_path)
    address = f"127.53.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"  # where neither a resolver nor another test is
    need_mounts()
    (tmp_path / "resolv.conf").write_text(f"nameserver {address}\noptions timeout:30 attempts:3\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: dns\n")
    script = (
        'mount --bind "$1/resolv.conf" /etc/resolv.conf && { [ ! -e /etc/nsswitch.conf ] ||'
        ' mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf; } && ip link set lo up && shift && exec "$@"'
    )
    if not shutil.which("ip"):
        script = script.replace(" && ip link set lo up", "")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        try:
            silent.bind((address, 53))
        except OSError:
            absent("port 53 is taken")
        silent.settimeout(0)
        command = ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), executable("secretreader")]
        variables = {name: value for name, value in variables_for(config).items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [*command, "--timeout=2"],
            env={**variables, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        asked = silent.recv(512)
    assert b"\x03hub\x04test" in asked
    assert [done.stdout, done.returncode] == ["", 3]
    assert "gave up after the deadline while asking the hub" in done.stderr


def test_an_interrupt_ends_it_in_order(tmp_path: Path) -> None:
    with FaultyServer("never answers") as server:
        command = [executable("secretreader"), "--timeout=60"]
        environment = variables_for(leading_to(server.url, server.ca_pem, tmp_path))
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, text=True
        ) as plugin:
            while not server.requests:
                assert plugin.poll() is None
                time.sleep(0.02)
            plugin.send_signal(signal.SIGINT)
            stdout, stderr = plugin.communicate(timeout=30)
    assert [stdout, plugin.returncode] == ["", 3]
    assert "error: interrupted while asking the hub" in stderr
    assert "Traceback" not in stderr


# --- help, version, usage, imports ---


@pytest.mark.parametrize("name", PLUGINS)
@pytest.mark.parametrize("flag", ["--help", "-h", "-help"])
def test_help_names_every_setting(name: str, flag: str) -> None:
    done = execute(name, [flag], {"KUBERNETES_EXEC_INFO": "{broken"})
    assert [done.returncode, done.stderr] == [0, ""]
    assert done.stdout.startswith(f"usage: {name}-plugin ")
    for common in ("--help", "--version", "--timeout", "--allow-server", "--output", "--api-version", "--profile-args"):
        assert common in done.stdout


def test_help_says_default_variables_choices_and_who_may_set_it() -> None:
    text = respond(READER, ["--help"], World())
    for setting in READER.settings:
        assert f"  --{setting.name}" in text
        assert all(name in text for name in setting.env)
    assert "--secret-name TEXT*" in text
    assert "--namespace TEXT+" in text
    assert "--output json|token\n" in text
    assert "(default {clusterName})" in text


@pytest.mark.parametrize("name", PLUGINS)
def test_version_is_one_line(name: str) -> None:
    done = execute(name, ["--version"])
    assert [done.stdout, done.stderr, done.returncode] == [f"{name}-plugin {__version__}\n", "", 0]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["get-token"], "unknown word 'get-token'"),
        (["-"], "unknown word '-'"),
        (["a\nb"], "unknown word 'a?b'"),
        (["install", "/x"], "install copies the tree of the OCI image"),
        (["--nonsense"], "unknown flag --nonsense"),
    ],
)
def test_bad_usage_is_exit_status_2(arguments: list[str], why: str) -> None:
    with pytest.raises(BadRequest) as caught:
        respond(READER, arguments, World())
    assert why in caught.value.message
    assert caught.value.exit_status == 2


# What a run that needs no hub must not pay for.
HEAVY = {
    *("typing", "dataclasses", "re", "json", "logging", "argparse", "pathlib", "subprocess", "inspect", "http.client"),
    *("urllib", "urllib.parse", "urllib.request", "ssl", "socket", "tempfile", "datetime", "asyncio", "enum", "yaml"),
    *("importlib.metadata", "importlib.resources", "concurrent.futures", "threading", "random"),
    *("execcred.http", "execcred.kube", "execcred._hub", "execcred._x509", "execcred._urls", "execcred._children"),
    *("boto3", "botocore", "google", "google.auth", "azure", "azure.identity", "msal", "requests"),
}
NEEDS_HUB = {"execcred.kube", "execcred._hub"}  # their settings are declared there
RUN = "import sys\nsys.argv[1:] = {arguments!r}\nimport {module}\n{module}.main()"
SHOW = """
import os, sys
real = os._exit
def show(status):
    os.write(2, ("\\n" + " ".join(sys.modules)).encode())
    real(status)
os._exit = show
"""


def imported(name: str, arguments: list[str], variables: dict[str, str] | None = None) -> set[str]:
    """Return the modules that a run imports; Python starts as in a zipapp, without site."""
    module = f"execcred_{name.replace('-', '_')}"
    roots = [str(Path(execcred.__file__).parent.parent), *[str(each) for each in sys.path if "plugins/" in str(each)]]
    code = f"import sys\nsys.path[:0] = {roots!r}\n" + SHOW + RUN.format(arguments=arguments, module=module)
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, env=variables or {}, capture_output=True, text=True, check=False, timeout=60)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("name", PLUGINS)
@pytest.mark.parametrize(
    ("arguments", "variables"),
    [(["--help"], {}), (["--version"], {}), (["--nonsense"], {}), (["nonsense"], {})],
    ids=["help", "version", "flag", "word"],
)
def test_what_needs_no_hub_imports_nothing_heavy(name: str, arguments: list[str], variables: dict[str, str]) -> None:
    found = imported(name, arguments, variables)
    assert "execcred._run" in found
    assert found & HEAVY - NEEDS_HUB == set()


@pytest.mark.parametrize("name", PLUGINS)
def test_bad_input_costs_a_json_scanner_and_nothing_else(name: str) -> None:
    found = imported(name, [], {"KUBERNETES_EXEC_INFO": "[]"})
    assert "_json" in found
    assert (
        found
        & {"json", "re", "ssl", "socket", "yaml", "boto3", "botocore", "google.auth", "azure.identity", "requests"}
        == set()
    )


def test_the_package_exports_what_it_promises() -> None:
    assert len(set(execcred.__all__)) == len(execcred.__all__)
    assert all(hasattr(execcred, name) for name in execcred.__all__)


def test_the_answer_of_a_function_is_that_of_the_executable(config: dict[str, str]) -> None:
    assert execute("secretreader", [], config).stdout == respond(READER, [], execcred.Env(config))


def test_an_answer_may_be_asked_for_by_either_reader_in_a_pod() -> None:
    world = in_pod(World({"KUBERNETES_EXEC_INFO": exec_info({"name": "one"})}, secrets={"kueue/one": {}}, now=NOW))
    with pytest.raises(ExecCredError) as caught:
        respond(KUBECONFIG_READER, [], world)
    assert caught.value.code == "secret-key-missing"


@pytest.mark.parametrize("pattern", ["https://spoke.example", "10.0.0.0/33", "spoke:port"])
def test_a_pattern_of_allow_server_that_could_match_nothing_is_told(pattern: str, config: dict[str, str]) -> None:
    done = execute("secretreader", ["--allow-server", f"*.example,{pattern}"], config)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--allow-server: '{pattern}' is neither" in done.stderr
    assert "[setting-invalid]" in done.stderr


def test_without_allow_server_any_server_is_fine() -> None:
    request: Any = None
    check_server(request, ())
    assert [each.name for each in READER.settings if each.name == "allow-server"] == ["allow-server"]
