"""Upstream's own plugins, given the same Secrets and the same request, answer with the same credential as ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from interop.cluster import Json, b64, kubeconfig
from interop.fleet import GO_BIN

if TYPE_CHECKING:
    from interop.fleet import Reader


def both(reader: Reader, plugin: str, config: Json) -> tuple[Json, Json]:
    """Return upstream's status and ours for one request; upstream's plugins do not report an expiry."""
    theirs = reader.status(str(GO_BIN / f"upstream-{plugin}"), config)
    ours = reader.status(plugin, config)
    assert "expirationTimestamp" not in theirs
    return theirs, {key: value for key, value in ours.items() if key != "expirationTimestamp"}


def test_secretreader_gives_the_same_token(reader: Reader) -> None:
    reader.spoke.account(reader.namespace, "guest")
    token, _ = reader.spoke.account_token(reader.namespace, "guest")
    reader.secret("c1", token=token)
    reader.allow("c1")
    theirs, ours = both(reader, "secretreader", {"clusterName": "c1"})
    assert ours == theirs == {"token": token}
    assert reader.audited(2) == [reader.one_get("c1")] * 2


def user(reader: Reader, *kinds: str) -> Json:
    """Return a kubeconfig's user with a token, a certificate or both."""
    certificate, key = reader.spoke.certificate("carol")
    pair = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    return {**({"token": "abc.def"} if "token" in kinds else {}), **(pair if "certificate" in kinds else {})}


@pytest.mark.parametrize("kinds", [("token",), ("certificate",), ("token", "certificate")], ids="+".join)
@pytest.mark.parametrize("context", ["", "second"], ids=["current context", "named context"])
def test_kubeconfig_secretreader_gives_the_same_credential(
    reader: Reader, kinds: tuple[str, ...], context: str
) -> None:
    document = kubeconfig(reader.spoke.url, reader.spoke.ca, user(reader, *kinds))
    document["users"].append({"name": "v", "user": user(reader, *kinds) | {"token": "other"}})
    document["contexts"].append({"name": "second", "context": {"cluster": "c", "user": "v"}})
    reader.secret("c1", value=json.dumps(document))
    reader.allow("c1")
    config = {"name": "c1", "key": "value", **({"context": context} if context else {})}
    theirs, ours = both(reader, "kubeconfig-secretreader", config)
    assert ours == theirs
    assert theirs.get("token") == ("other" if context else "abc.def" if "token" in kinds else None)
    assert ("clientKeyData" in theirs) == ("certificate" in kinds)


@pytest.mark.parametrize(
    ("plugin", "config"),
    [
        ("secretreader", None),
        ("secretreader", {}),
        ("secretreader", {"clusterName": "absent"}),
        ("secretreader", {"clusterName": "empty"}),
        ("kubeconfig-secretreader", None),
        ("kubeconfig-secretreader", {"name": "c1", "key": "absent"}),
        ("kubeconfig-secretreader", {"name": "c1", "key": "halved"}),
        ("kubeconfig-secretreader", {"name": "c1", "key": "path"}),
        ("kubeconfig-secretreader", {"name": "c1", "key": "anonymous"}),
        ("kubeconfig-secretreader", {"name": "c1", "key": "anonymous", "context": "absent"}),
    ],
)
def test_what_upstream_refuses_ours_refuses_too(reader: Reader, plugin: str, config: Json | None) -> None:
    pair = user(reader, "certificate")
    users = {
        "halved": {"client-certificate-data": pair["client-certificate-data"]},
        "path": {"client-certificate": "/etc/hostname", "client-key": "/etc/hostname"},
        "anonymous": {},
    }
    documents = {key: json.dumps(kubeconfig(reader.spoke.url, reader.spoke.ca, each)) for key, each in users.items()}
    reader.secret("c1", **documents)
    reader.secret("empty", token="")
    reader.allow("c1", "empty")
    for name in (str(GO_BIN / f"upstream-{plugin}"), plugin):
        done = reader.run(name, config)
        assert done.returncode != 0
        assert done.stdout == ""
