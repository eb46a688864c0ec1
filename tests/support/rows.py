"""A DuckDB connection made from plain rows, for tests of everything that works on tables.

In: table name -> list of dicts. Out: a connection with a view per registered table; missing columns are null, missing
tables are empty. Times are Unix nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from wirewitness.analyser.engine.facts.gaps import add_gaps
from wirewitness.analyser.engine.facts.stages import STAGES
from wirewitness.analyser.kafka.facts.log_ends import add_log_ends, add_topics
from wirewitness.analyser.tables.tables import ALL_TABLES, arrow_schema

# Stages of the context put their own views in the place of these.
_MADE_OF_OTHERS = {name for stage in STAGES for name in stage.makes}

Rows = Mapping[str, Iterable[Mapping[str, Any]]]


def arrow_from_rows(table: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The rows with all registered columns. KeyError for an unknown table or column."""
    held = [dict(row) for row in rows]
    names = ALL_TABLES[table].column_names()
    for row in held:
        if unknown := set(row) - set(names):
            raise KeyError(f"{table} has no column {sorted(unknown)}")
    fields = [field.with_nullable(True) for field in arrow_schema(table)]
    return pa.table(
        {field.name: pa.array([row.get(field.name) for row in held], field.type) for field in fields},
        schema=pa.schema(fields),
    )


def connection_from_rows(rows: Rows, own: bool = False) -> duckdb.DuckDBPyConnection:
    """A connection in memory with a view of every registered table. KeyError for an unknown table or column.

    Connections share a database, and so its settings and the views of tables that no stage of the context replaces.
    own: it has a database of its own, for tests that drop views. So have those with rows of MQTT: that stage makes
    tables which all connections of a database see.
    """
    for name in rows:
        if name not in ALL_TABLES:
            raise KeyError(f"no table {name}")
    con = _empty_tables() if own or any(name.startswith("mqtt_") for name in rows) else _shared().cursor()
    replaced = _MADE_OF_OTHERS - {*rows}
    con.execute("; ".join(f"CREATE TEMP VIEW {name} AS FROM memory.main.empty_{name}" for name in replaced))
    for name, held in rows.items():
        data = arrow_from_rows(name, held)  # noqa: F841 - DuckDB finds it by name
        con.execute(f"CREATE TEMP TABLE data_{name} AS FROM data; CREATE TEMP VIEW {name} AS FROM data_{name}")
    return con


def with_log_ends(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """The connection with gaps, topics and log ends made of its rows, which most facts of Kafka read."""
    add_gaps(con)
    add_topics(con)
    add_log_ends(con)
    return con


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    return _empty_tables()


def _empty_tables() -> duckdb.DuckDBPyConnection:
    """A new database with all tables: making them costs more than most tests that want some. One thread costs a tenth
    less than two for a few rows."""
    con = duckdb.connect(":memory:", config={"threads": 1})
    con.execute(_empty_tables_sql())
    return con


@cache
def _empty_tables_sql() -> str:
    con = duckdb.connect(":memory:", config={"threads": 1})
    statements = []
    for name in ALL_TABLES:
        con.register("data", arrow_from_rows(name, ()))
        columns = con.execute("DESCRIBE data").fetchall()
        described = ", ".join(f'"{column}" {kind}' for column, kind, *_ in columns)
        statements.append(f"CREATE TABLE empty_{name} ({described})")
        if name not in _MADE_OF_OTHERS:
            statements.append(f"CREATE VIEW {name} AS FROM empty_{name}")
    return "; ".join(statements)
