"""The stages of the context: which tables are made, or get columns, from other rows of the capture.

In: nothing. Out: STAGES, one line for each stage; `analyser/tables/capture_tables.py` runs a stage when one of its
tables is asked for, `analyser/archive/derive/context.py` for a whole dataset. A stage replaces the views of the tables
that it makes; without rows of dissectors they are empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import duckdb

from analyser.context.enrich import enrich
from analyser.context.mongo_stage import add_cursors_and_transactions
from analyser.context.mqtt_stage import add_deliveries


class Stage(NamedTuple):
    """One stage.

    makes: its tables. reads: tables that it needs besides; their rows are decoded too. uses: tables that it reads only
    where somebody wants them anyway. run: replaces or creates the views of `makes`; any of the tables may be missing.
    new: those of `makes` that have no rows before; the others get columns, and keep what else stands in their rows.
    """

    makes: tuple[str, ...]
    reads: tuple[str, ...]
    uses: tuple[str, ...]
    run: Callable[[duckdb.DuckDBPyConnection], None]
    new: tuple[str, ...] = ()


STAGES = (
    Stage(
        ("kafka_offset_commits", "kafka_fetch_partitions"),
        ("kafka_assignments", "kafka_group_events", "kafka_list_offsets"),
        ("exchanges", "expert_infos"),
        enrich,
    ),
    Stage(
        ("mqtt_publishes", "mqtt_deliveries"),
        ("mqtt_connections", "mqtt_subscriptions"),
        (),
        add_deliveries,
        ("mqtt_deliveries",),
    ),
    Stage(
        ("mongo_cursors", "mongo_transactions"),
        ("mongo_commands",),
        (),
        add_cursors_and_transactions,
        ("mongo_cursors", "mongo_transactions"),
    ),
)
STAGE_OF = {table: stage for stage in STAGES for table in stage.makes}


def add_context(con: duckdb.DuckDBPyConnection) -> None:
    """Run all stages on a connection that has views of all tables. Call it once."""
    for stage in STAGES:
        stage.run(con)
