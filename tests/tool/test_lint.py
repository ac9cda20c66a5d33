"""lint: each rule fires on its fault, at its place, and not on what is right; unusable files are clear errors."""

from __future__ import annotations

import base64
import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from execcred.tool._catalogue import LINT
from tool.support import findings, printed, refused, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

V1 = "client.authentication.k8s.io/v1"
EXEC = "client.authentication.k8s.io/exec"
ARGS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
ENVS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"


def provider(plugin: str = "secretreader", **changes: Any) -> dict[str, Any]:
    """Return a provider that no rule finds fault with; `changes` go into its execConfig, None removes."""
    found: dict[str, Any] = json.loads(printed("provider-config", f"--plugin={plugin}", "--for=generic"))["providers"][
        0
    ]
    return {**found, "execConfig": changed(found["execConfig"], changes)}


def changed(data: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return `data` with changes; None removes a key."""
    return {key: value for key, value in {**data, **changes}.items() if value is not None}


def generic(*providers: dict[str, Any]) -> dict[str, Any]:
    return {"providers": list(providers)}


def of_plugin(plugin: str = "secretreader", **changes: Any) -> dict[str, Any]:
    return generic(provider(plugin, **changes))


def with_policy(**policies: str) -> dict[str, Any]:
    return generic({**provider(), **policies})


def kueue(*providers: dict[str, Any], field: str = "accessProviders", **more: Any) -> dict[str, Any]:
    lists = {field: list(providers), **more}
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "multiKueue": {"clusterProfile": lists},
    }


def knative(mount: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(printed("provider-config", "--plugin=eks", "--for=knative"))
    data["knative_operator"]["multicluster"]["plugins"][0]["mountPath"] = mount
    return data


def argocd(plugin: str = "secretreader", *flags: str, ca: str = "", **changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(printed("provider-config", f"--plugin={plugin}", "--for=argocd", *flags))
    config = json.loads(data["stringData"]["config"])
    config["execProviderConfig"] = changed(config["execProviderConfig"], changes)
    config["tlsClientConfig"]["caData"] = ca
    data["stringData"]["config"] = json.dumps(config)
    return data


def kubeconfig(plugin: str = "secretreader", ca: str = "", **changes: Any) -> dict[str, Any]:
    exec_config = changed(provider(plugin)["execConfig"], {"interactiveMode": "IfAvailable", **changes})
    cluster = {"server": "https://spoke-1.example:6443", "certificate-authority-data": ca}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"exec": exec_config}}],
    }


def profile(_name: str = "secretreader", _field: str = "accessProviders", **cluster: Any) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(
        printed("provider-config", "--plugin=secretreader", "--for=generic", "--part=cluster-profile")
    )
    (access,) = data["status"].pop("accessProviders")
    access["name"] = _name
    access["cluster"] = changed(access["cluster"], cluster)
    data["status"][_field] = [access]
    return data


def extension(name: str, value: Any) -> dict[str, Any]:
    return {"extensions": [{"name": name, "extension": value}]}


def without(data: dict[str, Any], *path: str | int) -> dict[str, Any]:
    """Return `data` without the thing at `path`."""
    result = copy.deepcopy(data)
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return result


FIRST = "providers[0].execConfig"
EXT = "status.accessProviders[0].cluster.extensions[0]"
BIG_CA = "QUFB" * 30_000
# Rule; the field that it must name; what it must fire on. Several documents are several files.
POSITIVE: list[tuple[str, str, list[dict[str, Any]]]] = [
    ("provider-name-missing", "providers[0]", [generic(without(provider(), "name"))]),
    ("provider-name-missing", "multiKueue.clusterProfile.accessProviders[0]", [kueue(without(provider(), "name"))]),
    ("provider-repeated", "providers[1].name", [generic(provider(), provider())]),
    ("exec-config-missing", FIRST, [generic({"name": "x"})]),
    ("exec-config-missing", FIRST, [generic({"name": "x", "execConfig": None})]),
    (
        "kueue-both-lists",
        "multiKueue.clusterProfile.credentialsProviders",
        [kueue(provider(), credentialsProviders=[provider()])],
    ),
    ("field-type", f"{FIRST}.args", [of_plugin(args="--api-version=v1")]),
    ("field-type", f"{FIRST}.args", [of_plugin(args=["--api-version=v1", 5])]),
    ("field-type", f"{FIRST}.provideClusterInfo", [of_plugin(provideClusterInfo="true")]),
    ("field-type", f"{FIRST}.command", [of_plugin(command=["/plugins/bin/secretreader-plugin"])]),
    ("env-shape", f"{FIRST}.env", [of_plugin(env={"A": "b"})]),
    ("env-shape", "stringData.config.execProviderConfig.env", [argocd(env=[{"name": "A", "value": "b"}])]),
    (
        "field-rejected",
        "multiKueue.clusterProfile.accessProviders[0].execConfig.config",
        [kueue(provider(config={"clusterName": "c"}))],
    ),
    (
        "field-rejected",
        "multiKueue.clusterProfile.accessProviders[0].profileSourcedCLIArgsPolicy",
        [kueue({**provider(), "profileSourcedCLIArgsPolicy": "Ignore"})],
    ),
    ("field-ignored", f"{FIRST}.config", [of_plugin(config={"clusterName": "c"})]),
    ("field-ignored", "providers[0].policy", [generic({**provider(), "policy": "Append"})]),
    ("field-ignored", "stringData.config.execProviderConfig.interactiveMode", [argocd(interactiveMode="Never")]),
    ("exec-version-invalid", f"{FIRST}.apiVersion", [of_plugin(apiVersion=None)]),
    ("exec-version-invalid", f"{FIRST}.apiVersion", [of_plugin(apiVersion="client.authentication.k8s.io/v1alpha1")]),
    ("api-version-flag-missing", "users[0].user.exec.args", [kubeconfig(args=[])]),
    ("interactive-mode-missing", FIRST, [of_plugin(interactiveMode=None)]),
    ("interactive-mode-missing", "users[0].user.exec", [kubeconfig(interactiveMode=None)]),
    ("interactive-mode-missing", "users[0].user.exec", [kubeconfig("eks") | kubeconfig("eks", interactiveMode="")]),
    ("interactive-mode-invalid", f"{FIRST}.interactiveMode", [of_plugin(interactiveMode="never")]),
    ("interactive-mode-invalid", "users[0].user.exec.interactiveMode", [kubeconfig(interactiveMode="Maybe")]),
    ("interactive-mode-always", f"{FIRST}.interactiveMode", [of_plugin(interactiveMode="Always")]),
    ("command-missing", f"{FIRST}.command", [of_plugin(command=None)]),
    ("command-relative", f"{FIRST}.command", [of_plugin(command="./bin/secretreader-plugin")]),
    ("command-relative", f"{FIRST}.command", [of_plugin(command="secretreader-plugin")]),
    ("command-relative", "users[0].user.exec.command", [kubeconfig(command="bin/secretreader-plugin")]),
    ("command-wrapped", f"{FIRST}.command", [of_plugin(command="/bin/sh", args=["-c", "eks-plugin"])]),
    ("command-wrapped", f"{FIRST}.command", [of_plugin(command="/usr/bin/env", args=["eks-plugin"])]),
    ("command-wrapped", f"{FIRST}.command", [of_plugin(command="/plugins/bin/eks-plugin --discover")]),
    (
        "command-outside-mount",
        "knative_operator.multicluster.accessProvidersConfig.providers[0].execConfig.command",
        [knative("/elsewhere")],
    ),
    (
        "command-outside-mount",
        "knative_operator.multicluster.accessProvidersConfig.providers[0].execConfig.command",
        [knative("/access-plugins/ek")],
    ),
    ("cluster-info-missing", FIRST, [of_plugin(provideClusterInfo=None)]),
    ("cluster-info-missing", FIRST, [of_plugin(provideClusterInfo=False)]),
    ("cluster-info-missing", "stringData.config.execProviderConfig", [argocd(provideClusterInfo=None, config=None)]),
    ("cluster-info-missing", "users[0].user.exec", [kubeconfig("aks", provideClusterInfo=None)]),
    ("install-hint-missing", FIRST, [of_plugin(installHint=None)]),
    ("arguments-invalid", f"{FIRST}.args", [of_plugin(args=["--no-such-flag=1"])]),
    ("arguments-invalid", f"{FIRST}.args", [of_plugin(args=["--key="])]),
    ("arguments-invalid", f"{FIRST}.args", [of_plugin(args=["--timeout=soon"])]),
    ("arguments-invalid", f"{FIRST}.args", [of_plugin("eks", args=["eks", "get-tokens"])]),
    ("allow-server-missing", f"{FIRST}.args", [of_plugin("eks", args=["--api-version=v1"])]),
    ("allow-server-missing", f"{FIRST}.args", [of_plugin("gke", args=["--allow-server=*.gke.goog,*"])]),
    ("identity-unpinned", f"{FIRST}.args", [of_plugin(args=["--allow-namespace=*"])]),
    ("identity-unpinned", f"{FIRST}.args", [of_plugin("eks", args=["--allow-profile-identity", "--allow-server=x"])]),
    ("policy-unknown", "providers[0].profileSourcedCLIArgsPolicy", [with_policy(profileSourcedCLIArgsPolicy="append")]),
    ("policy-unknown", "providers[0].profileSourcedEnvVarsPolicy", [with_policy(profileSourcedEnvVarsPolicy="Append")]),
    (
        "policy-append-unsealed",
        "providers[0].profileSourcedCLIArgsPolicy",
        [with_policy(profileSourcedCLIArgsPolicy="Append")],
    ),
    (
        "policy-append-if-not-exists",
        "providers[0].profileSourcedEnvVarsPolicy",
        [with_policy(profileSourcedEnvVarsPolicy="AppendIfNotExists")],
    ),
    (
        "policy-replace",
        "providers[0].profileSourcedEnvVarsPolicy",
        [with_policy(profileSourcedEnvVarsPolicy="Replace")],
    ),
    ("env-dangerous", f"{FIRST}.env", [of_plugin(env=[{"name": "LD_PRELOAD", "value": "/x.so"}])]),
    ("env-dangerous", f"{EXT}.extension.HTTPS_PROXY", [profile(**extension(ENVS, {"HTTPS_PROXY": "http://x"}))]),
    ("env-dangerous", f"{EXT}.extension.EXECCRED_ROLE_ARN", [profile(**extension(ENVS, {"EXECCRED_ROLE_ARN": "x"}))]),
    ("aws-profile-weak", f"{FIRST}.env", [of_plugin("eks", env=[{"name": "AWS_PROFILE", "value": "prod"}])]),
    ("aws-profile-weak", "users[0].user.exec.env", [kubeconfig("eks", env=[{"name": "AWS_PROFILE", "value": "prod"}])]),
    ("secret-in-config", f"{FIRST}.env", [of_plugin(env=[{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}])]),
    ("secret-in-config", f"{FIRST}.args", [of_plugin("aks", args=["--client-secret", "hunter2"])]),
    ("secret-in-config", "stringData.config.execProviderConfig.env", [argocd(env={"AZURE_CLIENT_SECRET": "hunter2"})]),
    (
        "ca-too-large",
        "status.accessProviders[0].cluster.certificate-authority-data",
        [profile(**{"certificate-authority-data": BIG_CA})],
    ),
    ("ca-too-large", "clusters[0].cluster.certificate-authority-data", [kubeconfig(ca=BIG_CA)]),
    ("ca-too-large", "stringData.config.tlsClientConfig.caData", [argocd(ca=BIG_CA)]),
    ("profile-field-deprecated", "status.credentialProviders", [profile(_field="credentialProviders")]),
    ("profile-access-missing", "status", [without(profile(), "status", "accessProviders")]),
    ("profile-access-missing", "status", [without(profile(), "status")]),
    ("profile-server-missing", "status.accessProviders[0].cluster", [profile(server=None)]),
    (
        "profile-tls-dropped",
        "status.accessProviders[0].cluster.tls-server-name",
        [profile(**{"tls-server-name": "kubernetes"})],
    ),
    (
        "profile-tls-dropped",
        "status.accessProviders[0].cluster.insecure-skip-tls-verify",
        [profile(**dict[str, Any]({"insecure-skip-tls-verify": True}))],
    ),
    (
        "extension-name-old",
        f"{EXT}.name",
        [profile(**extension("multicluster.x-k8s.io/clusterprofiles/auth/exec/additional-args", ["--x"]))],
    ),
    ("extension-type", EXT, [profile(**extension(ARGS, "--x"))]),
    ("extension-type", EXT, [profile(**extension(ENVS, None))]),
    ("extension-type", EXT, [profile(**extension(ENVS, {"A": 1}))]),
    (
        "profile-sets-refused",
        f"{EXT}.extension.roleArn",
        [of_plugin("eks"), profile("eks", **extension(EXEC, {"clusterName": "c", "roleArn": "arn:aws:iam::1:role/x"}))],
    ),
    (
        "profile-sets-refused",
        f"{EXT}.extension.secretNameTemplate",
        [of_plugin(), profile(**extension(EXEC, {"clusterName": "c", "secretNameTemplate": "x"}))],
    ),
    ("policy-ignores-profile", EXT, [of_plugin(), profile(**extension(ARGS, ["--key=x"]))]),
    ("policy-ignores-profile", EXT, [kueue(provider()), profile(**extension(ENVS, {"A": "b"}))]),
    ("provider-unmatched", "status", [of_plugin(), profile("another")]),
]
# What comes near to a rule's fault, but is right.
NEGATIVE: list[tuple[str, list[dict[str, Any]]]] = [
    ("provider-repeated", [generic(provider(), provider("eks"))]),
    ("kueue-both-lists", [kueue(provider(), field="credentialsProviders")]),
    ("env-shape", [of_plugin(env=[{"name": "A", "value": "b"}])]),
    ("env-shape", [argocd(env={"A": "b"})]),
    ("field-ignored", [generic({key.upper(): value for key, value in provider().items()})]),
    ("api-version-flag-missing", [kubeconfig(apiVersion="client.authentication.k8s.io/v1beta1", args=[])]),
    ("api-version-flag-missing", [kubeconfig(command="aws", args=["eks", "get-token"])]),
    ("interactive-mode-missing", [kubeconfig(apiVersion="client.authentication.k8s.io/v1beta1", interactiveMode=None)]),
    ("interactive-mode-always", [kubeconfig(interactiveMode="Always")]),
    ("command-relative", [kubeconfig(command="secretreader-plugin")]),
    ("command-wrapped", [of_plugin(command="/opt/shell/timeouts/secretreader-plugin")]),
    ("command-outside-mount", [knative("/access-plugins/eks")]),
    ("cluster-info-missing", [argocd("secretreader", "--without-cluster-info")]),
    ("cluster-info-missing", [argocd("gke", "--without-cluster-info")]),
    ("cluster-info-missing", [kubeconfig(args=["--api-version=v1", "--secret-name=c"], provideClusterInfo=None)]),
    ("cluster-info-missing", [kubeconfig(command="gke-gcloud-auth-plugin", args=[], provideClusterInfo=None)]),
    ("arguments-invalid", [of_plugin("eks", args=["eks", "get-token", "--cluster-name", "c", "--profile-args"])]),
    ("arguments-invalid", [of_plugin(command="/plugins/bin/another", args=["--no-such-flag=1"])]),
    ("allow-server-missing", [kubeconfig("eks", args=["--api-version=v1"])]),
    ("allow-server-missing", [of_plugin("eks", args=["--allow-server=*.eks.amazonaws.com"])]),
    ("identity-unpinned", [of_plugin(args=["--allow-namespace=team-a,team-b"])]),
    ("identity-unpinned", [of_plugin("eks", args=["--allow-profile-identity=false", "--allow-server=x"])]),
    ("policy-unknown", [with_policy(profileSourcedCLIArgsPolicy="", profileSourcedEnvVarsPolicy="Ignore")]),
    (
        "policy-append-unsealed",
        [generic({**provider(args=["--key=x", "--profile-args"]), "profileSourcedCLIArgsPolicy": "Append"})],
    ),
    ("env-dangerous", [of_plugin(env=[{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}])]),
    ("env-dangerous", [profile(**extension(ENVS, {"CLUSTER": "c"}))]),
    (
        "aws-profile-weak",
        [of_plugin("eks", args=["--profile=prod", "--allow-server=x"], env=[{"name": "AWS_PROFILE", "value": "x"}])],
    ),
    ("aws-profile-weak", [kubeconfig(command="aws", args=[], env=[{"name": "AWS_PROFILE", "value": "prod"}])]),
    ("secret-in-config", [of_plugin(env=[{"name": "SECRET_NAME", "value": "spoke-1"}])]),
    ("ca-too-large", [profile(**{"certificate-authority-data": "QUFB" * 20_000})]),
    ("profile-field-deprecated", [profile()]),
    (
        "profile-tls-dropped",
        [profile(**dict[str, Any]({"proxy-url": "https://p.example", "insecure-skip-tls-verify": False}))],
    ),
    ("extension-name-old", [profile(**extension("example.org/other", {}))]),
    ("extension-type", [profile(**extension(ARGS, []))]),
    (
        "profile-sets-refused",
        [
            of_plugin("eks", args=["--allow-profile-identity", "--allow-server=x"]),
            profile("eks", **extension(EXEC, {"clusterName": "c", "roleArn": "arn:aws:iam::1:role/x"})),
        ],
    ),
    (
        "policy-ignores-profile",
        [generic({**provider(), "profileSourcedCLIArgsPolicy": "Append"}), profile(**extension(ARGS, ["--key=x"]))],
    ),
    ("policy-ignores-profile", [profile(**extension(ARGS, ["--key=x"]))]),
    ("provider-unmatched", [of_plugin("eks"), of_plugin(), profile()]),
    ("provider-unmatched", [kubeconfig(), profile()]),
]


def written(folder: Path, documents: list[dict[str, Any]], dump: Callable[..., str] = json.dumps) -> list[Path]:
    """Write documents to files as people do: JSON, or YAML."""
    paths = []
    for index, document in enumerate(documents):
        path = folder / f"{index}.{'json' if dump is json.dumps else 'yaml'}"
        path.write_text(dump(document))
        paths.append(path)
    return paths


@pytest.mark.parametrize(
    ("code", "field", "documents"), POSITIVE, ids=[f"{row[0]}-{i}" for i, row in enumerate(POSITIVE)]
)
def test_a_rule_fires_on_its_fault_and_names_the_field(
    tmp_path: Path, code: str, field: str, documents: list[dict[str, Any]]
) -> None:
    found = [each for each in findings(*written(tmp_path, documents)) if each["code"] == code]
    assert [each["field"] for each in found] == [field]
    assert found[0]["message"]
    assert found[0]["remedy"] == LINT[code]["remedy"]
    assert "hunter2" not in json.dumps(found)


@pytest.mark.parametrize(("code", "documents"), NEGATIVE, ids=[f"{row[0]}-{i}" for i, row in enumerate(NEGATIVE)])
def test_a_rule_does_not_fire_on_what_is_right(tmp_path: Path, code: str, documents: list[dict[str, Any]]) -> None:
    assert code not in [each["code"] for each in findings(*written(tmp_path, documents))]


@pytest.mark.parametrize(
    "document",
    [
        of_plugin(),
        of_plugin("eks"),
        kueue(provider()),
        knative("/access-plugins/eks"),
        argocd(),
        kubeconfig(),
        profile(),
    ],
)
def test_good_files_of_every_format_have_no_findings(tmp_path: Path, document: dict[str, Any]) -> None:
    assert findings(*written(tmp_path, [document])) == []


def test_every_rule_has_a_test_that_fires_it() -> None:
    special = {"key-repeated", "provider-file-not-json"}  # these are about how a file is written
    assert {row[0] for row in POSITIVE} | special == set(LINT)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("twice.json", '{"providers": [],\n "providers": []}'),
        ("twice.yaml", "apiVersion: config.kueue.x-k8s.io/v1beta2\napiVersion: config.kueue.x-k8s.io/v1beta2\n"),
    ],
)
def test_a_key_that_stands_twice_is_found_with_its_line(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (found,) = findings(tmp_path / name)
    assert (found["code"], found["line"]) == ("key-repeated", 2)


def test_a_provider_file_in_yaml_is_found_but_kueue_and_charts_are_yaml(tmp_path: Path) -> None:
    codes = [each["code"] for each in findings(*written(tmp_path, [of_plugin()], yaml.safe_dump))]
    assert codes == ["provider-file-not-json"]
    assert findings(*written(tmp_path, [kueue(provider()), knative("/access-plugins/eks")], yaml.safe_dump)) == []


def test_a_config_map_with_a_provider_file_is_looked_into(tmp_path: Path) -> None:
    inner = json.dumps(of_plugin(interactiveMode=None), indent=2)
    data = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"provider-file.json": inner}}
    (found,) = findings(*written(tmp_path, [data]))
    assert (found["code"], found["field"]) == ("interactive-mode-missing", f"data.provider-file.json.{FIRST}")


@pytest.mark.parametrize("text", ["{{ .Values.x }}", "[", "a: b: c", "", "just text", "\t- x"])
def test_texts_in_a_secret_that_are_no_documents_are_passed_over(tmp_path: Path, text: str) -> None:
    secret = argocd()
    secret["stringData"]["other"] = text
    assert findings(*written(tmp_path, [secret])) == []


def test_yaml_in_flow_style_is_read_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "kueue.yaml"
    path.write_text("{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, multiKueue: {}}")
    assert findings(path) == []


@pytest.mark.parametrize(
    "value", ["017", "1:30", "0x1F", "1_000", "1e3", ".inf", "2026-01-31", "on", "~", "!!binary QQ=="]
)
def test_a_field_of_any_yaml_kind_is_read(tmp_path: Path, value: str) -> None:
    path = tmp_path / "kueue.yaml"
    path.write_text(yaml.safe_dump(kueue(provider(command="@"))).replace("'@'", value))
    codes = [each["code"] for each in findings(path)]
    assert codes[0] in ("command-missing", "command-relative")


def test_kueues_own_config_map_is_looked_into(tmp_path: Path) -> None:
    inner = yaml.safe_dump(kueue({**provider(), "policy": "x"}))
    data = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"controller_manager_config.yaml": inner}}
    assert [each["code"] for each in findings(*written(tmp_path, [data]))] == ["field-rejected"]


def test_a_secret_is_looked_into_whether_it_is_encoded_or_not(tmp_path: Path) -> None:
    secret = argocd(installHint=None)
    plain = secret.pop("stringData")
    secret["data"] = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
    (found,) = findings(*written(tmp_path, [secret]))
    assert (found["code"], found["field"]) == ("install-hint-missing", "data.config.execProviderConfig")


def test_lists_and_several_documents_in_one_file_are_all_looked_at(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [profile(), profile(server=None)]}
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([listed, profile(server=None)]))
    fields = {each["field"] for each in findings(path)}
    assert fields == {"status.accessProviders[0].cluster", "items[1].status.accessProviders[0].cluster"}


@pytest.mark.parametrize("indent", ["  ", "\t"])
def test_findings_in_json_tell_the_line(tmp_path: Path, indent: str) -> None:
    path = tmp_path / "provider-file.json"
    text = json.dumps(of_plugin(command="bin/secretreader-plugin"), indent=indent)
    path.write_text(text)
    (found,) = findings(path)
    assert '"command"' in text.splitlines()[found["line"] - 1]


def test_findings_in_a_block_of_yaml_tell_the_line_of_the_file(tmp_path: Path) -> None:
    text = printed("provider-config", "--plugin=secretreader", "--for=argocd").replace('"/plugins', '"plugins')
    path = tmp_path / "secret.yaml"
    path.write_text(text)
    (found,) = findings(path)
    assert found["code"] == "command-relative"
    assert '"command"' in text.splitlines()[found["line"] - 1]


def test_the_text_names_file_line_field_rule_and_remedy(tmp_path: Path) -> None:
    (path,) = written(tmp_path, [of_plugin(installHint=None)])
    done = run(["lint", str(path)])
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (1, b"")
    assert lines[0] == f"{path}:1: {FIRST}: installHint is missing [install-hint-missing]"
    assert lines[1] == f"  remedy: {LINT['install-hint-missing']['remedy']}"
    assert lines[2] == "1 finding in 1 file"


def test_no_findings_are_exit_status_zero() -> None:
    done = run(["lint", "-"], json.dumps(of_plugin()).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(run(["lint", "-", "--output=json"], json.dumps(of_plugin()).encode()).stdout) == {"findings": []}


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(8)
)

MERGE_BOMB = BOMB.replace("[x,x,x,x,x,x,x,x,x,x]", "{x: x}").replace("[", "{<<: [").replace("]", "]}")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("empty.json", b"", "it is empty"),
        ("blank.yaml", b" \n\n", "it is empty"),
        ("binary", b"\x7fELF\x02\x01\x01\xff\xfe", "is not UTF-8 text"),
        ("zeros.json", b"\0" * 100, "neither JSON nor YAML"),
        ("half.json", b'{"providers": [', "line 1 is not valid JSON"),
        ("yaml-as.json", b"{providers: []}", "line 1 is not valid JSON"),
        ("broken.yaml", b"a: b\n  c: d: e\n\t- x", "line 2 is neither JSON nor YAML"),
        ("deep.json", b"[" * 100_000, "nested too deep"),
        ("deep.yaml", b"a: " + b"[" * 100_000, "neither JSON nor YAML"),
        ("deep-but-whole.yaml", b"a: " + b"[" * 500 + b"]" * 500, "nested too deep"),
        ("bomb.yaml", BOMB.encode(), "its aliases make it too large"),
        ("merge.yaml", b"a: 1\n<<: text", "line 2 merges what is no mapping"),
        ("merge-bomb.yaml", MERGE_BOMB.encode(), "its aliases make it too large"),
        ("huge.json", b" " * (5 << 20), "larger than 4194304 bytes"),
        ("huge-number.json", b'{"providers": ' + b"9" * 5000 + b"}", "a number out of range"),
        ("object.yaml", b"!!python/object/apply:os.system ['true']", "none of the formats"),
        ("unknown.yaml", b"kind: Deployment\napiVersion: apps/v1\n", "none of the formats"),
        ("text.yaml", b"just text", "none of the formats"),
        ("list.json", b"[1, 2]", "none of the formats"),
    ],
)
def test_an_unusable_file_is_a_clear_error(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    error = refused("lint", str(path))
    assert (error.exit_status, error.code) == (2, "file-unusable")
    assert str(path) in error.message
    assert told in error.message
    assert error.hint


def test_a_directory_is_a_clear_error(tmp_path: Path) -> None:
    assert "Is a directory" in refused("lint", str(tmp_path)).message


@pytest.mark.parametrize(
    "document",
    [
        {"providers": [None, 5, "x", [], {"name": 7, "execConfig": [1]}]},
        {"providers": [{"name": "x", "execConfig": {"args": {}, "env": "x", "command": 5, "installHint": []}}]},
        {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "multiKueue": {"clusterProfile": {"accessProviders": {"a": 1}}},
        },
        {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile", "status": [1]},
        {
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ClusterProfile",
            "status": {"accessProviders": [None]},
        },
        {"kind": "Config", "users": [{"user": None}, {"user": {"exec": "x"}}, 5], "clusters": [{"cluster": 5}, None]},
        {"kind": "Secret", "metadata": 5, "data": {"config": 5, "x": "!!"}, "stringData": [1]},
        {"knative_operator": {"multicluster": {"accessProvidersConfig": [], "plugins": {}}}},
        {"items": [None, {"kind": "Secret"}]},
    ],
)
def test_wrong_types_anywhere_are_findings_or_nothing_but_never_a_crash(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    done = run(["lint", "--output=json", *map(str, written(tmp_path, [document]))])
    assert done.returncode in (0, 1, 2)
    assert b"[internal]" not in done.stderr
    assert b"Traceback" not in done.stderr
