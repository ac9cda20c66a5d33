"""aks: prints a Microsoft Entra ID token for AKS clusters, got by one explicit login mode of azure-identity."""

from __future__ import annotations

from execcred import BadRequest, Credential, ExecCredError, Plugin, Setting, run
from execcred._cache import CACHE_SETTINGS, cached
from execcred._errors import printable
from execcred._protocol import jwt_claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from execcred import Env, Request, Settings

# Login modes, and what each cannot do without.
NEEDS = {
    "workloadidentity": ("client-id", "tenant-id", "federated-token-file"),
    "msi": (),
    "spn": ("client-id", "tenant-id", "client-secret or client-certificate"),
    "azurecli": (),
    "azd": (),
    "azurepipelines": (
        "client-id",
        "tenant-id",
        "azure-pipelines-service-connection-id",
        "variable SYSTEM_ACCESSTOKEN",
        "variable SYSTEM_OIDCREQUESTURI",
    ),
    "devicecode": ("client-id", "tenant-id"),
    "interactive": ("client-id", "tenant-id"),
}
ONE_OF = {
    "spn": ("client-secret", "client-certificate"),
    "msi": ("client-id", "identity-resource-id", "identity-object-id"),
}
CLOUDS = {  # authority host: the names of its cloud, as kubelogin, az and Terraform spell them
    "login.microsoftonline.com": ("AzurePublicCloud", "AzureCloud", "AzurePublic", "public"),
    "login.microsoftonline.us": ("AzureUSGovernmentCloud", "AzureUSGovernment", "AzureGovernment", "usgovernment"),
    "login.chinacloudapi.cn": ("AzureChinaCloud", "AzureChina", "china"),
}
# What else shapes a credential, so that a cached one is found again only where nothing changed.
SHAPING = (
    *("HOME", "AZURE_CONFIG_DIR", "AZD_CONFIG_DIR", "SYSTEM_OIDCREQUESTURI", "AZURE_REGIONAL_AUTHORITY_NAME"),
    *("IDENTITY_ENDPOINT", "IDENTITY_HEADER", "IMDS_ENDPOINT", "MSI_ENDPOINT", "MSI_SECRET"),
    "AZURE_POD_IDENTITY_AUTHORITY_HOST",
)
POP = "proof-of-possession tokens are no bearer tokens; use kubelogin where an Arc cluster asks for them"
ROPC = "password logins (ropc) fail with MFA, and Microsoft retires them; use --login spn or devicecode"
LEGACY = "the legacy Entra ID integration of AKS has been retired; move the cluster to the managed one"
UNSUPPORTED = {"legacy": LEGACY, "pop-enabled": POP, "pop-claims": POP, "username": ROPC, "password": ROPC}
AKS_SERVER = "6dae42f8-4368-4678-94ff-3960e28e3630"  # the one application of all AKS-managed clusters
GUARD = "allow-profile-identity"


def _three(word: str, aad: str = "") -> tuple[str, str, str]:
    """Return one variable in three families: Azure SDKs, kubelogin and Argo CD, Terraform."""
    return f"AZURE_{word}", f"AAD_SERVICE_PRINCIPAL_{aad or word}", f"ARM_{word}"


SETTINGS = (
    Setting("login", f"one of {', '.join(NEEDS)}", env=("AAD_LOGIN_METHOD",), aliases=("l",)),
    Setting("client-id", "application or identity", env=(*_three("CLIENT_ID"), "CLIENT_ID"), trust=GUARD),
    Setting("tenant-id", "tenant", env=("AZURE_TENANT_ID", "ARM_TENANT_ID", "TENANT_ID"), aliases=("t",), trust=GUARD),
    Setting("client-secret", "secret of the application (spn); better by variable", env=_three("CLIENT_SECRET")),
    Setting(
        "client-certificate",
        "PEM or PFX file with certificate and RSA key (spn)",
        env=_three("CLIENT_CERTIFICATE_PATH", "CLIENT_CERTIFICATE"),
    ),
    Setting("client-certificate-password", "password of that file", env=_three("CLIENT_CERTIFICATE_PASSWORD")),
    Setting(
        "send-certificate-chain",
        "send the certificate's chain, for trust by subject name and issuer (spn)",
        kind="flag",
        env=("AZURE_CLIENT_SEND_CERTIFICATE_CHAIN",),
    ),
    Setting(
        "federated-token-file",
        "service account token to exchange (workloadidentity); read anew each time",
        env=("AZURE_FEDERATED_TOKEN_FILE", "ARM_OIDC_TOKEN_FILE_PATH"),
    ),
    Setting("identity-resource-id", "managed identity, by resource id (msi)", trust=GUARD),
    Setting("identity-object-id", "managed identity, by object id (msi)", trust=GUARD),
    Setting("subscription", "subscription whose account az uses (azurecli)", aliases=("s",), trust=GUARD),
    Setting(
        "azure-pipelines-service-connection-id",
        "service connection (azurepipelines)",
        env=("AZURESUBSCRIPTION_SERVICE_CONNECTION_ID",),
        trust=GUARD,
    ),
    Setting("server-id", "audience of the token; AKS if unset", env=("AAD_SERVER_APPLICATION_ID",), default=AKS_SERVER),
    Setting(
        "environment",
        "cloud: AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud",
        env=("AAD_ENVIRONMENT_NAME", "ARM_ENVIRONMENT"),
        aliases=("e",),
        default="AzurePublicCloud",
    ),
    Setting("authority-host", "https URL of Entra ID, for other clouds", env=("AZURE_AUTHORITY_HOST",)),
    Setting("redirect-url", "where the browser returns to (interactive)"),
    Setting("login-hint", "user name to fill in (interactive)"),
    Setting(GUARD, "let a profile choose identity and tenant", kind="flag", guard=True),
    Setting("use-azurerm-env-vars", "ARM_ variables before all others", kind="flag"),
    Setting("disable-environment-override", "no variables but EXECCRED_ ones", kind="flag"),
    Setting("disable-instance-discovery", "accepted: an authority is never looked up elsewhere", kind="flag"),
    Setting("v", "accepted from kubelogin; see --log-level", config=None),
    Setting("logtostderr", "accepted from kubelogin", kind="flag", config=None),
    *[Setting(name, "not supported", kind="flag") for name in ("legacy", "pop-enabled")],
    *[Setting(name, "not supported", config=None) for name in ("pop-claims", "username", "password")],
    Setting("cache-dir", CACHE_SETTINGS[0].help, aliases=("token-cache-dir",)),
)
TERRAFORM = {each.name: [key for key in each.env if key.startswith("ARM_")] for each in SETTINGS}
DEFAULTS = {each.name: str(each.default or "") for each in SETTINGS}


class Login:
    """What one run logs in with: the mode and its settings, as far as they are allowed to count."""

    def __init__(self, request: Request, settings: Settings, env: Env) -> None:
        self.request, self.settings, self.env = request, settings, env
        self.mode = ""  # which `text` asks for, also while it is being found
        self.mode = self._mode()
        server = self.text("server-id").removeprefix("spn:").removesuffix("/.default").rstrip("/")
        self.scope = f"{server}/.default"
        self.authority = self._authority()
        # What is waited for, in words.
        self.tool = {"azurecli": "az", "azd": "azd"}.get(self.mode, f"login {self.mode}")
        self._complete()
        self.chosen = self._only() if self.mode in ONE_OF else ""

    def text(self, name: str) -> str:
        """Return a setting, as the two flags that say which variables count let it."""
        source = self.settings.source(name).removeprefix("variable ")
        if source != self.settings.source(name) and not source.startswith("EXECCRED_"):
            if self.settings.flag("disable-environment-override"):
                return DEFAULTS[name]
            if self.settings.flag("use-azurerm-env-vars"):
                found = [text for key in TERRAFORM[name] if (text := self.env.variables.get(key))]
                return found[0] if found else self.settings.text(name)
        if not self.settings.text(name) and self.mode == "azurepipelines":
            return self.env.variables.get(f"AZURESUBSCRIPTION_{name.replace('-', '_').upper()}", "")
        return self.settings.text(name)

    def _mode(self) -> str:
        mode = self.text("login").lower()
        if not mode and self.text("federated-token-file"):
            return "workloadidentity"
        if not mode and self.request.interactive:
            return "devicecode"  # as kubelogin does
        if mode == "ropc":
            raise BadRequest("unsupported", "--login ropc is not supported", ROPC)
        if mode not in NEEDS:
            what = f"unknown login mode {printable(mode, 40)!r}" if mode else "no login mode is chosen"
            raise BadRequest(
                "login-unknown" if mode else "login-missing",
                f"{what}; known are {', '.join(NEEDS)}",
                "set --login; workloadidentity is the default where AZURE_FEDERATED_TOKEN_FILE is set",
            )
        return mode

    def rank(self, name: str) -> int:
        """Return how much say the giver of a setting has: 0 flag, 1 variable, 2 profile, 3 nobody gave it."""
        if not self.settings.given(name) or not self.text(name):
            return 3
        return {"flag": 0, "variable": 1}.get(self.settings.source(name).partition(" ")[0], 2)

    def _only(self) -> str:
        """Return which of the settings that exclude each other counts, "" for none."""
        names = ONE_OF[self.mode]
        best = min(map(self.rank, names))
        given = [name for name in names if self.rank(name) == best < 3]
        if len(given) > 1:
            told = " and ".join([f"{name} ({self.settings.source(name)})" for name in given])
            raise BadRequest("settings-conflict", f"only one may be given: {told}", "unset one, or give it as a flag")
        return given[0] if given else ""

    def _complete(self) -> None:
        """Report everything that is missing at once."""
        if self.text("tenant-id").strip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-."):
            raise BadRequest("tenant-invalid", "tenant-id is neither an id nor a domain name", "correct it")
        missing = [name for name in NEEDS[self.mode] if not self._has(name)]
        if not missing:
            return
        variables = [key for each in SETTINGS if each.name in " ".join(missing).split() for key in each.env[1:]]
        hint = f"give the flags, or variables ({', '.join(variables)})" if variables else "map them into the step's env"
        if self.mode in ("devicecode", "interactive"):
            hint += "; AKS's own public client is 80faf920-1908-4b52-b5ef-a8e7bedfc67a"
        raise BadRequest("settings-missing", f"--login {self.mode} lacks {', '.join(missing)}", hint)

    def _has(self, need: str) -> bool:
        if need.startswith("variable "):
            return bool(self.env.variables.get(need.removeprefix("variable ")))
        return any(self.text(name) for name in need.split(" or "))

    def _authority(self) -> str:
        if self.rank("authority-host") <= min(self.rank("environment"), 2):
            from execcred._urls import parse_url

            text = self.text("authority-host")
            try:
                url = parse_url(text if "://" in text else f"https://{text}")
            except ValueError:
                url = None
            if not url or url.scheme != "https" or url.userinfo or "?" in url.path:
                hint = "write it as https://login.microsoftonline.com/"
                raise BadRequest("authority-invalid", "authority-host is not an https URL", hint)
            return f"https://{url.authority.removesuffix(':443')}{url.path.rstrip('/')}"
        name = self.text("environment")
        for host, names in CLOUDS.items():
            if name.lower() in [each.lower() for each in names]:
                return f"https://{host}"
        known = ", ".join([each for names in CLOUDS.values() for each in names])
        hint = f"known are {known}; for another cloud set --authority-host"
        raise BadRequest("environment-unknown", f"unknown cloud {printable(name, 60)!r}", hint)

    def read(self, name: str) -> bytes:
        """Read the file that a setting names."""
        path = self.text(name)
        try:
            return self.env.read_file(path)
        except OSError as error:
            message = f"{name}: {printable(path)} cannot be read: {error.strerror}"
            raise ExecCredError("file-unreadable", message, "check the path, the mount and its permissions") from None

    def account(self) -> str:
        """Return who is meant by what lies outside the settings: the az or azd account, the federated subject."""
        if self.mode == "workloadidentity":
            claims = jwt_claims(self.read("federated-token-file").decode("utf-8", "replace").strip())
            return f"{claims.get('iss')} {claims.get('sub')}"
        place = {"azurecli": ("AZURE_CONFIG_DIR", ".azure", "azureProfile.json")}
        place["azd"] = ("AZD_CONFIG_DIR", ".azd", "auth.json")
        if self.mode not in place:
            return ""
        variable, folder, name = place[self.mode]
        folder = self.env.variables.get(variable) or f"{self.env.variables.get('HOME', '')}/{folder}"
        try:
            return self.env.read_file(f"{folder}/{name}").decode("utf-8-sig", "replace")
        except OSError:
            return ""

    def inputs(self) -> dict[str, str]:
        """Return everything that shapes the token, for the cache's key."""
        settings = {each.name: self.text(each.name) for each in SETTINGS if each.name != "cache-dir"}
        outside = {name: self.env.variables.get(name, "") for name in SHAPING}
        return {**outside, **settings, "login": self.mode, "authority": self.authority, "account": self.account()}


def credential(request: Request, settings: Settings, env: Env) -> Credential:
    """Return the token of the login mode; raises ExecCredError and its kinds, with the codes of the README."""
    for name, reason in UNSUPPORTED.items():
        if settings.text(name) not in ("", "False"):
            raise BadRequest("unsupported", f"--{name} is not supported", reason)
    login = Login(request, settings, env)
    inputs = login.inputs() if settings.text("cache-dir") else {}
    value, expires = cached(request, settings, env, inputs, lambda: _fetch(login))
    return Credential(token=value["token"], expires=expires)


def _fetch(login: Login) -> tuple[dict[str, str], float | None]:
    if login.mode == "workloadidentity":
        from execcred_aks_workload import token_of  # the way of controllers: no SDK, which would take most of the time
    else:
        from execcred_aks_azure import token_of

    token, expires = token_of(login)
    if groups_left_out(jwt_claims(token)):
        login.env.debug("the user is in more groups than a token can name: roles given to a group may not count")
    return {"token": token}, expires


def groups_left_out(claims: Mapping[str, Any]) -> bool:
    """Tell whether a token leaves out its user's groups, as Entra ID does beyond 200, and says by either claim."""
    elsewhere = claims.get("_claim_names")
    return claims.get("hasgroups") in (True, "true") or (isinstance(elsewhere, dict) and "groups" in elsewhere)


PLUGIN = Plugin("aks", __doc__.partition(": ")[2], SETTINGS, credential, words=("get-token", "azure"))
main = run(PLUGIN)
