"""The rows of one table as columns with texts as codes, and their keys as ranks.

In: a DuckDB statement, or rows at hand. Out: `LoadedRows`, in the order of the table, from which the partitions of
any rule are taken. A row of commits takes some 150 bytes, a fifth of what it takes as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.engine.rules.columns import CodedColumn, Held, HeldColumn, Integers
from wirewitness.analyser.engine.rules.partition_sql import ROW, TOPIC
from wirewitness.analyser.tables.coded import BATCH_ROWS, TooManyBytes, coded_array, coded_columns
from wirewitness.analyser.tables.parquet import temporary_reader
from wirewitness.analyser.tables.queries import literal, quoted
from wirewitness.analyser.tables.tables import TABLES


class LoadedRows:
    """Rows of a table in its order; texts are dictionary arrays.

    columns: in any order; they are put in order here, one by one, since two copies of all of them would be held else.
    """

    def __init__(self, columns: dict[str, pa.Array], order: Sequence[str]) -> None:
        self._columns = columns
        self._ranks: dict[str, Integers] = {}
        if _are_in_order([columns[name] for name in order]):
            return
        rows = np.lexsort([self.ranks(name) for name in reversed(order)])
        for name, column in columns.items():
            columns[name] = column.take(pa.array(rows))
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


def at_hand(
    rows: pa.Table | Sequence[Path],
    columns: Sequence[str],
    table: str,
    most_bytes: int,
    numbers: Integers | None = None,
) -> LoadedRows:
    """These columns of a table that lies in memory, or in Parquet files with codes, without asking DuckDB for them.

    In memory they are not copied where they are codes or numbers in the table's order. numbers: of the rows of files
    that are wanted, counted over all of them, rising; None for all. Raises TooManyBytes.
    """
    own = [name for name in columns if name != TOPIC]
    if not isinstance(rows, pa.Table):
        import pyarrow.parquet as pq

        schema = pq.read_schema(rows[0])
        batches = _batches(rows, own)
        found = coded_columns(
            batches if numbers is None else _chosen(batches, numbers),
            pa.schema([schema.field(name) for name in own]),
            most_bytes,
        )
    else:
        found = {name: coded_array(rows.column(name)) for name in own}
        if sum(column.nbytes for column in found.values()) > most_bytes:
            raise TooManyBytes
    _add_topic(found, columns)
    return LoadedRows(found, TABLES[table].order)


def loaded_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    columns: Sequence[str],
    table: str,
    most_bytes: int | None = None,
) -> LoadedRows:
    """Rows that come with the columns of the schema, of which these are made. Raises TooManyBytes."""
    found = coded_columns(batches, schema, most_bytes)
    _add_topic(found, columns)
    return LoadedRows(found, TABLES[table].order)


def _add_topic(found: dict[str, pa.Array], columns: Sequence[str]) -> None:
    """What stands for the topic as a key, if it is among the columns."""
    if TOPIC in columns:
        found[TOPIC] = found["topic"]
        if found["topic"].null_count:
            told = pc.coalesce(*(found[name].cast(pa.string()) for name in ("topic", "topic_id")))
            found[TOPIC] = told.dictionary_encode()


def numbered_files(paths: Sequence[Path], rows: Sequence[int]) -> str:
    """What stands behind FROM for the rows of Parquet files with their numbers. rows: how many each has."""
    firsts = accumulate(rows, initial=0)
    return f"({' UNION ALL '.join(map(_numbered, paths, firsts))})"


def _numbered(path: Path, first: int) -> str:
    source = f"read_parquet({literal(str(path))}, file_row_number = true)"
    return f"SELECT * EXCLUDE (file_row_number), file_row_number + {first} AS {quoted(ROW)} FROM {source}"


def _batches(paths: Iterable[Path], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with temporary_reader(path) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=columns)


def _chosen(batches: Iterable[pa.RecordBatch], numbers: Integers) -> Iterator[pa.RecordBatch]:
    """The rows with these numbers, counted over all batches."""
    start = 0
    for batch in batches:
        first, last = np.searchsorted(numbers, (start, start + batch.num_rows)).tolist()
        if first < last:
            chosen = batch.take(pa.array(numbers[first:last] - start))
            yield pa.RecordBatch.from_arrays([*map(without_others, chosen.columns)], names=chosen.schema.names)
        start += batch.num_rows


def without_others(column: pa.Array) -> pa.Array:
    """The column without the texts of rows that are not there, where these are many."""
    if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        return column.dictionary_decode()
    return column


def _held(column: pa.Array) -> HeldColumn:
    if not pa.types.is_dictionary(column.type):
        return HeldColumn(column)
    return CodedColumn(column.indices.fill_null(-1).to_numpy(), column.dictionary)


def _are_in_order(columns: Sequence[pa.Array]) -> bool:
    """Are rows sorted by these columns? Most are, and to rank all texts of a million rows takes a hundred MiB."""
    before = np.arange(max(len(columns[0]) - 1, 0)) if columns else np.empty(0, np.int64)
    for column in columns:
        # What is left are rows that are like the one behind them in all columns so far.
        if pa.types.is_dictionary(column.type):
            codes = column.indices.fill_null(-1).to_numpy()
            changed = before[codes[before] != codes[before + 1]]
            found, places = np.unique(codes[np.concatenate([changed, changed + 1])], return_inverse=True)
            ranks = _ranks(column.dictionary.take(pa.array(found, mask=found < 0)))[places]
            if (ranks[: len(changed)] > ranks[len(changed) :]).any():
                return False
            before = before[codes[before] == codes[before + 1]]
        else:
            ranks = _ranks(column)
            if (ranks[before] > ranks[before + 1]).any():
                return False
            before = before[ranks[before] == ranks[before + 1]]
    return True


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
