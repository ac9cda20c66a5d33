"""Runs a plugin as client-go does, but within a time limit and in a session of its own."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field

from execcred._errors import BadRequest, ExecCredError, LoginNeeded, TryAgain, printable

from ._answer import parse_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

    from execcred._protocol import Credential

    from ._profile import ExecSpec

    Child = subprocess.Popen[bytes]

TIMEOUT = 30.0  # seconds; the plugins of this suite end themselves after 8
STDOUT_LIMIT = 1 << 20
STDERR_LIMIT = 16 << 10  # of its end: what a plugin says last is why it failed
GRACE = 1.0  # seconds between SIGTERM, after which our plugins end their own children, and SIGKILL
BY_STATUS = {2: (BadRequest, "plugin-failed"), 3: (TryAgain, "plugin-failed"), 4: (LoginNeeded, "plugin-failed")}
PASSING = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # what this process or machine is short of
OTHERWISE = (ExecCredError, "plugin-failed")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run gave: the credential, the end of stderr, how long it took in seconds."""

    credential: Credential
    stderr: str = field(repr=False)
    seconds: float


def run_plugin(spec: ExecSpec, *, timeout: float = TIMEOUT, environ: Mapping[str, str] | None = None) -> Answer:
    """Run the plugin of a spec and return its answer; `environ` is the controller's environment, os.environ by default.

    The plugin is killed, with all of its group, after `timeout` seconds.
    Raises ExecCredError("plugin-not-runnable" | "plugin-bad-answer"), TryAgain("plugin-timeout" | "plugin-starved" |
    "credential-expired") and "plugin-failed" of the class that fits its exit status; what it wrote to stderr is a note
    of the exception.
    """
    start = time.monotonic()
    environment = dict(os.environ if environ is None else environ)
    executable = _executable(spec, environment)
    environment |= dict(spec.env) | {"KUBERNETES_EXEC_INFO": spec.exec_info()}
    with _start(spec, executable, environment) as child:
        output = _Output(child)
        try:
            whole = output.collect(start + timeout)
        finally:
            _end(child, output)
    try:
        if not whole:
            raise _unfinished(spec, output, timeout)
        if child.returncode:
            raise _failed(spec, child.returncode, output.stderr())
        credential = parse_answer(bytes(output.out), spec, time.time())
    except ExecCredError as error:
        if output.err:
            error.add_note(f"stderr of {spec.command}:\n{output.stderr()}")
        raise
    return Answer(credential, output.stderr(), time.monotonic() - start)


# --- starting ---


def _executable(spec: ExecSpec, environment: Mapping[str, str]) -> str:
    """Return the file to run: a bare name is looked up in the controller's PATH."""
    if "/" in spec.command:
        return spec.command
    found = shutil.which(spec.command, path=environment.get("PATH", ""))
    if not found:
        raise _not_runnable(spec, "it is not in PATH")
    return found


def _start(spec: ExecSpec, executable: str, environment: Mapping[str, str]) -> Child:
    try:
        return subprocess.Popen(
            [spec.command, *spec.args],
            executable=executable,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        if error.errno in PASSING:
            raise _starved(spec, error) from None
        raise _not_runnable(spec, _why(error, executable)) from None
    except ValueError:
        raise _not_runnable(spec, "its arguments or variables hold a character that none can have") from None


def _why(error: OSError, executable: str) -> str:
    if error.errno == errno.ENOENT and os.path.exists(executable):
        return "the interpreter of its first line, or its loader, does not exist"
    if error.errno == errno.E2BIG:
        return "arguments and variables are too large, most likely the cluster's CA data"
    if error.errno == errno.ENOEXEC:
        return "it is no executable of this machine's kind"
    return (error.strerror or "it cannot be started").lower()


def _starved(spec: ExecSpec, error: OSError) -> TryAgain:
    return TryAgain(
        "plugin-starved",
        f"provider {spec.provider!r}: {spec.command} cannot be run now: {str(error.strerror).lower()}",
        "raise the controller's limits of open files, processes and memory, or let it reach fewer clusters at once",
    )


def _not_runnable(spec: ExecSpec, what: str) -> ExecCredError:
    return ExecCredError(
        "plugin-not-runnable",
        f"provider {spec.provider!r}: {spec.command} cannot be run: {what}",
        printable(spec.install_hint) or "look at the command in the provider file and at what is mounted in the pod",
    )


# --- reading ---


class _Output:
    """stdout up to a limit, and the end of stderr."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.out = bytearray()
        self.err = bytearray()
        self.open = True  # has somebody still a hand on the pipes?

    def stderr(self) -> str:
        """Return lines fit for a log: plugins repeat what profiles say, which may be a terminal's commands."""
        lines = self.err.decode("utf-8", "replace").strip().expandtabs().splitlines()
        return "\n".join([printable(line, STDERR_LIMIT) for line in lines])

    def collect(self, end: float) -> bool:
        """Read until the plugin has ended; False when the time or the limit of stdout is over before."""
        with selectors.PollSelector() as selector:  # the one that needs no file descriptor: there may be none left
            for stream, kept in ((self.child.stdout, self.out), (self.child.stderr, self.err)):
                if stream:  # which both are
                    selector.register(stream, selectors.EVENT_READ, kept)
            while selector.get_map():
                left = end - time.monotonic()
                if left <= 0 or len(self.out) > STDOUT_LIMIT:
                    return False
                # Not all of the time left: a grandchild may keep the pipes open when the plugin has long ended.
                ended = self.child.poll() is not None
                ready = selector.select(0 if ended else min(left, 0.1))
                for key, _ in ready:
                    self._read(selector, key)
                if ended and not ready:
                    return True
        self.open = False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(max(end - time.monotonic(), 0))
        return self.child.returncode is not None and len(self.out) <= STDOUT_LIMIT

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        stream: IO[bytes] = key.fileobj  # type: ignore[assignment]  # what was registered
        chunk = os.read(stream.fileno(), 65536)
        if not chunk:
            selector.unregister(stream)
        key.data.extend(chunk)
        if key.data is self.err:
            del self.err[:-STDERR_LIMIT]


def _end(child: Child, output: _Output) -> None:
    """End the plugin, if it still runs, and those of its group that keep its pipes open."""
    if child.poll() is None:
        _signal(child, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
        _signal(child, signal.SIGKILL)
    elif output.open:
        _signal(child, signal.SIGKILL)


def _signal(child: Child, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
        os.killpg(child.pid, number)


# --- failing ---


def _unfinished(spec: ExecSpec, output: _Output, timeout: float) -> ExecCredError:
    if len(output.out) > STDOUT_LIMIT:
        return ExecCredError(
            "plugin-bad-answer",
            f"provider {spec.provider!r}: {spec.command} printed more than {STDOUT_LIMIT} bytes",
            "run it by hand: a credential is a few thousand bytes",
        )
    return TryAgain(
        "plugin-timeout",
        f"provider {spec.provider!r}: {spec.command} did not end within {timeout:g} s and was killed",
        "run it by hand and look at network, DNS and proxy",
    )


def _failed(spec: ExecSpec, status: int, stderr: str) -> ExecCredError:
    """Return the plugin's own error and hint where it tells them as the plugins of this suite do."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    told = [line for line in lines if ": error: " in line] or lines[-1:]
    hints = [line for line in lines if line.startswith("hint: ")]
    how = f"exited with {status}" if status > 0 else f"was ended by signal {-status}"
    said = f": {printable(told[-1].partition(': error: ')[2] or told[-1], 500)}" if told else ", and said nothing"
    kind, code = BY_STATUS.get(status, OTHERWISE)
    return kind(
        code,
        f"provider {spec.provider!r}: {spec.command} {how}{said}",
        printable(hints[-1].removeprefix("hint: "), 500) if hints else "run it by hand with the same arguments",
    )
