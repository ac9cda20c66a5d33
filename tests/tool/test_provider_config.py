"""provider-config: what it prints for each consumer, and what it refuses to print."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from execcred._urls import matches
from execcred.tool._facts import CONSUMERS, SUBJECTS
from execcred.tool._provider_config import NOT_PASSED, TABLE
from tool.support import from_yaml, printed, refused

SERVERS = {
    "eks": ["https://0123.gr7.us-gov-west-1.eks.amazonaws.com", "https://0123.sk1.cn-north-1.eks.amazonaws.com.cn"],
    "gke": [
        "https://connectgateway.googleapis.com/v1/projects/1/locations/global/gkeMemberships/c",
        "https://europe-west1-connectgateway.googleapis.com/v1/projects/1",
        "https://gke-0123456789abcdef.europe-west1.gke.goog",
    ],
    "aks": [
        "https://c-abcd.hcp.westeurope.azmk8s.io:443",
        "https://c.hcp.usgovvirginia.cx.aks.containerservice.azure.us",
    ],
}
FOREIGN = [
    "https://evil.example",
    "https://eks.amazonaws.com.evil.example",
    "https://azmk8s.io.evil.example",
    "https://evilconnectgateway.googleapis.com.example",
]


def config(plugin: str, consumer: str, *flags: str) -> dict[str, Any]:
    """Return the exec config of a consumer's output."""
    text = printed("provider-config", f"--plugin={plugin}", f"--for={consumer}", *flags)
    data = from_yaml(text)
    if consumer == "kueue":
        data = {"providers": next(iter(data["multiKueue"]["clusterProfile"].values()))}
    if consumer == "knative":
        data = data["knative_operator"]["multicluster"]["accessProvidersConfig"]
    if consumer == "argocd":
        return dict(json.loads(data["stringData"]["config"])["execProviderConfig"])
    assert len(data["providers"]) == 1
    return dict(data["providers"][0]["execConfig"])


def arguments(plugin: str, consumer: str, *flags: str) -> list[str]:
    """Return the plugin's arguments in a consumer's output."""
    found: list[str] = config(plugin, consumer, *flags)["args"]
    return found


@pytest.mark.parametrize("plugin", SUBJECTS)
@pytest.mark.parametrize("consumer", [name for name in CONSUMERS if name != "ocm"])
def test_every_output_keeps_the_rules_that_users_ran_into(plugin: str, consumer: str) -> None:
    found = config(plugin, consumer)
    assert found["command"] == f"{CONSUMERS[consumer].mount.format(plugin=plugin)}/bin/{plugin}-plugin"
    assert found["apiVersion"] == "client.authentication.k8s.io/v1"
    words = [found["command"], *found["args"]]  # some clients join them and ask a shell
    script = f"printf '%s\\n' {' '.join(words)}"
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split() == words
    assert "--api-version=v1" in found["args"]
    assert found["provideClusterInfo"] is True
    assert found["installHint"]
    assert found.get("interactiveMode") == (None if consumer == "argocd" else "Never")
    assert any(each.startswith("--allow-server=") for each in found["args"]) == (plugin in SERVERS)


@pytest.mark.parametrize("plugin", SERVERS)
def test_the_example_allows_the_clouds_servers_and_no_others(plugin: str) -> None:
    (flag,) = [each for each in arguments(plugin, "generic") if each.startswith("--allow-server=")]
    patterns = flag.partition("=")[2].split(",")
    assert all(matches(server, patterns) for server in SERVERS[plugin])
    assert not any(matches(server, patterns) for server in FOREIGN)
    assert matches(SUBJECTS[plugin].server.format(cluster="c"), patterns)


@pytest.mark.parametrize("consumer", ["generic", "multicluster-runtime", "sveltos", "ocm"])
def test_provider_files_are_json_with_policies_at_their_default(consumer: str) -> None:
    text = printed("provider-config", "--plugin=secretreader", f"--for={consumer}")
    (provider,) = json.loads(text)["providers"]
    assert set(provider) == {"name", "execConfig"}


@pytest.mark.parametrize(
    ("flags", "field"), [((), "accessProviders"), (("--credentials-providers",), "credentialsProviders")]
)
def test_kueue_gets_the_list_under_the_name_that_its_version_knows(flags: tuple[str, ...], field: str) -> None:
    data = from_yaml(printed("provider-config", "--plugin=eks", "--for=kueue", *flags))
    assert list(data["multiKueue"]["clusterProfile"]) == [field]
    assert data["featureGates"] == {"MultiKueueClusterProfile": True}


def test_argo_cd_gets_variables_as_a_map_and_others_as_a_list() -> None:
    flag = "--env=AWS_USE_FIPS_ENDPOINT=true,A=b=c"
    assert config("eks", "argocd", flag)["env"] == {"AWS_USE_FIPS_ENDPOINT": "true", "A": "b=c"}
    assert config("eks", "kueue", flag)["env"] == [
        {"name": "AWS_USE_FIPS_ENDPOINT", "value": "true"},
        {"name": "A", "value": "b=c"},
    ]


@pytest.mark.parametrize(
    ("plugin", "naming"),
    [
        ("secretreader", ["--cluster-name=c1"]),
        ("kubeconfig-secretreader", ["--secret-name=c1-kubeconfig", "--key=value"]),
        ("eks", ["--cluster-name=c1", "--region=eu-central-1"]),
        ("gke", []),
        ("aks", ["--login=workloadidentity"]),
    ],
)
def test_without_cluster_info_the_flags_name_the_cluster(plugin: str, naming: list[str]) -> None:
    found = config(plugin, "argocd", "--without-cluster-info", "--cluster=c1")
    assert sorted(found["args"]) == sorted(["--api-version=v1", *naming])
    assert "config" not in found
    assert "provideClusterInfo" not in found


WEST = "--server=https://0123.gr7.us-west-2.eks.amazonaws.com"
ARN = "arn:aws:eks:us-west-2:111122223333:cluster/Prod_1"


@pytest.mark.parametrize(
    ("flags", "extension"),
    [
        ((), {"clusterName": "spoke-1", "region": "eu-central-1"}),
        ((WEST,), {"clusterName": "spoke-1", "region": "us-west-2"}),
        (
            ("--server=https://eks.internal.example", "--region=us-east-1"),
            {"clusterName": "spoke-1", "region": "us-east-1"},
        ),
        (("--server=https://eks.internal.example",), {"clusterName": "spoke-1"}),
        ((WEST, "--cluster=prod", f"--cluster-name={ARN}"), {"clusterName": ARN, "region": "us-west-2"}),
    ],
)
def test_an_eks_clusters_region_is_its_own_and_never_the_examples(
    flags: tuple[str, ...], extension: dict[str, str]
) -> None:
    profile = from_yaml(printed("provider-config", "--plugin=eks", "--for=kueue", "--part=cluster-profile", *flags))
    (provider,) = profile["status"]["accessProviders"]
    assert provider["cluster"]["extensions"][0]["extension"] == extension
    named = [f"--cluster-name={extension['clusterName']}"]
    named += [f"--region={extension['region']}"] if "region" in extension else []
    assert {*named} == {*arguments("eks", "argocd", "--without-cluster-info", *flags)} - {"--api-version=v1"}


def test_knative_mounts_the_image_above_the_command() -> None:
    data = from_yaml(printed("provider-config", "--plugin=eks", "--for=knative", "--image=r.example/eks@sha256:00"))
    (plugin,) = data["knative_operator"]["multicluster"]["plugins"]
    assert plugin == {"name": "eks", "image": "r.example/eks@sha256:00", "mountPath": "/access-plugins/eks"}
    assert config("eks", "knative")["command"].startswith("/access-plugins/eks/")


def test_ocm_gets_its_providers_name_and_the_managed_service_account() -> None:
    text = printed("provider-config", "--plugin=secretreader", "--for=ocm", "--managed-serviceaccount=kueue")
    (provider,) = json.loads(text)["providers"]
    assert provider["name"] == "open-cluster-management"
    assert "--managed-serviceaccount=kueue" in provider["execConfig"]["args"]


def test_sveltos_runs_our_reader_and_not_its_own_of_the_plain_name() -> None:
    (provider,) = json.loads(printed("provider-config", "--plugin=kubeconfig-secretreader", "--for=sveltos"))[
        "providers"
    ]
    assert provider["name"] != "kubeconfig-secretreader"


@pytest.mark.parametrize(
    ("plugin", "flags", "wanted"),
    [
        ("eks", ("--role-arn", "arn:aws:iam::111122223333:role/x"), "--role-arn=arn:aws:iam::111122223333:role/x"),
        ("eks", ("-r", "arn:aws:iam::111122223333:role/x"), "--role-arn=arn:aws:iam::111122223333:role/x"),
        ("eks", ("--discover",), "--discover"),
        ("eks", ("--discover=yes",), "--discover"),
        ("eks", ("--discover=false",), "--discover=false"),
        ("eks", ("--allow-server=a.example",), "--allow-server=a.example"),
        ("aks", ("--login=msi",), "--login=msi"),
        ("secretreader", ("--api-version=v1beta1",), "--api-version=v1beta1"),
        ("secretreader", ("--timeout=20s",), "--timeout=20s"),
    ],
)
def test_settings_of_the_plugin_become_its_arguments(plugin: str, flags: tuple[str, ...], wanted: str) -> None:
    given = arguments(plugin, "generic", *flags)
    assert given.count(wanted) == 1
    names = [each.partition("=")[0] for each in given]
    assert len(names) == len(set(names))


def test_the_version_of_flag_and_field_agree() -> None:
    found = config("gke", "kueue", "--api-version=v1beta1")
    assert (found["apiVersion"], found["args"][0]) == ("client.authentication.k8s.io/v1beta1", "--api-version=v1beta1")


@pytest.mark.parametrize(
    ("flags", "secret"),
    [
        (("--for=kueue",), "c1"),
        (("--for=ocm",), "c1-controller"),
        (("--for=ocm", "--managed-serviceaccount=kueue"), "c1-kueue"),
        (("--for=kueue", "--secret-name-template=x-{clusterName}-y"), "x-c1-y"),
        (("--for=kueue", "--secret-name=all"), "all"),
        (("--for=kueue", "--cluster-name=other"), "other"),
    ],
)
def test_the_role_grants_get_on_the_one_secret_that_is_read(flags: tuple[str, ...], secret: str) -> None:
    text = printed("provider-config", "--plugin=secretreader", "--part=rbac", "--cluster=c1", *flags)
    role, binding = [from_yaml(each) for each in text.split("---\n")]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


@pytest.mark.parametrize("part", ["image-volume", "init-container"])
@pytest.mark.parametrize("consumer", [name for name, facts in CONSUMERS.items() if facts.workloads and name != "ocm"])
def test_the_patch_mounts_the_plugin_where_the_config_names_it(consumer: str, part: str) -> None:
    for _, workload, container in CONSUMERS[consumer].workloads:
        flags = (f"--for={consumer}", f"--part={part}", f"--workload={workload}")
        spec = from_yaml(printed("provider-config", "--plugin=eks", *flags))["spec"]["template"]["spec"]
        (mounted,) = spec["containers"]
        assert mounted["name"] == container
        mount = next(each for each in mounted["volumeMounts"] if each["name"] == "eks-plugin")
        assert mount["readOnly"] is True
        assert config("eks", consumer)["command"] == f"{mount['mountPath']}/bin/eks-plugin"
        if part == "init-container":
            (installer,) = spec["initContainers"]
            assert installer["args"] == ["install", mount["mountPath"]]
            assert "command" not in installer
            assert installer["volumeMounts"][0]["mountPath"] == mount["mountPath"]


def test_argo_cd_needs_the_plugin_in_both_of_its_workloads() -> None:
    text = printed("provider-config", "--plugin=eks", "--for=argocd", "--part=image-volume")
    kinds = [(each["kind"], each["metadata"]["name"]) for each in map(from_yaml, text.split("---\n"))]
    assert kinds == [("StatefulSet", "argocd-application-controller"), ("Deployment", "argocd-server")]


@pytest.mark.parametrize("what", [("--for=kueue", "--part=cluster-profile"), ("--for=argocd",)])
@pytest.mark.parametrize(
    ("plugin", "flags", "told"),
    [
        ("eks", (), "# Not given, so examples stand for them: --server, --ca-data.\n"),
        ("eks", ("--server=https://x.example",), "# Not given, so examples stand for them: --ca-data.\n"),
        ("eks", ("--server=https://x.example", "--ca-data=aaaa"), ""),
        ("gke", (), "# Not given, so examples stand for them: --server.\n"),  # the Gateway's CA is a public one
    ],
)
def test_a_comment_tells_what_is_an_example_only(
    what: tuple[str, ...], plugin: str, flags: tuple[str, ...], told: str
) -> None:
    text = printed("provider-config", f"--plugin={plugin}", *what, *flags)
    assert "".join([line for line in text.splitlines(True) if "examples" in line]) == told


@pytest.mark.parametrize("flags", [("--for=kueue",), ("--for=argocd",), ("--for=knative",), ("--for=generic",)])
def test_json_says_the_same_as_yaml(flags: tuple[str, ...]) -> None:
    command = ("provider-config", "--plugin=eks", *flags)
    assert json.loads(printed(*command, "--output=json")) == from_yaml(printed(*command))


def test_json_of_several_manifests_is_a_list() -> None:
    command = ("provider-config", "--plugin=secretreader", "--for=kueue", "--part=rbac")
    data = json.loads(printed(*command, "--output=json"))
    assert (data["kind"], data["items"]) == ("List", [from_yaml(each) for each in printed(*command).split("---\n")])


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--plugin=eks",), "usage"),
        (("--for=kueue",), "usage"),
        (("--plugin=eks", "--for=kueue", "word"), "usage"),
        (("--plugin=eks", "--for=kueue", "--profile-args", "--region=eu-central-1"), "usage"),
        (("--plugin",), "usage"),
        (("--plugin=foo", "--for=kueue"), "setting-invalid"),
        (("--plugin=eks", "--for=foo"), "setting-invalid"),
        (("--plugin=eks", "--for=kueue", "--part=foo"), "setting-invalid"),
        (("--plugin=eks", "--for=kueue", "--no-such-flag=1"), "usage"),
        (("--plugin=secretreader", "--for=kueue", "--role-arn=x"), "usage"),
        (("--plugin=eks", "--for=kueue", "--timeout=soon"), "setting-invalid"),
        (("--plugin=eks", "--for=kueue", "--discover=maybe"), "setting-invalid"),
        (("--plugin=eks", "--for=kueue", "--mount=plugins"), "setting-invalid"),
        (("--plugin=eks", "--for=kueue", "--mount=/plugins/"), "setting-invalid"),
        (("--plugin=eks", "--for=kueue", "--mount=/a b"), "setting-invalid"),
        (("--plugin=eks", "--for=argocd", "--cluster=Spoke_1"), "setting-invalid"),
        (("--plugin=eks", "--for=argocd", "--server=http://x"), "setting-invalid"),
        (("--plugin=eks", "--for=argocd", "--server=x"), "setting-invalid"),
        (("--plugin=eks", "--for=argocd", "--ca-data=!!"), "setting-invalid"),
        (("--plugin=eks", "--for=argocd", "--env=NOVALUE"), "setting-invalid"),
        (("--plugin=eks", "--for=argocd", "--workload=foo"), "setting-invalid"),
        (("--plugin=eks", "--for=ocm"), "combination-impossible"),
        (("--plugin=eks", "--for=kueue", "--without-cluster-info"), "combination-impossible"),
        (("--plugin=eks", "--for=argocd", "--credentials-providers"), "combination-impossible"),
        (("--plugin=eks", "--for=kueue", "--part=rbac"), "combination-impossible"),
        (("--plugin=eks", "--for=knative", "--part=image-volume"), "combination-impossible"),
        (("--plugin=aks", "--for=kueue", "--client-secret=hunter2"), "secret-in-arguments"),
        (("--plugin=aks", "--for=kueue", "--client-certificate-password=hunter2"), "secret-in-arguments"),
        (("--plugin=aks", "--for=kueue", "--env=AZURE_CLIENT_SECRET=hunter2"), "secret-in-arguments"),
        (("--plugin=eks", "--for=argocd", "--env=A=b,AWS_SECRET_ACCESS_KEY=hunter2"), "secret-in-arguments"),
    ],
)
def test_what_cannot_work_is_refused(flags: tuple[str, ...], code: str) -> None:
    error = refused("provider-config", *flags)
    assert (error.exit_status, error.code) == (2, code)
    assert error.hint
    assert "hunter2" not in f"{error.message} {error.hint}"


@pytest.mark.parametrize("plugin", SUBJECTS)
def test_no_flag_of_the_tool_hides_one_of_a_plugin(plugin: str) -> None:
    own = {each.name for each in TABLE}
    for setting in SUBJECTS[plugin].plugin().settings:
        if setting.name not in NOT_PASSED:
            assert not own & {setting.name, *(alias.partition("=")[0] for alias in setting.aliases)}
