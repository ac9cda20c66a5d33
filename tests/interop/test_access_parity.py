"""Parity with the Go access library: the same profiles and provider files give the same exec command and TLS settings.

Where they do not, the difference is in OTHERWISE, with its reason.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from access.support import ARGS, CA, ENVS, EXEC, SERVER, V1, V1BETA1, Json, access, load, plugin, profile, provider
from execcred import ExecCredError
from execcred.access import build_configuration, run_plugin, select
from interop.cluster import b64
from interop.fleet import GO_BIN
from needs import absent

if TYPE_CHECKING:
    from pathlib import Path

ENV = [{"name": "KEPT", "value": "admin"}, {"name": "BOTH", "value": "admin"}]
GIVEN = {"BOTH": "profile", "NEW": "n", "ALSO": ""}


def policy(args: str | None = None, env: str | None = None, **fields: Any) -> Json:
    given = {"profileSourcedCLIArgsPolicy": args, "profileSourcedEnvVarsPolicy": env}
    return provider(**{key: value for key, value in given.items() if value}, **fields)


def fleet(*names: str) -> list[Json]:
    """Return profiles that add arguments and variables of their own, in this order."""
    return [
        profile(access(extensions={ARGS: [f"--of={name}"], ENVS: {"OF": name, name: "x"}}), name=name) for name in names
    ]


# name: (providers, profiles built in turn with one provider file)
CASES: dict[str, tuple[list[Json], list[Json]]] = {
    # which provider
    "one provider": ([provider()], [profile(access())]),
    "all exec fields": (
        [provider(apiVersion=V1BETA1, args=["-a", "b=c", ""], env=ENV, installHint="x", provideClusterInfo=True)],
        [profile(access())],
    ),
    "bare command": ([provider(command="aws")], [profile(access())]),
    "null lists": ([provider(args=None, env=None)], [profile(access())]),
    "unknown fields": ([provider(note=1, config={"a": 1})], [profile(access(), note=1)]),
    "order of the file": (
        [provider("b", command="/b"), provider("a", command="/a")],
        [profile(access("a"), access("b"))],
    ),
    "no match": ([provider("a")], [profile(access("b"))]),
    "no access providers": ([provider()], [profile()]),
    "no status": ([provider()], [{"metadata": {"name": "c"}}]),
    "null status": ([provider()], [{"metadata": {"name": "c"}, "status": None}]),
    "deprecated field": ([provider()], [profile(credentialProviders=[access()])]),
    "both fields, one name": ([provider()], [profile(access(server="https://new"), credentialProviders=[access()])]),
    "both fields, other names": (
        [provider("old", command="/old"), provider("new", command="/new")],
        [profile(access("new"), credentialProviders=[access("old")])],
    ),
    "a name twice": ([provider()], [profile(access(server="https://one"), access(server="https://two"))]),
    "a broken one besides": ([provider()], [profile(access("x", server=""), access())]),
    # the cluster
    "ca": ([provider()], [profile(access(certificate_authority_data=CA))]),
    "ca in lines": ([provider()], [profile(access(certificate_authority_data=f"{CA[:60]}\n{CA[60:]}"))]),
    "ca not base64": ([provider()], [profile(access(certificate_authority_data="!"))]),
    "ca not PEM": ([provider()], [profile(access(certificate_authority_data=b64("x")))]),
    "server with a path": ([provider()], [profile(access(server=f"{SERVER}/clusters/c1"))]),
    "server with a query": ([provider()], [profile(access(server=f"{SERVER}?agentName=c1"))]),
    "server of a wrong type": ([provider()], [profile(access(server=5))]),
    "proxy": ([provider()], [profile(access(proxy_url="http://user:pass@proxy.example:8080"))]),
    "socks proxy": ([provider()], [profile(access(proxy_url="socks5://proxy.example:1080"))]),
    # the config
    "config": ([provider()], [profile(access(extensions={EXEC: {"clusterName": "c1", "deep": {"a": [1, None]}}}))]),
    "config of a list": ([provider()], [profile(access(extensions={EXEC: [1, "a"]}))]),
    "config of a text": ([provider()], [profile(access(extensions={EXEC: "text"}))]),
    "config of null": ([provider()], [profile(access(extensions={EXEC: None}))]),
    "foreign extensions": ([provider()], [profile(access(extensions={"other": {"a": 1}}))]),
    "an extension twice": (
        [provider()],
        [
            profile(
                {
                    "name": "reader",
                    "cluster": {
                        "server": SERVER,
                        "extensions": [{"name": EXEC, "extension": {}}, {"name": EXEC, "extension": {}}],
                    },
                }
            )
        ],
    ),
    "extensions of a wrong type": (
        [provider()],
        [profile({"name": "reader", "cluster": {"server": SERVER, "extensions": {}}})],
    ),
    # arguments
    "args by default": ([policy(args=None)], fleet("a")),
    "args ignored": ([policy(args="Ignore")], fleet("a")),
    "args appended": ([policy(args="Append", env="Ignore")], [profile(access(extensions={ARGS: ["--x", "y z", ""]}))]),
    "args of null": ([policy(args="Append")], [profile(access(extensions={ARGS: None}))]),
    "args of nothing": ([policy(args="Append")], [profile(access(extensions={ARGS: []}))]),
    "args of a wrong type": ([policy(args="Append")], [profile(access(extensions={ARGS: {"a": 1}}))]),
    "args of a text": ([policy(args="Append")], [profile(access(extensions={ARGS: "--a"}))]),
    "args of a wrong type, ignored": ([policy()], [profile(access(extensions={ARGS: {"a": 1}}))]),
    # variables
    "env by default": ([policy(args="Append", env=None)], [profile(access(extensions={ENVS: GIVEN}))]),
    "env ignored": (
        [provider(env=ENV, profileSourcedEnvVarsPolicy="Ignore")],
        [profile(access(extensions={ENVS: GIVEN}))],
    ),
    "env if not there": (
        [provider(env=ENV, profileSourcedEnvVarsPolicy="AppendIfNotExists")],
        [profile(access(extensions={ENVS: GIVEN}))],
    ),
    "env replaced": (
        [provider(env=ENV, profileSourcedEnvVarsPolicy="Replace")],
        [profile(access(extensions={ENVS: GIVEN}))],
    ),
    "env of nothing": (
        [provider(env=ENV, profileSourcedEnvVarsPolicy="Replace")],
        [profile(access(extensions={ENVS: {}}))],
    ),
    "env of null without the admin's": ([policy(env="Replace")], [profile(access(extensions={ENVS: None}))]),
    "env of a wrong type": ([policy(env="Replace")], [profile(access(extensions={ENVS: ["A"]}))]),
    "policies unknown": ([policy(args="Always", env="Never")], fleet("a")),
    # several profiles
    "several profiles, ignored": ([policy()], fleet("a", "b", "a")),
    "several profiles, config": (
        [provider()],
        [profile(access(extensions={EXEC: {"clusterName": name}}), name=name) for name in ("a", "b", "a")],
    ),
    # where they differ
    "several profiles, args": ([policy(args="Append")], fleet("a", "b", "a")),
    "several profiles, env if not there": ([policy(env="AppendIfNotExists")], fleet("a", "b", "a")),
    "several profiles, env replaced": ([policy(env="Replace")], fleet("a", "b", "a")),
    "env of null": (
        [provider(env=ENV, profileSourcedEnvVarsPolicy="Replace")],
        [profile(access(extensions={ENVS: None}))],
    ),
    "tls-server-name": ([provider()], [profile(access(tls_server_name="spoke.internal"))]),
    "insecure": ([provider()], [profile(access(insecure_skip_tls_verify=True))]),
    "insecure and ca": ([provider()], [profile(access(insecure_skip_tls_verify=True, certificate_authority_data=CA))]),
    "disable-compression": ([provider()], [profile(access(disable_compression=True))]),
    "ca file": ([provider()], [profile(access(certificate_authority="/etc/ca"))]),
    "proxy that is no URL": ([provider()], [profile(access(proxy_url="proxy.example"))]),
    "server missing": ([provider()], [profile(access(server=""))]),
    "server without TLS": ([provider()], [profile(access(server="http://spoke.example"))]),
    "args of numbers": ([policy(args="Append")], [profile(access(extensions={ARGS: [5, True]}))]),
    "env of numbers": ([policy(env="Replace")], [profile(access(extensions={ENVS: {"A": 5}}))]),
    "env that loads code": ([policy(env="Replace")], [profile(access(extensions={ENVS: {"LD_PRELOAD": "/tmp/x.so"}}))]),
    "another kind": ([provider()], [{**profile(access()), "apiVersion": "config.projectsveltos.io/v1beta1"}]),
    "relative command": ([provider(command="./bin/reader")], [profile(access())]),
    "interactiveMode Always": ([provider(interactiveMode="Always")], [profile(access())]),
    "a provider twice": ([provider(command="/one"), provider(command="/two")], [profile(access())]),
    "no version": ([provider(apiVersion=None)], [profile(access())]),
}
SHARED = "theirs changes the provider file's own entry, so that one cluster's values reach the next"
DROPS = "theirs drops the field, which the format has"
CHECKED = "ours refuses when it is read what could only fail, or mislead, later"
OTHERWISE = {
    "several profiles, args": SHARED,
    "several profiles, env if not there": SHARED,
    "several profiles, env replaced": SHARED,
    "env of null": "theirs panics on null",
    "tls-server-name": DROPS,
    "insecure": DROPS,
    "insecure and ca": f"{DROPS}; client-go refuses both together, as ours does",
    "disable-compression": DROPS,
    "ca file": f"{DROPS}, and would trust the machine's authorities instead: ours refuses",
    "proxy that is no URL": "theirs takes it for a path, and fails at the first request",
    "server missing": "theirs asks localhost",
    "server without TLS": "theirs sends the token in plain text",
    "args of numbers": "theirs takes numbers for texts, as YAML does; the KEP says strings",
    "env of numbers": "theirs takes numbers for texts, as YAML does; the KEP says strings",
    "env that loads code": "theirs lets a profile run code in the controller",
    "another kind": "theirs never looks at the kind",
    "relative command": CHECKED,
    "interactiveMode Always": "theirs writes Never over it",
    "a provider twice": CHECKED,
    "no version": CHECKED,
}


def ours(entries: list[Json], profiles: list[Json], folder: Path) -> list[Any]:
    """Return what our library makes of each profile, "refused" for an error."""
    found: list[Any] = []
    for each in profiles:
        try:
            providers = load(folder, *entries)
            spec, configuration = select(each, providers), build_configuration(each, providers)
        except ExecCredError:
            found.append("refused")
            continue
        cluster = spec.cluster
        found.append(
            {
                "server": cluster.server,
                "ca": b64(configuration.ca_cert_data or ""),
                "tls-server-name": configuration.tls_server_name or "",
                "insecure": not configuration.verify_ssl,
                "disable-compression": cluster.disable_compression,
                "proxy": cluster.proxy_url,
                "apiVersion": spec.api_version,
                "command": spec.command,
                "args": list(spec.args),
                "env": dict(spec.env),
                "provideClusterInfo": spec.provide_cluster_info,
                "config": json.loads(spec.config),
            }
        )
    return found


def read(built: Json) -> Any:
    """Return what theirs makes of a profile in the same form; its env has no order."""
    if "panic" in built:
        return "panics"
    if "error" in built:
        return "refused"
    return {**built, "ca": built["ca"] or "", "args": built["args"] or [], "env": dict(built["env"] or [])}


def go_tool(name: str) -> str:
    if not (GO_BIN / name).exists():
        absent(f"not built: {name}; run `make interop-tools` (needs Go)")
    return str(GO_BIN / name)


@pytest.fixture(scope="module")
def theirs() -> dict[str, list[Any]]:
    """Return what the Go library makes of all cases."""
    program = go_tool("built")
    cases = [{"file": {"providers": entries}, "profiles": profiles} for entries, profiles in CASES.values()]
    done = subprocess.run([program], input=json.dumps(cases), stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: [read(each) for each in line] for name, line in zip(CASES, lines, strict=True)}


def test_at_least_forty_combinations_are_the_same() -> None:
    assert len(CASES) - len(OTHERWISE) >= 40
    assert set(OTHERWISE) < set(CASES)


@pytest.mark.parametrize("name", [name for name in CASES if name not in OTHERWISE])
def test_ours_is_as_theirs(theirs: dict[str, list[Any]], name: str, tmp_path: Path) -> None:
    assert ours(*CASES[name], tmp_path) == theirs[name]


@pytest.mark.parametrize("name", OTHERWISE)
def test_ours_differs_from_theirs_for_a_reason(theirs: dict[str, list[Any]], name: str, tmp_path: Path) -> None:
    assert ours(*CASES[name], tmp_path) != theirs[name], f"no longer so: {OTHERWISE[name]}"


@pytest.mark.parametrize("name", [name for name, reason in OTHERWISE.items() if reason == SHARED])
def test_a_profile_built_alone_is_the_same_in_both(theirs: dict[str, list[Any]], name: str, tmp_path: Path) -> None:
    entries, profiles = CASES[name]
    assert ours(entries, profiles[:1], tmp_path) == theirs[name][:1]
    assert ours(entries, profiles, tmp_path)[0] == ours(entries, profiles, tmp_path)[2]


@pytest.mark.parametrize("version", [V1, V1BETA1])
@pytest.mark.parametrize("informed", [True, False])
@pytest.mark.parametrize("config", [{"clusterName": "c1", "n": [1, None, "x"]}, None])
def test_a_plugin_gets_from_us_what_it_gets_from_client_go(
    tmp_path: Path, version: str, informed: bool, config: Any
) -> None:
    command = plugin(
        tmp_path,
        'printf "%s|" "$KUBERNETES_EXEC_INFO" "$BOTH" "$@" >"$OUT"',
        f"""echo '{{"apiVersion":"{version}","kind":"ExecCredential","status":{{"token":"t"}}}}'""",
    )
    env = [{"name": "BOTH", "value": "of the file"}]
    entry = provider(command=command, apiVersion=version, provideClusterInfo=informed, env=env, args=["a b", ""])
    providers = load(tmp_path, entry)
    nowhere = "https://127.0.0.1:1/path"  # nobody need answer: the plugin has run by then
    row = access(
        server=nowhere, certificate_authority_data=CA, proxy_url="http://127.0.0.1:1", extensions={EXEC: config}
    )
    document = profile(row)
    environ = {"PATH": os.environ["PATH"], "BOTH": "of the controller"}

    run_plugin(select(document, providers), environ={**environ, "OUT": f"{tmp_path}/ours"})
    (tmp_path / "profiles.json").write_text(json.dumps([document]))
    consumer = [go_tool("consumer"), f"-clusterprofile-provider-file={tmp_path}/providers.json"]
    subprocess.run(
        [*consumer, f"-profile-file={tmp_path}/profiles.json"],
        env={**environ, "OUT": f"{tmp_path}/theirs"},
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    one, other = [(tmp_path / name).read_text() for name in ("ours", "theirs")]
    assert one == other
    assert one.endswith("\n|of the file|a b||")
