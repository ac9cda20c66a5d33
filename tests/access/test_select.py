"""Which plugin run a ClusterProfile leads to, under every policy, and what of hostile profiles is refused."""

from __future__ import annotations

import copy
import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any

import pytest

from access.support import ARGS, CA, ENVS, EXEC, SERVER, V1, V1BETA1, Json, access, load, profile, provider, refused
from execcred.access import ExecSpec, is_ready, select
from interop.cluster import b64

if TYPE_CHECKING:
    from pathlib import Path


def chosen(tmp_path: Path, entry: Json, *accesses: Json, **fields: Any) -> ExecSpec:
    return select(profile(*accesses, **fields), load(tmp_path, entry))


# --- which provider ---


def test_the_order_of_the_provider_file_decides(tmp_path: Path) -> None:
    providers = load(tmp_path, provider("a", command="/a"), provider("b", command="/b"))
    assert select(profile(access("b"), access("a")), providers).command == "/a"
    assert select(profile(access("x"), access("b")), providers).command == "/b"


def test_access_providers_beat_deprecated_credential_providers_of_the_same_name(tmp_path: Path) -> None:
    providers = load(tmp_path, provider("a"), provider("b"))
    old = [access("a", server="https://old-a"), access("b", server="https://old-b")]
    both = select(profile(access("a", server="https://new-a"), credentialProviders=old), providers)
    assert both.cluster.server == "https://new-a"
    only = select(profile(access("x"), credentialProviders=old[1:]), providers)
    assert (only.provider, only.cluster.server) == ("b", "https://old-b")


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_both_versions_of_the_api_are_read(tmp_path: Path, version: str) -> None:
    assert chosen(tmp_path, provider(), access(), version=version).cluster.server == SERVER


def test_objects_of_the_dynamic_client_are_read_as_well(tmp_path: Path) -> None:
    class Resource:
        def to_dict(self) -> Json:
            return profile(access())

    assert select(Resource(), load(tmp_path, provider())) == chosen(tmp_path, provider(), access())


@pytest.mark.parametrize("fields", [{}, {"status": None}, {"status": {}}, {"status": {"accessProviders": None}}])
def test_a_profile_without_status_matches_nothing(tmp_path: Path, fields: Json) -> None:
    error = refused(lambda: select({"metadata": {"name": "c"}, **fields}, load(tmp_path, provider())))
    assert error.code == "provider-unmatched"
    assert error.message == "no access provider of ClusterProfile c (none) is in the provider file (reader)"


def test_an_access_provider_that_is_not_chosen_may_be_broken(tmp_path: Path) -> None:
    assert chosen(tmp_path, provider(), {"name": "other", "cluster": 5}, access()).cluster.server == SERVER


# --- what the plugin gets ---


def test_all_of_the_cluster_reaches_the_plugin_as_client_go_writes_it(tmp_path: Path) -> None:
    row = access(
        extensions={EXEC: {"clusterName": "c1", "n": 5}},
        certificate_authority_data=CA,
        tls_server_name="t",
        proxy_url="http://p:8080",
        disable_compression=True,
    )
    spec = chosen(tmp_path, provider(provideClusterInfo=True, apiVersion=V1BETA1), row)
    assert spec.exec_info() == (
        '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{"cluster":{'
        f'"server":"{SERVER}","tls-server-name":"t","certificate-authority-data":"{CA}","proxy-url":"http://p:8080",'
        '"disable-compression":true,"config":{"clusterName":"c1","n":5}},"interactive":false}}\n'
    )
    assert spec.cluster.ca_pem.startswith("-----BEGIN CERTIFICATE-----")


@pytest.mark.parametrize("rows", [None, [], [{"name": EXEC}], [{"name": EXEC, "extension": None}]])
def test_without_an_extension_the_config_is_null(tmp_path: Path, rows: Any) -> None:
    spec = chosen(
        tmp_path,
        provider(provideClusterInfo=True),
        access(extensions=None) | {"cluster": {"server": SERVER, "extensions": rows, "insecure-skip-tls-verify": True}},
    )
    assert json.loads(spec.exec_info())["spec"]["cluster"] == {
        "server": SERVER,
        "insecure-skip-tls-verify": True,
        "config": None,
    }


@pytest.mark.parametrize("config", [{"a": None}, [1, "x"], "text", 5, 1.5, True, False, "", {}, []])
def test_the_config_may_be_any_json(tmp_path: Path, config: Any) -> None:
    spec = chosen(tmp_path, provider(provideClusterInfo=True), access(extensions={EXEC: config}))
    assert json.loads(spec.exec_info())["spec"]["cluster"]["config"] == config


def test_without_provide_cluster_info_the_plugin_is_told_the_version_only(tmp_path: Path) -> None:
    spec = chosen(tmp_path, provider(), access(extensions={EXEC: {"clusterName": "c1"}}))
    assert spec.exec_info() == f'{{"kind":"ExecCredential","apiVersion":"{V1}","spec":{{"interactive":false}}}}\n'


# --- policies ---

EVIL = ["--endpoint=http://evil.example", "; rm -rf /", "$(id)", ""]
ADMIN = [{"name": "KEPT", "value": "admin"}, {"name": "BOTH", "value": "admin"}]


@pytest.mark.parametrize(
    ("args", "given", "expected"),
    [
        (None, EVIL, ["--own"]),
        ("Ignore", EVIL, ["--own"]),
        ("Ignore", {"wrong": "type"}, ["--own"]),
        ("Append", EVIL, ["--own", *EVIL]),
        ("Append", None, ["--own"]),
        ("Append", [], ["--own"]),
    ],
)
def test_arguments_of_a_profile_count_by_the_policy_alone(
    tmp_path: Path, args: str | None, given: Any, expected: list[str]
) -> None:
    spec = chosen(
        tmp_path, provider(args=["--own"], profileSourcedCLIArgsPolicy=args), access(extensions={ARGS: given})
    )
    assert list(spec.args) == expected


@pytest.mark.parametrize(
    ("env", "given", "expected"),
    [
        (None, {"BOTH": "profile", "NEW": "n"}, [("KEPT", "admin"), ("BOTH", "admin")]),
        ("Ignore", {"LD_PRELOAD": "x"}, [("KEPT", "admin"), ("BOTH", "admin")]),
        ("Ignore", 5, [("KEPT", "admin"), ("BOTH", "admin")]),
        (
            "AppendIfNotExists",
            {"NEW": "n", "BOTH": "p", "A": ""},
            [("KEPT", "admin"), ("BOTH", "admin"), ("A", ""), ("NEW", "n")],
        ),
        ("Replace", {"NEW": "n", "BOTH": "p", "A": ""}, [("KEPT", "admin"), ("BOTH", "p"), ("A", ""), ("NEW", "n")]),
        ("AppendIfNotExists", None, [("KEPT", "admin"), ("BOTH", "admin")]),
        ("Replace", None, [("KEPT", "admin"), ("BOTH", "admin")]),
        ("Replace", {}, [("KEPT", "admin"), ("BOTH", "admin")]),
    ],
)
def test_variables_of_a_profile_count_by_the_policy_alone_in_a_stable_order(
    tmp_path: Path, env: str | None, given: Any, expected: list[tuple[str, str]]
) -> None:
    spec = chosen(tmp_path, provider(env=ADMIN, profileSourcedEnvVarsPolicy=env), access(extensions={ENVS: given}))
    assert list(spec.env) == expected


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONPATH",
        "BASH_ENV",
        "PATH",
        "GCONV_PATH",
        "KUBERNETES_EXEC_INFO",
        "SSLKEYLOGFILE",
        "OPENSSL_CONF",
        "OPENSSL_MODULES",
        "BASH_FUNC_aws%%",
        "PS4",
        "NODE_OPTIONS",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "CLOUDSDK_PYTHON",
        "AZURE_EXTENSION_DIR",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES",
        "EXECCRED_UNPACK_DIR",
    ],
)
@pytest.mark.parametrize("env", ["AppendIfNotExists", "Replace"])
def test_a_profile_never_chooses_what_code_the_plugin_runs(tmp_path: Path, env: str, name: str) -> None:
    entry = provider(profileSourcedEnvVarsPolicy=env)
    error = refused(lambda: chosen(tmp_path, entry, access(extensions={ENVS: {name: "/tmp/evil"}})))
    assert error.code == "profile-refused"
    assert repr(name) in error.message
    assert "/tmp/evil" not in error.message


# --- nothing is shared ---


def test_a_hundred_profiles_in_any_order_and_in_threads_give_what_one_alone_gives(tmp_path: Path) -> None:
    entry = provider(
        env=ADMIN, args=["--own"], profileSourcedCLIArgsPolicy="Append", profileSourcedEnvVarsPolicy="Replace"
    )
    profiles = [
        profile(
            access(extensions={EXEC: {"n": n}, ARGS: [f"--n={n}"], ENVS: {"BOTH": str(n), f"N{n}": "x"}}), name=f"c{n}"
        )
        for n in range(100)
    ]
    alone = [select(each, load(tmp_path, entry)) for each in profiles]
    providers = load(tmp_path, entry)
    before = copy.deepcopy((providers, profiles))
    order = list(range(100)) * 5
    random.Random(7).shuffle(order)
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda n: select(profiles[n], providers), order))
    assert together == [alone[n] for n in order]
    assert (providers, profiles) == before


def test_a_spec_cannot_be_changed_and_does_not_change_with_the_profile(tmp_path: Path) -> None:
    document = profile(access(extensions={EXEC: {"a": [1]}}))
    spec = select(document, load(tmp_path, provider()))
    document["status"]["accessProviders"][0]["cluster"]["extensions"][0]["extension"]["a"].append(2)
    assert json.loads(spec.config) == {"a": [1]}
    with pytest.raises(FrozenInstanceError):
        spec.command = "x"  # type: ignore[misc]  # which is the point


def test_no_argument_variable_or_proxy_password_is_in_a_repr(tmp_path: Path) -> None:
    entry = provider(env=[{"name": "A", "value": "hush"}], args=["--client-secret=hush"])
    assert "hush" not in repr(chosen(tmp_path, entry, access(proxy_url="http://u:hush@p:1")))


# --- hostile and broken profiles ---

WRONG: list[tuple[Any, str]] = [
    ([], "the ClusterProfile: it must be an object, is an array"),
    ({"apiVersion": "config.projectsveltos.io/v1beta1", "kind": "ClusterProfile"}, "it is no ClusterProfile of"),
    ({"apiVersion": "multicluster.x-k8s.io/v9"}, "it is no ClusterProfile of"),
    ({"kind": "Cluster"}, "it is no ClusterProfile of"),
    ({"metadata": 5, "status": 5}, "ClusterProfile without a name: status must be an object"),
    (profile() | {"status": {"accessProviders": {}}}, "fleet/spoke-1: status.accessProviders must be an array"),
    (profile(5), "status.accessProviders[0] must be an object, is a number"),  # type: ignore[arg-type]
    (profile({"name": 5}), "status.accessProviders[0].name must be a string"),
    (profile({"name": "reader"}), "status.accessProviders[0].cluster.server is missing"),
    (profile({"name": "reader", "cluster": "x"}), "status.accessProviders[0].cluster must be an object"),
    (profile(access(server=5)), "cluster.server must be a string, is a number"),
    (profile(access(server="")), "cluster.server is missing"),
    (profile(access(server="http://spoke.example")), "cluster.server must be a URL of scheme https"),
    (profile(access(server="spoke.example:6443")), "cluster.server"),
    (profile(access(server="https://")), "cluster.server is not a URL"),
    (profile(access(server="https://a b")), "cluster.server is not a URL"),
    (profile(access(server="https://a?x=\n")), "cluster.server must be a URL"),
    (profile(access(server="https://user:hush@spoke.example")), "cluster.server must hold no user and password"),
    (profile(access(server="https://good.example\\@evil.example")), "cluster.server is not a URL"),
    (profile(access(proxy_url="ftp://p")), "cluster.proxy-url must be a URL of scheme http or https or socks5"),
    (profile(access(proxy_url="http://a b")), "cluster.proxy-url is not a URL"),
    (profile(access(tls_server_name=1)), "cluster.tls-server-name must be a string"),
    (profile(access(insecure_skip_tls_verify="yes")), "insecure-skip-tls-verify must be true or false"),
    (profile(access(certificate_authority_data="!")), "certificate-authority-data is not base64"),
    (profile(access(certificate_authority_data=b64("x"))), "is not base64 of a PEM certificate"),
    (profile(access(certificate_authority="/etc/ca")), "cluster.certificate-authority is a file"),
    (
        profile(access(certificate_authority_data=CA, insecure_skip_tls_verify=True)),
        "insecure-skip-tls-verify and certificate-authority-data exclude each other",
    ),
    (profile(access(extensions={}) | {"cluster": {"extensions": {}}}), "cluster.extensions must be an array"),
    (profile({"name": "reader", "cluster": {"extensions": [5]}}), "cluster.extensions[0] must be an object"),
    (
        profile({"name": "reader", "cluster": {"extensions": [{"name": "a"}, {"name": "a"}]}}),
        "cluster.extensions[1].name is there twice",
    ),
    (profile(access(extensions={EXEC: float("nan")})), "cannot be written as JSON"),
    (profile(access(extensions={EXEC: {"a": {1, 2}}})), "cannot be written as JSON"),
    (profile(access(extensions={ARGS: "--a"})), "extensions[0].extension must be an array, is a string"),
    (profile(access(extensions={ARGS: ["a", 5]})), "extensions[0].extension[1] must be a string, is a number"),
    (profile(access(extensions={ARGS: ["a\0b"]})), "extensions[0].extension[0] holds a character"),
    (profile(access(extensions={ENVS: ["A"]})), "extensions[0].extension must be an object, is an array"),
    (profile(access(extensions={ENVS: {"A": 5}})), "extensions[0].extension.A must be a string, is a number"),
    (profile(access(extensions={ENVS: {"A=B": "5"}})), "extensions[0].extension is no name of a variable"),
    (profile(access(extensions={ENVS: {"": "5"}})), "extensions[0].extension is no name of a variable"),
    (profile(access(extensions={ENVS: {5: "5"}})), "extensions[0].extension must be a string"),
    (profile(access(extensions={ENVS: {"A": "\0"}})), "extensions[0].extension.A holds a character"),
]


@pytest.mark.parametrize(("document", "told"), WRONG)
def test_a_broken_profile_is_refused_by_the_fields_place(tmp_path: Path, document: Any, told: str) -> None:
    entry = provider(profileSourcedCLIArgsPolicy="Append", profileSourcedEnvVarsPolicy="Replace")
    error = refused(lambda: select(document, load(tmp_path, entry)))
    assert (error.code, error.exit_status) == ("profile-invalid", 1)
    assert told in error.message
    assert "hush" not in error.message


def test_a_profiles_name_cannot_break_the_line_of_an_error(tmp_path: Path) -> None:
    document = profile(access("x\ny"), name="a\nb")
    assert refused(lambda: select(document, load(tmp_path, provider()))).message.isprintable()


def test_a_ca_file_counts_for_nothing_beside_the_data(tmp_path: Path) -> None:
    row = access(certificate_authority="/etc/ca", certificate_authority_data=CA[:20] + "\n" + CA[20:])
    assert chosen(tmp_path, provider(), row).cluster.ca_data == CA


# --- readiness ---


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        (None, False),
        ([], False),
        ([{"type": "Joined", "status": "True"}], False),
        ([{"type": "ControlPlaneHealthy", "status": "Unknown"}], False),
        ([{"type": "ControlPlaneHealthy", "status": "False"}], False),
        ([{"type": "ControlPlaneHealthy"}], False),
        ([{"type": "Joined", "status": "False"}, {"type": "ControlPlaneHealthy", "status": "True"}], True),
    ],
)
def test_a_cluster_is_ready_when_its_control_plane_is_healthy(conditions: Any, ready: bool) -> None:
    assert is_ready(profile(conditions=conditions)) is ready


def test_a_profile_without_status_is_not_ready() -> None:
    assert not is_ready({"metadata": {"name": "c"}})


def test_conditions_of_a_wrong_type_are_refused() -> None:
    assert refused(lambda: is_ready(profile(conditions={}))).code == "profile-invalid"
