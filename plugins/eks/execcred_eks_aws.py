"""AWS credentials through botocore: its whole chain of sources, and roles assumed on top."""

from __future__ import annotations

import os

from execcred import BadRequest, ExecCredError, LoginNeeded
from execcred._clock import clock_skew
from execcred._errors import library_missing
from execcred_eks_sign import Keys, sts_region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from execcred import Env, Request, Settings

# Sources by botocore's names for them, in our words.
SOURCES = {
    "env": "the environment",
    "assume-role": "the role of the AWS profile, and its source",
    "assume-role-with-web-identity": "the web identity token (IRSA)",
    "sso": "IAM Identity Center (SSO)",
    "shared-credentials-file": "the shared credentials file",
    "login": "aws login",
    "custom-process": "the credential_process",
    "config-file": "the AWS config file",
    "container-role": "the container credentials endpoint (EKS Pod Identity, ECS)",
    "iam-role": "the EC2 metadata server",
}


class Account:
    """One botocore session; every method raises ExecCredError and its kinds only."""

    def __init__(self, request: Request, settings: Settings, env: Env) -> None:
        self._env = env
        self._settings = settings
        self._profile = settings.text("profile")
        self._interactive = request.interactive
        self._skew = 0.0
        env.doing("loading the AWS SDK")
        env.tame(env.variables.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", ""))
        try:
            import botocore.session
            from botocore.config import Config
        except ImportError as error:
            raise library_missing(error) from None
        self._session = botocore.session.Session(profile=self._profile or None)
        self._session.register("after-call", self._compare_clocks)
        # The deadline is short and clients ask again: one retry, no long waits.
        self._session.set_default_client_config(
            Config(
                connect_timeout=3,
                read_timeout=6,
                retries={"mode": "standard", "total_max_attempts": 2},
                use_fips_endpoint=settings.flag("fips") if settings.given("fips") else None,
            )
        )
        self._session.set_config_variable("sts_regional_endpoints", "regional")
        with self._step("reading the AWS config"):
            bundle = env.variables.get("SSL_CERT_FILE")
            named = self._session.get_config_variable("ca_bundle") or env.variables.get("REQUESTS_CA_BUNDLE")
            if bundle and not named:
                self._session.set_config_variable("ca_bundle", bundle)
            self._region = env.variables.get("AWS_REGION") or self._session.get_config_variable("region") or ""

    def region(self) -> str:
        """Return the region of environment or AWS profile, "" for none."""
        return self._region

    def keys(self, region: str) -> Keys:
        """Return keys from the first source that has some."""
        self._session.set_config_variable("region", sts_region(self._region, region))
        _forgive_storing(self._env)
        with self._step("reading the AWS config"):
            resolver = self._session.get_component("credential_provider")
            if not self._interactive:
                resolver.get_provider("assume-role")._prompter = self._refuse_prompt
        for provider in resolver.providers:
            source = SOURCES.get(provider.METHOD, provider.METHOD)
            with self._step(f"getting AWS credentials from {source}", provider.METHOD):
                found = provider.load()
                if found is not None:
                    # Refreshes first what ends within 15 minutes.
                    frozen = found.get_frozen_credentials()
                    end = getattr(found, "_expiry_time", None)  # botocore shows it nowhere else
                    expires = end.timestamp() if end else None
                    return Keys(frozen.access_key, frozen.secret_key, frozen.token or "", expires, source)
        raise _none()

    def assume(self, keys: Keys, region: str, roles: tuple[str, ...]) -> Keys:
        """Return keys of the last of `roles`, each assumed with the keys of the one before."""
        for role in roles:
            with self._step(f"assuming role {role} with {keys.source}"):
                more = {}
                if role == roles[-1] and self._settings.text("external-id"):
                    more["ExternalId"] = self._settings.text("external-id")
                client = self._client("sts", sts_region(self._region, region), keys)
                answer = client.assume_role(RoleArn=role, RoleSessionName=self._settings.text("session-name"), **more)
                self._env.debug(f"the caller is {answer['AssumedRoleUser']['Arn']}")
                fresh = answer["Credentials"]
                keys = Keys(
                    fresh["AccessKeyId"],
                    fresh["SecretAccessKey"],
                    fresh["SessionToken"],
                    fresh["Expiration"].timestamp(),
                    f"role {role}",
                )
        return keys

    def find_cluster(self, keys: Keys, region: str, server: str) -> str:
        """Return the name of the cluster whose endpoint is `server`; raises also ExecCredError("cluster-unknown")."""
        from urllib.parse import urlsplit

        from execcred._urls import parse_url

        try:
            host, count = parse_url(server).host, 0
        except ValueError:  # no host would be that of a cluster without an endpoint yet
            what = "--discover needs the server" + (", and the client's is no URL" if server else "")
            raise BadRequest("server-unknown", what, "set provideClusterInfo: true, and the cluster's server") from None
        with self._step(f"looking for the cluster of this server in {region}"):
            client = self._client("eks", region, keys)
            for page in client.get_paginator("list_clusters").paginate():
                for name in page["clusters"]:
                    count += 1
                    endpoint = client.describe_cluster(name=name)["cluster"].get("endpoint", "")
                    if urlsplit(endpoint).hostname == host:
                        return str(name)
        what = f"none of the {count} clusters in {region} that this identity sees has this server"
        raise ExecCredError("cluster-unknown", what, "give --cluster-name, or another --region, or another identity")

    def _client(self, service: str, region: str, keys: Keys) -> Any:
        return self._session.create_client(
            service,
            region_name=region,
            aws_access_key_id=keys.access,
            aws_secret_access_key=keys.secret,
            aws_session_token=keys.session or None,
        )

    def _step(self, step: str, method: str = "") -> _Step:
        return _Step(self, step, method)

    def _compare_clocks(self, **event: Any) -> None:
        self._skew = clock_skew(event["http_response"].headers.get("Date"), self._env.now()) or self._skew

    def _refuse_prompt(self, _: str) -> NoReturn:
        raise LoginNeeded(
            "mfa-needed",
            "the AWS profile asks for an MFA code, and nobody may be asked here",
            "run it once in a terminal with the same --profile and --cache-dir, or use a source without MFA",
        )


def _forgive_storing(env: Env) -> None:
    """Let a renewed SSO session be used also where it cannot be stored, as with a read-only home."""
    from botocore.tokens import SSOTokenProvider
    from botocore.utils import JSONFileCache

    class Cache(JSONFileCache):
        def __setitem__(self, key: str, value: Any) -> None:
            try:
                super().__setitem__(key, value)
            except OSError as error:
                env.debug(f"the renewed SSO session is not stored: {error.strerror}")

    SSOTokenProvider.DEFAULT_CACHE_CLS = Cache


class _Step:
    """Names what is done, for the deadline's error, and turns the SDK's exceptions into ours."""

    def __init__(self, account: Account, step: str, method: str) -> None:
        self.account = account
        self.step = step
        self.method = method

    def __enter__(self) -> None:
        self.account._env.doing(self.step)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, ExecCredError) or (error and not isinstance(error, Exception)):
            return
        from execcred_eks_errors import clock_wrong, explain

        wrong = clock_wrong(self.account._skew)
        if wrong:
            raise wrong from None
        if error:
            raise explain(error, self.step, self.method, self.account._profile) from None


def _none() -> ExecCredError:
    disabled = os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true"
    last = "not asked (AWS_EC2_METADATA_DISABLED)" if disabled else "gave none"
    return ExecCredError(
        "credentials-none",
        f"no AWS credentials: none in environment, AWS profile or container endpoint; EC2 metadata server {last}",
        "set up EKS Pod Identity or IRSA, --profile, or AWS_ACCESS_KEY_ID; on EC2 give the instance a role, and in"
        " containers raise its metadata hop limit to 2 (HttpPutResponseHopLimit)",
    )
