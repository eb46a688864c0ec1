"""What reports need from an analysis: SQL over its tables, narrowed to the rows that the options select."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from wirewitness.analyser.analysis.selection import shown_rows
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.tables import ALL_TABLES


class Source(Protocol):
    """The part of `analyser.Analysis` that reports use."""

    @property
    def options(self) -> ReadOptions:
        """Which rows are selected."""
        ...

    def sql(self, query: str) -> pa.Table:
        """Result of one SELECT over the tables, whatever the options select."""
        ...

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The selected rows of a table in its order."""
        ...


def rows(source: Source, query: str) -> list[dict[str, Any]]:
    """Result of a query over the selected rows, as dicts; for results that are small by nature.

    Tables named in the query are replaced by their selected rows: a common table expression of the same name.
    """
    return _plain(source.sql(narrowed(query, source.options)))


def any_rows(source: Source, tables: Iterable[str]) -> bool:
    """Has any of these tables a selected row? Where none has, larger queries take longer to plan than this to ask.

    One after the other: mostly the first one has, and to plan a query over all of them takes longer than all these.
    """
    return any(rows(source, f"select 1 as one from {name} limit 1") for name in tables)


def narrowed(query: str, options: ReadOptions) -> str:
    """The query over the rows that the options select."""
    words = {*re.findall(r"\w+", query)}
    named = [name for name in ALL_TABLES if name in words]
    selected = [(name, " AND ".join(found)) for name in named if (found := shown_rows(name, options))]
    return _with_selection(query.strip(), selected)


def selected(table: str, options: ReadOptions) -> str:
    """An SQL condition for rows of the table that the options select, for counting them beside others."""
    return " and ".join(shown_rows(table, options)) or "true"


def all_rows(source: Source, query: str) -> list[dict[str, Any]]:
    """Result of a query over all rows, for looking up what a selected row refers to."""
    return _plain(source.sql(query))


def _with_selection(query: str, narrowed: list[tuple[str, str]]) -> str:
    if not narrowed:
        return query
    steps = ", ".join(f"{name} as (select * from {name} where {condition})" for name, condition in narrowed)
    is_with = query.startswith("with ")
    return f"with {steps}, {query.removeprefix('with ')}" if is_with else f"with {steps} {query}"


def _plain(table: pa.Table) -> list[dict[str, Any]]:
    if any(pa.types.is_timestamp(kind) for kind in table.schema.types):
        # Times of nanoseconds are values of pandas, which a program may have put off; asking for any of it imports it.
        pa.array([0]).to_pandas()
    found: list[dict[str, Any]] = table.to_pylist()
    return found
