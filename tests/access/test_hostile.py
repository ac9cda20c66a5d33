"""Whoever writes a ClusterProfile, or is its server, can fail its own cluster's requests, and nothing else.

Controllers catch this library's errors and those of the official client; any other would end their loop for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client
from urllib3 import HTTPResponse
from urllib3.exceptions import HTTPError, MaxRetryError

from access.support import SERVER, access, answer, load, plugin, profile, provider
from execcred import ExecCredError
from execcred.access import build_configuration
from execcred.conformance.fakes.proxy import ConnectProxy
from interop.cluster import b64

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = "https://127.0.0.1:1"
PEM = "-----BEGIN CERTIFICATE-----"
FIELDS: dict[str, dict[str, Any]] = {
    "a host with an empty label": {"server": "https://a..b"},
    "a host that is a dot": {"server": "https://."},
    "a host with a long label": {"server": f"https://{'a' * 64}.example"},
    "a long host": {"server": f"https://{'a.' * 127}example"},
    "brackets around no address": {"server": "https://[:::]"},
    "a path with a bracket": {"server": f"{NOBODY}/["},
    "a path with signs that format": {"server": f"{NOBODY}/{{namespace}}%s%zz"},
    "a TLS name that begins with a dot": {"server": NOBODY, "tls_server_name": ".spoke"},
    "a TLS name with an empty label": {"server": NOBODY, "tls_server_name": "a..b"},
    "a long TLS name": {"server": NOBODY, "tls_server_name": "a" * 300},
    "a TLS name in other letters": {"server": NOBODY, "tls_server_name": "\u00fc\u2028"},
    "a TLS name with a line break": {"server": NOBODY, "tls_server_name": "a\nb"},
    "a CA that is none": {"server": NOBODY, "certificate_authority_data": b64(PEM)},
    "a CA with a null character": {"server": NOBODY, "certificate_authority_data": b64(f"{PEM}\0")},
    "a proxy's user in other letters": {"server": NOBODY, "proxy_url": "http://%E2%82%AC:%ff@127.0.0.1:1"},
    "a proxy's user with line breaks": {"server": NOBODY, "proxy_url": "http://a%0d%0ab:c@127.0.0.1:1"},
    "a proxy with an empty label": {"server": NOBODY, "proxy_url": "http://a..b:1"},
    "a SOCKS proxy": {"server": NOBODY, "proxy_url": "socks5://127.0.0.1:1"},
}


@pytest.mark.parametrize("case", FIELDS)
def test_a_cluster_entry_raises_what_controllers_catch(tmp_path: Path, case: str) -> None:
    providers = load(tmp_path, provider(command=plugin(tmp_path, f"echo '{answer(token='t')}'")))
    with (
        pytest.raises((ExecCredError, client.ApiException, HTTPError)),
        client.ApiClient(build_configuration(profile(access(**FIELDS[case])), providers)) as api,
    ):
        client.CoreV1Api(api).list_node(_request_timeout=10)


def test_a_proxy_is_shown_user_and_password_as_they_are(tmp_path: Path) -> None:
    with ConnectProxy() as proxy:
        url = proxy.url.replace("://", "://%E2%82%AC:p%40ss@")
        providers = load(tmp_path, provider(command=plugin(tmp_path, f"echo '{answer(token='t')}'")))
        configuration = build_configuration(profile(access(server=NOBODY, proxy_url=url)), providers)
        with client.ApiClient(configuration) as api, pytest.raises(HTTPError):
            client.CoreV1Api(api).list_node(_request_timeout=10)
    assert set(proxy.authorizations) == {"Basic " + b64("\u20ac:p@ss")}


def test_a_server_that_asks_for_patience_with_each_answer_gets_half_a_minute_in_all(tmp_path: Path) -> None:
    retries: Any = build_configuration(profile(access(server=SERVER)), load(tmp_path, provider())).retries
    busy = HTTPResponse(status=429, headers={"Retry-After": "86400"})
    waits = []
    for _ in range(retries.total):
        retries = retries.increment("GET", "/", response=busy)
        waits.append(retries.get_retry_after(busy))
    assert sum(waits) == 30
    with pytest.raises(MaxRetryError):
        retries.increment("GET", "/", response=busy)
