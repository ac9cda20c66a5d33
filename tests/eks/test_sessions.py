"""The cache of eks: sessions of an identity, shared by clusters and processes; every input tells entries apart."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from eks.cloud import PLUGIN, Result, environment, exec_info, run
from eks.test_sources import WHERE, configure, irsa, keys_of, mfa, sso, sts
from execcred.conformance.fakes.aws import ROLE, STATIC, Cloud, Token

if TYPE_CHECKING:
    from pathlib import Path


def ask(variables: dict[str, str], folder: Path, cluster: str = "demo", role: str = "target", *more: str) -> Result:
    """Ask as a controller does: one parent for all clusters, each with its server."""
    info = exec_info(f"https://{cluster}.gr7.eu-west-1.eks.amazonaws.com")
    arguments = ("--cluster-name", cluster, "--role-arn", ROLE + role, "--cache-dir", str(folder), *more)
    return run({**variables, "KUBERNETES_EXEC_INFO": info}, *arguments)


def test_forty_clusters_of_one_role_cost_one_call(sts_cloud: Cloud, tmp_path: Path) -> None:
    variables = sts(sts_cloud, tmp_path, **STATIC)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda number: ask(variables, tmp_path / "c", f"c{number}"), range(40)))
    for number, result in enumerate(results):
        assert Token(result.answer["status"]["token"], cluster=f"c{number}").problem == ""
    assert sts_cloud.actions() == ["AssumeRole"]


def test_the_same_parent_asking_again_for_the_same_server_fetches_anew(cloud: Cloud, tmp_path: Path) -> None:
    variables = sts(cloud, tmp_path, **STATIC)
    for cluster, calls in (("a", 1), ("b", 1), ("a", 2), ("b", 2), ("b", 3)):
        assert ask(variables, tmp_path / "c", cluster).status == 0
        assert len(cloud.asked) == calls


@pytest.mark.parametrize("source", ["keys", "role", "role of the SDK", "web identity", "SSO"])
def test_without_a_cache_folder_nothing_is_kept(sts_cloud: Cloud, tmp_path: Path, source: str) -> None:
    """A client may run a plugin and not use its answer: nothing may have happened but that AWS was asked."""
    variables = sts(sts_cloud, tmp_path, **STATIC)
    more: tuple[str, ...] = ("--role-arn", ROLE + "target")
    if source == "keys":
        more = ()
    elif source == "role of the SDK":
        configure(tmp_path, credentials=keys_of("default"))
    elif source == "web identity":
        variables, more = irsa(sts_cloud, tmp_path), ()
    elif source == "SSO":
        variables, more = sso(sts_cloud, tmp_path, 3600), ("--profile", "dev")
        variables |= {"AWS_CA_BUNDLE": sts_cloud.ca} if sts_cloud.ca else {}
    before = set(tmp_path.rglob("*"))
    assert run({**variables, "TMPDIR": str(tmp_path)}, *WHERE, *more).token.problem == ""
    assert set(tmp_path.rglob("*")) == before


def test_another_parent_hits(cloud: Cloud, tmp_path: Path) -> None:
    variables = sts(cloud, tmp_path, **STATIC)
    arguments = [PLUGIN, *WHERE, "--role-arn", ROLE + "target", "--cache-dir", str(tmp_path / "c")]
    for _ in range(3):
        # sh stays as the parent, since a command follows.
        command = ["sh", "-c", '"$@"; exit $?', "sh", *map(str, arguments)]
        done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        assert json.loads(done.stdout)["status"]["token"]
    assert len(cloud.asked) == 1


def test_clusters_are_told_apart_also_where_the_client_sends_no_cluster_info(cloud: Cloud, tmp_path: Path) -> None:
    variables = sts(cloud, tmp_path, **STATIC)
    for cluster, calls in (("a", 1), ("b", 1), ("a", 2)):
        run(variables, "-i", cluster, "--region", "eu-west-1", "-r", ROLE + "x", "--cache-dir", str(tmp_path / "c"))
        assert len(cloud.asked) == calls


@pytest.mark.parametrize(
    ("variables", "arguments"),
    [
        ({}, ("--session-name", "other")),
        ({}, ("--external-id", "other")),
        ({}, ("--role-arn", ROLE + "second")),
        ({}, ("--profile", "other")),
        ({}, ("--region", "cn-north-1")),
        ({}, ("--fips",)),
        ({"AWS_ACCESS_KEY_ID": "AKIAother", "AWS_SECRET_ACCESS_KEY": "x"}, ()),
        ({"AWS_SESSION_TOKEN": "other"}, ()),
        ({"AWS_MAX_ATTEMPTS": "1"}, ()),
    ],
)
def test_each_input_has_an_entry_of_its_own(
    sts_cloud: Cloud, tmp_path: Path, variables: dict[str, str], arguments: tuple[str, ...]
) -> None:
    configure(tmp_path, credentials=keys_of("other"))
    known = sts(sts_cloud, tmp_path, **STATIC)
    assert ask(known, tmp_path / "c", "a").status == 0
    assert ask({**known, **variables}, tmp_path / "c", "b", "target", *arguments).status == 0
    assert len(sts_cloud.asked) == 2
    assert ask(known, tmp_path / "c", "c").status == 0
    assert len(sts_cloud.asked) == 2


def test_a_changed_aws_config_is_another_input_and_another_region_is_not(cloud: Cloud, tmp_path: Path) -> None:
    known = sts(cloud, tmp_path, **STATIC)
    assert ask(known, tmp_path / "c", "a").status == 0
    assert ask({**known, "AWS_REGION": "us-east-1"}, tmp_path / "c", "b").status == 0
    assert len(cloud.asked) == 1
    configure(tmp_path, "[default]\nregion = us-east-1\n")
    assert ask(known, tmp_path / "c", "c").status == 0
    assert len(cloud.asked) == 2


def test_a_new_web_identity_token_is_another_input(cloud: Cloud, tmp_path: Path) -> None:
    known = irsa(cloud, tmp_path)
    for cluster in ("a", "b"):
        assert ask(known, tmp_path / "c", cluster).status == 0
    assert cloud.actions() == ["AssumeRoleWithWebIdentity", "AssumeRole"]
    (tmp_path / "token").write_text("the token of another service account")
    assert ask(known, tmp_path / "c", "c").status == 0
    assert len(cloud.asked) == 4


def test_long_term_keys_and_tokens_are_never_on_disk(sts_cloud: Cloud, tmp_path: Path) -> None:
    configure(tmp_path, credentials=keys_of("default"))
    folder = tmp_path / "c"
    first = run(environment(tmp_path), *WHERE, "--cache-dir", str(folder))
    second = ask(sts(sts_cloud, tmp_path, **STATIC), folder)
    held = "".join([file.read_text() for file in folder.iterdir()])
    assert "secret-of-ASIAtarget" in held
    for secret in ("secret-of-AKIAdefault", "secret-of-AKIASTATIC"):
        assert secret not in held
    for result in (first, second):
        assert result.answer["status"]["token"].partition(".")[2] not in held


def test_an_mfa_session_of_a_terminal_serves_those_who_cannot_be_asked(cloud: Cloud, tmp_path: Path) -> None:
    from eks.test_sources import in_terminal

    mfa(tmp_path)
    variables = sts(cloud, tmp_path)
    arguments = (*WHERE, "--profile", "safe", "--cache-dir", str(tmp_path / "c"))
    assert in_terminal(variables, b"123456\n", *arguments).token.access == "ASIAsafe"
    info = exec_info("https://10.0.0.1")
    assert run({**variables, "KUBERNETES_EXEC_INFO": info}, *arguments).token.access == "ASIAsafe"
    assert len(cloud.asked) == 1


def test_an_unusable_cache_is_no_reason_to_fail(cloud: Cloud, tmp_path: Path) -> None:
    variables = sts(cloud, tmp_path, **STATIC)
    (tmp_path / "file").write_text("")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    os.chmod(open_to_all, 0o777)
    for folder in (tmp_path / "file", tmp_path / "file/below", open_to_all):
        assert ask(variables, folder).token.problem == ""
    assert len(cloud.asked) == 3
    assert list(open_to_all.iterdir()) == []
