"""The shell around the sub-commands: the only module of the tool that touches argv, environ, stdout and exit status."""

from __future__ import annotations

import os
import signal
import sys

from execcred._env import Env
from execcred._errors import BadRequest, ExecCredError, TryAgain, printable
from execcred._run import report, unexpected, write_all
from execcred._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

# Sub-command: module of this package, summary. A module has `answer(arguments, env) -> (text for stdout, exit status)`.
COMMANDS = {
    "provider-config": ("_provider_config", "print what a consumer takes: config, pod patch, RBAC, ClusterProfile"),
    "lint": ("_lint", "check provider files, ClusterProfiles, kubeconfigs, cluster Secrets, Kueue configuration"),
    "doctor": ("_doctor", "find out step by step why a cluster cannot be reached, and what to do next"),
    "kubeconfig": ("_fleet_kubeconfig", "write one context per ClusterProfile of the hub into a kubeconfig"),
    "conformance": ("_conformance", "test any plugin, in any language, against this suite's vectors"),
    "explain": ("_explain", "tell cause, remedy and example of an error code or lint rule"),
}


def respond(arguments: Sequence[str], env: Env) -> tuple[str, int]:
    """Run one sub-command; return the text for stdout and the exit status.

    Raises BadRequest("usage") and what the sub-command raises.
    """
    word = arguments[0] if arguments else ""
    if word in ("", "help", "-h", "-help", "--help"):
        return _help(), 0
    if word in ("version", "-version", "--version"):
        return f"execcred {__version__}\n", 0
    if word not in COMMANDS:
        raise BadRequest(
            "usage", f"unknown sub-command {printable(word, 60)!r}", f"known are {', '.join(COMMANDS)}; see --help"
        )
    from importlib import import_module

    result: tuple[str, int] = import_module(f"execcred.tool.{COMMANDS[word][0]}").answer(arguments[1:], env)
    return result


def _help() -> str:
    rows = [f"  {name:<17}{summary}" for name, (_, summary) in COMMANDS.items()]
    exits = "Exit status: 0 fine, 1 change something, 2 bad usage or file, 3 try again, 4 a person must log in."
    return "\n".join(["usage: execcred COMMAND [flags]; execcred COMMAND --help", "", *rows, "", exits, ""])


def main() -> NoReturn:
    """Run the tool."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: a kubeconfig's lock goes with the tool
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    env = Env(os.environ, terminal=os.isatty(0), prefix="execcred: ")
    sys.exit(_run(sys.argv[1:], env))


def _run(arguments: Sequence[str], env: Env) -> int:
    try:
        text, status = respond(arguments, env)
        env.step = "writing the answer"
        write_all(1, text)
    except ExecCredError as error:
        return report(env, error)
    except KeyboardInterrupt:
        return report(env, TryAgain("interrupted", f"interrupted while {env.step}"))
    except BrokenPipeError:
        return report(env, ExecCredError("stdout-closed", "stdout cannot be written: its reader is gone"))
    except Exception as error:  # a traceback helps nobody who only wants an answer
        return report(env, unexpected(env, error))
    return status
