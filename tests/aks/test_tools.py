"""az and azd as real executables: what they may do, and what they must not do to us."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from aks.plugin import run_plugin
from execcred._protocol import jwt_claims
from execcred.conformance.fakes.azure import AKS, CLIENT, TENANT, token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def tool(tmp_path: Path) -> Callable[[str, str], dict[str, str]]:
    """Make an executable of a shell script, which also notes its arguments and environment; return the variables."""

    def make(name: str, script: str) -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        path = folder / name
        notes = f'echo "$@" > {tmp_path}/arguments; env > {tmp_path}/environment; cat > {tmp_path}/stdin\n'
        path.write_text(f"#!/bin/sh\n{notes}{script}\n")
        path.chmod(0o755)
        return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path)}

    return make


def az_answer(end: float) -> str:
    text = json.dumps({"accessToken": token(aud=AKS, exp=int(end)), "expires_on": int(end), "tenant": TENANT})
    return f"cat <<'EOF'\n{text}\nEOF"


def azd_answer(end: float) -> str:
    utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    return f"cat <<'EOF'\n{json.dumps({'token': token(aud=AKS, exp=int(end)), 'expiresOn': utc})}\nEOF"


def test_az_is_asked_for_the_aks_audience(tool: Callable[[str, str], dict[str, str]], tmp_path: Path) -> None:
    """Tenant and subscription are handed on; the answer is az's token."""
    env = tool("az", az_answer(time.time() + 3600))
    flags = ["--login", "azurecli", "--tenant-id", TENANT, "--subscription", CLIENT]
    assert jwt_claims(run_plugin(*flags, env=env).credential["token"])["aud"] == AKS
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments[:4] == ["account", "get-access-token", "--output", "json"]
    assert arguments[arguments.index("--resource") + 1] == AKS
    assert arguments[arguments.index("--tenant") + 1] == TENANT
    assert arguments[arguments.index("--subscription") + 1] == CLIENT


def test_az_keeps_its_own_environment_and_none_of_ours(
    tool: Callable[[str, str], dict[str, str]], tmp_path: Path
) -> None:
    """Cloud Shell's MSI_ENDPOINT and AZURE_CONFIG_DIR reach az; the exec info and loader variables do not."""
    env = {
        **tool("az", az_answer(time.time() + 3600)),
        "MSI_ENDPOINT": "http://localhost:50342/oauth2/token",
        "AZURE_CONFIG_DIR": "/config",
        "LD_LIBRARY_PATH": "/lib-of-ours",
    }
    info = json.dumps({"kind": "ExecCredential", "spec": {"interactive": False}})
    assert run_plugin("--login", "azurecli", env=env, info=info).credential["token"]
    seen = dict(line.partition("=")[::2] for line in (tmp_path / "environment").read_text().splitlines())
    assert seen["MSI_ENDPOINT"] == "http://localhost:50342/oauth2/token"
    assert seen["AZURE_CONFIG_DIR"] == "/config"
    assert not {"KUBERNETES_EXEC_INFO", "LD_LIBRARY_PATH", "PYTHONPATH"} & seen.keys()
    assert (tmp_path / "stdin").read_text() == ""


AZ_FAULTS = {
    "garbage": ("echo LEAKED-token-ish", 1, "answer-invalid", "printed something else"),
    "half a JSON": ('echo \'{"accessToken": "LEAKED\'', 1, "answer-invalid", "printed something else"),
    "an array": ("echo '[\"LEAKED\"]'", 1, "tool-failed", "az failed"),
    "not signed in": (
        "echo \"ERROR: Please run 'az login' to setup account. LEAKED\" >&2; exit 1",
        4,
        "login-needed",
        "az login --tenant",
    ),
    "session over": (
        "echo 'ERROR: AADSTS700082: The refresh token has expired. LEAKED' >&2; exit 1",
        4,
        "login-expired",
        "az login --tenant",
    ),
    "wants MFA": ("echo 'AADSTS50076: Due to a change LEAKED' >&2; exit 1", 4, "login-expired", "az login"),
    "corrupted cache": (
        "echo 'json.decoder.JSONDecodeError: Expecting value: line 1 column 1 LEAKED az login' >&2; exit 1",
        1,
        "tool-cache-corrupt",
        "az account clear",
    ),
    "secrets on stderr": ("echo 'LEAKED secret' >&2; exit 1", 1, "tool-failed", "az account get-access-token"),
    "ends at once": ("exit 3", 1, "tool-failed", "az account get-access-token"),
    "command not found inside": ("exit 127", 1, "tool-missing", "not in PATH"),
    "killed": ("kill -9 $$", 1, "tool-failed", ""),
}


@pytest.mark.parametrize("name", AZ_FAULTS)
def test_what_az_does_wrong_is_explained_and_not_repeated(
    tool: Callable[[str, str], dict[str, str]], name: str
) -> None:
    """Each has code, exit status and remedy; nothing that az wrote is shown."""
    script, status, code, words = AZ_FAULTS[name]
    told = run_plugin("--login", "azurecli", "--tenant-id", TENANT, env=tool("az", script)).failed(status, code)
    assert words in told


def test_az_that_is_not_there_is_told() -> None:
    """PATH is named in the hint."""
    assert "set PATH" in run_plugin("--login", "azurecli", env={"PATH": "/nonexistent"}).failed(1, "tool-missing")


def test_a_hanging_az_and_its_children_end_at_the_deadline(
    tool: Callable[[str, str], dict[str, str]], tmp_path: Path
) -> None:
    """The whole session of az is killed, so nothing is left behind."""
    env = tool("az", f"sleep 300 & echo $! > {tmp_path}/child; wait")
    done = run_plugin("--login", "azurecli", env={**env, "EXECCRED_TIMEOUT": ""})
    assert "while waiting for az" in done.failed(3, "deadline")
    assert done.seconds < 30
    child = int((tmp_path / "child").read_text())
    end = time.monotonic() + 30
    while _alive(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _alive(child)


def _alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Tokyo"])
def test_azd_tells_utc_wherever_it_runs(tool: Callable[[str, str], dict[str, str]], tmp_path: Path, zone: str) -> None:
    """The SDK reads azd's UTC as local time; the token's own end is what is announced."""
    end = time.time() + 3600
    env = {**tool("azd", azd_answer(end)), "TZ": zone}
    answer = run_plugin("--login", "azd", "--tenant-id", TENANT, env=env).credential
    announced = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(end) - 60))
    assert answer["expirationTimestamp"] == announced
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments[arguments.index("--scope") + 1] == f"{AKS}/.default"
    assert arguments[arguments.index("--tenant-id") + 1] == TENANT


AZD_FAULTS = {
    "not signed in": (
        'echo \'{"error":"not logged in, run `azd auth login` to login LEAKED"}\'; exit 1',
        4,
        "login-needed",
        "azd auth login",
    ),
    "session over": ("echo 'AADSTS70043: LEAKED' >&2; exit 1", 4, "login-expired", "azd auth login"),
    "garbage": ("echo LEAKED", 1, "answer-invalid", "azd printed something else"),
    "fails": ("echo LEAKED >&2; exit 1", 1, "tool-failed", "azd auth token"),
}


@pytest.mark.parametrize("name", AZD_FAULTS)
def test_what_azd_does_wrong_is_explained_and_not_repeated(
    tool: Callable[[str, str], dict[str, str]], name: str
) -> None:
    """As with az."""
    script, status, code, words = AZD_FAULTS[name]
    assert words in run_plugin("--login", "azd", env=tool("azd", script)).failed(status, code)


def test_azd_that_is_not_there_is_told() -> None:
    """PATH is named in the hint."""
    assert "azd is not in PATH" in run_plugin("--login", "azd", env={"PATH": "/nonexistent"}).failed(1, "tool-missing")
