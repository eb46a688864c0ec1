"""Names of topic ids.

In: a connection whose views have `topic` and `topic_id`. Out: topic id -> name, for ids with exactly one name.
"""

from __future__ import annotations

import duckdb

from analyser.registry.tables import TABLES


def topic_names(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Topic id -> topic name, from every view of the connection that holds both.

    Topic ids are unique over all clusters (random UUIDs), so one map serves the capture. An id with two names is
    damage and is left out.
    """
    there = views(con)
    sources = [
        f"SELECT topic_id, topic FROM {name}"
        for name, table in TABLES.items()
        if name in there and {"topic", "topic_id"} <= set(table.column_names())
    ]
    if not sources:
        return {}
    pairs = con.sql(
        f"SELECT topic_id, min(topic) FROM ({' UNION ALL '.join(sources)}) "
        "WHERE topic_id IS NOT NULL AND topic IS NOT NULL GROUP BY topic_id HAVING count(DISTINCT topic) = 1"
    ).fetchall()
    return {str(topic_id): str(topic) for topic_id, topic in pairs}


def views(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Names of all views and tables of the connection."""
    rows = con.sql("SELECT view_name FROM duckdb_views() UNION SELECT table_name FROM duckdb_tables()").fetchall()
    return {str(name) for (name,) in rows}


def has_rows(con: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Is there any? Where a statement takes longer to plan than to run, this is asked first."""
    return bool(con.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall())
