"""The token of an EKS cluster: a presigned STS GetCallerIdentity. Standard library only, no clock, no network.

Sources of the rules: AWS Signature Version 4 (query string), and what aws-iam-authenticator accepts on the server.
"""

from __future__ import annotations

import binascii
import time

from execcred import ExecCredError
from execcred._sha256 import hexdigest, hmac

# Region prefix, partition, DNS suffix; the first that fits. A test compares them with botocore's endpoint data.
PARTITIONS = (
    ("cn-", "aws-cn", "amazonaws.com.cn"),
    ("us-gov-", "aws-us-gov", "amazonaws.com"),
    ("us-iso-", "aws-iso", "c2s.ic.gov"),
    ("us-isob-", "aws-iso-b", "sc2s.sgov.gov"),
    ("eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"),
    ("us-isof-", "aws-iso-f", "csp.hci.ic.gov"),
    ("eusc-", "aws-eusc", "amazonaws.eu"),
    ("", "aws", "amazonaws.com"),
)
PREFIX = "k8s-aws-v1."
LIFETIME = 900  # seconds from the signature: EKS counts so, whatever X-Amz-Expires says
MAX_TOKEN = 4096  # bytes that the server's authenticator reads
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
FORM = "application/x-www-form-urlencoded; charset=utf-8"
NO_BODY = hexdigest("")


class Keys:
    """AWS keys; `session` is "" for long-term keys, `expires` their end in epoch seconds, None when unknown.

    `source` is where they come from, in words for people.
    """

    __slots__ = ("access", "expires", "secret", "session", "source")

    def __init__(
        self, access: str, secret: str, session: str = "", expires: float | None = None, source: str = ""
    ) -> None:
        self.access = access
        self.secret = secret
        self.session = session
        self.expires = expires
        self.source = source

    def __repr__(self) -> str:
        return f"Keys(expires={self.expires})"


def partition_of(region: str) -> tuple[str, str]:
    """Return partition and DNS suffix of a region."""
    return next((partition, suffix) for prefix, partition, suffix in PARTITIONS if region.startswith(prefix))


def is_region(text: str) -> bool:
    """Tell whether `text` has the form of a region (`us-gov-west-1`): it becomes part of a host name."""
    *words, number = text.split("-")
    return (
        len(words) > 1
        and number.isascii()
        and number.isdigit()
        and all(word.isascii() and word.isalnum() and word.islower() for word in words)
    )


def sts_host(region: str, fips: bool = False) -> str:
    """Return the host of a region's own STS endpoint; never the global one, whose tokens some regions refuse."""
    partition, suffix = partition_of(region)
    # In GovCloud the plain hosts are the FIPS ones.
    name = "sts-fips" if fips and partition != "aws-us-gov" else "sts"
    return f"{name}.{region}.{suffix}"


def sts_region(own: str, region: str) -> str:
    """Return where to ask STS: this process's own region, often the only one in reach, if its partition fits."""
    return own if is_region(own) and partition_of(own) == partition_of(region) else region


def presign(keys: Keys, region: str, cluster: str, now: float, fips: bool = False) -> str:
    """Return the presigned URL for a cluster's name or id; `now` in epoch seconds. It is a secret."""
    host = sts_host(region, fips)
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    scope = f"{date[:8]}/{region}/sts/aws4_request"
    pairs = [
        ("Action", "GetCallerIdentity"),
        ("Version", "2011-06-15"),
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
        ("X-Amz-Credential", _quote(f"{keys.access}/{scope}")),
        ("X-Amz-Date", date),
        ("X-Amz-Expires", "60"),
        ("X-Amz-SignedHeaders", "host%3Bx-k8s-aws-id"),
    ]
    if keys.session:
        pairs.append(("X-Amz-Security-Token", _quote(keys.session)))
    headers = f"host:{host}\nx-k8s-aws-id:{cluster}\n\nhost;x-k8s-aws-id"
    canonical = f"GET\n/\n{_query(sorted(pairs))}\n{headers}\n{NO_BODY}"
    return f"https://{host}/?{_query(pairs)}&X-Amz-Signature={_signature(keys, scope, date, canonical)}"


def signed_headers(keys: Keys, region: str, host: str, body: str, now: float) -> dict[str, str]:
    """Return the headers that sign a form posted to STS at `host`; `now` in epoch seconds. They are secrets."""
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    scope = f"{date[:8]}/{region}/sts/aws4_request"
    headers = {"content-type": FORM, "host": host, "x-amz-date": date}
    if keys.session:
        headers["x-amz-security-token"] = keys.session
    names = ";".join(headers)
    lines = "".join([f"{name}:{value}\n" for name, value in headers.items()])
    canonical = f"POST\n/\n\n{lines}\n{names}\n{hexdigest(body)}"
    signature = _signature(keys, scope, date, canonical)
    credential = f"Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={signature}"
    del headers["host"]  # the connection writes it
    return {**headers, "authorization": f"AWS4-HMAC-SHA256 {credential}"}


def form(pairs: dict[str, str]) -> str:
    """Return pairs as a form's body."""
    return _query([(name, _quote(text)) for name, text in pairs.items()])


def _signature(keys: Keys, scope: str, date: str, canonical: str) -> str:
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hexdigest(canonical)}"
    key = b"AWS4" + keys.secret.encode()
    for part in (*scope.split("/"), text):
        key = hmac(key, part)
    return key.hex()


def token_of(url: str) -> str:
    """Return the bearer token made of a presigned URL; raises ExecCredError("token-too-long")."""
    encoded = binascii.b2a_base64(url.encode(), newline=False).rstrip(b"=").translate(bytes.maketrans(b"+/", b"-_"))
    token = PREFIX + encoded.decode()
    if len(token) > MAX_TOKEN:
        raise ExecCredError(
            "token-too-long",
            f"the token has {len(token)} bytes, and clusters refuse more than {MAX_TOKEN}",
            "the AWS session token is too long: use fewer session tags and session policies for this role",
        )
    return token


def _quote(text: str) -> str:
    """Percent-encode all but unreserved characters, as Signature Version 4 wants."""
    if UNRESERVED.issuperset(text):
        return text
    # A variable may hold any bytes; AWS says what it thinks of them.
    encoded = text.encode("utf-8", "surrogateescape")
    return "".join([chr(byte) if chr(byte) in UNRESERVED else f"%{byte:02X}" for byte in encoded])


def _query(pairs: list[tuple[str, str]]) -> str:
    return "&".join([f"{name}={value}" for name, value in pairs])
