"""The provider file of a controller (`--clusterprofile-provider-file`): JSON that says which plugin serves which name.

Source of the format: KEP-4322, "Configuring Plugins in the Controller"; as there, unknown fields are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from execcred._errors import BadRequest, printable
from execcred._protocol import VERSIONS

from ._format import (
    CLI_POLICIES,
    ENV_POLICIES,
    IGNORE,
    INTERACTIVE_MODES,
    PROVIDER_FIELDS,
    Fields,
    text_of,
    variable_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    from execcred._errors import Fail

SIZE_LIMIT = 4 << 20


@dataclass(frozen=True, slots=True)
class Provider:
    """One entry: the name that a ClusterProfile asks for, the plugin that serves it, what profiles may add.

    `env` is not shown by repr: admins keep secrets there, although they should not.
    """

    name: str
    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    provide_cluster_info: bool = False
    args_policy: str = IGNORE
    env_policy: str = IGNORE


@dataclass(frozen=True, slots=True)
class ProviderFile:
    """The providers in the order of the file, which is the order of preference."""

    providers: tuple[Provider, ...]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ProviderFile:
        """Read a provider file.

        Raises BadRequest("provider-file-invalid"), which names file and field, or the line that is not JSON.
        """
        name = printable(str(path))

        def fail(what: str) -> BadRequest:
            return BadRequest(
                "provider-file-invalid",
                f"provider file {name}: {what}",
                "correct it; `execcred lint FILE` tells more, and `execcred provider-config` writes such files",
            )

        return cls.parse(_read(path, fail), fail)

    @classmethod
    def parse(cls, text: str, fail: Fail) -> ProviderFile:
        """Read the text of a provider file; `fail` makes the error from what is wrong."""
        document = Fields(_json(text, fail), "", fail, fold=True)
        providers = tuple(_provider(value, where, fail) for where, value in document.items("providers"))
        if not providers:
            raise document.fail("providers", "must be an array with at least one provider")
        names = [each.name for each in providers]
        for index, provider_name in enumerate(names):
            if provider_name in names[:index]:
                raise fail(f"providers[{index}].name {printable(provider_name, 60)!r} is there twice")
        return cls(providers)


def _read(path: str | os.PathLike[str], fail: Fail) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise fail((error.strerror or "cannot be read").lower()) from None
    except ValueError:
        raise fail("no file can have this name") from None
    if len(content) > SIZE_LIMIT:
        raise fail(f"it is larger than {SIZE_LIMIT} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fail(f"byte {error.start} is not UTF-8 text") from None


def _json(text: str, fail: Fail) -> Any:
    import json

    def pairs(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(entries)
        if len(fields) < len(entries):
            names = [name for name, _ in entries]
            twice = next(name for name in names if names.count(name) > 1)
            raise fail(f"the key {printable(twice, 60)!r} is there twice in one object")
        return fields

    if not text.strip():
        raise fail("it is empty")
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        yaml = "" if text.lstrip().startswith(("{", "[")) else " (YAML is not read)"
        raise fail(f"line {error.lineno} is not valid JSON{yaml}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise fail("it is not valid JSON: nested too deep, or a number out of range") from None


def _provider(value: Any, where: str, fail: Fail) -> Provider:
    outer = Fields(value, where, fail, fold=True)
    name = outer.text("name")
    if not name:
        raise outer.fail("name", "is missing")
    if not outer.get("execConfig"):
        raise outer.fail("execConfig", "is missing, or empty")
    config = Fields(outer.get("execConfig"), outer.path("execConfig"), fail, fold=True)
    version = config.text("apiVersion", VERSIONS)
    if not version:
        raise config.fail("apiVersion", f"is missing; it must be one of {', '.join(VERSIONS)}")
    if config.text("interactiveMode", INTERACTIVE_MODES) == "Always":
        raise config.fail("interactiveMode", "is Always, and no controller has a terminal; use Never")
    return Provider(
        name=name,
        api_version=version,
        command=_command(config),
        args=tuple(text_of(each, place, fail) for place, each in config.items("args")),
        env=tuple(_variable(each, place, fail) for place, each in config.items("env")),
        install_hint=config.text("installHint"),
        provide_cluster_info=config.flag("provideClusterInfo"),
        args_policy=outer.text(PROVIDER_FIELDS[2], CLI_POLICIES) or IGNORE,
        env_policy=outer.text(PROVIDER_FIELDS[3], ENV_POLICIES) or IGNORE,
    )


def _command(config: Fields) -> str:
    command = config.text("command")
    if not command:
        raise config.fail("command", "is missing")
    if "/" in command and not command.startswith("/"):
        raise config.fail("command", "is relative to wherever the controller runs; write an absolute path")
    return command


def _variable(value: Any, where: str, fail: Fail) -> tuple[str, str]:
    row = Fields(value, where, fail, fold=True)
    return variable_of(row.text("name"), row.path("name"), fail), row.text("value")
