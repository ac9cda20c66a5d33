"""Set a vector's stage: hub, proxy, files, environment; then run a command on it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING, Any, Self

from . import LOOPBACK_ONLY
from .cases import SERVER, Case, Json, exec_info, merged
from .fakes import Authority, ConnectProxy, FaultyServer, Identity, KubeServer
from .fakes.aws import presigned_problem
from .fakes.azure import Entra
from .fakes.google import MetadataServer
from .maker import HUB_TOKEN, Maker
from .process import LIMIT, Done, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CAN_UNSHARE = (
    bool(shutil.which("unshare"))
    and not subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "true"], check=False, capture_output=True
    ).returncode
)


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
        self.cloud: MetadataServer | Entra | None = None
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
            google = wanted == "a Google metadata server"
            self.cloud = MetadataServer() if google else Entra(self.maker.authority)
            self.stack.enter_context(self.cloud)
            self.maker.words |= {"cloud": self.cloud.url, "cloud_host": self.cloud.netloc}

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

    def refusal(self, token: str) -> str:
        """Return why the stand-in cloud would not take a token for its own, "" if it would."""
        if self.case.plugin == "eks":
            return presigned_problem(token, self.case.recipe.get("words", {}).get("clusterName", ""))
        known = self.cloud is None or token in self.cloud.issued
        return "" if known else "the cloud did not issue the token"

    # --- the run ---

    def fill(self, command: Sequence[str]) -> list[str]:
        """Return a command with the recipe's words, like {clusterName}, and {server} and {dir} filled in."""
        words = {
            **self.maker.words,
            "server": self.case.recipe.get("server", SERVER),
            **self.case.recipe.get("words", {}),
        }
        return [_filled(word, words) for word in command]

    def execute(self, command: Sequence[str], limit: float = LIMIT) -> Done:
        """Run a plugin's command in a bare environment, as a client does, for at most `limit` seconds."""
        process = self.vector.get("process", {})
        measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        if process.get("read_only"):
            measured = {}  # it could not write what it measured
        return run(
            [*self._wrapped(process), *self.fill(command), *self.arguments],
            {"PYTHONPATH": LOOPBACK_ONLY, **measured, **self.variables},
            self.folder,
            open_stdin=process.get("stdin") == "open",
            reader=process.get("reader", "eager"),
            limit=limit,
        )

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


def has_ipv6() -> bool:
    """Tell whether a server can listen on ::1 here."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def lacks_ipv6(case: Case) -> bool:
    """Tell whether a vector's hub has an address that this machine has not."""
    return case.vector.get("hub", {}).get("host") == "::1" and not has_ipv6()


def cannot_be_staged(case: Case) -> str:
    """Return what this machine, or the plugin's recipe, lacks for a vector; "" when nothing is missing."""
    if lacks_ipv6(case):
        return "this machine has no IPv6"
    if ("pod" in case.vector or {"uid", "read_only"} & case.vector.get("process", {}).keys()) and not CAN_UNSHARE:
        return "user namespaces are not allowed here"
    if case.vector.get("stand_alone") and "flags" not in case.recipe:
        return "the recipe tells no flags for use without exec info"
    return ""


def _filled(text: str, words: Mapping[str, object]) -> str:
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", str(value))
    return text
