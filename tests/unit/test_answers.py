"""An SDK's server may answer for ever, or with little that unpacks to much: the plugin's memory stays small."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from execcred._answers import LIMIT
from execcred.conformance import LOOPBACK_ONLY
from execcred.conformance.fakes.listener import Listener, read_head

if TYPE_CHECKING:
    import socket

MIB = 1 << 20
HEADS = {
    "endless": b"",
    "chunked": b"Transfer-Encoding: chunked\r\n",
    "packed": b"Content-Encoding: gzip\r\n",
}
# Each piece is written again and again.
PIECES = {"endless": b" " * MIB, "chunked": b"100000\r\n" + b" " * MIB + b"\r\n", "packed": gzip.compress(bytes(MIB))}
# A process of its own, as the peak counts for all of a process's children.
PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


class Endless(Listener):
    """A metadata server that does not stop answering."""

    scheme = "http"

    def __init__(self, kind: str) -> None:
        super().__init__(None)
        self.kind = kind

    def handle(self, connection: socket.socket, number: int) -> None:  # noqa: ARG002
        if read_head(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + HEADS[self.kind] + b"\r\n")
            while not self.closing.is_set():
                connection.sendall(PIECES[self.kind])


def external_account(folder: Path, url: str) -> str:
    path = folder / "account.json"
    fields = {"audience": "//iam.test/x", "subject_token_type": "urn:x", "token_url": "https://sts.test/v1/token"}
    path.write_text(json.dumps({"type": "external_account", "credential_source": {"url": url}, **fields}))
    return str(path)


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("plugin", ["aks", "eks", "gke"])
def test_an_answer_without_end_is_given_up_before_it_fills_the_memory(plugin: str, kind: str, tmp_path: Path) -> None:
    with Endless(kind) as server:
        arguments, variables = {
            "aks": (["--login=msi"], {"IDENTITY_ENDPOINT": server.url, "IDENTITY_HEADER": "x"}),
            "eks": (
                ["--cluster-name=c1", "--region=eu-west-1"],
                {"AWS_CONTAINER_CREDENTIALS_FULL_URI": server.url, "AWS_EC2_METADATA_DISABLED": "true"},
            ),
            "gke": ([f"--credential-file={external_account(tmp_path, server.url)}"], {}),
        }[plugin]
        executable = Path(sys.executable).with_name(f"{plugin}-plugin")
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(executable), "--timeout=60", *arguments],
            env={"PYTHONPATH": LOOPBACK_ONLY, "HOME": str(tmp_path), **variables},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    status, peak = map(int, done.stdout.split())
    assert status in (1, 3), done.stderr
    assert "[deadline]" not in done.stderr
    assert peak < 40 + 20 * LIMIT // MIB, done.stderr  # beside the SDK itself
