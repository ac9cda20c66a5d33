"""Provider files: what is read, and what is refused, by file and field."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from access.support import V1, V1BETA1, load, provider, refused
from execcred.access import Provider, ProviderFile

if TYPE_CHECKING:
    from pathlib import Path


def test_all_fields_are_read(tmp_path: Path) -> None:
    entry = provider(
        "eks",
        apiVersion=V1BETA1,
        args=["--a", "b"],
        env=[{"name": "X", "value": "y"}, {"name": "EMPTY"}],
        installHint="mount it",
        provideClusterInfo=True,
        profileSourcedCLIArgsPolicy="Append",
        profileSourcedEnvVarsPolicy="Replace",
    )
    [read] = load(tmp_path, entry).providers
    assert read == Provider(
        name="eks",
        api_version=V1BETA1,
        command="/plugins/bin/reader",
        args=("--a", "b"),
        env=(("X", "y"), ("EMPTY", "")),
        install_hint="mount it",
        provide_cluster_info=True,
        args_policy="Append",
        env_policy="Replace",
    )


def test_what_is_left_out_or_null_has_the_defaults_of_the_format(tmp_path: Path) -> None:
    entry = {"name": "a", "execConfig": {"apiVersion": V1, "command": "aws", "args": None, "env": None}}
    nulls = {**entry, "name": "b", "profileSourcedCLIArgsPolicy": None, "profileSourcedEnvVarsPolicy": ""}
    first, second = load(tmp_path, entry, nulls).providers
    assert first == Provider("a", V1, "aws")
    assert second == Provider("b", V1, "aws")
    assert (first.args_policy, first.env_policy) == ("Ignore", "Ignore")


def test_unknown_fields_are_ignored_and_the_case_of_keys_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "file"
    config = {"APIVERSION": V1, "Command": "aws", "config": {"a": 1}, "Env": [{"NAME": "a", "Value": "b"}]}
    path.write_text(json.dumps({"Providers": [{"NAME": "a", "execconfig": config, "note": 1}], "x": {}}))
    assert ProviderFile.load(str(path)).providers == (Provider("a", V1, "aws", env=(("a", "b"),)),)


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"providers": [provider()]}).encode())
    assert len(ProviderFile.load(path).providers) == 1


def test_variables_of_the_admin_are_in_no_repr(tmp_path: Path) -> None:
    file = load(tmp_path, provider(env=[{"name": "AZURE_CLIENT_SECRET", "value": "hush"}]))
    assert "hush" not in repr(file)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"providers:\n- name: a\n", "line 1 is not valid JSON (YAML is not read)"),
        (b'{"providers": [}', "line 1 is not valid JSON: "),
        (b'{"providers": [\n]} {}', "line 2 is not valid JSON: "),
        (b"\xff{}", "byte 0 is not UTF-8 text"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"providers": [%s1]}' % (b"9" * 5000), "a number out of range"),
        (b" " * ((4 << 20) + 1), "larger than 4194304 bytes"),
        (b"[]", "it must be an object, is an array"),
        (b"{}", "providers must be an array with at least one provider"),
        (b'{"providers": []}', "providers must be an array with at least one provider"),
        (b'{"providers": {}}', "providers must be an array, is an object"),
        (b'{"providers": null}', "providers must be an array with at least one provider"),
        (b'{"providers": [], "providers": []}', "the key 'providers' is there twice"),
    ],
)
def test_a_file_that_is_no_provider_file_is_refused_by_its_name(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    error = refused(lambda: ProviderFile.load(path))
    assert (error.code, error.exit_status) == ("provider-file-invalid", 2)
    assert f"provider file {path}: " in error.message
    assert told in error.message


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/nowhere/providers.json", "no such file or directory"),
        ("/", "is a directory"),
        ("a\0b", "no file can have this name"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(path: str, told: str) -> None:
    error = refused(lambda: ProviderFile.load(path))
    assert error.code == "provider-file-invalid"
    assert error.message.endswith(told)
    assert error.message.isprintable()


WRONG: list[tuple[Any, str]] = [
    (None, "providers[0].name is missing"),
    ("x", "providers[0] must be an object, is a string"),
    ({}, "providers[0].name is missing"),
    ({"name": 5}, "providers[0].name must be a string, is a number"),
    ({"name": "a"}, "providers[0].execConfig is missing, or empty"),
    ({"name": "a", "execConfig": {}}, "providers[0].execConfig is missing, or empty"),
    ({"name": "a", "execConfig": [1]}, "providers[0].execConfig must be an object, is an array"),
    (provider(apiVersion=None), "providers[0].execConfig.apiVersion is missing"),
    (provider(apiVersion="client.authentication.k8s.io/v1alpha1"), "apiVersion must be one of"),
    (provider(apiVersion=True), "apiVersion must be a string, is a boolean"),
    (provider(command=None), "execConfig.command is missing"),
    (provider(command=""), "execConfig.command is missing"),
    (provider(command="./bin/reader"), "execConfig.command is relative"),
    (provider(command="bin/reader"), "execConfig.command is relative"),
    (provider(command="/bin/re\0ader"), "command holds a character that no argument"),
    (provider(args="--a"), "execConfig.args must be an array, is a string"),
    (provider(args=["a", 1]), "execConfig.args[1] must be a string, is a number"),
    (provider(args=["\ud800"]), "execConfig.args[0] holds a character"),
    (provider(env={"A": "b"}), "execConfig.env must be an array, is an object"),
    (provider(env=["A=b"]), "execConfig.env[0] must be an object, is a string"),
    (provider(env=[{"value": "b"}]), "execConfig.env[0].name is no name of a variable"),
    (provider(env=[{"name": "A=B", "value": "b"}]), "execConfig.env[0].name is no name of a variable"),
    (provider(env=[{"name": "A", "value": 1}]), "execConfig.env[0].value must be a string, is a number"),
    (provider(installHint=1), "execConfig.installHint must be a string"),
    (provider(provideClusterInfo="true"), "execConfig.provideClusterInfo must be true or false, is a string"),
    (provider(interactiveMode="never"), "execConfig.interactiveMode must be one of Never, IfAvailable, Always"),
    (provider(interactiveMode="Always"), "execConfig.interactiveMode is Always, and no controller has a terminal"),
    (provider(profileSourcedCLIArgsPolicy="Replace"), "profileSourcedCLIArgsPolicy must be one of Append, Ignore"),
    (provider(profileSourcedEnvVarsPolicy="Append"), "profileSourcedEnvVarsPolicy must be one of"),
    (provider(profileSourcedEnvVarsPolicy=1), "profileSourcedEnvVarsPolicy must be a string"),
]


@pytest.mark.parametrize(("entry", "told"), WRONG)
def test_a_wrong_field_is_refused_by_its_place(tmp_path: Path, entry: Any, told: str) -> None:
    error = refused(lambda: load(tmp_path, entry))
    assert error.code == "provider-file-invalid"
    assert told in error.message


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    error = refused(lambda: load(tmp_path, provider("a"), provider("b"), provider("a")))
    assert error.message.endswith("providers[2].name 'a' is there twice")
