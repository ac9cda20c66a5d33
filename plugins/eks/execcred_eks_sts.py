"""Roles assumed without the SDK: one POST to STS each, for AssumeRole and for a web identity token (IRSA).

Importing botocore would take most of the time: see the numbers of `make bench`. It is left out only where the
environment alone decides; with an AWS config file, or anything else of note, the SDK does it.
"""

from __future__ import annotations

from execcred import ExecCredError
from execcred._clock import clock_skew
from execcred_eks_sign import FORM, Keys, form, signed_headers, sts_host, sts_region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from execcred import Env, Settings
    from execcred.http import Response, Server

CA_VARIABLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
NOT_OURS = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_ENDPOINT_URL",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_USE_DUALSTACK_ENDPOINT",
)
IRSA = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN")
LIMIT = 1 << 20
PAUSE = 0.5  # seconds before the one retry


def environment_decides(settings: Settings, env: Env, files: tuple[str, ...]) -> bool:
    """Tell whether nothing but environment and settings, and nothing unusual there, decides how STS is asked."""
    import os
    import ssl

    variables = env.variables
    if settings.text("profile") or any(variables.get(name) for name in NOT_OURS):
        return False
    urls = {"AWS_ENDPOINT_URL_STS": "https://", "HTTPS_PROXY": "http://", "https_proxy": "http://"}
    if not all(variables.get(name, start).startswith(start) for name, start in urls.items()):
        return False
    system = ssl.get_default_verify_paths()
    trust = any(variables.get(name) for name in CA_VARIABLES) or system.cafile or system.capath
    return bool(trust) and not any(os.path.exists(file) for file in files)


def check_endpoint(variables: Mapping[str, str]) -> None:
    """Raise ExecCredError("endpoint-invalid") for an endpoint in the environment that is no URL."""
    from execcred._urls import parse_url

    for name in ("AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"):
        try:
            parse_url(variables.get(name) or "https://default")
        except ValueError:
            hint = "write it like https://sts.eu-central-1.amazonaws.com, or unset it"
            raise ExecCredError("endpoint-invalid", f"variable {name} is no http or https URL", hint) from None


class Sts:
    """STS as the environment has it; raises ExecCredError and its kinds only."""

    def __init__(self, region: str, settings: Settings, env: Env) -> None:
        variables = env.variables
        self.env = env
        self.settings = settings
        self.region = sts_region(variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION", ""), region)
        self.url = variables.get("AWS_ENDPOINT_URL_STS") or f"https://{sts_host(self.region, settings.flag('fips'))}"

    def web_identity(self) -> Keys:
        """Return keys for the web identity token that the environment names; its file is read anew."""
        from execcred_eks_aws import SOURCES
        from execcred_eks_errors import explain

        file, role = [self.env.variables[name] for name in IRSA]
        name = self.env.variables.get("AWS_ROLE_SESSION_NAME") or self.settings.text("session-name")
        source = SOURCES["assume-role-with-web-identity"]
        step = f"getting AWS credentials from {source}"
        try:
            token = self.env.read_file(file).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise explain(error, step) from None
        pairs = {"RoleArn": role, "RoleSessionName": name, "WebIdentityToken": token}
        keys = self._ask(step, "AssumeRoleWithWebIdentity", pairs, None)
        keys.source = source
        return keys

    def assume(self, keys: Keys, role: str, external_id: str) -> Keys:
        """Return keys of a role assumed with other keys."""
        pairs = {"RoleArn": role, "RoleSessionName": self.settings.text("session-name")}
        if external_id:
            pairs["ExternalId"] = external_id
        fresh = self._ask(f"assuming role {role} with {keys.source}", "AssumeRole", pairs, keys)
        fresh.source = f"role {role}"
        return fresh

    def _ask(self, step: str, action: str, pairs: dict[str, str], keys: Keys | None) -> Keys:
        from execcred_eks_errors import clock_wrong, explain, host_of, refused

        self.env.doing(step)
        body = form({"Action": action, "Version": "2011-06-15", **pairs})
        server: Server | None = None
        try:
            server = self._server()
            answer = self._post(server, body, keys)
            text = answer.body.decode()
        except OSError as error:
            proxied = server is not None and server.proxy and not isinstance(error, ValueError)
            failure = ProxyError() if proxied else error  # a refused certificate is a ValueError, too
            raise explain(failure, step, host=host_of(self.url)) from None
        except ValueError:
            raise explain(ResponseParserError(), step) from None
        wrong = clock_wrong(clock_skew(answer.headers.get("date"), self.env.now()))
        if wrong:
            raise wrong
        if answer.status != 200:
            raise refused(_between(text, "Code"), answer.status, action, step)
        return self._keys(text, step)

    def _keys(self, text: str, step: str) -> Keys:
        from datetime import datetime

        from execcred_eks_errors import explain

        names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
        access, secret, session, end = [_between(text, name) for name in names]
        try:
            if not (access and secret and session and end.endswith("Z")):
                raise ValueError
            expires = datetime.fromisoformat(end).timestamp()
        except ValueError:
            raise explain(ResponseParserError(), step) from None
        self.env.debug(f"the caller is {_between(text, 'Arn')}")
        return Keys(access, secret, session, expires)

    def _post(self, server: Server, body: str, keys: Keys | None) -> Response:
        import time

        for last in (False, True):
            host = server.url.authority.removesuffix(":443")
            headers = {"content-type": FORM}
            if keys:
                headers = signed_headers(keys, self.region, host, body, self.env.now())
            answer = self.env.post(server, "/", {**headers, "user-agent": "execcred"}, LIMIT, body.encode())
            if last or not (answer.status == 429 or answer.status >= 500 or b"Throttl" in answer.body):
                return answer
            time.sleep(PAUSE)
        raise AssertionError  # the loop has returned

    def _server(self) -> Server:
        import ssl

        from execcred._urls import env_proxy, parse_url
        from execcred.http import Server

        url = parse_url(self.url)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        bundle = next((path for name in CA_VARIABLES if (path := self.env.variables.get(name))), "")
        if bundle:
            try:
                context.load_verify_locations(bundle)
            except OSError:
                hint = "name a PEM file in AWS_CA_BUNDLE"
                raise ExecCredError("ca-invalid", f"{bundle} holds no CA certificates", hint) from None
        else:
            context.load_default_certs()
        proxy = env_proxy(url, self.env.variables)
        return Server(url, context, proxy=parse_url(proxy) if proxy else None)


class ProxyError(ConnectionError):
    """No connection to the proxy, or none through it."""


class ResponseParserError(ValueError):
    """What answered is not STS; bears the name of botocore's exception."""


def _between(text: str, name: str) -> str:
    return text.partition(f"<{name}>")[2].partition("</")[0]
