"""Names of the formats that lead from a ClusterProfile to a plugin: provider file, extensions, policies. Pure.

Source: KEP-4322, "Access Provider Plugin Design", and the API types of `multicluster.x-k8s.io`.
"""

from __future__ import annotations

from execcred._errors import printable
from execcred._protocol import EXEC_EXTENSION, json_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from execcred._errors import ExecCredError, Fail

GROUP = "multicluster.x-k8s.io"
API_VERSIONS = (f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha2")
READY = "ControlPlaneHealthy"
EXEC = EXEC_EXTENSION
ARGS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
ENVS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"

APPEND, APPEND_IF_NOT_EXISTS, REPLACE, IGNORE = "Append", "AppendIfNotExists", "Replace", "Ignore"
CLI_POLICIES = (APPEND, IGNORE)
ENV_POLICIES = (APPEND_IF_NOT_EXISTS, REPLACE, IGNORE)
PROVIDER_FIELDS = ("name", "execConfig", "profileSourcedCLIArgsPolicy", "profileSourcedEnvVarsPolicy")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
EXEC_FIELDS = ("apiVersion", "command", "args", "env", "installHint", "provideClusterInfo", "interactiveMode")
# What makes any program run other code, whoever sets it.
LOADERS = (
    *("LD_", "DYLD_", "PYTHON", "BASH_ENV", "GCONV_PATH", "GLIBC_TUNABLES", "SSLKEYLOGFILE"),
    "KUBERNETES_EXEC_INFO",
)
# What an admin may have reason to set, and a profile has not: OpenSSL's libraries, interpreters' options and functions,
# files that may name a program to run (credential_process), and where this suite's archives unpack.
CODE = (
    *(*LOADERS, "OPENSSL_", "BASH_FUNC_", "SHELLOPTS", "BASHOPTS", "PS4", "NODE_OPTIONS", "NODE_PATH", "PERL5", "RUBY"),
    *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "CLOUDSDK_PYTHON", "AZURE_EXTENSION_DIR"),
    *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"),
    "EXECCRED_UNPACK_DIR",
)


class Fields:
    """An object of a foreign document, read field by field; null counts as absent, and a wrong type is an error.

    `fail` makes that error; with `fold` the case of keys does not matter, as in Go's decoder.
    """

    __slots__ = ("_fail", "_values", "where")

    def __init__(self, value: Any, where: str, fail: Fail, fold: bool = False) -> None:
        if not isinstance(value, dict | None):
            raise fail(f"{where or 'it'} must be an object, is {json_type(value)}")
        self.where = where
        self._fail = fail
        self._values: Mapping[str, Any] = value or {}
        if fold:
            names = {name.lower(): name for name in (*PROVIDER_FIELDS, *EXEC_FIELDS, "providers", "value")}
            self._values = {names.get(str(key).lower(), key): each for key, each in self._values.items()}

    def fail(self, name: str, what: str) -> ExecCredError:
        """Return the error for a field."""
        return self._fail(f"{self.path(name)} {what}")

    def path(self, name: str) -> str:
        """Return a field's place, as people write it."""
        return f"{self.where}.{name}" if self.where else name

    def get(self, name: str) -> Any:
        """Return a field as it is, None when it is absent."""
        return self._values.get(name)

    def text(self, name: str, choices: tuple[str, ...] = ()) -> str:
        """Return a string that the system can take as argument or variable, "" when it is absent."""
        value = self.get(name)
        if value is None:
            return ""
        checked = text_of(value, self.path(name), self._fail)
        if choices and checked not in ("", *choices):
            raise self.fail(name, f"must be one of {', '.join(choices)}, is {printable(checked, 60)!r}")
        return checked

    def flag(self, name: str) -> bool:
        """Return a boolean, False when it is absent."""
        value = self.get(name)
        if isinstance(value, bool | None):
            return value is True
        raise self.fail(name, f"must be true or false, is {json_type(value)}")

    def items(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield (place, value) of an array's elements, nothing when it is absent."""
        value = self.get(name)
        if not isinstance(value, list | None):
            raise self.fail(name, f"must be an array, is {json_type(value)}")
        for index, each in enumerate(value or ()):
            yield f"{self.path(name)}[{index}]", each


def text_of(value: Any, where: str, fail: Fail) -> str:
    """Return a string that may be an argument or a variable: valid text without a null character."""
    if not isinstance(value, str):
        raise fail(f"{where} must be a string, is {json_type(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can spell halves of characters
        valid = False
    else:
        valid = "\0" not in value
    if not valid:
        raise fail(f"{where} holds a character that no argument or variable can have")
    return value


def variable_of(name: str, where: str, fail: Fail) -> str:
    """Return a name that an environment variable may have."""
    if not text_of(name, where, fail) or "=" in name:
        raise fail(f"{where} is no name of a variable")
    return name
