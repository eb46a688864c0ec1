"""Rows of exchanges with what spans need from other tables: topics, groups, commands. In: an analysis; out: batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import duckdb
import pyarrow as pa

from wirewitness.reports.base.otel.protocols import TOLD

TABLES = (
    "flows",
    "exchanges",
    *(table for told in TOLD.values() for table in told.tables),
)
WANTED = "wanted_exchanges"


class Queryable(Protocol):
    """The part of `analyser.Analysis` that is used here."""

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Where the tables are."""
        ...

    def query(self, query: str) -> Iterator[pa.RecordBatch]:
        """One SELECT over the selected rows, in batches."""
        ...


def _column(name: str) -> str:
    """An exchange is of one protocol: the others have null there."""
    values = ", ".join(told.columns[name] for told in TOLD.values() if name in told.columns)
    return f"coalesce({values}) as {name}"


_COLUMNS = dict.fromkeys(name for told in TOLD.values() for name in told.columns)
_SUBQUERIES = ",".join(subquery for told in TOLD.values() for subquery in told.subqueries)
_QUERY = f"""
    with {_SUBQUERIES}
    select e.*, f.observed_until, f.client_pid, f.client_container, f.client_namespace,
           {", ".join(map(_column, _COLUMNS))}
    from exchanges e
    left join flows f using (flow_id)
    {" ".join(told.joins for told in TOLD.values())}
    order by e.ts, e.exchange_id"""


def batches(analysis: Queryable) -> Iterator[pa.RecordBatch]:
    """The selected exchanges in the order of time, with the columns of other tables that `spans` knows."""
    return analysis.query(_QUERY)


def batches_of(analysis: Queryable, ids: Sequence[pa.Array]) -> Iterator[pa.RecordBatch]:
    """As `batches`, of the exchanges with these ids only."""
    if not ids:
        return
    analysis.connection.register(WANTED, pa.table({"exchange_id": pa.chunked_array(ids, pa.string())}))
    yield from analysis.query(
        f"SELECT * FROM ({_QUERY}) SEMI JOIN {WANTED} USING (exchange_id) ORDER BY ts, exchange_id"
    )
