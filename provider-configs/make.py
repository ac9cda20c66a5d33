"""Writes the files of this folder: each is what `execcred provider-config` prints, so that none can go stale."""

from __future__ import annotations

import sys
from pathlib import Path

from execcred import Env
from execcred.tool._facts import CONSUMERS, SUBJECTS
from execcred.tool._main import respond

HERE = Path(__file__).parent
# File: flags after --plugin.
CONFIGS = {
    "generic.json": ("--for=generic",),
    "multicluster-runtime.json": ("--for=multicluster-runtime",),
    "sveltos.json": ("--for=sveltos",),
    "kueue.yaml": ("--for=kueue",),
    "kueue-0.15.yaml": ("--for=kueue", "--credentials-providers"),
    "argocd.yaml": ("--for=argocd",),
    "argocd-before-3.5.yaml": ("--for=argocd", "--without-cluster-info"),
    "knative.yaml": ("--for=knative",),
    "clusterprofile.yaml": ("--for=generic", "--part=cluster-profile"),
}
OCM = {
    "ocm.json": ("--for=ocm",),
    "kueue-ocm.yaml": ("--for=kueue", "--name=open-cluster-management", "--managed-serviceaccount=controller"),
}


def files() -> dict[str, tuple[str, ...]]:
    """Return {path in this folder: flags of `execcred provider-config`}."""
    found: dict[str, tuple[str, ...]] = {}
    for plugin, subject in SUBJECTS.items():
        parts: dict[str, tuple[str, ...]] = {**CONFIGS, **(OCM if plugin == "secretreader" else {})}
        for consumer, facts in CONSUMERS.items():
            if consumer == "ocm":
                continue  # who consumes is another one of the list
            for _, workload, _ in facts.workloads:
                name = consumer if len(facts.workloads) == 1 else workload
                for part in ("image-volume", "init-container"):
                    pod = (f"--for={consumer}", f"--part={part}", f"--workload={workload}")
                    parts[f"pods/{name}-{part}.yaml"] = pod
            if subject.reads_secrets:
                parts[f"rbac/{consumer}.yaml"] = (f"--for={consumer}", "--part=rbac")
        for name, flags in parts.items():
            found[f"{plugin}/{name}"] = (f"--plugin={plugin}", *flags)
    return found


def text(flags: tuple[str, ...]) -> str:
    """Return what the tool prints for these flags."""
    return respond(("provider-config", *flags), Env({}))[0]


def main() -> None:
    """Write the files, and remove those that are no longer made."""
    wanted = files()
    for old in HERE.glob("*/**/*"):
        if old.is_file() and str(old.relative_to(HERE)) not in wanted:
            old.unlink()
    for name, flags in wanted.items():
        path = HERE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(flags))
    sys.stdout.write(f"{len(wanted)} files\n")


if __name__ == "__main__":
    main()
