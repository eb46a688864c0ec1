"""Rows of one table in a file, which one process leaves to another.

In: the file and what each of its chunks holds. Out: batches in the order of time, whose texts may be codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from wirewitness.analyser.base.storage.files import FilePath, for_parquet
from wirewitness.analyser.base.storage.folders import FolderPath, file_in
from wirewitness.analyser.decoding.rows.chunk_file import Place, read_chunk
from wirewitness.analyser.decoding.rows.timeorder import Chunk, in_time_order

CHUNK_ROWS = 1 << 15
MAX_BATCH_BYTES = 16 << 20


class HandedOver(NamedTuple):
    """Rows of one table that a process leaves to another: a file of chunks, what each holds and where it lies, how many
    rows, and their schema with texts everywhere."""

    path: Path
    chunks: list[Chunk]
    places: list[Place]
    rows: int
    schema: pa.Schema


def batches_of(rows: HandedOver, at: FolderPath | None = None) -> Iterator[pa.RecordBatch]:
    """The rows as `RawTable.batches` gives them. at: where the file is now, None for where it was left. OSError."""
    with ExitStack() as opened:
        file = rows.path if at is None else file_in(at)
        readers = readers_of(opened, rows, file)
        row_bytes = 2 * file.stat().st_size // max(rows.rows, 1)  # they are compressed there
        most = max(1, min(CHUNK_ROWS, MAX_BATCH_BYTES // max(row_bytes, 1)))
        for batch in in_time_order(rows.chunks, lambda place: readers[place](), rows.schema, most):
            yield batch.select(batch.schema.names[:-1])


def readers_of(
    opened: ExitStack, rows: HandedOver, place: FilePath | None = None
) -> list[Callable[[], pa.RecordBatch]]:
    """What reads each chunk of a file of rows, which `opened` closes. place: where it is; None: where it was left."""
    if not rows.chunks:
        return []
    path = rows.path if place is None else place
    file = pa.OSFile(str(path), "rb") if isinstance(path, Path) else pa.PythonFile(for_parquet(path), "r")
    opened.enter_context(file)
    return [partial(read_chunk, file, lies) for lies in rows.places]
