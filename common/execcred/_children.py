"""Children that SDKs start (`az`, `gcloud`, credential_process): tamed in one place, and ended with us."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Ours, not theirs: the exec info may be large or private, the rest changes how a child's Python or loader works.
DROPPED = ("KUBERNETES_EXEC_INFO", "PYTHON", "LD_", "DYLD_", "OPENSSL_CONF")
# Metadata servers of the clouds: link-local, so a proxy could only leak or hang what is asked of them.
METADATA = (
    "169.254.169.254,169.254.170.2,169.254.170.23,[fd00:ec2::254],[fd00:ec2::23],fd00:ec2::254,fd00:ec2::23,"
    "metadata.google.internal,metadata"
)
_starting: list[Child] = []
_started: list[Child] = []


class Child(subprocess.Popen):  # type: ignore[type-arg]  # text or bytes, as the SDK asks
    """A child in a session of its own, so that it can be ended whole and the controller's group is left alone.

    It reads no stdin, inherits no variable of ours, and its stderr, which may hold secrets, goes nowhere unasked. One
    that is given its own session by its caller outlives us.
    """

    ended_by = 0  # a signal that came while the number of a child that had begun was not known yet

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = kwargs.get("env")
        source = os.environ if given is None else given
        kwargs["env"] = {name: value for name, value in source.items() if not name.startswith(DROPPED)}
        stays = kwargs.get("start_new_session")  # a person's browser, which is not ours to end
        kwargs["start_new_session"] = True
        for stream in ("stdin", "stderr"):
            if kwargs.get(stream) is None:
                kwargs[stream] = subprocess.DEVNULL
        _starting.append(self)
        try:
            super().__init__(*args, **kwargs)
            if not stays:
                _started.append(self)
        finally:
            _starting.remove(self)
        if Child.ended_by:
            _end(Child.ended_by, None)

    def send_signal(self, sig: int) -> None:
        """Signal the child, unless it has ended, with all that it started: `az` and `gcloud` are scripts."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # another thread waits for it
                os.killpg(self.pid, sig)


def tame(*metadata: str) -> None:
    """Make every child of an SDK a `Child`, bound its answers, and keep its logs and warnings off stderr.

    Metadata servers are asked directly, whatever HTTPS_PROXY says; `metadata` adds URLs or hosts of such servers. An
    empty variable counts as unset, for SDKs as for us.
    Call it before the SDK is imported: botocore binds `subprocess.Popen` then.
    """
    import logging
    import warnings

    from ._answers import bound

    bound()
    subprocess.Popen = Child  # type: ignore[misc]  # no SDK but botocore lets its caller choose
    logging.lastResort = None
    logging.raiseExceptions = False
    warnings.simplefilter("ignore")
    # Their session does not end with the terminal's.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    for name in [name for name, text in os.environ.items() if not text]:
        del os.environ[name]  # SDKs take an empty AWS_PROFILE or AZURE_REGIONAL_AUTHORITY_NAME for set
    hosts = [url.partition("://")[2].partition("/")[0] if "://" in url else url for url in metadata]
    rules = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    if rules.strip() != "*":  # which is understood alone only
        # Both spellings: SDKs read either one first.
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = ",".join([rules, METADATA, *hosts]).strip(",")


def _end(number: int, _: object) -> None:
    if _starting:
        Child.ended_by = number
        return
    if number == signal.SIGINT:
        raise KeyboardInterrupt  # which is told, and ends children, too
    end_children()
    os._exit(128 + number)


def end_children() -> None:
    """Kill every child that still runs, with all that it started."""
    for child in _started:
        child.kill()
