"""`execcred doctor`: walks the way from a context, or a ClusterProfile, to the cluster, and says where it ends."""

from __future__ import annotations

from execcred._errors import BadRequest, printable

from . import _checks as checks
from . import _checks_identity as who
from . import _checks_server as there
from ._diagnosis import Case, Step, examine, report
from ._options import OUTPUT, option, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from execcred import Env

TABLE = (
    option("kubeconfig", "the context's, or with --clusterprofile the hub's; else KUBECONFIG, ~/.kube/config"),
    option("context", "context of that kubeconfig; else the current one"),
    option("provider-file", "look at a ClusterProfile, by the provider file of its controller"),
    option("clusterprofile", "name on the hub, or a file with one"),
    option("namespace", "of the ClusterProfile; else the hub's own"),
    option("allow-server", "hand the credential to these servers only: host globs (* crosses dots) or CIDRs", "list"),
    option("timeout", "limit for each step", "seconds", default=20.0),
    OUTPUT,
)
USAGE = "doctor [--kubeconfig FILE] [--context NAME] | --provider-file FILE --clusterprofile NAME|FILE [flags]"
OF_CONTEXT = (Step("context", (), checks.context),)
OF_PROFILE = (
    Step("hub", (), checks.hub),
    Step("profile", ("origin",), checks.profile),
    Step("provider", ("document",), checks.provider),
)
REST = (
    Step("config", ("entry", "spec"), checks.config),
    Step("command", ("spec",), checks.command),
    Step("credential", ("runnable",), checks.credential),
    Step("identity", ("credential",), who.identity),
    Step("server", ("credential",), there.server),
    Step("accepted", ("server", "credential"), there.accepted),
    Step("expiry", ("credential",), who.expiry),
    Step("permissions", ("accepted",), there.permissions),
)


def answer(arguments: Sequence[str], env: Env) -> tuple[str, int]:
    """Return the report, and the exit status of the first problem that broke the chain, 0 when nothing did.

    Raises BadRequest("usage" | "setting-invalid").
    """
    settings, words, help_text = parse(USAGE, TABLE, arguments)
    if help_text:
        return help_text, 0
    profile = settings.text("clusterprofile")
    if words or bool(profile) != bool(settings.text("provider-file")):
        hint = "give both for a ClusterProfile, none for a context; see execcred doctor --help"
        raise BadRequest("usage", "--provider-file and --clusterprofile belong together, and words to neither", hint)
    case = Case(settings, env)
    asked = printable(profile or settings.text("context"), 300)
    case.source = f"ClusterProfile {asked}" if profile else f"context {asked or '(the current one)'}"
    results = examine(case, (*(OF_PROFILE if profile else OF_CONTEXT), *REST))
    return report(case.source, results, settings.text("output"))
