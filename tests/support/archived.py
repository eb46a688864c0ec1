"""A dataset beside the offline analysis of the same captures.

In: both. Out: what differs, one line for each table: rows as they lie there, in any order, and the order in which the
reader of datasets gives them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import wirewitness
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.dataset.stored_types import from_stored, part_schema
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.storage.files import file_at, for_parquet
from wirewitness.analyser.tables.tables import ALL_TABLES, arrow_schema


def parts_of(root: str | Path, table: str) -> pa.Table:
    """The rows of a table as they lie in a dataset."""
    dataset = Dataset.open(root)
    schema = arrow_schema(table)
    found = [rows_of_part(table, path) for path in dataset.paths(dataset.parts(table))]
    return pa.concat_tables([schema.empty_table(), *(rows.select(schema.names) for rows in found)])


def rows_of_part(table: str, path: str | Path) -> pa.Table:
    """The rows of one file of a table, with the columns that they had before they were stored."""
    file_there = file_at(str(path))
    assert file_there is not None
    with pq.ParquetFile(for_parquet(file_there)) as file:
        rows = [from_stored(table, batch) for batch in file.iter_batches()]
    return pa.Table.from_batches(rows, part_schema(table))


def differences(root: str | Path, captures: Sequence[str | Path], options: ReadOptions | None = None) -> list[str]:
    """Compare all tables, findings among them, with those of the offline command on these captures."""
    found = []
    with wirewitness.read(captures, options=options) as offline, wirewitness.read(root) as kept:
        # What stands out in months is another question than in one capture: datasets have that table without rows.
        for table in (name for name in offline.tables() if name != "stands_out"):
            expected, got = (
                Counter(map(repr, rows.to_pylist())) for rows in (offline.arrow(table), parts_of(root, table))
            )
            if expected != got:
                missing, more = expected - got, got - expected
                examples = " and not ".join(next(iter(rows), "nothing") for rows in (missing, more))
                found.append(f"{table}: {missing.total()} missing, {more.total()} more: {examples}")
            elif not kept.arrow(table).equals(offline.arrow(table)):
                found.append(f"{table}: the reader gives its rows in another order")
    assert all(table in ALL_TABLES for table in Dataset.open(root).manifest.tables)
    return found
