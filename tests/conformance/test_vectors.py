"""Every vector, against every plugin that it applies to: as a function, and as the executable that clients run."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from execcred.conformance.cases import KINDS, LEVELS, PLUGINS, Case, cases
from execcred.conformance.judge import judge
from execcred.conformance.stage import Stage, cannot_be_staged, lacks_ipv6

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
    if lacks_ipv6(case):
        pytest.skip("this machine has no IPv6")
    with Stage(case, authority, tmp_path) as stage:
        assert judge(stage, [call(stage, capfd)]) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.vector.get("only") != "function"], ids=str)
def test_as_an_executable(case: Case, authority: Authority, tmp_path: Path) -> None:
    if reason := cannot_be_staged(case):
        pytest.skip(reason)
    command = executable(case.plugin)
    with Stage(case, authority, tmp_path) as stage:
        runs = case.vector.get("runs", 1)
        with ThreadPoolExecutor(runs) as pool:
            results = [each.result() for each in [pool.submit(stage.execute, command) for _ in range(runs)]]
        assert judge(stage, results) == []


def test_every_vector_has_an_id_of_its_own_that_reads_as_a_sentence() -> None:
    ids = [str(case) for case in CASES]
    assert len(ids) == len(set(ids))
    assert all(len(case.id.split()) > 2 for case in CASES)


def test_vectors_know_no_key_that_nobody_reads() -> None:
    known = {
        "id",
        "plugins",
        "level",
        "why",
        "only",
        "expect",
        "stand_alone",
        "exec_info",
        "info",
        "spec",
        "cluster",
        "config",
    }
    known |= {"config", "args", "env", "files", "hub", "proxy", "pod", "process", "runs"}
    expected = {"exit", "code", "stderr", "never", "within", "requests", "as", "headers", "proxied", "stdout", "prints"}
    expected |= {"proxy_authorization", "api_version", "status", "ends", "issued", "may_refuse"}
    for case in CASES:
        assert case.vector.keys() <= known, case
        assert case.vector["expect"].keys() <= expected, case
        assert json.loads(json.dumps(case.vector)) == case.vector


def test_each_vector_has_a_level_and_what_only_this_suite_has_is_its_own() -> None:
    for case in cases(*KINDS):
        assert case.level in LEVELS
        ours = "args" in case.vector or any(name.startswith("EXECCRED_") for name in case.vector.get("env", {}))
        assert case.level == "OWN" or not ours, case
