"""What holds for every test: it talks to loopback only, and neither chance nor the machine's settings decide it."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from execcred.conformance.loopback.sitecustomize import leaves_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

VIOLATIONS: list[str] = []
# What would lead clients and SDKs elsewhere than a test does.
FOREIGN = ("AWS_", "AZURE_", "AAD_", "ARM_", "GOOGLE_", "CLOUDSDK_", "GCE_", "KUBE", "SSL_CERT_", "REQUESTS_", "CURL_")

# The same examples each time; `make fuzz` looks for new ones. A busy machine is no failure.
settings.register_profile(
    "steady", deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


def _forget_the_machine() -> None:
    """Undo what a person, a shell or nohup has set; builders of packages may need the variables to reach an index."""
    os.umask(0o022)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:  # which children would inherit, unlike a handler
            signal.signal(number, lambda *_: None)
    for name in [] if "EXECCRED_TEST_PACKAGES" in os.environ else list(os.environ):
        if name.startswith(FOREIGN) or name.lower().endswith("_proxy"):
            del os.environ[name]


_forget_the_machine()


def _forbid(event: str, args: tuple[object, ...]) -> None:
    if where := leaves_loopback(event, args):
        VIOLATIONS.append(f"{event} {where}")
        raise PermissionError(f"a test must not leave loopback: {event} {where}")


sys.addaudithook(_forbid)


@pytest.fixture(autouse=True)
def only_loopback() -> Iterator[None]:
    """Fail a test that tried to leave loopback, also when the code it tested swallowed the refusal."""
    VIOLATIONS.clear()
    yield
    assert not VIOLATIONS
