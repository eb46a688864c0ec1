"""Times and how long things last: units, and their one form in sentences and numbers.

In: Unix time in ns, or a length of time in ns, as integers; a float has no room for the ns of a Unix time.
Out: short English, ISO 8601; and back.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

NS_PER_MS, NS_PER_S = 1_000_000, 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def clock_text(ts_ns: int) -> str:
    """`2026-11-20 12:28:24 UTC`: when something began or ended."""
    return f"{_second(ts_ns):%Y-%m-%d %H:%M:%S} UTC"


def moment_text(ts_ns: int) -> str:
    """`12:28:24.781 UTC`: when something happened, where milliseconds tell it from what happened next."""
    return f"{_second(ts_ns):%H:%M:%S}.{_fraction(ts_ns, 3)} UTC"


@overload
def time_text(ts_ns: int, digits: int = 3) -> str: ...
@overload
def time_text(ts_ns: None, digits: int = 3) -> None: ...
def time_text(ts_ns: int | None, digits: int = 3) -> str | None:
    """`2026-11-20T12:28:24.781Z`: ISO 8601 with so many digits, for numbers and tables; None where it is not known."""
    return None if ts_ns is None else f"{_second(ts_ns):%Y-%m-%dT%H:%M:%S}.{_fraction(ts_ns, digits)}Z"


def ns_of(text: str) -> int:
    """Unix ns of ISO 8601 text, to the microsecond; without a zone it is UTC. ValueError where it is none."""
    moment = datetime.fromisoformat(text)
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (known - _EPOCH) // timedelta(microseconds=1) * 1000


def seconds_text(ns: int) -> str:
    """`0.4 ms`, `40 ms`, `30.1 s`, `1,260 s`: how long something lasted."""
    seconds = ns / NS_PER_S
    if abs(seconds) < 0.9995:
        return f"{round(ns / NS_PER_MS, 3):.3g} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:,.0f} s"


def ms_text(ms: float) -> str:
    """The same of milliseconds."""
    return seconds_text(round(ms * NS_PER_MS))


def period_text(first_ns: int, last_ns: int) -> str:
    """`at 2026-11-20 12:28:24 UTC`, or `from ... on, for 30.1 s`."""
    if last_ns <= first_ns:
        return f"at {clock_text(first_ns)}"
    return f"from {clock_text(first_ns)} on, for {seconds_text(last_ns - first_ns)}"


def span_text(first_ns: int, last_ns: int) -> str:
    """`2026-11-20 12:28:24.781 to 12:28:54.902 UTC, 30.1 s`: the day once where it is one; one time alone as it is."""
    first, last = (time_text(ts_ns).replace("T", " ").removesuffix("Z") for ts_ns in (first_ns, last_ns))
    if last_ns <= first_ns:
        return f"{first} UTC"
    day, _, clock = last.partition(" ")
    return f"{first} to {clock if first.startswith(day) else last} UTC, {seconds_text(last_ns - first_ns)}"


def _second(ts_ns: int) -> datetime:
    return datetime.fromtimestamp(ts_ns // NS_PER_S, UTC)


def _fraction(ts_ns: int, digits: int) -> str:
    return f"{ts_ns % NS_PER_S:09d}"[:digits]
