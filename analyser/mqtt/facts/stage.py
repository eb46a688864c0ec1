"""The context of MQTT: deliveries, sessions, subscriptions in force, retained messages.

In: a connection with views of the MQTT tables and of `flows`. Out: the tables `mqtt_deliveries`,
`mqtt_offline_periods`, `mqtt_sessions`, `mqtt_active_subscriptions` and `mqtt_retained`, and `mqtt_publishes` with the
columns `expected_deliveries` and `deliveries`. What happened at
all servers passes once, sorted by time, through `mqtt_deliveries.Server`, one for each address (`search.py`).
Messages and flows are told by numbers until rows are made of what was found: no row of a publish is copied or found by
its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from wirewitness.analyser.engine.facts.added_columns import answered, numbered, with_columns
from wirewitness.analyser.engine.facts.chunk_files import kept_pieces
from wirewitness.analyser.engine.facts.stage import NOTHING, Held
from wirewitness.analyser.engine.facts.steps import steps_made
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.mqtt.facts.delivery_sql import ABSENCES, DELIVERIES, STEPS
from wirewitness.analyser.mqtt.facts.events import NUMBERS
from wirewitness.analyser.mqtt.facts.retained import RETAINED
from wirewitness.analyser.mqtt.facts.search import FOUND, search
from wirewitness.analyser.mqtt.facts.sessions import ACTIVE_SUBSCRIPTIONS, SESSIONS
from wirewitness.analyser.tables.coded import BATCH_ROWS, coded_table
from wirewitness.analyser.tables.queries import keep, keep_more, null_columns
from wirewitness.analyser.tables.tables import arrow_schema

# So many publishes get their columns at a time, and so many rows are made of deliveries: what joins take grows with
# them.
COUNTED_ROWS, PIECE_ROWS = 1 << 18, 1 << 17
_PUBLISHES = "mqtt_publishes"
_NEEDS = {"mqtt_connections", _PUBLISHES, "mqtt_subscriptions", "flows"}

# What publishes get, a row for each in their order.
_COUNTED = """
    SELECT expected AS expected_deliveries, delivered AS deliveries
    FROM range({first}, {end}) AS base(row) LEFT JOIN (
        FROM (FROM context_counts UNION ALL SELECT message, 0, 0 FROM context_unheard)
        WHERE message >= {first} AND message < {end}) ON message = row
    ORDER BY row"""


def add_deliveries(con: duckdb.DuckDBPyConnection, held: Held = NOTHING) -> Held:
    """Make the new tables of the stage, and fill context columns of `mqtt_publishes`. Call it once.

    held: where it has the publishes, all are given back, the new ones in memory or where they are many in the files
    that it names, and their views are left to the caller.
    """
    if not views(con) >= _NEEDS:
        return NOTHING
    if _PUBLISHES not in held:
        _replace_views(con)
        return NOTHING
    with numbered(con, "in_publishes", held[_PUBLISHES]), _found(con):
        made = {_PUBLISHES: with_columns(held[_PUBLISHES], answered(con, [*_counted(con)]))}
        for name, queries in _new(con).items():
            if name in held:
                made[name] = _kept_rows(con, name, queries, held[name])
    return made


def _kept_rows(
    con: duckdb.DuckDBPyConnection, name: str, queries: Iterator[str], place: pa.Table | Path
) -> pa.Table | Path:
    pieces = (coded_table(con.sql(query).to_arrow_reader(BATCH_ROWS)) for query in queries)
    rows = kept_pieces(pieces, Path(place))
    return arrow_schema(name).empty_table() if rows is None else rows


def _replace_views(con: duckdb.DuckDBPyConnection) -> None:
    """The same where nobody holds the publishes: they are numbered in a table that spills as it is."""
    con.execute(f"ALTER VIEW {_PUBLISHES} RENAME TO publishes_as_decoded")
    con.execute("CREATE TEMP TABLE publishes_in_order AS FROM publishes_as_decoded")
    con.execute("CREATE TEMP VIEW in_publishes AS SELECT rowid AS row, * FROM publishes_in_order")
    with _found(con):
        added = _kept_table(con, "publishes_context", _counted(con))
        for name, queries in _new(con).items():
            made = _kept_table(con, name, queries)
            source = f"SELECT {null_columns(name)} LIMIT 0" if made is None else f"FROM {made}"
            con.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {source}")
    con.execute("DROP VIEW in_publishes")
    columns = "added.expected_deliveries AS expected_deliveries, added.deliveries AS deliveries"
    con.execute(f"""
        CREATE TEMP VIEW {_PUBLISHES} AS SELECT base.* REPLACE ({columns})
        FROM publishes_in_order AS base POSITIONAL JOIN {added} AS added""")


def _kept_table(con: duckdb.DuckDBPyConnection, name: str, queries: Iterable[str]) -> str | None:
    """What stands behind FROM for the rows of all queries; None without a query."""
    table = None
    for query in queries:
        if table is None:
            table = keep(con, name, query)
        else:
            keep_more(con, table, query)
    return table


@contextmanager
def _found(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """What the search found, as tables, until the block ends."""
    for name, query in NUMBERS.items():
        con.execute(f"CREATE TEMP TABLE {name} AS {query}")
    search(con)
    yield
    con.execute("".join(f"DROP TABLE {name};" for name in (*NUMBERS, *FOUND)))


def _counted(con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    (rows,) = con.execute("SELECT count(*) FROM in_publishes").fetchall()[0]
    for first in range(0, max(rows, 1), COUNTED_ROWS):
        yield _COUNTED.format(first=first, end=min(first + COUNTED_ROWS, rows))


def _new(con: duckdb.DuckDBPyConnection) -> dict[str, Iterator[str]]:
    """The new tables: SELECTs of their rows, each to be run before the next one is asked for."""
    return {
        "mqtt_deliveries": _deliveries(con),
        "mqtt_offline_periods": _some(con, "context_absences", ABSENCES),
        "mqtt_sessions": _some(con, "context_sessions", SESSIONS),
        "mqtt_active_subscriptions": _some(con, "context_active", ACTIVE_SUBSCRIPTIONS),
        "mqtt_retained": _retained(con),
    }


def _deliveries(con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    if not has_rows(con, "context_deliveries"):
        return
    with steps_made(con, STEPS, DELIVERIES):
        (rows,) = con.execute("SELECT count(*) FROM delivery_judged").fetchall()[0]
        for first in range(0, rows, PIECE_ROWS):
            yield DELIVERIES.format(first=first, end=first + PIECE_ROWS)


def _retained(con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    if has_rows(con, "in_publishes WHERE retain") or has_rows(con, "mqtt_connections WHERE will_retain"):
        yield RETAINED


def _some(con: duckdb.DuckDBPyConnection, found: str, query: str) -> Iterator[str]:
    if has_rows(con, found):
        yield query
