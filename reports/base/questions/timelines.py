"""Numbers over time, in bins of equal width. In: a source; out: one row per bin and kind, few enough to draw.

Bins are whole multiples of a round width since 1970, so the same width gives the same bins for every selection.
Times of rows are Unix ms (floats) at the start of the bin.
"""

from __future__ import annotations

from typing import Any

from wirewitness.analyser.tables.queries import UNAWAITED_MS
from wirewitness.reports.base.questions.failures import IS_UNANSWERED
from wirewitness.reports.base.questions.source import Source, rows

BINS = 160
_ROUND = (1, 2, 5)

_SPAN = """
    select min(first_ns) as first_ns, max(last_ns) as last_ns from (
        select epoch_ns(min(ts)) as first_ns, epoch_ns(max(ts)) as last_ns from exchanges
        union all select epoch_ns(min(ts)), epoch_ns(max(ts)) from messages)"""

_CAPTURED = "select epoch_ns(min(ts_first)) as first_ns, epoch_ns(max(ts_last)) as last_ns from captures"

_EXCHANGES = f"""
    select epoch_ns(ts) // {{width}} * {{width}} / 1e6 as t, protocol, count(*) as exchanges,
           count(*) filter (status = 'error') as errors, count(*) filter ({IS_UNANSWERED}) as unanswered
    from exchanges {{where}} group by all order by all"""

# Rows of a heat map: four steps to a tenfold, from 0.01 ms on.
LATENCY_STEP = "floor(log10(greatest(latency_ms, 0.01)) * 4)::integer"
_LATENCY = f"""
    select epoch_ns(ts) // {{width}} * {{width}} / 1e6 as t, {LATENCY_STEP} as step, count(*) as exchanges
    from exchanges where {{measured}} is not null {{where}}
    group by all order by all"""

_PERCENTILES = """
    select epoch_ns(ts) // {width} * {width} / 1e6 as t, count(*) as exchanges,
           quantile_cont(latency_ms, 0.5) as p50_ms, quantile_cont(latency_ms, 0.95) as p95_ms,
           quantile_cont(latency_ms, 0.99) as p99_ms
    from exchanges where {measured} is not null {where} group by all order by all"""


def bin_width_ns(first_ns: int, last_ns: int, bins: int = BINS) -> int:
    """The least of 1, 2, 5, 10, 20, ... ms with which `bins` bins hold the time."""
    wanted = max(last_ns - first_ns, 1) / bins
    width = 1_000_000
    while True:
        for factor in _ROUND:
            if width * factor >= wanted:
                return width * factor
        width *= 10


def selected_span_ns(source: Source) -> tuple[int, int] | None:
    """Unix times of the first and last selected row, or of the time range within the capture where one is chosen.

    None where there is neither.
    """
    found = rows(source, _SPAN)[0]
    first, last = found["first_ns"], found["last_ns"]
    from_ns, to_ns = source.options.from_ns, source.options.to_ns
    if from_ns is None and to_ns is None:
        return None if first is None else (first, last)
    whole = rows(source, _CAPTURED)[0]
    if whole["first_ns"] is None:
        return None if first is None else (first, last)
    begin = first if from_ns is None else max(from_ns, whole["first_ns"])
    end = last if to_ns is None else min(to_ns, whole["last_ns"])
    begin, end = begin if begin is not None else whole["first_ns"], end if end is not None else whole["last_ns"]
    return (begin, end) if begin <= end else None


def middle_ns(source: Source) -> int | None:
    """The middle of `selected_span_ns`; None where it has no length."""
    span = selected_span_ns(source)
    return (span[0] + span[1]) // 2 if span is not None and span[0] < span[1] else None


def domain_ms(source: Source) -> tuple[float, float] | None:
    """The ends of `selected_span_ns` in Unix ms, for an axis; None where it has no length."""
    span = selected_span_ns(source)
    return (span[0] / 1e6, span[1] / 1e6) if span is not None and span[0] < span[1] else None


def width_of(source: Source, bins: int = BINS) -> int:
    """The width of bins for the selected rows."""
    span = selected_span_ns(source)
    return bin_width_ns(*span, bins) if span is not None else 1_000_000


def exchanges_over_time(source: Source, width_ns: int, condition: str = "") -> list[dict[str, Any]]:
    """t, protocol, exchanges, errors, unanswered. condition: SQL boolean over `exchanges`."""
    return rows(source, _EXCHANGES.format(width=int(width_ns), where=f"where {condition}" if condition else ""))


def latency_over_time(
    source: Source, width_ns: int, condition: str = "", *, waits: bool = False
) -> list[dict[str, Any]]:
    """t, low_ms, high_ms (four steps to a tenfold, from 0.01 ms), exchanges: cells of a heat map.

    waits: also requests that ask the server to wait.
    """
    return heat_cells(rows(source, _measured(_LATENCY, width_ns, condition, waits)), width_ns)


def _measured(query: str, width_ns: int, condition: str, waits: bool) -> str:
    measured = "latency_ms" if waits else UNAWAITED_MS
    return query.format(width=int(width_ns), measured=measured, where=f"and {condition}" if condition else "")


def heat_cells(found: list[dict[str, Any]], width_ns: int) -> list[dict[str, Any]]:
    """Rows with a bin `t` and a `step` (LATENCY_STEP) as cells: t_end, low_ms and high_ms in place of the step."""
    for row in found:
        step = row.pop("step")
        row["low_ms"], row["high_ms"] = 10 ** (step / 4), 10 ** ((step + 1) / 4)
        row["t_end"] = row["t"] + width_ns / 1e6
    return found


def percentiles_over_time(
    source: Source, width_ns: int, condition: str = "", *, waits: bool = False
) -> list[dict[str, Any]]:
    """t, exchanges, p50_ms, p95_ms, p99_ms; `waits` as in `latency_over_time`."""
    return rows(source, _measured(_PERCENTILES, width_ns, condition, waits))
