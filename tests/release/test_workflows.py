"""The forge's workflows: pinned, with as few rights as they need, and no way in for strangers' text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[2] / ".github/workflows"
FILES = sorted(path.name for path in FOLDER.iterdir())
# What a job may do beyond reading the repository, per workflow and job.
WRITES = {
    ("release.yml", "publish"): {
        "contents": "write",
        "packages": "write",
        "id-token": "write",
        "attestations": "write",
    }
}


def load(name: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load((FOLDER / name).read_text())
    return found


def steps(name: str) -> Iterator[dict[str, Any]]:
    for job in load(name)["jobs"].values():
        yield from job["steps"]


def test_there_are_two() -> None:
    assert FILES == ["ci.yml", "release.yml"]


@pytest.mark.parametrize("name", FILES)
def test_every_action_is_pinned_by_commit_and_names_its_version(name: str) -> None:
    lines = [line.strip().removeprefix("- ") for line in (FOLDER / name).read_text().splitlines()]
    used = [line for line in lines if line.startswith("uses:")]
    assert len(used) == sum("uses" in step for step in steps(name)) > 0
    for line in used:
        assert re.fullmatch(r"uses: [a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_granted_but_what_a_job_asks_for(name: str) -> None:
    workflow = load(name)
    assert workflow["permissions"] == {}
    for job, content in workflow["jobs"].items():
        assert content["permissions"] == WRITES.get((name, job), {"contents": "read"}), job


@pytest.mark.parametrize("name", FILES)
def test_no_workflow_runs_with_rights_on_what_a_stranger_sent(name: str) -> None:
    triggers = load(name)[True]  # YAML 1.1 reads the key `on` as true
    assert set(triggers) <= {"push", "pull_request"}
    if name == "release.yml":
        assert set(triggers) == {"push"}
        assert set(triggers["push"]) == {"tags"}


@pytest.mark.parametrize("name", FILES)
def test_no_script_holds_an_expression(name: str) -> None:
    """What `${{ }}` puts into a script is code, and a secret there may end in a log; an environment is text."""
    assert not [step for step in steps(name) if "${{" in step.get("run", "")]


@pytest.mark.parametrize("name", FILES)
def test_a_checkout_leaves_no_credentials_behind(name: str) -> None:
    for step in steps(name):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"] == {"persist-credentials": False}


@pytest.mark.parametrize("name", FILES)
def test_every_job_ends_by_itself(name: str) -> None:
    for job in load(name)["jobs"].values():
        assert job["timeout-minutes"] <= 60


def test_ci_runs_the_script_that_everybody_runs() -> None:
    assert any(".ci/run" in step.get("run", "") for step in steps("ci.yml"))


def test_a_release_is_checked_before_anything_that_may_write_runs() -> None:
    jobs = load("release.yml")["jobs"]
    assert any(step.get("run") == "make release-check" for step in jobs["build"]["steps"])
    assert jobs["publish"]["needs"] == "build"
    assert not any(step.get("uses", "").startswith("actions/checkout@") for step in jobs["publish"]["steps"])


def test_a_release_pushes_both_architectures_signs_and_attests() -> None:
    script = "\n".join(step.get("run", "") + step.get("uses", "") for step in steps("release.yml"))
    for part in ("skopeo copy --all", "cosign sign ", "cosign attest ", "sign-blob", "attest-build-provenance@"):
        assert part in script


def test_the_release_notes_tell_each_variable_that_the_workflows_read() -> None:
    read = {name for file in FILES for name in re.findall(r"vars\.(\w+)", (FOLDER / file).read_text())}
    text = (FOLDER.parents[1] / "docs/release.md").read_text()
    assert {name for name in read if f"variable `{name}`" in text} == read
