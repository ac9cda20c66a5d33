"""Set a vector's stage: hub, proxy, files, environment; then run a command on it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from . import LOOPBACK_ONLY
from .cases import HUB_TOKEN, Case, Json, Maker, exec_info, merged
from .fakes import Authority, ConnectProxy, FaultyServer, Identity, KubeServer
from .fakes.azure import Entra
from .fakes.google import MetadataServer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CAN_UNSHARE = (
    bool(shutil.which("unshare"))
    and not subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "true"], check=False, capture_output=True
    ).returncode
)


class Done(NamedTuple):
    """What a run left: exit status, stdout, stderr, seconds it took."""

    status: int
    stdout: str
    stderr: str
    seconds: float


class Stage:
    """Everything around one run; a context manager."""

    def __init__(self, case: Case, authority: Authority, folder: Path) -> None:
        self.case = case
        self.vector = case.vector
        self.folder = folder
        self.stack = contextlib.ExitStack()
        self.maker = Maker(authority, {"dir": str(folder)})
        self.hub: KubeServer | FaultyServer | None = None
        self.good_hub: KubeServer | None = None  # behind a faulty one, only a redirect leads to it
        self.proxy: ConnectProxy | None = None

    def __enter__(self) -> Self:
        with self.stack:
            self._start_hub()
            self._start_cloud()
            self._start_proxy()
            self._write_files()
            self.variables = self._variables()
            self.arguments: list[str] = self.maker.build(self._arguments())
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    # --- the outside world ---

    def _start_hub(self) -> None:
        wanted = merged(self.case.recipe.get("hub", {}), self.vector.get("hub", {}))
        if not wanted:
            return
        hub = KubeServer(self.maker.authority, wanted.get("host", "127.0.0.1"), wanted.get("hostname", ""))
        for place, secret in wanted.get("secrets", {}).items():
            namespace, _, name = place.partition("/")
            data = {key: self.maker.data(value) for key, value in secret.get("data", {}).items()}
            hub.put_secret(namespace, name, data, secret.get("type", "Opaque"))
        hub.tokens[HUB_TOKEN] = Identity("reader")
        for subject, verb, resource, *rest in wanted.get("grants", [["reader", "get", "secrets"]]):
            hub.allow(subject, verb, resource, *rest)
        self.hub = self.good_hub = self.stack.enter_context(hub)
        if wanted.get("down"):
            hub.__exit__()
        elif "fault" in wanted:
            body = wanted.get("body", next(iter(hub.objects.values()), {}))
            raw = self.maker.content(body)
            elsewhere = hub.url if wanted.get("redirect") else ""
            self.hub = self.stack.enter_context(
                FaultyServer(wanted["fault"], raw, elsewhere, authority=self.maker.authority)
            )
        self.maker.words |= {"hub": self.hub.url, "hub_host": self.hub.host, "hub_port": self.hub.port}

    def _start_cloud(self) -> None:
        wanted = self.case.recipe.get("cloud")
        if wanted:
            server = MetadataServer() if wanted == "a Google metadata server" else Entra(self.maker.authority)
            self.stack.enter_context(server)
            self.maker.words |= {"cloud": server.url, "cloud_host": server.netloc}

    def _start_proxy(self) -> None:
        wanted = self.vector.get("proxy")
        if wanted is not None:
            routes = {self.hub.host: self.hub.port} if self.hub else {}
            self.proxy = self.stack.enter_context(ConnectProxy(routes, **wanted))
            self.maker.words |= {"proxy": self.proxy.url, "proxy_port": self.proxy.port}

    def _write_files(self) -> None:
        for name, content in merged(self.case.recipe.get("files", {}), self.vector.get("files", {})).items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(self.maker.content(content))

    def _arguments(self) -> list[Any]:
        first = self.case.recipe.get("flags", []) if self.vector.get("stand_alone") else []
        return [*self.case.recipe.get("args", []), *first, *self.vector.get("args", [])]

    def _variables(self) -> dict[str, str]:
        made = {
            name: self.maker.build(value)
            for name, value in merged(self.case.recipe.get("env", {}), self.vector.get("env", {})).items()
        }
        info = exec_info(self.case, self.maker)
        if info is not None:
            made["KUBERNETES_EXEC_INFO"] = info
        if "pod" in self.vector and self.hub:
            made |= {"KUBERNETES_SERVICE_HOST": self.hub.host, "KUBERNETES_SERVICE_PORT": str(self.hub.port)}
        return {name: os.fsdecode(value) if isinstance(value, bytes) else value for name, value in made.items()}

    def account(self) -> dict[str, bytes]:
        """Return the files of the service account of the vector's pod."""
        files = {"token": HUB_TOKEN + "\n", "ca.crt": self.maker.authority.pem, "namespace": "fleet"}
        wanted = merged(files, self.vector["pod"]) if "pod" in self.vector else {}
        return {name: self.maker.content(content) for name, content in wanted.items()}

    # --- the run ---

    def execute(self, command: Sequence[str]) -> Done:
        """Run a plugin's command in a bare environment, as a client does."""
        process = self.vector.get("process", {})
        words = [*self._wrapped(process), *command, *self.arguments]
        measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        if process.get("read_only"):
            measured = {}  # it could not write what it measured
        variables = {"PYTHONPATH": LOOPBACK_ONLY, **measured, **self.variables}
        started = time.monotonic()
        child = subprocess.Popen(
            words,
            stdin=subprocess.PIPE if process.get("stdin") == "open" else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=variables,
            cwd=self.folder,
            start_new_session=True,
        )
        with child:
            try:
                stdout, stderr = _collect(child, process.get("reader", "eager"))
            finally:
                child.kill()
        return Done(child.returncode, stdout, stderr, time.monotonic() - started)

    def _wrapped(self, process: Json) -> list[str]:
        """Return the words before the command that change what kind of process it is."""
        script = []
        words: list[str] = []
        if "pod" in self.vector:
            words = ["unshare", "--user", "--map-root-user", "--mount"]
            source = self.folder / "account"
            source.mkdir()
            for name, content in self.account().items():
                (source / name).write_bytes(content)
            script += [f"cp -r {source} {self.folder}/copy", "mount -t tmpfs none /run", f"mkdir -p {ACCOUNT}"]
            script += [f"cp {self.folder}/copy/* {ACCOUNT}/"]
        if process.get("uid"):
            words = ["unshare", "--user", f"--map-user={process['uid']}", f"--map-group={process['uid']}"]
        if process.get("read_only"):
            words = ["unshare", "--user", "--map-root-user", "--mount"]
            # All of it, then /tmp in case it is another file system; and proof of it.
            script += [f"mount --rbind {place} {place}; mount -o remount,bind,ro {place}" for place in ("/", "/tmp")]
            script += [f"if touch {self.folder}/file 2>/dev/null; then exit 77; fi"]
        script += [f"exec {number}>&-" for number in process.get("closed", []) if number]
        script += ["exec 0<&-"] if 0 in process.get("closed", []) else []
        script += ["exec >/dev/full"] if process.get("stdout") == "full" else []
        if process.get("cwd") == "gone":
            script += [f"mkdir {self.folder}/gone", f"cd {self.folder}/gone", f"rmdir {self.folder}/gone"]
        return [*words, "sh", "-c", "; ".join(["set -e", *script, 'exec "$@"']), "sh"] if words or script else []


def _collect(child: subprocess.Popen[bytes], reader: str) -> tuple[str, str]:
    """Read stdout and stderr to their ends: at once, late, or stdout never."""
    found = {1: b"", 2: b""}

    def drain(number: int, stream: Any) -> None:
        found[number] = stream.read()

    late = threading.Thread(target=drain, args=(1, child.stdout))
    error = threading.Thread(target=drain, args=(2, child.stderr))
    error.start()
    if reader == "late":
        time.sleep(1)
    if reader != "never":
        late.start()
        late.join(60)
    child.wait(60)
    error.join(60)
    return found[1].decode(), found[2].decode()


def parse_answer(stdout: str) -> Json:
    """Return the one ExecCredential on stdout."""
    assert stdout.endswith("\n")
    assert stdout.count("\n") == 1
    answer: Json = json.loads(stdout)
    assert set(answer) == {"apiVersion", "kind", "status"}
    assert answer["kind"] == "ExecCredential"
    return answer
