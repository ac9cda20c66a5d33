"""A SOCKS5 proxy (RFC 1928, 1929) that leads to loopback, whatever name it is asked for, and notes what that was."""

from __future__ import annotations

import socket
import struct

from execcred.conformance.fakes.listener import Listener
from execcred.conformance.fakes.proxy import relay

LOGIN, NONE = 2, 0


class SocksProxy(Listener):
    """`targets` are the hosts and ports that were asked for, `logins` the users and passwords."""

    scheme = "socks5"

    def __init__(self) -> None:
        super().__init__(None)
        self.targets: list[str] = []
        self.logins: list[str] = []

    def handle(self, connection: socket.socket, number: int) -> None:  # noqa: ARG002
        stream = connection.makefile("rb")

        def text() -> str:
            return stream.read(stream.read(1)[0]).decode()

        _, count = stream.read(2)
        method = LOGIN if LOGIN in stream.read(count) else NONE
        connection.sendall(bytes([5, method]))
        if method == LOGIN:
            stream.read(1)
            self.logins.append(f"{text()}:{text()}")
            connection.sendall(b"\x01\x00")
        kind = stream.read(4)[3]
        host = socket.inet_ntoa(stream.read(4)) if kind == 1 else text()
        (port,) = struct.unpack(">H", stream.read(2))
        self.targets.append(f"{host}:{port}")
        with socket.create_connection(("127.0.0.1", port), 10) as onward, self._kept(onward):
            connection.sendall(b"\x05\x00\x00\x01" + bytes(6))
            relay(connection, onward)
