"""How traffic, latency and lag of a dataset went over hours, days or weeks. In: its aggregates; out: a section.

Only sums of minutes are read, one row at a time, so months cost no more memory than an hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.document import Block, Cells, Paragraph, Section, without_empty
from wirewitness.reports.base.formats.values import ms_text, time_text
from wirewitness.reports.base.questions.source import Source, rows

TABLES_READ = ("latency_minutes", "kafka_lag_minutes", "findings_history")
_HOUR_NS = 3_600_000_000_000
# A short time has no trend, and a table of the report that is there anyway.
_LEAST_HOURS = 3
_LINES = 48
_LAGS_SHOWN = 10
_STEPS = (("HOUR", _HOUR_NS), ("DAY", 24 * _HOUR_NS), ("WEEK", 7 * 24 * _HOUR_NS))
# Weeks begin on Mondays, and 1970 began on a Thursday.
_FIRST_MONDAY_NS = 4 * 24 * _HOUR_NS

_LAGS = f"""
select group_id, topic, partition, max(lag) as most, arg_max(epoch_ns(ts), lag) as at_ns,
       arg_min(lag, ts) as first, arg_max(lag, ts) as last,
       arg_max(coalesce(client_id, '?') || '@' || coalesce(client_address, '?'), ts) as committer
from kafka_lag_minutes where lag is not null
group by cluster_id, group_id, topic, partition having max(lag) > 0
order by most desc, group_id, topic, partition limit {_LAGS_SHOWN}
"""


@dataclass(slots=True)
class _Sum:
    exchanges: int = 0
    errors: int = 0
    unanswered: int = 0
    most_ms: float | None = None
    sketches: list[bytes] = field(default_factory=list)


def trend_section(source: Source) -> list[Section]:
    """Empty where the dataset covers less than some hours."""
    times = rows(source, "select min(epoch_ns(ts)) as first, max(epoch_ns(ts)) as last from latency_minutes")[0]
    if times["first"] is None or times["last"] // _HOUR_NS - times["first"] // _HOUR_NS < _LEAST_HOURS:
        return []
    hours = (times["last"] - times["first"]) // _HOUR_NS
    name, step_ns = next(((n, s) for n, s in _STEPS if hours * _HOUR_NS < _LINES * s), _STEPS[-1])
    blocks: list[Block] = [_traffic(source, name, step_ns), *_lags(source), *_overturned(source)]
    return [Section("OVER TIME", tuple(blocks))]


def _traffic(source: Source, name: str, step_ns: int) -> Cells:
    with_percentiles = find_spec("datasketches") is not None
    sums: dict[tuple[int, str], _Sum] = {}
    for row in _minutes(source):
        begins = row["ts"] - (row["ts"] - _FIRST_MONDAY_NS) % step_ns
        one = sums.setdefault((begins, row["protocol"] or ""), _Sum())
        one.exchanges += row["exchanges"]
        one.errors += row["errors"]
        one.unanswered += row["unanswered"]
        if row["latency_max_ms"] is not None:
            one.most_ms = max(row["latency_max_ms"], one.most_ms or 0.0)
        if row["sketch"] is not None and with_percentiles:
            one.sketches.append(row["sketch"])
            if len(one.sketches) >= 1000:
                one.sketches = [_merged(one.sketches).serialize()]
    table = tuple(
        (_begin(begins, name), protocol, *_cells(sums[begins, protocol])) for begins, protocol in sorted(sums)
    )
    header = (f"{name} (UTC)", "PROTOCOL", "EXCHANGES", "ERRORS", "NO RESPONSE", "MEDIAN MS", "P99 MS", "MAX MS")
    return without_empty(Cells(header, table, numbers=(2, 3, 4, 5, 6, 7)))


def _minutes(source: Source) -> Iterator[dict[str, Any]]:
    columns = ["ts", "protocol", "exchanges", "errors", "unanswered", "latency_max_ms", "sketch"]
    for batch in source.batches("latency_minutes"):
        chosen = batch.select(columns)
        times = chosen.column(0).cast("int64").to_pylist()
        for ts, row in zip(times, chosen.drop_columns(["ts"]).to_pylist(), strict=True):
            yield {**row, "ts": ts}


def _cells(one: _Sum) -> tuple[str, ...]:
    half, slow = (None, None)
    if one.sketches:
        from wirewitness.analyser.archive.aggregate.sketches import percentiles

        half, slow = percentiles(_merged(one.sketches), (0.5, 0.99))
    counts = (f"{number:,}" if number else "" for number in (one.exchanges, one.errors, one.unanswered))
    return (*counts, ms_text(half), ms_text(slow), ms_text(one.most_ms))


def _merged(sketches: list[bytes]) -> Any:
    from wirewitness.analyser.archive.aggregate.sketches import merged

    return merged(sketches)


def _begin(ts_ns: int, name: str) -> str:
    text = time_text(ts_ns)
    return f"{text[:10]} {text[11:16]}" if name == "HOUR" else text[:10]


def _lags(source: Source) -> Iterator[Block]:
    found = rows(source, _LAGS)
    if found:
        table = tuple(
            (
                row["group_id"] or "",
                f"{row['topic']}-{row['partition']}",
                f"{row['first']:,}",
                f"{row['most']:,}",
                time_text(row["at_ns"])[:16].replace("T", " "),
                f"{row['last']:,}",
                row["committer"],
            )
            for row in found
        )
        header = ("GROUP", "PARTITION", "FIRST LAG", "LARGEST", "AT (UTC)", "LAST", "COMMITTED BY")
        yield Cells(header, table, numbers=(2, 3, 5))
        yield Paragraph("minute by minute in the table kafka_lag_minutes", "lag")


def _overturned(source: Source) -> Iterator[Block]:
    found = rows(source, "select count(*) as n from findings_history where superseded_run is not null")[0]["n"]
    if found:
        yield Paragraph(f"{count(found, 'finding')} of earlier runs: table findings_history", "overturned")
