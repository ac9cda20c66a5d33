"""The cache serves the same inputs only, and neither it nor bad usage loads the SDK or TLS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from execcred.conformance.fakes.google import LAST, TARGET, MetadataServer
from gke.cloud import Cloud, failed
from gke.files import authorized_user, external_account, service_account
from gke.test_sources import subject_file
from unit.support import exec_info, executable, variables_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from execcred.conformance.fakes.google import Google

# What a start must not load before it is known to be needed.
HEAVY = (
    *(
        "google",
        "requests",
        "urllib3",
        "cryptography",
        "certifi",
        "ssl",
        "_ssl",
        "_hashlib",
        "http.client",
        "urllib.request",
    ),
    *(
        "email",
        "asyncio",
        "json",
        "re",
        "logging",
        "subprocess",
        "inspect",
        "typing",
        "dataclasses",
        "argparse",
        "pathlib",
    ),
    *("tempfile", "importlib.metadata", "importlib.resources", "concurrent.futures", "execcred_gke_google"),
)
FLAG = f"--impersonate-service-account={TARGET}"


def imported(cloud: Cloud, *arguments: str, variables: dict[str, str]) -> tuple[set[str], int]:
    """Run the executable with Python's import trace; return the modules that it loaded, and its exit status."""
    command = [sys.executable, "-X", "importtime", "-S", "-c", START, *arguments]
    given = variables_for({"NO_GCE_CHECK": "true", **cloud.network(), **variables})
    del given["PYTHONPATH"]  # the guard of tests is no module of ours
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    lines = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    return set(lines), done.returncode


# As a zipapp starts: no site, the sources on the path.
START = f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}; import execcred_gke; execcred_gke.main()"


def heavy(modules: set[str]) -> set[str]:
    return {each for each in modules if each in HEAVY or each.partition(".")[0] in HEAVY}


@pytest.mark.parametrize(
    ("arguments", "status"), [(["--help"], 0), (["--version"], 0), (["--nonsense"], 2), (["--timeout=never"], 2)]
)
def test_help_and_bad_usage_load_neither_sdk_nor_tls(cloud: Cloud, arguments: list[str], status: int) -> None:
    modules, returned = imported(cloud, *arguments, variables={})
    assert returned == status
    assert "execcred_gke" in modules
    assert heavy(modules) == set()


def test_a_bad_request_loads_neither_sdk_nor_tls(cloud: Cloud) -> None:
    modules, returned = imported(cloud, variables={"KUBERNETES_EXEC_INFO": "no json"})
    assert returned == 2
    assert {each.partition(".")[0] for each in heavy(modules)} <= {"json", "re"}  # where the text stops being JSON


def test_the_metadata_server_is_asked_without_sdk_and_tls(cloud: Cloud, metadata: MetadataServer) -> None:
    modules, returned = imported(cloud, variables={"GCE_METADATA_HOST": metadata.netloc})
    assert returned == 0
    assert heavy(modules) == set()
    assert len(metadata.asked) == 1


@pytest.fixture
def store(tmp_path: Path) -> str:
    folder = tmp_path / "store"
    folder.mkdir(mode=0o700)
    return str(folder)


def shell(cloud: Cloud, *arguments: str, variables: dict[str, str]) -> str:
    """Run the executable from a shell of its own, as each kubectl is a process of its own; return the token."""
    script = '"$0" --output=token "$@"; exit $?'
    done = subprocess.run(
        ["/bin/sh", "-c", script, executable("gke"), *arguments],
        env=variables_for({"NO_GCE_CHECK": "true", **cloud.network(), **variables}),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_a_hit_loads_neither_sdk_nor_tls(cloud: Cloud, store: str) -> None:
    variables = {**cloud.write(service_account()), "EXECCRED_CACHE_DIR": store}
    token = shell(cloud, variables=variables)
    modules, returned = imported(cloud, variables=variables)
    assert returned == 0
    assert heavy(modules) == set()
    assert len(cloud.google.asked) == 1
    assert shell(cloud, variables=variables) == token


def test_without_a_cache_folder_nothing_is_kept(cloud: Cloud, tmp_path: Path) -> None:
    variables = {**cloud.write(service_account()), "HOME": str(tmp_path)}
    before = set(tmp_path.rglob("*"))
    assert shell(cloud, variables=variables) != shell(cloud, variables=variables)
    assert set(tmp_path.rglob("*")) == before


def test_a_machine_is_looked_at_anew_each_time(cloud: Cloud, metadata: MetadataServer, store: str) -> None:
    """Whether this is Google Cloud is kept nowhere: an image may be built where it is run nowhere near."""
    variables = {"HOME": store, "TMPDIR": store, "EXECCRED_CACHE_DIR": f"{store}/cache", "NO_GCE_CHECK": ""}
    nobody, somebody = {"GCE_METADATA_IP": "127.0.0.1:1"}, {"GCE_METADATA_IP": metadata.netloc}
    failed(cloud.run(variables={**variables, **nobody}), "credentials-none", 1)
    kept = [path for path in Path(store).rglob("*") if path.is_file()]
    assert [path for path in kept if path.suffix != ".lock" or path.read_text()] == []
    assert cloud.token(variables={**variables, **somebody, "EXECCRED_CACHE_DIR": ""}).startswith("ya29.attached")
    failed(cloud.run(variables={**variables, **nobody}), "credentials-none", 1)
    assert cloud.token(variables={**variables, **somebody}).startswith("ya29.attached")


def test_the_same_parent_asking_again_for_a_server_gets_a_new_token(cloud: Cloud, store: str) -> None:
    variables = {**cloud.write(service_account()), "KUBERNETES_EXEC_INFO": exec_info(None)}
    flag = f"--cache-dir={store}"
    assert cloud.token(flag, variables=variables) != cloud.token(flag, variables=variables)


def test_clusters_share_one_token(cloud: Cloud, store: str) -> None:
    variables = {**cloud.write(service_account()), "EXECCRED_CACHE_DIR": store}
    servers = [exec_info(None, f"https://cluster-{number}.test") for number in range(5)]
    tokens = {cloud.token(variables={**variables, "KUBERNETES_EXEC_INFO": server}) for server in servers}
    assert len(tokens) == len(cloud.google.asked) == 1


CHANGES: dict[str, Callable[[Cloud], tuple[list[str], dict[str, str]]]] = {
    "the file's content": lambda cloud: ([], cloud.write(service_account(private_key_id="key-2"))),
    "another kind of file": lambda cloud: ([], cloud.write(authorized_user())),
    "an impersonated account": lambda _: ([FLAG], {}),
    "a chain": lambda _: ([f"--impersonate-service-account=mid@project.iam.gserviceaccount.com,{LAST}"], {}),
    "a quota project": lambda _: (["--quota-project=p"], {}),
    "a universe": lambda _: (["--universe-domain=googleapis.com"], {}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_shapes_a_token_is_part_of_the_key(cloud: Cloud, store: str, change: str) -> None:
    variables = {**cloud.write(service_account()), "EXECCRED_CACHE_DIR": store}
    first = shell(cloud, variables=variables)
    arguments, changed = CHANGES[change](cloud)
    second = shell(cloud, *arguments, variables={**variables, **changed})
    assert first != second
    assert shell(cloud, *arguments, variables={**variables, **changed}) == second


def test_the_lifetime_of_an_impersonated_token_is_part_of_the_key(cloud: Cloud, store: str) -> None:
    variables = {**cloud.write(service_account()), "EXECCRED_CACHE_DIR": store}
    assert shell(cloud, FLAG, variables=variables) != shell(cloud, FLAG, "--lifetime=30m", variables=variables)


def test_the_subject_token_is_part_of_the_key(cloud: Cloud, store: str, tmp_path: Path) -> None:
    google: Google = cloud.google
    google.subjects["subject-token-2"] = "principal://subject-2"
    variables = {**cloud.write(external_account(subject_file(tmp_path))), "EXECCRED_CACHE_DIR": store}
    assert google.principal(shell(cloud, variables=variables)) == "principal://subject-1"
    subject_file(tmp_path, "subject-token-2")
    assert google.principal(shell(cloud, variables=variables)) == "principal://subject-2"


def test_another_metadata_server_is_another_identity(cloud: Cloud, metadata: MetadataServer, store: str) -> None:
    with MetadataServer(cloud.google) as other:
        tokens = [
            shell(cloud, variables={"GCE_METADATA_HOST": server.netloc, "EXECCRED_CACHE_DIR": store})
            for server in (metadata, other, metadata)
        ]
    assert tokens[0] == tokens[2] != tokens[1]


def test_a_token_is_used_until_shortly_before_its_end(cloud: Cloud, store: str) -> None:
    variables = {**cloud.write(service_account()), "EXECCRED_CACHE_DIR": store}
    cloud.google.lifetime = 50
    assert shell(cloud, variables=variables) != shell(cloud, variables=variables)
