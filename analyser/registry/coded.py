"""Results of queries in memory, texts as codes: a fifth of what they take as text.

In: Arrow batches. Out: columns, or a table that DuckDB reads like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

BATCH_ROWS = 1 << 14


class TooManyBytes(Exception):
    """The rows take more memory than somebody wants to spend."""


def coded_columns(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, most_bytes: int | None = None
) -> dict[str, pa.Array]:
    """The columns by name, those of texts as dictionary arrays. most_bytes: raises TooManyBytes for more."""
    held: list[list[pa.Array]] = []
    size = 0
    for batch in batches:
        held.append([_coded(column) for column in batch.columns])
        size += sum(column.nbytes for column in held[-1])
        if most_bytes is not None and size > most_bytes:
            raise TooManyBytes
    parts: Iterable[Sequence[pa.Array]] = zip(*held, strict=True) if held else ([] for _ in schema)
    return {field.name: _joined(part, field.type) for field, part in zip(schema, parts, strict=True)}


def coded_table(reader: pa.RecordBatchReader) -> pa.Table:
    """The same as a table."""
    return pa.table(coded_columns(reader, reader.schema))


def _coded(column: pa.Array) -> pa.Array:
    return column.dictionary_encode() if pa.types.is_string(column.type) else column


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    if not parts:
        return _coded(pa.array([], kind))
    joined = pa.chunked_array(parts)
    if pa.types.is_dictionary(joined.type):
        joined = joined.unify_dictionaries()
    one = joined.combine_chunks()
    return one.chunk(0) if isinstance(one, pa.ChunkedArray) else one
