"""The context of Kafka's producers: their transactions, what brokers refused, last stable offsets that stand.

In: a connection with views of the Kafka tables, `cluster_id` and `topic` filled in. Out: the views
`kafka_transaction_spans`, `kafka_refused_batches`, `kafka_repeated_batches` and `kafka_stable_offset_waits`. Each has
few rows, or none, where nothing is wrong and nobody uses transactions. All of it is SQL: memory is DuckDB's limit, and
it may spill.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import duckdb

from wirewitness.analyser.engine.facts.stage import NOTHING, PRODUCERS, Held
from wirewitness.analyser.engine.facts.steps import steps_made
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.kafka.facts.refused_batches import REFUSED_ROWS, REFUSED_STEPS
from wirewitness.analyser.kafka.facts.repeated_batches import REPEATED_PRODUCERS, REPEATED_ROWS, REPEATED_STEPS
from wirewitness.analyser.kafka.facts.stable_offsets import STABLE_ROWS, STABLE_STEPS
from wirewitness.analyser.kafka.facts.transaction_spans import SPAN_ROWS, SPAN_STEPS
from wirewitness.analyser.tables.queries import null_columns, quoted
from wirewitness.analyser.tables.tables import TABLES

_BATCHES, _FETCHED = "FROM kafka_produce_batches WHERE", "FROM kafka_fetch_partitions WHERE"

# An idempotent producer asks for its id and has no transactions.
_TRANSACTIONS = "EXISTS (FROM kafka_transactions WHERE event <> 'init_producer_id')"


class _Made(NamedTuple):
    """How a table is made. asks: conditions without any of which it is empty; steps: temporary tables before its rows.

    Planning the statements of a table takes longer than they do on a small capture, so most captures spare them.
    """

    asks: str
    steps: Mapping[str, str]
    rows: str


_MADE = {
    "kafka_transaction_spans": _Made(f"{_TRANSACTIONS} OR EXISTS ({_BATCHES} transactional)", SPAN_STEPS, SPAN_ROWS),
    "kafka_refused_batches": _Made(f"EXISTS ({_BATCHES} error_code <> 0)", REFUSED_STEPS, REFUSED_ROWS),
    "kafka_repeated_batches": _Made(f"EXISTS ({REPEATED_PRODUCERS})", REPEATED_STEPS, REPEATED_ROWS),
    "kafka_stable_offset_waits": _Made(
        f"EXISTS ({_FETCHED} last_stable_offset >= 0 AND last_stable_offset < high_watermark)",
        {**SPAN_STEPS, **STABLE_STEPS},
        STABLE_ROWS,
    ),
}


def add_producers(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views; tables that they are made of may be missing. Call it once."""
    there = views(con)
    missing = [table for table in (*PRODUCERS.reads, "flows") if table not in there]
    for table in missing:
        con.execute(f"CREATE TEMP VIEW {table} AS SELECT {null_columns(table)} LIMIT 0")
    asked = con.sql(f"SELECT {', '.join(made.asks for made in _MADE.values())}").fetchall()[0]
    wanted = {table: made for (table, made), needed in zip(_MADE.items(), asked, strict=True) if needed}
    steps = {name: query for made in wanted.values() for name, query in made.steps.items()}
    with steps_made(con, steps, "; ".join(made.rows for made in wanted.values())):
        for table, made in wanted.items():
            columns = ", ".join(map(quoted, TABLES[table].column_names()))
            con.execute(f"CREATE TEMP TABLE made_{table} AS SELECT {columns} FROM ({made.rows})")
    for table in wanted:
        con.execute(f"DROP VIEW IF EXISTS {table}")
        con.execute(f"CREATE TEMP VIEW {table} AS FROM made_{table}")
    for table in missing:
        con.execute(f"DROP VIEW {table}")
    for table in _MADE.keys() - wanted.keys() - there:
        con.execute(f"CREATE TEMP VIEW {table} AS SELECT {null_columns(table)} LIMIT 0")
    return NOTHING
