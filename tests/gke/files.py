"""Credential files, as Google's tools write them."""

from __future__ import annotations

from typing import Any

from execcred.conformance.fakes.google import AUDIENCE, ROBOT, STS_URI, TARGET, TOKEN_URI, Json
from execcred.conformance.fakes.pki import key_pem, private_key


def service_account(**fields: Any) -> Json:
    """Return a service account's key file."""
    return {
        "type": "service_account",
        "client_email": ROBOT,
        "private_key_id": "key-1",
        "private_key": key_pem(private_key("rsa")),
        "token_uri": TOKEN_URI,
        "project_id": "project",
        **fields,
    }


def authorized_user(**fields: Any) -> Json:
    """Return the credential file of a person."""
    return {
        "type": "authorized_user",
        "client_id": "client-1",
        "client_secret": "client-secret-1",
        "refresh_token": "refresh-token-1",
        **fields,
    }


def impersonation_url(account: str) -> str:
    """Return where tokens of `account` come from."""
    return f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{account}:generateAccessToken"


def impersonated(source: Json, account: str = TARGET, *delegates: str) -> Json:
    """Return a credential file that acts as `account`."""
    return {
        "type": "impersonated_service_account",
        "service_account_impersonation_url": impersonation_url(account),
        "delegates": [f"projects/-/serviceAccounts/{each}" for each in delegates],
        "source_credentials": source,
    }


def external_account(source: Json, **fields: Any) -> Json:
    """Return a workload identity federation's file."""
    return {
        "type": "external_account",
        "audience": AUDIENCE,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": STS_URI,
        "credential_source": source,
        **fields,
    }


def external_user(**fields: Any) -> Json:
    """Return a workforce user's credential file."""
    return {**authorized_user(), "type": "external_account_authorized_user", "token_url": STS_URI, **fields}
