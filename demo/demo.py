"""A real credential through real clients, on an embedded hub and spoke: `make demo`. Leaves nothing behind."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from execcred.conformance.fakes import Identity, KubeServer

ROOT = Path(__file__).resolve().parent.parent

PLUGIN = Path(sys.executable).with_name("secretreader-plugin")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
# Every kubectl since 1.20 knows it; current ones know v1 as well.
API_VERSION = "client.authentication.k8s.io/v1beta1"
PROFILES = "multicluster.x-k8s.io/v1alpha1"
Json = dict[str, Any]


def main() -> int:
    """Run the demo; return its exit status."""
    started = time.monotonic()
    try:
        with KubeServer() as hub, KubeServer() as spoke, tempfile.TemporaryDirectory(prefix="execcred-demo-") as folder:
            demonstrate(hub, spoke, Path(folder))
    except Exception as error:
        print(f"\nThe demo failed: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"\nDone in {time.monotonic() - started:.0f} s. Both API servers and all files of the demo are gone.")
    return 0


def demonstrate(hub: KubeServer, spoke: KubeServer, folder: Path) -> None:
    """Walk from a Secret and a ClusterProfile on the hub to objects of the spoke."""
    say("1. Two API servers on this machine")
    say(f"   hub   {hub.url}   holds ClusterProfiles and Secrets\n   spoke {spoke.url}   is the cluster to reach")
    token = fill(hub, spoke)
    say("\n2. On the hub: Secret fleet/spoke-1 with the spoke's token, and ClusterProfile fleet/spoke-1, which says")
    profile: Json = hub.objects["clusterprofiles", "fleet", "spoke-1"]["status"]["accessProviders"][0]
    say(f"   server {profile['cluster']['server']}, provider {profile['name']}, and for the plugin")
    say(f"   {json.dumps(profile['cluster']['extensions'][0]['extension'])}")

    hub_file, spoke_file = folder / "hub.kubeconfig", folder / "spoke.kubeconfig"
    write(hub_file, hub.kubeconfig({"token": "controller-token"}, "fleet"))
    write(spoke_file, spoke_kubeconfig(profile["cluster"], hub_file))
    say("\n3. A kubeconfig for the spoke that holds no credential; its user is an executable:")
    say(f"   {PLUGIN.name} --kubeconfig hub.kubeconfig")

    request, answer = exchange(spoke_file)
    check(answer["status"].pop("token") == token, "the plugin printed another token")
    say("\n4. What a client asks the executable (KUBERNETES_EXEC_INFO), and what it prints")
    say(f"   → {shorten(request)}")
    hidden = {"token": f"({len(token)} characters, hidden here)", **answer["status"]}
    say(f"   ← {shorten({**answer, 'status': hidden})}")

    say("\n5. The official Python client, on the spoke through the executable")
    say(f"   namespaces: {', '.join(ask_python_client(spoke_file))}")
    kubectl = shutil.which("kubectl")
    say("\n6. kubectl get namespaces" if kubectl else "\n6. kubectl is not installed: left out")
    if kubectl:
        say(f"   {', '.join(ask_kubectl(kubectl, spoke_file, folder))}")

    asked = {(each.method, each.path, each.status) for each in hub.requests}
    check(asked == {("GET", "/api/v1/namespaces/fleet/secrets/spoke-1", 200)}, f"the hub was asked {asked}")
    users = {each.user for each in spoke.requests}
    check(users == {"guest"}, f"the spoke was asked by {users}")
    say(f"\n7. The hub was asked {len(hub.requests)} times, each time for that one Secret and nothing else.")
    say(f"   Each of the {len(spoke.requests)} requests on the spoke came from its user guest.")
    say("\nFor a cluster of your own, with its token in key `token` of a Secret on your hub:")
    say(f"   {PLUGIN.relative_to(ROOT) if PLUGIN.is_relative_to(ROOT) else PLUGIN} --kubeconfig ~/.kube/config \\")
    say("       --namespace NAMESPACE --secret-name SECRET")


def fill(hub: KubeServer, spoke: KubeServer) -> str:
    """Put the objects of the story on both servers; return the spoke's token."""
    token = jwt({"sub": "guest", "exp": int(time.time()) + 3600})
    spoke.tokens[token] = Identity("guest")
    spoke.allow("guest", "list", "namespaces")
    for name in ("default", "kube-system", "shop"):
        spoke.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    hub.tokens["controller-token"] = Identity("controller")
    hub.allow("controller", "get", "secrets", "fleet", "spoke-1")
    hub.put_secret("fleet", "spoke-1", {"token": token})
    cluster = {
        "server": spoke.url,
        "certificate-authority-data": base64.b64encode(spoke.ca_pem.encode()).decode(),
        "extensions": [{"name": EXEC_EXTENSION, "extension": {"clusterName": "spoke-1"}}],
    }
    hub.put(
        {
            "apiVersion": PROFILES,
            "kind": "ClusterProfile",
            "metadata": {"namespace": "fleet", "name": "spoke-1"},
            "spec": {"clusterManager": {"name": "demo"}},
            "status": {"accessProviders": [{"name": "secretreader", "cluster": cluster}]},
        }
    )
    return token


def spoke_kubeconfig(cluster: Json, hub_file: Path) -> Json:
    """Return the kubeconfig that a ClusterProfile's access provider and our executable make together."""
    user = {
        "exec": {
            "apiVersion": API_VERSION,
            "command": str(PLUGIN),
            "args": ["--kubeconfig", str(hub_file)],
            "installHint": "run make setup",
            "provideClusterInfo": True,
            "interactiveMode": "Never",
        }
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "spoke-1",
        "clusters": [{"name": "spoke-1", "cluster": cluster}],
        "users": [{"name": "spoke-1", "user": user}],
        "contexts": [{"name": "spoke-1", "context": {"cluster": "spoke-1", "user": "spoke-1"}}],
    }


def exchange(spoke_file: Path) -> tuple[Json, Json]:
    """Run the executable as client-go does; return what it was asked and what it answered."""
    document = json.loads(spoke_file.read_text())
    cluster, command = document["clusters"][0]["cluster"], document["users"][0]["user"]["exec"]
    config = cluster["extensions"][0]["extension"]
    asked = {"server": cluster["server"], "config": config}
    request = {"kind": "ExecCredential", "apiVersion": API_VERSION, "spec": {"cluster": asked, "interactive": False}}
    printed = run([command["command"], *command["args"]], {"KUBERNETES_EXEC_INFO": json.dumps(request)})
    answer: Json = json.loads(printed)
    return request, answer


def ask_python_client(spoke_file: Path) -> list[str]:
    """Return the spoke's namespaces as the official client sees them."""
    from kubernetes import client, config

    connect: Any = config.new_client_from_config
    with connect(str(spoke_file)) as api:
        items: list[Any] = client.CoreV1Api(api).list_namespace().items
        return [each.metadata.name for each in items]


def ask_kubectl(kubectl: str, spoke_file: Path, folder: Path) -> list[str]:
    """Return the spoke's namespaces as kubectl sees them."""
    command = [kubectl, "--kubeconfig", str(spoke_file), "get", "namespaces", "--output", "name"]
    return run(command, {"HOME": str(folder)}).split()


def run(command: list[str], variables: dict[str, str]) -> str:
    """Run a command and return its stdout; its stderr is in the error when it fails."""
    environment = {"PATH": os.environ.get("PATH", ""), **variables}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environment)
    check(done.returncode == 0, f"{Path(command[0]).name} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def jwt(claims: Json) -> str:
    """Return a token that looks like a service account's; the spoke knows it by its whole text."""
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)] + [os.urandom(32)]
    return ".".join([base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts])


def write(file: Path, document: Json) -> None:
    """Write a kubeconfig that only this user can read."""
    file.touch(0o600)
    file.write_text(json.dumps(document, indent=2))


def shorten(document: Json) -> str:
    """Return JSON for one line."""
    return json.dumps(document, separators=(", ", ": "))


def check(true: bool, otherwise: str) -> None:
    """Stop the demo with a reason."""
    if not true:
        raise RuntimeError(otherwise)


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
