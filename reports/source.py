"""What reports need from an analysis: SQL over its tables, narrowed to the rows that the options select."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from analyser.options import ReadOptions
from analyser.queries import literal
from analyser.tables import TABLES

# First and last time of a row where it is not `ts`: a flow is selected when some of it lies between the times.
_TIME_COLUMNS = {"captures": ("", ""), "flows": ("ts_first", "ts_last"), "findings": ("ts_first", "ts_last")}


class Source(Protocol):
    """The part of `analyser.Analysis` that reports use."""

    options: ReadOptions

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
    named = [name for name in TABLES if re.search(rf"\b{name}\b", query)]
    narrowed = [(name, condition) for name in named if (condition := _selection(name, source.options))]
    result: list[dict[str, Any]] = source.sql(_with_selection(query.strip(), narrowed)).to_pylist()
    return result


def all_rows(source: Source, query: str) -> list[dict[str, Any]]:
    """Result of a query over all rows, for looking up what a selected row refers to."""
    result: list[dict[str, Any]] = source.sql(query).to_pylist()
    return result


def _with_selection(query: str, narrowed: list[tuple[str, str]]) -> str:
    if not narrowed:
        return query
    steps = ", ".join(f"{name} as (select * from {name} where {condition})" for name, condition in narrowed)
    is_with = query.startswith("with ")
    return f"with {steps}, {query.removeprefix('with ')}" if is_with else f"with {steps} {query}"


def _selection(name: str, options: ReadOptions) -> str:
    """SQL condition for the rows that the options select; empty for all. Protocol names are checked before."""
    conditions = []
    first, last = _TIME_COLUMNS.get(name, ("ts", "ts"))
    if last and options.from_ns is not None:
        conditions.append(f"epoch_ns({last}) >= {options.from_ns}")
    if first and options.to_ns is not None:
        conditions.append(f"epoch_ns({first}) < {options.to_ns}")
    table = TABLES[name]
    if options.protocols and "protocol" in table.column_names():
        conditions.append(f"protocol in ({', '.join(map(literal, options.protocols))})")
    elif options.protocols and table.protocol not in {None, *options.protocols}:
        conditions.append("false")
    return " and ".join(conditions)
