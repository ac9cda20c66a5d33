"""Steps of the doctor that look into a credential: as whom, until when. No signature is verified: servers do that."""

from __future__ import annotations

import json
import re
import time
from itertools import pairwise
from typing import NamedTuple

from execcred._errors import ExecCredError, TryAgain, printable
from execcred._protocol import base64url, claimed_time, jwt_claims, rfc3339, token_end
from execcred._x509 import leaf_end, leaf_fields

from ._diagnosis import Problem, Seen, problem
from ._entries import mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._diagnosis import Case

EKS_PREFIX = "k8s-aws-v1."
NAMES = ("preferred_username", "upn", "unique_name", "email", "sub")
CLOCK = ("SignatureDoesNotMatch", "RequestExpired", "ExpiredToken")
SKEW = 30.0  # seconds: what a lease, an STS signature and a token's `nbf` still forgive


def identity(case: Case) -> Seen:
    """Say as whom the credential speaks, from what it holds itself; for EKS, ask STS as the cluster would."""
    token, certificate = case.credential.token, case.credential.certificate
    seen = _of_token(case, token) if token else Seen("", {})
    if not certificate:
        return seen
    subject = [pair for part in leaf_fields(certificate)["subject"] for pair in part]
    user = next((value for name, value in subject if name == "commonName"), "")
    groups = [value for name, value in subject if name == "organizationName"]
    text = f"a client certificate of user {user}, groups {', '.join(groups) or 'none'}"
    case.user = case.user or user
    details = {"type": "certificate", "user": user, "groups": groups, **seen.details}
    return Seen("; ".join([each for each in (seen.text, text) if each]), details, seen.problems)


def _of_token(case: Case, token: str) -> Seen:
    if token.startswith(EKS_PREFIX):
        return _of_presigned(case, token)
    claims = jwt_claims(token)
    if claims:
        return _of_claims(case, claims)
    kind = "an access token of Google" if token.startswith("ya29.") else "an opaque token"
    return Seen(f"{kind}: only its issuer can tell whose it is", {"type": "opaque"})


# --- JWTs ---


def _of_claims(case: Case, claims: dict[str, Any]) -> Seen:
    account = mapping(claims.get("kubernetes.io"))
    subject = _text(claims.get("sub"))
    user = next((_text(claims[name]) for name in NAMES if _text(claims.get(name))), "")
    case.user = user
    audience = claims.get("aud")
    groups = claims.get("groups")
    details: dict[str, Any] = {
        "type": "service account" if account or subject.startswith("system:serviceaccount:") else "jwt",
        "user": user,
        "subject": subject,
        "issuer": _text(claims.get("iss")),
        "audience": [_text(each) for each in audience] if isinstance(audience, list) else [_text(audience)],
        "tenant": _text(claims.get("tid")),
        "client": _text(claims.get("appid")) or _text(claims.get("azp")),
        "groups": len(groups) if isinstance(groups, list) else None,
    }
    told = [f"{details['type']} {user or 'without a name'}", f"issuer {details['issuer'] or 'none'}"]
    told += [f"audience {', '.join(details['audience'])}"] if any(details["audience"]) else []
    told += [f"{name} {details[name]}" for name in ("tenant", "client") if details[name]]
    told += [f"{details['groups']} groups"] if details["groups"] is not None else []
    return Seen(", ".join(told), details, [each for each in (_overage(claims), _early(claims)) if each])


def _text(value: Any) -> str:
    return printable(value) if isinstance(value, str) else ""


def _overage(claims: dict[str, Any]) -> Problem | None:
    """Entra ID leaves out the groups of a user in more than 200, and says so."""
    from execcred_aks import groups_left_out

    if not groups_left_out(claims):
        return None
    return Problem(
        "groups-overage",
        "the user is in more groups than the token can name: it names none, so roles of groups do not count",
        "bind roles to the user itself, or let the application emit only groups assigned to it",
    )


def _early(claims: dict[str, Any]) -> Problem | None:
    starts = max([claimed_time(claims, name) or 0.0 for name in ("nbf", "iat")])
    ahead = starts - time.time()
    if ahead <= SKEW:
        return None
    return problem(_skewed(f"the token starts in the future, at {rfc3339(starts)}"), fatal=False)


def _skewed(what: str) -> ExecCredError:
    return TryAgain("clock-skew", what, "correct this machine's clock: timedatectl status")


# --- EKS ---


class Presigned(NamedTuple):
    """The parts of an EKS token: the URL is a secret, the rest is not."""

    url: str
    host: str
    region: str
    temporary: bool


def presigned(token: str) -> Presigned | None:
    """Take an EKS token apart; None when it holds no presigned URL of STS."""
    try:
        url = base64url(token.removeprefix(EKS_PREFIX)).decode("ascii")
    except ValueError:
        return None
    host = re.match(r"https://([a-z0-9.-]+)/\?", url)
    scope = re.search(r"X-Amz-Credential=([A-Z0-9]+)(?:%2F|/)\d{8}(?:%2F|/)([a-z0-9-]+)(?:%2F|/)sts", url)
    return Presigned(url, host[1], scope[2], scope[1].startswith("ASIA")) if host and scope else None


def _of_presigned(case: Case, token: str) -> Seen:
    parts = presigned(token)
    if parts is None:
        broken = Problem("token-invalid", "it is no presigned URL of STS", "look at what made it", 1)
        return Seen("an EKS token", {"type": "eks"}, [broken])
    case.keep(parts.url, *re.findall(r"X-Amz-(?:Signature|Security-Token)=([^&]+)", parts.url))
    details: dict[str, Any] = {"type": "eks", "host": parts.host, "region": parts.region, "arn": "", "account": ""}
    text = f"an EKS token of {parts.host}, signed with {'temporary' if parts.temporary else 'long-term'} keys"
    try:
        caller = _caller(case, parts)
    except ExecCredError as error:
        return Seen(text, details, [problem(error, fatal=error.code == "identity-refused")])
    details |= {"arn": printable(str(caller.get("Arn"))), "account": printable(str(caller.get("Account")))}
    case.user = details["arn"]
    return Seen(f"{text}, is {details['arn']}", details)


def _caller(case: Case, parts: Presigned) -> dict[str, Any]:
    """Ask STS whose token it is, exactly as the cluster does with every token: it changes nothing.

    Raises ExecCredError("identity-refused"), TryAgain("identity-unknown").
    """
    import ssl

    from execcred._urls import env_proxy, parse_url
    from execcred.http import Server
    from execcred_eks_sign import sts_host

    unknown = "the caller is not known: "
    if parts.host not in ("sts.amazonaws.com", sts_host(parts.region), sts_host(parts.region, fips=True)):
        raise TryAgain("identity-unknown", f"{unknown}{parts.host} is no STS of AWS", "give the region's own STS")
    cluster = cluster_name(case)
    if not cluster:
        raise TryAgain("identity-unknown", f"{unknown}the cluster's name is signed, and not told", "give it by flag")
    case.env.step = f"asking {parts.host} whose token it is"
    url = parse_url(parts.url.partition("?")[0])
    proxy = env_proxy(url, case.env.variables)
    context = ssl.create_default_context()
    headers = {"Accept": "application/json", "x-k8s-aws-id": cluster, "User-Agent": "execcred"}
    try:
        server = Server(url, context, proxy=parse_url(proxy) if proxy else None)
        response = case.env.get(server, "/?" + parts.url.partition("?")[2], headers, 1 << 16)
    except (OSError, ValueError) as error:
        why = printable(getattr(error, "strerror", None) or str(error))
        hint = "nothing to do if the cluster accepts the token; else check network and proxy"
        raise TryAgain("identity-unknown", f"{unknown}{parts.host}: {why}", hint) from None
    answer = _answered(response.body)
    if response.status == 200:
        return mapping(mapping(answer.get("GetCallerIdentityResponse")).get("GetCallerIdentityResult"))
    code = mapping(answer.get("Error")).get("Code") or answer.get("__type") or response.status
    clock = "check this machine's clock, and the keys" if str(code) in CLOCK else ""
    hint = clock or "renew the AWS credentials that the plugin uses"
    told = f"STS refuses the token ({printable(str(code), 60)}), and so will the cluster"
    raise ExecCredError("identity-refused", told, hint)


def _answered(body: bytes) -> dict[str, Any]:
    try:
        return mapping(json.loads(body))
    except (ValueError, RecursionError):
        return {}


def cluster_name(case: Case) -> str:
    """Return the cluster's name as the plugin signs it: by a flag, of ours or of AWS's tools, or from the config."""
    if not hasattr(case, "spec"):
        return ""
    spec = case.spec
    config = mapping(json.loads(spec.config))
    found = next((config[key] for key in ("clusterName", "clusterId") if isinstance(config.get(key), str)), "")
    words = [part for word in spec.args for part in word.split("=", 1)]
    for flag, value in pairwise(words):
        if flag.lstrip("-") in ("cluster-name", "cluster-id", "cluster", "i") and flag.startswith("-"):
            found = value
    return str(found).rpartition("/")[2] if str(found).startswith("arn:") else str(found)


# --- until when ---


def expiry(case: Case) -> Seen:
    """Say when the credential ends, when clients ask again, and whether the clocks agree."""
    now, credential = time.time(), case.credential
    ends = [token_end(credential.token)] if credential.token else []
    if credential.certificate:
        ends.append(leaf_end(credential.certificate, credential.key, now))
    known = [end for end in (*ends, credential.expires) if end is not None]
    end, again = min(known) if known else None, credential.expires
    true_end = min([each for each in ends if each is not None], default=end)
    details = {
        "ends": rfc3339(true_end) if true_end else None,
        "secondsLeft": round(true_end - now) if true_end else None,
        "renewedAt": rfc3339(again) if again else None,
        "clockSkewSeconds": None if case.skew is None else round(case.skew),
    }
    told = [f"ends at {details['ends']}, in {_span(true_end - now)}" if true_end else "tells no end"]
    told += [f"clients ask again at {details['renewedAt']}" if again else "clients keep it until a 401"]
    if case.skew is not None:
        told.append(f"the server's clock differs by {abs(case.skew):.0f} s")
    return Seen("; ".join(told), details, clock_problems(case))


def clock_problems(case: Case) -> list[Problem]:
    """Return what is wrong with this machine's clock, by the server's Date."""
    if case.skew is None or abs(case.skew) <= SKEW:
        return []
    way = "behind" if case.skew > 0 else "ahead of"
    return [problem(_skewed(f"this machine's clock is {_span(abs(case.skew))} {way} the server's"), fatal=False)]


def _span(seconds: float) -> str:
    minutes = round(seconds) // 60
    return f"{round(seconds)} s" if minutes < 3 else f"{minutes} min" if minutes < 180 else f"{minutes // 60} h"
