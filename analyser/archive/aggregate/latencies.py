"""The table `latency_minutes`: exchanges by minute, operation, client and topic, with mergeable latency sketches.

In: a change whose exchanges are complete, and who works. Out: the table's parts of the hours whose exchanges changed.
Rows of it can be merged to longer times or fewer keys by `merge_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.archive.aggregate.derived import (
    Hour,
    change_connection,
    parts_by_hour,
    rows_of,
    together,
    view_of,
)
from wirewitness.analyser.archive.aggregate.sketches import PERCENTILES, merged, percentiles, sketch_of
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.part import Part, Place
from wirewitness.analyser.archive.dataset.parts import HOUR_NS, write_parts
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.spark.workers import HERE, Workers
from wirewitness.analyser.tables.queries import UNAWAITED_MS, select
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

TABLE = "latency_minutes"
# As it is seen in Spark.
STAGE = "aggregates: latencies, minute by minute"
MINUTE_NS = 60_000_000_000
KEYS = ("protocol", "cluster_id", "operation", "topic", "client_id", "client_address")
_COUNTS = ("exchanges", "errors", "unanswered", "latencies")
_SKETCHED = (
    *("latency_sum_ms", "latency_min_ms", "latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "latency_max_ms"),
    "sketch",
)
_NOTHING = (None,) * len(_SKETCHED)
_SUMMED: dict[str, Callable[[npt.NDArray[np.float64]], Any]] = {
    "latency_sum_ms": np.nansum,
    "latency_min_ms": np.nanmin,
    "latency_max_ms": np.nanmax,
}
_BATCH_ROWS = 1 << 15
# Tables that tell which topics an exchange is about, and what they call the exchange.
_TOPICS = {table.name: table.topics_of for table in TABLES.values() if table.topics_of}
_SOURCES = ("exchanges", *_TOPICS)

_GROUPS = f"""
    WITH topics AS (
        SELECT exchange_id, hour, min(topic) AS topic FROM ({{topics}})
        WHERE topic IS NOT NULL GROUP BY exchange_id, hour HAVING count(DISTINCT topic) = 1)
    SELECT make_timestamp_ns(at_ns - at_ns % {MINUTE_NS})::TIMESTAMPTZ_NS AS ts, {", ".join(KEYS)},
           count(*) AS exchanges, count(*) FILTER (status = 'error') AS errors,
           count(*) FILTER (status = 'unanswered') AS unanswered, count({UNAWAITED_MS}) AS latencies,
           list({UNAWAITED_MS}) FILTER ({UNAWAITED_MS} IS NOT NULL) AS measured
    FROM (SELECT *, epoch_ns(ts) AS at_ns FROM exchanges) AS exchanges
    LEFT JOIN topics ON exchanges.exchange_id = topics.exchange_id AND at_ns // {HOUR_NS} = topics.hour
    GROUP BY ALL ORDER BY ts, {", ".join(KEYS)}"""


def run_latencies(change: Change, workers: Workers = HERE) -> set[Hour]:
    """Make the rows of all hours whose exchanges or topics changed anew; those hours."""
    sources = parts_by_hour(change.parts(), _SOURCES)
    hours = _changed_hours(change, sources)
    change.remove(*(part for part in change.parts(TABLE) if Place.of(part).hour in hours))
    made = together({hour: sources[hour] for hour in hours if hour is not None and hour in sources})
    each_of(change, workers, STAGE, _make, [parts for _, parts in made])
    return hours


def _make(snapshot: Snapshot, parts: Sequence[Part]) -> None:
    with change_connection(snapshot) as con:
        snapshot.add(*write_parts(TABLE, _rows(con, snapshot, parts), snapshot.staging, f"{snapshot.run}-made"))


def merge_rows(rows: pa.Table, keys: Sequence[str] = KEYS, width_ns: int = MINUTE_NS) -> pa.Table:
    """Rows of `latency_minutes` merged: by these of KEYS, and into intervals of this width. Other keys become null."""
    begins = pc.multiply(pc.divide(rows["ts"].cast(pa.int64()), width_ns), width_ns)
    columns = {"ts": begins, **{key: rows[key] for key in keys}}
    marked = pa.table({**columns, "row": pa.array(np.arange(rows.num_rows))})
    groups = marked.group_by(["ts", *keys], use_threads=False).aggregate([("row", "list")])
    groups = groups.sort_by([(name, "ascending") for name in ("ts", *keys)])
    sketches = rows["sketch"]
    values = {name: rows[name].to_numpy() for name in (*_COUNTS, *_SUMMED)}
    found: list[dict[str, Any]] = []
    for group in groups.to_pylist():
        chosen = np.array(group.pop("row_list"))
        sums = {name: int(values[name][chosen].sum()) for name in _COUNTS}
        kept = [one for one in sketches.take(pa.array(chosen)).to_pylist() if one is not None]
        if kept:
            total, least, most = (combine(values[name][chosen]) for name, combine in _SUMMED.items())
            sums |= _sketched(merged(kept), float(total), float(least), float(most))
        found.append({**group, **sums})
    return pa.Table.from_pylist(found, schema=arrow_schema(TABLE))


def _changed_hours(change: Change, sources: Mapping[Hour, Sequence[Part]]) -> set[Hour]:
    """Hours of which other parts count than at the last run, and those that have no rows although there are exchanges.

    A part is never written again under the same path, so paths tell.
    """
    before, now = (
        {hour: {part.path for part in parts} for hour, parts in by_hour.items()}
        for by_hour in (parts_by_hour(change.previous_parts, _SOURCES), sources)
    )
    changed = {hour for hour in before.keys() | now.keys() if before.get(hour) != now.get(hour)}
    made = parts_by_hour(change.parts(TABLE), [TABLE])
    missing = {hour for hour, parts in sources.items() if any(part.table == "exchanges" for part in parts)}
    return changed | (missing - made.keys())


def _rows(con: duckdb.DuckDBPyConnection, change: Snapshot, parts: Sequence[Part]) -> Iterator[pa.RecordBatch]:
    """The rows of the table for the exchanges of these parts, in its order."""
    view_of(con, change, "exchanges", parts)
    topics = [f"SELECT {name} AS exchange_id, epoch_ns(ts) // {HOUR_NS} AS hour, topic "
              f"FROM ({rows_of(change, table, parts)})" for table, name in _TOPICS.items()]  # fmt: skip
    query = _GROUPS.format(topics=" UNION ALL ".join(topics))
    for batch in select(con, query).to_arrow_reader(_BATCH_ROWS):
        yield _with_sketches(batch)


def _with_sketches(groups: pa.RecordBatch) -> pa.RecordBatch:
    """The groups with what their measured latencies come down to."""
    measured = groups.column("measured")
    values = measured.values.to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(measured), 0).to_numpy()
    starts = measured.offsets.to_numpy()[:-1]
    found: list[Sequence[Any]] = []
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        own = np.sort(values[start : start + length])
        found.append(_told(sketch_of(own), float(own.sum()), own[0], own[-1]) if length else _NOTHING)
    schema = arrow_schema(TABLE)
    made = [pa.array(column, schema.field(name).type)
            for name, column in zip(_SKETCHED, zip(*found, strict=True), strict=True)]  # fmt: skip
    columns = {**dict(zip(groups.schema.names, groups.columns, strict=True)), **dict(zip(_SKETCHED, made, strict=True))}
    return pa.RecordBatch.from_arrays(
        [columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema
    )


def _sketched(sketch: Any, total_ms: float, least_ms: float, most_ms: float) -> dict[str, Any]:
    """The columns of latencies, of which a sketch tells the percentiles."""
    values = _told(sketch, total_ms, least_ms, most_ms)
    return {"latencies": sketch.n, **dict(zip(_SKETCHED, values, strict=True))}


def _told(sketch: Any, total_ms: float, least_ms: float, most_ms: float) -> Sequence[Any]:
    """Values of _SKETCHED."""
    return total_ms, least_ms, *percentiles(sketch, PERCENTILES), most_ms, sketch.serialize()
