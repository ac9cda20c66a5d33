"""Whatever a provider file, a ClusterProfile or a plugin says: an answer or an error of ours, and never a secret."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from access.support import ARGS, ENVS, EXEC, V1, access, profile, provider, spec
from execcred import BadRequest, ExecCredError
from execcred.access import ProviderFile, is_ready, select
from execcred.access._answer import parse_answer
from execcred.access._format import EXEC_FIELDS, PROVIDER_FIELDS

if TYPE_CHECKING:
    from execcred.access import ExecSpec

TEXT = st.text(max_size=12)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CLUSTER = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")


def objects(*names: str, inner: st.SearchStrategy[Any] = JSON) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with some of these fields, each of any type."""
    return st.dictionaries(st.sampled_from(names), inner, max_size=len(names))


def bad(what: str) -> BadRequest:
    return BadRequest("provider-file-invalid", what, "")


def providers(*entries: Any) -> ProviderFile:
    return ProviderFile.parse(json.dumps({"providers": entries}), bad)


FILE = providers(
    provider(profileSourcedCLIArgsPolicy="Append", profileSourcedEnvVarsPolicy="Replace", provideClusterInfo=True)
)


@settings(max_examples=400, deadline=None)
@given(JSON | objects("providers", inner=JSON | st.lists(objects(*PROVIDER_FIELDS) | JSON, max_size=3)))
def test_any_provider_file(document: Any) -> None:
    with contextlib.suppress(BadRequest):
        ProviderFile.parse(json.dumps(document), bad)


@settings(max_examples=400, deadline=None)
@given(objects(*EXEC_FIELDS))
def test_any_exec_config(fields: dict[str, Any]) -> None:
    with contextlib.suppress(BadRequest):
        [entry] = providers(provider(**fields)).providers
        assert entry.command.startswith("/") or "/" not in entry.command


def check(chosen: ExecSpec) -> None:
    info = json.loads(chosen.exec_info())
    assert info["spec"]["cluster"]["server"] == chosen.cluster.server
    assert chosen.cluster.server.lower().startswith("https://")
    assert not [name for name, _ in chosen.env if name.startswith(("LD_", "PYTHON"))]
    assert hash(chosen) == hash(chosen)


@settings(max_examples=400, deadline=None)
@given(
    JSON
    | objects("apiVersion", "kind", "metadata", "status")
    | st.builds(lambda status: profile() | {"status": status}, objects("accessProviders", "credentialProviders"))
    | st.builds(lambda cluster: profile({"name": "reader", "cluster": cluster}), JSON | objects(*CLUSTER, "extensions"))
    | st.builds(lambda extensions: profile(access(extensions=extensions)), objects(EXEC, ARGS, ENVS))
)
def test_any_profile(document: Any) -> None:
    with contextlib.suppress(ExecCredError):
        is_ready(document)
    with contextlib.suppress(ExecCredError):
        check(select(document, FILE))


SECRET = "hush-hush-hush"
STATUS = objects(
    "token",
    "clientCertificateData",
    "clientKeyData",
    "expirationTimestamp",
    inner=JSON | st.just(SECRET) | st.builds(lambda text: SECRET + text, TEXT),
)


@settings(max_examples=400, deadline=None)
@given(
    st.binary(max_size=60)
    | st.builds(lambda value: json.dumps(value).encode(), JSON | objects("apiVersion", "kind", "status"))
    | st.builds(
        lambda status: json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}).encode(), STATUS
    )
)
def test_any_answer(stdout: bytes) -> None:
    try:
        credential = parse_answer(stdout, spec("/plugin"), time.time())
    except ExecCredError as error:
        assert SECRET not in f"{error.message} {error.hint}"  # noqa: PT017  # whether there is one is not known
    else:
        assert credential.token or credential.certificate
        assert SECRET not in repr(credential)
