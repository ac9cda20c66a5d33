"""The judge finds each fault of an answer, and blames another plugin for nothing that only this suite does."""

from __future__ import annotations

import binascii
import json
import math
import time
from typing import TYPE_CHECKING, Any

import pytest

from execcred.conformance.cases import Case
from execcred.conformance.judge import judge
from execcred.conformance.process import Done
from execcred.conformance.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from execcred.conformance.fakes import Authority

V1 = "client.authentication.k8s.io/v1"
Json = dict[str, Any]


def utc(seconds: float) -> str:
    """Return a time from now, up to the whole second: the vectors, which it is for, begin a moment later."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(math.ceil(time.time() + seconds)))


def answer(status: object, **fields: object) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status, **fields}) + "\n"


def found(
    authority: Authority, folder: Path, expect: Json, *runs: Done, level: str = "MUST", own: bool = True, **vector: Any
) -> list[tuple[str, str]]:
    case = Case("any", "a case of the test", level, {}, {"expect": expect, **vector})
    with Stage(case, authority, folder) as stage:
        return [(each.level, each.text) for each in judge(stage, runs, own=own)]


GOOD = answer({"token": "abc"})
ANSWERS = {
    "nothing": ("", "MUST", "stdout is empty"),
    "words": ("token: abc\n", "MUST", "not JSON"),
    "half": (GOOD[:40], "MUST", "not JSON"),
    "two documents": (GOOD + GOOD, "MUST", "something follows"),
    "words behind it": (GOOD + "done\n", "MUST", "something follows"),
    "words before it": ("hello\n" + GOOD, "MUST", "not JSON"),
    "brackets": ("[" * 100_000, "MUST", "nested too deep"),
    "an array": ("[]\n", "MUST", "no ExecCredential"),
    "another kind": (GOOD.replace("ExecCredential", "Secret"), "MUST", "no ExecCredential"),
    "another version": (
        GOOD.replace("/v1", "/v1beta1"),
        "MUST",
        "apiVersion is 'client.authentication.k8s.io/v1beta1'",
    ),
    "no version": (json.dumps({"kind": "ExecCredential", "status": {"token": "abc"}}) + "\n", "MUST", "apiVersion"),
    "no status": (json.dumps({"apiVersion": V1, "kind": "ExecCredential"}) + "\n", "MUST", "no status"),
    "a null status": (answer(None), "MUST", "no status"),
    "an empty status": (answer({}), "MUST", "neither a token nor"),
    "an empty token": (answer({"token": ""}), "MUST", "neither a token nor"),
    "a number for a token": (answer({"token": 5}), "MUST", "not a text"),
    "a token with a line end": (answer({"token": "abc\n"}), "MUST", "no header can carry"),
    "a token with a space": (answer({"token": "a bc"}), "MUST", "no header can carry"),
    "another script": (answer({"token": "abcé"}), "MUST", "no header can carry"),
    "a key alone": (answer({"clientKeyData": "x"}), "MUST", "key without its certificate"),
    "a certificate beside a token": (answer({"token": "a", "clientCertificateData": "x"}), "MUST", "without its key"),
    "no pair": (answer({"clientCertificateData": "x", "clientKeyData": "y"}), "MUST", "are no pair"),
    "an end that was": (answer({"token": "abc", "expirationTimestamp": utc(-5)}), "MUST", "already expired"),
    "an end in words": (answer({"token": "abc", "expirationTimestamp": "soon"}), "MUST", "no RFC 3339"),
    "an end without a zone": (answer({"token": "abc", "expirationTimestamp": utc(99)[:-1]}), "MUST", "no RFC 3339"),
    "a month of its own": (answer({"token": "abc", "expirationTimestamp": "2030-13-01T00:00:00Z"}), "MUST", "RFC 3339"),
    "an end in no calendar": (
        answer({"token": "abc", "expirationTimestamp": "0001-01-01T00:00:00+23:59"}),
        "MUST",
        "no RFC 3339",
    ),
    "a number for an end": (answer({"token": "abc", "expirationTimestamp": 5}), "MUST", "no RFC 3339"),
    "more in the status": (answer({"token": "abc", "user": "me"}), "SHOULD", "more than the credential"),
    "a null in the status": (answer({"token": "abc", "clientKeyData": None}), "SHOULD", "more than the credential"),
    "a spec beside it": (answer({"token": "abc"}, spec={}), "OWN", "in one line"),
    "YAML": (f"apiVersion: {V1}\nkind: ExecCredential\nstatus:\n  token: abc\n", "SHOULD", "stdout is YAML"),
    "many lines": (json.dumps(json.loads(GOOD), indent=2) + "\n", "OWN", "in one line"),
    "no line end": (GOOD.rstrip(), "OWN", "in one line"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_fault_of_an_answer_is_found(name: str, authority: Authority, tmp_path: Path) -> None:
    stdout, level, text = ANSWERS[name]
    (at, why), *rest = found(authority, tmp_path, {}, Done(0, stdout, "", 0.1))
    assert (at, text in why) == (level, True), why
    assert all(each == "OWN" for each, _ in rest)


def test_another_plugin_is_not_blamed_for_another_form(authority: Authority, tmp_path: Path) -> None:
    for name, (stdout, level, _) in ANSWERS.items():
        kept = found(authority, tmp_path, {}, Done(0, stdout, "", 0.1), own=False)
        assert bool(kept) == (level != "OWN"), name


def test_a_key_of_an_unknown_curve_is_no_key_for_clients(authority: Authority, tmp_path: Path) -> None:
    curve = binascii.b2a_base64(bytes.fromhex("301c020101040e") + bytes(13) + bytes.fromhex("01a00706052b81040006"))
    key = f"-----BEGIN EC PRIVATE KEY-----\n{curve.decode()}-----END EC PRIVATE KEY-----\n"
    status = {"clientCertificateData": authority.client("alice").certificate, "clientKeyData": key}
    [(level, why)] = found(authority, tmp_path, {}, Done(0, answer(status), "", 0.1))
    assert (level, why) == ("MUST", "certificate and key of the status are no pair")


@pytest.mark.parametrize("zone", ["Z", ".123Z", "+00:00"])
def test_any_rfc_3339_end_that_is_to_come_is_an_end(zone: str, authority: Authority, tmp_path: Path) -> None:
    done = Done(0, answer({"token": "abc", "expirationTimestamp": utc(900).replace("Z", zone)}), "", 0.1)
    assert found(authority, tmp_path, {}, done) == []


@pytest.mark.parametrize(
    ("given", "expected", "level", "text"),
    [
        (3540, 3540, "", ""),
        (3600, 3540, "SHOULD", "s later than a minute before"),
        (3000, 3540, "SHOULD", "s sooner"),
        (4000, 3540, "MUST", "s after the true one"),
        (None, 3540, "SHOULD", "does not announce"),
        (3540, None, "SHOULD", "nobody knows"),
        (None, None, "", ""),
    ],
)
def test_an_end_is_compared_with_the_true_one(
    given: float | None, expected: float | None, level: str, text: str, authority: Authority, tmp_path: Path
) -> None:
    status = {"token": "abc", **({"expirationTimestamp": utc(given)} if given else {})}
    expect = {"status": {"token": "abc"}, **({"ends": expected} if expected else {})}
    judged = found(authority, tmp_path, expect, Done(0, answer(status), "", 1.5))
    assert [at for at, _ in judged] == [level] * bool(level), judged
    assert all(text in why for _, why in judged), judged


def test_a_true_end_in_another_form_falls_short(authority: Authority, tmp_path: Path) -> None:
    status = {"token": "abc", "expirationTimestamp": utc(3540).replace("Z", "+00:00")}
    [(level, why)] = found(
        authority, tmp_path, {"status": {"token": "abc"}, "ends": 3540}, Done(0, answer(status), "", 9)
    )
    assert (level, "whole seconds of UTC" in why) == ("SHOULD", True)


def test_another_credential_is_told_by_its_kinds_only(authority: Authority, tmp_path: Path) -> None:
    done = Done(0, answer({"token": "of-somebody-else"}), "", 0.1)
    [(level, why)] = found(authority, tmp_path, {"status": {"token": "abc"}}, done)
    assert level == "MUST"
    assert why.endswith("the one that is there: token")


def test_a_pair_that_fits_is_a_credential(authority: Authority, tmp_path: Path) -> None:
    pair = authority.client("alice")
    status = {"clientCertificateData": pair.certificate, "clientKeyData": pair.key}
    assert found(authority, tmp_path, {}, Done(0, answer(status), "", 0.1)) == []


FAILURE = {"exit": 3, "code": "gone"}
OURS = "x-plugin: error: it is gone [gone]\nhint: look\n"
FAILURES = {
    "our form": (Done(3, "", OURS, 0.1), []),
    "no hint": (Done(3, "", OURS.partition("hint")[0], 0.1), []),
    "an answer all the same": (Done(0, GOOD, "", 0.1), ["MUST"]),
    "nothing, with 0": (Done(0, "", "", 0.1), ["MUST"]),
    "another status": (Done(1, "", OURS, 0.1), ["OWN"]),
    "another code": (Done(3, "", OURS.replace("[gone]", "[lost]"), 0.1), ["OWN"]),
    "free words": (Done(3, "", "no such thing\n", 0.1), ["OWN"]),
    "three lines": (Done(3, "", OURS + "hint: more\n", 0.1), ["OWN"]),
    "a second line that is no hint": (Done(3, "", OURS.replace("hint", "note"), 0.1), ["OWN"]),
    "colours": (Done(3, "", OURS.replace("gone [", "\033[1mgone ["), 0.1), ["OWN"]),
    "silence": (Done(3, "", "", 0.1), ["SHOULD", "OWN"]),
    "words on stdout": (Done(3, "sorry\n", OURS, 0.1), ["SHOULD"]),
    "a signal": (Done(-11, "", OURS, 0.1), ["SHOULD", "OWN"]),
    "a traceback": (Done(3, "", "Traceback (most recent call last):\nKeyError\n", 0.1), ["SHOULD", "OWN"]),
    "a panic": (Done(2, "", "panic: nil\n\ngoroutine 1 [running]:\n", 0.1), ["SHOULD", "OWN", "OWN"]),
    "a process left": (Done(3, "", OURS, 0.1, survivors=True), ["SHOULD"]),
    "no end": (Done(-9, "", "", 20.0, problem="it did not end within 20 s"), ["MUST"]),
}


@pytest.mark.parametrize("name", FAILURES)
def test_each_fault_of_a_failure_is_found(name: str, authority: Authority, tmp_path: Path) -> None:
    done, levels = FAILURES[name]
    judged = found(authority, tmp_path, FAILURE, done)
    assert [level for level, _ in judged] == levels, judged


EXPECTED: dict[str, tuple[Json, Done, str, str]] = {
    "words of stderr": ({**FAILURE, "stderr": ["look there"]}, Done(3, "", OURS, 0.1), "OWN", "'look there'"),
    "what must not be shown": ({**FAILURE, "never": ["look"]}, Done(3, "", OURS, 0.1), "SHOULD", "repeats"),
    "a limit": ({**FAILURE, "within": 2}, Done(3, "", OURS, 2.5), "SHOULD", "2.5 s instead of 2"),
    "a text": ({"stdout": "abc\n"}, Done(0, "abd\n", "", 0.1), "OWN", "another text"),
    "parts of a text": ({"prints": ["abc"]}, Done(0, "abd\n", "", 0.1), "OWN", "'abc'"),
    "silence": ({}, Done(0, GOOD, "a warning\n", 0.1), "SHOULD", "writes to stderr: a warning"),
    "an answer": ({}, Done(1, "", "gone\n", 0.1), "MUST", "it ends with 1: gone"),
    "an answer or a refusal": ({"may_refuse": True}, Done(1, "", "gone\n", 0.1), "SHOULD", "it ends with 1: gone"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_vector_expects_is_missed(name: str, authority: Authority, tmp_path: Path) -> None:
    expect, done, level, text = EXPECTED[name]
    [(at, why)] = found(authority, tmp_path, expect, done)
    assert (at, text in why) == (level, True), why


def test_a_vector_that_is_no_must_makes_no_must(authority: Authority, tmp_path: Path) -> None:
    for level in ("SHOULD", "OWN"):
        [(at, _)] = found(authority, tmp_path, {}, Done(0, "", "", 0.1), level=level)
        assert at == level
    assert found(authority, tmp_path, {}, Done(0, "", "", 0.1), level="OWN", own=False) == []


def test_a_credential_on_stderr_is_found_and_not_repeated(authority: Authority, tmp_path: Path) -> None:
    stdout = answer({"token": "printed-token"})
    judged = found(authority, tmp_path, {}, Done(0, stdout, "got printed-token\n", 0.1))
    assert ("MUST", "the credential is on stderr, too") in judged


def test_a_secret_of_the_vector_on_stderr_is_found_and_not_repeated(authority: Authority, tmp_path: Path) -> None:
    env = {"PASSWORD": {"$secret": "made-up-secret"}}
    judged = found(authority, tmp_path, {}, Done(1, "", "made-up-secret is wrong\033[0m", 0.1), env=env)
    assert judged[0] == ("MUST", "a secret is on stderr")
    assert "made-up-secret" not in str(judged)
    assert str(judged).isprintable()


def test_runs_that_differ_are_found(authority: Authority, tmp_path: Path) -> None:
    runs = [Done(0, answer({"token": token}), "", 0.1) for token in ("abc", "abd")]
    [(level, why)] = found(authority, tmp_path, {}, *runs)
    assert (level, "different bytes" in why) == ("SHOULD", True)


def test_what_hub_and_proxy_are_asked_is_compared(authority: Authority, tmp_path: Path) -> None:
    expect = {
        "requests": ["GET /api/v1/namespaces/fleet/secrets/c1"],
        "headers": ["host"],
        "proxied": ["{hub_host}:{hub_port}"],
        "proxy_authorization": ["Basic x"],
    }
    hub = {"secrets": {"fleet/c1": {"data": {"token": "abc"}}}}
    judged = found(authority, tmp_path, expect, Done(0, GOOD, "", 0.1), hub=hub, proxy={})
    assert [level for level, _ in judged] == ["SHOULD", "SHOULD", "SHOULD", "OWN"]
    assert "the hub was asked nothing" in judged[0][1]
