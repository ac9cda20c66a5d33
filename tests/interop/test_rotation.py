"""A credential that is rotated on the hub reaches a running controller: after its expiry, or after a 401."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from interop.cluster import b64, kubeconfig, until

if TYPE_CHECKING:
    from interop.fleet import Reader

LIFE = 8  # seconds that the first credential lives


def test_a_token_rotated_on_the_hub_is_picked_up_after_expiry(reader: Reader) -> None:
    old, new = [reader.spoke.account(reader.namespace, name)["metadata"] for name in ("old", "new")]
    reader.allow("c1")
    reader.profile("c1", "secretreader", {"clusterName": "c1"})
    reader.secret("c1", token=reader.spoke.short_token(reader.namespace, "old", old["uid"], LIFE))
    end = time.time() + LIFE
    with reader.controller(reader.providers("secretreader"), "-again", "c1", rounds=1) as rounds:
        [first] = rounds.first()
        reader.secret("c1", token=reader.spoke.account_token(reader.namespace, "new")[0])
        time.sleep(max(end + 1 - time.time(), 0))
        [second] = rounds.again()
    assert (first.get("user"), first["runs"]) == (f"system:serviceaccount:{reader.namespace}:old", 1)
    assert (second.get("user"), second["runs"]) == (f"system:serviceaccount:{reader.namespace}:new", 2)
    assert new["name"] in second["user"]
    assert reader.audited(2) == [reader.one_get("c1")] * 2


def test_a_client_certificate_rotated_on_the_hub_is_picked_up_after_expiry(reader: Reader) -> None:
    def renew(user: str, ends: datetime) -> None:
        certificate, key = reader.spoke.certificate(user, ends=ends)
        fields = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
        reader.secret("c1", value=json.dumps(kubeconfig(reader.spoke.url, reader.spoke.ca, fields)))

    reader.allow("c1")
    reader.profile("c1", "kubeconfig-secretreader", {"name": "c1"})
    end = datetime.now(UTC) + timedelta(seconds=LIFE)
    renew("old", end)
    with reader.controller(reader.providers("kubeconfig-secretreader"), "-again", "c1", rounds=1) as rounds:
        [first] = rounds.first()
        renew("new", end + timedelta(hours=1))
        time.sleep(max((end - datetime.now(UTC)).total_seconds() + 1, 0))
        [second] = rounds.again()
    assert (first.get("user"), first["runs"]) == ("old", 1)
    assert (second.get("user"), second["runs"]) == ("new", 2)


def test_a_token_rotated_on_the_hub_is_picked_up_after_a_401(reader: Reader) -> None:
    account = reader.spoke.account(reader.namespace, "old")
    token = reader.spoke.legacy_token(reader.namespace, account, "old-token")
    reader.spoke.account(reader.namespace, "new")
    reader.secret("c1", token=token)
    reader.allow("c1")
    reader.profile("c1", "secretreader", {"clusterName": "c1"})
    with reader.controller(reader.providers("secretreader"), "-again", "c1", rounds=1) as rounds:
        facts = rounds.first()
        reader.secret("c1", token=reader.spoke.account_token(reader.namespace, "new")[0])
        facts += rounds.again()  # the old one still works, so nobody asks the plugin
        reader.spoke.call("DELETE", f"/api/v1/namespaces/{reader.namespace}/secrets/old-token")
        # API servers remember for ten seconds that a token is good.
        until("the old token is refused", lambda: reader.spoke.status("GET", "/api/v1", token) == 401, 30)
        facts += rounds.again() + rounds.again()
    old, new = [f"system:serviceaccount:{reader.namespace}:{name}" for name in ("old", "new")]
    assert [(fact.get("user"), fact["runs"]) for fact in facts] == [(old, 1), (old, 1), (None, 2), (new, 2)]
    assert "Unauthorized" in facts[2]["error"]
    assert reader.audited(2) == [reader.one_get("c1")] * 2
