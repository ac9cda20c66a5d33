"""A run of the plugin for GKE, beside a local Google."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from execcred.conformance.fakes.google import SECRETS
from unit.support import execute, status

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from pathlib import Path

    from execcred.conformance.fakes import ConnectProxy
    from execcred.conformance.fakes.google import Google, Json


class Cloud:
    """Everything that a run of the plugin may talk to, and the run itself."""

    def __init__(self, google: Google, proxy: ConnectProxy, ca: Path, folder: Path) -> None:
        self.google, self.proxy, self.ca, self.folder = google, proxy, ca, folder

    def network(self) -> dict[str, str]:
        """Variables that lead Google's hosts here, and nothing else anywhere; with time for busy machines."""
        return {"HTTPS_PROXY": self.proxy.url, "REQUESTS_CA_BUNDLE": str(self.ca), "EXECCRED_TIMEOUT": "60"}

    def write(self, content: Json | str, name: str = "credentials.json") -> dict[str, str]:
        """Write a credential file; return the variable that names it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return {"GOOGLE_APPLICATION_CREDENTIALS": str(path)}

    def run(
        self, *arguments: str, variables: Mapping[str, str] | None = None, **kwargs: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run the installed executable; NO_GCE_CHECK keeps a forgotten source from asking a real metadata server."""
        given = {"NO_GCE_CHECK": "true", **self.network(), **(variables or {})}
        return execute("gke", arguments, given, **kwargs)

    def token(self, *arguments: str, variables: Mapping[str, str] | None = None, **kwargs: Any) -> str:
        """Run it; return the token of its answer."""
        return answered(self.run(*arguments, variables=variables, **kwargs))["token"]


def answered(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the status of a run that must have succeeded, saying nothing on stderr."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return status(done.stdout)


def failed(done: subprocess.CompletedProcess[str], code: str, exit_status: int) -> str:
    """Return the stderr of a run that must have failed as a plugin does: clear, with nothing on stdout, no secret."""
    assert done.stdout == ""
    assert done.stderr.partition("\n")[0].endswith(f"[{code}]"), done.stderr
    assert done.returncode == exit_status, done.stderr
    assert done.stderr.count("\n") == 2, done.stderr
    assert done.stderr.splitlines()[1].startswith("hint: ")
    assert not [secret for secret in SECRETS if secret in done.stderr]
    return done.stderr
