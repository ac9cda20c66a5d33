"""From a ClusterProfile and a provider file to the one plugin run that reaches the cluster. Pure, and changes nothing.

Source of the rules: KEP-4322, "Access Provider Plugin Design". A ClusterProfile is hostile input.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from execcred._errors import ExecCredError, printable
from execcred._urls import is_host, parse_url

from ._format import (
    API_VERSIONS,
    APPEND,
    ARGS,
    CODE,
    ENVS,
    EXEC,
    IGNORE,
    READY,
    REPLACE,
    Fields,
    text_of,
    variable_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from execcred._errors import Fail

    from ._provider_file import Provider, ProviderFile


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a cluster is and how its TLS is verified; `ca_data` is base64 of PEM, as the profile has it."""

    server: str
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    ca_data: str = field(default="", repr=False)
    proxy_url: str = field(default="", repr=False)  # it may hold a password
    disable_compression: bool = False

    @property
    def ca_pem(self) -> str:
        """The CA bundle as PEM text, "" when there is none."""
        import binascii

        # Bundles have comments in any language, and ssl takes ASCII only.
        return binascii.a2b_base64(self.ca_data).decode("ascii", "replace").replace("\ufffd", "?")

    def as_kubeconfig(self) -> dict[str, Any]:
        """Return the fields that are set, as kubeconfigs and exec infos spell them."""
        fields = {
            "server": self.server,
            "tls-server-name": self.tls_server_name,
            "insecure-skip-tls-verify": self.insecure_skip_tls_verify,
            "certificate-authority-data": self.ca_data,
            "proxy-url": self.proxy_url,
            "disable-compression": self.disable_compression,
        }
        return {name: value for name, value in fields.items() if value or name == "server"}


@dataclass(frozen=True, slots=True)
class ExecSpec:
    """All that a plugin run depends on; equal specs give the same credential.

    `env` is a list in which the last one of a name wins; `config` is the exec extension as JSON text.
    """

    provider: str
    api_version: str
    command: str
    cluster: Cluster
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    provide_cluster_info: bool = False
    config: str = "null"
    install_hint: str = field(default="", repr=False)

    def exec_info(self) -> str:
        """Return the text of KUBERNETES_EXEC_INFO, as client-go writes it."""
        spec: dict[str, Any] = {"interactive": False}
        if self.provide_cluster_info:
            spec = {"cluster": {**self.cluster.as_kubeconfig(), "config": json.loads(self.config)}, **spec}
        info = {"kind": "ExecCredential", "apiVersion": self.api_version, "spec": spec}
        return json.dumps(info, separators=(",", ":")) + "\n"


def select(profile: Any, providers: ProviderFile) -> ExecSpec:
    """Return what to run for a ClusterProfile: a mapping, or an object with `to_dict()`.

    The first provider of the file that the profile names wins, and `accessProviders` beat the deprecated
    `credentialProviders` of the same name.
    Raises ExecCredError("profile-invalid" | "provider-unmatched" | "profile-refused").
    """
    document, fail = _document(profile)
    status = Fields(document.get("status"), "status", fail)
    offered: dict[str, Fields] = {}
    for name in ("credentialProviders", "accessProviders"):
        for where, value in status.items(name):
            entry = Fields(value, where, fail)
            offered[entry.text("name")] = entry
    for provider in providers.providers:
        if provider.name in offered:
            return _spec(provider, offered[provider.name], fail)
    names = ", ".join(printable(name, 60) for name in offered) or "none"
    known = ", ".join(each.name for each in providers.providers)
    raise ExecCredError(
        "provider-unmatched",
        f"no access provider of {_name(document)} ({names}) is in the provider file ({known})",
        "add a provider of that name to the provider file",
    )


def is_ready(profile: Any) -> bool:
    """Tell whether the ClusterProfile's condition ControlPlaneHealthy is True.

    Raises ExecCredError("profile-invalid").
    """
    document, fail = _document(profile)
    status = Fields(document.get("status"), "status", fail)
    conditions = [Fields(value, where, fail) for where, value in status.items("conditions")]
    return any(each.get("type") == READY and each.get("status") == "True" for each in conditions)


def _document(profile: Any) -> tuple[Fields, Fail]:
    """Return a profile's fields, and what makes errors that name it."""
    value = profile.to_dict() if hasattr(profile, "to_dict") else profile

    def fail(what: str) -> ExecCredError:
        name = _name(value) if isinstance(value, dict) else "the ClusterProfile"
        return ExecCredError(
            "profile-invalid", f"{name}: {what}", "the ClusterProfile's manager wrote it: correct it there"
        )

    document = Fields(value, "", fail)
    version = document.get("apiVersion")
    if version not in (None, "", *API_VERSIONS) or document.get("kind") not in (None, "", "ClusterProfile"):
        raise fail(f"it is no ClusterProfile of {' or '.join(API_VERSIONS)}")
    return document, fail


def _name(document: Any) -> str:
    metadata = document.get("metadata")
    names = [metadata.get(key) for key in ("namespace", "name")] if isinstance(metadata, dict) else []
    return "ClusterProfile " + ("/".join(printable(str(each), 80) for each in names if each) or "without a name")


def _spec(provider: Provider, entry: Fields, fail: Fail) -> ExecSpec:
    cluster = Fields(entry.get("cluster"), entry.path("cluster"), fail)
    extensions: dict[str, Fields] = {}
    for where, value in cluster.items("extensions"):
        extension = Fields(value, where, fail)
        if extensions.setdefault(extension.text("name"), extension) is not extension:
            raise extension.fail("name", "is there twice")
    config = extensions[EXEC].get("extension") if EXEC in extensions else None
    return ExecSpec(
        provider=provider.name,
        api_version=provider.api_version,
        command=provider.command,
        cluster=_cluster(cluster),
        args=provider.args + _added_args(provider, extensions.get(ARGS), fail),
        env=_merged_env(provider, extensions.get(ENVS), fail),
        provide_cluster_info=provider.provide_cluster_info,
        config=_json_text(config, f"{cluster.where}: extension {EXEC}", fail),
        install_hint=provider.install_hint,
    )


def _json_text(value: Any, where: str, fail: Fail) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise fail(f"{where} cannot be written as JSON") from None


def _added_args(provider: Provider, extension: Fields | None, fail: Fail) -> tuple[str, ...]:
    if provider.args_policy != APPEND or extension is None:
        return ()
    return tuple(text_of(each, where, fail) for where, each in extension.items("extension"))


def _merged_env(provider: Provider, extension: Fields | None, fail: Fail) -> tuple[tuple[str, str], ...]:
    """Return the admin's variables in their order, then the profile's in that of their names."""
    if provider.env_policy == IGNORE or extension is None:
        return provider.env
    added = _variables(extension, fail)
    own = [name for name, _ in provider.env]
    kept = [(name, added.get(name, value) if provider.env_policy == REPLACE else value) for name, value in provider.env]
    return (*kept, *[(name, added[name]) for name in sorted(added) if name not in own])


def _variables(extension: Fields, fail: Fail) -> Mapping[str, str]:
    fields = Fields(extension.get("extension"), extension.path("extension"), fail)
    raw: dict[str, Any] = extension.get("extension") or {}
    added = {variable_of(name, fields.where, fail): fields.text(name) for name in raw}
    for name in added:
        if name.startswith(CODE) or name == "PATH":
            raise ExecCredError(
                "profile-refused",
                f"{fields.where} sets {printable(name, 60)!r}, which decides what code the plugin runs",
                "set it in the provider file, or remove it from the ClusterProfile",
            )
    return added


# --- the cluster ---


def _cluster(fields: Fields) -> Cluster:
    insecure = fields.flag("insecure-skip-tls-verify")
    ca_data = _ca(fields)
    if insecure and ca_data:
        raise fields.fail("insecure-skip-tls-verify", "and certificate-authority-data exclude each other")
    if fields.text("certificate-authority") and not ca_data:
        raise fields.fail("certificate-authority", "is a file, which a profile cannot have here; embed its data")
    tls_name = fields.text("tls-server-name")
    if tls_name and not is_host(tls_name):
        raise fields.fail("tls-server-name", "is not a host name")
    return Cluster(
        server=_url(fields, "server", ("https",)),
        tls_server_name=tls_name,
        insecure_skip_tls_verify=insecure,
        ca_data=ca_data,
        proxy_url=_url(fields, "proxy-url", ("http", "https", "socks5")) if fields.get("proxy-url") else "",
        disable_compression=fields.flag("disable-compression"),
    )


def _url(fields: Fields, name: str, schemes: tuple[str, ...]) -> str:
    text = fields.text(name)
    if not text:
        raise fields.fail(name, "is missing")
    scheme, separator, rest = text.partition("://")
    try:
        # The parts before a query, strictly, under a scheme that the parser knows.
        url = parse_url(f"https://{rest.partition('?')[0]}")
    except ValueError as error:
        raise fields.fail(name, f"is {error}") from None
    if not separator or scheme.lower() not in schemes or not (text.isascii() and text.isprintable()):
        raise fields.fail(name, f"must be a URL of scheme {' or '.join(schemes)}")
    if url.userinfo and name == "server":
        raise fields.fail(name, "must hold no user and password")
    return text


def _ca(fields: Fields) -> str:
    """Return base64 in one line; the text itself must be PEM."""
    import binascii

    text = fields.text("certificate-authority-data").replace("\r", "").replace("\n", "")
    try:
        pem = binascii.a2b_base64(text, strict_mode=True) if text else b""
    except ValueError:
        raise fields.fail("certificate-authority-data", "is not base64") from None
    if text and b"-----BEGIN CERTIFICATE-----" not in pem:
        raise fields.fail("certificate-authority-data", "is not base64 of a PEM certificate")
    return text
