"""Where the token comes from: the credential classes of azure-identity, one per login mode. Imported to fetch only."""

from __future__ import annotations

from execcred import ExecCredError, LoginNeeded
from execcred._env import stderr
from execcred._errors import library_missing, printable
from execcred._protocol import token_end
from execcred_aks_errors import Wire, command, explained
from execcred_aks_workload import trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from execcred_aks import Login


def token_of(login: Login) -> tuple[str, float]:
    """Return a token and its true end in epoch seconds; raises ExecCredError and its kinds, nothing else."""
    if login.mode in ("devicecode", "interactive") and not login.request.interactive:
        raise LoginNeeded("login-needed", f"--login {login.mode} needs a person, and none may be asked", command(login))
    login.env.doing(f"loading azure-identity for {login.mode}")
    login.env.tame()
    wire = Wire(login)
    try:
        source = _source(login, wire)
        login.env.doing(f"waiting for {login.tool}")
        answer = source.get_token(login.scope)
    except ImportError as error:
        raise library_missing(error) from None
    except Exception as error:
        raise explained(error, login, wire) from None
    ends = token_end(answer.token)
    # azd prints UTC, which the SDK takes for local time; else the earlier end is right also where clocks differ.
    if ends is None or login.mode != "azd":
        ends = min(ends or answer.expires_on, answer.expires_on)
    return answer.token, float(ends)


def _source(login: Login, wire: Wire) -> Any:
    """Return the credential object of the login mode; it takes nothing from the environment that we did not."""
    import azure.identity as sdk

    seconds = max(login.env.remaining(), 0.1)
    options: dict[str, Any] = {
        "raw_request_hook": wire.asks,
        "raw_response_hook": wire.answers,
        "read_timeout": seconds,
    }
    options |= {"retry_total": 3, "retry_connect": 1, "retry_backoff_factor": 0.2}
    # Of the SDK's limit and our deadline, the deadline comes first.
    tool: dict[str, Any] = {"tenant_id": login.text("tenant-id"), "process_timeout": int(seconds) + 1}
    if login.mode == "msi":
        return _managed_identity(sdk, login, options)
    if login.mode == "azurecli":
        return sdk.AzureCliCredential(subscription=login.text("subscription") or None, **tool)
    if login.mode == "azd":
        return sdk.AzureDeveloperCliCredential(**tool)
    options |= {"authority": login.authority, "connection_verify": trusted(login), "connection_timeout": seconds}
    options |= {"client_id": login.text("client-id"), "tenant_id": login.text("tenant-id")}
    return _entra(sdk, login, options)


def _managed_identity(sdk: Any, login: Login, options: dict[str, Any]) -> Any:
    chosen = login.chosen
    keys = {"client-id": "client_id", "identity-resource-id": "resource_id", "identity-object-id": "object_id"}
    options |= {"identity_config": {keys[chosen]: login.text(chosen)} if chosen else None, "connection_timeout": 1.5}
    # No proxy; and not the workload identity, which the SDK would prefer to what was asked for.
    return sdk.ManagedIdentityCredential(use_env_settings=False, _exclude_workload_identity_credential=True, **options)


def _entra(sdk: Any, login: Login, options: dict[str, Any]) -> Any:
    if login.mode == "azurepipelines":
        return sdk.AzurePipelinesCredential(
            service_connection_id=login.text("azure-pipelines-service-connection-id"),
            system_access_token=login.env.variables["SYSTEM_ACCESSTOKEN"],
            **options,
        )
    options["disable_instance_discovery"] = True  # the admin named the authority: nobody else is asked about it
    if login.mode == "spn":
        return _service_principal(sdk, login, options)
    options["timeout"] = int(login.env.remaining())
    if login.mode == "devicecode":
        return sdk.DeviceCodeCredential(prompt_callback=lambda *told: _prompt(login, *told), **options)
    where = {"redirect_uri": login.text("redirect-url") or None, "login_hint": login.text("login-hint") or None}
    return sdk.InteractiveBrowserCredential(**where, **options)


def _service_principal(sdk: Any, login: Login, options: dict[str, Any]) -> Any:
    if login.chosen == "client-secret":
        return sdk.ClientSecretCredential(client_secret=login.text("client-secret"), **options)
    data = login.read("client-certificate")
    try:
        return sdk.CertificateCredential(
            certificate_data=data,
            password=login.text("client-certificate-password") or None,
            send_certificate_chain=login.text("send-certificate-chain") == "True",
            **options,
        )
    except (ValueError, TypeError):
        message = f"client-certificate: {printable(login.text('client-certificate'))} cannot be used"
        hint = "it must be PEM or PFX, hold the certificate and its RSA key; is client-certificate-password right?"
        raise ExecCredError("client-certificate-invalid", message, hint) from None


def _prompt(login: Login, url: str, code: str, end: Any) -> None:
    stderr(f"To sign in, open {printable(url)} and enter {printable(code)} before {end:%H:%M} UTC.\n")
    login.env.doing("waiting for a person to sign in")
