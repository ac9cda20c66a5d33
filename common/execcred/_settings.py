"""One declared table per plugin drives flags, variables, config keys, trust, --help and the README. Pure.

Precedence: admin's args > admin's environment > profile > default. A profile's values are the exec info's config and,
above it, whatever stands behind `--profile-args`.
"""

from __future__ import annotations

from ._errors import BadRequest, ExecCredError
from ._protocol import json_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ._arguments import CommandLine

    Value = str | bool | float | tuple[str, ...]

PROFILE = "profile"  # trust: a profile may set it
ADMIN = "admin"  # trust: a profile may not


class Setting:
    """One setting: flag `--secret-name`, variable `EXECCRED_SECRET_NAME`, config key `secretName`.

    kind is text, flag, seconds, list or choice; env, config and aliases are further (native, drop-in) names, None
    means no config key at all; an alias `token-only=token` is a bare flag that implies a value; trust is PROFILE,
    ADMIN or the name of the guard flag that lets a profile set it; with `own`, a profile may name the consumer's own
    value, which the plugin checks; a `guard` is a flag only.
    """

    __slots__ = ("aliases", "choices", "config", "default", "env", "guard", "help", "kind", "name", "own", "trust")

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002  # the word that --help prints
        *,
        kind: str = "text",
        default: Value | None = None,
        env: tuple[str, ...] = (),
        config: tuple[str, ...] | None = (),
        aliases: tuple[str, ...] = (),
        choices: tuple[str, ...] = (),
        trust: str = ADMIN,
        own: bool = False,
        guard: bool = False,
    ) -> None:
        words = name.split("-")
        camel = words[0] + "".join([word.capitalize() for word in words[1:]])
        self.name = name
        self.help = help
        self.kind = kind
        self.default = default
        self.env = () if guard else ("EXECCRED_" + "_".join(words).upper(), *env)
        self.config = () if config is None else (camel, *config)
        self.aliases = aliases
        self.choices = choices
        self.trust = trust
        self.own = own
        self.guard = guard


COMMON = (
    Setting("help", "print this help", kind="flag", config=None, aliases=("h",), guard=True),
    Setting("version", "print the version", kind="flag", config=None, guard=True),
    Setting(
        "api-version",
        "answer when no version is asked for",
        kind="choice",
        choices=("v1beta1", "v1"),
        default="v1beta1",
    ),
    Setting("timeout", "hard deadline for everything; 300 when a person may be asked", kind="seconds", default=8.0),
    Setting("log-level", "debug names each choice", kind="choice", choices=("error", "debug"), default="error"),
    Setting(
        "output",
        "token prints the bare token",
        kind="choice",
        choices=("json", "token"),
        default="json",
        aliases=("token-only=token",),
    ),
    Setting(
        "allow-server", "only for these servers: host globs (* crosses dots) or CIDRs, :port", kind="list", guard=True
    ),
)


class Settings:
    """The resolved values of one run, with where each came from."""

    def __init__(self, values: dict[str, Value], sources: dict[str, str]) -> None:
        self._values = values
        self.sources = sources

    def text(self, name: str) -> str:
        """Return a text or choice setting, "" when unset."""
        return str(self._values.get(name, ""))

    def flag(self, name: str) -> bool:
        """Return a flag setting."""
        return self._values.get(name) is True

    def seconds(self, name: str) -> float:
        """Return a duration in seconds, 0.0 when unset."""
        value = self._values.get(name)
        return value if isinstance(value, float) else 0.0

    def items(self, name: str) -> tuple[str, ...]:
        """Return the items of a list setting, () when unset."""
        value = self._values.get(name)
        return value if isinstance(value, tuple) else ()

    def source(self, name: str) -> str:
        """Return "flag --x", "variable X", "config key x", "default" or "" (unset)."""
        return self.sources.get(name, "")

    def given(self, name: str) -> bool:
        """Tell whether somebody set it."""
        return self.source(name) not in ("", "default")

    def from_profile(self, name: str) -> bool:
        """Tell whether the value is the profile author's."""
        return self.source(name).startswith(("config key", "profile flag"))


def resolve(
    table: Sequence[Setting],
    line: CommandLine,
    variables: Mapping[str, str],
    config: Mapping[str, Any],
) -> Settings:
    """Resolve all settings of `table` from the admin's flags and variables and the profile's flags and config.

    Raises BadRequest("setting-invalid" | "config-invalid"), ExecCredError("profile-refused").
    """
    values: dict[str, Value] = {}
    sources: dict[str, str] = {}
    guards = {
        each.name: parse(each, line.admin[each.name], f"flag --{each.name}")
        for each in table
        if each.guard and each.name in line.admin
    }
    for setting in table:
        admin = _from_admin(setting, line.admin, variables)
        profile = _from_profile(setting, line.profile, config)
        if profile and setting.trust != PROFILE:
            _check_trust(setting, profile, admin, guards)
        found = admin or profile or ((setting.default, "default") if setting.default is not None else None)
        if found:
            values[setting.name], sources[setting.name] = found
    return Settings(values, sources)


def _from_admin(setting: Setting, given: Mapping[str, str], variables: Mapping[str, str]) -> tuple[Value, str] | None:
    if setting.name in given:
        return parse(setting, given[setting.name], f"flag --{setting.name}"), f"flag --{setting.name}"
    for name in setting.env:
        if variables.get(name):  # an empty variable counts as unset
            return parse(setting, variables[name], f"variable {name}"), f"variable {name}"
    return None


def _from_profile(setting: Setting, sealed: Mapping[str, str], config: Mapping[str, Any]) -> tuple[Value, str] | None:
    if setting.name in sealed:
        source = f"profile flag --{setting.name}"
        return parse(setting, sealed[setting.name], source), source
    for key in setting.config:
        value = config.get(key)
        if value not in (None, ""):  # as for a variable
            return _from_json(setting, value, f"config key {key}"), f"config key {key}"
    return None


def _check_trust(
    setting: Setting, profile: tuple[Value, str], admin: tuple[Value, str] | None, guards: Mapping[str, Value]
) -> None:
    """Refuse a value that a profile may not set, unless it is the admin's own or a guard flag allows it."""
    value, source = profile
    if admin and admin[0] == value:
        return
    hint = f"the admin can set --{setting.name}"
    if setting.trust != ADMIN:
        allowed = guards.get(setting.trust, ())
        if allowed is True or (isinstance(allowed, tuple) and ("*" in allowed or value in allowed)):
            return
        if admin is None and setting.own:
            return  # what is the consumer's own is known only once the hub is
        hint += f", or allow it with --{setting.trust}"
    raise ExecCredError("profile-refused", f"a profile may not set {setting.name} ({source})", hint)


# --- values ---


def shown_default(setting: Setting) -> str:
    """Return the default as help and manuals show it, "" for none."""
    if isinstance(setting.default, float):
        return f"{setting.default:g}s"
    return "" if setting.default is None else str(setting.default)


def parse(setting: Setting, text: str, source: str) -> Value:
    """Turn the text of a flag or variable into the value of a setting; raises BadRequest("setting-invalid")."""
    if not text.isprintable():
        raise _bad(source, "holds a control character or is not UTF-8")
    if setting.kind == "flag":
        if text.lower() not in ("true", "false", "1", "0", "t", "f", "yes", "no"):
            raise _bad(source, "must be true or false")
        return text.lower() in ("true", "1", "t", "yes")
    if setting.kind == "seconds":
        return _seconds(text, source)
    if setting.kind == "list":
        items = tuple([item.strip() for item in text.split(",") if item.strip()])
        if not items:
            raise _bad(source, "is an empty list")
        return items
    if setting.kind == "choice" and text not in setting.choices:
        raise _bad(source, f"must be one of {', '.join(setting.choices)}")
    return text


def _from_json(setting: Setting, value: Any, source: str) -> Value:
    wanted = {"flag": bool, "seconds": int | float | str}.get(setting.kind, str)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        word = {"flag": "a boolean", "seconds": "a number of seconds"}.get(setting.kind, "a string")
        raise BadRequest(
            "config-invalid",
            f"{source} must be {word}, is {json_type(value)}",
            "correct the extension client.authentication.k8s.io/exec of the ClusterProfile's access provider",
        )
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return parse(setting, text, source)


def _seconds(text: str, source: str) -> float:
    """Read `8`, `1.5`, `30s`, `2m30s`, `500ms` as seconds."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "i": 0.001}
    bare = text[-1:].isdigit() and not text.strip("0123456789.")
    total, number = 0.0, ""
    # One letter a unit; not by regular expression, whose import takes longer than the rest of a cache hit.
    for char in f"{text}s" if bare else text.replace("i", "?").replace("ms", "i"):
        if char in units and _is_decimal(number):
            total, number = total + float(number) * units[char], ""
        else:
            number += char
    if number or not 0 < total <= 86400:
        raise _bad(source, "must be seconds or a duration such as 8, 30s or 2m, more than 0 and at most a day")
    return total


def _is_decimal(text: str) -> bool:
    whole, dot, fraction = text.partition(".")
    parts = [whole, fraction] if dot else [whole]
    return all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)


def _bad(source: str, what: str) -> BadRequest:
    return BadRequest("setting-invalid", f"{source} {what}", "correct it; --help shows what each setting takes")
