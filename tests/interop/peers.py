"""The tools that the cloud plugins replace, run beside ours in one environment, against one local cloud."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest

from interop.fleet import GO_BIN, bare_environment, executable
from needs import absent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GKE_PEER = "gke-gcloud-auth-plugin"


class Answer(NamedTuple):
    """What a plugin answered: `left` is how many seconds it says that the token lasts."""

    token: str
    left: float


def tool(name: str) -> str:
    """Return the path of a Go tool of `make bench-tools`."""
    path = GO_BIN / name
    if not path.exists():
        absent(f"not built: {name}; run `make bench-tools` (needs Go)")
    return str(path)


def gke_peer() -> str:
    """Return the path of the tool for GKE, which may be missing even under CI."""
    path = shutil.which(GKE_PEER)
    if not path:
        pytest.skip(f"{GKE_PEER} is not in PATH; it is no Go module that could be fetched, but a part of gcloud")
    return path


def environment(home: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with a home of its own, so that no tool finds another one's cache."""
    home.mkdir(exist_ok=True)
    return {**bare_environment(), "HOME": str(home), "EXECCRED_TIMEOUT": "60", **variables}


def ask(command: str, arguments: list[str], home: Path, variables: Mapping[str, str]) -> Answer:
    """Run a tool, ours by its name or a peer by its path; it must answer as kubectl needs it."""
    done = subprocess.run(
        [executable(command), *arguments],
        env=environment(home, variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["kind"], answer["apiVersion"]) == ("ExecCredential", "client.authentication.k8s.io/v1beta1")
    status = answer["status"]
    assert set(status) == {"token", "expirationTimestamp"}
    return Answer(status["token"], datetime.fromisoformat(status["expirationTimestamp"]).timestamp() - time.time())


def verified(token: str, region: str, port: int, ca: str) -> str:
    """Return what the verifier of EKS clusters, with STS at a local port, makes of a token; fails if it refuses."""
    command = [tool("eks-verify"), "-cluster", "demo", "-region", region, "-sts", f"127.0.0.1:{port}", "-ca", ca]
    return subprocess.run(command, input=token, stdout=subprocess.PIPE, text=True, check=True, env=os.environ).stdout
