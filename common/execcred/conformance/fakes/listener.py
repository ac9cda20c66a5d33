"""What every stand-in is: a listener on loopback with one thread per connection, gone without a trace at its end."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

AnySocket = TypeVar("AnySocket", bound=socket.socket)
HEAD_LIMIT = 1 << 20


class Head(NamedTuple):
    """Method, target and headers (names in lower case) of a request."""

    method: str
    target: str
    headers: dict[str, str]


class Listener:
    """A context manager that serves while it is open; a subclass says what it does with one connection."""

    scheme = "https"

    def __init__(self, context: ssl.SSLContext | None, host: str = "127.0.0.1", hostname: str = "") -> None:
        self._context = context
        self._socket = socket.create_server(
            (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=512
        )
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self.closing = threading.Event()
        self.connections = 0
        self.handshake_failures: list[str] = []
        self.port: int = self._socket.getsockname()[1]
        self.host = hostname or host

    @property
    def netloc(self) -> str:
        """host:port as a URL spells it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.netloc}"

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._acceptor.join(5)
        self._socket.close()  # not before: its number may be the next server's
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(each, socket.SHUT_RDWR)  # SSLSocket's own would confuse its reader
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), f"a connection of {self.url} has not ended"

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True)
            self._threads = [each for each in self._threads if each.is_alive()] + [thread]
            thread.start()

    def _serve(self, raw: socket.socket, number: int) -> None:
        raw.settimeout(30)
        # Without it an answer may wait 40 ms for the client's delayed ACK.
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._kept(raw), contextlib.suppress(OSError):
            if self._context is None:
                self.handle(raw, number)
                return
            with self._kept(self._context.wrap_socket(raw, True, do_handshake_on_connect=False)) as secure:
                try:
                    secure.do_handshake()
                except OSError as error:
                    self.handshake_failures.append(getattr(error, "reason", None) or type(error).__name__)
                else:
                    self.handle(secure, number)

    @contextlib.contextmanager
    def _kept(self, connection: AnySocket) -> Iterator[AnySocket]:
        """Keep a connection where the end of the server finds it."""
        with self._lock:
            self._open.add(connection)
        try:
            if self.closing.is_set():
                raise ConnectionAbortedError
            yield connection
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def handle(self, connection: socket.socket, number: int) -> None:
        """Serve connection `number`; it is closed afterwards, and OSError is the client's going away."""
        raise NotImplementedError


def read_head(connection: socket.socket) -> Head | None:
    """Read up to the end of a request's head, not a byte more; None when the client has gone."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        # What has arrived is looked at first, so that nothing of a body or of TLS in a tunnel is taken.
        byte = connection.recv(1)
        if not byte or len(head) > HEAD_LIMIT:
            return None
        head += byte
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = [*first.split(" "), "", ""][:3]
    fields = [line.partition(":") for line in lines]
    return Head(method, target, {name.strip().lower(): value.strip() for name, _, value in fields})


def read_body(connection: socket.socket, head: Head) -> bytes:
    """Read a body of the announced length."""
    length = int(head.headers.get("content-length", "0"))
    body = b""
    while len(body) < length:
        part = connection.recv(length - len(body))
        if not part:
            raise ConnectionResetError("half a request")
        body += part
    return body
