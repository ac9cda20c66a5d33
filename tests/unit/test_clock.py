"""A Date header tells how far this machine's clock is off."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from execcred._clock import clock_skew, clock_told

NOW = 1_796_000_000.0


@pytest.mark.parametrize("ahead", [0, 1, 420, -3600, 86400])
@pytest.mark.parametrize("spelling", [str, str.lower])
def test_the_difference_is_in_seconds(ahead: int, spelling: type[str]) -> None:
    assert clock_skew(spelling(formatdate(NOW - ahead, usegmt=True)), NOW) == ahead


def test_a_leap_second_is_the_one_before() -> None:
    assert clock_skew("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_799.0) == 0


@pytest.mark.parametrize(
    "date",
    [
        None,
        "",
        "now",
        "a b c d 1:2:x f",
        "Sun, 29 Nov 2026 17:31 GMT",
        "Sun, 29 Nov 2026 99:31:49 GMT",
        "Sun, 31 Feb 2026 17:31:49 GMT",
        "Sun, 1 Foo 2026 1:1:1 GMT",
        "Sun, 29 Nov 99999 17:31:49 GMT",
        "Sun, 29 Nov 999999999999999999999999999999 17:31:49 GMT",
    ],
)
def test_what_is_no_date_tells_nothing(date: str | None) -> None:
    assert clock_skew(date, NOW) == 0


@pytest.mark.parametrize(("seconds", "words"), [(420, "7 min ahead of"), (-3600, "60 min behind")])
def test_it_is_told_in_minutes(seconds: float, words: str) -> None:
    assert clock_told(seconds) == f"this machine's clock is {words} the server's"
