"""Workload identity: exchanges a service account token for a token of Entra ID, one POST (RFC 7523, section 2.2).

Own code, as importing azure-identity would take most of the time: see the numbers of `make bench`.
"""

from __future__ import annotations

from execcred import BadRequest, ExecCredError, TryAgain
from execcred._errors import printable
from execcred._protocol import claimed_time, jwt_claims, rfc3339, token_end
from execcred_aks_errors import Wire, explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from execcred.http import Response, Server
    from execcred_aks import Login

CA_FILES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LIMIT = 1 << 20
PAUSES = (0.2, 0.8, 2.0)  # seconds before asking again after a passing fault


def token_of(login: Login) -> tuple[str, float]:
    """Return a token and its true end in epoch seconds; raises ExecCredError and its kinds, nothing else."""
    form = {
        "client_id": login.text("client-id"),
        "client_assertion": _assertion(login),
        "client_assertion_type": ASSERTION,
        "grant_type": "client_credentials",
        "scope": login.scope,
    }
    server, wire = _server(login), Wire(login)
    try:
        answer = _asked(login, server, wire, "&".join([f"{name}={_quoted(text)}" for name, text in form.items()]))
        return _granted(answer, login)
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
        raise explained(error, login, wire) from None


def _asked(login: Login, server: Server, wire: Wire, form: str) -> bytes:
    """Return the body of a good answer; asks again after passing faults, while there is time."""
    import time

    path = f"/{login.text('tenant-id')}/oauth2/v2.0/token"
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    for pause in (*PAUSES, None):
        wire.asking(server.url.host, server.url.port)
        response: Response = login.env.post(server, path, headers, LIMIT, form.encode())
        if response.status == 200:
            return response.body
        wait = wire.refused(response.status, response.body.decode("utf-8", "replace"), response.headers)
        if pause is None or not (response.status == 429 or response.status >= 500):
            break
        time.sleep(min(wait or pause, max(login.env.remaining(), 0)))
    raise ValueError(f"HTTP {response.status}")


def _granted(body: bytes, login: Login) -> tuple[str, float]:
    import json

    answer: dict[str, Any] = json.loads(body)
    token, seconds = answer["access_token"], float(answer["expires_in"])
    if not isinstance(token, str) or not 0 <= seconds < 1e9:
        raise ValueError("neither a token nor a time")
    end = login.env.now() + seconds
    return token, min(token_end(token) or end, end)  # the earlier end is right also where clocks differ


def _quoted(text: str) -> str:
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
    return "".join([chr(byte) if byte in plain else f"%{byte:02X}" for byte in text.encode()])


def _server(login: Login) -> Server:
    import os
    import ssl

    from execcred._urls import env_proxy, parse_url
    from execcred.http import Server

    url = parse_url(login.authority)
    proxy = env_proxy(url, login.env.variables)
    try:
        via = parse_url(proxy) if proxy else None
    except ValueError:
        via = None
    if proxy and (via is None or via.scheme != "http"):
        raise BadRequest("proxy-invalid", "variable HTTPS_PROXY is no http URL", "write it like http://HOST:PORT")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    path = trusted(login)
    try:
        context.load_verify_locations(**{"capath" if os.path.isdir(path) else "cafile": path})
    except OSError:
        raise ExecCredError(
            "ca-invalid", f"{path} holds no CA certificates", "name a PEM file in SSL_CERT_FILE"
        ) from None
    return Server(url, context, proxy=via)


def trusted(login: Login) -> str:
    """Return the file or folder of CAs: what the environment names, the system's, else the ones of certifi."""
    import os
    import ssl

    for name in CA_FILES:
        if path := login.env.variables.get(name):
            if os.access(path, os.R_OK):
                return path
            message = f"variable {name}: {printable(path)} cannot be read"
            raise ExecCredError("file-unreadable", message, "name a PEM file of CA certificates")
    system = ssl.get_default_verify_paths()
    if system.cafile:
        return system.cafile
    if system.capath and os.listdir(system.capath):
        return system.capath
    import certifi

    return certifi.where()


def _assertion(login: Login) -> str:
    """Return the federated token, read anew; raises when it is none, is over, or is not valid yet."""
    token = login.read("federated-token-file").decode("utf-8", "replace").strip()
    where, now, claims = printable(login.text("federated-token-file")), login.env.now(), jwt_claims(token)
    end, start = [claimed_time(claims, name) for name in ("exp", "nbf")]
    if not claims:
        hint = "mount a projected service account token there"
        raise ExecCredError("federated-token-invalid", f"{where} holds no token ({len(token)} characters)", hint)
    if end is not None and end <= now:
        message = f"the token in {where} expired at {rfc3339(end)}, {now - end:.0f} s ago"
        raise TryAgain("federated-token-expired", message, "does something renew the file? Is the clock right?")
    if start is not None and start > now + 300:
        message = f"the token in {where} is valid from {rfc3339(start)} only, in {start - now:.0f} s"
        raise TryAgain("federated-token-early", message, "correct this machine's clock")
    return token
