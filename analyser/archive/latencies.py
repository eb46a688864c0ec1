"""The table `latency_minutes`: exchanges by minute, operation, client and topic, with mergeable latency sketches.

In: a change whose exchanges are complete. Out: the table's parts of the hours whose exchanges changed. Rows of it can
be merged to longer times or fewer keys by `merge_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analyser.archive.change import Change
from analyser.archive.derived import change_connection, rows_of
from analyser.archive.manifest import Part
from analyser.archive.parts import Place, write_parts
from analyser.archive.sketches import PERCENTILES, merged, percentiles, sketch_of
from analyser.queries import select
from analyser.tables import arrow_schema

TABLE = "latency_minutes"
MINUTE_NS = 60_000_000_000
KEYS = ("protocol", "cluster_id", "operation", "topic", "client_id", "client_address")
_COUNTS = ("exchanges", "errors", "unanswered", "latencies")
_SKETCHED = (
    *("latency_sum_ms", "latency_min_ms", "latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "latency_max_ms"),
    "sketch",
)
_SUMMED: dict[str, Callable[[npt.NDArray[np.float64]], Any]] = {
    "latency_sum_ms": np.nansum,
    "latency_min_ms": np.nanmin,
    "latency_max_ms": np.nanmax,
}
_BATCH_ROWS = 1 << 15
# Tables that tell which topics an exchange is about, and what they call the exchange.
_TOPICS = {
    "kafka_offset_commits": "exchange_id",
    "kafka_fetch_partitions": "exchange_id",
    "kafka_produce_batches": "exchange_id",
    "mqtt_publishes": "message_id",
}
_SOURCES = ("exchanges", *_TOPICS)

_MARKED = f"""
    CREATE OR REPLACE TABLE marked AS
    WITH topics AS (
        SELECT exchange_id, min(topic) AS topic FROM ({{topics}})
        WHERE topic IS NOT NULL GROUP BY exchange_id HAVING count(DISTINCT topic) = 1)
    SELECT dense_rank() OVER (ORDER BY minute, {", ".join(KEYS)}) AS number, *
    FROM (SELECT epoch_ns(ts) - epoch_ns(ts) % {MINUTE_NS} AS minute, protocol, cluster_id, operation, topic,
                 client_id, client_address, status, latency_ms
          FROM exchanges LEFT JOIN topics USING (exchange_id))"""
_GROUPS = f"""
    SELECT number, make_timestamp_ns(minute)::TIMESTAMPTZ_NS AS ts, {", ".join(KEYS)}, count(*) AS exchanges,
           count(*) FILTER (status = 'error') AS errors, count(*) FILTER (status = 'unanswered') AS unanswered
    FROM marked GROUP BY ALL ORDER BY number"""
_LATENCIES = "SELECT number, latency_ms FROM marked WHERE latency_ms IS NOT NULL ORDER BY number, latency_ms"


def run_latencies(change: Change) -> set[int | None]:
    """Make the rows of all hours whose exchanges or topics changed anew; those hours."""
    hours = _changed_hours(change)
    change.remove(*(part for part in change.parts(TABLE) if Place.of(part).hour in hours))
    with change_connection(change) as con:
        for hour in sorted(one for one in hours if one is not None):
            if any(Place.of(part).hour == hour for part in change.parts("exchanges")):
                _mark(con, change, hour)
                change.add(*write_parts(TABLE, _rows(con), change.staging, f"{change.run}-{hour}"))
    return hours


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


def _changed_hours(change: Change) -> set[int | None]:
    before = _parts_by_hour(change.previous.parts if change.previous is not None else ())
    now = _parts_by_hour(change.parts())
    changed = {hour for hour in before.keys() | now.keys() if before.get(hour) != now.get(hour)}
    of_exchanges, made = ({Place.of(part).hour for part in change.parts(table)} for table in ("exchanges", TABLE))
    return changed | (of_exchanges - made)


def _parts_by_hour(parts: Sequence[Part]) -> dict[int | None, set[str]]:
    found: dict[int | None, set[str]] = {}
    for part in parts:
        if part.table in _SOURCES:
            found.setdefault(Place.of(part).hour, set()).add(part.path)
    return found


def _mark(con: duckdb.DuckDBPyConnection, change: Change, hour: int) -> None:
    def of_hour(part: Part) -> bool:
        return Place.of(part).hour == hour

    con.execute(f"CREATE OR REPLACE TEMP VIEW exchanges AS {rows_of(change, 'exchanges', chosen=of_hour)}")
    topics = [f"SELECT {name} AS exchange_id, topic FROM ({rows_of(change, table, chosen=of_hour)})"
              for table, name in _TOPICS.items()]  # fmt: skip
    con.execute(_MARKED.format(topics=" UNION ALL ".join(topics)))


def _rows(con: duckdb.DuckDBPyConnection) -> Iterator[pa.RecordBatch]:
    """The marked exchanges as rows of the table, in its order."""
    latencies = _by_number(con.cursor())
    schema = arrow_schema(TABLE)
    pending = next(latencies, None)
    for batch in select(con, f"SELECT * FROM ({_GROUPS})").to_arrow_reader(_BATCH_ROWS):
        sketched = []
        for number in batch.column("number").to_pylist():
            told: dict[str, Any] = {"latencies": 0}
            if pending is not None and pending[0] == number:
                values, pending = pending[1], next(latencies, None)
                told = _sketched(sketch_of(values), float(values.sum()), float(values[0]), float(values[-1]))
            sketched.append(told)
        own = pa.Table.from_pylist(sketched, pa.schema([schema.field(name) for name in ("latencies", *_SKETCHED)]))
        given = batch.select([name for name in batch.schema.names if name != "number"])
        columns = {**dict(zip(given.schema.names, given.columns, strict=True)),
                   **{name: own[name].combine_chunks() for name in own.schema.names}}  # fmt: skip
        yield pa.RecordBatch.from_arrays(
            [columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema
        )


def _by_number(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, Any]]:
    """(number of a group, its latencies), rising. A group's latencies are held as a whole: eight bytes for each."""
    held: list[Any] = []
    last: int | None = None
    for batch in select(con, _LATENCIES).to_arrow_reader(_BATCH_ROWS):
        numbers, values = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
        for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
            if last is not None and numbers[start] != last:
                yield last, np.concatenate(held)
                held = []
            last = int(numbers[start])
            held.append(values[start:end])
    if last is not None:
        yield last, np.concatenate(held)


def _sketched(sketch: Any, total_ms: float, least_ms: float, most_ms: float) -> dict[str, Any]:
    """The columns of latencies, of which a sketch tells the percentiles."""
    values = [total_ms, least_ms, *percentiles(sketch, PERCENTILES), most_ms, sketch.serialize()]
    return {"latencies": sketch.n, **dict(zip(_SKETCHED, values, strict=True))}
