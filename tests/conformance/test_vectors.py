"""Every vector, against every plugin that it applies to: as a function, and as the executable that clients run."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from execcred.conformance.cases import PLUGINS, Case, cases
from execcred.conformance.stage import CAN_UNSHARE, Done, Stage, parse_answer

from .commands import COMMAND, call, executable

if TYPE_CHECKING:
    from pathlib import Path

    from execcred.conformance.fakes import Authority

CASES = cases()
READERS = PLUGINS[:2]


def callable_here(case: Case) -> bool:
    """A plugin with an SDK changes its process, and some vectors are about processes."""
    return case.vector.get("only") != "executable" and (case.plugin in READERS or "exit" in case.vector["expect"])


@pytest.mark.skipif(bool(COMMAND), reason="another command is tested")
@pytest.mark.parametrize("case", [case for case in CASES if callable_here(case)], ids=str)
def test_as_a_function(case: Case, authority: Authority, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Stage(case, authority, tmp_path) as stage:
        judge(stage, call(stage, capfd))


@pytest.mark.parametrize("case", [case for case in CASES if case.vector.get("only") != "function"], ids=str)
def test_as_an_executable(case: Case, authority: Authority, tmp_path: Path) -> None:
    if ("pod" in case.vector or {"uid", "read_only"} & case.vector.get("process", {}).keys()) and not CAN_UNSHARE:
        pytest.skip("user namespaces are not allowed here")
    command = executable(case.plugin)
    with Stage(case, authority, tmp_path) as stage:
        runs = case.vector.get("runs", 1)
        with ThreadPoolExecutor(runs) as pool:
            results = [each.result() for each in [pool.submit(stage.execute, command) for _ in range(runs)]]
        assert len({done.stdout for done in results}) == 1  # byte for byte, as clients compare certificates' texts
        for done in results:
            judge(stage, done)


def judge(stage: Stage, done: Done) -> None:
    """Compare what a run left with what its vector expects, and with what holds for every run."""
    expect = stage.vector["expect"]
    secrets = [secret for secret in stage.maker.secrets if secret in done.stderr]
    assert not secrets, "a secret is on stderr"
    assert "Traceback" not in done.stderr
    if "exit" in expect:
        judge_failure(stage, done, expect)
    else:
        judge_answer(stage, done, expect)
    for text in stage.maker.build(expect.get("stderr", [])):
        assert text in done.stderr
    for text in stage.maker.build(expect.get("never", [])):
        assert text not in done.stderr + done.stdout
    if "within" in expect:
        assert done.seconds < expect["within"]
    judge_servers(stage, expect)


def judge_failure(stage: Stage, done: Done, expect: dict[str, Any]) -> None:
    """Stdout is empty; stderr is one line with a code, then at most one with a hint."""
    codes = expect["code"] if isinstance(expect["code"], list) else [expect["code"]]
    assert (done.status, done.stdout) == (expect["exit"], ""), done.stderr
    first, *rest = done.stderr.removesuffix("\n").split("\n")
    found = re.fullmatch(rf"{stage.case.plugin}-plugin: error: .*[^ ] \[([a-z0-9-]+)\]", first)
    assert found, done.stderr
    assert found[1] in codes, done.stderr
    assert len(rest) < 2
    assert all(line.startswith("hint: ") for line in rest)
    assert done.stderr.replace("\n", "").isprintable()


def judge_answer(stage: Stage, done: Done, expect: dict[str, Any]) -> None:
    """Stdout is one line of JSON, or the text that is expected; stderr is silent unless it is expected not to be."""
    assert done.status == 0, done.stderr
    if "stderr" not in expect:
        assert done.stderr == ""
    if "stdout" in expect:
        assert done.stdout == stage.maker.build(expect["stdout"])
        return
    if "prints" in expect:
        assert all(text in done.stdout for text in stage.maker.build(expect["prints"])), done.stdout
        return
    answer = parse_answer(done.stdout)
    version = expect.get("api_version", "v1")
    assert answer["apiVersion"] == f"client.authentication.k8s.io/{version}"
    status = answer["status"]
    ends = status.pop("expirationTimestamp", None)
    if "status" in expect:
        assert status == stage.maker.build(expect["status"])
        judge_end(ends, expect.get("ends"), stage.maker.now)
    assert status.get("token") or (status.get("clientCertificateData") and status.get("clientKeyData"))
    assert set(status) <= {"token", "clientCertificateData", "clientKeyData"}
    assert all(status.values())


def judge_end(stamp: str | None, seconds: float | None, now: float) -> None:
    """The announced end, in seconds after the vector's start, is exact but for the whole second."""
    if seconds is None:
        assert stamp is None
        return
    assert stamp is not None
    assert re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", stamp)
    end = datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    assert -1 <= end - (now + seconds) <= 1
    assert end > time.time()


def judge_servers(stage: Stage, expect: dict[str, Any]) -> None:
    """Compare what hub and proxy were asked."""
    if "requests" in expect:
        assert stage.good_hub
        asked = [f"{each.method} {each.path}" for each in stage.good_hub.requests]
        assert asked == expect["requests"] * stage.vector.get("runs", 1)
        assert {each.user for each in stage.good_hub.requests} <= {expect.get("as", "reader")}
        assert not asked or len(asked) == stage.good_hub.connections
    if "headers" in expect:
        assert stage.good_hub
        [request] = stage.good_hub.requests
        assert set(request.headers) == set(expect["headers"])
    if "proxied" in expect:
        assert stage.proxy
        assert stage.proxy.targets == stage.maker.build(expect["proxied"])
    if "proxy_authorization" in expect:
        assert stage.proxy
        assert stage.proxy.authorizations == expect["proxy_authorization"]


def test_every_vector_has_an_id_of_its_own_that_reads_as_a_sentence() -> None:
    ids = [str(case) for case in CASES]
    assert len(ids) == len(set(ids))
    assert all(len(case.id.split()) > 2 for case in CASES)


def test_vectors_know_no_key_that_nobody_reads() -> None:
    known = {"id", "plugins", "why", "only", "expect", "stand_alone", "exec_info", "info", "spec", "cluster", "config"}
    known |= {"args", "env", "files", "hub", "proxy", "pod", "process", "runs"}
    expected = {"exit", "code", "stderr", "never", "within", "requests", "as", "headers", "proxied", "stdout", "prints"}
    expected |= {"proxy_authorization", "api_version", "status", "ends"}
    for case in CASES:
        assert case.vector.keys() <= known, case
        assert case.vector["expect"].keys() <= expected, case
        assert json.loads(json.dumps(case.vector)) == case.vector
