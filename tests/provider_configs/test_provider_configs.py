"""The files of provider-configs are what the tool prints, keep the project's rules, and fit each consumer's format."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from execcred.tool._facts import SUBJECTS
from tool.support import findings, printed

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = Path(__file__).parents[2] / "provider-configs"


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("provider_configs_make", FOLDER / "make.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WANTED: dict[str, tuple[str, ...]] = maker().files()
OBJECT: dict[str, Any] = {"type": "object", "additionalProperties": False}
EXEC_FIELDS: dict[str, Any] = {
    "apiVersion": {"const": "client.authentication.k8s.io/v1"},
    "command": {"type": "string", "pattern": "^/"},
    "args": {"type": "array", "items": {"type": "string", "pattern": "^--[a-z-]+=."}},
    "installHint": {"type": "string", "minLength": 10},
    "provideClusterInfo": {"const": True},
}
EXEC_CONFIG = OBJECT | {
    "required": [*EXEC_FIELDS, "interactiveMode"],
    "properties": {**EXEC_FIELDS, "interactiveMode": {"const": "Never"}},
}
PROVIDERS = {
    "type": "array",
    "minItems": 1,
    "items": OBJECT
    | {
        "required": ["name", "execConfig"],
        "properties": {"name": {"type": "string", "minLength": 1}, "execConfig": EXEC_CONFIG},
    },
}
PROVIDER_FILE = OBJECT | {"required": ["providers"], "properties": {"providers": PROVIDERS}}


def kueue(field: str) -> dict[str, Any]:
    """Return the schema of Kueue's configuration, with the list under the name of one span of versions."""
    profile = OBJECT | {"required": [field], "properties": {field: PROVIDERS}}
    return OBJECT | {
        "required": ["apiVersion", "kind", "featureGates", "multiKueue"],
        "properties": {
            "apiVersion": {"const": "config.kueue.x-k8s.io/v1beta2"},
            "kind": {"const": "Configuration"},
            "featureGates": {"const": {"MultiKueueClusterProfile": True}},
            "multiKueue": OBJECT | {"required": ["clusterProfile"], "properties": {"clusterProfile": profile}},
        },
    }


KNATIVE = OBJECT | {
    "required": ["knative_operator"],
    "properties": {
        "knative_operator": OBJECT
        | {
            "required": ["multicluster"],
            "properties": {
                "multicluster": OBJECT
                | {
                    "required": ["enabled", "accessProvidersConfig", "plugins"],
                    "properties": {
                        "enabled": {"const": True},
                        "accessProvidersConfig": PROVIDER_FILE,
                        "plugins": {
                            "type": "array",
                            "items": OBJECT
                            | {
                                "required": ["name", "image", "mountPath"],
                                "properties": {name: {"type": "string"} for name in ("name", "image", "mountPath")},
                            },
                        },
                    },
                }
            },
        }
    },
}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}
BEFORE_35 = {key: value for key, value in EXEC_FIELDS.items() if key != "provideClusterInfo"} | {"env": MAP}
TLS = OBJECT | {
    "properties": {
        "insecure": {"const": False},
        "serverName": {"type": "string"},
        "caData": {"type": "string", "pattern": "^[A-Za-z0-9+/]+=*$"},
    }
}


def argocd(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the config in a cluster Secret; Argo CD's decoder would ignore what it does not know."""
    exec_config = OBJECT | {"required": ["apiVersion", "command", "args", "installHint"], "properties": fields}
    return OBJECT | {
        "required": ["execProviderConfig", "tlsClientConfig"],
        "properties": {"execProviderConfig": exec_config, "tlsClientConfig": TLS},
    }


SCHEMAS = {
    "generic.json": PROVIDER_FILE,
    "multicluster-runtime.json": PROVIDER_FILE,
    "sveltos.json": PROVIDER_FILE,
    "ocm.json": PROVIDER_FILE,
    "kueue.yaml": kueue("accessProviders"),
    "kueue-ocm.yaml": kueue("accessProviders"),
    "kueue-0.15.yaml": kueue("credentialsProviders"),
    "knative.yaml": KNATIVE,
}


def load(name: str) -> Any:
    text = (FOLDER / name).read_text()
    return json.loads(text) if name.endswith(".json") else yaml.safe_load(text)


def test_the_folder_holds_these_files_and_no_others() -> None:
    there = {str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/**/*") if path.is_file()}
    assert {name for name in there if "__pycache__" not in name} == set(WANTED)


@pytest.mark.parametrize("name", WANTED)
def test_each_file_is_what_the_tool_prints(name: str) -> None:
    assert (FOLDER / name).read_text() == printed("provider-config", *WANTED[name]), "run `make provider-configs`"


@pytest.mark.parametrize("name", [each for each in WANTED if Path(each).parent.name not in ("pods", "rbac")])
def test_lint_finds_nothing_in_each_file(name: str) -> None:
    assert findings(FOLDER / name) == []


@pytest.mark.parametrize("plugin", SUBJECTS)
def test_lint_finds_nothing_between_profile_and_providers(plugin: str) -> None:
    names = ("clusterprofile.yaml", "generic.json", "multicluster-runtime.json", "kueue.yaml", "knative.yaml")
    assert findings(*[FOLDER / plugin / name for name in names]) == []


@pytest.mark.parametrize("name", [each for each in WANTED if each.partition("/")[2] in SCHEMAS])
def test_each_configuration_fits_its_consumers_schema(name: str) -> None:
    jsonschema.validate(load(name), SCHEMAS[Path(name).name])


@pytest.mark.parametrize(
    ("schema", "spoil"),
    [
        (PROVIDER_FILE, {"profileSourcedCLIArgsPolicy": "Append"}),
        (kueue("accessProviders")["properties"]["multiKueue"]["properties"]["clusterProfile"], {"config": {}}),
    ],
)
def test_the_schemas_refuse_what_strict_consumers_refuse(schema: dict[str, Any], spoil: dict[str, Any]) -> None:
    (row,) = load("secretreader/generic.json")["providers"]
    field = next(iter(schema["properties"]))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({field: [{**row, **spoil}]}, schema)


@pytest.mark.parametrize("plugin", SUBJECTS)
def test_cluster_secrets_fit_argo_cd_with_and_without_cluster_info(plugin: str) -> None:
    for name, fields in (
        ("argocd.yaml", {**EXEC_FIELDS, "env": MAP, "config": {"type": "object"}}),
        ("argocd-before-3.5.yaml", BEFORE_35),
    ):
        secret = load(f"{plugin}/{name}")
        assert secret["metadata"]["labels"] == {"argocd.argoproj.io/secret-type": "cluster"}
        assert set(secret["stringData"]) == {"name", "server", "config"}
        jsonschema.validate(json.loads(secret["stringData"]["config"]), argocd(fields))


@pytest.mark.parametrize("plugin", SUBJECTS)
def test_knatives_chart_finds_each_command_below_a_mount(plugin: str) -> None:
    multicluster = load(f"{plugin}/knative.yaml")["knative_operator"]["multicluster"]
    mounts = [each["mountPath"] + "/" for each in multicluster["plugins"]]
    commands = [each["execConfig"]["command"] for each in multicluster["accessProvidersConfig"]["providers"]]
    assert all(any(command.startswith(mount) for mount in mounts) for command in commands)


def test_the_readme_names_each_kind_of_file() -> None:
    text = (FOLDER / "README.md").read_text()
    for name in {name.split("/", 1)[1] for name in WANTED}:
        assert f"`{name}`" in text, name
