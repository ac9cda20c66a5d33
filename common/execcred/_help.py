"""The texts of --help and --version, from the plugin's settings."""

from __future__ import annotations

from ._settings import shown_default
from ._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._run import Plugin
    from ._settings import Setting


def version_text(plugin: Plugin) -> str:
    """Return what --version prints."""
    return f"{plugin.name}-plugin {__version__}\n"


def help_text(plugin: Plugin) -> str:
    """Return what --help prints."""
    lines = [
        f"usage: {plugin.name}-plugin [flags]",
        "",
        plugin.summary,
        "A Kubernetes client runs it with KUBERNETES_EXEC_INFO set; by hand, give flags.",
        "Flags beat variables, both beat the ClusterProfile's config (marked *; + only if an --allow flag says so).",
        "What stands behind --profile-args counts as the profile's.",
        "Exit status: 1 change something, 2 bad request, 3 try again, 4 a person must log in.",
        "",
    ]
    return "\n".join([*lines, *[_row(setting) for setting in plugin.settings]]) + "\n"


def _row(setting: Setting) -> str:
    value = "" if setting.kind == "flag" else " " + ("|".join(setting.choices) or setting.kind.upper())
    mark = {"profile": "*", "admin": ""}.get(setting.trust, "+")
    default = f" (default {text})" if (text := shown_default(setting)) else ""
    variables = f" [{', '.join(setting.env)}]" if setting.env else ""
    return f"  --{setting.name}{value}{mark}\n        {setting.help}{default}{variables}"
