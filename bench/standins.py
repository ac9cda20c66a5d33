"""Stand-in servers for the benchmark: fixed answers, each in one write with TCP_NODELAY, after a fixed delay."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

import trustme

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Callable[[str, str], tuple[int, str, str]]  # (request line, body) -> status, content type, body


class StandIn:
    """A server on loopback, over TLS if it has a certificate; counts what it answers.

    `proxied`: it is a proxy, too, and all tunnels end at itself; for clients that know one host name only.
    """

    def __init__(
        self, answer: Answer, tls: ssl.SSLContext | None = None, delay: float = 0.0, *, proxied: bool = False
    ) -> None:
        self.answer = answer
        self.tls = tls
        self.delay = delay
        self.proxied = proxied
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.proxied:
                while not connection.recv(4096).endswith(b"\r\n\r\n"):
                    pass  # a client sends nothing more before it is answered
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as reader:
                while line := reader.readline().decode().strip():
                    headers = {}
                    while header := reader.readline().decode().strip():
                        name, _, value = header.partition(":")
                        headers[name.lower()] = value.strip()
                    body = reader.read(int(headers.get("content-length", 0))).decode()
                    self.requests.append(line)
                    time.sleep(self.delay)
                    status, kind, text = self.answer(line, body)
                    head = f"HTTP/1.1 {status} OK\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n"
                    connection.sendall(f"{head}Metadata-Flavor: Google\r\n\r\n{text}".encode())
        except (OSError, ValueError):
            return

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


def authority(*names: str) -> tuple[str, ssl.SSLContext]:
    """Return a throw-away CA's PEM text and a server context for names, else for 127.0.0.1 and localhost."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*(names or ("127.0.0.1", "localhost"))).configure_cert(context)
    return ca.cert_pem.bytes().decode(), context


def answer_json(value: Any) -> Answer:
    """Return an answer that is always this JSON value."""
    text = json.dumps(value)
    return lambda _line, _body: (200, "application/json", text)
