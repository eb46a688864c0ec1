"""Texts as codes, in rows on their way out of memory: what sorts, spills and joins rows moves integers.

In: batches of one table. Out: batches of the same table. A column of texts has codes where a batch came with them, as
those do that were made in columns. Its dictionary holds each text once, and no null; of a part of a batch, the texts of
all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.base import compute as pc


def coded(codes: npt.NDArray[Any], values: Sequence[str | None], size: int) -> pa.Array:
    """A column of `size` texts, that of a row in `values` at its code; as it is where hardly any of them repeats.

    Raises what Arrow does where a value is no text.
    """
    places = pa.array(codes.astype(np.int32))
    texts = pa.array(values, pa.string())
    if 2 * len(texts) > size:
        return pc.take(texts, places)
    if texts.null_count or len({*values}) < len(values):
        # A reader looks for null in the codes alone, and a writer for each text once.
        found = pc.dictionary_encode(texts)
        places, texts = pc.take(found.indices, places), found.dictionary
    return pa.DictionaryArray.from_arrays(places, texts)


def together(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of batches, of which there is one at least, one behind the other. schema: with texts everywhere."""
    if len(batches) == 1:
        return batches[0]
    columns = [_joined([batch.column(place) for batch in batches]) for place in range(len(schema))]
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def of_its_own(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A part of a batch that stays without the rest: texts instead of codes where a dictionary is large for it."""
    columns = [in_text(column) if _is_large(column) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _is_large(column: pa.Array) -> bool:
    return pa.types.is_dictionary(column.type) and 2 * len(column.dictionary) > len(column)


def in_text(column: pa.Array) -> pa.Array:
    """A column with texts instead of codes."""
    return pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Parts of a column, some of which may have codes: then all of it has."""
    if not any(pa.types.is_dictionary(part.type) for part in parts):
        return pa.concat_arrays(parts)
    with_codes = [part if pa.types.is_dictionary(part.type) else pc.dictionary_encode(part) for part in parts]
    return pa.chunked_array(with_codes).unify_dictionaries().combine_chunks()
