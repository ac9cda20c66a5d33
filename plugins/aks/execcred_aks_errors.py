"""What the errors of azure-identity, Entra ID, az and azd mean: our codes, exit statuses and remedies.

Foreign texts are read for codes and known words, never shown: they may hold secrets.
"""

from __future__ import annotations

from execcred import ExecCredError, LoginNeeded, TryAgain
from execcred._clock import clock_skew, clock_told
from execcred._errors import printable
from execcred._protocol import jwt_claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from execcred_aks import Login

AUDIENCE = "api://AzureADTokenExchange"  # what a federated token is usually made for
SHARE = "share one token between clusters with --cache-dir"
FIX, RETRY, LOGIN = ExecCredError, TryAgain, LoginNeeded
# Codes of Entra ID (the number after AADSTS), kind of error, our code, what happened, what to do.
ENTRA: tuple[tuple[str, type[ExecCredError], str, str, str], ...] = (
    (
        "70021 700211 700212 700213 700231 700238 50013",
        FIX,
        "federated-credential-mismatch",
        "no federated credential of the application fits the federated token",
        "give the application or identity a federated credential with {claims}",
    ),
    ("700024", RETRY, "assertion-expired", "the assertion is over or not valid yet", "correct this machine's clock"),
    ("700016 7000112", FIX, "client-unknown", "the tenant has no such application", "check {identity}"),
    ("7000215", FIX, "client-secret-wrong", "the secret is another one's", "give its value, not its id: {identity}"),
    ("7000222", FIX, "client-secret-expired", "the client secret has expired", "make a new one: {identity}"),
    (
        "700027 700030 7000214 5000224",
        FIX,
        "client-certificate-refused",
        "the application does not know this certificate",
        "upload it to the application, or set --send-certificate-chain for trust by subject name and issuer",
    ),
    ("90002 900021 900023 50059", FIX, "tenant-unknown", "no such tenant", "is it in this --environment? {identity}"),
    ("500011 650057 70011", FIX, "server-id-unknown", "no such server id here", "leave --server-id out for AKS"),
    (
        "50076 50078 50079 50132 50133 50158 50173 65001 70008 70016 70019 70020 70043 700082 700084 16000 160021",
        LOGIN,
        "login-expired",
        "the sign-in is over, or a person must sign in again",
        "{login}",
    ),
    (
        "50057 50105 53000 53001 53002 53003 53004 530002 530003 530034",
        FIX,
        "access-blocked",
        "Conditional Access, a missing assignment or a disabled account blocks the sign-in",
        "ask the tenant's administrator to look into the sign-in log: {identity}",
    ),
    ("50196 90055", RETRY, "throttled", "Entra ID is throttling this client", SHARE),
    ("90006 90033 90036 90051 50199", RETRY, "server-error", "Entra ID has a passing fault", "try again"),
    ("", FIX, "entra-refused", "Entra ID refused", "look the code up; {identity}"),
)
# Class of an exception anywhere in the chain, kind of error, our code, what happened, what to do.
FAULTS: tuple[tuple[str, type[ExecCredError], str, str, str], ...] = (
    (
        "SSLCertVerificationError",
        FIX,
        "tls-untrusted",
        "the certificate shown is not trusted",
        "does a proxy inspect TLS? Put its CA, with the public ones, into a file and name it in SSL_CERT_FILE",
    ),
    ("ProxyError", RETRY, "proxy-failed", "the proxy failed or refused", "check HTTPS_PROXY and NO_PROXY"),
    ("NameResolutionError gaierror", RETRY, "network", "the host name cannot be resolved", "check DNS and the name"),
    ("SSLError", RETRY, "network", "the TLS handshake failed", "is it the right host and port?"),
    ("PermissionError", FIX, "file-unreadable", "a file cannot be read", "on Arc, the user must be in group himds"),
    ("ServiceRequestError ServiceResponseError OSError", RETRY, "network", "no answer came", "{network}"),
    (
        "DecodeError ValueError KeyError TypeError ArithmeticError",
        FIX,
        "answer-invalid",
        "the answer is not one of Entra ID",
        "is it the right host?",
    ),
    ("BaseException", FIX, "login-failed", "azure-identity gave up ({kind})", "try it with --log-level debug"),
)
# What az and azd write when they fail: words, kind of error, our code, what happened, what to do.
TOOLS: tuple[tuple[str, type[ExecCredError], str, str, str], ...] = (
    (
        "JSONDecodeError|Can't load|Expecting value|msal_token_cache|UnpicklingError",
        FIX,
        "tool-cache-corrupt",
        "{tool} cannot read its own token cache or profile",
        "run `az account clear` (azd: `azd auth logout`), then {login}",
    ),
    ("not found on path|could not be found", FIX, "tool-missing", "{tool} is not in PATH", "install it, or set PATH"),
    ("Please run '|az account set", LOGIN, "login-needed", "nobody is signed in to {tool}", "run {login}"),
    ("Unexpected output", FIX, "answer-invalid", "{tool} printed something else than a token", "try {by_hand}"),
    ("", FIX, "tool-failed", "{tool} failed", "see its message with {by_hand}"),
)
# What the SDK says when a person cannot be asked after all: words, kind of error, our code, what happened, what to do.
PERSON: tuple[tuple[str, type[ExecCredError], str, str, str], ...] = (
    ("open a browser|HTTP server", FIX, "browser-missing", "no browser can be opened here", "use --login devicecode"),
    ("Timed out", LOGIN, "login-expired", "nobody signed in in time", "{login}"),
)


class Wire:
    """Listens to the SDK's HTTP: names each host before it is asked, keeps what the last refusal said."""

    def __init__(self, login: Login) -> None:
        self.env, self.mode = login.env, login.mode
        self.status = 0
        self.codes: list[str] = []
        self.error = ""
        self.clock = ""

    def asks(self, request: Any) -> None:
        """Hear what the SDK is about to send."""
        from urllib.parse import urlsplit

        url = urlsplit(request.http_request.url)
        self.asking(url.hostname or "", url.port or {"http": 80}.get(url.scheme, 443))

    def asking(self, host: str, port: int) -> None:
        """Name the host for the deadline's error."""
        self.env.doing(f"asking {host}:{port} for a token ({self.mode})")

    def answers(self, response: Any) -> None:
        """Hear what the SDK was answered."""
        answer = response.http_response
        self.status, self.codes = answer.status_code, []
        if self.status >= 300:
            self.refused(self.status, answer.text(), {name.lower(): text for name, text in answer.headers.items()})

    def refused(self, status: int, text: str, headers: Mapping[str, str]) -> int:
        """Keep what a refusal says; return the seconds to wait; raises TryAgain when they are more than there are."""
        import re

        self.status = status
        self.codes = re.findall(r"AADSTS(\d+)", text)
        self.error = "".join(re.findall(r'"error"\s*:\s*"([a-z_]{1,40})"', text)[:1])
        apart = clock_skew(headers.get("date"), self.env.now())
        self.clock = f"; {clock_told(apart)}" if abs(apart) > 120 else ""
        wait = headers.get("retry-after", "")
        seconds = int(wait) if wait.isdigit() else 0
        if seconds >= self.env.remaining():
            raise TryAgain("throttled", f"told to wait {seconds} s (HTTP {status}) while {self.env.step}", SHARE)
        return seconds


def explained(error: BaseException, login: Login, wire: Wire) -> ExecCredError:
    """Return our error for one of the SDK's."""
    import re

    chain = list(_chain(error, []))
    for each in chain:
        if isinstance(each, ExecCredError):
            return each
    text = " ".join([f"{each} {getattr(each, 'stderr', '')} {getattr(each, 'output', '')}" for each in chain])
    codes = wire.codes or re.findall(r"AADSTS(\d+)", text)
    names = {kind.__name__ for each in chain for kind in type(each).__mro__}
    detail = ""
    if codes:
        row = next(row for row in ENTRA if not row[0] or set(codes) & set(row[0].split()))
        detail = f" (AADSTS{codes[0]})"
    elif login.mode in ("azurecli", "azd"):
        row = next(row for row in TOOLS if re.search(row[0], text))
    elif found := [row for row in PERSON if login.mode in ("devicecode", "interactive") and re.search(row[0], text)]:
        row = found[0]
    elif wire.status not in (0, 200):
        row = ("", *_refusal(wire.status, login))
        detail = f" (HTTP {wire.status}{wire.error and ' '}{wire.error})"
    else:
        row = next(row for row in FAULTS if names & set(row[0].split()))
    return _made(row, login, wire, detail, type(error).__name__)


def _chain(error: object, seen: list[object]) -> Iterator[BaseException]:
    """Yield an exception and all that it carries: causes, reasons, arguments."""
    if isinstance(error, BaseException) and error not in seen and len(seen) < 50:
        seen.append(error)
        yield error
        named = [getattr(error, name, None) for name in ("inner_exception", "reason")]
        for inner in (error.__cause__, error.__context__, *named, *error.args):
            yield from _chain(inner, seen)


def _refusal(status: int, login: Login) -> tuple[type[ExecCredError], str, str, str]:
    if status == 429 or status >= 500:
        return RETRY, "throttled" if status == 429 else "server-error", "the server cannot answer now", SHARE
    if login.mode == "msi":
        return FIX, "identity-unassigned", "no such managed identity here", "assign it to this machine: {identity}"
    return FIX, "entra-refused", "the server refused", "check {identity}"


def _made(
    row: tuple[str, type[ExecCredError], str, str, str], login: Login, wire: Wire, detail: str, kind: str
) -> ExecCredError:
    _, error, code, message, hint = row
    names = [name for name in ("client-id", "tenant-id", "client-secret", "subscription") if login.text(name)]
    sources = [f"{name} from {login.settings.source(name) or 'AZURESUBSCRIPTION variable'}" for name in names]
    words = {
        "identity": ", ".join(sources) or "the system-assigned identity",
        "claims": _claims(login),
        "login": command(login),
        "tool": login.tool,
        "by_hand": command(login, "token"),
        "kind": kind,
        "network": "outside Azure, choose another --login" if login.mode == "msi" else "check the network, HTTPS_PROXY",
    }
    return error(code, f"{message.format(**words)}{detail} while {login.env.step}", hint.format(**words) + wire.clock)


def _claims(login: Login) -> str:
    if login.mode != "workloadidentity":
        return "the pipeline's issuer and subject"
    claims = jwt_claims(login.read("federated-token-file").decode("utf-8", "replace").strip())
    told = [printable(f"{word} {claims.get(name)}") for word, name in (("issuer", "iss"), ("subject", "sub"))]
    return f"{', '.join(told)}, audience {printable(str(claims.get('aud')))} (usual is {AUDIENCE})"


def command(login: Login, what: str = "login") -> str:
    """Return what a person can run."""
    tenant = printable(login.text("tenant-id"), 60)
    if login.mode == "azd":
        words = ["azd auth login"] if what == "login" else [f"azd auth token --output json --scope {login.scope}"]
        return " ".join([*words, *([f"--tenant-id {tenant}"] if tenant else [])])
    if login.mode == "azurecli":
        words = ["az login"] if what == "login" else ["az account get-access-token"]
        return " ".join([*words, *([f"--tenant {tenant}"] if tenant else []), f"--scope {login.scope}"])
    if login.mode in ("devicecode", "interactive"):
        words = [f"--login {login.mode}"]
        words += [
            f"--{name} {login.text(name)}" for name in ("client-id", "tenant-id", "cache-dir") if login.text(name)
        ]
        return f"a person runs, in a terminal: aks-plugin {' '.join(words)}"
    return "this login mode cannot ask a person: sign in with --login azurecli, or change the policy"
