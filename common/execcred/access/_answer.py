"""What a plugin printed, read as client-go reads it: one ExecCredential of the version that was asked for. Pure.

JSON only: client-go takes YAML too, other consumers do not, and no plugin of this suite prints it.
"""

from __future__ import annotations

import json
import re

from execcred._errors import ExecCredError
from execcred._protocol import Credential, announced_end, finish, json_type
from execcred._x509 import leaf_end

from ._format import Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from execcred._errors import Fail

    from ._profile import ExecSpec

KIND = "ExecCredential"
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def parse_answer(stdout: bytes, spec: ExecSpec, now: float) -> Credential:
    """Return the credential of an answer; its `expires` is when to run the plugin again, None when unknown.

    That is a little before the end that the plugin announces, or that token and certificate tell themselves.
    Raises ExecCredError("plugin-bad-answer"), TryAgain("credential-expired"); the answer itself is never repeated.
    """

    def fail(what: str) -> ExecCredError:
        return ExecCredError(
            "plugin-bad-answer",
            f"provider {spec.provider!r}: {spec.command} gave no usable answer: {what}",
            f"run it by hand: it must print one {KIND} object of {spec.api_version} as JSON, and nothing else",
        )

    answer = Fields(_json(stdout, fail), "", fail)
    if answer.get("kind") != KIND:
        raise answer.fail("kind", f"is not {KIND}")
    if answer.get("apiVersion") != spec.api_version:
        raise answer.fail("apiVersion", f"is not {spec.api_version}, which was asked for")
    if answer.get("status") is None:
        raise answer.fail("status", "is missing")
    status = Fields(answer.get("status"), "status", fail)
    credential = Credential(
        status.text("token"),
        status.text("clientCertificateData"),
        status.text("clientKeyData"),
        _time(status),
    )
    return _finished(credential, now, fail)


def _json(stdout: bytes, fail: Fail) -> Any:
    if not stdout.strip():
        raise fail("it printed nothing")
    try:
        return json.loads(stdout.decode())
    except json.JSONDecodeError as error:
        what = "there is something behind the JSON object" if error.msg == "Extra data" else "it is not JSON"
        raise fail(f"{what}, at character {error.pos} of {len(stdout)}") from None
    except (ValueError, RecursionError):
        raise fail("it is not JSON text") from None


def _time(status: Fields) -> float | None:
    from datetime import datetime

    value = status.get("expirationTimestamp")
    if value is None:
        return None
    if not isinstance(value, str):
        raise status.fail("expirationTimestamp", f"must be a string, is {json_type(value)}")
    try:
        return datetime.fromisoformat(value if RFC3339.fullmatch(value) else "").timestamp()
    except ValueError:
        raise status.fail("expirationTimestamp", "is no time of RFC 3339 with a zone") from None


def _finished(credential: Credential, now: float, fail: Fail) -> Credential:
    try:
        whole = finish(credential, now, leaf_end)
    except ExecCredError as error:
        if error.code == "credential-expired":
            raise
        raise fail(error.message) from None
    end = whole.expires
    until = None if end is None else announced_end(end, now)
    return Credential(whole.token, whole.certificate, whole.key, until)
