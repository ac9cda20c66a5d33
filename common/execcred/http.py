"""One HTTP request on one connection: TLS verified, no redirects, a size cap, a deadline, a CONNECT proxy if asked.

Own code, as http.client costs more start-up than the whole request: see the numbers of `make bench`.
"""

from __future__ import annotations

import socket
from io import BufferedReader, RawIOBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping
    from typing import Any, BinaryIO

    from ._urls import Url

HEAD_LIMIT = 65536
CHUNKS_LIMIT = 10_000  # of a few bytes each, an answer could go on for minutes before it is too large
HALF = "the connection was closed in the middle of an answer"


class Response:
    """Status, headers (names and values in lower case) and body of an answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.body = body
        self.headers = headers or {}


class ProxyError(ConnectionError):
    """The proxy did not open a tunnel."""


class Server:
    """Where and how to connect: URL, TLS context (None for a metadata server), name on the certificate, proxy."""

    __slots__ = ("context", "proxy", "tls_name", "url")

    def __init__(self, url: Url, context: ssl.SSLContext | None, tls_name: str = "", proxy: Url | None = None) -> None:
        self.url = url
        self.context = context
        self.tls_name = tls_name or url.host
        self.proxy = proxy


def send(
    server: Server,
    path: str,
    headers: Mapping[str, str],
    remaining: Callable[[], float],
    limit: int,
    *,
    body: bytes | None = None,
) -> Response:
    """Send one GET, a POST when there is a `body`, and return the answer, whatever its status.

    `remaining()` gives the seconds left, `limit` the largest body in bytes.
    Raises OSError (also ssl.SSLError, TimeoutError) from the network, ValueError for an answer that is not HTTP.
    """
    verb = "GET" if body is None else "POST"
    host = server.url.authority.removesuffix(":443" if server.context else ":80")
    lines = [f"{verb} {server.url.path.rstrip('/')}{path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [] if body is None else [f"Content-Length: {len(body)}"]
    lines += ["Accept-Encoding: identity", "Connection: close", "", ""]
    if not all(line.isprintable() for line in lines):  # one line must not become two
        raise ValueError("the request holds a control character")
    raw = _connect(server, remaining)
    # Names go as bytes: for text both calls would import the IDNA codec.
    name = server.tls_name.encode("ascii")
    with raw, server.context.wrap_socket(raw, server_hostname=name) if server.context else raw as sock:
        sock.sendall("\r\n".join(lines).encode("ascii") + (body or b""))
        return _read(sock, remaining, limit)


def _connect(server: Server, remaining: Callable[[], float]) -> socket.socket:
    target = server.proxy or server.url
    sock = socket.create_connection((target.host.encode("ascii"), target.port), _left(remaining))  # type: ignore[arg-type]
    # Without it the request waits for the delayed ACK of the TLS Finished.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if server.proxy:
        try:
            _open_tunnel(sock, server, server.proxy.userinfo, remaining)
        except BaseException:
            sock.close()
            raise
    return sock


def _open_tunnel(sock: socket.socket, server: Server, userinfo: str, remaining: Callable[[], float]) -> None:
    lines = [f"CONNECT {server.url.authority} HTTP/1.1", f"Host: {server.url.authority}"]
    if userinfo:
        from base64 import b64encode
        from urllib.parse import unquote_to_bytes

        lines.append(f"Proxy-Authorization: Basic {b64encode(unquote_to_bytes(userinfo)).decode()}")
    sock.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < HEAD_LIMIT:
        sock.settimeout(_left(remaining))
        byte = sock.recv(1)  # one at a time: what follows the head belongs to TLS
        if not byte:
            break
        head += byte
    status = head.partition(b"\r\n")[0].split(b" ")
    if len(status) < 2 or not status[0].startswith(b"HTTP/1.") or status[1] != b"200":
        shown = status[1].decode("ascii", "replace")[:3] if len(status) > 1 else "nothing"
        raise ProxyError(f"the proxy {server.proxy.authority if server.proxy else ''} answered {shown}")


def _left(remaining: Callable[[], float]) -> float:
    left = remaining()
    if left <= 0:
        raise TimeoutError("the deadline is over")
    return left


class _Timed(RawIOBase):
    """A socket's bytes until the deadline, though they drip: each one would start a socket's own timeout anew."""

    def __init__(self, sock: socket.socket, remaining: Callable[[], float]) -> None:
        self._sock = sock
        self._remaining = remaining

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(_left(self._remaining))
        return self._sock.recv_into(buffer)


def _read(sock: socket.socket, remaining: Callable[[], float], limit: int) -> Response:
    with BufferedReader(_Timed(sock, remaining)) as reader:
        status, headers = _head(reader)
        while 100 <= status < 200:
            status, headers = _head(reader)
        if headers.get("content-encoding", "identity") != "identity":
            raise ValueError("the answer is compressed, which was not asked for")
        if headers.get("transfer-encoding", "identity") != "identity":
            return Response(status, _chunked(reader, limit), headers)
        announced = _number(headers.get("content-length", "0"))
        # What is announced too large is not waited for; without a length, the end is the connection's.
        body = reader.read(announced if "content-length" in headers else limit + 1) if announced <= limit else b""
        if max(announced, len(body)) > limit:
            raise ValueError(f"the answer is larger than {limit} bytes")
        if len(body) < announced:
            raise ConnectionError(HALF)
        return Response(status, body, headers)


def _head(reader: BinaryIO) -> tuple[int, dict[str, str]]:
    lines: list[str] = []
    size = 0
    while size < HEAD_LIMIT:
        line = reader.readline(HEAD_LIMIT)
        size += len(line)
        if line in (b"\r\n", b"\n"):
            break
        if not line:
            raise ConnectionError("the connection was closed before an answer")
        if not lines and not line.startswith(b"HTTP/1."):
            raise ValueError("the answer is not HTTP/1.1")
        lines.append(line.decode("latin-1"))
    words = lines[0].split(None, 2) if lines else []
    if size >= HEAD_LIMIT or len(words) < 2:
        raise ValueError("the answer is not HTTP/1.1")
    fields = [line.partition(":") for line in lines[1:]]
    return _number(words[1]), {name.strip().lower(): value.strip().lower() for name, _, value in fields}


def _number(text: str, base: int = 10) -> int:
    try:
        number = int(text, base)
    except ValueError:  # its own message would show the text, which may be a line of a Secret
        number = -1
    if number < 0:
        raise ValueError("the answer is not HTTP/1.1")
    return number


def _chunk_size(line: bytes) -> int:
    if not line:
        raise ConnectionError(HALF)
    return _number(line.partition(b";")[0].decode("latin-1"), 16)


def _chunked(reader: BinaryIO, limit: int) -> bytes:
    body = bytearray()
    count = 0
    while size := _chunk_size(reader.readline(1024)):
        count += 1
        if len(body) + size > limit or count > CHUNKS_LIMIT:
            raise ValueError(f"the answer is larger than {limit} bytes")
        chunk = reader.read(size)
        if len(chunk) != size or reader.read(2) != b"\r\n":
            raise ConnectionError(HALF)
        body += chunk
    return bytes(body)
