"""Rows of a query that have a known key. In: a query, keys. Out: columns; other rows are never in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.engine.facts.keys import Key
from wirewitness.analyser.tables.coded import BATCH_ROWS, Coder, coded_columns


def known_rows(
    con: duckdb.DuckDBPyConnection, query: str, keys: Mapping[str, Key], columns: Sequence[str]
) -> dict[str, pa.Array]:
    """These columns of a query's rows whose first key is known, texts as codes, and the numbers of all keys."""
    reader = con.sql(query).to_arrow_reader(BATCH_ROWS)
    schema = pa.schema([*(reader.schema.field(name) for name in columns), *(pa.field(one, pa.int64()) for one in keys)])
    first, *_ = keys
    coder = Coder()

    def known() -> Iterator[pa.RecordBatch]:
        for rows in map(coder.batch, reader):
            told = dict(zip(rows.schema.names, rows.columns, strict=True))
            numbers = {name: pa.array(key.of(told)) for name, key in keys.items()}
            made = pa.RecordBatch.from_pydict({**{name: told[name] for name in columns}, **numbers})
            places = np.flatnonzero(numbers[first].to_numpy() >= 0)
            yield made if len(places) == len(made) else made.take(pa.array(places))

    return coded_columns(known(), schema)
