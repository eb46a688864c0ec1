"""Rows in memory, texts as codes: a fifth of what they take as text.

In: Arrow batches. Out: columns, or a table that DuckDB reads like any other. Where most rows of a batch have a text of
their own the column stays as it is, since codes would only be added to the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from wirewitness.analyser.base import compute as pc

BATCH_ROWS = 1 << 14
# What was read for so many bytes that are held leaves as much behind, in pieces between those that stay.
_RELEASED_BYTES = 8 << 20
# Fewer rows take next to nothing either way.
_FEW_ROWS = 1 << 10


class TooManyBytes(Exception):
    """The rows take more memory than somebody wants to spend."""


class Coder:
    """Makes codes of the texts of one table, batch by batch."""

    def __init__(self) -> None:
        # Columns of which a batch had too many texts: in the next ones they are not looked for.
        self._plain: set[str] = set()

    def coded(self, name: str, array: pa.Array) -> pa.Array:
        """The column of a batch as codes, as it is where it has other values than texts or too many of them.

        It may come as codes.
        """
        if pa.types.is_dictionary(array.type):
            if 2 * len(array.dictionary) <= len(array):
                return array
            array = pc.cast(array, array.type.value_type)
        if not pa.types.is_string(array.type) or len(array) < _FEW_ROWS or name in self._plain:
            return array
        coded = pc.dictionary_encode(array)
        if 2 * len(coded.dictionary) <= len(array):
            return coded
        self._plain.add(name)
        return array

    def batch(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The same of all columns of a batch."""
        columns = map(self.coded, rows.schema.names, rows.columns)
        return pa.RecordBatch.from_arrays([*columns], names=rows.schema.names)


def coded_columns(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, most_bytes: int | None = None
) -> dict[str, pa.Array]:
    """The columns by name, those of texts as dictionary arrays. most_bytes: raises TooManyBytes for more."""
    held: list[list[pa.Array]] = []
    size = released = 0
    for batch in batches:
        held.append([_coded(column) for column in batch.columns])
        size += sum(column.nbytes for column in held[-1])
        if most_bytes is not None and size > most_bytes:
            raise TooManyBytes
        if size - released > _RELEASED_BYTES:
            pa.default_memory_pool().release_unused()
            released = size
    # From the last column to the first, so that the parts of each go when it is put together.
    found = [(field.name, _joined([batch.pop() for batch in held], field.type)) for field in reversed([*schema])]
    if size > _RELEASED_BYTES:
        pa.default_memory_pool().release_unused()
    return dict(reversed(found))


def coded_table(reader: pa.RecordBatchReader) -> pa.Table:
    """The same as a table."""
    return pa.table(coded_columns(reader, reader.schema))


def coded_array(column: pa.ChunkedArray) -> pa.Array:
    """A column of a table as one array, texts as codes."""
    return _joined([_coded(part) for part in column.chunks], column.type)


def coded_schema(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Schema:
    """The schema of batches together, some of which may have codes where others have texts.

    schema: with texts everywhere. A column has codes where all batches have them.
    """
    fields = []
    for place, field in enumerate(schema):
        kinds = [batch.schema.types[place] for batch in batches]
        fields.append(field.with_type(kinds[0]) if kinds and all(map(pa.types.is_dictionary, kinds)) else field)
    return pa.schema(fields)


def one_table(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """These batches together; schema: as in `coded_schema`."""
    found = coded_schema(batches, schema)
    columns = []
    for place, field in enumerate(found):
        if pa.types.is_dictionary(field.type):
            columns.append(_joined([batch.column(place) for batch in batches], field.type))
        else:  # not copied: texts may be long
            parts = [pc.cast(batch.column(place), field.type) for batch in batches]
            columns.append(pa.chunked_array(parts, field.type))
    return pa.Table.from_arrays(columns, schema=found)


def plain(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table | pa.RecordBatch:
    """The columns of the schema, with texts instead of codes."""
    chosen = rows.select(schema.names)
    return chosen if chosen.schema == schema else chosen.cast(schema)


def _coded(column: pa.Array) -> pa.Array:
    return pc.dictionary_encode(column) if pa.types.is_string(column.type) else column


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    if not parts:
        return _coded(pa.array([], kind))
    joined = pa.chunked_array(parts)
    if pa.types.is_dictionary(joined.type):
        joined = joined.unify_dictionaries()
    one = joined.combine_chunks()
    return one.chunk(0) if isinstance(one, pa.ChunkedArray) else one
