"""Large fleets: a run for each cluster and end, no more, whoever asks; what is built again costs no memory."""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from access.support import CA, ENVS, EXEC, Json, access, load, plugin, profile, provider, stamp
from execcred.access import build_configuration, select
from execcred.access._credentials import shared_credentials
from interop.cluster import until

if TYPE_CHECKING:
    from execcred.access import ProviderFile

CLUSTERS, WORKERS = 150, 16


def fleet(count: int) -> list[Json]:
    return [
        profile(
            access(extensions={EXEC: {"n": n}, ENVS: {"CLUSTER": f"c{n}"}}, certificate_authority_data=CA), name=f"c{n}"
        )
        for n in range(count)
    ]


def noting(tmp_path: Path) -> ProviderFile:
    """Return a provider file whose plugin notes each run, and answers a token that ends when the file `end` says."""
    command = plugin(
        tmp_path,
        f'echo "$CLUSTER" >>{tmp_path}/log',
        'echo \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",\'',
        f'echo \'"status":{{"token":"\'"$CLUSTER"\'","expirationTimestamp":"\'"$(cat {tmp_path}/end)"\'"}}}}\'',
    )
    return load(tmp_path, provider(command=command, provideClusterInfo=True, profileSourcedEnvVarsPolicy="Replace"))


def test_sixteen_workers_renew_each_credential_once_at_its_end(tmp_path: Path) -> None:
    providers = noting(tmp_path)
    profiles = fleet(CLUSTERS)

    def all_ask(timeout: float = 60) -> Counter[str]:
        def ask(number: int) -> None:
            credentials = shared_credentials(select(profiles[number], providers), timeout, None)
            assert credentials.get().token == f"c{number}"

        order = list(range(CLUSTERS)) * 5
        random.Random(3).shuffle(order)
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(ask, order))
        return Counter((tmp_path / "log").read_text().split())

    once = {f"c{n}": 1 for n in range(CLUSTERS)}
    (tmp_path / "end").write_text(stamp(hours=1))
    started = time.monotonic()
    assert all_ask(timeout=59) == once  # with another limit nothing is shared: this tells how long a round takes here
    life = 5 + 5 * (time.monotonic() - started)
    (tmp_path / "log").unlink()
    end = time.time() + life
    (tmp_path / "end").write_text(stamp(seconds=life))
    assert all_ask() == once
    assert all_ask() == once
    until("the end", lambda: time.time() > end, life + 30)
    (tmp_path / "end").write_text(stamp(hours=1))
    assert all_ask() == dict.fromkeys(once, 2)


def test_building_a_fleet_again_and_again_takes_no_more_memory(tmp_path: Path) -> None:
    profiles = fleet(50)
    providers = load(tmp_path, provider(profileSourcedEnvVarsPolicy="Replace", profileSourcedCLIArgsPolicy="Append"))

    def used(rounds: int) -> int:
        for _ in range(rounds):
            for each in profiles:
                build_configuration(each, providers)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = used(2)
        assert used(10) - before < 64 << 10
    finally:
        tracemalloc.stop()
