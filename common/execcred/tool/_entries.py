"""What lint looks at: exec configs and ClusterProfiles, found in the documents of all the consumers' formats."""

from __future__ import annotations

from execcred._arguments import CommandLine, command_line
from execcred._errors import ExecCredError, printable
from execcred._settings import resolve
from execcred.access._format import EXEC_FIELDS, PROVIDER_FIELDS

from ._facts import SUBJECTS, plugin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ._document import Document, Path

PROVIDER_FILE, KUEUE, KNATIVE, ARGOCD, KUBECONFIG = "provider file", "Kueue", "Knative", "Argo CD", "kubeconfig"


class Entry:
    """One exec config: where it stands, for whom, and the provider around it."""

    def __init__(self, document: Document, path: Path, kind: str, config: dict[str, Any], outer: Any = None) -> None:
        self.document = document
        self.path = path
        self.kind = kind
        self.config = config
        self.provider: dict[str, Any] = outer if isinstance(outer, dict) else {}
        self.mounts: list[str] = []
        self.name = str(self.provider.get("name") or "")
        self.command = config["command"] if isinstance(config.get("command"), str) else ""
        self.arguments = strings(config.get("args"))
        self.plugin = plugin_of(self.command)
        self.line, self.fault = self._flags()

    def _flags(self) -> tuple[CommandLine, str]:
        """Return the arguments taken apart by our plugin's own table, and what is wrong with them."""
        if not self.plugin:
            return CommandLine(), ""
        plugin = SUBJECTS[self.plugin].plugin()
        try:
            line = command_line(plugin.settings, self.arguments)
            resolve(plugin.settings, line, {}, {})
        except ExecCredError as error:
            return CommandLine(), f"{error.message}; {error.hint}"
        words = " ".join(line.words)
        return line, f"unknown word {printable(words, 60)!r}" if words not in ("", *plugin.words) else ""

    def variables(self) -> dict[str, str]:
        """Return the environment that the config sets, from either spelling."""
        env = self.config.get("env")
        if isinstance(env, dict):
            return {str(name): str(value) for name, value in env.items()}
        rows = env if isinstance(env, list) else []
        return {str(row.get("name")): str(row.get("value")) for row in rows if isinstance(row, dict)}


class Profile:
    """One ClusterProfile; `accesses` are (path, name, cluster) of its access providers."""

    def __init__(self, document: Document, path: Path, data: dict[str, Any]) -> None:
        self.document = document
        self.path = path
        self.accesses: list[tuple[Path, str, dict[str, Any]]] = []
        status = mapping(data.get("status"))
        self.deprecated = bool(status.get("credentialProviders"))
        for field in ("accessProviders", "credentialProviders"):
            for index, row in enumerate(rows(status.get(field))):
                self.accesses.append(
                    ((*path, "status", field, index), str(row.get("name") or ""), mapping(row.get("cluster")))
                )


def mapping(value: Any) -> dict[str, Any]:
    """Return a mapping, {} for anything else."""
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[dict[str, Any]]:
    """Return the mappings of a list; what is none counts as {}."""
    return [mapping(each) for each in value] if isinstance(value, list) else []


def strings(value: Any) -> list[str]:
    """Return the strings of a list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def extensions(cluster: dict[str, Any]) -> list[tuple[int, str, Any]]:
    """Return (index, name, extension) of a cluster's extensions."""
    return [
        (index, str(row.get("name")), row.get("extension")) for index, row in enumerate(rows(cluster.get("extensions")))
    ]


# --- finding them ---


def find(document: Document, path: Path = ()) -> Iterator[Entry | Profile]:
    """Yield what a document holds; nothing when it is of no known format."""
    data = document.data
    for key in path:
        data = data[key]
    data = mapping(data)
    version, kind = str(data.get("apiVersion") or ""), data.get("kind")
    if isinstance(data.get("items"), list):
        for index in range(len(data["items"])):
            yield from find(document, (*path, "items", index))
    elif version.startswith("multicluster.x-k8s.io/") and kind == "ClusterProfile":
        yield Profile(document, path, data)
    elif kind in ("Secret", "ConfigMap"):
        yield from _embedded(document, path, data)
    else:
        yield from _consumers(document, path, data)


def _consumers(document: Document, path: Path, data: dict[str, Any]) -> Iterator[Entry]:
    """Yield the exec configs of a consumer's own format."""
    if str(data.get("apiVersion")).startswith("config.kueue.x-k8s.io/"):
        profiles = mapping(mapping(data.get("multiKueue")).get("clusterProfile"))
        for field in ("accessProviders", "credentialsProviders"):
            where = (*path, "multiKueue", "clusterProfile", field)
            yield from _providers(document, where, KUEUE, profiles.get(field))
    elif isinstance(data.get("users"), list) and data.get("kind") in ("Config", None, ""):
        for index, row in enumerate(rows(data["users"])):
            config = mapping(row.get("user")).get("exec")
            if isinstance(config, dict):
                yield Entry(document, (*path, "users", index, "user", "exec"), KUBECONFIG, config)
    elif isinstance(data.get("knative_operator"), dict):
        yield from _knative(document, path, data)
    else:
        yield from _providers(document, (*path, "providers"), PROVIDER_FILE, _folded(data, "providers"))


def _folded(data: dict[str, Any], name: str) -> Any:
    """Return a field as the access library finds it: case does not matter."""
    return next((value for key, value in data.items() if key.lower() == name.lower()), None)


def _providers(document: Document, path: Path, kind: str, value: Any) -> Iterator[Entry]:
    for index, row in enumerate(rows(value)):
        provider = row if kind == KUEUE else {_canonical(key): each for key, each in row.items()}
        config = mapping(provider.get("execConfig"))
        if kind != KUEUE:
            config = {_canonical(key): each for key, each in config.items()}
        yield Entry(document, (*path, index, "execConfig"), kind, config, provider)


def _canonical(key: str) -> str:
    return next((name for name in (*PROVIDER_FIELDS, *EXEC_FIELDS) if name.lower() == key.lower()), key)


def _knative(document: Document, path: Path, data: dict[str, Any]) -> Iterator[Entry]:
    multicluster = mapping(data["knative_operator"].get("multicluster"))
    config = mapping(multicluster.get("accessProvidersConfig"))
    where = (*path, "knative_operator", "multicluster", "accessProvidersConfig", "providers")
    for entry in _providers(document, where, KNATIVE, config.get("providers")):
        entry.mounts = [str(row.get("mountPath")) for row in rows(multicluster.get("plugins"))]
        yield entry


def _embedded(document: Document, path: Path, data: dict[str, Any]) -> Iterator[Entry | Profile]:
    """Look into the texts of a Secret or ConfigMap."""
    labels = mapping(mapping(data.get("metadata")).get("labels"))
    cluster_secret = data.get("kind") == "Secret" and labels.get("argocd.argoproj.io/secret-type") == "cluster"
    for section in ("stringData", "data"):
        for key, text in mapping(data.get(section)).items():
            if section == "data" and data.get("kind") == "Secret":
                text = _decoded(text)  # noqa: PLW2901  # the same text, without its wrapping
            inner = document.inner((*path, section, key), text) if isinstance(text, str) else None
            if inner and cluster_secret and key == "config":
                config = inner.data.get("execProviderConfig")
                if isinstance(config, dict):
                    yield Entry(inner, ("execProviderConfig",), ARGOCD, config)
            elif inner and not cluster_secret:
                yield from find(inner)


def _decoded(text: Any) -> str:
    import binascii

    try:
        return binascii.a2b_base64(str(text)).decode()
    except ValueError:
        return ""
