"""The README's example does what it says, and its tables name what there is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import execcred.access
from access.support import Counted, access, load, profile, provider
from execcred.conformance.fakes.kube_server import Identity, KubeServer
from execcred.tool._catalogue import CATALOGUE
from execcred.tool._codes_access import ACCESS_CODES
from interop.cluster import b64

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "common/execcred/access/README.md").read_text()


def test_the_example_lists_the_nodes_of_ready_clusters(tmp_path: Path) -> None:
    [code] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    counted = Counted(tmp_path / "plugin")
    counted.says(token="of-the-spoke")
    load(tmp_path, provider(command=counted.command))
    (tmp_path / "providers.json").rename(tmp_path / "clusterprofile-provider-file.json")
    with KubeServer() as server:
        server.tokens = {"of-the-hub": Identity("controller"), "of-the-spoke": Identity("guest")}
        server.allow("controller", "list", "clusterprofiles", "fleet")
        server.allow("guest", "list", "nodes")
        server.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
        row = access(server=server.url, certificate_authority_data=b64(server.ca_pem))
        healthy = [{"type": "ControlPlaneHealthy", "status": "True"}]
        server.put(profile(row, name="c1", conditions=healthy))
        server.put(profile(row, name="c2", conditions=[]))
        (tmp_path / "kubeconfig").write_text(json.dumps(server.kubeconfig({"token": "of-the-hub"})))
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={"KUBECONFIG": str(tmp_path / "kubeconfig"), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.stdout, done.stderr) == ("c1 ['node-1']\n", "")


def test_every_name_of_the_table_is_public() -> None:
    rows = re.findall(r"^\| `([A-Za-z_.]+)\(", TEXT, re.MULTILINE)
    assert {name.partition(".")[0] for name in rows} <= set(execcred.access.__all__)
    assert all(hasattr(execcred.access, name) for name in execcred.access.__all__)


def test_every_code_of_the_library_is_told_and_explained() -> None:
    table = TEXT.partition("\n## Errors")[2].partition("\n## ")[0]
    told = {
        code
        for line in table.splitlines()
        if line.startswith("| `")
        for code in re.findall(r"`([a-z]+-[a-z-]+)`", line)
    }
    own = {line.partition(":")[0] for line in ACCESS_CODES.strip().splitlines()[::3]}
    assert own <= told <= set(CATALOGUE)
