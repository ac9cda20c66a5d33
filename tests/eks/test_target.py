"""Which cluster, in which region: the order of what may tell it, and the errors when nothing does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from eks.cloud import environment, exec_info, run
from execcred import Env, ExecCredError
from execcred._run import respond
from execcred.conformance.fakes.aws import STATIC, Token
from execcred_eks import PLUGIN, region_of_server

if TYPE_CHECKING:
    from pathlib import Path

ARN = "arn:aws:eks:eu-west-1:111122223333:cluster/demo"
SERVER = "https://0123ABCD.gr7.eu-north-1.eks.amazonaws.com"


def ask(
    arguments: str, variables: dict[str, str] | None = None, server: str = "", config: dict[str, Any] | None = None
) -> Token:
    known = {**STATIC, **(variables or {}), "KUBERNETES_EXEC_INFO": exec_info(server, config)}
    answer = json.loads(respond(PLUGIN, arguments.split(), Env(known)))
    return Token(answer["status"]["token"])


@pytest.mark.parametrize(
    ("arguments", "variables", "server", "config", "region"),
    [
        (f"--cluster-name {ARN} --region us-east-2", {}, SERVER, {"region": "us-east-1"}, "us-east-2"),
        (f"--cluster-name {ARN}", {"EXECCRED_REGION": "us-east-2"}, SERVER, None, "us-east-2"),
        (f"--cluster-name {ARN}", {"AWS_REGION": "us-east-2"}, SERVER, {"region": "us-east-1"}, "eu-west-1"),
        ("", {"AWS_REGION": "us-east-2"}, SERVER, {"clusterName": ARN}, "eu-west-1"),
        ("-i demo", {"AWS_REGION": "us-east-2"}, SERVER, {"region": "us-east-1"}, "eu-north-1"),
        (
            "",
            {"AWS_REGION": "us-east-2"},
            "https://10.0.0.1",
            {"clusterId": "demo", "region": "us-east-1"},
            "us-east-1",
        ),
        ("-i demo --profile-args --region us-east-1", {}, SERVER, None, "eu-north-1"),
        ("-i demo", {"AWS_REGION": "us-east-2", "AWS_DEFAULT_REGION": "us-east-1"}, "", None, "us-east-2"),
        ("-i demo", {"AWS_DEFAULT_REGION": "us-east-1"}, "", None, "us-east-1"),
    ],
)
def test_the_region_is_the_first_of_flag_arn_server_config_and_environment(
    arguments: str, variables: dict[str, str], server: str, config: dict[str, Any] | None, region: str
) -> None:
    token = ask(arguments, variables, server, config)
    assert (token.region, token.host) == (region, f"sts.{region}.amazonaws.com")
    assert token.problem == ""


@pytest.mark.parametrize(
    ("server", "region"),
    [
        (SERVER, "eu-north-1"),
        (SERVER + ":443/", "eu-north-1"),
        ("https://0123.yl4.cn-north-1.eks.amazonaws.com.cn", "cn-north-1"),
        ("https://0123.sk1.us-gov-west-1.eks.amazonaws.com", "us-gov-west-1"),
        ("https://0123.gr7.us-iso-east-1.eks.c2s.ic.gov", "us-iso-east-1"),
        ("https://0123.gr7.eks-cluster.ap-south-1.api.aws", "ap-south-1"),
        ("https://eks.amazonaws.com", ""),
        ("https://kubernetes.example.com:6443", ""),
        ("https://0123.gr7.not_a_region.eks.amazonaws.com", ""),
        ("https://[fd00::1]:443", ""),
        ("", ""),
        ("eu-north-1.eks.amazonaws.com", ""),
    ],
)
def test_the_region_is_read_off_the_servers_host_name(server: str, region: str) -> None:
    assert region_of_server(server) == region


@pytest.mark.parametrize(
    ("arn", "host"),
    [
        ("arn:aws-cn:eks:cn-northwest-1:111122223333:cluster/demo", "sts.cn-northwest-1.amazonaws.com.cn"),
        ("arn:aws-us-gov:eks:us-gov-east-1:111122223333:cluster/demo", "sts.us-gov-east-1.amazonaws.com"),
        ("arn:aws-iso-b:eks:us-isob-east-1:111122223333:cluster/demo", "sts.us-isob-east-1.sc2s.sgov.gov"),
    ],
)
def test_an_arn_gives_name_region_and_partition(arn: str, host: str) -> None:
    token = ask(f"--cluster-name={arn}")
    assert (token.host, token.problem) == (host, "")


@pytest.mark.parametrize(
    ("arguments", "variables", "host"),
    [
        ("--fips", {}, "sts-fips.us-east-1.amazonaws.com"),
        ("", {"AWS_USE_FIPS_ENDPOINT": "true"}, "sts-fips.us-east-1.amazonaws.com"),
        ("--fips=false", {"AWS_USE_FIPS_ENDPOINT": "true"}, "sts.us-east-1.amazonaws.com"),
        ("", {"AWS_USE_DUALSTACK_ENDPOINT": "true"}, "sts.us-east-1.amazonaws.com"),
        ("", {"AWS_STS_REGIONAL_ENDPOINTS": "legacy"}, "sts.us-east-1.amazonaws.com"),
        ("", {"AWS_ENDPOINT_URL_STS": "https://vpce.example"}, "sts.us-east-1.amazonaws.com"),
        ("", {"AWS_DEFAULT_OUTPUT": "text"}, "sts.us-east-1.amazonaws.com"),
    ],
)
def test_the_signed_host_is_the_regions_own_and_fips_only_if_asked(
    arguments: str, variables: dict[str, str], host: str
) -> None:
    assert ask(f"-i demo --region us-east-1 {arguments}", variables).host == host


@pytest.mark.parametrize(
    ("arguments", "server", "config", "code", "text"),
    [
        ("--region eu-west-1", "", None, "cluster-missing", "no cluster name"),
        ("-i demo", "", None, "region-missing", "no region"),
        ("-i demo", "https://10.0.0.1", {}, "region-missing", "no region"),
        ("-i demo --region nowhere", "", None, "region-invalid", "flag --region tells no region"),
        ("-i demo", "", {"region": "x.evil.example"}, "region-invalid", "config key region tells no region"),
        ("-i arn:aws:eks:eu-west-1:1:nodegroup/x", "", None, "cluster-invalid", "not the ARN of an EKS cluster"),
        ("-i arn:aws:eks:cn-north-1:1:cluster/x", "", None, "cluster-invalid", "not the ARN of an EKS cluster"),
        ("-i arn:aws:iam::1:role/x", "", None, "cluster-invalid", "not the ARN of an EKS cluster"),
        ("--region eu-west-1", "", {"clusterName": "a\tb"}, "setting-invalid", "control character"),
        ("--region eu-west-1", "", {"clusterName": "a b"}, "cluster-invalid", "not the name or id"),
        ("--region eu-west-1", "", {"clusterName": 5}, "config-invalid", "must be a string"),
        ("-i demo --region eu-west-1 --session-name é!", "", None, "setting-invalid", "flag --session-name"),
        ("-i demo --region eu-west-1 --external-id x", "", None, "setting-invalid", "flag --external-id"),
        ("-i demo --region eu-west-1 --role-arn admin", "", None, "setting-invalid", "not the ARN of a role"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_source(
    arguments: str, server: str, config: dict[str, Any] | None, code: str, text: str, tmp_path: Path
) -> None:
    result = run(environment(tmp_path, **STATIC, KUBERNETES_EXEC_INFO=exec_info(server, config)), *arguments.split())
    assert (result.code, result.status) == (code, 2)
    assert text in result.err


@pytest.mark.parametrize(
    "config",
    [
        {"roleArn": "arn:aws:iam::111122223333:role/admin"},
        {"profile": "admin"},
        {"externalId": "guess"},
        {"sessionName": "other"},
        {"fips": True},
        {"discover": True},
        {"cacheDir": "/tmp"},
        {"timeout": 300},
    ],
)
def test_a_profile_may_not_choose_identity_endpoint_or_files(config: dict[str, Any]) -> None:
    with pytest.raises(ExecCredError, match="a profile may not set") as caught:
        ask("-i demo --region us-east-1", config=config)
    assert caught.value.code == "profile-refused"


def test_the_guard_lets_a_profile_choose_the_session_name_only_the_admin_can_give_it() -> None:
    guarded = "-i demo --region us-east-1 --allow-profile-identity"
    assert ask(guarded, config={"sessionName": "other"}).access == "AKIASTATIC"
    with pytest.raises(ExecCredError, match="a profile may not set") as caught:
        ask("-i demo --region us-east-1 --profile-args --allow-profile-identity")
    assert caught.value.code == "profile-refused"


def test_the_server_must_be_one_that_the_admin_allows() -> None:
    arguments = "-i demo --allow-server *.eks.amazonaws.com"
    assert ask(arguments, server=SERVER).problem == ""
    with pytest.raises(ExecCredError) as caught:
        ask(arguments, server="https://collector.example")
    assert caught.value.code == "server-refused"
