"""Axes of charts: times in UTC with their days, and latencies. In: the ends of an axis; out: an altair axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import altair as alt

# The ends of a time axis, Unix ms.
Domain: TypeAlias = tuple[float, float]

# Room for the labels of a vertical axis, so that the time axes of charts one above the other begin at one place.
Y_EXTENT_PX = 46
# So far a label may stand out at the right of its axis; there is room for it.
BEYOND_PX = 16
_MOST_TICKS = 8
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS_MS = (
    1, 2, 5, 10, 20, 50, 100, 200, 500,
    *(_SECOND * n for n in (1, 2, 5, 10, 15, 30)), *(_MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6, 12)), *(_DAY * n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)  # fmt: skip


def time_x(field: str = "t", domain: Domain | None = None, *, titled: bool = True) -> alt.X:
    """A time axis in UTC over a column of Unix ms; below it the day or days. titled: whether these are written."""
    ends = [_date(at_ms) for at_ms in domain] if domain else alt.Undefined
    scale = alt.Scale(type="utc", domain=ends, nice=False)
    step = _step(domain) if domain else None
    axis = alt.Axis(
        # Vega sorts ticks of its own, if they are times, by their text: below a second it loses most of them.
        values=alt.ExprRef(str(time_ticks(domain))) if domain else alt.Undefined,
        labelOverlap="greedy", labelSeparation=8, labelBound=BEYOND_PX, grid=False, format=_time_format(domain, step),
        titleAnchor="end", titlePadding=2, titleFontSize=10, titleFontWeight="normal",
    )  # fmt: skip
    return alt.X(f"{field}:T", scale=scale, title=days(domain) if titled else None, axis=axis)


def time_ticks(domain: Domain) -> list[int]:
    """Round times between both ends, Unix ms: at most eight."""
    step = _step(domain)
    return list(range(math.ceil(domain[0] / step) * step, math.floor(domain[1]) + 1, step))


def _step(domain: Domain) -> int:
    length = domain[1] - domain[0]
    return next((step for step in _STEPS_MS if length / step < _MOST_TICKS), math.ceil(length / _DAY) * _DAY)


def days(domain: Domain | None) -> str:
    """`20 Nov 2026, UTC` or `20 Nov to 23 Nov 2026, UTC`: the days of a time in Unix ms."""
    if domain is None:
        return "UTC"
    first, last = (datetime.fromtimestamp(at_ms / 1000, UTC) for at_ms in domain)
    end = f"{last.day} {last:%b %Y}"
    if first.date() == last.date():
        return f"{end}, UTC"
    year = f" {first.year}" if first.year != last.year else ""
    return f"{first.day} {first:%b}{year} to {end}, UTC"


def _time_format(domain: Domain | None, step: int | None) -> str:
    """What tells neighbouring ticks apart; the day where there is more than one."""
    if domain is None or step is None:
        return "%H:%M:%S"
    first, last = (datetime.fromtimestamp(at_ms / 1000, UTC) for at_ms in domain)
    if first.date() == last.date():
        return "%H:%M:%S" if step >= _SECOND else "%H:%M:%S.%L"
    if step >= _DAY:
        return "%d %b" if first.year == last.year else "%d %b %Y"
    return "%d %b %H:%M" if step >= _MINUTE else "%d %b %H:%M:%S" if step >= _SECOND else "%d %b %H:%M:%S.%L"


def log_ticks(low: float, high: float) -> list[float]:
    """Whole powers of ten from below `low` to above `high`; with 2 and 5 times them where these are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1,) if last - first > 3 else (1, 2, 5)
    ticks = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    return [round(tick, 6) for tick in ticks if tick <= 10.0**last]


def latency_axis(ticks: Sequence[float]) -> alt.Axis:
    """A logarithmic axis of ms that says `200 µs`, `5 ms`, `2 s`."""
    text = (
        "datum.value < 1 ? format(datum.value * 1000, '~r') + ' µs' : "
        "datum.value < 1000 ? format(datum.value, '~r') + ' ms' : format(datum.value / 1000, ',~r') + ' s'"
    )
    return alt.Axis(values=list(ticks), labelExpr=text, labelOverlap=True, grid=False, minExtent=Y_EXTENT_PX)


def _date(at_ms: float) -> alt.DateTime:
    """A time for the end of an axis; a plain number there is not always taken for ms."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return alt.DateTime(
        year=at.year, month=at.month, date=at.day, hours=at.hour, minutes=at.minute, seconds=at.second,
        milliseconds=at.microsecond // 1000, utc=True,
    )  # fmt: skip
