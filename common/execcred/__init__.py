"""The shared layer of the exec credential plugins: what a plugin may use, and nothing else."""

from __future__ import annotations

from ._env import Env
from ._errors import BadRequest, ExecCredError, LoginNeeded, TryAgain
from ._protocol import Cluster, Credential, Request
from ._run import Plugin, run
from ._settings import ADMIN, PROFILE, Setting, Settings
from ._version import __version__

__all__ = [
    "ADMIN",
    "PROFILE",
    "BadRequest",
    "Cluster",
    "Credential",
    "Env",
    "ExecCredError",
    "LoginNeeded",
    "Plugin",
    "Request",
    "Setting",
    "Settings",
    "TryAgain",
    "__version__",
    "run",
]
