"""A controller's identity on the hub, the plugins that run with it, and the consumer program as the controller."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from execcred.conformance import LOOPBACK_ONLY
from interop.cluster import ApiServer, Json, b64, kubeconfig, until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
GO_BIN = ROOT / ".cache" / "go-bin"
INVENTORY = "apis/multicluster.x-k8s.io/v1alpha1"
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
numbers = count(1)


def bare_environment() -> dict[str, str]:
    """Return what every child needs: no proxies and hubs of ours, loopback only, coverage if it runs."""
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": LOOPBACK_ONLY, **measured}


class Reader:
    """A controller's identity on the hub, in a namespace of its own, and what runs with it."""

    def __init__(self, hub: ApiServer, spoke: ApiServer, folder: Path) -> None:
        self.hub, self.spoke, self.folder = hub, spoke, folder
        self.namespace = f"fleet-{next(numbers)}"
        self.user = f"system:serviceaccount:{self.namespace}:reader"
        for server in (hub, spoke):
            server.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        hub.account(self.namespace, "reader")
        self.token, _ = hub.account_token(self.namespace, "reader")
        self.kubeconfig = self.write(
            "hub.kubeconfig", kubeconfig(hub.url, hub.ca, {"token": self.token}, self.namespace)
        )
        self.environment = {**bare_environment(), "HOME": str(folder), "KUBECONFIG": self.kubeconfig}

    def write(self, name: str, content: object) -> str:
        """Write a file of JSON; return its path."""
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)

    def allow(self, *names: str) -> None:
        """Let the reader get these Secrets."""
        self.hub.allow_get(self.namespace, "reader", names)

    def secret(self, name: str, **data: str) -> None:
        self.hub.put_secret(self.namespace, name, data)

    def audited(self, requests: int) -> list[str]:
        """Return what the reader asked the hub, once there are `requests` answers in the log."""

        def answered() -> bool:
            found = self.hub.audited(self.user)
            return len(found) >= requests and all(len(line.split()) == 3 for line in found)

        until(f"{requests} requests of {self.user} are in the audit log", answered)
        return self.hub.audited(self.user)

    def one_get(self, name: str) -> str:
        """Return how the audit log writes a successful read of a Secret."""
        return f"get /api/v1/namespaces/{self.namespace}/secrets/{name} 200"

    # --- plugins by hand ---

    def run(
        self, plugin: str, config: object = None, *args: str, version: str = "v1", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a plugin, ours by its name or another by its path, with exec info as client-go writes it."""
        cluster = {"server": self.spoke.url, "config": config}
        info = {
            "kind": "ExecCredential",
            "apiVersion": f"client.authentication.k8s.io/{version}",
            "spec": {"cluster": cluster, "interactive": False},
        }
        return subprocess.run(
            [executable(plugin), *args],
            env=self.environment | {"KUBERNETES_EXEC_INFO": json.dumps(info)} | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def status(self, plugin: str, config: object = None, *args: str, **environment: str) -> Json:
        """Return the status that a plugin answers; anything but a clean success fails the test."""
        done = self.run(plugin, config, *args, **environment)
        assert (done.returncode, done.stderr) == (0, "")
        status: Json = json.loads(done.stdout)["status"]
        return status

    # --- a controller ---

    def profile(self, name: str, provider: str, config: object, **extensions: object) -> None:
        """Create a ClusterProfile on the hub whose access provider leads to the spoke."""
        path = f"/{INVENTORY}/namespaces/{self.namespace}/clusterprofiles"
        profile = self.profile_object(name, provider, config, extensions)
        self.hub.post(path, {key: profile[key] for key in ("apiVersion", "kind", "metadata", "spec")})
        self.hub.patch(f"{path}/{name}/status", {"status": profile["status"]})

    def profile_object(self, name: str, provider: str, config: object, extensions: dict[str, object]) -> Json:
        """Return a ClusterProfile; `extensions` are further ones of its access provider."""
        named = {EXEC_EXTENSION: config, **extensions}
        cluster = {
            "server": self.spoke.url,
            "certificate-authority-data": b64(self.spoke.ca),
            "extensions": [{"name": key, "extension": value} for key, value in named.items() if value is not None],
        }
        return {
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ClusterProfile",
            "metadata": {"name": name},
            "spec": {"displayName": name, "clusterManager": {"name": "tests"}},
            "status": {"accessProviders": [{"name": provider, "cluster": cluster}]},
        }

    def providers(self, name: str, version: str = "v1", *args: str, **fields: Any) -> str:
        """Write a provider file with one entry; return its path."""
        entry = {
            "name": name,
            "execConfig": {
                "apiVersion": f"client.authentication.k8s.io/{version}",
                "command": executable(name),
                "args": list(args),
                "provideClusterInfo": True,
                "interactiveMode": "Never",
            },
            **fields,
        }
        return self.write("providers.json", {"providers": [entry]})

    @contextlib.contextmanager
    def controller(self, provider_file: str, *args: str, rounds: int) -> Iterator[Rounds]:
        """Run the consumer; `args` are its flags and the profiles' names, `rounds` the JSON lines of a round."""
        administrator = kubeconfig(self.hub.url, self.hub.ca, {"token": self.hub.admin})
        command = [executable(str(GO_BIN / "consumer")), "-hub", self.write("admin.kubeconfig", administrator)]
        command += ["-namespace", self.namespace, "-clusterprofile-provider-file", provider_file, *args]
        errors = self.folder / "consumer.stderr"
        with (
            errors.open("wb") as stderr,
            subprocess.Popen(
                command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
            ) as child,
        ):
            yield Rounds(child, rounds, errors)
            assert child.stdin
            child.stdin.close()
            assert child.wait(60) == 0, errors.read_text()

    def reach(self, provider_file: str, *args: str, lines: int = 1) -> list[Json]:
        """Run the consumer for one round; return its `lines` facts."""
        with self.controller(provider_file, *args, rounds=lines) as rounds:
            return rounds.first()


class Rounds:
    """The rounds of a running consumer."""

    def __init__(self, child: subprocess.Popen[str], lines: int, errors: Path) -> None:
        self.child, self.lines, self.errors = child, lines, errors

    def first(self) -> list[Json]:
        """Return the facts of the round that the consumer does by itself."""
        assert self.child.stdout
        lines = [self.child.stdout.readline() for _ in range(self.lines)]
        assert all(lines), self.errors.read_text()
        return [json.loads(line) for line in lines]

    def again(self) -> list[Json]:
        """Let the consumer ask once more, with the clients that it has."""
        assert self.child.stdin
        self.child.stdin.write("again\n")
        self.child.stdin.flush()
        return self.first()


def executable(name: str) -> str:
    """Return the path of our installed plugin, or `name` if it is a path."""
    return name if "/" in name else str(Path(sys.executable).with_name(f"{name}-plugin"))
