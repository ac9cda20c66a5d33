"""Whatever comes in, the readers answer or say why not: no foreign exception, no hang, no secret in any text."""

from __future__ import annotations

import base64
import json
import re
import time
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from execcred import ExecCredError
from execcred._run import respond
from execcred.http import Response
from property import wild
from property.wild import MARK
from unit.support import ACCOUNT, KUBECONFIG_READER, NOW, READER, V1, V1BETA1, World, in_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from execcred.http import Server

RANDOM = st.randoms(use_true_random=True)
MARKS = (MARK, base64.b64encode(MARK.encode()).decode()[:-2])
STORED = {"token": b"abc", "value": wild.kubeconfig(Random(0), {"token": "abc"})}
CPU_SECONDS = 5.0  # a run takes milliseconds


class Hub(World):
    """A world whose hub answers what it is told."""

    body = b""

    def get(self, server: Server, path: str, headers: Mapping[str, str], limit: int) -> Response:
        if not self.body:
            return super().get(server, path, headers, limit)
        assert len(self.body) <= limit
        self.asked.append(path)
        return Response(200, self.body, {})


def hub(raw: str = "", body: bytes = b"") -> Hub:
    """Return a pod of namespace kueue with one Secret, asked with `raw`."""
    world = Hub({"KUBERNETES_EXEC_INFO": raw}, secrets={"kueue/one": STORED})
    world.body = body
    in_pod(world)
    world.files[f"{ACCOUNT}/token"] = MARK.encode()
    return world


def check(plugin: Any, line: list[str], world: World) -> str | None:
    """Run a plugin; return its answer, None when it said why not; fail on anything else."""
    started = time.process_time()
    try:
        answer = respond(plugin, line, world)
    except ExecCredError as error:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", error.code)
        assert error.message
        assert error.exit_status in (1, 2, 3)
        said = [error.message, error.hint, *world.debugged, *world.warned]
        answer = None
    else:
        said = [*world.debugged, *world.warned]
    assert not [mark for mark in MARKS if mark in "".join(said)]
    assert time.process_time() - started < CPU_SECONDS
    assert len(world.asked) <= 1
    return answer


def check_answer(answer: str, now: float) -> None:
    """Fail unless an answer is a whole credential that is announced to end in the future."""
    assert answer.endswith("\n")
    assert answer.count("\n") == 1
    found = json.loads(answer)
    assert found["apiVersion"] in (V1, V1BETA1)
    assert found["status"].get("token") or found["status"]["clientKeyData"]
    if end := found["status"].get("expirationTimestamp"):
        assert datetime.strptime(end, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp() > now


@given(RANDOM)
def test_any_request(r: Random) -> None:
    world = hub(wild.exec_info(r))
    line = r.choice(([], [], ["--allow-server=*.example"], ["--allow-namespace=*", "--cluster-name=one"]))
    answer = check(r.choice((READER, KUBECONFIG_READER)), line, world)
    if answer:
        check_answer(answer, NOW)
        assert world.asked in (
            ["/api/v1/namespaces/kueue/secrets/one"],
            *[["/api/v1/namespaces/evil/secrets/one"]] * ("--allow-namespace=*" in line),
        )


@given(RANDOM)
def test_any_kubeconfig_in_a_secret(r: Random) -> None:
    data = {"value": base64.b64encode(wild.kubeconfig(r)).decode()}
    world = hub(body=json.dumps({"kind": "Secret", "data": data}).encode())
    answer = check(KUBECONFIG_READER, ["--secret-name=one", "--check-server=warn"], world)
    if answer:
        check_answer(answer, NOW)


@given(RANDOM)
def test_any_kubeconfig_of_the_hub(r: Random) -> None:
    variables = {"KUBECONFIG": "/a:b"} if r.random() < 0.5 else {"HOME": "/home"}
    files = {place: wild.kubeconfig(r) for place in ("/a", "b", "/home/.kube/config")}
    world = Hub(variables, files=files, secrets={"kueue/one": STORED})
    answer = check(READER, ["--cluster-name=one"], world)
    if answer:
        check_answer(answer, NOW)
        assert world.sent["Authorization"].isprintable()


@given(RANDOM)
def test_any_command_line(r: Random) -> None:
    raw = wild.exec_info(r) if r.random() < 0.5 else ""
    line = wild.arguments(r)
    answer = check(r.choice((READER, KUBECONFIG_READER)), line, hub(raw))
    if answer and answer.startswith("{"):
        check_answer(answer, NOW)


@given(RANDOM)
def test_any_secret(r: Random) -> None:
    values = [MARK, f"{MARK}\n", f"{MARK} {MARK}", wild.text(r), "-----BEGIN CERTIFICATE-----\n" + MARK, ""]
    data = {
        key: base64.b64encode(r.choice(values).encode("utf-8", "surrogateescape")).decode()
        for key in r.sample(("token", "tls.crt", "tls.key", "value", "kubeconfig", "other"), 3)
    }
    secret = {"kind": "Secret", "type": r.choice(("Opaque", "kubernetes.io/tls")), "data": data}
    body = wild.written(r, wild.changed(r, secret)).encode("utf-8", "replace") or b" "
    line = ["--cluster-name=one"] if r.random() < 0.7 else ["--secret-name=one"]
    plugin = READER if line == ["--cluster-name=one"] else KUBECONFIG_READER
    answer = check(plugin, line, hub(body=body))
    if answer:
        check_answer(answer, NOW)
