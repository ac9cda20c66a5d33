"""The installed executable in a clean environment, and the plugin as a function."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from execcred.conformance import LOOPBACK_ONLY

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENT = {"EXECCRED_TIMEOUT": "60"}  # test machines may be busy; "" brings the default back
EXECUTABLE = str(Path(sys.executable).parent / "aks-plugin")


class Result(NamedTuple):
    """What a run left behind."""

    status: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def credential(self) -> dict[str, Any]:
        """The status of the answer, which must be there."""
        assert (self.status, self.stderr) == (0, ""), self.stderr
        answer: dict[str, Any] = json.loads(self.stdout)["status"]
        return answer

    def failed(self, status: int, code: str) -> str:
        """Check exit status, code and silence of stdout; return stderr."""
        assert (self.status, self.stdout) == (status, ""), self.stderr
        assert f"[{code}]" in self.stderr, self.stderr
        assert "LEAKED" not in self.stderr
        assert "Traceback" not in self.stderr
        return self.stderr


def exec_info(interactive: bool = False, **cluster: object) -> str:
    """Return the text of KUBERNETES_EXEC_INFO."""
    spec: dict[str, object] = {"interactive": interactive}
    if cluster:
        spec["cluster"] = cluster
    return json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "spec": spec})


def run_plugin(
    *arguments: str, env: Mapping[str, str] | None = None, info: str | None = None, person: bool = False
) -> Result:
    """Run the installed executable with nothing but `env`; with `person`, stdin is a terminal."""
    kept = {name: text for name, text in os.environ.items() if name.startswith("COVERAGE")}
    variables = {"PATH": "/usr/bin:/bin", "PYTHONPATH": LOOPBACK_ONLY, **PATIENT, **kept, **(env or {})}
    if info is not None:
        variables["KUBERNETES_EXEC_INFO"] = info
    ours, theirs = pty.openpty()
    start = time.monotonic()
    try:
        done = subprocess.run(
            [EXECUTABLE, *arguments],
            env=variables,
            stdin=theirs if person else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return Result(done.returncode, done.stdout, done.stderr, time.monotonic() - start)


def status_of(answer: str) -> dict[str, str]:
    """Return the status of an answer."""
    found: dict[str, str] = json.loads(answer)["status"]
    return found
