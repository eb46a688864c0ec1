"""How rows of a table lie in a dataset's files, so that everybody's reader of Parquet and Delta tables takes them.

In: rows with registered columns. Out: the same rows for files, and back. Spark, Trino and Delta Lake know times of
microseconds only (https://github.com/delta-io/delta/blob/master/PROTOCOL.md, primitive types): a time is kept in two
columns, the microsecond it lies in, under its own name, and 0 to 999 nanoseconds beyond it, in a column beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.tables.queries import literal, quoted
from wirewitness.analyser.tables.tables import arrow_schema

MICROSECONDS = pa.timestamp("us", tz="UTC")
NANOSECONDS = pa.timestamp("ns", tz="UTC")
_BESIDE = pa.int16()
_FIRST_NS, _LAST_NS = -9_223_372_036_854_775_000, 9_223_372_036_854_775_000


def beside(name: str) -> str:
    """The column with the nanoseconds of a time beyond its microsecond."""
    return f"{name}_nanos"


@cache
def part_schema(table: str) -> pa.Schema:
    """Columns of rows on their way to a file and back: the registered ones, and FLOW."""
    return arrow_schema(table).append(pa.field(FLOW, pa.int64()))


@cache
def stored_schema(table: str) -> pa.Schema:
    """Columns of the files of a table; FLOW is the last one."""
    fields: list[pa.Field] = []
    for field in part_schema(table):
        if field.type == NANOSECONDS:
            fields += [field.with_type(MICROSECONDS), pa.field(beside(field.name), _BESIDE, field.nullable)]
        else:
            fields.append(field)
    return pa.schema(fields)


def to_stored(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with the columns of `part_schema` as they lie in files."""
    columns: list[pa.Array] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if field.type == NANOSECONDS:
            ns = _in_range(column.cast(pa.int64()))
            # Arrow divides towards zero; before 1970 that would be the microsecond behind the time.
            us = pc.divide(pc.subtract(ns, _remainder(ns)), 1000)
            columns += [us.cast(MICROSECONDS), _remainder(ns).cast(_BESIDE)]
        else:
            columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=stored_schema(table))


def _in_range(ns: pa.Array) -> pa.Array:
    """Times at the very ends of 64 bits, which only a made-up capture has, a microsecond further in: DuckDB takes the
    last one for infinity, and cannot multiply up to the first ones."""
    ends = pc.min_max(ns).as_py()
    if ends["min"] is None or (ends["min"] >= _FIRST_NS and ends["max"] <= _LAST_NS):
        return ns
    return pc.if_else(pc.is_null(ns), ns, pc.min_element_wise(pc.max_element_wise(ns, _FIRST_NS), _LAST_NS))


def _remainder(ns: pa.Array) -> pa.Array:
    """0 to 999, of negative numbers too."""
    towards_zero = pc.subtract(ns, pc.multiply(pc.divide(ns, 1000), 1000))
    return pc.if_else(pc.less(towards_zero, 0), pc.add(towards_zero, 1000), towards_zero)


def from_stored(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as they lie in files with the columns of `part_schema` again."""
    schema, columns = part_schema(table), []
    for field in schema:
        column = batch.column(field.name)
        if field.type == NANOSECONDS:
            ns = pc.multiply(column.cast(pa.int64()), 1000)
            column = pc.add(ns, batch.column(beside(field.name)).cast(pa.int64())).cast(NANOSECONDS)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def stored_rows(table: str, paths: Iterable[object]) -> str:
    """What stands behind FROM for the rows of some files: the columns of `part_schema` with their registered types,
    and `filename` and `file_row_number`. paths: of at least one file."""
    names = ", ".join(_told(field) for field in part_schema(table))
    files = literal([*map(str, paths)])
    source = f"read_parquet({files}, hive_partitioning = false, filename = true, file_row_number = true)"
    return f"(SELECT {names}, filename, file_row_number FROM {source})"


def _told(field: pa.Field) -> str:
    name = quoted(field.name)
    if field.type != NANOSECONDS:
        return name
    ns = f"epoch_us({name}) * 1000 + {quoted(beside(field.name))}"
    return f"make_timestamp_ns({ns})::TIMESTAMPTZ_NS AS {name}"
