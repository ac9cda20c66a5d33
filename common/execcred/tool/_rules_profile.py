"""Lint rules for ClusterProfiles, clusters' CA data, and for profiles and providers that meet."""

from __future__ import annotations

from execcred.access._format import ARGS, CODE, ENVS, EXEC, PROVIDER_FIELDS

from ._entries import ARGOCD, KUBECONFIG, KUEUE, Entry, Profile, extensions, mapping, rows
from ._facts import SUBJECTS
from ._rules import CA_LIMIT, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ._document import Document, Path

DROPPED = ("tls-server-name", "insecure-skip-tls-verify", "disable-compression", "certificate-authority")
# What decides for whom, by whom or with which code a plugin works: an admin's business, never a profile's.
DANGEROUS = (
    *CODE,
    *("EXECCRED_", "PATH", "HOME", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy"),
    *("SSL_CERT_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "KUBECONFIG", "KUBERNETES_SERVICE_"),
    *("AWS_ENDPOINT_URL", "AWS_CONTAINER_", "AWS_CA_BUNDLE"),
    *("AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "GOOGLE_", "CLOUDSDK_", "GCE_METADATA_"),
    *("AZURE_", "AAD_", "ARM_", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"),
)


def check_profile(profile: Profile) -> list[Finding]:
    """Return what is wrong with one ClusterProfile."""
    document, findings = profile.document, []
    if profile.deprecated:
        where = (*profile.path, "status", "credentialProviders")
        findings.append(Finding(document, where, "profile-field-deprecated", "status.credentialProviders is there"))
    if not profile.accesses:
        findings.append(Finding(document, (*profile.path, "status"), "profile-access-missing", "no access providers"))
    for path, _, cluster in profile.accesses:
        findings += _cluster(document, (*path, "cluster"), cluster)
    return findings


def _cluster(document: Document, path: Path, cluster: dict[str, Any]) -> Iterator[Finding]:
    if not cluster.get("server"):
        yield Finding(document, path, "profile-server-missing", "the cluster has no server")
    for name in DROPPED:
        if cluster.get(name):
            yield Finding(document, (*path, name), "profile-tls-dropped", f"{name} does not reach the client")
    yield from check_ca(document, (*path, "certificate-authority-data"), cluster.get("certificate-authority-data"))
    for index, name, value in extensions(cluster):
        where = (*path, "extensions", index)
        if "exec" in name and name not in (EXEC, ARGS, ENVS):
            yield Finding(document, (*where, "name"), "extension-name-old", f"no consumer reads {name[:80]!r}")
        if name == ARGS and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            yield Finding(document, where, "extension-type", "additional-args must be a list of strings")
        if name == ENVS:
            yield from _envs(document, where, value)


def _envs(document: Document, path: Path, value: Any) -> Iterator[Finding]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        yield Finding(document, path, "extension-type", "additional-envs must be a map of strings, and not null")
    for name in mapping(value):
        if name.startswith(DANGEROUS):
            yield Finding(document, (*path, "extension", name), "env-dangerous", f"a profile sets {name[:60]!r}")


def check_ca(document: Document, path: Path, text: Any) -> Iterator[Finding]:
    """Yield a finding when CA data hardly fits into the one variable that carries it."""
    if isinstance(text, str) and len(text) > CA_LIMIT:
        yield Finding(document, path, "ca-too-large", f"CA data of {len(text)} characters")


def check_clusters(document: Document) -> Iterator[Finding]:
    """Yield what is wrong with the clusters of a kubeconfig or an Argo CD cluster config."""
    data = mapping(document.data)
    for index, row in enumerate(rows(data.get("clusters"))):
        path = ("clusters", index, "cluster", "certificate-authority-data")
        yield from check_ca(document, path, mapping(row.get("cluster")).get("certificate-authority-data"))
    tls = mapping(data.get("tlsClientConfig"))
    yield from check_ca(document, ("tlsClientConfig", "caData"), tls.get("caData"))


# --- together ---


def check_together(entries: Sequence[Entry], profiles: Sequence[Profile]) -> list[Finding]:
    """Return what is wrong between profiles and the providers that were given with them."""
    providers: dict[str, Entry] = {}
    for entry in entries:
        if entry.kind not in (ARGOCD, KUBECONFIG):
            providers.setdefault(entry.name, entry)
    findings = []
    for profile in profiles if providers else ():
        names = [name for _, name, _ in profile.accesses]
        if names and not set(names) & set(providers):
            where = (*profile.path, "status")
            message = f"none of its access providers ({', '.join(names)[:100]}) is in the provider files"
            findings.append(Finding(profile.document, where, "provider-unmatched", message))
        for path, name, cluster in profile.accesses:
            if name in providers:
                findings += _meeting(profile.document, (*path, "cluster"), cluster, providers[name])
    return findings


def _meeting(document: Document, path: Path, cluster: dict[str, Any], entry: Entry) -> Iterator[Finding]:
    policies = dict(zip((ARGS, ENVS), [entry.provider.get(name) for name in PROVIDER_FIELDS[2:]], strict=True))
    for index, name, value in extensions(cluster):
        where = (*path, "extensions", index)
        if name in policies and value and policies[name] in (None, "", "Ignore"):
            who = "Kueue never takes them" if entry.kind == KUEUE else "the provider's policy is Ignore"
            yield Finding(document, where, "policy-ignores-profile", f"{name.rpartition('/')[2]} have no effect: {who}")
        if name == EXEC:
            yield from _config(document, (*where, "extension"), mapping(value), entry)


def _config(document: Document, path: Path, config: dict[str, Any], entry: Entry) -> Iterator[Finding]:
    """Yield what the plugin would refuse: settings that are the admin's alone."""
    settings = SUBJECTS[entry.plugin].plugin().settings if entry.plugin else ()
    for setting in settings:
        opened = setting.trust == "profile" or setting.own or setting.trust in entry.line.admin
        for key in setting.config:
            if key in config and not opened and not setting.guard:
                message = f"the plugin refuses {key} from a profile"
                yield Finding(document, (*path, key), "profile-sets-refused", message)
