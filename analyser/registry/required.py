"""Whether a Parquet file that a stranger may have written has a value wherever a registered table promises one.

In: a table's name and a file's footer. Out: the column that may lack values. What the file declares decides, not its
statistics: a column that is `required` has no place for a null, statistics can say anything.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pyarrow.parquet as pq

from analyser.registry.tables import arrow_schema


def may_lack(name: str, path: Path) -> str | None:
    """The first column of the file that may lack values and must not, None where there is none.

    A column that is not there at all is none of them. ValueError (also pyarrow's) and OSError: the footer cannot be
    read.
    """
    schema = pq.read_metadata(path).schema
    must = _never_null(name)
    for number in range(len(schema)):
        column = schema.column(number)
        if column.max_definition_level and column.path in must:
            return str(column.path)
    return None


@cache
def _never_null(name: str) -> frozenset[str]:
    return frozenset(field.name for field in arrow_schema(name) if not field.nullable)
