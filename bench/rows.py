"""The rows of the benchmark: which command of ours, which of the peer's, in which world, with which bars."""

from __future__ import annotations

import base64
import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from standins import StandIn, answer_json, authority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJiZW5jaCJ9.c2ln"
ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
# Secret reader: what a ClusterProfile tells it.
READERS = {"secretreader": {"clusterName": "spoke-1"}, "kubeconfig-secretreader": {"name": "spoke-1", "key": "value"}}


class Command(NamedTuple):
    """A command line with its whole environment and the exit status it must have."""

    argv: list[str]
    env: dict[str, str]
    status: int = 0


class Row(NamedTuple):
    """One comparison."""

    what: str
    ours: Command
    peer_name: str
    peer: Command | None
    wall_bar: float | None
    memory_bar: float | None = None
    other: Callable[[], tuple[str, bool]] | None = None
    within: list[str] = []  # noqa: RUF012  # never changed
    runs: int = 0  # of this row, if not as many as of all


def b64(text: str) -> str:
    """Return text as Secrets and kubeconfigs hold it."""
    return base64.b64encode(text.encode()).decode()


def zipapp_command(python: str, path: Path) -> list[str]:
    """Return how a zipapp starts: what its first line says, with the Python to measure."""
    with path.open("rb") as archive:
        words = shlex.split(archive.readline().decode())  # #!/usr/bin/env -S python3 …
    return [python, *words[3:], str(path)]


class World:
    """Stand-in servers and files that both sides of a row use."""

    def __init__(self, folder: Path, root: Path, python: str, runs: int) -> None:
        self.folder = folder
        self.runs = runs
        self.root = root
        self.python = python
        self.ca, context = authority()
        (folder / "ca.pem").write_text(self.ca)
        data = {"token": b64(TOKEN), "value": b64(self.kubeconfig("https://spoke.test:6443", TOKEN))}
        metadata = {"name": "spoke-1", "namespace": "fleet"}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
        self.hub = StandIn(answer_json(secret), context)
        (folder / "kubeconfig").write_text(self.kubeconfig(f"https://127.0.0.1:{self.hub.port}", "bench"))
        (folder / "account").mkdir()
        for name, text in (("token", "bench"), ("ca.crt", self.ca), ("namespace", "fleet")):
            (folder / "account" / name).write_text(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hub.close()

    def plugin(self, name: str) -> list[str]:
        """Return the command of a zipapp."""
        found = sorted((self.root / "dist").glob(f"{name}-plugin*.pyz"))
        if not found:
            raise SystemExit(f"dist/{name}-plugin*.pyz is missing: make zipapps")
        return zipapp_command(self.python, found[0])

    def go(self, name: str) -> str | None:
        """Return the path of a peer, None when it could not be built."""
        path = self.root / ".cache" / "go-bin" / name
        return str(path) if path.exists() else None

    def kubeconfig(self, server: str, token: str) -> str:
        """Return a kubeconfig as people write them."""
        return (
            "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
            f"clusters:\n- name: here\n  cluster:\n    server: {server}\n"
            f"    certificate-authority-data: {b64(self.ca)}\n"
            "contexts:\n- name: here\n  context: {cluster: here, user: me, namespace: fleet}\n"
            f"users:\n- name: me\n  user:\n    token: {token}\n"
        )

    def exec_info(self, config: dict[str, str] | None, server: str = "https://spoke.test") -> str:
        """Return what client-go would send."""
        cluster = {"server": server, "certificate-authority-data": b64(self.ca)}
        spec = {"cluster": {**cluster, "config": config}, "interactive": False}
        return json.dumps({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "spec": spec})

    def rows(self) -> Iterator[Row]:
        """Give every row."""
        yield from self.starts(self.plugin("secretreader"))
        for name in READERS:
            yield from self.reader(name, self.plugin(name))

    def starts(self, ours: list[str], form: str = "") -> Iterator[Row]:
        """Answers that need no plugin work."""
        for what, arguments, status in (
            ("--help", ["--help"], 0),
            ("--version", ["--version"], 0),
            ("usage error", ["--x"], 2),
        ):
            yield Row(form + what, Command([*ours, *arguments], {}, status), "bare", None, 2.6)

    def reader(self, name: str, ours: list[str], form: str = "") -> Iterator[Row]:
        """A Secret reader, cold, one GET over TLS; in-cluster in a mount namespace of its own, as root only."""
        peer, peer_name, env = self.go(f"upstream-{name}"), "upstream Go plugin", self.reader_env(name)
        theirs = Command([peer], env) if peer else None
        yield Row(f"{form}{name}, kubeconfig", Command(ours, env), peer_name, theirs, 3.0, 0.7)
        if os.geteuid() != 0:
            return
        files = self.folder / "account"
        script = f'mount -t tmpfs tmpfs /run && mkdir -p {ACCOUNT} && cp {files}/* {ACCOUNT} && exec "$@"'
        within = ["unshare", "-m", "sh", "-c", script, "sh"]
        env = {**env, "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.hub.port)}
        del env["KUBECONFIG"]
        theirs = Command([peer], env) if peer else None
        yield Row(f"{form}{name}, in-cluster", Command(ours, env), peer_name, theirs, 2.5, 0.7, within=within)

    def reader_env(self, name: str) -> dict[str, str]:
        """Return the environment of a reader whose hub a kubeconfig names."""
        return {"KUBERNETES_EXEC_INFO": self.exec_info(READERS[name]), "KUBECONFIG": f"{self.folder}/kubeconfig"}
