"""What the unit and property tests share: a world in memory, and the installed executables in a bare environment."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import execcred_kubeconfig_secretreader
import execcred_secretreader
from execcred import Env
from execcred._run import respond
from execcred.conformance import LOOPBACK_ONLY
from execcred.conformance.fakes.pki import Authority
from execcred.http import Response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from execcred.http import Server

READER = execcred_secretreader.PLUGIN
KUBECONFIG_READER = execcred_kubeconfig_secretreader.PLUGIN
V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
CA = Authority().pem.encode()
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class World(Env):
    """Files, clock and a hub in memory; `asked` holds each path that the hub was asked for."""

    def __init__(
        self,
        variables: Mapping[str, str] | None = None,
        *,
        files: Mapping[str, bytes] | None = None,
        secrets: Mapping[str, Mapping[str, bytes]] | None = None,
        type: str = "Opaque",  # noqa: A002  # the API's word
        now: float = NOW,
    ) -> None:
        super().__init__(variables or {})
        self.files = dict(files or {})
        self.secrets = dict(secrets or {})
        self.type = type
        self.clock = now
        self.asked: list[str] = []
        self.debugged: list[str] = []
        self.warned: list[str] = []

    def now(self) -> float:
        return self.clock

    def read_file(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.files[path]

    def get(self, server: Server, path: str, headers: Mapping[str, str], limit: int) -> Response:
        self.asked.append(path)
        self.sent = dict(headers)
        self.server = server
        place = path.removeprefix("/api/v1/namespaces/").replace("/secrets/", "/")
        if place not in self.secrets:
            return Response(404, b"{}", {})
        data = {key: base64.b64encode(value).decode() for key, value in self.secrets[place].items()}
        body = json.dumps({"kind": "Secret", "type": self.type, "data": data}).encode()
        assert len(body) <= limit
        return Response(200, body, {})

    def debug(self, text: str) -> None:
        self.debugged.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)


def in_pod(world: World, namespace: str = "kueue") -> World:
    """Give `world` the variables and files of a pod."""
    world.variables = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", **world.variables}
    world.files |= {
        f"{ACCOUNT}/token": b"pod-token\n",
        f"{ACCOUNT}/namespace": namespace.encode(),
        f"{ACCOUNT}/ca.crt": CA,
        **world.files,
    }
    return world


def exec_info(config: object = None, server: str = "https://spoke.example:6443", version: str = V1, **spec: Any) -> str:
    """Return the KUBERNETES_EXEC_INFO of a client that passes cluster info."""
    cluster = {"server": server, "config": config}
    body = {"interactive": False, "cluster": cluster, **spec}
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": body})


def status(answer: str) -> dict[str, str]:
    """Return the status of an answer."""
    found: dict[str, str] = json.loads(answer)["status"]
    return found


def read(world: World, *arguments: str, plugin: Any = READER) -> dict[str, str]:
    """Run a plugin as a function and return the status of its answer."""
    return status(respond(plugin, arguments, world))


def executable(name: str) -> str:
    """Return the path of an installed plugin."""
    return str(Path(sys.executable).parent / f"{name}-plugin")


def variables_for(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a bare environment: loopback only, coverage if it runs, and what is given."""
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    return {"PYTHONPATH": LOOPBACK_ONLY, **measured, **(given or {})}


def execute(
    name: str, arguments: Sequence[str] = (), variables: Mapping[str, str] | None = None, **kwargs: Any
) -> subprocess.CompletedProcess[str]:
    """Run an installed plugin as a client does, stdin closed off, and return what it did."""
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 60, **kwargs}
    command = [executable(name), *arguments]
    return subprocess.run(command, env=variables_for(variables), check=False, **options)
