"""Columns of Arrow as arrays of numbers, and back. In: rows of SQL, numbers. Out: arrays without nulls, columns."""

from __future__ import annotations

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import NOWHERE, Integers
from wirewitness.analyser.tables.coded import BATCH_ROWS, coded_columns

Booleans = npt.NDArray[np.bool_]

# A number that is not there; lower than all others, so that a maximum leaves it out. No offset, time or count of a
# broker is so low: a damaged one that is counts as missing.
UNKNOWN = -(1 << 63)
_TIME = pa.timestamp("ns", tz="UTC")


def columns_of(con: duckdb.DuckDBPyConnection, query: str) -> dict[str, pa.Array]:
    """The columns of a query by name, texts as codes."""
    reader = con.sql(query).to_arrow_reader(BATCH_ROWS)
    return coded_columns(reader, reader.schema)


def integers(column: pa.Array) -> Integers:
    """A column of int64; UNKNOWN for null."""
    numbers: Integers = (pc.fill_null(column, UNKNOWN) if column.null_count else column).to_numpy()
    return numbers


def booleans(column: pa.Array) -> Booleans:
    """A column of truth values; false for null."""
    values: Booleans = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return values


def codes(column: pa.DictionaryArray) -> Integers:
    """The code of each text; NOWHERE for null."""
    found: Integers = pc.fill_null(column.indices, NOWHERE).to_numpy().astype(np.int64)
    return found


def number_column(numbers: Integers) -> pa.Array:
    """A column of int64; null for UNKNOWN."""
    return pa.array(numbers, mask=numbers == UNKNOWN)


def time_column(times: Integers) -> pa.Array:
    """A column of times in Unix ns; null for UNKNOWN."""
    return pc.cast(number_column(times), _TIME)


def taken_rows(column: pa.Array, places: Integers) -> pa.Array:
    """The values at these places; null where a place is NOWHERE."""
    return pc.take(column, pa.array(places, mask=places < 0))


def text_column(column: pa.DictionaryArray, places: Integers) -> pa.DictionaryArray:
    """The texts at these places as codes, with no more texts than there are places; null where a place is NOWHERE."""
    found = taken_rows(column, places)
    if len(found.dictionary) > len(found):
        found = pc.dictionary_encode(pc.cast(found, pa.string()))
    return found


def named_texts(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The texts; null for an empty one."""
    nameless = pc.index(column.dictionary, "")
    indices = pc.if_else(pc.equal(column.indices, nameless), None, column.indices)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary)
