"""Steps of the doctor at the cluster: is it one to hand the credential to, does it accept it, what may its user do."""

from __future__ import annotations

import json
import ssl
import time
from email.utils import parsedate_to_datetime

from execcred._errors import ExecCredError, TryAgain, printable
from execcred._protocol import jwt_claims
from execcred._urls import matches, shown

from ._checks_identity import clock_problems
from ._diagnosis import Problem, Seen
from ._entries import mapping, rows, strings
from ._facts import CLOUDS, SUBJECTS
from ._peers import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from execcred.http import Response

    from ._diagnosis import Case

LIMIT = 4 << 20
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
ANONYMOUS = "system:anonymous"
BY_PLUGIN = {
    "eks": "map the caller in the cluster: aws eks create-access-entry --cluster-name … --principal-arn …,"
    " or mapRoles in the ConfigMap aws-auth; the signed cluster name must be the cluster's own",
    "gke": "the identity needs container.clusters.connect (roles/container.clusterViewer) in the cluster's project",
    "aks": "the cluster must use Entra ID of the token's tenant, and its server id must be the token's audience",
    "secretreader": "the token is another cluster's, deleted or expired: renew it in the Secret",
    "kubeconfig-secretreader": "the credential is another cluster's, deleted or expired: renew it in the Secret",
}


def server(case: Case) -> Seen:
    """Decide whether the server is one that the credential may go to, and set up the connection."""
    patterns, by = _patterns(case)
    if hasattr(case, "plain"):
        where = f"https://{case.plain.url.authority}"
        _allow(where, patterns, by)
        case.server = case.plain
        return Seen(f"{where}, {_by(by)}", {"server": where, "allowServer": by})
    cluster = case.spec.cluster
    details = {
        "server": shown(cluster.server),
        "allowServer": by,
        "tlsServerName": cluster.tls_server_name,
        "proxy": shown(cluster.proxy_url) if cluster.proxy_url else "",
        "verified": not cluster.insecure_skip_tls_verify,
    }
    _allow(cluster.server, patterns, by)
    if cluster.proxy_url:  # whoever names the proxy names the CA, too, and could read along
        _allow(cluster.proxy_url, patterns, by, https=False)
    problems = [_unverified(case)] if cluster.insecure_skip_tls_verify else []
    if not any(each.exit_status for each in problems):
        case.server, _ = connect(cluster, case.credential, case.source, case.env)
    return Seen(f"{details['server']}, {_by(by)}", details, problems)


def _allow(url: str, patterns: tuple[str, ...], by: str, https: bool = True) -> None:
    if patterns and not matches(url, patterns, https):
        raise ExecCredError(
            "server-refused",
            f"{shown(url)} is not in {by}: it is not handed the credential",
            "correct server or proxy-url, or add the host to --allow-server",
        )


def _by(by: str) -> str:
    return "no --allow-server is set" if by == "unset" else f"allowed by {by}"


def _patterns(case: Case) -> tuple[tuple[str, ...], str]:
    """Return the patterns that the server must match and who gave them; () when nobody did."""
    own = case.settings.items("allow-server")
    if own:
        return own, "--allow-server of this command"
    if not hasattr(case, "entry"):
        return (), "unset"
    given = case.entry.line.admin.get("allow-server", "")
    if given:
        return tuple(each.strip() for each in given.split(",")), "--allow-server of the plugin"
    if case.from_profile and case.entry.plugin in CLOUDS:
        # The profile's author chose the server, and the token opens more than this cluster.
        known = SUBJECTS[case.entry.plugin].settings["allow-server"]
        return tuple(known.split(",")), f"the hosts that {case.entry.plugin} gives to clusters"
    return (), "unset"


def _unverified(case: Case) -> Problem:
    return Problem(
        "server-unverified",
        "insecure-skip-tls-verify: whoever answers could take the credential"
        + ("; it is not sent to a server that a ClusterProfile names so" if case.from_profile else ""),
        "give certificate-authority-data instead",
        1 if case.from_profile else 0,
    )


# --- does it accept it ---


def accepted(case: Case) -> Seen:
    """Ask the cluster who we are: SelfSubjectReview, which every authenticated user may."""
    case.env.step = f"asking {case.server.url.authority} who we are"
    body = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    response = ask(case, REVIEW, body)
    case.skew = _skew(response)
    if response.status in (200, 201):
        info = mapping(mapping(_json(case, response).get("status")).get("userInfo"))
        user, groups = (
            printable(str(info.get("username") or "")),
            [printable(each) for each in strings(info.get("groups"))],
        )
        if user == ANONYMOUS:
            raise _refused(case, "the cluster takes us for anonymous: it did not look at the credential")
        case.accepted, case.user = True, user
        details = {"user": user, "groups": groups}
        return Seen(f"the cluster accepts it: user {user}, groups {', '.join(groups) or 'none'}", details)
    if response.status in (403, 404) and ANONYMOUS.encode() not in response.body:
        return _by_version(case)
    raise _failure(case, response.status)


def _by_version(case: Case) -> Seen:
    """Ask for the version: an older cluster, or one that forbids the review, tells only that it accepts."""
    response = ask(case, "/version")
    if response.status not in (200, 403):
        raise _failure(case, response.status)
    case.accepted = True
    text = "the cluster accepts it, and does not say as whom (SelfSubjectReview needs Kubernetes 1.28)"
    return Seen(text, {"user": "", "groups": []})


def _failure(case: Case, status: int) -> ExecCredError:
    where = case.server.url.authority
    if status in (401, 403):
        return _refused(case, f"{where} answered {status}: the cluster does not accept the credential")
    if status == 429 or status >= 500:
        return TryAgain("cluster-error", f"{where} answered {status}", "try again; look at the cluster's API server")
    return _bad_answer(case, f"answered {status}" + ("; redirects are not followed" if status < 400 else ""))


def _refused(case: Case, what: str) -> ExecCredError:
    clock = clock_problems(case)
    plugin = case.entry.plugin if hasattr(case, "entry") else ""
    hint = clock[0].hint if clock else BY_PLUGIN.get(plugin) or _by_token(case)
    more = f"; {clock[0].message}" if clock else f"; it is {case.user}" if case.user else ""
    return ExecCredError("cluster-unauthorized", what + more, hint)


def _by_token(case: Case) -> str:
    claims = jwt_claims(case.credential.token)
    if claims:
        return "see that the API server trusts the token's issuer and audience, and that its user was not deleted"
    return "renew the credential; a token or certificate of another cluster is refused just so"


def _bad_answer(case: Case, what: str) -> ExecCredError:
    hint = "check that the server URL is a Kubernetes API server's; a proxy or login page may have answered"
    return ExecCredError("cluster-bad-answer", f"{case.server.url.authority} {what}", hint)


def _skew(response: Response) -> float | None:
    """Return how far the server's clock is ahead, in seconds; its Date has whole ones."""
    try:
        date = parsedate_to_datetime(response.headers.get("date", "")).timestamp()
    except (ValueError, OverflowError):
        return None
    skew = date + 0.5 - time.time()
    return skew if abs(skew) > 1 else 0.0


# --- what may it do ---


def permissions(case: Case) -> Seen:
    """Ask what we may do; to be accepted and allowed nothing is the most common half of a set-up."""
    body = {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"namespace": case.namespace},
    }
    response = ask(case, RULES, body)
    if response.status not in (200, 201):
        return Seen("the cluster does not tell what its user may do", {"complete": False, "rules": None})
    status = mapping(_json(case, response).get("status"))
    own = [rule for rule in rows(status.get("resourceRules")) if not _everybodys(rule)]
    complete = status.get("incomplete") is not True
    details = {"complete": complete, "rules": len(own)}
    if own or not complete:
        more = "" if complete else "; an authorizer beside RBAC may allow more"
        return Seen(f"{len(own)} rules beyond everybody's allow it something{more}", details)
    nobody = Problem(
        "permissions-none",
        f"the cluster knows {case.user or 'the user'}, and allows it nothing in all namespaces or in {case.namespace}",
        "bind a Role or ClusterRole to the user or one of its groups, as the step `accepted` names them",
    )
    return Seen("", details, [nobody])


def _everybodys(rule: dict[str, Any]) -> bool:
    return all(each.startswith("selfsubject") for each in strings(rule.get("resources")))


# --- asking ---


def ask(case: Case, path: str, body: dict[str, Any] | None = None) -> Response:
    """Send one GET, or a POST of `body`, with the credential.

    Raises ExecCredError("cluster-tls" | "cluster-bad-answer"), TryAgain("cluster-unreachable").
    """
    where = case.server.url.authority
    headers = {"Accept": "application/json", "User-Agent": "execcred"}
    if case.credential.token:
        headers["Authorization"] = f"Bearer {case.credential.token}"
    try:
        if body is None:
            return case.env.get(case.server, path, headers, LIMIT)
        headers["Content-Type"] = "application/json"
        return case.env.post(case.server, path, headers, LIMIT, json.dumps(body).encode())
    except ssl.SSLCertVerificationError as error:
        raise ExecCredError(
            "cluster-tls",
            f"{where} shows a certificate that is not trusted: {error.verify_message}",
            "correct certificate-authority-data or tls-server-name of the cluster",
        ) from None
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        raise TryAgain("cluster-unreachable", f"{where} closed the connection", "check network and proxy") from None
    except ssl.SSLError as error:
        raise ExecCredError("cluster-tls", f"{where}: TLS fails: {error.reason}", "correct the server URL") from None
    except TimeoutError:
        hint = "check network, firewall and proxy, or raise --timeout"
        raise TryAgain("cluster-unreachable", f"{where} did not answer in time", hint) from None
    except OSError as error:
        text = printable(error.strerror or str(error))
        hint = "check network, DNS and proxy: a private endpoint is reached from its own network only"
        raise TryAgain("cluster-unreachable", f"{where} cannot be reached: {text}", hint) from None
    except ValueError as error:
        raise _bad_answer(case, f"gave no answer of Kubernetes: {error}") from None


def _json(case: Case, response: Response) -> dict[str, Any]:
    try:
        return mapping(json.loads(response.body))
    except (ValueError, RecursionError):
        raise _bad_answer(case, "gave an answer that is not JSON") from None
