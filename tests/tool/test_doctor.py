"""doctor: each step says what it found, the first that breaks the chain says what to do, and no secret is shown."""

from __future__ import annotations

import base64
import json
import os
import pty
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from execcred import Env, ExecCredError
from execcred.conformance import LOOPBACK_ONLY
from execcred.conformance.fakes import ConnectProxy, FaultyServer
from execcred.tool._diagnosis import Case, Seen, Step, examine, report
from execcred.tool._doctor import REST, TABLE
from execcred.tool._main import respond
from execcred.tool._options import parse
from needs import need_mounts
from terminals import shown
from tool.hubs import PLUGIN, Fleet, Vanishing
from tool.support import run

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
VERSION = "client.authentication.k8s.io/v1"
STEPS = [step.name for step in REST]


class Told:
    """A report in JSON, by step."""

    def __init__(self, text: str, status: int) -> None:
        self.text = text
        self.status = status
        self.data: Json = json.loads(text)
        self.steps: dict[str, Json] = {step["step"]: step for step in self.data["steps"]}
        assert self.data["exitStatus"] == status

    def states(self) -> dict[str, str]:
        return {name: step["status"] for name, step in self.steps.items()}

    def codes(self) -> list[str]:
        return [each["code"] for step in self.steps.values() for each in step["problems"]]

    def failed(self) -> list[tuple[str, str]]:
        """Return (step, code) of what broke the chain."""
        failed = [step for step in self.steps.values() if step["status"] == "failed"]
        return [(step["step"], each["code"]) for step in failed for each in step["problems"]]


def doctor(fleet: Fleet, *arguments: str, **variables: str) -> Told:
    """Run it in memory."""
    env = Env(fleet.variables(PATH=os.environ["PATH"], **variables))
    return Told(*respond(("doctor", "--output=json", *arguments), env))


def of_profile(fleet: Fleet, name: str, *arguments: str, **variables: str) -> Told:
    return doctor(fleet, f"--provider-file={fleet.providers}", f"--clusterprofile={name}", *arguments, **variables)


def of_plugin(fleet: Fleet, config: Json, *arguments: str, **cluster: Any) -> Told:
    """Look at a context of the spoke whose user has this exec config."""
    base = {"apiVersion": VERSION, "interactiveMode": "Never", "installHint": "install it", "provideClusterInfo": True}
    kubeconfig = fleet.spoke.kubeconfig({"exec": {**base, **config}}, **cluster)
    return doctor(fleet, f"--kubeconfig={fleet.write('spoke.kubeconfig', kubeconfig)}", *arguments)


def script(fleet: Fleet, *lines: str, name: str = "plugin") -> str:
    path = fleet.write(name, "\n".join(["#!/bin/sh", *lines, ""]))
    Path(path).chmod(0o755)
    return path


def printer(fleet: Fleet, token: str = "spoke-token", version: str = VERSION, **status: str) -> str:
    """Return a plugin that answers this."""
    answer = {"kind": "ExecCredential", "apiVersion": version, "status": {"token": token, **status}}
    return script(fleet, f"cat <<'END'\n{json.dumps(answer)}\nEND")


def exec_config(command: str) -> Json:
    return {"apiVersion": VERSION, "command": command}


def jwt(**claims: object) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "RS256"}, claims)]
    return b".".join([*parts, b"c2lnbmF0dXJl"]).decode()


@pytest.fixture
def ready(fleet: Fleet) -> Fleet:
    """Return a fleet in which spoke-1 is reached by the Secret `one`."""
    fleet.hub.put_secret("fleet", "one", {"token": "spoke-token"})
    fleet.hub.allow("me", "get", "secrets")
    fleet.profile("spoke-1", {"clusterName": "one"})
    return fleet


# --- when all is well ---


def test_a_profile_that_works_needs_nothing(ready: Fleet) -> None:
    told = of_profile(ready, "spoke-1")
    assert (told.status, told.data["next"]) == (0, None)
    assert told.states() == dict.fromkeys(["hub", "profile", "provider", *STEPS], "ok")
    assert told.steps["accepted"]["details"] == {"user": "fleet", "groups": ["readers"]}
    assert "cluster-name from config key clusterName" in told.steps["credential"]["details"]["log"]
    assert [request.path for request in ready.hub.requests if request.status == 200] == [
        "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/fleet/clusterprofiles/spoke-1",
        "/api/v1/namespaces/fleet/secrets/one",
    ]


def test_a_profile_in_a_file_needs_no_hub_to_be_found(ready: Fleet) -> None:
    path = ready.write("profile.json", ready.profile("spoke-1", {"clusterName": "one"}))
    ready.forget("spoke-1")
    told = of_profile(ready, path)
    assert told.status == 0
    assert told.steps["hub"]["found"].startswith("not needed")


def test_a_context_that_works_needs_nothing(ready: Fleet) -> None:
    path = str(ready.folder / "config")
    words = ("kubeconfig", f"--provider-file={ready.providers}", f"--to={path}")
    respond(words, Env(ready.variables()))
    told = doctor(ready, f"--kubeconfig={path}", "--context=fleet/spoke-1")
    assert told.states() == dict.fromkeys(["context", *STEPS], "ok")
    assert told.data["subject"] == f"context fleet/spoke-1 of {path}"


def test_a_context_without_a_plugin_is_tried_as_it_is(fleet: Fleet) -> None:
    told = doctor(fleet)
    assert told.states()["accepted"] == "ok"
    assert told.states()["command"] == "skipped"
    assert told.steps["context"]["details"]["plugin"] is False
    assert doctor(fleet, "--allow-server=*.example").failed() == [("server", "server-refused")]


def test_the_text_ends_with_what_to_do(ready: Fleet) -> None:
    words = ["doctor", "--provider-file", ready.providers, "--clusterprofile", "spoke-1"]
    done = run(words, variables={"PATH": os.environ["PATH"], **ready.variables()})
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    assert lines[0] == "ClusterProfile fleet/spoke-1"
    assert lines[-2:] == ["", "next: nothing to do"]
    ready.hub.put_secret("fleet", "one", {"other": "x"})
    done = run(words, variables={"PATH": os.environ["PATH"], **ready.variables()})
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (1, b"")
    assert lines[-2].startswith("next: store it there, or choose another with --key")
    assert lines[-1] == "      execcred explain secret-key-missing"


@pytest.mark.parametrize("words", [["word"], ["--provider-file=x"], ["--clusterprofile=x"], ["--timeout=0"]])
def test_bad_usage(words: list[str]) -> None:
    done = run(["doctor", *words])
    assert (done.returncode, done.stdout) == (2, b"")


# --- contexts, profiles, providers ---


def test_a_kubeconfig_that_is_not_there_is_what_to_do_next(fleet: Fleet) -> None:
    told = doctor(fleet, f"--kubeconfig={fleet.folder}/gone")
    assert told.data["next"] == {"code": "file-unusable", "hint": "name a file that is there and can be read"}


@pytest.mark.parametrize(
    ("content", "code", "status"),
    [
        (None, "file-unusable", 2),
        ("", "file-unusable", 2),
        ("a: [", "file-unusable", 2),
        ("kind: Config\n", "context-missing", 1),
        ({"contexts": [{"name": "x", "context": {"cluster": "gone", "user": "me"}}]}, "context-missing", 1),
        ({"users": [{"name": "me", "user": {"exec": {"apiVersion": VERSION}}}]}, "context-invalid", 1),
        ({"users": [{"name": "me", "user": {"exec": {"command": "x", "apiVersion": "v9"}}}]}, "context-invalid", 1),
        ({"users": [{"name": "me", "user": {"exec": {"command": 5}}}]}, "context-invalid", 1),
        ({"users": [{"name": "me", "user": {"auth-provider": {"name": "gcp"}}}]}, "context-invalid", 1),
        ({"users": [{"name": "me", "user": {}}]}, "context-invalid", 1),
        ({"clusters": [{"name": "there", "cluster": {"certificate-authority": "gone"}}]}, "context-invalid", 1),
    ],
)
def test_a_context_that_cannot_be_used(fleet: Fleet, content: object, code: str, status: int) -> None:
    path = str(fleet.folder / "broken")
    if content is not None:
        exec_user = {"exec": {"apiVersion": VERSION, "command": "x"}}
        whole = {**fleet.spoke.kubeconfig(exec_user), **content} if isinstance(content, dict) else content
        fleet.write("broken", whole)
    told = doctor(fleet, f"--kubeconfig={path}")
    assert (told.failed(), told.status) == ([("context", code)], status)
    assert list(told.states().values()) == ["failed", *["skipped"] * len(STEPS)]


def test_without_any_kubeconfig_there_is_nothing_to_look_at(fleet: Fleet) -> None:
    env = Env({})
    told = Told(*respond(("doctor", "--output=json"), env))
    assert told.failed() == [("context", "context-missing")]
    assert doctor(fleet, KUBECONFIG="", KUBERNETES_SERVICE_HOST="::1").failed() == [("context", "context-missing")]
    assert doctor(fleet, "--context=other").failed() == [("context", "context-missing")]


def test_kubeconfigs_are_merged_as_kubectl_does(ready: Fleet) -> None:
    first = ready.write("first", {"current-context": "here", "contexts": [], "users": [], "clusters": []})
    empty = ready.write("empty", "")
    told = doctor(ready, KUBECONFIG=f"{first}:{first}-absent:{empty}:{ready.kubeconfig}")
    assert told.steps["accepted"]["status"] == "ok"
    home = ready.folder / ".kube"
    home.mkdir()
    (home / "config").write_text(Path(ready.kubeconfig).read_text())
    assert doctor(ready, KUBECONFIG="").steps["accepted"]["status"] == "ok"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "no such file"),
        ("", "empty"),
        ("providers:\n- name: secretreader\n", "YAML"),
        ('{"providers": []}', "at least one"),
        (json.dumps({"providers": [{"name": "a", "execConfig": exec_config("/x")}] * 2}), "twice"),
        (json.dumps({"providers": [{"name": "a", "execConfig": exec_config("./x")}]}), "relative"),
        (" " * ((4 << 20) + 1), "larger"),
    ],
)
def test_a_provider_file_that_cannot_be_used(ready: Fleet, content: str | None, what: str) -> None:
    path = Path(ready.providers)
    path.unlink() if content is None else path.write_text(content)
    told = of_profile(ready, "spoke-1")
    assert (told.failed(), told.status) == ([("provider", "provider-file-invalid")], 2)
    assert what in told.steps["provider"]["problems"][0]["message"]
    assert told.steps["profile"]["status"] == "ok"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({}, "provider-unmatched"),
        (None, "provider-unmatched"),
        ({"accessProviders": 5}, "profile-invalid"),
        ({"accessProviders": [{"name": "other", "cluster": {}}]}, "provider-unmatched"),
        ({"accessProviders": [{"name": "secretreader", "cluster": {"server": "http://x"}}]}, "profile-invalid"),
        ({"accessProviders": [{"name": "secretreader", "cluster": {}}]}, "profile-invalid"),
    ],
)
def test_a_profile_that_leads_nowhere(ready: Fleet, status: object, code: str) -> None:
    body = ready.profile("spoke-1", {})
    body["status"] = status
    ready.hub.put(body)
    assert of_profile(ready, "spoke-1").failed() == [("provider", code)]


def test_a_profile_without_extensions_is_told_which_is_missing(ready: Fleet) -> None:
    ready.profile("spoke-1")
    told = of_profile(ready, "spoke-1")
    assert (told.failed(), told.status) == ([("credential", "cluster-name-missing")], 2)


def test_profiles_are_looked_for_where_they_are(ready: Fleet) -> None:
    assert of_profile(ready, "other").failed() == [("profile", "profile-missing")]
    assert of_profile(ready, "spoke-1", "--namespace=other").failed() == [("profile", "profile-missing")]
    ready.hub.grants.clear()
    told = of_profile(ready, "spoke-1")
    assert told.failed() == [("profile", "hub-forbidden")]
    assert "verb get, API group multicluster.x-k8s.io, resource clusterprofiles" in told.data["next"]["hint"]
    assert of_profile(ready, "spoke-1", "--context=other").failed() == [("hub", "hub-config")]
    kubeconfig = ready.write("bare", ready.hub.kubeconfig({"token": "hub-token"}))
    done = of_profile(ready, "spoke-1", f"--kubeconfig={kubeconfig}")
    assert done.failed() == [("profile", "namespace-missing")]
    assert done.steps["profile"]["problems"][0]["message"].startswith("no namespace: the hub (kubeconfig ")


def test_a_folder_of_the_profiles_name_is_no_file_and_a_path_is_no_name(ready: Fleet) -> None:
    (ready.folder / "spoke-1").mkdir()
    words = ["doctor", "--provider-file", ready.providers, "--clusterprofile", "spoke-1"]
    command = [sys.executable, "-m", "execcred.tool", *words]
    environment = {**ready.variables(), "PATH": os.environ["PATH"]}
    assert subprocess.run(command, cwd=ready.folder, env=environment, capture_output=True, check=False).returncode == 0
    assert of_profile(ready, "./absent").failed() == [("hub", "file-unusable")]


@pytest.mark.parametrize("count", [0, 2])
def test_a_file_holds_one_profile(ready: Fleet, count: int) -> None:
    body = json.dumps(ready.profile("spoke-1", {}))
    path = ready.write("profiles", "\n---\n".join([body] * count or ["{}"]))
    assert of_profile(ready, path).failed() == [("hub", "profile-invalid")]


def test_another_object_than_a_profile_is_no_answer(ready: Fleet) -> None:
    with FaultyServer("none", b'{"kind": "Pod"}', authority=ready.hub.authority) as server:
        told = of_profile(ready, "spoke-1", f"--kubeconfig={ready.elsewhere(server)}")
    assert told.failed() == [("profile", "hub-bad-answer")]


def test_the_conditions_of_a_profile_are_told(ready: Fleet) -> None:
    body = ready.profile("spoke-1", {"clusterName": "one"})
    body["status"]["conditions"] = [{"type": "ControlPlaneHealthy", "status": "False"}, 5]
    ready.hub.put(body)
    assert of_profile(ready, "spoke-1").steps["profile"]["details"]["controlPlaneHealthy"] == "False"


@pytest.mark.parametrize(
    ("policy", "arguments", "code"),
    [
        ("Ignore", ["--secret-name=other"], None),
        ("Append", ["--namespace=kube-system"], "profile-refused"),
        ("Append", ["--kubeconfig=/tmp/evil"], "profile-refused"),
        ("Append", ["--allow-namespace=*"], "profile-refused"),
        ("Append", ["rm -rf"], "profile-refused"),
    ],
)
def test_hostile_arguments_meet_the_policy_and_the_seal(
    ready: Fleet, policy: str, arguments: list[str], code: str | None
) -> None:
    providers = json.loads(Path(ready.provider_file(PLUGIN, "--profile-args")).read_text())
    providers["providers"][0]["profileSourcedCLIArgsPolicy"] = policy
    ready.write("providers.json", providers)
    body = ready.profile("spoke-1", {"clusterName": "one"})
    name = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
    body["status"]["accessProviders"][0]["cluster"]["extensions"].append({"name": name, "extension": arguments})
    ready.hub.put(body)
    told = of_profile(ready, "spoke-1")
    assert told.failed() == ([("credential", code)] if code else [])
    if policy == "Ignore":
        assert "policy-ignores-profile" in told.codes()


@pytest.mark.parametrize("policy", ["Replace", "AppendIfNotExists"])
def test_a_hostile_variable_is_refused_under_any_policy(ready: Fleet, policy: str) -> None:
    providers = json.loads(Path(ready.providers).read_text())
    providers["providers"][0]["profileSourcedEnvVarsPolicy"] = policy
    ready.write("providers.json", providers)
    body = ready.profile("spoke-1", {"clusterName": "one"})
    name = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
    body["status"]["accessProviders"][0]["cluster"]["extensions"].append(
        {"name": name, "extension": {"LD_PRELOAD": "x"}}
    )
    ready.hub.put(body)
    assert of_profile(ready, "spoke-1").failed() == [("provider", "profile-refused")]


# --- config and command ---


def test_what_clients_refuse_fails_and_the_rest_is_still_looked_at(fleet: Fleet) -> None:
    told = of_plugin(fleet, {"command": printer(fleet), "interactiveMode": None})
    assert (told.failed(), told.status) == ([("config", "interactive-mode-missing")], 1)
    assert told.states()["accepted"] == "ok"


def test_what_is_only_unwise_is_a_warning(fleet: Fleet) -> None:
    told = of_plugin(fleet, {"command": printer(fleet), "installHint": ""})
    assert (told.states()["config"], told.status) == ("warning", 0)
    assert told.data["next"]["code"] == "install-hint-missing"


@pytest.mark.parametrize(("size", "status"), [(100, 1), (80, 0)])
def test_a_ca_bundle_that_fits_into_no_variable_is_told_before_it_fails(fleet: Fleet, size: int, status: int) -> None:
    bundle = fleet.spoke.ca_pem + f"# {'x' * 1000}\n" * size
    data = base64.b64encode(bundle.encode()).decode()
    told = of_plugin(fleet, {"command": printer(fleet)}, **{"certificate-authority-data": data})
    assert told.data["next"]["code"] == "ca-too-large"
    assert told.status == status
    assert told.steps["credential"]["status"] == ("failed" if status else "ok")


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("no-such-plugin", "not in PATH"),
        ("/nowhere/at/all/plugin", "nothing is mounted or installed at /nowhere"),
        ("./absent", "it is not in "),
        ("./folder", "it is no file"),
        ("./plain", "not executable"),
        ("./script", "/no/such/interpreter, which is not here"),
        ("./python", "no-such-python, which is not here"),
    ],
)
def test_a_command_that_cannot_be_run(fleet: Fleet, command: str, what: str) -> None:
    (fleet.folder / "folder").mkdir()
    fleet.write("plain", "#!/bin/sh\n")
    for name, first in (("script", "#!/no/such/interpreter"), ("python", "#!/usr/bin/env -S no-such-python -I")):
        Path(fleet.write(name, f"{first}\n")).chmod(0o755)
    told = of_plugin(fleet, {"command": command})
    assert (told.failed(), told.status) == ([("command", "plugin-not-runnable")], 1)
    assert what in told.steps["command"]["problems"][0]["message"]
    assert "its install hint says: install it" in told.data["next"]["hint"]


def test_a_volume_that_forbids_execution_is_told(fleet: Fleet) -> None:
    need_mounts()
    folder = fleet.folder / "volume"
    folder.mkdir()
    kubeconfig = fleet.spoke.kubeconfig({"exec": exec_config(f"{folder}/plugin") | {"interactiveMode": "Never"}})
    words = [sys.executable, "-m", "execcred.tool", "doctor", "--kubeconfig", fleet.write("c", kubeconfig)]
    mount = f"mount -t tmpfs -o noexec tmpfs {folder} && install -m 755 /dev/null {folder}/plugin"
    command = ["unshare", "--mount", "sh", "-c", f"{mount} && exec {shlex.join(words)}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "its volume is mounted noexec [plugin-not-runnable]" in done.stdout


def test_a_relative_command_counts_from_the_kubeconfig(fleet: Fleet) -> None:
    printer(fleet)
    assert of_plugin(fleet, {"command": "./plugin"}).steps["accepted"]["status"] == "ok"


@pytest.mark.parametrize("mode", [0o755, 0o711])
def test_a_binary_is_not_taken_for_a_script(fleet: Fleet, mode: int) -> None:
    path = Path(fleet.write("binary", "\x7fELF"))
    path.chmod(mode)
    assert of_plugin(fleet, {"command": str(path)}).failed() == [("credential", "plugin-not-runnable")]


# --- the credential ---


@pytest.mark.parametrize(
    ("lines", "code", "status"),
    [
        (["echo garbage"], "plugin-bad-answer", 1),
        (["true"], "plugin-bad-answer", 1),
        (["echo '{}{}'"], "plugin-bad-answer", 1),
        (["kill -9 $$"], "plugin-failed", 1),
        (["sleep 60"], "plugin-timeout", 3),
        (["head -c 10000000 /dev/zero | tr '\\0' x >&2", "echo 'last words' >&2", "exit 1"], "plugin-failed", 1),
        (["head -c 10000000 /dev/zero | tr '\\0' x"], "plugin-bad-answer", 1),
        (["echo 'x-plugin: error: gone [hub-forbidden]' >&2; echo 'hint: do it' >&2; exit 1"], "hub-forbidden", 1),
        (["echo 'x-plugin: error: gone [no-such-code]' >&2; exit 2"], "plugin-failed", 2),
        (["echo 'error: try later' >&2; exit 3"], "plugin-failed", 3),
        (["echo 'x-plugin: error: log in [login-needed]' >&2; exit 4"], "login-needed", 4),
    ],
)
def test_a_plugin_that_gives_none(fleet: Fleet, lines: list[str], code: str, status: int) -> None:
    told = of_plugin(fleet, {"command": script(fleet, *lines)}, f"--timeout={2 if code == 'plugin-timeout' else 60}")
    assert (told.failed(), told.status) == ([("credential", code)], status)
    assert fleet.spoke.requests == []


@pytest.mark.parametrize(
    ("version", "fields", "code"),
    [
        ("client.authentication.k8s.io/v1beta1", {}, "plugin-bad-answer"),
        (VERSION, {"expirationTimestamp": "2020-01-01T00:00:00Z"}, "credential-expired"),
        (VERSION, {"clientCertificateData": "x"}, "plugin-bad-answer"),
    ],
)
def test_a_credential_that_no_client_takes(fleet: Fleet, version: str, fields: dict[str, str], code: str) -> None:
    assert of_plugin(fleet, {"command": printer(fleet, "t", version, **fields)}).failed() == [("credential", code)]


def test_a_hub_that_goes_down_in_the_middle_is_told_after_what_was_found(ready: Fleet) -> None:
    with Vanishing(ready.hub.authority) as hub:
        hub.tokens, hub.grants, hub.objects = ready.hub.tokens, ready.hub.grants, ready.hub.objects
        kubeconfig = ready.write("vanishing", hub.kubeconfig({"token": "hub-token"}, "fleet"))
        told = of_profile(ready, "spoke-1", KUBECONFIG=kubeconfig)
    assert (told.failed(), told.status) == ([("credential", "hub-unreachable")], 3)
    assert [told.states()[name] for name in ("hub", "profile", "provider", "config", "command")] == ["ok"] * 5
    assert "connection was closed" in told.steps["credential"]["problems"][0]["message"]
    assert told.steps["profile"]["found"].startswith("fleet/spoke-1: access providers secretreader")


# --- who it is ---


def test_a_service_accounts_token_is_read(fleet: Fleet) -> None:
    account = {"namespace": "fleet", "serviceaccount": {"name": "reader"}}
    now = time.time()
    user = "system:serviceaccount:fleet:reader"
    token = jwt(iss="https://issuer.test", sub=user, aud=["api"], exp=now + 3600, **{"kubernetes.io": account})
    fleet.spoke.tokens[token] = fleet.spoke.tokens["spoke-token"]
    told = of_plugin(fleet, {"command": printer(fleet, token)})
    details = told.steps["identity"]["details"]
    assert (details["type"], details["user"], details["audience"]) == ("service account", user, ["api"])
    assert told.steps["expiry"]["details"]["secondsLeft"] == pytest.approx(3600, abs=60)
    assert token not in told.text


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"hasgroups": True}, "groups-overage"),
        ({"hasgroups": "true"}, "groups-overage"),
        ({"_claim_names": {"groups": "src1"}}, "groups-overage"),
        ({"_claim_names": "groups", "groups": ["a"]}, None),
        ({"nbf": 9e9}, "clock-skew"),
        ({"iat": 9e9}, "clock-skew"),
        ({"tid": "tenant-1", "appid": "app-1", "upn": "me@example", "aud": "server"}, None),
        ({"sub": 5, "aud": 5, "kubernetes.io": 5, "groups": 5}, None),
    ],
)
def test_what_a_token_tells_of_its_user_is_told(fleet: Fleet, claims: Json, code: str | None) -> None:
    token = jwt(**claims)
    fleet.spoke.tokens[token] = fleet.spoke.tokens["spoke-token"]
    told = of_plugin(fleet, {"command": printer(fleet, token)})
    assert told.codes() == ([code] if code else [])
    assert told.status == 0


def test_a_client_certificate_names_its_user(fleet: Fleet) -> None:
    pair = fleet.spoke.authority.client("guest", "team-a", "team-b")
    status = {"token": "", "clientCertificateData": pair.certificate, "clientKeyData": pair.key}
    told = of_plugin(fleet, {"command": printer(fleet, **status)})
    details = {"type": "certificate", "user": "guest", "groups": ["team-a", "team-b"]}
    assert told.steps["identity"]["details"] == details
    assert told.steps["accepted"]["details"] == {"user": "guest", "groups": ["team-a", "team-b"]}
    assert told.steps["expiry"]["details"]["secondsLeft"] == pytest.approx(3600, abs=60)
    files = {"client-certificate": "c.pem", "client-key": "k.pem"}
    fleet.write("c.pem", pair.certificate)
    fleet.write("k.pem", pair.key)
    told = doctor(fleet, f"--kubeconfig={fleet.write('plain', fleet.spoke.kubeconfig(files))}")
    assert told.steps["identity"]["details"] == details


@pytest.mark.parametrize(("token", "word"), [("ya29.abc", "Google"), ("abc", "opaque")])
def test_an_opaque_token_tells_nothing(fleet: Fleet, token: str, word: str) -> None:
    fleet.spoke.tokens[token] = fleet.spoke.tokens["spoke-token"]
    assert word in of_plugin(fleet, {"command": printer(fleet, token)}).steps["identity"]["found"]


def test_no_secret_is_shown_whoever_repeats_it(fleet: Fleet) -> None:
    token = jwt(sub="me")
    fleet.spoke.tokens[token] = fleet.spoke.tokens["spoke-token"]
    fleet.spoke.answers["selfsubjectreviews"] = 201, {"status": {"userInfo": {"username": token, "groups": [token]}}}
    told = of_plugin(fleet, {"command": printer(fleet, token)})
    assert told.steps["accepted"]["details"] == {"user": "…", "groups": ["…"]}
    leak = script(fleet, f"echo 'Authorization: Bearer {token}' >&2", "exit 1")
    assert token not in of_plugin(fleet, {"command": leak}).text
    told = of_plugin(
        fleet,
        {
            "command": script(fleet, 'echo "bad $AZURE_CLIENT_SECRET" >&2', "exit 1"),
            "env": [{"name": "AZURE_CLIENT_SECRET", "value": "hunter2-hunter2"}],
        },
    )
    assert "bad …" in told.steps["credential"]["problems"][0]["message"]
    assert "hunter2" not in told.text
    assert "hub-token" not in of_profile(fleet, "spoke-1").text


# --- the cluster ---


def test_the_credential_goes_to_allowed_servers_only(fleet: Fleet) -> None:
    told = of_plugin(fleet, {"command": printer(fleet)}, "--allow-server=*.example")
    assert (told.failed(), told.status) == ([("server", "server-refused")], 1)
    assert fleet.spoke.requests == []
    assert of_plugin(fleet, {"command": printer(fleet)}, "--allow-server=127.0.0.0/8").status == 0


def test_the_credential_goes_through_allowed_proxies_only(ready: Fleet) -> None:
    with ConnectProxy() as proxy:
        ready.profile("spoke-1", {"clusterName": "one"}, **{"proxy-url": proxy.url})
        assert of_profile(ready, "spoke-1", f"--allow-server={ready.spoke.netloc}").failed() == [
            ("server", "server-refused")
        ]
        assert proxy.targets == []
        assert of_profile(ready, "spoke-1", "--allow-server=127.0.0.1").status == 0
        assert set(proxy.targets) == {ready.spoke.netloc}


@pytest.mark.parametrize(
    "fields", [{"server": "http://spoke.example"}, {"server": ""}, {"proxy-url": "socks5://127.0.0.1:9"}]
)
def test_a_cluster_entry_that_leads_nowhere(fleet: Fleet, fields: dict[str, str]) -> None:
    kubeconfig = fleet.spoke.kubeconfig({"exec": exec_config(printer(fleet)) | {"interactiveMode": "Never"}})
    kubeconfig["clusters"][0]["cluster"].update(fields)
    told = doctor(fleet, f"--kubeconfig={fleet.write('c', kubeconfig)}")
    assert told.failed() == [("server", "cluster-fields-invalid")]
    assert told.states()["expiry"] == "ok"


def test_an_unverified_server_is_sent_nothing_that_a_profile_names(ready: Fleet) -> None:
    body = ready.profile("spoke-1", {"clusterName": "one"})
    cluster = body["status"]["accessProviders"][0]["cluster"]
    cluster["insecure-skip-tls-verify"] = True
    del cluster["certificate-authority-data"]
    ready.hub.put(body)
    assert ("server", "server-unverified") in of_profile(ready, "spoke-1").failed()
    assert ready.spoke.requests == []
    kubeconfig = ready.spoke.kubeconfig(
        {"exec": {"apiVersion": VERSION, "command": printer(ready), "interactiveMode": "Never"}}
    )
    kubeconfig["clusters"][0]["cluster"] = {"server": ready.spoke.url, "insecure-skip-tls-verify": True}
    told = doctor(ready, f"--kubeconfig={ready.write('insecure', kubeconfig)}")
    assert (told.status, "server-unverified" in told.codes()) == (0, True)


@pytest.mark.parametrize(
    ("fault", "code", "status"),
    [
        ("answers 401", "cluster-unauthorized", 1),
        ("answers 429", "cluster-error", 3),
        ("answers 503", "cluster-error", 3),
        ("redirects with 302", "cluster-bad-answer", 1),
        ("answers 418", "cluster-bad-answer", 1),
        ("answers a page", "cluster-bad-answer", 1),
        ("answers in another protocol", "cluster-bad-answer", 1),
        ("closes after the request", "cluster-unreachable", 3),
        ("closes after TLS", "cluster-unreachable", 3),
        ("closes at once", "cluster-unreachable", 3),
        ("never answers", "cluster-unreachable", 3),
        ("is certified by another authority", "cluster-tls", 1),
        ("is certified for another name", "cluster-tls", 1),
        ("speaks no TLS", "cluster-tls", 1),
    ],
)
def test_a_cluster_that_does_not_accept_it(fleet: Fleet, fault: str, code: str, status: int) -> None:
    with FaultyServer(fault, authority=fleet.spoke.authority) as server:
        exec_user = {"exec": {"apiVersion": VERSION, "command": printer(fleet), "interactiveMode": "Never"}}
        kubeconfig = fleet.spoke.kubeconfig(exec_user)
        kubeconfig["clusters"][0]["cluster"]["server"] = server.url
        patience = 2 if fault == "never answers" else 60
        told = doctor(fleet, f"--kubeconfig={fleet.write('faulty', kubeconfig)}", f"--timeout={patience}")
    assert (told.failed(), told.status) == ([("accepted", code)], status)
    assert told.states()["expiry"] == "ok"
    assert told.states()["permissions"] == "skipped"


def test_a_cluster_where_nobody_listens(fleet: Fleet) -> None:
    told = of_plugin(fleet, {"command": printer(fleet)})
    assert told.status == 0
    port = fleet.spoke.port
    fleet.spoke.__exit__()
    assert str(port) in of_plugin(fleet, {"command": printer(fleet)}).steps["accepted"]["problems"][0]["message"]


def test_a_token_of_another_cluster_is_refused_with_what_its_plugin_needs(ready: Fleet) -> None:
    ready.spoke.tokens.clear()
    told = of_profile(ready, "spoke-1")
    assert told.failed() == [("accepted", "cluster-unauthorized")]
    assert "renew it in the Secret" in told.data["next"]["hint"]
    told = of_plugin(ready, {"command": printer(ready, jwt(sub="me"))})
    assert "issuer and audience" in told.data["next"]["hint"]
    assert "it is me" in told.steps["accepted"]["problems"][0]["message"]
    assert "another cluster" in of_plugin(ready, {"command": printer(ready)}).data["next"]["hint"]


@pytest.mark.parametrize(
    ("review", "version", "code"),
    [
        ((403, {}), (200, {}), None),
        ((404, {}), (200, {}), None),
        ((404, {}), (403, {}), None),
        ((404, {}), (401, {}), "cluster-unauthorized"),
        ((404, {}), (502, {}), "cluster-error"),
        ((403, {"message": 'User "system:anonymous" cannot create'}), (200, {}), "cluster-unauthorized"),
        ((201, {"status": {"userInfo": {"username": "system:anonymous"}}}), (200, {}), "cluster-unauthorized"),
        ((201, "garbage"), (200, {}), "cluster-bad-answer"),
        ((201, {"status": 5}), (200, {}), None),
    ],
)
def test_older_and_stricter_clusters(fleet: Fleet, review: Any, version: Any, code: str | None) -> None:
    fleet.spoke.answers = {"selfsubjectreviews": review, "version": version}
    told = of_plugin(fleet, {"command": printer(fleet)})
    assert told.failed() == ([("accepted", code)] if code else [])


@pytest.mark.parametrize("ahead", [-400.0, 400.0])
def test_a_clock_that_differs_is_told_and_blamed_for_a_401(fleet: Fleet, ahead: float) -> None:
    fleet.spoke.ahead = ahead
    told = of_plugin(fleet, {"command": printer(fleet)})
    assert (told.codes(), told.status) == (["clock-skew"], 0)
    assert told.steps["expiry"]["details"]["clockSkewSeconds"] == pytest.approx(ahead, abs=30)
    assert ("behind" if ahead > 0 else "ahead of") in told.steps["expiry"]["problems"][0]["message"]
    fleet.spoke.tokens.clear()
    told = of_plugin(fleet, {"command": printer(fleet)})
    assert (told.status, told.data["next"]["code"]) == (1, "cluster-unauthorized")
    assert "clock" in told.data["next"]["hint"]


def test_a_clock_that_agrees_is_no_problem(fleet: Fleet) -> None:
    fleet.spoke.ahead = 0.0
    told = of_plugin(fleet, {"command": printer(fleet)})
    assert told.codes() == []
    assert abs(told.steps["expiry"]["details"]["clockSkewSeconds"]) < 30


@pytest.mark.parametrize(
    "date", ["noon", "Sun, 29 Nov 99999999999999999999 12:00:00 GMT", f"1 Jan 2026 0:0 +{'9' * 20}"]
)
def test_a_date_that_is_none_tells_nothing(fleet: Fleet, date: str) -> None:
    fleet.spoke.date = date
    told = of_plugin(fleet, {"command": printer(fleet)})
    assert (told.codes(), told.steps["expiry"]["details"]["clockSkewSeconds"]) == ([], None)


EVERYBODYS = {"verbs": ["create"], "resources": ["selfsubjectaccessreviews", "selfsubjectreviews"]}


@pytest.mark.parametrize(
    ("status", "code", "rules"),
    [
        ({"resourceRules": [EVERYBODYS]}, "permissions-none", 0),
        ({"resourceRules": []}, "permissions-none", 0),
        ({"resourceRules": [EVERYBODYS, {"verbs": ["list"], "resources": ["pods"]}]}, None, 1),
        ({"resourceRules": [EVERYBODYS], "incomplete": True}, None, 0),
    ],
)
def test_a_user_that_may_nothing_is_told(fleet: Fleet, status: Json, code: str | None, rules: int) -> None:
    fleet.spoke.answers["selfsubjectrulesreviews"] = 201, {"status": status}
    told = of_plugin(fleet, {"command": printer(fleet)})
    assert told.codes() == ([code] if code else [])
    assert told.steps["permissions"]["details"]["rules"] == rules
    assert told.status == 0


# --- limits and progress ---


def case(timeout: str) -> Case:
    settings, _, _ = parse("doctor", TABLE, (f"--timeout={timeout}",))
    return Case(settings, Env({}))


def raising(error: BaseException) -> Callable[[Case], Seen]:
    def look(_: Case) -> Seen:
        raise error

    return look


def test_a_step_that_never_ends_is_given_up(capfd: pytest.CaptureFixture[str]) -> None:
    def look(_: Case) -> Seen:
        time.sleep(30)
        return Seen("", {})

    (result,) = examine(case("0.1"), [Step("stuck", (), look)])
    assert result.status == "failed"
    assert (result.seen.problems[0].code, result.seen.problems[0].exit_status) == ("deadline", 3)
    assert capfd.readouterr() == ("", "")


def test_a_fault_of_the_tool_itself_hides_nothing_that_was_found() -> None:
    steps = [Step("first", (), lambda _: Seen("found", {})), Step("second", (), raising(RuntimeError("hunter2")))]
    results = examine(case("60"), steps)
    text, status = report("subject", results, "text")
    assert status == 1
    assert "found" in text
    assert "[internal]" in text
    assert "hunter2" not in text


def test_the_first_failure_decides_even_after_warnings() -> None:
    second = Step("b", ("server",), raising(AssertionError()))
    results = examine(case("60"), [Step("a", (), raising(ExecCredError("usage", "first"))), second])
    assert [result.status for result in results] == ["failed", "skipped"]
    assert report("x", results, "text")[0].endswith("next: first\n      execcred explain usage\n")


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_only(ready: Fleet, terminal: bool) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "execcred.tool", "doctor", "--provider-file", ready.providers]
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": LOOPBACK_ONLY, **measured, **ready.variables()}
    with subprocess.Popen(
        [*command, "--clusterprofile", "spoke-1"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=theirs if terminal else subprocess.PIPE,
    ) as child:
        out, err = child.communicate(timeout=60)
    os.close(theirs)
    told = (shown(ours) + (err or b"")).decode()
    assert b"next: nothing to do" in out
    assert ("accepted …" in told) == terminal
    assert terminal or not told
