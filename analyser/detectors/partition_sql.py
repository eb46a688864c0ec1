"""The one statement that gives a detector its rows: its tables under each other, sorted by key and time.

In: a declared detector. Out: SQL over views named like the registered tables, for DuckDB or for Spark. The suspects may
be asked for first (`suspects_sql`): where there are none, planning the wide statement would be most of the work.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from analyser.detectors.detector import Detector
from analyser.registry.queries import name_list, quoted
from analyser.registry.tables import TABLES

# The column that tells of which table a row is.
TABLE_TAG = "@table"
# Partitions are dealt by a hash of their key into so many buckets, so that some of them can be looked at apart.
BUCKETS = 1024
ALL_BUCKETS = range(BUCKETS)
# How a key column is read. A topic without a known name is told from others by its id.
_KEY_SQL = {"topic": "coalesce(topic, topic_id)"}


def column_of(table: str, column: str) -> str:
    """The name of a table's own column where tables stand under each other. No dot: Spark would take it apart."""
    return f"{table}@{column}"


def partitions_sql(
    detector: Detector,
    buckets: Sequence[int] = ALL_BUCKETS,
    suspects: str | None = None,
    tables: Collection[str] | None = None,
) -> str:
    """All rows wanted, sorted by key, table and time; `cut` makes partitions of them. suspects, tables: as below."""
    chosen = [table for table in detector.reads if tables is None or table in tables]
    order = ", ".join(f"{quoted(column)} NULLS FIRST" for column in sorted_by(detector, chosen))
    return f"{selection_sql(detector, buckets, suspects, chosen)} ORDER BY {order}"


def filled_sql(detector: Detector, buckets: Sequence[int], suspects: str) -> str:
    """The tables that have any wanted row of the suspects. Those without cost each row of others their columns."""
    keys = [quoted(column) for column in detector.partition_by]
    same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM suspects.{key}" for key in keys)
    return " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (FROM ({_rows_sql(detector, table, (), buckets)}) AS r "
        f"SEMI JOIN {suspects} AS suspects ON {same})"
        for table in detector.reads
    )


def suspects_sql(detector: Detector, buckets: Sequence[int] = ALL_BUCKETS) -> str:
    """The keys of the partitions to look at, of a detector that says so. Only columns that it speaks of are planned."""
    text = detector.suspects or ""
    words = {*re.findall(r"\w+", text)}
    tables = [table for table in detector.reads if f"r_{table}" in words]
    steps = [
        _step(detector, table, [c for c in detector.own_columns(table) if c in words], buckets) for table in tables
    ]
    return f"WITH {', '.join(steps)} SELECT DISTINCT {name_list(detector.partition_by)} FROM ({text})"


def bucket_sql(detector: Detector) -> str:
    """The bucket of a row of `selection_sql`: each partition is in one of BUCKETS. Of detectors with a key."""
    return f"hash({', '.join(quoted(column) for column in detector.partition_by)}) % {BUCKETS}"


def sorted_by(detector: Detector, tables: Collection[str] | None = None) -> list[str]:
    """Columns of `selection_sql` by which rows must be sorted before they are cut, each ascending with null first."""
    chosen = detector.reads if tables is None else tables
    own = [column_of(t, c) for t in chosen for c in TABLES[t].order if c in detector.own_columns(t)]
    return [*detector.partition_by, TABLE_TAG, *own]


def selection_sql(
    detector: Detector,
    buckets: Sequence[int] = ALL_BUCKETS,
    suspects: str | None = None,
    tables: Collection[str] | None = None,
) -> str:
    """All rows wanted of the partitions that `suspects` names, the tables under each other, times as int64 of ns.

    buckets: only partitions that are in one of them. suspects: the table that holds the result of `suspects_sql`, where
    it was asked for before. tables: those that have such rows, where that is known.
    """
    keys = [quoted(column) for column in detector.partition_by]
    steps = [_step(detector, table, detector.own_columns(table), buckets) for table in detector.reads]
    semi_join = ""
    if detector.suspects is not None:
        if suspects is None:
            steps.append(f"suspects AS MATERIALIZED (SELECT DISTINCT {', '.join(keys)} FROM ({detector.suspects}))")
        same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM suspects.{key}" for key in keys)
        semi_join = f" SEMI JOIN {suspects or 'suspects'} AS suspects ON {same}"
    parts: list[str] = []
    for table in detector.reads if tables is None else tables:
        own = (f"{quoted(c)} AS {quoted(column_of(table, c))}" for c in detector.own_columns(table))
        columns = ", ".join([*keys, *own])
        parts.append(f"SELECT '{table}' AS {quoted(TABLE_TAG)}, {columns} FROM r_{table} AS r{semi_join}")
    return f"WITH {', '.join(steps)} {' UNION ALL BY NAME '.join(parts)}"


def _step(detector: Detector, table: str, own: Sequence[str], buckets: Sequence[int]) -> str:
    # Each use reads only the columns that it needs; kept whole they would be written to disk first.
    return f"r_{table} AS NOT MATERIALIZED ({_rows_sql(detector, table, own, buckets)})"


def _rows_sql(detector: Detector, table: str, own: Sequence[str], buckets: Sequence[int]) -> str:
    has_id = "topic_id" in TABLES[table].column_names()
    keys = detector.keys.get(table, {})
    columns = [
        f"{_KEY_SQL[c] if c in _KEY_SQL and has_id else quoted(keys.get(c, c))} AS {quoted(c)}"
        for c in detector.partition_by
    ]
    for name in own:
        is_time = TABLES[table].column(name).kind == "time"
        columns.append(f"epoch_ns({quoted(name)}) AS {quoted(name)}" if is_time else quoted(name))
    where = f" WHERE {detector.rows[table]}" if table in detector.rows else ""
    rows = f"SELECT {', '.join(columns)} FROM {table}{where}"
    if len(buckets) == BUCKETS:
        return rows
    return f"FROM ({rows}) WHERE {bucket_sql(detector)} IN ({', '.join(map(str, buckets))})"
