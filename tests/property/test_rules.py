"""Rules that hold for all values: tokens, times, trust, URLs, answers of a server, certificates."""

from __future__ import annotations

import json
import socket
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hypothesis import assume, example, given
from hypothesis import strategies as st

from execcred import ADMIN, Credential, ExecCredError
from execcred._arguments import SEAL, command_line
from execcred._errors import printable
from execcred._protocol import announced_end, clean_token, finish, parse_request, render
from execcred._settings import Settings, resolve
from execcred._urls import matches, parse_url, same_server, shown
from execcred._x509 import leaf_end
from execcred.conformance.fakes.pki import Authority
from execcred.http import _read
from property import wild
from property.test_readers import RANDOM
from property.wild import MARK
from unit.support import KUBECONFIG_READER, NOW, READER, V1, V1BETA1

if TYPE_CHECKING:
    from execcred.http import Response

TOKENS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1)
SPACE = st.text(st.sampled_from(" \t\r\n\f\v"), max_size=5)
TIMES = st.floats(0, 2e11)
PAIR = Authority().client("reader")


def no_certificate(certificate: str, key: str, now: float) -> float:
    """Stand for the certificate check where no certificate is expected."""
    raise AssertionError


@given(TOKENS, SPACE, SPACE, st.booleans())
def test_a_token_survives_with_what_stands_around_it_gone(token: str, before: str, behind: str, mark: bool) -> None:
    stored = ("\ufeff" if mark else "") + before + token + behind
    assert clean_token(stored) == token
    answer = render(Credential(clean_token(stored)), V1, NOW)
    assert json.loads(answer)["status"] == {"token": token}


@given(st.text())
def test_any_text_is_a_token_or_refused_without_being_shown(stored: str) -> None:
    try:
        token = clean_token(stored)
    except ExecCredError as error:
        assert len(stored) < 4 or stored not in error.message
    else:
        assert all("!" <= char <= "~" for char in token)


@given(TIMES, TIMES)
@example(0.0, 0.0)
@example(NOW + 0.999, NOW)
def test_an_announced_end_is_never_past_and_never_beyond_the_true_one(end: float, now: float) -> None:
    announced = announced_end(end, now)
    if announced is None:
        assert end - now <= 1
    else:
        assert now < announced <= end


@given(st.floats(-1e6, 1e9), st.text())
def test_a_credential_is_rendered_with_a_future_end_or_refused_as_expired(left: float, token: str) -> None:
    try:
        done = finish(Credential(token, expires=NOW + left), NOW, no_certificate)
    except ExecCredError as error:
        assert error.code in ("credential-expired", "token-invalid", "credential-incomplete")
    else:
        assert announced_end(NOW + left, NOW)
        assert render(done, V1, NOW).count("\n") == 1


@given(st.text(), st.integers(0, 300))
def test_printable_text_is_one_short_line(text: str, limit: int) -> None:
    clean = printable(text, limit)
    assert clean.isprintable()
    assert len(clean) <= limit + 1


def values(settings: Settings, table: Any) -> dict[str, tuple[str, str]]:
    """Return value and source of each setting."""
    return {each.name: (repr(settings._values.get(each.name)), settings.source(each.name)) for each in table}


@given(RANDOM)
def test_a_profile_changes_no_setting_of_the_admins(r: Random) -> None:
    """Whatever a profile's config and sealed args hold, admin settings stay; what an admin has set stays."""
    table = r.choice((READER, KUBECONFIG_READER)).settings
    admin = [
        f"--{each.name}={r.choice(each.choices or ({'seconds': '9', 'flag': 'true'}.get(each.kind, 'own'),))}"
        for each in table
        if r.random() < 0.3 and each.name not in ("help", "version")
    ]
    keys = [key for each in table for key in each.config]
    config = {r.choice(keys) if r.random() < 0.8 else wild.text(r): wild.junk(r) for _ in range(r.randrange(5))}
    if r.random() < 0.5:
        config |= {r.choice(keys): r.choice(("own", "token", "debug", "warn", "9"))}
    sealed = wild.arguments(r) if r.random() < 0.5 else []
    alone = resolve(table, command_line(table, admin), {}, {})
    try:
        together = resolve(table, command_line(table, [*admin, SEAL, *sealed]), {}, config)
    except ExecCredError:
        return
    before, after = values(alone, table), values(together, table)
    for each in table:
        if each.trust == ADMIN or alone.given(each.name):
            assert after[each.name] == before[each.name]


@given(RANDOM)
def test_a_url_is_read_as_others_read_it_or_not_at_all(r: Random) -> None:
    text = wild.mangled(r, "https://u:p@spoke.example:6443/a?b#c") if r.random() < 0.6 else wild.text(r)
    other = wild.mangled(r, "https://spoke.example")
    assert MARK not in shown(text.replace("u:p", f"u:{MARK}"))
    try:
        url = parse_url(text)
    except ValueError:
        assert not matches(text, ["*", "::/0", "0.0.0.0/0"])
        assert not same_server(text, other)
        return
    elsewhere = urlsplit(text)
    assert (elsewhere.hostname or "").strip("[]") == url.host
    assert elsewhere.scheme == url.scheme
    assert elsewhere.port in (url.port, None)
    assert same_server(text, text)


def feed(data: bytes, limit: int = 1000) -> Response:
    """Read an answer from a connection that says `data` and is closed."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        return _read(ours, lambda: 5.0, limit)


PARTS = (
    *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 204\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/2 200\r\n", b"\r\n", b"\n"),
    *(b"Content-Length: 14\r\n", b"Content-Length: -1\r\n", b"Content-Length: 1_0\r\n", b"Content-Length: 9999\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"e\r\n", b"0\r\n\r\n", b"-1\r\n", b"ffff\r\n"),
    *(MARK.encode(), MARK.encode() + b"\r\n", b"\xff", b"\0", b": ", b"x" * 2000),
)


@given(RANDOM)
def test_any_answer_of_a_server_is_read_or_refused_without_being_shown(r: Random) -> None:
    start = b"".join(r.choices(PARTS[:3], k=1)) if r.random() < 0.8 else b""
    try:
        answer = feed(start + b"".join(r.choices(PARTS, k=r.randrange(8))))
    except (OSError, ValueError) as error:
        assert MARK not in str(error)
    else:
        assert len(answer.body) <= 1000


@given(RANDOM)
@example(Random(6702))  # a date that OpenSSL itself calls bad
def test_any_certificate_is_read_or_refused(r: Random) -> None:
    certificate, key = PAIR
    if r.random() < 0.5:
        key = wild.mangled(r, key)
    else:
        place = r.randrange(len(certificate))
        certificate = certificate[:place] + r.choice("ABCD+/=-\n") + certificate[place + 1 :]
    try:
        end = leaf_end(certificate, key, NOW)
    except ExecCredError as error:
        assert error.code in ("certificate-invalid", "certificate-not-yet-valid")
        assert certificate[100:130] not in error.message
    else:
        assert 0 < end < 253402300800


@given(st.text() | st.from_regex(r'\{"[a-z]{1,9}":.*\}'))
def test_any_text_is_a_request_or_refused(raw: str) -> None:
    assume(raw.strip())
    try:
        request = parse_request(raw)
    except ExecCredError as error:
        assert error.exit_status == 2
        assert len(raw) < 30 or raw not in error.message
    else:
        assert request.api_version in ("", V1, V1BETA1)
