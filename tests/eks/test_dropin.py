"""A drop-in: the argument forms of the tools it replaces, what is not imported, and clusters found by their server."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import boto3
import pytest
from moto.server import ThreadedMotoServer

from eks.cloud import environment, exec_info, run
from eks.test_sources import WHERE, keys_of
from execcred.conformance.fakes.aws import ROLE, STATIC, Cloud, Token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROLES = f"{ROLE}target"


@pytest.mark.parametrize(
    ("arguments", "signer"),
    [
        # aws: as `aws eks update-kubeconfig` writes it, and as its manual has it
        ("--region eu-west-1 eks get-token --cluster-name demo --output json", "AKIASTATIC"),
        ("--region eu-west-1 eks get-token --cluster-name demo --output json --role-arn " + ROLES, "ASIAtarget"),
        ("eks get-token --cluster-id demo --region eu-west-1", "AKIASTATIC"),
        ("eks get-token --cluster-name demo --profile prod --region eu-west-1", "AKIAprod"),
        ("--profile prod --region eu-west-1 eks get-token --cluster-name demo", "AKIAprod"),
        # aws-iam-authenticator
        ("token -i demo --region eu-west-1", "AKIASTATIC"),
        ("token --cluster-id demo --region eu-west-1", "AKIASTATIC"),
        (f"token -i demo -r {ROLES} --region eu-west-1", "ASIAtarget"),
        (f"token -i demo --role {ROLES} -e abc -s me --region eu-west-1", "ASIAtarget"),
        (f"token -i=demo --role={ROLES} --external-id=abc --session-name=me --region=eu-west-1", "ASIAtarget"),
        # argocd-k8s-auth: its region comes from the environment
        ("aws --cluster-name demo", "AKIASTATIC"),
        (f"aws --cluster-name demo --role-arn {ROLES}", "ASIAtarget"),
        ("aws --cluster-name demo --profile prod", "AKIAprod"),
        # this one
        ("-cluster-name demo -region eu-west-1", "AKIASTATIC"),
        ("--cluster-name other --cluster-name demo --region us-east-1 --region eu-west-1", "AKIASTATIC"),
    ],
)
def test_the_arguments_of_replaced_tools_mean_the_same(
    cloud: Cloud, tmp_path: Path, arguments: str, signer: str
) -> None:
    (tmp_path / "credentials").write_text(keys_of("prod"))
    variables = environment(
        tmp_path,
        **STATIC,
        AWS_ENDPOINT_URL_STS=cloud.url,
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "credentials"),
        AWS_REGION="eu-west-1",
    )
    token = run(variables, *arguments.split()).token
    assert (token.access, token.region, token.problem) == (signer, "eu-west-1", "")


def test_the_cluster_may_come_from_the_variable_of_aws_iam_authenticator(tmp_path: Path) -> None:
    variables = environment(tmp_path, **STATIC, KUBERNETES_AWS_AUTHENTICATOR_CLUSTER_ID="demo")
    assert run(variables, "token", "--region", "eu-west-1").token.problem == ""


def test_the_bare_token_as_of_token_only(tmp_path: Path) -> None:
    for form in ("--token-only", "--output=token"):
        result = run(environment(tmp_path, **STATIC), "token", *WHERE, form)
        assert (result.status, result.err) == (0, "")
        assert Token(result.out.rstrip("\n")).problem == ""


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_unlike_theirs_the_answer_has_the_version_that_was_asked_for(tmp_path: Path, version: str) -> None:
    wanted = f"client.authentication.k8s.io/{version}"
    info = exec_info().replace("client.authentication.k8s.io/v1", wanted)
    assert run(environment(tmp_path, **STATIC, KUBERNETES_EXEC_INFO=info), *WHERE).answer["apiVersion"] == wanted
    assert run(environment(tmp_path, **STATIC), *WHERE, "--api-version", version).answer["apiVersion"] == wanted


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("token --forward-session-name", "did you mean --session-name?"),
        ("token --cache", "did you mean --cache-dir?"),
        ("eks get-token --cluster demo", "did you mean --cluster-"),
        ("eks update-kubeconfig", "accepted are flags and eks get-token, get-token, token, aws"),
        ("eks get-token --role-arn --region x", "flag --role-arn needs a value"),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_the_nearest(tmp_path: Path, arguments: str, text: str) -> None:
    result = run(environment(tmp_path), *arguments.split())
    assert (result.code, result.status) == ("usage", 2)
    assert text in result.err


# Each costs start-up time; see the numbers of `make bench`.
COSTLY = ("botocore", "boto3", "urllib3", "ssl", "socket", "logging", "subprocess", "typing", "dataclasses", "inspect",
          "urllib", "http", "email", "argparse", "pathlib", "tempfile", "importlib.metadata", "asyncio")  # fmt: skip


def imported(variables: dict[str, str], *arguments: str) -> set[str]:
    """Return the modules that a run has imported."""
    program = (
        "import os, sys; import execcred_eks; from execcred import Env; from execcred._run import respond\n"
        "respond(execcred_eks.PLUGIN, sys.argv[1:], Env(os.environ)); print(' '.join(sys.modules))"
    )
    command = [sys.executable, "-S", "-c", program, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment with the plugin, but without site-packages, whose .pth files import modules."""
    import execcred
    import execcred_eks

    folders = [execcred.__path__[0].rpartition("/")[0], str(execcred_eks.__file__).rpartition("/")[0]]
    folders.append(next(path for path in sys.path if path.endswith("site-packages")))
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": ":".join(folders)}


def test_keys_in_the_environment_need_neither_sdk_nor_tls(bare: dict[str, str]) -> None:
    modules = imported({**bare, **STATIC}, *WHERE)
    assert "execcred_eks_sign" in modules
    assert modules & set(COSTLY) == set()


@pytest.mark.parametrize("source", ["keys", "irsa"])
def test_a_role_needs_no_sdk_where_the_environment_alone_decides(
    bare: dict[str, str], tls_cloud: Cloud, tmp_path: Path, source: str
) -> None:
    variables = {**bare, "AWS_ENDPOINT_URL_STS": tls_cloud.url, "AWS_CA_BUNDLE": tls_cloud.ca}
    (tmp_path / "token").write_text("jwt-1")
    more = (
        STATIC
        if source == "keys"
        else {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": ROLE + "irsa"}
    )
    modules = imported({**variables, **more}, *WHERE, "--role-arn", ROLES)
    assert modules & set(COSTLY) == {"ssl", "socket"}
    assert tls_cloud.actions()[-1] == "AssumeRole"
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text("")
    assert "botocore" in imported({**variables, **more}, *WHERE, "--role-arn", ROLES)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_help_needs_no_sdk(bare: dict[str, str], arguments: tuple[str, ...]) -> None:
    assert imported(bare, *arguments) & set(COSTLY) == set()


def test_a_cache_hit_needs_neither_sdk_nor_tls(bare: dict[str, str], cloud: Cloud, tmp_path: Path) -> None:
    variables = {**bare, **STATIC, "AWS_ENDPOINT_URL_STS": cloud.url}
    arguments = (*WHERE, "--role-arn", ROLES, "--cache-dir", str(tmp_path / "cache"))
    assert "botocore" in imported(variables, *arguments)
    other = {**variables, "KUBERNETES_EXEC_INFO": exec_info("https://10.0.0.2")}
    assert imported(other, *arguments) & set(COSTLY) == set()
    assert cloud.actions() == ["AssumeRole"]


@pytest.fixture
def endpoint() -> Iterator[tuple[str, str]]:
    """The URL of moto's EKS, and the endpoint of its one cluster, named demo."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        client = boto3.client(
            "eks", region_name="eu-west-1", endpoint_url=url, aws_access_key_id="x", aws_secret_access_key="y"
        )
        client.create_cluster(name="demo", roleArn=ROLE + "eks", resourcesVpcConfig={})
        yield url, client.describe_cluster(name="demo")["cluster"]["endpoint"]
    finally:
        server.stop()


def test_a_cluster_is_found_by_its_server_in_the_region_that_its_host_tells(
    endpoint: tuple[str, str], tmp_path: Path
) -> None:
    url, server = endpoint
    info = exec_info(server.rstrip("/") + ":443")
    variables = environment(tmp_path, **STATIC, AWS_ENDPOINT_URL_EKS=url, KUBERNETES_EXEC_INFO=info)
    token = run(variables, "--discover").token
    assert (token.problem, token.region) == ("", "eu-west-1")


def test_the_right_one_of_several_clusters_is_found(cloud: Cloud, tmp_path: Path) -> None:
    cloud.raw["GET /clusters"] = (200, json.dumps({"clusters": ["creating", "one", "demo"]}))
    cloud.raw["GET /clusters/creating"] = (200, json.dumps({"cluster": {"name": "creating"}}))
    for name in ("one", "demo"):
        described = {"cluster": {"name": name, "endpoint": f"https://{name}.gr7.eu-west-1.eks.amazonaws.com"}}
        cloud.raw[f"GET /clusters/{name}"] = (200, json.dumps(described))
    variables = environment(tmp_path, **STATIC, AWS_ENDPOINT_URL_EKS=cloud.url)
    info = exec_info("https://demo.gr7.eu-west-1.eks.amazonaws.com")
    assert run({**variables, "KUBERNETES_EXEC_INFO": info}, "--discover").token.problem == ""
    info = exec_info("https://two.gr7.eu-west-1.eks.amazonaws.com")
    result = run({**variables, "KUBERNETES_EXEC_INFO": info}, "--discover")
    assert (result.code, result.status) == ("cluster-unknown", 1)
    assert "none of the 3 clusters in eu-west-1" in result.err
    without = run(variables, "--discover", "--region", "eu-west-1")
    assert (without.code, without.status) == ("server-unknown", 2)
    for server in ("demo", "https://", "https://[::1"):  # no host, as the cluster has that is still being created
        odd = run({**variables, "KUBERNETES_EXEC_INFO": exec_info(server)}, "--discover", "--region", "eu-west-1")
        assert (odd.code, odd.status) == ("server-unknown", 2)


def test_a_refused_discovery_names_the_grant(cloud: Cloud, tmp_path: Path) -> None:
    cloud.refusals["GET /clusters"] = (403, "AccessDeniedException")
    variables = environment(
        tmp_path, **STATIC, AWS_ENDPOINT_URL_EKS=cloud.url, KUBERNETES_EXEC_INFO=exec_info("https://10.0.0.1")
    )
    result = run(variables, "--discover", "--region", "eu-west-1")
    assert (result.code, result.status) == ("aws-refused", 1)
    assert "grant eks:ListClusters" in result.err


def test_the_answer_is_one_line_of_json_whatever_the_aws_cli_is_set_to(tmp_path: Path) -> None:
    variables = environment(tmp_path, **STATIC, AWS_DEFAULT_OUTPUT="text", AWS_PAGER="less", PYTHONVERBOSE="1")
    out = run(variables, *WHERE).out
    assert out.count("\n") == 1
    assert json.loads(out)["kind"] == "ExecCredential"
