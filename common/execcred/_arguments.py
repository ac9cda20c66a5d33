"""The command line: flags in Go's and everybody's spelling, the seal before a profile's flags, words. Pure."""

from __future__ import annotations

from ._errors import BadRequest, ExecCredError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ._settings import Setting

SEAL = "--profile-args"


class CommandLine:
    """Arguments taken apart: the admin's flags, the profile's (behind the seal), the words; values still text."""

    __slots__ = ("admin", "profile", "words")

    def __init__(self) -> None:
        self.admin: dict[str, str] = {}
        self.profile: dict[str, str] = {}
        self.words: list[str] = []


def command_line(table: Sequence[Setting], arguments: Sequence[str]) -> CommandLine:
    """Take the arguments apart; of a repeated flag the last wins.

    Raises BadRequest("usage"), ExecCredError("profile-refused").
    """
    spellings = [(text.partition("="), setting) for setting in table for text in (setting.name, *setting.aliases)]
    flags = {name: (setting, implied) for (name, _, implied), setting in spellings}
    line = CommandLine()
    given = line.admin
    rest = iter(arguments)
    for argument in rest:
        if argument in (SEAL, SEAL[1:]):
            given = line.profile
        elif argument.startswith("-") and argument.strip("-"):
            setting, text = _flag(flags, argument, rest)
            if setting.guard and given is line.profile:
                raise ExecCredError(
                    "profile-refused", f"a profile may not set --{setting.name}", f"put it before {SEAL}"
                )
            given[setting.name] = text
        elif given is line.profile:
            raise ExecCredError(
                "profile-refused", f"a word behind {SEAL} that is no flag", "profiles may give flags only"
            )
        else:
            line.words.append(argument)
    return line


def _flag(flags: Mapping[str, tuple[Setting, str]], argument: str, rest: Iterator[str]) -> tuple[Setting, str]:
    """Read one flag, and its value from `rest` when it does not hold it."""
    name, equals, text = argument.removeprefix("-").removeprefix("-").partition("=")
    setting, implied = flags.get(name, (None, ""))
    if setting is None:
        similar = nearest(name, flags)
        hint = f"did you mean --{similar}? See --help" if similar else "see --help"
        raise BadRequest("usage", f"unknown flag {printable(argument.partition('=')[0], 60)}", hint)
    if not equals:
        text = implied or ("true" if setting.kind == "flag" else next(rest, ""))
        if text.startswith("-"):
            raise BadRequest("usage", f"flag --{name} needs a value", f"write --{name}=VALUE if it begins with a dash")
    if not text:
        # Empty is mostly an unset variable of a script; for a guard it would open the door.
        raise BadRequest("usage", f"flag --{name} needs a value", "leave the flag out to unset it")
    return setting, text


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the one of `known` that shares most letter pairs with `name`, or else begins like it; "" if none does."""

    def pairs(text: str) -> set[str]:
        return {f" {text}"[i : i + 2] for i in range(len(text))}

    mine = pairs(name)
    scores = {other: len(mine & pairs(other)) / (len(mine | pairs(other)) or 1) for other in known}
    best = max(scores, key=lambda other: scores[other])
    return best if scores[best] else ""
