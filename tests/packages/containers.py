"""Podman with a storage of its own, containers as strict as pods can be, and the access library's consumer in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from needs import absent
from packages.built import DIST, PATHS, PLUGINS, ROOT, Result, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONSUMER = ROOT / ".cache/go-bin/consumer"
EMPTY = "localhost/consumer:test"  # nothing but the consumer, as a controller's own image is
# The limits are for machines that may not raise their own.
STRICT = "--read-only --read-only-tmpfs=false --user 65532:65532 --cap-drop ALL --security-opt no-new-privileges"
STRICT += " --network host --pull never --ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def tag(plugin: str) -> str:
    """Return the name under which a plugin's image is loaded."""
    return f"localhost/{plugin}-plugin:test"


class Podman:
    """Images are loaded when they are first asked for; `close` leaves no container and no mount."""

    def __init__(self, folder: Path) -> None:
        if os.geteuid() or not shutil.which("podman") or not shutil.which("runc"):
            absent("podman and runc, as root, are needed")
        self.folder = folder
        self.loaded: set[str] = set()
        self.state = tempfile.mkdtemp(dir="/tmp")  # podman takes 50 characters at most
        self.command = ["podman", "--runtime", "runc", "--root", f"{folder}/root", "--runroot", self.state]

    def __call__(self, *words: str | Path) -> Result:
        return run([*self.command, *words], {**PATHS, "HOME": "/nonexistent"}, timeout=300)

    def run(self, options: Sequence[str], image: str, *arguments: str) -> Result:
        """Run a container of a plugin's image, by `tag`, or of EMPTY."""
        self._load(image)
        return self("run", "--rm", *STRICT.split(), *options, image, *arguments)

    def mounted(self, plugin: str, where: str) -> list[str]:
        """Return the options that mount a plugin's image as an image volume is."""
        self._load(tag(plugin))
        return ["--mount", f"type=image,source={tag(plugin)},destination={where}"]

    def _load(self, image: str) -> None:
        if image in self.loaded:
            return
        if image == EMPTY:
            if not CONSUMER.exists():
                absent("the consumer is not built; run: make interop-tools")
            with tarfile.open(self.folder / "consumer.tar", "w") as archive:
                archive.add(CONSUMER, "consumer")
            assert self("import", self.folder / "consumer.tar", EMPTY).status == 0
        else:
            [plugin] = [name for name in PLUGINS if tag(name) == image]
            done = self("load", "-i", DIST / f"images/{plugin}.oci.tar")
            assert done.status == 0, done.err
            assert self("tag", done.out.strip().rpartition(": ")[2], image).status == 0
        self.loaded.add(image)

    def close(self) -> None:
        """Remove containers, and mounts that would block the folder's removal."""
        self("rm", "--all", "--force")
        self("image", "unmount", "--all", "--force")
        lines = Path("/proc/self/mounts").read_text().splitlines()
        points = [line.split()[1] for line in lines if line.split()[1].startswith((f"{self.folder}/", self.state))]
        for point in sorted(points, reverse=True):
            subprocess.run(["umount", "--lazy", point], check=False)
        shutil.rmtree(self.state, ignore_errors=True)


def consume(
    podman: Podman, folder: Path, providers: list[Any], profile: Mapping[str, Any], options: Sequence[str]
) -> dict[str, Any]:
    """Let the consumer in an otherwise empty container use a provider file and a ClusterProfile; return its fact."""
    (folder / "providers.json").write_text(json.dumps({"providers": providers}))
    (folder / "profiles.json").write_text(json.dumps([profile]))
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    files = ["-clusterprofile-provider-file", "/conf/providers.json", "-profile-file", "/conf/profiles.json"]
    done = podman.run([*options, "--volume", f"{folder}:/conf:ro", "--entrypoint", "/consumer"], EMPTY, *files)
    assert (done.status, done.err) == (0, ""), done
    fact: dict[str, Any] = json.loads(done.out)
    return fact
