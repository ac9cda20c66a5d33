"""The long run of the property tests: `python -m property.fuzz 1000000`, spread over all cores; prints how many ran."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from hypothesis import HealthCheck, Phase, seed, settings

from property import test_readers, test_rules, test_yaml

ROUND = 200  # examples of one test in a row: Hypothesis remembers all of a row
TESTS = [
    test
    for module in (test_readers, test_rules, test_yaml)
    for name, test in vars(module).items()
    if name.startswith("test_") and getattr(test, "__module__", "") == module.__name__
]


def work(number: int, wanted: int) -> None:
    """Run all tests in turn, until `wanted` examples are done; `number` tells the workers' seeds apart."""
    row = settings(
        max_examples=ROUND,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    tests = [row(test) for test in TESTS]
    start, done = int(time.time()), 0
    while done < wanted:
        for test in tests:
            seed((start + done) * 1000 + number)(test)()
            done += ROUND
        print(f"worker {number}: {done} examples", flush=True)


def main() -> int:
    """Start one worker per core and return the exit status."""
    if len(sys.argv) == 3:
        work(int(sys.argv[1]), int(sys.argv[2]))
        return 0
    wanted, cores, started = int(sys.argv[1]), os.cpu_count() or 1, time.monotonic()
    share = -(-wanted // cores)
    command = [sys.executable, "-m", "property.fuzz"]
    workers = [subprocess.Popen([*command, str(number), str(share)]) for number in range(cores)]
    failed = [worker.pid for worker in workers if worker.wait()]
    took = time.monotonic() - started
    print(
        f"at least {share * cores} examples of {len(TESTS)} properties in {took:.0f} s, workers failed: {len(failed)}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
