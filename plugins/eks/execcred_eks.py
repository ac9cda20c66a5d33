"""eks: prints a token for an Amazon EKS cluster, signed with AWS credentials from any source."""

from __future__ import annotations

from execcred import PROFILE, BadRequest, Credential, ExecCredError, Plugin, Setting, run
from execcred._cache import CACHE_SETTINGS, cached
from execcred_eks_sign import LIFETIME, Keys, is_region, partition_of, presign, sts_host, token_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from execcred import Env, Request, Settings
    from execcred_eks_aws import Account

    # Cached: the session of an identity, which many clusters share; never a cluster's token.
    Entry = tuple[dict[str, str], float | None]

GUARD = "allow-profile-identity"
SETTINGS = (
    Setting(
        "cluster-name",
        "the cluster's name, id or ARN (which also tells the region)",
        env=("KUBERNETES_AWS_AUTHENTICATOR_CLUSTER_ID",),
        config=("clusterId",),
        aliases=("cluster-id", "i"),
        trust=PROFILE,
    ),
    Setting("region", "the cluster's region; else its ARN's, its server's, AWS_REGION's", trust=PROFILE),
    Setting(
        "role-arn",
        "IAM role to assume; several are assumed in turn",
        kind="list",
        aliases=("role", "r"),
        trust=GUARD,
    ),
    Setting("external-id", "external id that the last role's trust policy asks for", aliases=("e",), trust=GUARD),
    Setting("session-name", "name of role sessions", default="EKSGetToken", aliases=("s",), trust=GUARD),
    Setting("profile", "AWS profile; unlike AWS_PROFILE it beats keys in the environment", trust=GUARD),
    Setting("fips", "sign for the FIPS endpoint of STS", kind="flag", env=("AWS_USE_FIPS_ENDPOINT",)),
    Setting("discover", "without a name: look for the cluster that has this server, in its region", kind="flag"),
    Setting(GUARD, "let a profile choose role, external id, session name, AWS profile", kind="flag", guard=True),
    *CACHE_SETTINGS,
)
TOKEN_FILES = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
SESSION = ("access", "secret", "session", "source")  # of Keys, what is cached
# Per setting: further characters, and lengths, as the IAM API reference has them.
SHAPES = {"session-name": ("_+=,.@-", 2, 64), "external-id": ("_+=,.@:/-", 2, 1224)}


def credential(request: Request, settings: Settings, env: Env) -> Credential:
    """Return the token of one cluster; it ends 15 minutes from now, or with the session that signed it.

    Raises BadRequest("cluster-missing" | "cluster-invalid" | "region-missing" | "region-invalid" | "setting-invalid"),
    ExecCredError("credentials-…"), and what `execcred_eks_aws` raises.
    """
    _check(settings)
    identity = Identity(request, settings, env)
    name, arn_region = split_cluster(settings.text("cluster-name"))
    if not name and not settings.flag("discover"):
        raise BadRequest(
            "cluster-missing",
            "no cluster name",
            "give --cluster-name, or --discover; from a ClusterProfile: set provideClusterInfo: true, and clusterName"
            " in the extension client.authentication.k8s.io/exec of its access provider",
        )
    region, source = region_of(request, settings, env.variables, arn_region)
    if not region:
        region, source = identity.account().region(), "the AWS profile"
    if not is_region(region):
        raise _no_region(region, source)
    env.debug(f"region {region} from {source}, STS host {sts_host(region, settings.flag('fips'))}")
    keys = identity.keys(region, name)
    if not name:
        name = identity.account().find_cluster(keys, region, request.server)
    env.doing(f"signing the token of cluster {name} with {keys.source}")
    now = env.now() // 1
    url = presign(keys, region, name, now, settings.flag("fips"))
    return Credential(token=token_of(url), expires=min(now + LIFETIME, keys.expires or now + LIFETIME))


# --- which cluster, where ---


def split_cluster(text: str) -> tuple[str, str]:
    """Return name and region of a cluster given by name, id or ARN; "" for what it does not tell."""
    name, region = text, ""
    if text.startswith("arn:"):
        parts = text.split(":", 5)
        fits = len(parts) == 6 and parts[2] == "eks" and is_region(parts[3]) and parts[5].startswith("cluster/")
        if not fits or partition_of(parts[3])[0] != parts[1]:
            raise BadRequest(
                "cluster-invalid", "not the ARN of an EKS cluster", "arn:aws:eks:REGION:ACCOUNT:cluster/NAME"
            )
        name, region = parts[5].removeprefix("cluster/"), parts[3]
    if not _made_of(name, "-_.", 0 if not text else 1, 253):  # it becomes a signed header
        raise BadRequest("cluster-invalid", "not the name or id of a cluster", "letters, digits, dashes, _ and dots")
    return name, region


def region_of(
    request: Request, settings: Settings, variables: Mapping[str, str], arn_region: str = ""
) -> tuple[str, str]:
    """Return the region and what told it: flag > ARN > server > config > environment; "" when nothing does.

    The environment's region is where this process runs, not where the cluster is, hence its low rank.
    """
    text, source = settings.text("region"), settings.source("region")
    pinned = bool(text) and not settings.from_profile("region")
    ranked = [
        (text if pinned else "", source),
        (arn_region, "the cluster's ARN"),
        (region_of_server(request.server), "the server's host name"),
        (text, source),
        *[(variables.get(name, ""), f"variable {name}") for name in ("AWS_REGION", "AWS_DEFAULT_REGION")],
    ]
    return next(((region, told) for region, told in ranked if region), ("", ""))


def region_of_server(server: str) -> str:
    """Return the region in the host name of an EKS endpoint, "" for other hosts.

    Two forms: `ID.gr7.REGION.eks.amazonaws.com` and, with IPv6, `ID.gr7.eks-cluster.REGION.api.aws`.
    """
    host = server.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0].lower()
    labels = host.split(".")
    for mark, step in (("eks", -1), ("eks-cluster", 1)):
        at = labels.index(mark) + step if mark in labels else -1
        if 0 < at < len(labels) - 1 and is_region(labels[at]):
            return labels[at]
    return ""


def _no_region(region: str, source: str) -> BadRequest:
    if region:
        return BadRequest("region-invalid", f"{source} tells no region", "write it like eu-central-1")
    hint = "give --region, the cluster's ARN, or AWS_REGION; the region of the cluster, not of this process"
    return BadRequest("region-missing", "no region: neither flag, ARN, server, config nor environment tell it", hint)


# --- as whom ---


class Identity:
    """Who signs: the chosen source of AWS credentials, and the roles assumed on top of it."""

    def __init__(self, request: Request, settings: Settings, env: Env) -> None:
        self._request = request
        self._settings = settings
        self._env = env
        self._account: Account | None = None

    def account(self) -> Account:
        """Return the AWS SDK's session; imports the SDK."""
        if self._account is None:
            from execcred_eks_aws import Account

            self._account = Account(self._request, self._settings, self._env)
        return self._account

    def keys(self, region: str, cluster: str) -> Keys:
        """Return keys to sign with: from environment or cache without the SDK, else as the SDK finds them."""
        given = None if self._settings.text("profile") else environment_keys(self._env)
        roles = self._settings.items("role-arn")
        if given and not roles:
            return given

        def fetch() -> Entry:
            keys = self._sessions(region, given, roles)
            return {name: getattr(keys, name) for name in SESSION}, keys.expires

        inputs = self._inputs(partition_of(region)[0])
        value, expires = cached(
            *(self._request, self._settings, self._env, inputs, fetch),
            fields=SESSION,
            answer_seconds=LIFETIME,
            target=cluster,
        )
        return Keys(**value, expires=expires)

    def _sessions(self, region: str, given: Keys | None, roles: tuple[str, ...]) -> Keys:
        """Return keys of the last role, without the SDK where the environment alone decides."""
        from execcred_eks_sts import IRSA, Sts, check_endpoint, environment_decides

        check_endpoint(self._env.variables)
        enough = given or all(self._env.variables.get(name) for name in IRSA)
        if enough and environment_decides(self._settings, self._env, self._files()):
            sts = Sts(region, self._settings, self._env)
            keys = given or sts.web_identity()
            for role in roles:
                keys = sts.assume(keys, role, self._settings.text("external-id") if role == roles[-1] else "")
            return keys
        account = self.account()
        keys = given or account.keys(region)
        return account.assume(keys, region, roles) if roles else keys

    def _files(self) -> tuple[str, str]:
        """Return the files that may configure the SDK."""
        variables, folder = self._env.variables, self._env.variables.get("HOME", "") + "/.aws/"
        names = {"AWS_CONFIG_FILE": "config", "AWS_SHARED_CREDENTIALS_FILE": "credentials"}
        config, credentials = [variables.get(name) or folder + file for name, file in names.items()]
        return config, credentials

    def _inputs(self, partition: str) -> dict[str, str]:
        """Return all that decides whose session it is: every AWS variable but the region, settings, config files."""
        variables, settings = self._env.variables, self._settings
        inputs = {name: text for name, text in variables.items() if name.startswith("AWS_")}
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            inputs.pop(name, None)
        inputs |= {name: settings.text(name) for name in ("external-id", "session-name", "profile", "fips")}
        tokens = [variables.get(name, "") for name in TOKEN_FILES]
        inputs["files"] = "\n".join([_version_of(file) for file in (*self._files(), *tokens)])
        return {**inputs, "roles": ",".join(settings.items("role-arn")), "partition": partition}


def environment_keys(env: Env) -> Keys | None:
    """Return the keys of AWS_ACCESS_KEY_ID and its companions, None without them.

    Raises ExecCredError("credentials-partial" | "credentials-invalid").
    """
    variables = env.variables
    if not variables.get("AWS_ACCESS_KEY_ID"):
        return None
    if not variables.get("AWS_SECRET_ACCESS_KEY"):
        raise ExecCredError(
            "credentials-partial",
            "variable AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not",
            "set both, or neither",
        )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"):
        text = variables.get(name, "")
        for position, char in enumerate(text):
            if not "!" <= char <= "~":
                what = f"character {position + 1} of {len(text)} in variable {name} is U+{ord(char):04X}"
                raise ExecCredError("credentials-invalid", what, "set the bare key, without blanks or line breaks")
    source = "keys of the environment"
    if variables.get("AWS_PROFILE"):
        source += ", which beat AWS_PROFILE (--profile would beat them)"
    session = variables.get("AWS_SECURITY_TOKEN") or variables.get("AWS_SESSION_TOKEN", "")
    expires = _expiration(variables.get("AWS_CREDENTIAL_EXPIRATION", ""))
    return Keys(variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"], session, expires, source)


def _expiration(text: str) -> float | None:
    if not text:
        return None
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        what = "variable AWS_CREDENTIAL_EXPIRATION is not a date"
        raise ExecCredError("credentials-invalid", what, "write it as 2026-01-31T12:00:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _version_of(path: str) -> str:
    import os

    try:
        status = os.stat(path)
    except OSError:
        return path
    return f"{path} {status.st_mtime_ns} {status.st_size} {status.st_ino}"


# --- settings ---


def _check(settings: Settings) -> None:
    """Raise BadRequest("setting-invalid") for what STS would refuse anyway."""
    for name, (more, least, most) in SHAPES.items():
        if settings.text(name) and not _made_of(settings.text(name), more, least, most):
            hint = f"letters, digits and {more}; {least} to {most} characters"
            raise BadRequest("setting-invalid", f"{settings.source(name)} is not valid for {name}", hint)
    for role in settings.items("role-arn"):
        parts = role.split(":", 5)
        fits = len(parts) == 6 and (parts[0], parts[2], parts[3]) == ("arn", "iam", "")
        if not fits or not parts[5].startswith("role/"):
            hint = "write it like arn:aws:iam::111122223333:role/NAME"
            raise BadRequest("setting-invalid", f"{settings.source('role-arn')} is not the ARN of a role", hint)


def _made_of(text: str, more: str, least: int, most: int) -> bool:
    return least <= len(text) <= most and all(char in more or (char.isascii() and char.isalnum()) for char in text)


PLUGIN = Plugin(
    "eks", __doc__.partition(": ")[2], SETTINGS, credential, words=("eks get-token", "get-token", "token", "aws")
)
main = run(PLUGIN)
