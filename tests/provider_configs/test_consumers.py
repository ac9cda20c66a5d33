"""Each file of provider-configs is read by its consumer's own code, where that is a Go module."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from execcred.tool._facts import SUBJECTS
from needs import absent
from provider_configs.test_provider_configs import FOLDER, WANTED, load

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.interop
GO_BIN = Path(__file__).parents[2] / ".cache/go-bin"
PROVIDER_FILES = [name for name in WANTED if name.endswith(".json")]
MANIFESTS = [name for name in WANTED if "/pods/" in name or "/rbac/" in name or "/argocd" in name]
KINDS = {"pods": {"Deployment", "StatefulSet"}, "rbac": {"Role", "RoleBinding"}}  # else a Secret


def tool(name: str) -> Path:
    """Return a Go program; without it skip, and under CI fail, as nobody would notice the skip."""
    path = GO_BIN / name
    if not path.exists():
        absent(f"{name} is not built; run `make interop-tools` (needs Go)")
    return path


def ask(questions: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Ask the program that holds access library, client-go and API types."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([tool("consumer-parse")], input=lines, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def kueue(version: str, files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return what Kueue's own code makes of configuration files."""
    done = subprocess.run(
        [tool(f"kueue-config-{version}"), *files], capture_output=True, text=True, check=True, timeout=60
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", PROVIDER_FILES)
def test_the_access_library_builds_what_the_file_says(name: str, tmp_path: Path) -> None:
    (provider,) = load(name)["providers"]
    profile = yaml.safe_load((FOLDER / name).with_name("clusterprofile.yaml").read_text())
    (access,) = profile["status"]["accessProviders"]
    access["name"] = provider["name"]
    path = tmp_path / "profile.yaml"
    path.write_text(yaml.safe_dump(profile))
    (answer,) = ask([{"provider": str(FOLDER / name), "profile": str(path)}])
    assert answer["providers"] == [provider["name"]]
    assert answer["server"] == access["cluster"]["server"]
    config = access["cluster"].get("extensions", [{}])[0].get("extension")
    # The library drops installHint; clients print it for commands without a path only.
    assert answer["exec"] == {**provider["execConfig"], "config": config, "installHint": ""}


@pytest.mark.parametrize("plugin", SUBJECTS)
def test_the_access_library_reads_what_knatives_chart_makes_of_its_values(plugin: str, tmp_path: Path) -> None:
    config = load(f"{plugin}/knative.yaml")["knative_operator"]["multicluster"]["accessProvidersConfig"]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    (answer,) = ask([{"provider": str(path)}])
    assert answer == {"providers": [plugin]}


@pytest.mark.parametrize("version", ["0.15", "0.17"])
def test_kueue_starts_with_the_configuration(version: str) -> None:
    files = [FOLDER / plugin / "kueue-0.15.yaml" for plugin in SUBJECTS]
    for path, answer in zip(files, kueue(version, files), strict=True):
        (provider,) = yaml.safe_load(path.read_text())["multiKueue"]["clusterProfile"]["credentialsProviders"]
        (read,) = answer["providers"]["credentialsProviders"]
        assert "error" not in answer
        assert read == {**provider, "execConfig": {**provider["execConfig"], "env": None}}


@pytest.mark.parametrize("version", ["0.15", "0.17"])
@pytest.mark.parametrize(
    "spoil",
    [
        {"profileSourcedCLIArgsPolicy": "Ignore"},
        {"execConfig": {"config": {}}},
        {"execConfig": {"env": {"A": "b"}}},
        {"execConfig": {"provideClusterInfo": "true"}},
    ],
)
def test_what_lint_says_that_kueue_rejects_it_does_reject(version: str, spoil: dict[str, Any], tmp_path: Path) -> None:
    data = load("secretreader/kueue-0.15.yaml")
    (provider,) = data["multiKueue"]["clusterProfile"]["credentialsProviders"]
    exec_config = {**provider["execConfig"], **spoil.get("execConfig", {})}
    data["multiKueue"]["clusterProfile"]["credentialsProviders"] = [{**provider, **spoil, "execConfig": exec_config}]
    path = tmp_path / "kueue.yaml"
    path.write_text(yaml.safe_dump(data))
    (answer,) = kueue(version, [path])
    assert "strict decoding error" in answer["error"] or "cannot unmarshal" in answer["error"]


def test_kueue_wants_interactive_mode_written(tmp_path: Path) -> None:
    data = load("secretreader/kueue-0.15.yaml")
    del data["multiKueue"]["clusterProfile"]["credentialsProviders"][0]["execConfig"]["interactiveMode"]
    path = tmp_path / "kueue.yaml"
    path.write_text(yaml.safe_dump(data))
    (answer,) = kueue("0.17", [path])
    assert "interactiveMode" in answer["error"]


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_decode_strictly_into_the_apis_types(name: str) -> None:
    (answer,) = ask([{"manifests": str(FOLDER / name)}])
    assert "error" not in answer
    assert answer["kinds"]
    assert set(answer["kinds"]) <= KINDS.get(Path(name).parent.name, {"Secret"})


def test_strict_decoding_refuses_a_misspelt_field(tmp_path: Path) -> None:
    path = tmp_path / "patch.yaml"
    path.write_text((FOLDER / "eks/pods/kueue-init-container.yaml").read_text().replace("mountPath:", "mountpath:", 1))
    (answer,) = ask([{"manifests": str(path)}])
    assert "mountpath" in answer["error"]


@pytest.mark.parametrize("plugin", SUBJECTS)
@pytest.mark.parametrize("mode", ["Never", ""])
def test_client_go_takes_the_exec_config_in_a_kubeconfig_and_wants_interactive_mode(
    plugin: str, mode: str, tmp_path: Path
) -> None:
    exec_config = load(f"{plugin}/generic.json")["providers"][0]["execConfig"] | {"interactiveMode": mode}
    path = tmp_path / "kubeconfig"
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://spoke-1.example:6443"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"exec": exec_config}}],
    }
    path.write_text(json.dumps(kubeconfig))
    (answer,) = ask([{"kubeconfig": str(path)}])
    if mode:
        assert answer["exec"] == {**exec_config, "config": None}
    else:
        assert "interactiveMode must be specified" in answer["error"]
