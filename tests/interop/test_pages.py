"""The pages of docs/, done as they say: their commands run on real API servers, and a request reaches the spoke."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from docs.pages import CONSUMERS, DOCS, PAGES, blocks, lines
from execcred.tool._facts import CONSUMERS as KNOWN
from interop.fleet import GO_BIN
from interop.follower import Follower, installed
from needs import absent
from tool.support import printed

if TYPE_CHECKING:
    from collections.abc import Callable


def kueue_module(name: str) -> str:
    """Return a file of the Kueue module that the tests' parser is built from."""
    folder = Path(__file__).parent / "go/consumers/kueue-0.17"
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue"]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    return Path(found, name).read_text()


def tool(name: str) -> str:
    path = GO_BIN / name
    if not path.exists():
        absent(f"{name} is not built; run `make interop-tools` (needs Go)")
    return str(path)


# --- one consumer each: what is there before, and what it is after ---


KUEUE_VERSIONS = ("0.15", "0.17")


def kueue_before(reader: Follower) -> None:
    reader.crd(kueue_module("config/components/crd/bases/kueue.x-k8s.io_multikueueclusters.yaml"))
    config = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "clientConnection": {"qps": 50}}
    data = {"controller_manager_config.yaml": yaml.safe_dump(config)}
    reader.make(
        "/api/v1/namespaces/kueue-system/configmaps", {"metadata": {"name": "kueue-manager-config"}, "data": data}
    )


def kueue_after(reader: Follower) -> str:
    """Kueue itself reads the merged configuration of the ConfigMap; nothing that was there is lost."""
    path = "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config"
    text = reader.hub.call("GET", path)[1]["data"]["controller_manager_config.yaml"]
    files = ["controller_manager_config.yaml", "kueue.yaml", "gke.yaml", "aks.yaml", "kubeconfig.yaml"]
    for version in KUEUE_VERSIONS:
        answers = [json.loads(line) for line in reader.run(tool(f"kueue-config-{version}"), *files).stdout.splitlines()]
        assert [answer["error"] for answer in answers if "error" in answer] == []
        assert len(answers) == len(files)
    assert (reader.folder / files[0]).read_text() == text
    assert yaml.safe_load(text)["clientConnection"] == {"qps": 50}
    (provider,) = answers[0]["providers"]["credentialsProviders"]
    provider["execConfig"].pop("env")
    return reader.reach("kueue", [provider])


def nothing(_: Follower) -> None:
    """Installing the consumer was all."""


def config_map(consumer: str) -> Callable[[Follower], str]:
    """Return what reads the provider file from the ConfigMap that the pod mounts."""

    def after(reader: Follower) -> str:
        path = f"/api/v1/namespaces/{KNOWN[consumer].namespace}/configmaps/clusterprofile-provider-file"
        found = json.loads(reader.hub.call("GET", path)[1]["data"]["provider-file.json"])
        return reader.reach(consumer, found["providers"])

    return after


def knative_after(reader: Follower) -> str:
    values = yaml.safe_load((reader.folder / "values.yaml").read_text())
    return reader.reach("knative", values["knative_operator"]["multicluster"]["accessProvidersConfig"]["providers"])


def argocd_after(reader: Follower) -> str:
    """Do what Argo CD does with a cluster Secret, through kubectl, which uses the same client-go."""
    data = reader.hub.call("GET", "/api/v1/namespaces/argocd/secrets/cluster-spoke-1")[1]["data"]
    config = json.loads(base64.b64decode(data["config"]))
    exec_config = config["execProviderConfig"] | {"interactiveMode": "Never"}
    exec_config["command"] = installed(exec_config["command"])
    extension = {"name": "client.authentication.k8s.io/exec", "extension": exec_config.pop("config", None)}
    cluster = {
        "server": base64.b64decode(data["server"]).decode(),
        "certificate-authority-data": config["tlsClientConfig"]["caData"],
        "extensions": [extension],
    }
    document = reader.kubeconfig("")
    document["clusters"] = [{"name": "hub", "cluster": cluster}]
    document["users"] = [{"name": "hub", "user": {"exec": exec_config}}]
    path = reader.write("cluster.kubeconfig", document)
    whoami = ("kubectl", "--kubeconfig", str(path), "auth", "whoami", "--output=json")
    done = reader.run(*whoami, KUBECONFIG=reader.identity("argocd"))
    assert done.returncode == 0, done.stdout
    return str(json.loads(done.stdout)["status"]["userInfo"]["username"])


def ocm_before(reader: Follower) -> None:
    """Write what the hub of Open Cluster Management writes: the ClusterProfile, and the Secret with the token."""
    reader.spoke.account("kube-system", "ocm")
    token, _ = reader.spoke.account_token("kube-system", "ocm")
    reader.hub.put_secret("fleet", "spoke-1-controller", {"token": token, "ca.crt": reader.spoke.ca})
    reader.publish("ocm", "spoke-1")


WORLDS: dict[str, tuple[Callable[[Follower], None], Callable[[Follower], str]]] = {
    "kueue": (kueue_before, kueue_after),
    "argocd": (nothing, argocd_after),
    "multicluster-runtime": (nothing, config_map("multicluster-runtime")),
    "knative": (nothing, knative_after),
    "sveltos": (nothing, config_map("sveltos")),
    "ocm": (ocm_before, config_map("ocm")),
}


def accepted(reader: Follower) -> None:
    """Let the access library and the API's own types read every provider file and manifest that a page made."""
    questions = []
    for path in sorted(reader.folder.iterdir()):
        text = path.read_text() if path.suffix in (".json", ".yaml") else ""
        if path.suffix == ".json" and "providers" in json.loads(text):
            questions.append({"provider": str(path)})
        elif path.name in ("pod.yaml", "cluster.yaml") or path.name.startswith("rbac"):
            questions.append({"manifests": str(path)})
    done = subprocess.run(
        [tool("consumer-parse")],
        input="".join([json.dumps(each) + "\n" for each in questions]),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    assert [answer["error"] for answer in answers if "error" in answer] == []


@pytest.mark.parametrize("name", WORLDS)
def test_who_follows_a_page_gets_a_consumer_that_reaches_the_spoke(name: str, follower: Follower) -> None:
    before, after = WORLDS[name]
    follower.install(name)
    before(follower)
    follower.follow(DOCS / f"{name}.md")
    accepted(follower)
    assert after(follower) == f"system:serviceaccount:kube-system:{name}"


def test_who_follows_the_page_on_kubectl_reaches_the_spoke(follower: Follower) -> None:
    follower.install("generic")
    follower.publish("generic", "spoke-1")
    job = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
    follower.follow(DOCS / "kubectl.md", **job)


@pytest.mark.parametrize("name", ["which-form", "README"])
def test_the_commands_of_the_other_pages_run(name: str, follower: Follower) -> None:
    follower.follow(DOCS / f"{name}.md")


def test_every_page_is_followed() -> None:
    assert {*WORLDS, "kubectl"} == set(CONSUMERS)
    assert {page.stem for page in PAGES} == {*CONSUMERS, "which-form", "README"}


@pytest.mark.parametrize("part", ["image-volume", "init-container"])
@pytest.mark.parametrize("name", [name for name, facts in KNOWN.items() if facts.workloads and name != "ocm"])
def test_the_api_server_takes_either_pod_patch(name: str, part: str, follower: Follower) -> None:
    """Of a plugin that no page adds to this workload: the two ways exclude each other."""
    follower.install(name)
    namespace = KNOWN[name].namespace
    for kind, workload, _ in KNOWN[name].workloads:
        text = printed("provider-config", "--plugin=eks", f"--for={name}", f"--part={part}", f"--workload={workload}")
        patch = follower.write("patch.yaml", text)
        command = f"kubectl patch {kind.lower()} {workload} -n {namespace} --dry-run=server --patch-file={patch}"
        done = follower.run(*shlex.split(command))
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_kubectl_knows_the_commands_that_need_a_node(page: Path, follower: Follower) -> None:
    """They are tried on an address where nobody listens: so far kubectl comes only if it understands them."""
    nobody = {"clusters": [{"name": "hub", "cluster": {"server": "https://127.0.0.1:1"}}]}
    follower.write(".kube/config", {**follower.kubeconfig("x"), **nobody})
    follower.save(page)
    for block in blocks(page):
        for line in lines(block) if block.language == "console" else ():
            words = shlex.split(line)
            if words[0] == "kubectl":
                done = follower.run(*words, "--request-timeout=1s")
                assert "127.0.0.1:1" in done.stdout, done.stdout


def test_the_hubs_definition_rejects_a_list_as_an_extension_as_the_readme_says(follower: Follower) -> None:
    follower.install("generic")
    status = follower.publish("generic", "spoke-1")
    path = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/fleet/clusterprofiles/spoke-1/status"
    name = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
    for value, code in (({"a": "b"}, 200), (["--region=eu-central-1"], 422)):
        status["accessProviders"][0]["cluster"]["extensions"] = [{"name": name, "extension": value}]
        answer = follower.hub.call("PATCH", path, {"status": status}, form="application/merge-patch+json")
        assert answer[0] == code, answer
