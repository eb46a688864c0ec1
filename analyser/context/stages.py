"""The stages of the context: which tables are made, or get columns, from other rows of the capture.

In: nothing. Out: STAGES, one line for each stage; `analyser/tables/capture_tables.py` runs a stage when one of its
tables is asked for, `analyser/archive/derive/context.py` for a whole dataset. A stage replaces the views of the tables
that it makes; without rows of dissectors they are empty. What a stage does is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

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


InMemory = Mapping[str, pa.Table]
_NOTHING: InMemory = MappingProxyType({})


class Stage(NamedTuple):
    """One stage: its tables, see `StageTables`, and what makes them.

    Any of the tables may be missing.
    """

    makes: tuple[str, ...]
    reads: tuple[str, ...]
    uses: tuple[str, ...]
    new: tuple[str, ...]
    make: Callable[[DuckDBPyConnection, InMemory], InMemory]

    def run(self, con: DuckDBPyConnection, in_memory: InMemory = _NOTHING) -> InMemory:
        """Replace or create the views of `makes`, but for those that are given back, to be registered.

        in_memory: tables of `makes` that lie in memory and whose views the caller makes. Those that are not new are
        given back with the same rows in the same order.
        """
        return self.make(con, in_memory)


def _offsets(con: DuckDBPyConnection, in_memory: InMemory) -> InMemory:
    from analyser.context.enrich import enrich

    return enrich(con, in_memory)


def _reading(con: DuckDBPyConnection, in_memory: InMemory) -> InMemory:
    from analyser.context.reading_stage import TABLE, add_reading_runs

    return add_reading_runs(con, in_memory=TABLE in in_memory)


def _groups(con: DuckDBPyConnection, _: InMemory) -> InMemory:
    from analyser.context.group_stage import add_members_and_rebalances

    add_members_and_rebalances(con)
    return _NOTHING


def _producers(con: DuckDBPyConnection, _: InMemory) -> InMemory:
    from analyser.context.producers_stage import add_producers

    add_producers(con)
    return _NOTHING


def _connections(con: DuckDBPyConnection, _: InMemory) -> InMemory:
    from analyser.context.connections_stage import add_connections

    add_connections(con)
    return _NOTHING


def _deliveries(con: DuckDBPyConnection, _: InMemory) -> InMemory:
    from analyser.context.mqtt_stage import add_deliveries

    add_deliveries(con)
    return _NOTHING


def _cursors(con: DuckDBPyConnection, _: InMemory) -> InMemory:
    from analyser.context.mongo_stage import add_cursors_and_transactions

    add_cursors_and_transactions(con)
    return _NOTHING


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
