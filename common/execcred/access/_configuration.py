"""A `Configuration` of the official client that gets its credential from a plugin; the only module that needs it."""

from __future__ import annotations

import queue
import threading
import weakref
from base64 import b64encode
from contextlib import suppress
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote_to_bytes

from kubernetes.client import Configuration
from urllib3 import Retry

from execcred._errors import ExecCredError
from execcred._urls import parse_url
from execcred._x509 import memory_file, memory_path

from ._credentials import Credentials, shared_credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import IO

    from urllib3 import BaseHTTPResponse
    from urllib3.connectionpool import ConnectionPool

    from execcred._protocol import Credential

    from ._credentials import Observe
    from ._profile import ExecSpec

RETRIES = 3  # of broken connections: urllib3's own default
PATIENCE = 30 / RETRIES  # seconds before each of them that a server may make a thread wait with Retry-After


class ExecConfiguration(Configuration):
    """The official client's configuration for one cluster; copies share the credential.

    The token is fetched for each request. Whether there is a client certificate is asked for when an `ApiClient` is
    made, which runs the plugin; each new connection then takes the newest.
    """

    def __init__(self, spec: ExecSpec, timeout: float, observe: Observe | None) -> None:
        self._credentials = shared_credentials(spec, timeout, observe)
        self._pair = PairFile()
        cluster = spec.cluster
        super().__init__(
            host=cluster.server.partition("?")[0].rstrip("/"),
            ca_cert_data=cluster.ca_pem or None,
            verify_ssl=not cluster.insecure_skip_tls_verify,
            tls_server_name=cluster.tls_server_name or None,
            # An API server has no cause to send a controller elsewhere, to plain http even.
            retries=Renewal(RETRIES, redirect=False, credentials=self._credentials, pair=self._pair),
        )
        if cluster.proxy_url:
            self.proxy, self.proxy_headers = _proxy(cluster.proxy_url)
            self.no_proxy = ""  # as in client-go, NO_PROXY counts for proxies of the environment only

    def get_api_key_with_prefix(self, identifier: str, alias: str | None = None) -> str | None:
        """Return the Authorization header's value, None for a client certificate."""
        credential = self._credentials.get()
        if self._pair.used:
            self._pair.path(credential)
        token = credential.token
        return f"Bearer {token}" if token and {identifier, alias} & {"authorization", "BearerToken"} else None

    def auth_settings(self) -> Any:
        """Return what a request is authenticated with."""
        value = self.get_api_key_with_prefix("authorization")
        header = {"type": "api_key", "in": "header", "key": "authorization", "value": value}
        return {"BearerToken": header} if value else {}

    @property
    def cert_file(self) -> str | None:
        """The file of client certificate and key, None for a token."""
        return self._pair.path(self._credentials.get())

    @cert_file.setter
    def cert_file(self, value: str | None) -> None:
        """Take no other file: the certificate is the plugin's business."""

    @property
    def key_file(self) -> str | None:
        """The same file."""
        return self.cert_file

    @key_file.setter
    def key_file(self, value: str | None) -> None:
        """Take no other file."""


def _proxy(url: str) -> tuple[str, dict[str, str] | None]:
    """Return a proxy's URL, and the header that shows it user and password, None without them.

    Raises ExecCredError("library-missing") for a proxy of socks5 without PySocks.
    """
    scheme, _, rest = url.partition("://")
    if scheme.lower() == "socks5":
        if not find_spec("socks"):
            hint = "install PySocks, which the extra `access` brings"
            raise ExecCredError("library-missing", "PySocks, which a proxy-url of socks5 needs, is not installed", hint)
        return f"socks5h://{rest}", None  # as in client-go, the proxy resolves the server's name
    userinfo = parse_url(f"http://{rest}").userinfo
    header = f"Basic {b64encode(unquote_to_bytes(userinfo)).decode()}"
    return url, {"proxy-authorization": header} if userinfo else None


class PairFile:
    """A client certificate and its key in memory, under one path that each new connection reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._text = ""

    def __deepcopy__(self, memo: dict[int, Any]) -> PairFile:
        return self

    @property
    def used(self) -> bool:
        """Whether a client was told the path."""
        return self._file is not None

    def path(self, credential: Credential) -> str | None:
        """Return the path, once it holds this credential's pair; None when it has none."""
        if not credential.certificate:
            return None
        text = f"{credential.certificate.rstrip()}\n{credential.key}"
        with self._lock:
            if not self._file:
                self._file = memory_file(text)
                weakref.finalize(self, self._file.close)
            elif text != self._text:
                # A handshake that reads in between fails, and urllib3 tries it again.
                self._file.seek(0)
                self._file.write(text.encode())
                self._file.truncate()
                self._file.flush()
            self._text = text
            return memory_path(self._file)


class Renewal(Retry):
    """urllib3's policy of retries, which sees each answer: a 401 ends the credential.

    As in client-go the request is not sent again with a new token. With a client certificate it is, once, on a new
    connection, as the old one may have had an older certificate.
    """

    def __init__(self, *args: Any, credentials: Credentials, pair: PairFile, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self._credentials = credentials
        self._pair = pair

    def new(self, **fields: Any) -> Renewal:
        """Return a copy with other fields."""
        return super().new(credentials=self._credentials, pair=self._pair, **fields)

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Tell whether to send a request again."""
        if status_code != 401:
            return super().is_retry(method, status_code, has_retry_after)
        if self._pair.used and not any(each.status == 401 for each in self.history):
            return True
        self._credentials.refuse()
        return False

    def parse_retry_after(self, retry_after: str) -> float:
        """Return the seconds to wait: a server that a profile names must not hold up a controller for hours."""
        return min(super().parse_retry_after(retry_after), PATIENCE)

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Renewal:
        """Count an attempt; after a 401 no connection with an older certificate is used again."""
        if response is not None and response.status == 401:
            response.drain_conn()
            close_idle(_pool)
        return super().increment(method, url, response, error, _pool, _stacktrace)


def close_idle(pool: Any) -> None:
    """Close the connections that wait in a pool; they connect anew when they are used."""
    idle = []
    with suppress(queue.Empty):
        while pool.pool:
            idle.append(pool.pool.get_nowait())
    for connection in idle:
        if connection:
            connection.close()
        pool.pool.put_nowait(connection)


def build(spec: ExecSpec, timeout: float, observe: Observe | None) -> Configuration:
    """Return the configuration for a spec."""
    return ExecConfiguration(spec, timeout, observe)
