"""The walk-through for Kind on two real API servers: its manifests are applied, its kubeconfig leads to the spoke."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from docs.pages import ROOT
from execcred import __version__
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


# They note what they are asked; the clusters that `kind` hands over are the tests' API servers, which run no pods.
KIND = """#!/bin/sh
echo "kind $*" >>"$NOTES"
while [ $# -gt 0 ]; do
    case $1 in
        --name) name=$2 ;;
        --kubeconfig) cp "$CLUSTERS/$name" "$2" ;;
    esac
    shift
done
"""
DOCKER = """#!/bin/sh
echo "docker $*" >>"$NOTES"
case $1 in
    exec) cat >/dev/null ;;
    inspect) echo 10.0.0.9 ;;
esac
"""


def test_the_script_comes_as_far_as_the_pod_which_only_a_kubelet_can_run(follower: Follower) -> None:
    follower.install("generic")
    for left in ("apis/batch/v1/namespaces/fleet/jobs/nodes", "api/v1/namespaces/fleet/configmaps/spoke-1"):
        follower.hub.call("DELETE", f"/{left}?propagationPolicy=Background")
    both = follower.kubeconfig(follower.hub.admin, follower.spoke.admin)
    for name, context in (("execcred-hub", "hub"), ("execcred-spoke", "spoke-1")):
        own = {key: [row for row in both[key] if row["name"] == context] for key in ("clusters", "users", "contexts")}
        follower.write(name, {**both, **own, "current-context": context})
    for name, text in (("kind", KIND), ("docker", DOCKER)):
        follower.write(f"bin/{name}", text).chmod(0o755)
    archive, notes = follower.write("secretreader.oci.tar", ""), follower.write("notes", "")
    variables = {"CLUSTERS": str(follower.folder), "NOTES": str(notes), "IMAGE_ARCHIVE": str(archive), "TIMEOUT": "1s"}
    done = follower.run(str(FOLDER / "run.sh"), **variables)
    assert "timed out waiting for the condition on jobs/nodes" in done.stdout, done.stdout
    assert done.returncode != 0
    asked = notes.read_text()
    assert asked.rstrip().endswith("kind delete clusters execcred-hub execcred-spoke")
    image = f"registry.example/execcred/secretreader:{__version__}"
    assert f"images tag --force secretreader-plugin:{__version__} {image}\n" in asked
    job = follower.hub.call("GET", "/apis/batch/v1/namespaces/fleet/jobs/nodes")[1]["spec"]["template"]["spec"]
    assert job["volumes"][0]["image"]["reference"] == image
    assert job["hostAliases"] == [{"ip": "10.0.0.9", "hostnames": ["execcred-spoke-control-plane"]}]
    data = follower.hub.call("GET", "/api/v1/namespaces/fleet/configmaps/spoke-1")[1]["data"]["kubeconfig"]
    (cluster,) = yaml.safe_load(data)["clusters"]
    assert cluster["cluster"]["server"] == "https://execcred-spoke-control-plane:6443"
    assert cluster["cluster"]["certificate-authority-data"] == b64(follower.spoke.ca)
