"""gke: prints a Google access token for GKE clusters and the Connect Gateway, from application default credentials."""

from __future__ import annotations

from execcred import BadRequest, Credential, ExecCredError, Plugin, Setting, run
from execcred._cache import CACHE_SETTINGS, cached
from execcred._errors import printable
from execcred._json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from execcred import Env, Request, Settings

    # The token, which is what is cached, and its true end in epoch seconds.
    Entry = tuple[dict[str, str], float | None]

# Without the second, the cluster's RBAC sees a number instead of the e-mail address.
SCOPES = ("https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email")
LOGIN = "gcloud auth application-default login"
# Types of credential file, and the fields that each cannot do without.
TYPES = {
    "service_account": ("client_email", "private_key", "token_uri"),
    "authorized_user": ("client_id", "client_secret", "refresh_token"),
    "impersonated_service_account": ("service_account_impersonation_url", "source_credentials"),
    "external_account": ("audience", "subject_token_type", "token_url", "credential_source"),
    "external_account_authorized_user": ("client_id", "client_secret", "refresh_token", "token_url"),
}
# What else may say who an external account is, so that a cached token is found again only where nothing changed.
SHAPING = ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION")
GUARD = "allow-profile-identity"
SETTINGS = (
    Setting(
        "credential-file",
        "Google credential JSON of any type; else gcloud's application default one, else the metadata server",
        env=("GOOGLE_APPLICATION_CREDENTIALS",),
    ),
    Setting(
        "impersonate-service-account",
        "service account to act as; of several, the last, through those before it",
        kind="list",
        env=("CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT",),
        aliases=("impersonate_service_account",),
        trust=GUARD,
    ),
    Setting(
        "lifetime",
        "of an impersonated token; beyond 1h an organisation policy must allow it, up to 12h",
        kind="seconds",
        default=3600.0,
    ),
    Setting(
        "quota-project",
        "project that calls of IAM count against",
        env=("GOOGLE_CLOUD_QUOTA_PROJECT", "CLOUDSDK_BILLING_QUOTA_PROJECT"),
    ),
    Setting(
        "universe-domain",
        "refuse a credential file of another universe; spares the metadata server a question",
        env=("GOOGLE_CLOUD_UNIVERSE_DOMAIN",),
    ),
    Setting(
        "metadata-host",
        "host[:port] of the metadata server; setting it says: this is Google Cloud",
        env=("GCE_METADATA_HOST", "GCE_METADATA_ROOT"),
    ),
    Setting(GUARD, "let a profile choose whom to impersonate", kind="flag", guard=True),
    Setting(
        "use-application-default-credentials",
        "accepted from gke-gcloud-auth-plugin: it is always so",
        kind="flag",
        aliases=("use_application_default_credentials",),
        config=None,
    ),
    *CACHE_SETTINGS,
)


def credential(request: Request, settings: Settings, env: Env) -> Credential:
    """Return an access token; it is good for every cluster that the identity may use.

    Raises ExecCredError and its kinds, with the codes of the README.
    """
    identity = Identity(settings, env)
    if "connectgateway." in request.server:
        env.debug("Connect Gateway: the identity needs roles/gkehub.gatewayEditor (or Reader) in the fleet's project")
    value, expires = cached(request, settings, env, identity.inputs(), lambda: _fetch(identity))
    return Credential(token=value["token"], expires=expires)


def _fetch(identity: Identity) -> Entry:
    if not identity.info and not identity.chain:
        from execcred_gke_metadata import Metadata

        return Metadata(identity.settings, identity.env).token()
    from execcred_gke_google import token_of  # the SDK, and what its errors mean

    return token_of(identity)


class Identity:
    """Who asks Google: a credential file (`info` is `{}` for the metadata server), and whom it impersonates."""

    def __init__(self, settings: Settings, env: Env) -> None:
        self.settings, self.env = settings, env
        self.where, self.raw = self._find()
        self.info = self._parse() if self.where else {}
        self.type = str(self.info.get("type", "metadata server"))
        self.chain = [_account(name) for name in settings.items("impersonate-service-account")]
        self.lifetime = settings.seconds("lifetime")
        if self.lifetime % 1 or self.lifetime > 43200:
            raise BadRequest("setting-invalid", f"{settings.source('lifetime')} must be whole seconds, at most 12h")
        env.debug(f"credentials: {self.type} {self.where}; impersonates {', '.join(self.chain) or 'nobody'}")

    def _find(self) -> tuple[str, bytes]:
        """Return name and content of the credential file, in the order of application default credentials."""
        if path := self.settings.text("credential-file"):
            return f"{printable(path)} ({self.settings.source('credential-file')})", self._read(path)
        home = self.env.variables.get("HOME")
        folder = self.env.variables.get("CLOUDSDK_CONFIG") or (f"{home}/.config/gcloud" if home else "")
        path = f"{folder}/application_default_credentials.json"
        try:
            return (f"{printable(path)} (gcloud's)", self.env.read_file(path)) if folder else ("", b"")
        except (FileNotFoundError, NotADirectoryError):
            return "", b""
        except OSError as error:
            raise _unreadable(path, error) from None

    def _read(self, path: str) -> bytes:
        try:
            return self.env.read_file(path)
        except OSError as error:
            raise _unreadable(path, error) from None
        except ValueError:  # JSON can hold characters that no path has
            raise self.bad("names a file that cannot be one") from None

    def _parse(self) -> dict[str, Any]:
        try:
            info = loads(self.raw.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            info = None
        kind = info.get("type") if isinstance(info, dict) else None
        if not isinstance(info, dict) or not isinstance(kind, str) or kind not in TYPES:
            raise self.bad(f"is no Google credential; known types are {', '.join(TYPES)}")
        missing = [name for name in TYPES[kind] if not info.get(name)]
        if missing:
            raise self.bad(f"is a {kind} without {', '.join(missing)}")
        return info

    def bad(self, what: str) -> ExecCredError:
        """Return the error of a credential file that cannot be used."""
        hint = f"make it anew: download the key or the configuration again, or run: {LOGIN}"
        return ExecCredError("credential-file-invalid", f"{self.where} {what}", hint)

    @property
    def subject(self) -> dict[str, Any]:
        """Where an external account's subject token comes from: its file, url or executable; `{}` for other types."""
        source = self.info.get("credential_source")
        return source if self.type == "external_account" and isinstance(source, dict) else {}

    def inputs(self) -> dict[str, str]:
        """Return everything that shapes the token, for the cache's key."""
        import os

        subject = self._read(str(self.subject["file"])) if self.subject.get("file") else b""
        # Who a metadata server, a URL or a program says we are depends on where we run.
        local = not self.info or self.type == "external_account"
        return {
            **{name: self.settings.text(name) for name in ("quota-project", "universe-domain", "metadata-host")},
            **{name: self.env.variables.get(name, "") for name in SHAPING},
            "plugin": "gke",
            "scopes": " ".join(SCOPES),
            "chain": ",".join(self.chain),
            "lifetime": str(self.lifetime if self.chain else ""),
            "file": self.raw.decode("latin-1"),  # the cache keeps no more of it than a hash
            "subject": subject.decode("latin-1"),
            "machine": os.uname().nodename if local else "",
        }


def _unreadable(path: str, error: OSError) -> ExecCredError:
    return ExecCredError(
        "file-unreadable",
        f"{printable(path)} cannot be read: {error.strerror}",
        "check the path, the mount and its permissions, or unset GOOGLE_APPLICATION_CREDENTIALS",
    )


def _account(name: str) -> str:
    """Return a service account's e-mail address or id, which becomes part of a URL."""
    bare = name.removeprefix("projects/-/serviceAccounts/")
    if not bare.isascii() or not bare[:1].isalnum() or not all(char.isalnum() or char in "-._@" for char in bare):
        raise BadRequest(
            "account-invalid",
            f"{printable(name, 60)!r} is no service account",
            "write its e-mail address, as NAME@PROJECT.iam.gserviceaccount.com; delegates first, the target last",
        )
    return bare


PLUGIN = Plugin("gke", __doc__.partition(": ")[2], SETTINGS, credential, words=("gcp",))
main = run(PLUGIN)
