"""An Analysis made from plain rows instead of a capture: real DuckDB, real Arrow schemas, no reading of packets.

In: {table: [row, ...]}, missing columns null, missing tables empty. Out: what reports read from `analyser.Analysis`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from tests.support.rows import Rows, connection_from_rows, with_log_ends
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.engine.facts.stage import GROUPS, OWNERS, STATES
from wirewitness.analyser.engine.facts.stages import STAGES
from wirewitness.analyser.kafka.facts.committed import add_committed
from wirewitness.analyser.tables.selection import conditions
from wirewitness.analyser.tables.tables import ALL_TABLES, arrow_schema

_OF_GROUPS = (OWNERS.makes, GROUPS.makes, STATES.makes)


class RowsAnalysis:
    """The part of `analyser.Analysis` that reports use, over rows."""

    def __init__(self, rows: Rows, options: ReadOptions | None = None) -> None:
        self.options = options or ReadOptions()
        self._connection = with_log_ends(connection_from_rows(rows))
        add_committed(self._connection)
        filled = {name for name, held in rows.items() if held}
        # Stages that make tables of groups of these rows, until a query asks for one of them.
        self._waiting = [stage for stage in STAGES if stage.makes in _OF_GROUPS and filled & {*stage.reads}
                         and not filled & {*stage.makes}]  # fmt: skip

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The selected rows of a table in its order."""
        where = " and ".join(conditions(name, self.options)) or "true"
        order = ", ".join(f'"{column}"' for column in ALL_TABLES[name].order)
        table = self.sql(f'select * from "{name}" where {where} order by {order}')
        nullable = pa.schema([field.with_nullable(True) for field in arrow_schema(name)])
        yield from table.cast(nullable).to_batches()

    def sql(self, query: str) -> pa.Table:
        """Any query over the tables."""
        names = {*re.findall(r"\w+", query)}
        while self._waiting and any(names & {*stage.makes} for stage in self._waiting):
            self._waiting.pop(0).run(self._connection)
        return self._connection.sql(query).to_arrow_table()
