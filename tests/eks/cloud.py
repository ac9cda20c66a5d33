"""A run of the plugin for EKS, beside a local AWS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from execcred.conformance.fakes.aws import SECRET_TEXT, Token

PLUGIN = Path(sys.executable).with_name("eks-plugin")
PATIENT = {"EXECCRED_TIMEOUT": "60"}  # test machines may be busy


class Result:
    """What a run of the plugin left: exit status, stdout, stderr, seconds."""

    def __init__(self, status: int, out: str, err: str, seconds: float) -> None:
        self.status = status
        self.out = out
        self.err = err
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"Result({self.status}, {len(self.out)} bytes, {self.err!r})"

    @property
    def answer(self) -> dict[str, Any]:
        assert (self.status, self.err) == (0, ""), self
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def token(self) -> Token:
        return Token(self.answer["status"]["token"])

    @property
    def seconds_left(self) -> float:
        return datetime.fromisoformat(self.answer["status"]["expirationTimestamp"]).timestamp() - time.time()

    @property
    def code(self) -> str:
        """The stable code of a failure, whose form is checked."""
        assert self.out == "", self
        first, _, second = self.err.partition("\n")
        assert first.startswith("eks-plugin: error: "), self
        assert second.startswith("hint: "), self
        assert second.count("\n") == 1, self
        assert SECRET_TEXT not in self.err
        return first.rpartition("[")[2].removesuffix("]")


def environment(home: Path, **variables: str) -> dict[str, str]:
    """A bare environment without AWS, off any metadata server."""
    kept = {name: text for name, text in os.environ.items() if name.startswith("COVERAGE_")}
    return {
        **kept,
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "AWS_EC2_METADATA_DISABLED": "true",
        **PATIENT,
        **variables,
    }


def exec_info(server: str = "", config: dict[str, Any] | None = None, interactive: bool = False) -> str:
    """The text of KUBERNETES_EXEC_INFO, as client-go writes it."""
    cluster = {"server": server, "config": config} if server or config else None
    spec = {"interactive": interactive} | ({"cluster": cluster} if cluster else {})
    return json.dumps({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "spec": spec}) + "\n"


def run(variables: dict[str, str], *arguments: str) -> Result:
    """Run the installed plugin as a client does."""
    start = time.monotonic()
    done = subprocess.run(
        [PLUGIN, *arguments], env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr, time.monotonic() - start)
