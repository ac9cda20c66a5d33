"""What a refusal of Google's means, and what helps.

No text of a server, of a program or of google-auth reaches an error, as it may hold a secret: only status codes and
the machine-readable words of RFC 6749 and of google.rpc.ErrorInfo.
"""

from __future__ import annotations

from execcred import ExecCredError, LoginNeeded, TryAgain
from execcred._clock import clock_told
from execcred_gke import LOGIN, SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from execcred_gke import Identity

SKEW = 120.0  # seconds that a clock may be wrong before it is worth a word; Google accepts up to five minutes
USER = "authorized_user external_account_authorized_user"
TIMED = ("service_account", "sts")  # who looks at times that were signed
BUSY = ("RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED")


class Refusal:
    """A row: who refuses (a type of credential file, iam, sts or subject), its words, our code, what happened, hint."""

    __slots__ = ("code", "error", "hint", "what", "who", "words")

    def __init__(
        self, who: str, words: str, code: str, what: str, hint: str, *, error: type[ExecCredError] = ExecCredError
    ) -> None:
        self.who, self.words = who.split(), words.split()
        self.code, self.what, self.hint, self.error = code, what, hint, error

    def fits(self, who: str, words: list[str]) -> bool:
        """Tell whether the row is about this refusal; a row without words is about every one."""
        return (not self.who or who in self.who) and (not self.words or any(word in self.words for word in words))


REFUSALS = (
    Refusal(USER, "invalid_grant", "login-expired", "the login is over or revoked", f"run: {LOGIN}", error=LoginNeeded),
    Refusal(
        USER,
        "invalid_scope",
        "login-scopes",
        "the login does not cover the scopes cloud-platform and userinfo.email",
        f"run: {LOGIN} --scopes=openid,{','.join(SCOPES)}",
        error=LoginNeeded,
    ),
    Refusal(
        "service_account",
        "invalid_grant",
        "key-refused",
        "the service account or its key is deleted, disabled or over",
        "make a new key, or better: use workload identity",
    ),
    Refusal(
        "iam",
        "SERVICE_DISABLED",
        "api-disabled",
        "the IAM Service Account Credentials API is not enabled",
        "run: gcloud services enable iamcredentials.googleapis.com",
    ),
    Refusal(
        "iam sts",
        "USER_PROJECT_DENIED",
        "quota-project-denied",
        "the quota project may not be used",
        "grant roles/serviceusage.serviceUsageConsumer in it, or choose another with --quota-project",
    ),
    Refusal(
        "iam",
        "PERMISSION_DENIED",
        "impersonation-denied",
        "the permission iam.serviceAccounts.getAccessToken is missing",
        "grant roles/iam.serviceAccountTokenCreator on that service account to the identity before it in the chain",
    ),
    Refusal(
        "iam",
        "NOT_FOUND",
        "account-missing",
        "there is no such service account",
        "correct --impersonate-service-account, or the URL in the credential file",
    ),
    Refusal(
        "iam",
        "INVALID_ARGUMENT FAILED_PRECONDITION",
        "impersonation-invalid",
        "lifetime or chain is not allowed",
        "beyond 1h, constraints/iam.allowServiceAccountCredentialLifetimeExtension must list the account",
    ),
    Refusal(
        "sts",
        "invalid_grant invalid_target invalid_request unauthorized_client access_denied",
        "federation-refused",
        "the identity pool does not accept the subject token",
        "check the provider's issuer, audience and attribute condition, and that the subject token is not over",
    ),
    Refusal("subject", "", "subject-token", "no subject token", "check credential_source of the credential file"),
    Refusal("", "", "credentials-refused", "the credentials are not accepted", "make the credential file anew"),
)


def refused(who: str, place: str, status: int, body: bytes, skew: float) -> ExecCredError:
    """Return the error for an answer that is none; `skew` is how far our clock is ahead of the server's, in seconds."""
    words = _words(body)
    told = f"{place} answered {' '.join([str(status), *words[:1]])}"
    if status == 429 or any(word in BUSY for word in words):
        return TryAgain("throttled", told, "try again later")
    if status >= 500 or status == 408:
        return TryAgain("google-error", told, "try again later")
    row = next(row for row in REFUSALS if row.fits(who, words))
    if abs(skew) > SKEW and who in TIMED:
        hint = f"set the clock; if that does not help: {row.hint}"
        return ExecCredError("clock-wrong", f"{told}, and {clock_told(skew)}", hint)
    return row.error(row.code, f"{told}: {row.what}", row.hint)


def _words(body: bytes) -> list[str]:
    """Return the machine-readable words of an error: OAuth's, or status and reasons of a Google API."""
    import json

    try:
        error = json.loads(body)["error"]
        found = [error] if isinstance(error, str) else [error.get("status")]
        found += [] if isinstance(error, str) else [each.get("reason") for each in error.get("details", [])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return [word for word in found if isinstance(word, str) and len(word) < 60 and word.replace("_", "").isalnum()]


def unexpected(identity: Identity, error: Exception, asked: str, place: str) -> ExecCredError:
    """Say what an exception of google-auth's means; `asked` and `place` are who answered last, "" for nobody yet."""
    name = type(error).__name__
    if asked in ("", "subject") and "executable" in identity.subject:
        return ExecCredError(
            "executable-failed",
            f"the executable of {identity.where} gave no subject token ({name})",
            "run it by hand: it must exit with 0 and print nothing but the JSON that google-auth documents",
        )
    if asked in ("", "subject") and identity.subject:
        return ExecCredError(
            "subject-token",
            f"the subject token of {identity.where} cannot be read ({name})",
            "check credential_source of that file: file or url, format and subject_token_field_name",
        )
    what = f"{place or identity.where} gave nothing that is a token ({name})"
    return ExecCredError("answer-invalid", what, "check the URLs in the credential file, and the proxy")
