"""Exceptions of botocore and refusals of AWS in our words: code, exit status, what to do.

Texts of the SDK and of AWS never reach the reader: they may hold what a credential process or a proxy printed.
"""

from __future__ import annotations

import os

from execcred import ExecCredError, LoginNeeded, TryAgain
from execcred._clock import clock_told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = tuple[type[ExecCredError], str, str, str]

CA_VARIABLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
MAX_SKEW = 300.0  # seconds; AWS refuses signatures that are further off
UNREACHABLE = (TryAgain, "aws-unreachable", "{host} cannot be reached", "check network, DNS, proxy and VPC endpoint")
PROXY = (TryAgain, "proxy-unreachable", "the proxy cannot be reached", "check HTTPS_PROXY and NO_PROXY")
SSO = (LoginNeeded, "sso-login-needed", "its session is missing or over", "run: aws sso login{profile}")
LOGIN = (LoginNeeded, "aws-login-needed", "its session is missing or over", "run: aws login{profile}")
SETTINGS = (
    ExecCredError,
    "aws-config-invalid",
    "settings of the AWS profile are missing or do not fit together",
    "check role_arn, source_profile, credential_source, sso_session and web_identity_token_file of the profile",
)
# botocore's exceptions, by the name of the class or of a base; the most telling name wins.
EXCEPTIONS: dict[str, Row] = {
    "ProfileNotFound": (
        ExecCredError,
        "aws-profile-missing",
        "AWS profile {name} is not in the AWS config",
        "correct --profile or AWS_PROFILE, or point AWS_CONFIG_FILE to its file",
    ),
    "ConfigParseError": (ExecCredError, "aws-config-invalid", "{path} cannot be parsed", "correct the file"),
    "SSOError": SSO,
    "TokenRetrievalError": SSO,
    "LoginError": LOGIN,
    "RefreshWithMFAUnsupportedError": (LoginNeeded, "mfa-needed", "the MFA code was used up", "run it again"),
    "MissingDependencyException": (
        ExecCredError,
        "source-unsupported",
        "it needs a native library that is not installed",
        "use another source, or install botocore[crt] beside the plugin",
    ),
    "PartialCredentialsError": SETTINGS,
    "InvalidConfigError": SETTINGS,
    "NoRegionError": SETTINGS,
    "ProxyConnectionError": PROXY,
    "ProxyError": PROXY,
    "SSLError": (
        ExecCredError,
        "aws-tls",
        "{host} shows a certificate that is not trusted by {bundle}",
        "behind a proxy that inspects TLS, set AWS_CA_BUNDLE to a file with its CA",
    ),
    "ConnectionError": UNREACHABLE,
    "TimeoutError": UNREACHABLE,
    "HTTPClientError": UNREACHABLE,
    "ResponseParserError": (
        TryAgain,
        "aws-bad-answer",
        "what answered is not AWS",
        "a proxy or captive portal may have answered: check HTTPS_PROXY and the endpoint",
    ),
    "OSError": (
        ExecCredError,
        "aws-file-unreadable",
        "{path}: {reason}",
        "it must be there, and user {uid} able to read it; for projected tokens set fsGroup of the pod to its group",
    ),
    "RuntimeError": (TryAgain, "credentials-expired", "the credentials are over", "renew them at their source"),
}
# Anything else that a source does wrong, by source.
SOURCES: dict[str, Row] = {
    "custom-process": (
        ExecCredError,
        "credential-process-failed",
        "it failed, or what it prints is not the JSON of version 1",
        "run the command of the AWS profile by hand: it must exit 0 and print Version, AccessKeyId, SecretAccessKey",
    ),
    "container-role": (
        TryAgain,
        "container-credentials-failed",
        "it gives none",
        "look at the Pod Identity association and agent (or the ECS task role), and AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ),
    "iam-role": (
        TryAgain,
        "metadata-failed",
        "it gives none",
        "in containers raise the instance's metadata hop limit to 2 (HttpPutResponseHopLimit)",
    ),
    "": (ExecCredError, "source-failed", "it gives no usable credentials", "look at it with: aws configure list"),
}
KEYS = "check the keys; temporary ones also need AWS_SESSION_TOKEN"
# AWS's error codes.
REFUSALS: dict[str, Row] = {
    **dict.fromkeys(
        ("ExpiredToken", "ExpiredTokenException", "RequestExpired"),
        (TryAgain, "credentials-expired", "AWS answered {code}", "renew the credentials at their source"),
    ),
    **dict.fromkeys(
        ("InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "IncompleteSignature"),
        (ExecCredError, "credentials-refused", "AWS answered {code}", KEYS),
    ),
    **dict.fromkeys(
        ("InvalidIdentityToken", "IDPRejectedClaim", "IDPCommunicationError"),
        (
            ExecCredError,
            "web-identity-refused",
            "AWS answered {code}",
            "IAM needs an identity provider for this cluster's OIDC issuer, with audience sts.amazonaws.com",
        ),
    ),
    "RegionDisabledException": (
        ExecCredError,
        "region-disabled",
        "AWS answered {code}",
        "enable the region in the account, or STS in it",
    ),
    "UnauthorizedException": SSO,
}
GRANTS = {
    "AssumeRole": "grant the caller sts:AssumeRole on it, and let its trust policy allow caller and external id",
    "AssumeRoleWithWebIdentity": "let the role's trust policy allow this service account of this OIDC provider",
    "ListClusters": "grant eks:ListClusters, or give --cluster-name instead of --discover",
    "DescribeCluster": "grant eks:DescribeCluster, or give --cluster-name instead of --discover",
    "GetRoleCredentials": "check sso_account_id and sso_role_name of the profile, and the permission set's assignment",
}


def explain(error: BaseException, step: str, method: str = "", profile: str = "", host: str = "") -> ExecCredError:
    """Return our error for an exception that came up in `step`; `method` is botocore's name of the source."""
    names = [base.__name__ for base in type(error).__mro__]
    fields = _fields(error, profile, host)
    if "ClientError" in names:
        response = error.response  # type: ignore[attr-defined]  # a ClientError has it
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        row = _refusal(str(response.get("Error", {}).get("Code", "")), status, fields)
    elif names[-4:] == ["OSError", "Exception", "BaseException", "object"] and getattr(error, "filename", None) is None:
        row = next((EXCEPTIONS[name] for name in names if name in EXCEPTIONS and name != "OSError"), UNREACHABLE)
    else:
        row = next((EXCEPTIONS[name] for name in names if name in EXCEPTIONS), SOURCES.get(method, SOURCES[""]))
    return _error(row, step, fields)


def refused(code: str, status: int, operation: str, step: str) -> ExecCredError:
    """Return our error for an answer of AWS that came up in `step`."""
    fields = {**_fields(None, "", ""), "operation": operation}
    return _error(_refusal(code, status, fields), step, fields)


def clock_wrong(skew: float) -> ExecCredError | None:
    """Return an error if this machine's clock is `skew` seconds ahead of AWS's, and that is too much."""
    if abs(skew) <= MAX_SKEW:
        return None
    return ExecCredError("clock-wrong", clock_told(skew), "set the clock (NTP): AWS refuses what it signs")


def _error(row: Row, step: str, fields: dict[str, str]) -> ExecCredError:
    kind, code, what, hint = row
    return kind(code, f"{step}: {what.format_map(fields)}", hint.format_map(fields))


def _refusal(code: str, status: int, fields: dict[str, str]) -> Row:
    # A code is a word of the API reference; a proxy's page is none.
    fields["code"] = code if code.isascii() and code.isalnum() and len(code) < 60 else f"status {status}"
    if code in REFUSALS:
        return REFUSALS[code]
    if status == 429 or "Throttl" in code or code in ("TooManyRequestsException", "RequestLimitExceeded"):
        return TryAgain, "aws-throttled", "AWS answered {code}", "try again later; --cache-dir asks less often"
    if status >= 500:
        return TryAgain, "aws-error", "AWS answered {code}", "try again later"
    hint = GRANTS.get(fields["operation"], "look up this code in the AWS API reference")
    return ExecCredError, "aws-refused", "AWS answered {code} to {operation}", hint


def _fields(error: BaseException | None, profile: str, host: str) -> dict[str, str]:
    """Return what the texts may name: settings, files and hosts, never a message."""
    known: dict[str, Any] = getattr(error, "kwargs", {})
    bundle = next((f"{name}={os.environ[name]}" for name in CA_VARIABLES if os.environ.get(name)), "")
    return {
        "name": str(known.get("profile", "")),
        "path": str(known.get("path") or getattr(error, "filename", None) or "a file"),
        "host": host or host_of(str(known.get("endpoint_url", ""))),
        "reason": getattr(error, "strerror", None) or "cannot be read",
        "operation": str(getattr(error, "operation_name", "")),
        "profile": f" --profile {profile or os.environ.get('AWS_PROFILE', '')}".removesuffix(" --profile "),
        "bundle": bundle or "the built-in CA certificates",
        "uid": str(os.geteuid()),
        "code": "",
    }


def host_of(url: str) -> str:
    """Return host and port of a URL, without its path and the password that may stand before them."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2] or "the endpoint"
