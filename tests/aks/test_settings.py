"""Flags of the tools that aks replaces, families of variables, clouds, scopes, and what a profile may not do."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from aks.plugin import exec_info, run_plugin
from execcred import Env, ExecCredError
from execcred._arguments import command_line
from execcred._protocol import Request
from execcred._run import respond
from execcred._settings import resolve
from execcred.conformance.fakes.azure import AKS, CLIENT, SECRET, TENANT, Entra, Metadata
from execcred_aks import CLOUDS, NEEDS, PLUGIN, Login

if TYPE_CHECKING:
    from collections.abc import Mapping

OTHER = "99999999-9999-9999-9999-999999999999"


def login(*flags: str, variables: Mapping[str, str] = MappingProxyType({}), interactive: bool = False) -> Login:
    """Return what the plugin would log in with."""
    settings = resolve(PLUGIN.settings, command_line(PLUGIN.settings, flags), variables, {})
    return Login(Request("", interactive, None), settings, Env(variables))


def refused(*flags: str, **variables: str) -> ExecCredError:
    """Return the error that these flags and variables are answered with."""
    with pytest.raises(ExecCredError) as caught:
        respond(PLUGIN, flags, Env(variables))
    return caught.value


# --- drop-ins ---

# Each flag of `kubelogin get-token` (v0.2.22), how it is written there, and what it must mean here.
KUBELOGIN: Mapping[tuple[str, ...], tuple[str, str] | None] = {
    ("--login", "spn"): ("login", "spn"),
    ("-l", "spn"): ("login", "spn"),
    ("-lspn=",): None,  # pflag's glued short form is not accepted, and says so
    ("--client-id", CLIENT): ("client-id", CLIENT),
    ("--client-secret", SECRET): ("client-secret", SECRET),
    ("--client-certificate", "/c.pfx"): ("client-certificate", "/c.pfx"),
    ("--client-certificate-password", "p"): ("client-certificate-password", "p"),
    ("--identity-resource-id", "/r"): ("identity-resource-id", "/r"),
    ("--server-id", "api://x"): ("server-id", "api://x"),
    ("--federated-token-file", "/t"): ("federated-token-file", "/t"),
    ("--authority-host", "https://h/"): ("authority-host", "https://h/"),
    ("--azure-pipelines-service-connection-id", "c"): ("azure-pipelines-service-connection-id", "c"),
    ("--token-cache-dir", "/d"): ("cache-dir", "/d"),
    ("--cache-dir", "/d"): ("cache-dir", "/d"),
    ("--tenant-id", TENANT): ("tenant-id", TENANT),
    ("-t", TENANT): ("tenant-id", TENANT),
    ("--subscription", "s"): ("subscription", "s"),
    ("-s", "s"): ("subscription", "s"),
    ("--environment", "AzureChinaCloud"): ("environment", "AzureChinaCloud"),
    ("-e", "AzureChinaCloud"): ("environment", "AzureChinaCloud"),
    ("--use-azurerm-env-vars",): ("use-azurerm-env-vars", "True"),
    ("--disable-environment-override=true",): ("disable-environment-override", "True"),
    ("--disable-instance-discovery",): ("disable-instance-discovery", "True"),
    ("--redirect-url", "http://localhost:8000"): ("redirect-url", "http://localhost:8000"),
    ("--login-hint", "a@b"): ("login-hint", "a@b"),
    ("--timeout", "60s"): ("timeout", "60.0"),
    ("-v", "5"): ("v", "5"),
    ("--v=5",): ("v", "5"),
    ("--logtostderr",): ("logtostderr", "True"),
    ("--legacy=false",): ("legacy", "False"),
    ("--pop-enabled=false",): ("pop-enabled", "False"),
}


@pytest.mark.parametrize("flags", KUBELOGIN)
def test_each_flag_of_kubelogin_means_the_same(flags: tuple[str, ...]) -> None:
    """Long and short forms, as its documentation writes them."""
    expected = KUBELOGIN[flags]
    if expected is None:
        assert refused("get-token", *flags).code == "usage"
        return
    name, value = expected
    line = command_line(PLUGIN.settings, ["get-token", *flags])
    assert resolve(PLUGIN.settings, line, {}, {}).text(name) == value
    assert " ".join(line.words) in PLUGIN.words


def test_no_flag_of_kubelogin_is_missing() -> None:
    """The options that the peer's own source declares are all known, where that source is at hand."""
    modules = Path(os.environ.get("GOMODCACHE") or os.path.expanduser("~/go/pkg/mod")) / "github.com/!azure"
    sources = sorted(modules.glob("kubelogin@*/pkg/internal/token/options.go"))
    if not sources:
        pytest.skip("the Go module of kubelogin has not been fetched")
    declared = set(re.findall(r'fs\.\w+Var(?:P)?\(&[\w.]+, "([a-z-]+)"', sources[-1].read_text()))
    assert len(declared) > 20
    known = {name for setting in PLUGIN.settings for name in (setting.name, *setting.aliases)}
    assert declared - known == set()


UNSUPPORTED = {
    "legacy": (["--legacy"], "managed"),
    "PoP": (["--pop-enabled", "--pop-claims", "u=/x"], "kubelogin"),
    "PoP claims": (["--pop-claims", "u=/x"], "kubelogin"),
    "user name": (["--username", "a@b"], "MFA"),
    "password": (["--password", "LEAKED"], "MFA"),
    "ropc": (["--login", "ropc"], "MFA"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_supported_says_why_and_what_instead(name: str) -> None:
    """An explanation, not an unknown flag; a password is not repeated."""
    flags, words = UNSUPPORTED[name]
    told = run_plugin("get-token", *flags).failed(2, "unsupported")
    assert words in told


def test_argo_cds_command_works_from_its_variables_alone(entra: Entra, workload: dict[str, str]) -> None:
    """`argocd-k8s-auth azure` reads AAD_ names; its default mode is workload identity."""
    env = {**workload, "AAD_LOGIN_METHOD": "workloadidentity", "AAD_ENVIRONMENT_NAME": "AzurePublicCloud"}
    env["AAD_SERVER_APPLICATION_ID"] = "api://other"
    assert run_plugin("azure", env=env).credential["token"]
    assert entra.tokens[0].form["scope"] == "api://other/.default"


def test_an_unknown_word_and_flag_name_what_is_known() -> None:
    """convert-kubeconfig is another tool's, and a typing error gets its nearest flag."""
    assert "get-token" in run_plugin("convert-kubeconfig").failed(2, "usage")
    assert "--client-id" in run_plugin("--clientid", "x").failed(2, "usage")


# --- variables ---

FAMILIES = {
    "client-id": ("AZURE_CLIENT_ID", "AAD_SERVICE_PRINCIPAL_CLIENT_ID", "ARM_CLIENT_ID", "CLIENT_ID"),
    "tenant-id": ("AZURE_TENANT_ID", "ARM_TENANT_ID", "TENANT_ID"),
    "client-secret": ("AZURE_CLIENT_SECRET", "AAD_SERVICE_PRINCIPAL_CLIENT_SECRET", "ARM_CLIENT_SECRET"),
    "client-certificate": (
        "AZURE_CLIENT_CERTIFICATE_PATH",
        "AAD_SERVICE_PRINCIPAL_CLIENT_CERTIFICATE",
        "ARM_CLIENT_CERTIFICATE_PATH",
    ),
    "client-certificate-password": (
        "AZURE_CLIENT_CERTIFICATE_PASSWORD",
        "AAD_SERVICE_PRINCIPAL_CLIENT_CERTIFICATE_PASSWORD",
        "ARM_CLIENT_CERTIFICATE_PASSWORD",
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_of_variables_count_in_order_and_flags_beat_them(name: str) -> None:
    """Azure SDKs, then kubelogin, then Terraform, then the KEP; a flag always wins."""
    names = FAMILIES[name]
    for first in range(len(names)):
        variables = {variable: variable.replace("_", "-") for variable in names[first:]}
        assert login("-l", "msi", variables=variables).text(name) == names[first].replace("_", "-")
    everything = dict.fromkeys(names, "variable")
    assert login("-l", "msi", f"--{name}", "flag", variables=everything).text(name) == "flag"


def test_terraforms_variables_come_first_when_asked() -> None:
    """--use-azurerm-env-vars, as in kubelogin; a flag still wins."""
    variables = {"AZURE_CLIENT_ID": "azure", "ARM_CLIENT_ID": "arm", "AZURE_TENANT_ID": "azure"}
    asked = login("-l", "msi", "--use-azurerm-env-vars", variables=variables)
    assert (asked.text("client-id"), asked.text("tenant-id")) == ("arm", "azure")
    assert (
        login("-l", "msi", "--use-azurerm-env-vars", "--client-id", "flag", variables=variables).text("client-id")
        == "flag"
    )


def test_variables_of_other_tools_can_be_switched_off() -> None:
    """--disable-environment-override leaves flags and our own variables."""
    variables = {"AZURE_CLIENT_ID": "azure", "AAD_LOGIN_METHOD": "azurecli", "EXECCRED_TENANT_ID": "ours"}
    found = login("-l", "msi", "--disable-environment-override", variables=variables)
    assert (found.mode, found.text("client-id"), found.text("tenant-id")) == ("msi", "", "ours")


def test_pipeline_variables_count_for_pipelines_only() -> None:
    """AZURESUBSCRIPTION_ names must not choose a managed identity."""
    variables = {"AZURESUBSCRIPTION_CLIENT_ID": CLIENT, "AZURESUBSCRIPTION_TENANT_ID": TENANT}
    assert login("-l", "msi", variables=variables).text("client-id") == ""


MISSING = {
    "workloadidentity": ["client-id", "tenant-id", "federated-token-file"],
    "spn": ["client-id", "tenant-id", "client-secret or client-certificate"],
    "azurepipelines": [
        *("client-id", "tenant-id", "azure-pipelines-service-connection-id"),
        *("variable SYSTEM_ACCESSTOKEN", "variable SYSTEM_OIDCREQUESTURI"),
    ],
    "devicecode": ["client-id", "tenant-id"],
    "interactive": ["client-id", "tenant-id"],
}


@pytest.mark.parametrize("mode", MISSING)
def test_all_missing_settings_are_told_at_once(mode: str) -> None:
    """One error names them all, and the variables that were looked at."""
    error = refused("--login", mode)
    assert (error.exit_status, error.code) == (2, "settings-missing")
    assert error.message.endswith(", ".join(MISSING[mode]))
    assert "AZURE_CLIENT_ID, AAD_SERVICE_PRINCIPAL_CLIENT_ID, ARM_CLIENT_ID, CLIENT_ID" in error.hint


@pytest.mark.parametrize("mode", ["spn", "msi", "workloadidentity"])
def test_an_empty_variable_counts_as_unset(workload: dict[str, str], metadata: Metadata, mode: str) -> None:
    """Also to the SDK, which would take some of them for set."""
    names = [
        *("AZURE_REGIONAL_AUTHORITY_NAME", "AZURE_CONFIG_DIR", "AZURE_CLIENT_CERTIFICATE_PATH", "IDENTITY_ENDPOINT"),
        *("IDENTITY_HEADER", "IDENTITY_SERVER_THUMBPRINT", "IMDS_ENDPOINT", "MSI_ENDPOINT", "MSI_SECRET", "HOME"),
        *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTPS_PROXY", "NO_PROXY", "AAD_LOGIN_METHOD", "ARM_CLIENT_ID"),
        *("KUBERNETES_EXEC_INFO", "EXECCRED_CACHE_DIR", "EXECCRED_SERVER_ID", "EXECCRED_ENVIRONMENT"),
    ]
    more = {"AZURE_CLIENT_SECRET": SECRET, "AZURE_POD_IDENTITY_AUTHORITY_HOST": metadata.url}
    assert run_plugin("--login", mode, env={**dict.fromkeys(names, ""), **workload, **more}).credential["token"]


def test_every_login_mode_is_in_one_of_the_tables() -> None:
    """Modes that need nothing are the ones not in the table above."""
    assert {mode for mode, needs in NEEDS.items() if needs} == MISSING.keys()


def test_no_mode_and_an_unknown_mode_name_the_known() -> None:
    """There is no chain that guesses."""
    assert refused().code == "login-missing"
    error = refused("--login", "managed")
    assert error.code == "login-unknown"
    assert all(mode in error.message for mode in NEEDS)


def test_the_mode_follows_the_token_file_and_else_the_person() -> None:
    """Workload identity where its file is named; a device code for a person."""
    ids = {"AZURE_CLIENT_ID": CLIENT, "AZURE_TENANT_ID": TENANT}
    assert login(variables={**ids, "AZURE_FEDERATED_TOKEN_FILE": "/t"}).mode == "workloadidentity"
    assert login(interactive=True, variables=ids).mode == "devicecode"
    assert login("--login", "MSI").mode == "msi"


@pytest.mark.parametrize("tenant", ["a/b", "a b", "a?b", "é", "../common"])
def test_a_tenant_that_would_change_the_url_is_refused(tenant: str) -> None:
    """It becomes part of a path."""
    assert refused("-l", "msi", "-t", tenant).code == "tenant-invalid"


# --- clouds ---

HOSTS = {
    "AzurePublicCloud": "https://login.microsoftonline.com",
    "azurepubliccloud": "https://login.microsoftonline.com",
    "AzureCloud": "https://login.microsoftonline.com",
    "public": "https://login.microsoftonline.com",
    "AZUREUSGOVERNMENT": "https://login.microsoftonline.us",
    "AzureUSGovernmentCloud": "https://login.microsoftonline.us",
    "usgovernment": "https://login.microsoftonline.us",
    "AzureChinaCloud": "https://login.chinacloudapi.cn",
    "china": "https://login.chinacloudapi.cn",
}


@pytest.mark.parametrize("name", HOSTS)
def test_clouds_are_known_by_all_their_names(name: str) -> None:
    """Whatever the case."""
    assert login("-l", "msi", "-e", name).authority == HOSTS[name]


@pytest.mark.parametrize("name", ["AzureUSGov", "AzureGermanCloud", "AzureStackCloud", "x\n"])
def test_an_unknown_cloud_is_an_error_that_lists_the_known(name: str) -> None:
    """It never means the public cloud."""
    error = refused("-l", "msi", "-e", name)
    assert error.exit_status == 2
    assert error.code == ("setting-invalid" if "\n" in name else "environment-unknown")
    if "\n" not in name:
        assert all(known in error.hint for names in CLOUDS.values() for known in names)


AUTHORITIES = {
    ("--authority-host", "https://login.example/"): "https://login.example",
    ("--authority-host", "login.example"): "https://login.example",
    ("--authority-host", "https://adfs.example:8443/adfs/"): "https://adfs.example:8443/adfs",
    ("--authority-host", "https://[::1]:8443"): "https://[::1]:8443",
    ("-e", "AzureChinaCloud", "--authority-host", "https://login.example"): "https://login.example",
}


@pytest.mark.parametrize("flags", AUTHORITIES)
def test_an_authority_host_is_taken_as_given(flags: tuple[str, ...]) -> None:
    """For clouds that have no name here."""
    assert login("-l", "msi", *flags).authority == AUTHORITIES[flags]


def test_a_clouds_flag_beats_the_webhooks_authority() -> None:
    """AZURE_AUTHORITY_HOST is set in every pod; what the admin writes as a flag counts more."""
    host = {"AZURE_AUTHORITY_HOST": "https://login.microsoftonline.com/"}
    assert login("-l", "msi", "-e", "china", variables=host).authority == HOSTS["china"]
    both = {**host, "AAD_ENVIRONMENT_NAME": "china"}
    assert login("-l", "msi", variables=both).authority == HOSTS["public"]


@pytest.mark.parametrize(
    "host", ["http://login.example", "https://", "https://a@b", "ftp://x", "https://h/?q", "https://h h"]
)
def test_a_bad_authority_host_is_refused(host: str) -> None:
    """Plain http would show the assertion."""
    assert refused("-l", "msi", "--authority-host", host).code == "authority-invalid"


SCOPES = {
    AKS: f"{AKS}/.default",
    f"spn:{AKS}": f"{AKS}/.default",
    f"{AKS}/": f"{AKS}/.default",
    f"{AKS}/.default": f"{AKS}/.default",
    "api://my-server": "api://my-server/.default",
    "api://my-server/": "api://my-server/.default",
    "api://my-server/.default": "api://my-server/.default",
    "https://server.example/": "https://server.example/.default",
}


@pytest.mark.parametrize("server", SCOPES)
def test_the_scope_is_built_once(server: str) -> None:
    """Whatever spelling of the server id people have."""
    assert login("-l", "msi", "--server-id", server).scope == SCOPES[server]


def test_the_server_id_is_that_of_aks_unless_said_otherwise() -> None:
    """The one application of all AKS-managed clusters."""
    assert login("-l", "msi").scope == f"{AKS}/.default"


# --- profiles ---

CONFIGS: Mapping[str, Any] = {
    "login": "msi",
    "clientId": OTHER,
    "tenantId": OTHER,
    "clientSecret": "LEAKED",
    "clientCertificate": "/etc/shadow",
    "clientCertificatePassword": "LEAKED",
    "sendCertificateChain": True,
    "federatedTokenFile": "/etc/passwd",
    "identityResourceId": "/r",
    "identityObjectId": OTHER,
    "subscription": OTHER,
    "azurePipelinesServiceConnectionId": OTHER,
    "serverId": "https://management.azure.com",
    "environment": "AzureChinaCloud",
    "authorityHost": "https://127.0.0.1:1",
    "cacheDir": "/tmp/shared",
    "timeout": 100,
    "useAzurermEnvVars": True,
    "disableEnvironmentOverride": True,
    "redirectUrl": "http://127.0.0.1:1",
    "loginHint": "LEAKED",
}


@pytest.mark.parametrize("key", CONFIGS)
def test_a_profile_chooses_nothing(entra: Entra, workload: dict[str, str], key: str) -> None:
    """Identity, endpoint, file, mode, audience and the rest are the admin's."""
    info = exec_info(config={key: CONFIGS[key]}, server="https://127.0.0.1:6443")
    error = refused(**{**workload, "KUBERNETES_EXEC_INFO": info})
    assert (error.exit_status, error.code) == (1, "profile-refused")
    assert "LEAKED" not in f"{error.message}{error.hint}"
    assert entra.asked == []


IDENTITY_KEYS = ("clientId", "tenantId", "identityResourceId", "identityObjectId", "subscription")


def test_a_profile_chooses_the_identity_only_where_a_flag_says_so(entra: Entra, workload: dict[str, str]) -> None:
    """--allow-profile-identity opens identity and tenant, and nothing else."""
    workload.pop("AZURE_CLIENT_ID")
    info = exec_info(config={"clientId": CLIENT}, server="https://127.0.0.1:6443")
    run_plugin("--allow-profile-identity", env=workload, info=info).credential["token"]
    assert entra.tokens[0].form["client_id"] == CLIENT
    for key in CONFIGS.keys() - set(IDENTITY_KEYS) - {"azurePipelinesServiceConnectionId"}:
        bad = exec_info(config={key: CONFIGS[key]}, server="https://127.0.0.1:6443")
        assert (
            refused("--allow-profile-identity", **{**workload, "KUBERNETES_EXEC_INFO": bad}).code == "profile-refused"
        )


def test_the_admins_own_values_in_a_profile_are_fine(entra: Entra, workload: dict[str, str]) -> None:
    """A profile that repeats the admin's client id does no harm."""
    info = exec_info(config={"clientId": CLIENT, "tenantId": TENANT}, server="https://127.0.0.1:6443")
    assert run_plugin(env=workload, info=info).credential["token"]


def test_arguments_behind_the_seal_are_the_profiles(entra: Entra, workload: dict[str, str]) -> None:
    """What a consumer appends from a profile may not choose the identity."""
    told = run_plugin("--profile-args", "--tenant-id", OTHER, env=workload).failed(1, "profile-refused")
    assert "--allow-profile-identity" in told


def test_a_server_outside_the_list_gets_no_token(entra: Entra, workload: dict[str, str]) -> None:
    """A token for all clusters of a tenant goes to hosts of the admin's list; for others nothing is fetched."""
    info = exec_info(server="https://evil.example:443")
    run_plugin("--allow-server", "*.azmk8s.io", env=workload, info=info).failed(1, "server-refused")
    assert entra.asked == []
    good = exec_info(server="https://x.hcp.westeurope.azmk8s.io:443")
    assert run_plugin("--allow-server", "*.azmk8s.io", env=workload, info=good).credential["token"]
