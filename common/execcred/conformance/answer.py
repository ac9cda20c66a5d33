"""Judges an answer as client-go reads it (its package plugin/pkg/client/auth/exec), then as we would have it."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from execcred._yaml import YAMLError, load

from .cases import MUST, OWN, SHOULD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .cases import Json
    from .process import Done
    from .stage import Stage

GROUP = "client.authentication.k8s.io"
YAML_LIMIT = 1 << 16  # characters: more than that is read slowly, and is no credential
MARGIN = 60  # seconds before the true end that we announce
STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
TEXTS = ("token", "clientCertificateData", "clientKeyData")


def judge_answer(stage: Stage, done: Done, expect: Json) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with what a run that succeeded printed: pairs of level and text."""
    answer, problem = parsed(done.stdout)
    if problem:
        yield MUST, problem
        return
    version = f"{GROUP}/{expect.get('api_version', 'v1')}"
    if answer.get("apiVersion") != version:
        yield MUST, f"the answer's apiVersion is {repr(answer.get('apiVersion'))[:60]}, and {version} was asked for"
    if not done.stdout.lstrip().startswith("{"):
        yield SHOULD, "stdout is YAML, which client-go reads, and other clients do not"
    if (
        done.stdout.count("\n") != 1
        or not done.stdout.endswith("\n")
        or set(answer) != {"apiVersion", "kind", "status"}
    ):
        yield OWN, "the answer is not apiVersion, kind and status in one line"
    status: Json = answer["status"]
    problems = [*credential_problems(status), *_end_problems(status)]
    yield from [(MUST, each) for each in problems]
    if problems:
        return
    if any(status[name] in done.stderr for name in TEXTS if status.get(name)):
        yield MUST, "the credential is on stderr, too"
    if not set(status) <= {*TEXTS, "expirationTimestamp"} or not all(status.values()):
        yield SHOULD, "the status holds more than the credential and its end"
    yield from _judge_content(stage, done, status, expect)


def parsed(stdout: str) -> tuple[Json, str]:
    """Return the ExecCredential on stdout, and why it is none."""
    if not stdout.strip():
        return {}, "it ends with 0, but stdout is empty"
    try:
        answer = json.loads(stdout)
    except ValueError as error:
        answer = _from_yaml(stdout)
        if not answer:
            what = "something follows the answer on stdout" if "Extra data" in str(error) else "stdout is not JSON"
            return {}, what
    except RecursionError:
        return {}, "stdout is nested too deep"
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        return {}, "stdout holds no ExecCredential"
    if not isinstance(answer.get("status"), dict):
        return {}, "the answer has no status"
    return answer, ""


def _from_yaml(stdout: str) -> Json:
    """Return the ExecCredential in a YAML document, {} when there is none."""
    try:
        answer = load(stdout) if len(stdout) <= YAML_LIMIT else None
    except (YAMLError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) and answer.get("kind") == "ExecCredential" else {}


def credential_problems(status: Json) -> Iterator[str]:
    """Yield why a client could not use a status."""
    if any(not isinstance(status.get(name, ""), str | None) for name in TEXTS):
        yield "a field of the status is not a text"
        return
    token, certificate, key = [status.get(name) or "" for name in TEXTS]
    if not token and not certificate and not key:
        yield "the status has neither a token nor a certificate and key"
    if bool(certificate) != bool(key):
        yield "the status has a certificate without its key, or a key without its certificate"
    elif certificate and not _pair(certificate, key):
        yield "certificate and key of the status are no pair"
    if not all("\x20" < char < "\x7f" for char in token):
        yield "no header can carry the token"


def _pair(certificate: str, key: str) -> bool:
    der, spki = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    try:
        leaf = x509.load_pem_x509_certificates(certificate.encode())[0].public_key().public_bytes(der, spki)
        return leaf == serialization.load_pem_private_key(key.encode(), None).public_key().public_bytes(der, spki)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False


def _end(status: Json) -> datetime | None:
    """Return the announced end.

    Raises ValueError when it is no RFC 3339 time.
    """
    stamp = status.get("expirationTimestamp")
    if stamp is None:
        return None
    if not isinstance(stamp, str) or not re.fullmatch(r"[-0-9]{10}[Tt][0-9:.]{8,}([Zz]|[-+][0-9:]{5})", stamp):
        raise ValueError
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except OverflowError:
        raise ValueError from None


def _end_problems(status: Json) -> Iterator[str]:
    try:
        end = _end(status)
    except ValueError:
        yield "the expirationTimestamp is no RFC 3339 time"
        return
    if end and end.timestamp() <= time.time():
        yield f"the answer has already expired, at {end:%Y-%m-%dT%H:%M:%SZ}"


def _judge_content(stage: Stage, done: Done, status: Json, expect: Json) -> Iterator[tuple[str, str]]:
    """The right credential, with its true end."""
    given = {name: status[name] for name in TEXTS if status.get(name)}
    if "status" in expect and given != stage.maker.build(expect["status"]):
        yield MUST, f"it gives another credential than the one that is there: {', '.join(given)}"
    if expect.get("issued") and (problem := stage.refusal(given.get("token", ""))):
        yield MUST, problem
    if "status" in expect or expect.get("issued"):
        yield from _judge_end(stage, done, status, expect.get("ends"))


def _judge_end(stage: Stage, done: Done, status: Json, expected: float | None) -> Iterator[tuple[str, str]]:
    """The announced end, in seconds after the vector's start, is exact but for the whole second and the run's time."""
    end = _end(status)
    if end is None or expected is None:
        if end is not None:
            yield SHOULD, "it announces an end that nobody knows"
        if expected is not None:
            yield SHOULD, "it does not announce the credential's end"
        return
    off = end.timestamp() - (stage.maker.now + expected)
    if off > MARGIN + 1 + done.seconds:
        yield MUST, f"the announced end is {off - MARGIN:.0f} s after the true one"
    elif not -1 <= off <= 1 + done.seconds:
        way = "later" if off > 0 else "sooner"
        yield SHOULD, f"the announced end is {abs(off):.0f} s {way} than a minute before the true one"
    if not STAMP.fullmatch(status["expirationTimestamp"]):
        yield SHOULD, "the announced end is not in whole seconds of UTC with a Z"
