"""The presigned token: equal to botocore's signer, the right host in every partition, what the server accepts."""

from __future__ import annotations

import gzip
import json
import string
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.endpoint_provider import EndpointProvider
from hypothesis import given, settings
from hypothesis import strategies as st

from execcred import ExecCredError
from execcred.conformance.fakes.aws import Token
from execcred_eks_sign import MAX_TOKEN, PARTITIONS, Keys, is_region, partition_of, presign, sts_host, token_of

DATA = Path(botocore.__file__).parent / "data"
BOTOCORE_PARTITIONS = json.loads((DATA / "partitions.json").read_text())
REGIONS = sorted(
    [
        (region, partition["id"])
        for partition in BOTOCORE_PARTITIONS["partitions"]
        for region in partition["regions"]
        if not region.endswith("-global")
    ]
)
RULES = EndpointProvider(
    json.loads(gzip.decompress((DATA / "sts/2011-06-15/endpoint-rule-set-1.json.gz").read_bytes())),
    BOTOCORE_PARTITIONS,
)


def botocore_url(keys: Keys, region: str, cluster: str, date: str, host: str) -> str:
    """Presign with botocore, step by step, as its add_auth does with the clock's date."""
    request = AWSRequest("GET", f"https://{host}/?Action=GetCallerIdentity&Version=2011-06-15")
    request.headers["x-k8s-aws-id"] = cluster
    request.context["timestamp"] = date
    signer: Any = SigV4QueryAuth(Credentials(keys.access, keys.secret, keys.session or None), "sts", region, expires=60)
    signer._modify_request_before_signing(request)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    signer._inject_signature_to_request(request, signer.signature(text, request))
    return str(request.url)


NAMES = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=100)
VISIBLE = st.text([chr(code) for code in range(33, 127)], min_size=1, max_size=120)


@settings(max_examples=2000, deadline=None)
@given(
    access=VISIBLE,
    secret=VISIBLE,
    session=st.one_of(st.just(""), VISIBLE, st.text(min_size=1, max_size=60).filter(lambda text: text.isprintable())),
    region=st.sampled_from([region for region, _ in REGIONS]),
    cluster=NAMES,
    now=st.integers(0, 4102444800),
    fips=st.booleans(),
)
def test_a_presigned_url_equals_botocores_byte_for_byte(
    access: str, secret: str, session: str, region: str, cluster: str, now: int, fips: bool
) -> None:
    keys = Keys(access, secret, session)
    ours = presign(keys, region, cluster, now, fips)
    date = ours.partition("X-Amz-Date=")[2][:16]
    assert ours == botocore_url(keys, region, cluster, date, sts_host(region, fips))


@pytest.mark.parametrize(("region", "partition"), REGIONS)
@pytest.mark.parametrize("fips", [False, True])
def test_the_host_is_the_one_of_botocores_endpoint_rules(region: str, partition: str, fips: bool) -> None:
    theirs = RULES.resolve_endpoint(Region=region, UseFIPS=fips, UseDualStack=False, UseGlobalEndpoint=False)
    assert f"https://{sts_host(region, fips)}" == theirs.url
    assert partition_of(region)[0] == partition
    assert is_region(region)


def test_no_partition_of_botocore_is_missing() -> None:
    theirs = {(each["id"], each["outputs"]["dnsSuffix"]) for each in BOTOCORE_PARTITIONS["partitions"]}
    assert theirs == {(partition, suffix) for _, partition, suffix in PARTITIONS}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "us",
        "us-east",
        "useast1",
        "us-east-1.evil.example",
        "us-east-1/",
        "US-EAST-1",
        "us--1",
        "us-east-x",
        "é-a-1",
    ],
)
def test_what_has_not_the_form_of_a_region_is_none(text: str) -> None:
    assert not is_region(text)


def test_the_token_is_what_a_clusters_authenticator_accepts() -> None:
    keys = Keys("ASIAdemo", "secret-of-ASIAdemo", "session/of+ASIAdemo==")
    now = 1700000000
    token = Token(token_of(presign(keys, "eu-central-1", "demo", now)))
    assert (token.scheme, token.host, token.path) == ("https", "sts.eu-central-1.amazonaws.com", "/")
    # By botocore, for the same input.
    assert token.query.pop("X-Amz-Signature") == "fc75054db6376750bd2b1a69fbe205275e2a47c9d21e9314b369f0c1baebaf50"
    assert token.query == {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "ASIAdemo/20231114/eu-central-1/sts/aws4_request",
        "X-Amz-Date": "20231114T221320Z",
        "X-Amz-Expires": "60",
        "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
        "X-Amz-Security-Token": "session/of+ASIAdemo==",
    }


def test_a_token_that_clusters_would_refuse_for_its_length_is_an_error() -> None:
    fits = Keys("A", "b", "s" * 2500)
    assert len(token_of(presign(fits, "eu-central-1", "demo", 0))) <= MAX_TOKEN
    with pytest.raises(ExecCredError, match="refuse more than 4096") as caught:
        token_of(presign(Keys("A", "b", "s" * 3500), "eu-central-1", "demo", 0))
    assert caught.value.code == "token-too-long"
    assert "sss" not in str(caught.value)


def test_keys_do_not_show_in_their_repr() -> None:
    assert repr(Keys("AKIA", "hidden", "hidden", 5.0)) == "Keys(expires=5.0)"
