"""What a real API server refuses comes out as our error: code, exit status, and who must be granted what."""

from __future__ import annotations

import pytest
import trustme

from interop.cluster import kubeconfig
from interop.fleet import Reader
from ports import reserved_port


def refused(reader: Reader, code: str, status: int, config: object, *args: str, **environment: str) -> str:
    """Run secretreader, check that it fails in the documented form, return its stderr."""
    done = reader.run("secretreader", config, *args, **environment)
    first = done.stderr.partition("\n")[0]
    assert (done.returncode, done.stdout) == (status, "")
    assert first.startswith("secretreader-plugin: error: ")
    assert first.endswith(f" [{code}]")
    assert "\nhint: " in done.stderr
    assert reader.token not in done.stderr
    return done.stderr


def test_a_403_names_verb_resource_namespace_and_name(reader: Reader) -> None:
    reader.secret("c1", token="irrelevant")
    reader.allow("another")
    stderr = refused(reader, "hub-forbidden", 1, {"clusterName": "c1"})
    for fact in ("verb get", "resource secrets", f"namespace {reader.namespace}", "name c1"):
        assert fact in stderr
    assert reader.audited(1) == [f"get /api/v1/namespaces/{reader.namespace}/secrets/c1 403"]


def test_granting_what_the_403_asks_for_is_enough(reader: Reader) -> None:
    reader.secret("c1", token="right")
    refused(reader, "hub-forbidden", 1, {"clusterName": "c1"})
    reader.allow("c1")
    assert reader.status("secretreader", {"clusterName": "c1"}) == {"token": "right"}


def test_a_controller_sees_the_403_on_stderr_and_its_exit_status(reader: Reader) -> None:
    reader.profile("c1", "secretreader", {"clusterName": "c1"})
    [fact] = reader.reach(reader.providers("secretreader"), "c1")
    assert "failed with exit code 1" in fact["error"]
    assert "[hub-forbidden]" in (reader.folder / "consumer.stderr").read_text()


def test_a_secret_that_is_not_there_is_told_from_one_that_is_forbidden(reader: Reader) -> None:
    reader.allow("c1")
    assert f"c1 in namespace {reader.namespace}" in refused(reader, "secret-missing", 1, {"clusterName": "c1"})


def test_a_missing_key_lists_the_keys_that_are_there(reader: Reader) -> None:
    reader.secret("c1", kubeconfig="x", password="hidden-value")
    reader.allow("c1")
    stderr = refused(reader, "secret-key-missing", 1, {"clusterName": "c1"})
    assert "kubeconfig" in stderr
    assert "password" in stderr
    assert "hidden-value" not in stderr


@pytest.mark.parametrize(
    ("token", "code", "status"),
    [("", "secret-key-empty", 3), ("two\nlines", "token-invalid", 1), ("caf\u00e9", "token-invalid", 1)],
    ids=["empty", "newline inside", "not ASCII"],
)
def test_a_secret_that_holds_no_token_is_refused(reader: Reader, token: str, code: str, status: int) -> None:
    reader.secret("c1", token=token)
    reader.allow("c1")
    stderr = refused(reader, code, status, {"clusterName": "c1"})
    assert not token or token.split(maxsplit=1)[0] not in stderr


def test_a_token_of_the_spoke_that_has_expired_is_refused(reader: Reader) -> None:
    account = reader.spoke.account(reader.namespace, "guest")
    reader.secret("c1", token=reader.spoke.short_token(reader.namespace, "guest", account["metadata"]["uid"], -5))
    reader.allow("c1")
    refused(reader, "credential-expired", 3, {"clusterName": "c1"})


def test_a_hub_token_that_the_hub_does_not_know_is_unauthorized(reader: Reader) -> None:
    other = kubeconfig(reader.hub.url, reader.hub.ca, {"token": "nobodys"}, reader.namespace)
    stderr = refused(reader, "hub-unauthorized", 1, {"clusterName": "c1"}, "--kubeconfig", reader.write("k", other))
    assert "nobodys" not in stderr


def test_a_hub_with_a_certificate_of_another_authority_is_not_trusted(reader: Reader) -> None:
    other = kubeconfig(reader.hub.url, trustme.CA().cert_pem.bytes().decode(), {"token": reader.token}, "x")
    refused(reader, "hub-tls", 1, {"clusterName": "c1"}, "--kubeconfig", reader.write("k", other))
    assert reader.hub.audited(reader.user) == []


def test_a_hub_that_is_down_may_be_tried_again(reader: Reader) -> None:
    other = kubeconfig(f"https://127.0.0.1:{reserved_port()}", reader.hub.ca, {"token": reader.token}, "x")
    refused(reader, "hub-unreachable", 3, {"clusterName": "c1"}, "--kubeconfig", reader.write("k", other))


def test_no_hub_at_all_says_so(reader: Reader) -> None:
    refused(reader, "hub-none", 1, {"clusterName": "c1"}, KUBECONFIG="", HOME="")


def test_a_profile_does_not_lead_the_reader_to_another_namespace(reader: Reader) -> None:
    refused(reader, "profile-refused", 1, {"clusterName": "c1", "secretNamespace": "kube-system"})
    assert reader.hub.audited(reader.user) == []


def test_a_server_that_the_admin_did_not_list_gets_nothing_and_the_hub_is_not_asked(reader: Reader) -> None:
    refused(reader, "server-refused", 1, {"clusterName": "c1"}, "--allow-server", "*.example.com")
    assert reader.hub.audited(reader.user) == []
