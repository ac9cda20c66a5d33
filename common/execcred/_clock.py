"""How far this machine's clock is off, told by the Date header of an answer (RFC 9110, section 6.6.1)."""

from __future__ import annotations

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def clock_skew(date: str | None, now: float) -> float:
    """Return how many seconds a clock that shows `now` (epoch seconds) is ahead of `date`; 0.0 when that is none.

    Read by hand, as an answer's first need of a date should not import e-mail's parser.
    """
    from datetime import UTC, datetime

    try:
        _, day, month, year, clock, _ = (date or "").lower().split()  # sun, 29 nov 2026 17:31:49 gmt
        hours, minutes, seconds = [int(part) for part in clock.split(":")]
        sent = datetime(int(year), MONTHS.index(month) + 1, int(day), hours, minutes, min(seconds, 59), tzinfo=UTC)
    except (ValueError, OverflowError):
        return 0.0
    return now - sent.timestamp()


def clock_told(seconds: float) -> str:
    """Say how wrong a clock is that is `seconds` ahead."""
    way = "ahead of" if seconds > 0 else "behind"
    return f"this machine's clock is {abs(seconds) / 60:.0f} min {way} the server's"
