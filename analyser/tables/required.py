"""Whether a Parquet file that a stranger may have written has a value wherever a registered table promises one.

In: a table's schema and a file. Out: the column that lacks values. What the file declares decides, not its statistics:
a column that is `required` has no place for a null, statistics can say anything. Only columns that are not, as other
programs write them, are read for it, by DuckDB: a text that a file has once for all its rows is one there, and memory
has a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from wirewitness.analyser.base.storage.files import FilePath, absolute_name, for_parquet, let_reach
from wirewitness.analyser.tables.queries import answer, literal, open_connection, quoted

if TYPE_CHECKING:
    import duckdb

_MEMORY = "256MB"


def counting(temporary: Path, readable: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """A connection that `lacking` may ask about files below these places. temporary: a folder."""
    connection = open_connection(temporary, readable, _MEMORY, threads=1, statistics=False)
    let_reach(connection, readable)
    return connection


def lacking(schema: pa.Schema, path: FilePath | None, connect: Callable[[], duckdb.DuckDBPyConnection]) -> str | None:
    """The first column of the file that lacks a value and must not by this schema, None where there is none.

    A column that is not there at all is none of them. path: None: it is not there. connect: gives a connection of
    `counting`; most files need none. ValueError, OSError and CaptureError: it cannot be read.
    """
    if path is None:
        raise FileNotFoundError("no such object")
    try:
        optional = _optional({field.name for field in schema if not field.nullable}, path)
    except pa.ArrowException as error:  # not all of pyarrow's are ValueErrors
        raise ValueError(str(error)) from error
    if not optional:
        return None
    counts = ", ".join(f"count(*) - count({quoted(name)})" for name in optional)
    file = literal(absolute_name(str(path), resolved=True))
    nulls = answer(connect(), f"SELECT {counts} FROM read_parquet({file}, hive_partitioning = false)")
    return next((name for name, column in zip(optional, nulls, strict=True) if column[0].as_py()), None)


def _optional(must: Collection[str], path: FilePath) -> list[str]:
    """Those of these columns that have place for a null in the file."""
    with pq.ParquetFile(for_parquet(path)) as file:
        columns = (file.schema.column(number) for number in range(len(file.schema)))
        return [str(one.path) for one in columns if one.max_definition_level and one.path in must]
