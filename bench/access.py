"""The access library with a large fleet: builds 1,000 ClusterProfiles, renews 1,000 credentials; writes access.md."""

from __future__ import annotations

import gc
import json
import os
import platform
import random
import sys
import tempfile
import time
import tracemalloc
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from execcred.access import ProviderFile, build_configuration, select
from execcred.access._credentials import Credentials, shared_credentials
from execcred.conformance.fakes.pki import Authority

CLUSTERS, WORKERS, ASKS, ROUNDS = 1000, 16, 4, 20
LASTS = 30  # seconds: longer than one round of renewals takes
PLUGIN = """#!/bin/sh
echo "$CLUSTER" >>"$LOG"
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$CLUSTER'",
"expirationTimestamp":"'$(cat "$END")'"}}'
"""
HEAD = f"""# Benchmark of the access library

Written by `make bench-access`; do not edit. {CLUSTERS} ClusterProfiles, each with a CA and a config of its own; the
plugin is a shell script of one line. {WORKERS} workers ask for each credential {ASKS} times, in any order.
"""


def providers(folder: Path) -> ProviderFile:
    """Return a provider file whose plugin notes each run."""
    plugin = folder / "plugin"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    config = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "env": [{"name": "LOG", "value": str(folder / "log")}, {"name": "END", "value": str(folder / "end")}],
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    entry = {"name": "bench", "execConfig": config, "profileSourcedEnvVarsPolicy": "Replace"}
    (folder / "providers.json").write_text(json.dumps({"providers": [entry]}))
    return ProviderFile.load(folder / "providers.json")


def profile(number: int, ca: str) -> dict[str, Any]:
    """Return a ClusterProfile as the API serves it."""
    extensions = [
        {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": f"c{number}"}},
        {"name": "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs", "extension": {"CLUSTER": f"c{number}"}},
    ]
    cluster = {"server": f"https://c{number}.example", "certificate-authority-data": ca, "extensions": extensions}
    return {
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "kind": "ClusterProfile",
        "metadata": {"namespace": "fleet", "name": f"c{number}"},
        "status": {"accessProviders": [{"name": "bench", "cluster": cluster}]},
    }


def build_all(profiles: list[dict[str, Any]], file: ProviderFile) -> float:
    """Build every configuration once; return the seconds it took."""
    start = time.perf_counter()
    for each in profiles:
        build_configuration(each, file)
    return time.perf_counter() - start


def growth(profiles: list[dict[str, Any]], file: ProviderFile) -> float:
    """Return by how many KiB the memory in use grows when all is built again and again."""
    tracemalloc.start()
    build_all(profiles, file)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(ROUNDS):
        build_all(profiles, file)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / 1024


def ask_all(each: list[Credentials]) -> float:
    """Ask for all credentials from all workers; return the seconds it took."""
    asked = each * ASKS
    random.Random(1).shuffle(asked)
    start = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        tokens = list(pool.map(lambda one: one.get().token, asked))
    took = time.perf_counter() - start
    assert len(set(tokens)) == len(each)
    return took


def announce(folder: Path) -> float:
    """Set the end of the credentials that are handed out from now on; return it."""
    end = int(time.time()) + LASTS
    (folder / "end").write_text(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end)))
    return end


def renewals(folder: Path, profiles: list[dict[str, Any]], file: ProviderFile) -> tuple[list[int], list[float]]:
    """Return plugin runs and seconds of three rounds: all new, all there, all at their end."""
    each = [shared_credentials(select(one, file), 30, None) for one in profiles]
    end = announce(folder)
    runs: list[int] = []
    seconds: list[float] = []
    for wait in (0.0, 0.0, 1.0):
        if wait:
            time.sleep(max(end + wait - time.time(), 0))
            announce(folder)
        seconds.append(ask_all(each))
        runs.append((folder / "log").read_text().count("\n") - sum(runs))
    return runs, seconds


def main() -> int:
    """Measure, write access.md; 1 when a bar is missed."""
    ca = b64encode(Authority().pem.encode()).decode()
    profiles = [profile(number, ca) for number in range(CLUSTERS)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = providers(folder)
        build_all(profiles[:1], file)  # which imports the client
        built = min(build_all(profiles, file) for _ in range(5))
        grown = growth(profiles, file)
        runs, seconds = renewals(folder, profiles, file)
    rows = [
        (f"build {CLUSTERS} profiles", f"{built * 1000:.0f} ms", "< 1,000 ms", built < 1),
        (f"build them {ROUNDS} times more", f"{grown:+.0f} KiB", "≤ 64 KiB", grown <= 64),
        ("first credential of each", f"{runs[0]} runs, {seconds[0]:.1f} s", f"{CLUSTERS} runs", runs[0] == CLUSTERS),
        ("again before their end", f"{runs[1]} runs, {seconds[1]:.1f} s", "0 runs", runs[1] == 0),
        ("again after their end", f"{runs[2]} runs, {seconds[2]:.1f} s", f"{CLUSTERS} runs", runs[2] == CLUSTERS),
    ]
    python = f"{platform.machine()}, Python {platform.python_version()}"
    machine = f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {python}"
    lines = [HEAD, machine, "", "| what | measured | bar | holds |", "|---|---|---|---|"]
    lines += [f"| {what} | {got} | {bar} | {'yes' if holds else '**no**'} |" for what, got, bar, holds in rows]
    text = "\n".join([*lines, ""])
    Path(__file__).with_suffix(".md").write_text(text)
    print(text)
    return 0 if all(holds for *_, holds in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
