"""The walk-through for Kind on two real API servers: its manifests are applied, its kubeconfig leads to the spoke."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from docs.pages import ROOT
from interop.cluster import b64
from interop.follower import installed
from tool.support import findings

if TYPE_CHECKING:
    from interop.follower import Follower

FOLDER = ROOT / "examples/kind"


def filled(name: str, **values: str) -> str:
    """Return a file as run.sh fills it in; a placeholder without a value fails the test."""
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], (FOLDER / name).read_text())


def test_the_script_fills_in_every_placeholder() -> None:
    script = (FOLDER / "run.sh").read_text()
    names = {name for path in FOLDER.glob("*.yaml") for name in re.findall(r"@(\w+)@", path.read_text())}
    assert names == set(re.findall(r"s\|@(\w+)@\|", script))


def test_the_api_server_takes_the_job_with_its_image_volume(follower: Follower) -> None:
    follower.install("generic")
    job = filled(
        "job.yaml", IMAGE="registry.example/x:1", CLIENT="registry.example/kubectl:1", HOST="h", ADDRESS="10.0.0.9"
    )
    follower.write("job.yaml", job)
    done = follower.run("kubectl", "apply", "--dry-run=server", "-o", "yaml", "-f", "job.yaml")
    assert done.returncode == 0, done.stdout
    assert {"name": "plugin", "image": {"reference": "registry.example/x:1", "pullPolicy": "Never"}} in yaml.safe_load(
        done.stdout
    )["spec"]["template"]["spec"]["volumes"]


def test_the_jobs_kubeconfig_leads_from_the_secret_to_the_nodes_of_the_spoke(follower: Follower) -> None:
    for context, name in (("hub", "hub.yaml"), ("spoke-1", "spoke.yaml")):
        done = follower.run("kubectl", f"--context={context}", "apply", "-f", str(FOLDER / name))
        assert done.returncode == 0, done.stdout
    node = {"metadata": {"name": "execcred-spoke-control-plane"}}
    assert follower.spoke.call("POST", "/api/v1/nodes", node)[0] in (201, 409)
    follower.hub.put_secret("fleet", "spoke-1", {"token": follower.spoke.account_token("kube-system", "fleet")[0]})
    text = filled("kubeconfig.yaml", SERVER=follower.spoke.url, CA=b64(follower.spoke.ca))
    assert findings(follower.write("spoke-1.yaml", text)) == []
    document = yaml.safe_load(text)
    exec_config = document["users"][0]["user"]["exec"]
    exec_config["command"] = installed(exec_config["command"])
    follower.write("kubeconfig", document)
    (arguments,) = [
        each["args"]
        for each in yaml.safe_load(filled("job.yaml", IMAGE="i", CLIENT="c", HOST="h", ADDRESS="a"))["spec"][
            "template"
        ]["spec"]["containers"]
    ]
    command = ["kubectl", "--kubeconfig=kubeconfig", *arguments[1:]]
    done = follower.run(*command, KUBECONFIG=follower.identity("generic"))
    assert (done.returncode, done.stdout) == (0, "node/execcred-spoke-control-plane\n")
