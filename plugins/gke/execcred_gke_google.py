"""Tokens through google-auth: which of its classes serves a credential file, and how it reaches the network."""

from __future__ import annotations

import os
import time

from execcred import BadRequest, ExecCredError, TryAgain
from execcred._clock import clock_skew, clock_told
from execcred._errors import library_missing, printable
from execcred_gke import SCOPES
from execcred_gke_errors import SKEW, refused, unexpected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from execcred import Env
    from execcred_gke import Entry, Identity

CA_FILES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
ALLOW_EXECUTABLES = "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"
# Type of credential file: module of google-auth, and constructor of its class Credentials.
CLASSES = {
    "service_account": ("google.oauth2.service_account", "from_service_account_info"),
    "authorized_user": ("google.oauth2.credentials", "from_authorized_user_info"),
    "impersonated_service_account": ("google.auth.impersonated_credentials", "from_impersonated_service_account_info"),
    "external_account_authorized_user": ("google.auth.external_account_authorized_user", "from_info"),
    "external_account": ("google.auth.identity_pool", "from_info"),
    "executable": ("google.auth.pluggable", "from_info"),
    "aws": ("google.auth.aws", "from_info"),
}


def token_of(identity: Identity) -> Entry:
    """Return the token of a credential file or of an impersonated account, and its true end.

    Raises ExecCredError, TryAgain, LoginNeeded, BadRequest.
    """
    env = identity.env
    env.doing("loading google-auth")
    env.tame(identity.settings.text("metadata-host"))
    # The transport below shows no client certificate, so google-auth must not choose IAM's host for those that do.
    os.environ["GOOGLE_API_USE_CLIENT_CERTIFICATE"] = "false"
    source = _load(identity) if identity.info else _attached(identity)
    wanted = identity.settings.text("universe-domain")
    if wanted not in ("", source.universe_domain):
        told = f"the credential's is {printable(source.universe_domain, 60)}, {printable(wanted, 60)} is asked for"
        raise BadRequest("universe-mismatch", f"another universe: {told}", "correct --universe-domain or the file")
    if quota := identity.settings.text("quota-project"):
        source = source.with_quota_project(quota)
    credentials = _impersonated(identity, source) if identity.chain else source
    transport = Transport(identity)
    if "executable" in identity.subject:
        env.doing(f"running the executable of {identity.where}")
    try:
        credentials.refresh(transport)
    except ExecCredError:
        raise
    except Exception as error:
        raise unexpected(identity, error, transport.asked, transport.place) from None
    return _entry(credentials, transport, env)


def _entry(credentials: Any, transport: Transport, env: Env) -> Entry:
    """Take token and end out of the SDK's object, whose times are naive UTC."""
    from datetime import UTC

    end = credentials.expiry.replace(tzinfo=UTC).timestamp() if credentials.expiry else None
    if not isinstance(credentials.token, str) or not credentials.token:
        raise ExecCredError("answer-invalid", "Google's answer holds no token", "check token_uri or token_url")
    if end is not None and end <= env.now() and abs(transport.skew) > SKEW:
        raise ExecCredError("clock-wrong", f"the token is over already: {clock_told(transport.skew)}", "set the clock")
    return {"token": credentials.token}, end


# --- credentials ---


def _load(identity: Identity) -> Any:
    """Return google-auth's object for the credential file, scoped."""
    from importlib import import_module

    kind = identity.type
    if "executable" in identity.subject:
        kind = "executable"
        if identity.env.variables.get(ALLOW_EXECUTABLES) != "1":
            raise ExecCredError(
                "executable-not-allowed",
                f"{identity.where} wants to run a program, which is not allowed",
                f"set {ALLOW_EXECUTABLES}=1 in the environment if you trust that file",
            )
    elif "environment_id" in identity.subject:
        kind = "aws"
    module, constructor = CLASSES[kind]
    # A workforce login has no say in its scopes: consent gave them.
    scoped = {} if kind == "external_account_authorized_user" else {"scopes": list(SCOPES)}
    try:
        return getattr(import_module(module).Credentials, constructor)(identity.info, **scoped)
    except ImportError as error:
        raise library_missing(error) from None
    except Exception:  # whatever the SDK stumbles over in the file
        raise identity.bad(f"is a {identity.type} that google-auth cannot use") from None


def _attached(identity: Identity) -> Any:
    """Return the metadata server's token as a source to impersonate from."""
    from google.oauth2.credentials import Credentials

    from execcred_gke_metadata import Metadata

    metadata = Metadata(identity.settings, identity.env)
    universe = identity.settings.text("universe-domain") or metadata.universe()
    if not universe.isascii() or universe.strip("abcdefghijklmnopqrstuvwxyz0123456789.-"):
        raise ExecCredError("metadata-invalid", f"{metadata.named} names a universe that is no domain", "check it")
    return Credentials(  # type: ignore[no-untyped-call]
        token=metadata.token()[0]["token"], universe_domain=universe
    )


def _impersonated(identity: Identity, source: Any) -> Any:
    from google.auth.impersonated_credentials import Credentials

    *delegates, target = identity.chain
    return Credentials(  # type: ignore[no-untyped-call]
        source,
        target_principal=target,
        target_scopes=list(SCOPES),
        # The API wants this form for delegates, and google-auth passes on what it is given.
        delegates=[f"projects/-/serviceAccounts/{each}" for each in delegates],
        lifetime=int(identity.lifetime),
    )


# --- the network ---


class Transport:
    """google-auth's own transport, kept to our deadline, CA files and proxy; it explains what was refused, by whom."""

    def __init__(self, identity: Identity) -> None:
        import requests
        from google.auth.transport.requests import Request

        self.identity, self.env = identity, identity.env
        self.skew = 0.0  # of this machine's clock, in seconds, positive when it is ahead
        self.asked = self.place = ""  # who was asked last, as REFUSALS has it and in words
        self.proxy = ""  # host:port
        self.session = requests.Session()
        self.session.trust_env = False  # no .netrc, no proxy but those below
        self.session.max_redirects = 0
        files = [(name, self.env.variables[name]) for name in CA_FILES if self.env.variables.get(name)]
        self.ca, self.session.verify = files[0] if files else ("", True)
        self._send = Request(self.session)

    def __call__(
        self, url: str, method: str = "GET", body: Any = None, headers: Any = None, timeout: Any = None, **kwargs: Any
    ) -> Any:
        """Send a request for google-auth; raises ExecCredError and its kinds for every answer but a good one."""
        from google.auth.exceptions import TransportError

        host, proxy = self._host_and_proxy(url)
        self.asked, self.place = self._asked(url, host)
        proxies = {"https": proxy} if proxy else None
        for last in (False, True):
            self.env.doing(f"asking {self.place}")
            left = max(self.env.remaining() - 0.3, 0.1)
            left = min(left, timeout) if isinstance(timeout, int | float) else left
            try:
                answer = self._send(url, method, body, headers, left, proxies=proxies, **kwargs)
            except (TransportError, OSError) as error:
                raise self._unreachable(host, error.__cause__ or error) from None
            self.skew = clock_skew(answer.headers.get("date"), self.env.now()) or self.skew
            if answer.status < 500 or last or self.env.remaining() < 1.5:
                break
            time.sleep(0.3 + time.monotonic_ns() % 1000 / 2000)  # jitter
        if answer.status >= 300:
            raise refused(self.asked, self.place, answer.status, answer.data, self.skew)
        return answer

    def _host_and_proxy(self, url: str) -> tuple[str, str]:
        """Return host and proxy of a URL; plain http is metadata and the like, which no proxy has to see."""
        from execcred._urls import env_proxy, parse_url

        try:
            parsed = parse_url(url)
        except ValueError:
            parsed = None
        if parsed is None or parsed.userinfo:
            raise self.identity.bad("holds a URL that is none")
        proxy = env_proxy(parsed, self.env.variables) if parsed.scheme == "https" else ""
        try:
            self.proxy = parse_url(proxy).authority if proxy else ""
        except ValueError:
            raise BadRequest(
                "proxy-invalid", "variable HTTPS_PROXY is no http URL", "write it like http://HOST:PORT"
            ) from None
        return parsed.host, proxy

    def _asked(self, url: str, host: str) -> tuple[str, str]:
        """Return who is asked, as REFUSALS has it and in words."""
        info = self.identity.info
        if ":generateAccessToken" in url:
            account = url.rpartition("/")[2].partition(":")[0]
            return "iam", f"IAM at {host} for a token of {printable(account, 100)}"
        if self.identity.type == "external_account":
            if url == info["token_url"]:
                return "sts", f"the token exchange at {host}"
            return "subject", f"the source of the subject token at {host}"
        nested = info.get("source_credentials")
        kind = nested.get("type") if isinstance(nested, dict) else self.identity.type
        return str(kind), f"the token endpoint at {host}"

    def _unreachable(self, host: str, error: BaseException) -> ExecCredError:
        from requests import exceptions

        place = self.place
        used = f"{self.ca}={self.session.verify}" if self.ca else "the CA certificates of Python's certifi"
        if isinstance(error, exceptions.SSLError):
            return ExecCredError(
                "tls-untrusted",
                f"asking {place}: the certificate of {host} is not trusted by {used}",
                "behind a proxy that inspects TLS, set REQUESTS_CA_BUNDLE or SSL_CERT_FILE to a file with its CA",
            )
        if isinstance(error, exceptions.ProxyError):
            hint = "check HTTPS_PROXY and NO_PROXY"
            return TryAgain("proxy-failed", f"asking {place}: the proxy {self.proxy} does not connect", hint)
        if isinstance(error, exceptions.Timeout):
            return TryAgain("unreachable", f"asking {place}: no answer in time", "try again, or raise --timeout")
        if isinstance(error, exceptions.TooManyRedirects):
            return ExecCredError("answer-invalid", f"asking {place}: it redirects", "check the URL and the proxy")
        if not isinstance(error, exceptions.RequestException):
            return ExecCredError("ca-file", f"{printable(used)} cannot be used", "name a PEM file of CA certificates")
        return TryAgain(
            "unreachable", f"asking {place}: {host} cannot be reached", "check DNS, network policy and HTTPS_PROXY"
        )
