"""What the tests of the access library share: provider files, ClusterProfiles, and plugins of a few lines of shell."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from execcred import ExecCredError
from execcred.access import Cluster, ExecSpec, ProviderFile
from execcred.conformance.fakes.pki import Authority
from interop.cluster import b64

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Json = dict[str, Any]
V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
EXEC = "client.authentication.k8s.io/exec"
ARGS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
ENVS = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
SERVER = "https://spoke-1.example:6443"
CA = b64(Authority().pem)


def provider(name: str = "reader", **fields: Any) -> Json:
    """Return an entry of a provider file; `fields` are of its execConfig, or policies."""
    policies = {key: fields.pop(key) for key in list(fields) if key.startswith("profileSourced")}
    config = {"apiVersion": V1, "command": "/plugins/bin/reader", "interactiveMode": "Never"}
    return {"name": name, "execConfig": {**config, **fields}, **policies}


def load(tmp_path: Path, *entries: Json) -> ProviderFile:
    """Write a provider file and load it."""
    path = tmp_path / "providers.json"
    path.write_text(json.dumps({"providers": list(entries)}))
    return ProviderFile.load(path)


def access(name: str = "reader", extensions: Json | None = None, **cluster: Any) -> Json:
    """Return an access provider of a ClusterProfile; `cluster` are fields of that name, with hyphens."""
    rows = [{"name": key, "extension": value} for key, value in (extensions or {}).items()]
    fields = {key.replace("_", "-"): value for key, value in cluster.items()}
    return {"name": name, "cluster": {"server": SERVER, "extensions": rows, **fields}}


def profile(*accesses: Json, name: str = "spoke-1", version: str = "v1alpha1", **status: Any) -> Json:
    """Return a ClusterProfile."""
    return {
        "apiVersion": f"multicluster.x-k8s.io/{version}",
        "kind": "ClusterProfile",
        "metadata": {"namespace": "fleet", "name": name},
        "status": {"accessProviders": list(accesses), **status},
    }


def refused(function: Callable[[], object]) -> ExecCredError:
    """Return the error of a call that must fail."""
    with pytest.raises(ExecCredError) as caught:
        function()
    assert caught.value.hint
    return caught.value


def answer(version: str = V1, **status: Any) -> str:
    """Return what a plugin prints."""
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def plugin(folder: Path, *lines: str, name: str = "plugin") -> str:
    """Write an executable shell script; return its path."""
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def spec(command: str, **fields: Any) -> ExecSpec:
    """Return what runs a command."""
    return ExecSpec(
        **{"provider": "reader", "api_version": V1, "cluster": Cluster(SERVER), "command": command, **fields}
    )


class Counted:
    """A plugin that notes each run and answers what `says` was told last, after `before` lines of shell."""

    def __init__(self, folder: Path, *before: str) -> None:
        folder.mkdir(exist_ok=True)
        self._answer, self._runs = folder / "answer", folder / "runs"
        self.command = plugin(folder, f"echo run >>{self._runs}", *before, f"cat {self._answer}")

    def says(self, version: str = V1, **status: Any) -> None:
        # Replaced at once, as a run may be reading it.
        new = self._answer.with_suffix(".new")
        new.write_text(answer(version, **status))
        new.replace(self._answer)

    @property
    def runs(self) -> int:
        return self._runs.read_text().count("run") if self._runs.exists() else 0


def stamp(**left: float) -> str:
    """Return a time from now, as plugins announce the end of a credential."""
    return (datetime.now(UTC) + timedelta(**left)).strftime("%Y-%m-%dT%H:%M:%SZ")
