"""kubeconfig: the real kubectl uses what is written, under the allowlist that is printed, and writes beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interop.cluster import kubeconfig
from interop.fleet import GO_BIN, Reader, executable

if TYPE_CHECKING:
    from interop.cluster import Json


class Person:
    """Somebody with a kubeconfig of the fleet, and kubectl."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.config = str(reader.folder / "fleet.kubeconfig")
        content = kubeconfig(reader.hub.url, reader.hub.ca, {"token": reader.hub.admin}, reader.namespace)
        self.hub = reader.write("admin.kubeconfig", content)
        self.providers = reader.providers("secretreader", "v1", f"--kubeconfig={reader.kubeconfig}")
        for name in ("one", "two"):
            reader.profile(name, "secretreader", {"clusterName": name})
            reader.secret(name, token=reader.spoke.member)
        reader.allow("one", "two", "1e3")

    def update(self) -> Json:
        words = [
            "--output=json",
            f"--provider-file={self.providers}",
            f"--to={self.config}",
            f"--kubeconfig={self.hub}",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "execcred.tool", "kubeconfig", f"--namespace={self.reader.namespace}", *words],
            env=self.reader.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        told: Json = json.loads(done.stdout)
        return told

    def changes(self) -> dict[str, str]:
        return {row["context"].partition("/")[2]: row["change"] for row in self.update()["contexts"]}

    def kubectl(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [GO_BIN / "kubectl", *words, f"--kubeconfig={self.config}"],
            env=self.reader.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def namespaces(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        context = f"--context={self.reader.namespace}/{name}"
        return self.kubectl(context, "get", "namespaces", "--output=name", *words)


@pytest.fixture
def person(reader: Reader) -> Person:
    return Person(reader)


def test_kubectl_reaches_each_cluster_by_its_context(person: Person) -> None:
    assert person.changes() == {"one": "added", "two": "added"}
    for name in ("one", "two"):
        done = person.namespaces(name)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"namespace/{person.reader.namespace}" in done.stdout.splitlines()


def test_kubectl_takes_a_name_that_looks_like_a_number_for_a_text(person: Person) -> None:
    person.reader.profile("three", "secretreader", {"clusterName": "1e3"})
    person.reader.secret("1e3", token=person.reader.spoke.member)
    person.update()
    assert person.namespaces("three").returncode == 0


def test_kubectl_and_the_tool_keep_each_others_entries(person: Person) -> None:
    person.update()
    assert person.kubectl("config", "set-cluster", "mine", "--server=https://mine.example").returncode == 0
    assert person.changes() == {"one": "unchanged", "two": "unchanged"}
    path = f"/apis/multicluster.x-k8s.io/v1alpha1/namespaces/{person.reader.namespace}/clusterprofiles/one"
    assert person.reader.hub.status("DELETE", path) == 200
    assert person.changes() == {"one": "removed", "two": "unchanged"}
    done = person.kubectl("config", "get-clusters")
    # kubectl lists them in the random order of a Go map
    assert sorted(done.stdout.split()) == ["NAME", f"{person.reader.namespace}/two", "mine"]


def test_kubectl_honours_the_lock_that_the_tool_takes(person: Person) -> None:
    Path(f"{person.config}.lock").touch()
    assert "file exists" in person.kubectl("config", "set-cluster", "mine", "--server=https://mine.example").stderr


def test_the_printed_allowlist_lets_kubectl_run_this_plugin_and_no_other(person: Person) -> None:
    snippet = person.update()["kuberc"]
    kuberc = person.reader.folder / "kuberc"
    kuberc.write_text(snippet)
    done = person.namespaces("one", f"--kuberc={kuberc}")
    assert (done.returncode, done.stderr) == (0, "")
    assert executable("secretreader") in snippet
    kuberc.write_text(snippet.replace(executable("secretreader"), "/usr/bin/env"))
    done = person.namespaces("one", f"--kuberc={kuberc}")
    assert done.returncode != 0
    assert "allowlist" in done.stderr
