"""A CONNECT proxy that notes where it was asked to go, and leads to loopback only."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from .listener import Listener, read_head

if TYPE_CHECKING:
    from collections.abc import Mapping


class ConnectProxy(Listener):
    """Tunnels to loopback; a host name must have a port in `routes`, so that nothing here asks DNS.

    `refuse` is a status to answer instead, `hang` never answers; `targets` and `authorizations` say what was asked.
    """

    scheme = "http"

    def __init__(self, routes: Mapping[str, int] | None = None, *, refuse: int = 0, hang: bool = False) -> None:
        super().__init__(None)
        self.routes = dict(routes or {})
        self.refuse = refuse
        self.hang = hang
        self.targets: list[str] = []
        self.authorizations: list[str] = []

    def handle(self, connection: socket.socket, number: int) -> None:  # noqa: ARG002
        head = read_head(connection)
        if head is None:
            return
        self.targets.append(head.target if head.method == "CONNECT" else f"{head.method} {head.target}")
        self.authorizations.append(head.headers.get("proxy-authorization", ""))
        host, _, port = head.target.rpartition(":")
        if self.hang:
            self.closing.wait(60)
        elif self.refuse or head.method != "CONNECT":
            connection.sendall(f"HTTP/1.1 {self.refuse or 405} No\r\nContent-Length: 0\r\n\r\n".encode())
        elif host in self.routes or host in ("127.0.0.1", "[::1]", "localhost"):
            address = ("::1" if host == "[::1]" else "127.0.0.1", self.routes.get(host, int(port)))
            with socket.create_connection(address, 10) as onward, self._kept(onward):
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                relay(connection, onward)
        else:
            connection.sendall(b"HTTP/1.1 502 Not on loopback\r\nContent-Length: 0\r\n\r\n")


def relay(one: socket.socket, other: socket.socket) -> None:
    """Copy in both directions until either end has gone."""
    back = threading.Thread(target=_copy, args=(other, one), daemon=True)
    back.start()
    _copy(one, other)
    back.join(10)


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass  # either end has gone, which ends both directions
    finally:
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
