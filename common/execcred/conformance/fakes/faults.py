"""Servers that misbehave, each a row of a table: what they do instead of answering as they should.

In what is sent, these words are replaced: `{body}`, its `{length}`, `{half}` of it, `{chunks}` (it in chunks), `{gzip}`
(it, compressed) and `{location}` (where a redirect leads, by default to the server itself).
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
from typing import NamedTuple

from .kube_server import REASONS, http_answer, status_body
from .listener import Head, Listener, read_head
from .pki import LOOPBACK, Authority

MIB = 1 << 20
DAY = 86400.0
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SIZED = OK + b"Content-Length: {length}\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GOOD = SIZED + b"\r\n{body}"
HTML = b"<!DOCTYPE html><html><body><h1>Sign in to continue</h1></body></html>"


class Fault(NamedTuple):
    """What a server does with a connection: `answer` in one write, `drip` by bytes, `flood` for ever, `after`."""

    answer: bytes = b""
    drip: bytes = b""
    flood: bytes = b""
    after: str = "close"  # or "reset", "hang"
    ask: str = "head"  # what it reads first; or "nothing"
    tls: str = "good"  # or "none", "mute", "foreign authority", "foreign name", "expired", "not yet valid"
    padding: int = 0  # bytes behind the answer
    pace: float = 0.4  # seconds between the bytes that drip


def _status(code: int, extra: str = "") -> Fault:
    body = json.dumps(status_body(code, REASONS.get(code, f"status {code}"))).encode()
    return Fault(http_answer(code, body, extra=extra))


def _page(code: int) -> Fault:
    return Fault(http_answer(code, HTML, "text/html; charset=utf-8"))


def _redirect(code: int) -> Fault:
    return Fault(f"HTTP/1.1 {code} Moved\r\nLocation: {{location}}\r\nContent-Length: 0\r\n\r\n".encode())


FAULTS: dict[str, Fault] = {
    "none": Fault(GOOD),
    # Silence and haste
    "never answers": Fault(after="hang"),
    "says nothing, not even TLS": Fault(ask="nothing", after="hang", tls="mute"),
    "closes at once": Fault(ask="nothing", tls="mute"),
    "closes after TLS": Fault(ask="nothing"),
    "closes after the request": Fault(),
    "resets after the request": Fault(after="reset"),
    "stops in the status line": Fault(b"HTTP/1.1 20", after="hang"),
    "stops in the header": Fault(SIZED, after="hang"),
    "stops in the body": Fault(SIZED + b"\r\n{half}", after="hang"),
    "closes in the status line": Fault(b"HTTP/1.1 20"),
    "closes in the header": Fault(SIZED),
    "closes in the body": Fault(SIZED + b"\r\n{half}"),
    "resets in the body": Fault(SIZED + b"\r\n{half}", after="reset"),
    "drips the header": Fault(drip=GOOD),
    "drips the body": Fault(SIZED + b"\r\n", drip=b"{body}"),
    # Statuses
    **{f"answers {code}": _status(code) for code in (400, 401, 403, 404, 405, 418, 429, 500, 502, 503, 504)},
    "answers 429 with Retry-After": _status(429, "Retry-After: 1\r\n"),
    "answers 503 with Retry-After": _status(503, "Retry-After: 1\r\n"),
    "answers 204": Fault(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "answers 401 with a page": _page(401),
    "answers 403 with a page": _page(403),
    "answers 404 with a page": _page(404),
    "answers 502 with a page": _page(502),
    "answers a page": _page(200),
    **{f"redirects with {code}": _redirect(code) for code in (301, 302, 303, 307, 308)},
    # Sizes
    "answers 10 MB": Fault(OK + b"Content-Length: %d\r\n\r\n{body}" % (10 * MIB), padding=10 * MIB),
    "answers 10 MB of unknown length": Fault(OK + b"\r\n{body}", padding=10 * MIB),
    "announces 10 GB": Fault(OK + b"Content-Length: 10000000000\r\n\r\n{body}", after="hang"),
    "sends one header of 10 MB": Fault(OK + b"X-Long: ", padding=10 * MIB),
    "sends headers for ever": Fault(OK, flood=b"X-More: and more\r\n"),
    "sends chunks for ever": Fault(CHUNKED, flood=b"400\r\n" + b" " * 1024 + b"\r\n"),
    "continues for ever": Fault(flood=b"HTTP/1.1 100 Continue\r\n\r\n"),
    # Framing, good
    "answers in chunks": Fault(CHUNKED + b"{chunks}0\r\n\r\n"),
    "answers in chunks with extensions and trailers": Fault(CHUNKED + b"{chunks}0;last=yes\r\nX-Trailer: 1\r\n\r\n"),
    "continues first": Fault(b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD),
    "answers HTTP/1.0": Fault(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{body}"),
    "answers without a length": Fault(OK + b"\r\n{body}"),
    "answers without a reason": Fault(b"HTTP/1.1 200\r\nContent-Length: {length}\r\n\r\n{body}"),
    "keeps the connection open": Fault(GOOD, after="hang"),
    # Framing, bad
    "announces more than it sends": Fault(OK + b"Content-Length: 1{length}\r\n\r\n{body}"),
    "announces less than it sends": Fault(OK + b"Content-Length: 7\r\n\r\n{body}"),
    "announces a negative length": Fault(OK + b"Content-Length: -1\r\n\r\n{body}"),
    "announces a length in words": Fault(OK + b"Content-Length: many\r\n\r\n{body}"),
    "answers in chunks of no size": Fault(CHUNKED + b"many\r\n{body}\r\n0\r\n\r\n"),
    "answers in chunks of negative size": Fault(CHUNKED + b"-5\r\n{body}\r\n0\r\n\r\n"),
    "closes in a chunk": Fault(CHUNKED + b"fffff\r\n{body}"),
    "closes between chunks": Fault(CHUNKED + b"{chunks}"),
    "announces a huge chunk": Fault(CHUNKED + b"ffffffffff\r\n{body}", after="hang"),
    "answers compressed": Fault(OK + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n{gzip}"),
    "answers in another protocol": Fault(b"220 mail.test ESMTP\r\n"),
    "answers HTTP/2": Fault(b"HTTP/2 200\r\n\r\n"),
    "answers an empty line": Fault(b"\r\n"),
    "answers binary": Fault(bytes(range(256)) * 4),
    # TLS
    "speaks no TLS": Fault(GOOD, ask="nothing", tls="none"),
    "is certified by another authority": Fault(GOOD, tls="foreign authority"),
    "is certified for another name": Fault(GOOD, tls="foreign name"),
    "has an expired certificate": Fault(GOOD, tls="expired"),
    "has a certificate that is not yet valid": Fault(GOOD, tls="not yet valid"),
}
TIMES = {"expired": (-2 * DAY, -DAY), "not yet valid": (DAY, 2 * DAY)}


class FaultyServer(Listener):
    """A server with one fault of the table; `requests` are the heads that it read, `ca_pem` is whom to trust."""

    def __init__(
        self,
        fault: str,
        body: bytes = b"{}",
        location: str = "",
        host: str = "127.0.0.1",
        authority: Authority | None = None,
    ) -> None:
        self.fault = FAULTS[fault]
        self.body = body
        self.location = location
        self.requests: list[Head] = []
        authority = authority or Authority()
        self.ca_pem = authority.pem
        signer = Authority() if self.fault.tls == "foreign authority" else authority
        names = ("elsewhere.test",) if self.fault.tls == "foreign name" else LOOPBACK
        starts, ends = TIMES.get(self.fault.tls, (-DAY, DAY))
        context = signer.server_context(*names, starts=starts, ends=ends)
        super().__init__(None if self.fault.tls in ("none", "mute") else context, host)

    def fill(self, answer: bytes) -> bytes:
        """Return an answer with its words replaced."""
        half = len(self.body) // 2
        chunks = [chunk for chunk in (self.body[:half], self.body[half:]) if chunk]
        words = {
            b"{length}": str(len(self.body)).encode(),
            b"{location}": (self.location or f"{self.url}/elsewhere").encode(),
            b"{gzip}": gzip.compress(self.body, mtime=0),
            b"{chunks}": b"".join([b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]),
            b"{half}": self.body[:half],
            b"{body}": self.body,
        }
        for word, value in words.items():
            answer = answer.replace(word, value)
        return answer

    def handle(self, connection: socket.socket, number: int) -> None:  # noqa: ARG002
        if self.fault.ask == "head":
            head = read_head(connection)
            if head is None:
                return
            self.requests.append(head)
        connection.sendall(self.fill(self.fault.answer) + b" " * self.fault.padding)
        for byte in self.fill(self.fault.drip):
            connection.sendall(bytes([byte]))
            if self.closing.wait(self.fault.pace):
                return
        while self.fault.flood and not self.closing.is_set():
            connection.sendall(self.fault.flood * 100)
        if self.fault.after == "hang":
            self.closing.wait(60)
        elif self.fault.after == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
