"""Somebody who follows a page of docs/ on hub and spoke, and the consumer that has been set up by then."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

from docs.pages import blocks, script
from execcred.tool._facts import CONSUMERS
from interop.cluster import ApiServer, Json, b64, until
from interop.fleet import GO_BIN, bare_environment, executable
from tool.support import printed

BIN = Path(sys.executable).parent
EXTRA = {"StatefulSet": {"serviceName": "consumer"}}
OURS = ("execcred", "secretreader-plugin", "kubeconfig-secretreader-plugin", "eks-plugin", "gke-plugin", "aks-plugin")


class Follower:
    """Somebody at a machine with kubectl, our programs and a kubeconfig for hub and spoke, who follows one page."""

    def __init__(self, hub: ApiServer, spoke: ApiServer, folder: Path) -> None:
        self.hub, self.spoke, self.folder = hub, spoke, folder
        tools = folder / "bin"
        tools.mkdir()
        (tools / "kubectl").symlink_to(GO_BIN / "kubectl")
        for name in OURS:
            (tools / name).symlink_to(BIN / name)
        (folder / ".kube").mkdir()
        self.write(".kube/config", self.kubeconfig(hub.admin, spoke.admin))
        base = bare_environment()
        self.environment = {**base, "PATH": f"{tools}:{base['PATH']}", "HOME": str(folder)}

    def write(self, name: str, content: object) -> Path:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def kubeconfig(self, hub_token: str, spoke_token: str = "") -> Json:
        """Return a kubeconfig with the contexts that the pages name."""
        servers = {"hub": (self.hub, hub_token), **({"spoke-1": (self.spoke, spoke_token)} if spoke_token else {})}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "hub",
            "clusters": [
                {"name": name, "cluster": {"server": server.url, "certificate-authority-data": b64(server.ca)}}
                for name, (server, _) in servers.items()
            ],
            "users": [{"name": name, "user": {"token": token}} for name, (_, token) in servers.items()],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in servers],
        }

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=110,
            check=False,
        )

    def save(self, page: Path) -> None:
        """Save the files of a page."""
        for block in blocks(page):
            if block.name:
                self.write(block.name, block.text)

    def follow(self, page: Path, **variables: str) -> None:
        """Save the files of a page, run its commands in order, and compare what it says that they print."""
        self.save(page)
        self.write("page.sh", script(page))
        done = self.run("bash", "page.sh", **variables)
        assert done.returncode == 0, done.stdout
        outputs = dict(re.findall(r"^@@ (\d+)\n((?:(?!@@ ).*\n)*)", done.stdout, re.MULTILINE))
        for number, block in enumerate(blocks(page)):
            if block.language == "text":
                shown = ".*".join([re.escape(part) for part in block.text.split("…")])
                assert re.fullmatch(shown, outputs[str(number - 1)]), (block.text, done.stdout)

    # --- what the pages take for granted ---

    def install(self, consumer: str) -> None:
        """Put on the hub what installing a consumer puts there, as far as the page has to do with it, and no more."""
        facts = CONSUMERS[consumer]
        core = f"/api/v1/namespaces/{facts.namespace}"
        self.make("/api/v1/namespaces", {"metadata": {"name": facts.namespace}})
        for account in facts.accounts:
            self.make(f"{core}/serviceaccounts", {"metadata": {"name": account}})
        profile = f"/apis/multicluster.x-k8s.io/v1alpha1/namespaces/{facts.namespace}/clusterprofiles/spoke-1"
        for left in (f"{core}/secrets/spoke-1", f"{core}/configmaps/clusterprofile-provider-file", profile):
            self.hub.call("DELETE", left)  # by a page of the same namespace
        for kind, name, container in facts.workloads:
            labels = {"app": name}
            pod = {"containers": [{"name": container, "image": "registry.example/consumer:1", "args": ["--v=5"]}]}
            spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
            path = f"/apis/apps/v1/namespaces/{facts.namespace}/{kind.lower()}s"
            self.hub.call("DELETE", f"{path}/{name}")
            self.make(path, {"metadata": {"name": name}, "spec": {**spec, **EXTRA.get(kind, {})}})

    def make(self, path: str, body: Json) -> None:
        """Create an object on the hub unless it is there: pages share namespaces."""
        status, answer = self.hub.call("POST", path, body)
        assert status in (201, 409), answer

    def publish(self, consumer: str, name: str) -> Json:
        """Write a ClusterProfile with access to the spoke, as a cluster manager does; return its status."""
        flags = (f"--for={consumer}", "--part=cluster-profile", f"--cluster={name}", f"--server={self.spoke.url}")
        text = printed("provider-config", "--plugin=secretreader", *flags, f"--ca-data={b64(self.spoke.ca)}")
        profile: Json = yaml.safe_load(text)
        namespace = CONSUMERS[consumer].namespace
        path = f"/apis/multicluster.x-k8s.io/v1alpha1/namespaces/{namespace}/clusterprofiles"
        self.make(path, {key: profile[key] for key in ("apiVersion", "kind", "metadata", "spec")})
        self.hub.patch(f"{path}/{name}/status", {"status": profile["status"]})
        status: Json = profile["status"]
        return status

    def crd(self, text: str) -> None:
        """Let the hub serve a kind by its consumer's own definition."""
        definition = yaml.safe_load(text)
        name, spec = definition["metadata"]["name"], definition["spec"]
        spec.pop("conversion", None)  # there is no webhook to ask
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager=tests"
        self.hub.patch(path, yaml.safe_dump(definition), "application/apply-patch+yaml")
        version = next(each["name"] for each in spec["versions"] if each["storage"])
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
        until(f"the hub serves {name}", lambda: self.hub.status("GET", path) == 200)

    # --- the consumer ---

    def identity(self, consumer: str) -> str:
        """Write a kubeconfig of the consumer's service account, which may what the page granted; return its path."""
        facts = CONSUMERS[consumer]
        token, _ = self.hub.account_token(facts.namespace, facts.accounts[0])
        document = self.kubeconfig(token)
        document["contexts"][0]["context"]["namespace"] = facts.namespace
        return str(self.write("account.kubeconfig", document))

    def reach(self, consumer: str, providers: list[Json], namespace: str = "") -> str:
        """Do what the consumer does with its configuration and the ClusterProfile; return who it is on the spoke."""
        for provider in providers:
            provider["execConfig"]["command"] = installed(provider["execConfig"]["command"])
        provider_file = self.write("providers.json", {"providers": providers})
        command = [str(GO_BIN / "consumer"), "-hub", str(self.folder / ".kube/config")]
        command += ["-namespace", namespace or CONSUMERS[consumer].namespace]
        command += ["-clusterprofile-provider-file", str(provider_file), "spoke-1"]
        done = self.run(*command, KUBECONFIG=self.identity(consumer))
        assert done.returncode == 0, done.stdout
        fact = json.loads(done.stdout)
        assert "error" not in fact, fact
        return str(fact["user"])


def installed(command: str) -> str:
    """Return our plugin for the path in a pod that a configuration names."""
    assert command.startswith("/"), command
    return executable(Path(command).name.removesuffix("-plugin"))
