"""Whether a Parquet file that a stranger may have written has a value wherever a registered table promises one.

In: a table's schema and a file. Out: the column that lacks values. What the file declares decides, not its statistics:
a column that is `required` has no place for a null, statistics can say anything. Only columns that are not, as other
programs write them, are read for it.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.parquet as pq

from wirewitness.analyser.base.storage.files import FilePath, for_parquet


def lacking(schema: pa.Schema, path: FilePath | None) -> str | None:
    """The first column of the file that lacks a value and must not by this schema, None where there is none.

    A column that is not there at all is none of them. ValueError and OSError: it cannot be read; None: it is not there.
    """
    if path is None:
        raise FileNotFoundError("no such object")
    try:
        return _lacking({field.name for field in schema if not field.nullable}, path)
    except pa.ArrowException as error:  # not all of pyarrow's are ValueErrors
        raise ValueError(str(error)) from error


def _lacking(must: Collection[str], path: FilePath) -> str | None:
    with pq.ParquetFile(for_parquet(path)) as file:
        columns = (file.schema.column(number) for number in range(len(file.schema)))
        optional = [str(one.path) for one in columns if one.max_definition_level and one.path in must]
        if not optional:
            return None
        for batch in file.iter_batches(columns=optional):
            for column in optional:
                if batch.column(column).null_count:
                    return column
    return None
