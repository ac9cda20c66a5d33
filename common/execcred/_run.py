"""The shell around a plugin: the only module that touches argv, environ, stdin, stdout, stderr and the exit status."""

from __future__ import annotations

import gc
import os
import sys
import time

from ._arguments import command_line
from ._env import INTERACTIVE_TIMEOUT, Env, stderr
from ._errors import BadRequest, ExecCredError, TryAgain, library_missing, printable
from ._protocol import GROUP, SET_CLUSTER_INFO, Credential, Request, finish, parse_request, render
from ._settings import COMMON, Setting, Settings, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    CredentialFunction = Callable[[Request, Settings, Env], Credential]


class Plugin:
    """A plugin: its name, one sentence, its settings, the function that decides the credential, accepted words."""

    __slots__ = ("credential", "name", "settings", "summary", "words")

    def __init__(
        self,
        name: str,
        summary: str,
        settings: tuple[Setting, ...],
        credential: CredentialFunction,
        words: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.summary = summary
        self.settings = (*settings, *COMMON)
        self.credential = credential
        self.words = words


def respond(plugin: Plugin, arguments: Sequence[str], env: Env) -> str:
    """Answer one request: the text for stdout. All of a run but its borders, so tests can call it.

    Raises ExecCredError and its subclasses; `env.variables` holds KUBERNETES_EXEC_INFO.
    """
    line = command_line(plugin.settings, arguments)
    if "help" in line.admin or "version" in line.admin:
        from ._help import help_text, version_text

        return help_text(plugin) if "help" in line.admin else version_text(plugin)
    if line.words[:1] == ["install"]:
        env.start(INTERACTIVE_TIMEOUT, False)  # a slow volume takes longer than a credential may
        return _install(line.words[1:])
    if line.words and " ".join(line.words) not in plugin.words:
        hint = f"accepted are flags and {', '.join(plugin.words) or 'no words'}; see --help"
        raise BadRequest("usage", f"unknown word {printable(' '.join(line.words), 60)!r}", hint)
    request = parse_request(env.variables.get("KUBERNETES_EXEC_INFO"))
    request.interactive = request.interactive and env.terminal
    settings = resolve(plugin.settings, line, env.variables, request.config)
    patient = request.interactive and not settings.given("timeout")
    env.start(INTERACTIVE_TIMEOUT if patient else settings.seconds("timeout"), settings.text("log-level") == "debug")
    _explain(plugin, request, settings, env)
    check_server(request, settings.items("allow-server"))
    credential = finish(plugin.credential(request, settings, env), env.now(), _leaf_end)
    if settings.text("output") == "token":
        if not credential.token:
            raise BadRequest("output-impossible", "--output token: the credential is a client certificate")
        return credential.token + "\n"
    version = request.api_version or f"{GROUP}/{settings.text('api-version')}"
    return render(credential, version, env.now())


def _explain(plugin: Plugin, request: Request, settings: Settings, env: Env) -> None:
    for name, source in settings.sources.items():
        env.debug(f"{name} from {source}")
    known = {key for setting in plugin.settings for key in setting.config}
    for key in request.config.keys() - known:
        env.debug(f"config key {key!r} is not known here and ignored")


def _leaf_end(certificate: str, key: str, now: float) -> float:
    from ._x509 import leaf_end

    return leaf_end(certificate, key, now)


def _install(words: list[str]) -> str:
    try:
        import execcred_install  # type: ignore[import-not-found,unused-ignore]  # in images only
    except ImportError:
        raise BadRequest(
            "install-impossible",
            "install copies the tree of the OCI image, and this is another form of the plugin",
            "run it in the image with args [install, DIR]; this form is installed by copying its one file",
        ) from None
    return str(execcred_install.install(words))


def check_server(request: Request, allowed: tuple[str, ...]) -> None:
    """Refuse to hand a credential to a server, or through a proxy, that the admin has not listed.

    Raises ExecCredError("server-refused"), BadRequest("server-unknown" | "setting-invalid").
    """
    if not allowed:
        return
    from ._urls import is_pattern, matches, shown

    for pattern in allowed:
        if not is_pattern(pattern):
            what = f"--allow-server: {printable(pattern, 60)!r} is neither a host, a glob nor a CIDR"
            raise BadRequest("setting-invalid", what, "write it like *.eks.amazonaws.com, 10.0.0.0/8 or host:6443")
    cluster = request.cluster
    if cluster is None or not cluster.server:
        raise BadRequest("server-unknown", "--allow-server is set, but the client named no server", SET_CLUSTER_INFO)
    hint = "correct the ClusterProfile, or add the host to --allow-server"
    if cluster.insecure_skip_tls_verify:
        raise ExecCredError(
            "server-refused", "insecure-skip-tls-verify: whoever answers could take the credential", hint
        )
    for name, url in (("server", cluster.server), ("proxy-url", cluster.proxy_url)):
        if url and not matches(url, allowed, https=name == "server"):
            raise ExecCredError("server-refused", f"{name} {shown(url)} is not in --allow-server", hint)


# --- the borders ---


def run(plugin: Plugin) -> Callable[[], NoReturn]:
    """Return the `main` of a plugin's executable."""

    def main() -> NoReturn:
        gc.disable()  # a short run only pays for it
        env = Env(os.environ, terminal=os.isatty(0), prefix=f"{plugin.name}-plugin: ")
        status = _run(plugin, env)
        _end_children()
        os._exit(status)  # skips the interpreter's slow farewell

    return main


def _run(plugin: Plugin, env: Env) -> int:
    try:
        env.step = "taking over stdout"  # there may be no /dev/null, or no free file descriptor
        stdout = _guard_streams()
        env.step = "starting the thread of the deadline"  # a pod's limit of processes may forbid it
        _watch(env)
        env.step = "starting"
        answer = respond(plugin, sys.argv[1:], env)
        env.step = "writing the answer"
        write_all(stdout, answer)
    except ExecCredError as error:
        return report(env, error)
    except OSError as error:
        if error.filename is None and env.step == "writing the answer":
            return report(env, ExecCredError("stdout-closed", f"stdout cannot be written: {error.strerror}"))
        return report(env, unexpected(env, error))
    except KeyboardInterrupt:
        return report(env, TryAgain("interrupted", f"interrupted while {env.step}"))
    except BaseException as error:  # a foreign exception never crosses this border
        return report(env, unexpected(env, error))
    return 0


def unexpected(env: Env, error: BaseException) -> ExecCredError:
    """Return our error for somebody else's exception; where it came from is told at debug level."""
    trace = error.__traceback__
    while trace:  # places only: a message of somebody else's may hold a secret
        env.debug(f"at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    if isinstance(error, ImportError):
        return library_missing(error)
    message = f"unexpected {type(error).__name__} while {env.step}"
    return ExecCredError("internal", message, "run it with --log-level debug and report what it shows")


def report(env: Env, error: ExecCredError) -> int:
    """Write an error and its hint to stderr, each on one line; return the exit status."""
    hint = f"hint: {printable(error.hint, 500)}\n" if error.hint else ""
    env.last_word.acquire()  # for good: of the deadline and what fails because of it, the first one speaks
    stderr(f"{env.prefix}error: {printable(error.message, 1000)} [{error.code}]\n{hint}")
    return error.exit_status


def _guard_streams() -> int:
    """Return a private duplicate of stdout, -1 when closed; whatever SDKs and children print goes to stderr."""
    closed = []
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            closed.append(number)
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: a socket must not become stdout
    stdout = -1 if 1 in closed else os.dup(1)
    os.dup2(2, 1)
    if not os.isatty(0):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # a client's open pipe would hang a reader for ever
    return stdout


def write_all(stdout: int, text: str) -> None:
    """Write a text to a file descriptor, whole; raises OSError."""
    data = text.encode()
    while data:
        try:
            data = data[os.write(stdout, data) :]
        except BlockingIOError:  # whoever shares the pipe may have made it so; half an answer helps nobody
            time.sleep(0.01)


def _end_children() -> None:
    if "execcred._children" in sys.modules:
        sys.modules["execcred._children"].end_children()


def _watch(env: Env) -> None:
    """End the process and its children at the deadline, also when DNS or an SDK is stuck."""
    import _thread
    import posix

    def speak() -> None:
        end(report(env, env.late()))

    def end(status: int) -> None:
        _end_children()
        posix._exit(status)  # not by `os`, where a debugger's or tracer's hook would run beside the stuck thread

    def watch() -> None:
        while (left := env.remaining()) > 0:
            time.sleep(min(left, 0.25))
        _thread.start_new_thread(speak, ())
        time.sleep(0.5)  # stderr may be stuck, too
        end(TryAgain.exit_status)

    _thread.start_new_thread(watch, ())
