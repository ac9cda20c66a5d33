"""kubeconfig: one context per ClusterProfile, twice the same as once, and nobody else's entries are touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from execcred import Env, ExecCredError
from execcred.conformance.fakes import FaultyServer, KubeServer
from execcred.tool._main import respond
from interop.cluster import b64, until
from tool.hubs import EXEC, PLUGIN
from tool.support import findings, run

if TYPE_CHECKING:
    from tool.hubs import Fleet

HAND = """\
apiVersion: v1
kind: Config
current-context: home
clusters:
- name: home  # do not touch
  cluster: {server: "https://home.example"}
contexts:
- name: home
  context: {cluster: home, user: me}
users:
- name: me
  user: {token: hunter2}
"""


def update(fleet: Fleet, *arguments: str, to: str = "", **variables: str) -> dict[str, Any]:
    """Run it in memory; return what JSON tells."""
    path = to or str(fleet.folder / "config")
    words = ("kubeconfig", "--output=json", f"--provider-file={fleet.providers}", f"--to={path}", *arguments)
    text, status = respond(words, Env(fleet.variables(**variables)))
    assert status == 0
    found: dict[str, Any] = json.loads(text)
    return found


def changes(told: dict[str, Any]) -> dict[str, str]:
    return {row["context"]: row["change"] for row in told["contexts"]}


def refused(fleet: Fleet, *arguments: str, **variables: str) -> ExecCredError:
    with pytest.raises(ExecCredError) as caught:
        update(fleet, *arguments, **variables)
    return caught.value


def written(fleet: Fleet) -> Any:
    return yaml.safe_load((fleet.folder / "config").read_text())


def test_each_profile_becomes_cluster_context_and_user(fleet: Fleet) -> None:
    fleet.profile("spoke-1", {"clusterName": "one"}, **{"tls-server-name": "spoke.test"})
    told = update(fleet)
    assert changes(told) == {"fleet/spoke-1": "added"}
    mark = {
        "name": "fleet.execcred",
        "extension": {"hub": fleet.hub.netloc, "namespace": "fleet", "clusterProfile": "spoke-1"},
    }
    source = fleet.spoke.kubeconfig({})["clusters"][0]["cluster"]
    assert written(fleet) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "fleet/spoke-1",
                "cluster": {
                    **source,
                    "tls-server-name": "spoke.test",
                    "extensions": [{"name": EXEC, "extension": {"clusterName": "one"}}, mark],
                },
            }
        ],
        "contexts": [
            {
                "name": "fleet/spoke-1",
                "context": {"cluster": "fleet/spoke-1", "user": "fleet/spoke-1", "extensions": [mark]},
            }
        ],
        "users": [
            {
                "name": "fleet/spoke-1",
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "command": PLUGIN,
                        "args": ["--api-version=v1"],
                        "installHint": "install it from the suite",
                        "interactiveMode": "IfAvailable",
                        "provideClusterInfo": True,
                    },
                    "extensions": [mark],
                },
            }
        ],
    }
    assert findings(fleet.folder / "config") == []


def test_twice_is_the_same_as_once_and_does_not_write(fleet: Fleet) -> None:
    fleet.profile("spoke-1", {"clusterName": "one"})
    fleet.profile("spoke-2", {"clusterName": "two"})
    path = fleet.folder / "config"
    update(fleet)
    before = path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino
    assert changes(update(fleet)) == {"fleet/spoke-1": "unchanged", "fleet/spoke-2": "unchanged"}
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_foreign_entries_keep_their_text(fleet: Fleet) -> None:
    path = fleet.folder / "config"
    path.write_text(HAND)
    path.chmod(0o640)
    fleet.profile("spoke-1", {"clusterName": "one"})
    update(fleet)
    kept = [line for line in path.read_text().splitlines(keepends=True) if line in HAND.splitlines(keepends=True)]
    assert "".join(kept) == HAND
    assert path.stat().st_mode & 0o777 == 0o640
    fleet.forget("spoke-1")
    assert changes(update(fleet)) == {"fleet/spoke-1": "removed"}
    assert path.read_text() == HAND


def test_a_profile_that_changes_changes_its_context_alone(fleet: Fleet) -> None:
    for name in ("a", "b", "c"):
        fleet.profile(name, {"clusterName": name})
    update(fleet)
    fleet.profile("b", {"clusterName": "other"})
    assert changes(update(fleet)) == {"fleet/a": "unchanged", "fleet/b": "changed", "fleet/c": "unchanged"}
    assert [row["name"] for row in written(fleet)["clusters"]] == ["fleet/a", "fleet/b", "fleet/c"]


def test_contexts_of_other_hubs_and_namespaces_outlive_their_absence(fleet: Fleet, tmp_path: Path) -> None:
    fleet.profile("a", {}, namespace="fleet")
    fleet.profile("b", {}, namespace="elsewhere")
    update(fleet)
    fleet.forget("a")
    fleet.forget("b", "elsewhere")
    assert changes(update(fleet, "--namespace=fleet")) == {"fleet/a": "removed"}
    with KubeServer() as other:
        other.tokens["hub-token"] = fleet.hub.tokens["hub-token"]
        other.allow("me", "list", "clusterprofiles")
        kubeconfig = fleet.write("other", other.kubeconfig({"token": "hub-token"}))
        assert changes(update(fleet, f"--kubeconfig={kubeconfig}")) == {}
    assert changes(update(fleet)) == {"elsewhere/b": "removed"}


@pytest.mark.parametrize("section", ["clusters", "contexts", "users"])
def test_an_entry_of_somebody_else_is_never_taken_over(fleet: Fleet, section: str) -> None:
    path = fleet.folder / "config"
    text = yaml.safe_dump({"kind": "Config", section: [{"name": "fleet/spoke-1", section[:-1]: {}}]})
    path.write_text(text)
    fleet.profile("spoke-1", {})
    error = refused(fleet)
    assert (error.code, error.exit_status) == ("context-taken", 1)
    assert path.read_text() == text
    assert changes(update(fleet, "--name-template=hub-{name}")) == {"hub-spoke-1": "added"}


def test_a_profile_that_cannot_be_used_is_told_and_keeps_what_it_had(fleet: Fleet) -> None:
    fleet.profile("good", {})
    fleet.profile("odd", {})
    update(fleet)
    fleet.profile("odd", {}, provider="unknown")
    told = update(fleet)
    assert changes(told) == {"fleet/good": "unchanged", "fleet/odd": "skipped"}
    assert told["contexts"][1]["code"] == "provider-unmatched"
    assert [row["name"] for row in written(fleet)["contexts"]] == ["fleet/good", "fleet/odd"]


@pytest.mark.parametrize(
    ("name", "change"),
    [("..", "added"), ("x\x1b[31m", "skipped"), ("a/b", "skipped"), ("UPPER", "skipped"), ("", "skipped")],
)
def test_a_name_that_no_profile_can_have_is_not_written(fleet: Fleet, name: str, change: str) -> None:
    fleet.profile(name, {})
    told = update(fleet)
    assert [row["change"] for row in told["contexts"]] == [change]
    assert "\x1b" not in (fleet.folder / "config").read_text() if change == "added" else True


def test_two_profiles_of_one_context_are_refused(fleet: Fleet) -> None:
    fleet.profile("a", {})
    fleet.profile("a", {}, namespace="elsewhere")
    error = refused(fleet, "--name-template={name}")
    assert (error.code, error.exit_status) == ("context-repeated", 2)
    assert not (fleet.folder / "config").exists()


def test_a_dry_run_tells_the_same_and_writes_nothing(fleet: Fleet) -> None:
    fleet.profile("a", {})
    told = update(fleet, "--dry-run")
    assert not (fleet.folder / "config").exists()
    assert told["dryRun"] is True
    assert told["contexts"] == update(fleet)["contexts"]


def test_without_profiles_nothing_is_written(fleet: Fleet) -> None:
    assert update(fleet) | {"file": ""} == {"file": "", "dryRun": False, "contexts": [], "kuberc": ""}
    assert not (fleet.folder / "config").exists()


def test_the_text_names_each_change_and_the_allowlist_of_kubectl(fleet: Fleet) -> None:
    fleet.profile("a", {})
    done = run(
        ["kubeconfig", "--provider-file", fleet.providers, "--to", str(fleet.folder / "config")],
        variables=dict(fleet.variables()),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    first, _, kuberc = done.stdout.decode().partition("\nTo let kubectl 1.35 or newer")
    assert first.splitlines() == [
        f"{fleet.folder}/config: 1 added, 0 changed, 0 removed, 0 unchanged, 0 skipped",
        f"  added    fleet/a  {fleet.spoke.url}  secretreader",
    ]
    assert yaml.safe_load(kuberc.partition("\n\n")[2]) == {
        "apiVersion": "kubectl.config.k8s.io/v1beta1",
        "kind": "Preference",
        "credentialPluginPolicy": "Allowlist",
        "credentialPluginAllowlist": [{"command": PLUGIN}],
    }


def test_the_answer_holds_no_secret_of_any_entry(fleet: Fleet) -> None:
    (fleet.folder / "config").write_text(HAND)
    fleet.profile("a", {})
    assert "hunter2" not in json.dumps(update(fleet))
    assert "hub-token" not in (fleet.folder / "config").read_text()


def test_another_writer_is_waited_for(fleet: Fleet) -> None:
    fleet.profile("a", {})
    lock = fleet.folder / "config.lock"
    lock.touch()
    error = refused(fleet, "--timeout=1")
    assert (error.code, error.exit_status) == ("kubeconfig-locked", 3)
    releaser = threading.Timer(0.5, lock.unlink)
    releaser.start()
    assert changes(update(fleet)) == {"fleet/a": "added"}
    releaser.join()


@pytest.mark.parametrize(
    ("text", "code"),
    [("a: [", "file-unusable"), ("kind: Secret\n", "kubeconfig-unusable"), ("users: 5\n", "kubeconfig-unusable")],
)
def test_a_target_that_is_no_kubeconfig_stays_as_it_is(fleet: Fleet, text: str, code: str) -> None:
    fleet.profile("a", {})
    path = fleet.folder / "config"
    path.write_text(text)
    assert refused(fleet).code == code
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], "usage"),
        (["--to=x"], "usage"),
        (["--provider-file=x"], "usage"),
        (["--provider-file=x", "--to=y", "word"], "usage"),
        (["--provider-file=/nonexistent", "--to=y"], "provider-file-invalid"),
    ],
)
def test_bad_usage(arguments: list[str], code: str) -> None:
    done = run(["kubeconfig", *arguments])
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"[{code}]" in done.stderr.decode()


def test_without_permission_the_grant_is_named(fleet: Fleet) -> None:
    fleet.hub.grants.clear()
    error = refused(fleet)
    assert error.code == "hub-forbidden"
    assert "ClusterRole with verb list, API group multicluster.x-k8s.io, resource clusterprofiles" in error.hint
    assert " a Role with verb list" in refused(fleet, "--namespace=fleet").hint


def test_a_hub_without_the_crd_is_told(fleet: Fleet) -> None:
    with FaultyServer("answers 404", authority=fleet.hub.authority) as server:
        assert refused(fleet, f"--kubeconfig={fleet.elsewhere(server)}").code == "profiles-unserved"


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("answers 401", 1, "hub-unauthorized"),
        ("answers 503", 3, "hub-error"),
        ("answers a page", 1, "hub-bad-answer"),
        ("closes in the body", 3, "hub-unreachable"),
        ("is certified by another authority", 1, "hub-tls"),
    ],
)
def test_a_hub_that_fails_leaves_the_file_as_it_was(fleet: Fleet, fault: str, status: int, code: str) -> None:
    path = fleet.folder / "config"
    path.write_text(HAND)
    with FaultyServer(fault, b'{"kind": "ClusterProfileList", "items": []}', authority=fleet.hub.authority) as server:
        error = refused(fleet, f"--kubeconfig={fleet.elsewhere(server)}")
    assert (error.code, error.exit_status) == (code, status)
    assert path.read_text() == HAND


def test_a_kubeconfig_of_many_megabytes_can_be_updated_again_and_looked_at(fleet: Fleet) -> None:
    """As that of thousands of clusters; here a few, each with the CAs of many."""
    bundle = b64(fleet.spoke.ca_pem * 1500)
    for number in range(5):
        fleet.profile(f"spoke-{number}", {"clusterName": "one"}, **{"certificate-authority-data": bundle})
    assert set(changes(update(fleet)).values()) == {"added"}
    assert set(changes(update(fleet)).values()) == {"unchanged"}
    words = ("--output=json", f"--kubeconfig={fleet.folder / 'config'}", "--context=fleet/spoke-4")
    text, _ = respond(("doctor", *words), Env(fleet.variables()))
    assert json.loads(text)["steps"][0]["details"]["context"] == "fleet/spoke-4"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=str)
def test_who_is_ended_while_it_writes_leaves_no_lock(fleet: Fleet, number: int) -> None:
    """Else kubectl could write this kubeconfig no more. It is a large one, so that the signal comes in time."""
    path = fleet.folder / "config"
    rows = "".join([f"- name: c{each}\n  cluster: {{server: 'https://c{each}.example'}}\n" for each in range(20_000)])
    path.write_text(f"apiVersion: v1\nkind: Config\nclusters:\n{rows}")
    fleet.profile("spoke-1", {"clusterName": "one"})
    words = ["kubeconfig", f"--provider-file={fleet.providers}", f"--to={path}", f"--kubeconfig={fleet.kubeconfig}"]
    with subprocess.Popen([sys.executable, "-m", "execcred.tool", *words], stderr=subprocess.PIPE) as child:
        until("it holds the lock", lambda: Path(f"{path}.lock").exists())
        child.send_signal(number)
        _, told = child.communicate(timeout=60)
    assert (child.returncode, b"[interrupted]" in told) == (3, True), told
    assert not [each for each in os.listdir(fleet.folder) if each.startswith("config.")]
    assert path.read_text().endswith(rows)


def test_a_hub_that_is_looked_for_without_end_is_given_up(fleet: Fleet) -> None:
    """As where DNS is stuck; here a kubeconfig that nobody ever writes."""
    os.mkfifo(fleet.folder / "pipe")
    error = refused(fleet, "--timeout=0.1", KUBECONFIG=str(fleet.folder / "pipe"))
    assert (error.code, error.exit_status) == ("deadline", 3)
    assert not (fleet.folder / "config").exists()


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"items": 5}', b'{"items": [5]}'])
def test_an_answer_that_is_no_list_is_refused(fleet: Fleet, body: bytes) -> None:
    with FaultyServer("none", body, authority=fleet.hub.authority) as server:
        assert refused(fleet, f"--kubeconfig={fleet.elsewhere(server)}").code == "hub-bad-answer"


def test_the_hub_itself_may_need_a_plugin(fleet: Fleet) -> None:
    printer = fleet.write("printer", "#!/bin/sh\nprintf '%s' \"$ANSWER\"\n")
    Path(printer).chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    credential = {"kind": "ExecCredential", "apiVersion": version, "status": {"token": "hub-token"}}
    user = {
        "exec": {
            "apiVersion": version,
            "command": "./printer",  # counts from the kubeconfig's folder
            "interactiveMode": "Never",
            "env": [{"name": "ANSWER", "value": json.dumps(credential)}],
        }
    }
    kubeconfig = fleet.write("exec.kubeconfig", fleet.hub.kubeconfig(user, "fleet"))
    fleet.profile("a", {})
    assert changes(update(fleet, f"--kubeconfig={kubeconfig}")) == {"fleet/a": "added"}


def test_kubectl_reaches_the_cluster_and_keeps_our_marks(fleet: Fleet) -> None:
    kubectl = shutil.which("kubectl")
    if not kubectl:
        pytest.skip("kubectl is not installed")
    fleet.hub.put_secret("fleet", "one", {"token": "spoke-token"})
    fleet.hub.allow("me", "get", "secrets")
    fleet.spoke.allow("readers", "list", "namespaces")
    fleet.spoke.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seen"}})
    fleet.profile("spoke-1", {"clusterName": "one"})
    path = str(fleet.folder / "config")
    update(fleet)
    environment = {"PATH": os.environ["PATH"], **fleet.variables(KUBECONFIG=f"{path}:{fleet.kubeconfig}")}

    def ask(*arguments: str) -> str:
        command = [kubectl, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    # The plugin reads the hub that KUBECONFIG names; its current-context is the hub's.
    assert re.search("^namespace/seen$", ask("--context=fleet/spoke-1", "get", "namespaces", "-o=name"), re.MULTILINE)
    ask("config", "set-context", "mine", "--cluster=fleet/spoke-1", f"--kubeconfig={path}")
    assert changes(update(fleet)) == {"fleet/spoke-1": "unchanged"}
    fleet.forget("spoke-1")
    assert changes(update(fleet)) == {"fleet/spoke-1": "removed"}
    assert [row["name"] for row in written(fleet)["contexts"]] == ["mine"]


def test_two_at_once_write_both_hubs(fleet: Fleet) -> None:
    fleet.profile("a", {})
    with KubeServer() as other:
        other.tokens["hub-token"] = fleet.hub.tokens["hub-token"]
        other.allow("me", "list", "clusterprofiles")
        other.objects = {("clusterprofiles", "fleet", "b"): fleet.profile("b", {})}
        fleet.forget("b")
        kubeconfigs = [fleet.kubeconfig, fleet.write("other", other.kubeconfig({"token": "hub-token"}))]
        command = [sys.executable, "-m", "execcred.tool", "kubeconfig", "--provider-file", fleet.providers]
        command += ["--to", str(fleet.folder / "config"), "--kubeconfig"]
        children = [subprocess.Popen([*command, each], stdout=subprocess.PIPE) for each in kubeconfigs]
        assert [child.communicate()[0].partition(b": ")[2][:7] for child in children] == [b"1 added", b"1 added"]
    assert {row["name"] for row in written(fleet)["contexts"]} == {"fleet/a", "fleet/b"}
