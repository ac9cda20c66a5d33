"""A hub and a spoke for the tool's tests: API servers on loopback, profiles, a provider file, kubeconfigs."""

from __future__ import annotations

import json
import sys
import time
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from execcred.conformance.fakes import Asked, Authority, FaultyServer, Identity, KubeServer
from execcred.conformance.fakes.kube_server import http_answer, kubeconfig
from execcred.conformance.fakes.listener import read_body, read_head

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

Json = dict[str, Any]
EXEC = "client.authentication.k8s.io/exec"
PLUGIN = str(Path(sys.executable).with_name("secretreader-plugin"))


class Fleet:
    """What lies in a folder: `hub.kubeconfig`, `providers.json`; the hub's user `me` may read all profiles."""

    def __init__(self, hub: KubeServer, spoke: Spoke, folder: Path) -> None:
        self.hub, self.spoke, self.folder = hub, spoke, folder
        hub.tokens["hub-token"] = Identity("me")
        spoke.tokens["spoke-token"] = Identity("fleet", ("readers",))
        for verb in ("get", "list"):
            hub.allow("me", verb, "clusterprofiles")
        self.kubeconfig = self.write("hub.kubeconfig", hub.kubeconfig({"token": "hub-token"}, "fleet"))
        self.providers = self.provider_file(PLUGIN)

    def write(self, name: str, content: object) -> str:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def provider_file(self, command: str, *args: str, name: str = "secretreader", **fields: object) -> str:
        config = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": command,
            "args": list(args),
            "installHint": "install it from the suite",
            "provideClusterInfo": True,
            "interactiveMode": "Never",
            **fields,
        }
        return self.write("providers.json", {"providers": [{"name": name, "execConfig": config}]})

    def profile(
        self, name: str, config: object = None, namespace: str = "fleet", provider: str = "secretreader", **fields: Any
    ) -> Json:
        """Store a ClusterProfile whose access leads to the spoke."""
        cluster = self.spoke.kubeconfig({})["clusters"][0]["cluster"]
        if config is not None:
            cluster["extensions"] = [{"name": EXEC, "extension": config}]
        body = {
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ClusterProfile",
            "metadata": {"name": name, "namespace": namespace},
            "status": {"accessProviders": [{"name": provider, "cluster": {**cluster, **fields}}]},
        }
        self.hub.put(body)
        return body

    def forget(self, name: str, namespace: str = "fleet") -> None:
        del self.hub.objects["clusterprofiles", namespace, name]

    def elsewhere(self, server: FaultyServer) -> str:
        """Write a hub's kubeconfig for another server; return its path."""
        return self.write("elsewhere.kubeconfig", kubeconfig(server.url, self.hub.ca_pem, {"token": "x"}, "fleet"))

    def variables(self, **more: str) -> Mapping[str, str]:
        return {"KUBECONFIG": self.kubeconfig, "HOME": str(self.folder), **more}


class Spoke(KubeServer):
    """A cluster whose clock may be wrong, and that can be told what it answers to a path."""

    def __init__(self, authority: Authority | None = None) -> None:
        super().__init__(authority)
        self.ahead: float | None = None  # seconds; without it there is no Date
        self.date = ""  # instead
        self.answers: dict[str, tuple[int, object]] = {}  # by the last part of the path

    def handle(self, connection: socket.socket, number: int) -> None:
        while head := read_head(connection):
            read_body(connection, head)
            who = self._identity(connection, head)
            status, answer = self.answers.get(head.target.rpartition("/")[2]) or self._answer(who, head)
            self.requests.append(Asked(head.method, head.target, who.user if who else "", status, number, head.headers))
            told = self.date if self.ahead is None else formatdate(time.time() + self.ahead, usegmt=True)
            date = f"Date: {told}\r\n" if told else ""
            body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            connection.sendall(http_answer(status, body, extra=date))
            if head.headers.get("connection", "").lower() == "close":
                return


class Vanishing(KubeServer):
    """A hub that answers its first requests and then no more."""

    left = 1

    def handle(self, connection: socket.socket, number: int) -> None:
        self.left -= 1
        if self.left >= 0:
            super().handle(connection, number)
