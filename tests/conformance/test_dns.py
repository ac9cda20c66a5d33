"""A name server that answers nothing: the resolver of the C library is stuck, the plugin is not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from execcred.conformance.cases import PLUGINS
from execcred.conformance.fakes.kube_server import kubeconfig
from execcred.conformance.stage import CAN_UNSHARE

from .commands import COMMAND

if TYPE_CHECKING:
    from pathlib import Path

# In a network of its own: loopback up, a socket on the port of name servers, then the plugin.
INSIDE = """
import fcntl, os, socket, struct, subprocess, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    fcntl.ioctl(probe, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: up, running
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
    mute.bind(("127.0.0.1", 53))
    done = subprocess.run(sys.argv[1:], env={}, stdin=subprocess.DEVNULL, timeout=60)
    mute.setblocking(False)
    print("asked" if mute.recv(512) else "", file=sys.stderr)
os._exit(done.returncode)
"""


@pytest.mark.skipif(not CAN_UNSHARE, reason="user namespaces are not allowed here")
@pytest.mark.skipif(bool(COMMAND), reason="another command is tested")
@pytest.mark.parametrize("plugin", PLUGINS[:2])
def test_a_resolver_that_is_stuck_does_not_hold_the_plugin_beyond_its_deadline(plugin: str, tmp_path: Path) -> None:
    hub = kubeconfig("https://hub.test:6443", "", {"token": "hidden-token"}, "fleet")
    (tmp_path / "hub.json").write_text(json.dumps(hub))
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    executable = sys.executable.removesuffix("python") + f"{plugin}-plugin"
    arguments = ["--kubeconfig", str(tmp_path / "hub.json"), "--secret-name=c1", "--timeout=2"]
    script = f'mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && exec "$@"'
    isolated = ["unshare", "--user", "--map-root-user", "--mount", "--net", "sh", "-c", script, "sh"]
    command = [*isolated, sys.executable, "-c", INSIDE, executable, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    first, _, last = done.stderr.strip().split("\n")
    assert first.startswith(f"{plugin}-plugin: error: gave up after the deadline while asking the hub")
    assert first.endswith("[deadline]")
    assert last == "asked"
    assert "hidden-token" not in done.stderr
