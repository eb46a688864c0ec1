"""Names of topic ids, and what views a connection has.

In: rows with `topic` and `topic_id`; a connection. Out: topic id -> name, for ids with exactly one name; view names.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa

from wirewitness.analyser.tables.queries import quoted

if TYPE_CHECKING:
    import duckdb


def topic_names(told: pa.Table) -> dict[str, str]:
    """Topic id -> topic name.

    Topic ids are unique over all clusters (random UUIDs), so one map serves the capture. An id with two names is
    damage and is left out.
    """
    found: dict[str, set[str]] = {}
    for topic_id, topic in zip(told.column("topic_id").to_pylist(), told.column("topic").to_pylist(), strict=True):
        if topic_id is not None and topic is not None:
            found.setdefault(topic_id, set()).add(topic)
    return {topic_id: names.pop() for topic_id, names in found.items() if len(names) == 1}


def views(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Names of all views and tables of the connection."""
    rows = con.execute(
        "SELECT view_name FROM duckdb_views() UNION ALL SELECT table_name FROM duckdb_tables()"
    ).fetchall()
    return {str(name) for (name,) in rows}


def has_rows(con: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Is there any? Where a statement takes longer to plan than to run, this is asked first."""
    return bool(con.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall())


def holding(con: duckdb.DuckDBPyConnection, table: str, conditions: Collection[str]) -> set[str]:
    """Those aggregates that are true of the rows of a table, asked with one statement.

    One that cannot be calculated (numbers of the wire may be at the ends of their range) counts as true: whoever asks
    then looks, and fails alone if it must.
    """
    import duckdb

    try:
        (told,) = con.execute(f"SELECT {', '.join(conditions)} FROM {quoted(table)}").fetchall()
    except duckdb.Error:
        if len(conditions) == 1:
            return {*conditions}
        return {held for one in conditions for held in holding(con, table, [one])}
    return {one for one, is_so in zip(conditions, told, strict=True) if is_so}
