"""Tokens kept between processes: what finds one again, and what must not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from aks.plugin import EXECUTABLE, exec_info, run_plugin
from execcred.conformance.fakes.azure import AKS, CLIENT, SECRET, TENANT, Entra, Metadata, federated, token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ONE, TWO = "https://127.0.0.1:1001", "https://127.0.0.1:1002"


def test_clusters_share_one_token(entra: Entra, workload: dict[str, str], tmp_path: Path) -> None:
    """Another server hits; the same server asked again by the same parent means a 401, and is fetched anew."""
    flags = ["--cache-dir", str(tmp_path / "cache")]
    for server, fetched in ((ONE, 1), (TWO, 1), (TWO, 2), (ONE, 2)):
        run_plugin(*flags, env=workload, info=exec_info(server=server)).credential["token"]
        assert len(entra.asked) == fetched, server


@pytest.mark.parametrize("mode", ["workloadidentity", "spn", "msi", "azurecli"])
def test_without_a_cache_folder_nothing_is_kept(
    metadata: Metadata, workload: dict[str, str], tmp_path: Path, mode: str
) -> None:
    """Neither azure-identity nor a keyring keeps anything: a client may run the plugin and not use its answer."""
    answer = json.dumps({"accessToken": token(aud=AKS, exp=4102444800), "expires_on": 4102444800})
    (tmp_path / "az").write_text(f"#!/bin/sh\necho '{answer}'\n")
    (tmp_path / "az").chmod(0o755)
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA"), str(tmp_path))
    env = {**workload, **folders, "PATH": f"{tmp_path}:/usr/bin:/bin", "AZURE_CLIENT_SECRET": SECRET}
    env["AZURE_POD_IDENTITY_AUTHORITY_HOST"] = metadata.url
    before = set(tmp_path.rglob("*"))
    assert run_plugin("--login", mode, env=env).credential["token"]
    assert set(tmp_path.rglob("*")) == before


def test_whatever_shapes_the_token_is_in_the_key(
    entra: Entra, workload: dict[str, str], token_file: Path, tmp_path: Path
) -> None:
    """Another audience or another service account in the token file misses."""
    flags = ["--cache-dir", str(tmp_path / "cache")]
    run_plugin(*flags, env=workload, info=exec_info(server=ONE)).credential["token"]
    run_plugin(*flags, "--server-id", "api://x", env=workload, info=exec_info(server=TWO)).credential["token"]
    assert len(entra.asked) == 2
    token_file.write_text(federated(1000))  # rotated: the same subject
    run_plugin(*flags, env=workload, info=exec_info(server=TWO)).credential["token"]
    assert len(entra.asked) == 2
    token_file.write_text(token(iss="other", sub="other"))
    run_plugin(*flags, env=workload, info=exec_info(server="https://127.0.0.1:3")).failed(3, "assertion-expired")
    assert len(entra.asked) == 3


def test_another_secret_does_not_find_the_token(entra: Entra, base: dict[str, str], tmp_path: Path) -> None:
    """A wrong secret must not be answered from the cache, and no secret is in the directory."""
    cache = tmp_path / "cache"
    flags = ["-l", "spn", "--client-id", CLIENT, "-t", TENANT, "--cache-dir", str(cache)]
    run_plugin(*flags, "--client-secret", SECRET, env=base, info=exec_info(server=ONE)).credential["token"]
    run_plugin(*flags, "--client-secret", "wrong", env=base, info=exec_info(server=TWO)).failed(
        1, "client-secret-wrong"
    )
    assert all(SECRET not in f"{path.name}{path.read_text()}" for path in cache.iterdir())


def profile(tenant: str, user: str) -> str:
    account = {"id": CLIENT, "tenantId": tenant, "isDefault": True, "user": {"name": user, "type": "user"}}
    return "\ufeff" + json.dumps({"installationId": "x", "subscriptions": [account]})


def test_another_az_account_does_not_find_the_token(tmp_path: Path) -> None:
    """az login, az account set and az logout change the profile, and so the key."""
    bin_folder, config, calls = tmp_path / "bin", tmp_path / "azure", tmp_path / "calls"
    bin_folder.mkdir()
    config.mkdir()
    answer = json.dumps({"accessToken": token(aud=AKS, exp=4102444800), "expires_on": 4102444800})
    (bin_folder / "az").write_text(f"#!/bin/sh\necho x >> {calls}\necho '{answer}'\n")
    (bin_folder / "az").chmod(0o755)
    env = {"PATH": f"{bin_folder}:/usr/bin:/bin", "AZURE_CONFIG_DIR": str(config)}
    flags = ["--login", "azurecli", "--cache-dir", str(tmp_path / "cache")]
    for step, text in enumerate([profile(TENANT, "a"), profile(TENANT, "b"), profile("other", "b"), ""], 1):
        (config / "azureProfile.json").write_text(text)
        for server in (ONE, TWO):
            run_plugin(*flags, env=env, info=exec_info(server=f"{server}{step}")).credential["token"]
            assert calls.read_text().count("x") == step


def overwrite(entry: Path) -> None:
    entry.write_text("LEAKED{")


def open_entry(entry: Path) -> None:
    entry.chmod(0o644)


def open_folder(entry: Path) -> None:
    entry.parent.chmod(0o755)


def replace_by_folder(entry: Path) -> None:
    entry.unlink()
    entry.mkdir()


@pytest.mark.parametrize("breakage", [overwrite, open_entry, open_folder, replace_by_folder])
def test_a_broken_cache_is_never_a_reason_to_fail(
    entra: Entra, workload: dict[str, str], tmp_path: Path, breakage: Callable[[Path], None]
) -> None:
    """It is a miss."""
    cache = tmp_path / "cache"
    flags = ["--cache-dir", str(cache)]
    run_plugin(*flags, env=workload, info=exec_info(server=ONE)).credential["token"]
    (entry,) = cache.glob("*.json")
    breakage(entry)
    assert run_plugin(*flags, env=workload, info=exec_info(server=TWO)).credential["token"]
    assert len(entra.asked) == 2


# --- start-up ---

HEAVY = (
    *("azure", "msal", "requests", "urllib3", "cryptography", "certifi", "ssl", "socket", "_ssl", "http"),
    *("asyncio", "importlib.metadata", "importlib.resources", "urllib.request", "concurrent", "dataclasses", "typing"),
    *(
        "json",
        "re",
        "logging",
        "inspect",
        "tempfile",
        "subprocess",
        "argparse",
        "pathlib",
        "email",
        "execcred_aks_azure",
    ),
    *("execcred_aks_errors", "execcred_aks_workload"),
)
IMPORTED = """
import os, sys
sys.path[:0] = {path!r}
sys.argv = ["aks-plugin", *{arguments!r}]
end = os._exit
def told(status):
    os.write(2, ("\\nMODULES " + " ".join(sys.modules)).encode())
    end(status)
os._exit = told
import execcred_aks
execcred_aks.main()
"""


def modules(env: dict[str, str], *arguments: str) -> tuple[int, set[str]]:
    """Return exit status and imported modules of a run as the archives start it: without site."""
    path = [folder for folder in sys.path if folder.endswith(("/common", "/plugins/aks"))]
    path += [entry for entry in sys.path if entry.endswith("site-packages")]
    code = IMPORTED.format(path=path, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, set(done.stderr.partition("\nMODULES ")[2].split())


def heavy(names: set[str]) -> set[str]:
    return {name for name in names for each in HEAVY if name == each or name.startswith(f"{each}.")}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["--nonsense"], ["--login", "spn"], ["-l", "x"], []])
def test_help_and_usage_errors_import_neither_sdk_nor_tls(arguments: list[str]) -> None:
    """They answer in the time of a bare interpreter."""
    status, names = modules({}, *arguments)
    assert status == (0 if arguments in (["--help"], ["--version"]) else 2)
    assert "execcred_aks" in names
    assert heavy(names) == set()


def test_a_cache_hit_imports_neither_sdk_nor_tls(entra: Entra, workload: dict[str, str], tmp_path: Path) -> None:
    """The second run for another server is a hit."""
    flags = ["--cache-dir", str(tmp_path / "cache")]
    for server, calls in ((ONE, 1), (TWO, 1)):
        status, names = modules({**workload, "KUBERNETES_EXEC_INFO": exec_info(server=server)}, *flags)
        assert (status, len(entra.asked)) == (0, calls)
    assert "execcred._cache" in names
    assert heavy(names) == set()


def test_workload_identity_imports_no_sdk(entra: Entra, workload: dict[str, str]) -> None:
    """The controllers' way costs one POST, and no SDK."""
    status, names = modules(workload)
    assert (status, len(entra.asked)) == (0, 1)
    assert not {name.partition(".")[0] for name in names} & {"azure", "msal", "requests", "urllib3", "cryptography"}


def test_the_installed_executable_is_the_one_tested() -> None:
    """What the tests run is what people get."""
    done = subprocess.run([EXECUTABLE, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("aks-plugin ")
