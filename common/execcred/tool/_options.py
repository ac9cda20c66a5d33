"""Flags of the sub-commands: the layer's settings table and parser, without variables or profiles."""

from __future__ import annotations

from execcred._arguments import command_line
from execcred._errors import BadRequest
from execcred._settings import Setting, resolve, shown_default

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from execcred._settings import Settings


def option(
    name: str, text: str, kind: str = "text", choices: tuple[str, ...] = (), default: str | float | None = None
) -> Setting:
    """Return a setting of the tool: a flag only, no variable decides what a generator prints."""
    return Setting(name, text, kind=kind, choices=choices, default=default, guard=True)


HELP = option("help", "print this help", "flag")
HUB = (
    option("kubeconfig", "the hub's kubeconfig; else KUBECONFIG, in-cluster, ~/.kube/config"),
    option("context", "context of the hub's kubeconfig"),
)
OUTPUT = option("output", "how the answer looks", "choice", ("text", "json"), "text")


def parse(usage: str, table: Sequence[Setting], arguments: Sequence[str]) -> tuple[Settings, list[str], str]:
    """Return settings, words and, when --help is among the arguments, the help text.

    Raises BadRequest("usage" | "setting-invalid").
    """
    table = (*table, HELP)
    line = command_line(table, arguments)
    if line.profile:
        raise BadRequest("usage", "--profile-args has no meaning here", "put it into the provider file by hand")
    settings = resolve(table, line, {}, {})
    return settings, line.words, help_text(usage, table) if settings.flag("help") else ""


def help_text(usage: str, table: Sequence[Setting]) -> str:
    """Return what --help of a sub-command prints."""
    lines = [f"usage: execcred {usage}", ""]
    for each in table:
        value = "" if each.kind == "flag" else " " + ("|".join(each.choices) or each.kind.upper())
        default = f" (default {text})" if (text := shown_default(each)) else ""
        lines.append(f"  --{each.name}{value}\n        {each.help}{default}")
    return "\n".join(lines) + "\n"
