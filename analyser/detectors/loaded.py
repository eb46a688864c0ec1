"""The rows of one table as columns with texts as codes, and their keys as ranks.

In: a DuckDB statement. Out: `LoadedRows`, in the order of the table, from which the partitions of any rule are taken.
A row of commits takes some 150 bytes, a fifth of what it takes as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analyser.detectors.held import CodedColumn, Held, HeldColumn, Integers
from analyser.registry.coded import BATCH_ROWS, coded_columns
from analyser.registry.tables import TABLES


class LoadedRows:
    """Rows of a table in its order; texts are dictionary arrays."""

    def __init__(self, columns: Mapping[str, pa.Array], order: Sequence[str]) -> None:
        self._columns = columns
        self._ranks: dict[str, Integers] = {}
        rows = np.lexsort([self.ranks(name) for name in reversed(order)])
        if (np.diff(rows) < 0).any():
            self._columns = {name: column.take(pa.array(rows)) for name, column in columns.items()}
            self._ranks = {name: ranks[rows] for name, ranks in self._ranks.items()}

    def __len__(self) -> int:
        """How many."""
        return len(next(iter(self._columns.values())))

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return sum(column.nbytes for column in self._columns.values())

    @property
    def columns(self) -> Mapping[str, pa.Array]:
        """The columns by name."""
        return self._columns

    @cached_property
    def held(self) -> Held:
        """The columns for frames."""
        return {name: _held(column) for name, column in self._columns.items()}

    def ranks(self, name: str) -> Integers:
        """Numbers that sort as the values of a column do: null first, texts by their bytes."""
        if name not in self._ranks:
            self._ranks[name] = _ranks(self._columns[name])
        return self._ranks[name]


def loaded(con: duckdb.DuckDBPyConnection, query: str, table: str, most_bytes: int) -> LoadedRows:
    """The rows of a query, with the columns by which the table is ordered. Raises TooManyBytes."""
    reader = con.sql(query).to_arrow_reader(BATCH_ROWS)
    return LoadedRows(coded_columns(reader, reader.schema, most_bytes), TABLES[table].order)


def _held(column: pa.Array) -> HeldColumn:
    if not pa.types.is_dictionary(column.type):
        return HeldColumn(column)
    return CodedColumn(column.indices.fill_null(-1).to_numpy(), column.dictionary)


def _ranks(column: pa.Array) -> Integers:
    if pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type):
        return HeldColumn(column).numbers(0, len(column))
    names = column.dictionary if pa.types.is_dictionary(column.type) else column.unique()
    order = pc.array_sort_indices(names, null_placement="at_start").to_numpy()
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    ranks[-1] = -1  # of null in dictionary arrays, whose names have none
    if pa.types.is_dictionary(column.type):
        codes = column.indices.fill_null(-1).to_numpy()
    else:
        codes = pc.index_in(column, names).to_numpy()
    found: Integers = ranks[codes]
    return found
