"""The context of Kafka's producers: their transactions, what brokers refused, last stable offsets that stand.

In: a connection with views of the Kafka tables, `cluster_id` and `topic` filled in. Out: the views
`kafka_transaction_spans`, `kafka_refused_batches`, `kafka_repeated_batches` and `kafka_stable_offset_waits`. Each has
few rows, or none, where nothing is wrong and nobody uses transactions. All of it is SQL: memory is DuckDB's limit, and
it may spill.
"""

from __future__ import annotations

import duckdb

from analyser.context.refused_batches import REFUSED_ROWS, REFUSED_STEPS
from analyser.context.repeated_batches import REPEATED_ROWS, REPEATED_STEPS
from analyser.context.stable_offsets import STABLE_ROWS, STABLE_STEPS
from analyser.context.stage import Stage
from analyser.context.topics import views
from analyser.context.transaction_spans import SPAN_ROWS, SPAN_STEPS
from analyser.registry.queries import null_columns, quoted
from analyser.registry.tables import TABLES

_READS = (
    "kafka_produce_batches", "kafka_transactions", "kafka_fetch_partitions", "kafka_partitions", "kafka_brokers",
)  # fmt: skip
_MADE = {
    "kafka_transaction_spans": (SPAN_STEPS, SPAN_ROWS),
    "kafka_refused_batches": (REFUSED_STEPS, REFUSED_ROWS),
    "kafka_repeated_batches": (REPEATED_STEPS, REPEATED_ROWS),
    "kafka_stable_offset_waits": (STABLE_STEPS, STABLE_ROWS),
}


def add_producers(con: duckdb.DuckDBPyConnection) -> None:
    """Make the views; tables that they are made of may be missing. Call it once."""
    there = views(con)
    for table in (*_READS, "flows"):
        if table not in there:
            con.execute(f"CREATE TEMP VIEW {table} AS SELECT {null_columns(table)} LIMIT 0")
    for steps, _ in _MADE.values():
        for name, query in steps.items():
            con.execute(f"CREATE TEMP TABLE {name} AS {query}")
    for table, (_, query) in _MADE.items():
        columns = ", ".join(map(quoted, TABLES[table].column_names()))
        con.execute(f"CREATE TEMP TABLE made_{table} AS SELECT {columns} FROM ({query})")
        con.execute(f"DROP VIEW IF EXISTS {table}")
        con.execute(f"CREATE TEMP VIEW {table} AS FROM made_{table}")
    for steps, _ in _MADE.values():
        for name in steps:
            con.execute(f"DROP TABLE {name}")
    for table in (*_READS, "flows"):
        if table not in there:
            con.execute(f"DROP VIEW {table}")


PRODUCERS_STAGE = Stage(
    makes=tuple(_MADE),
    reads=_READS,
    uses=(),
    run=add_producers,
    new=tuple(_MADE),
)
