"""The stages of the context: which tables are made, or get columns, from other rows of the capture.

In: nothing. Out: STAGES, one line for each stage; `analyser/tables/capture_tables.py` runs a stage when one of its
tables is asked for, `analyser/archive/derive/context.py` for a whole dataset. A stage replaces the views of the tables
that it makes; without rows of dissectors they are empty. What a stage does is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from analyser.context.stage import (
    CONNECTIONS,
    CURSORS,
    DELIVERIES,
    GROUPS,
    OFFSETS,
    PRODUCERS,
    READING,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Stage(NamedTuple):
    """One stage: its tables, see `StageTables`, and what replaces or creates the views of `makes`.

    Any of the tables may be missing.
    """

    makes: tuple[str, ...]
    reads: tuple[str, ...]
    uses: tuple[str, ...]
    new: tuple[str, ...]
    run: Callable[[DuckDBPyConnection], None]


def _offsets(con: DuckDBPyConnection) -> None:
    from analyser.context.enrich import enrich

    enrich(con)


def _reading(con: DuckDBPyConnection) -> None:
    from analyser.context.reading_stage import add_reading_runs

    add_reading_runs(con)


def _groups(con: DuckDBPyConnection) -> None:
    from analyser.context.group_stage import add_members_and_rebalances

    add_members_and_rebalances(con)


def _producers(con: DuckDBPyConnection) -> None:
    from analyser.context.producers_stage import add_producers

    add_producers(con)


def _connections(con: DuckDBPyConnection) -> None:
    from analyser.context.connections_stage import add_connections

    add_connections(con)


def _deliveries(con: DuckDBPyConnection) -> None:
    from analyser.context.mqtt_stage import add_deliveries

    add_deliveries(con)


def _cursors(con: DuckDBPyConnection) -> None:
    from analyser.context.mongo_stage import add_cursors_and_transactions

    add_cursors_and_transactions(con)


STAGES = (
    Stage(*OFFSETS, _offsets),
    Stage(*READING, _reading),
    Stage(*GROUPS, _groups),
    Stage(*PRODUCERS, _producers),
    Stage(*CONNECTIONS, _connections),
    Stage(*DELIVERIES, _deliveries),
    Stage(*CURSORS, _cursors),
)
STAGE_OF = {table: stage for stage in STAGES for table in stage.makes}
