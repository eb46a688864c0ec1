"""Chunks of rows in a file, each by itself: the texts of one need not be those of the next one.

In: record batches. Out: the same by their number, each read without the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa


class Place(NamedTuple):
    """Where a chunk lies in its file, in bytes."""

    start: int
    size: int


class ReadAt(Protocol):
    """What is read of a file."""

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """These bytes."""


class ChunkWriter:
    """Writes chunks to a file that it makes. compression: as Arrow names it. OSError."""

    def __init__(self, path: Path, compression: str) -> None:
        self._file = pa.OSFile(str(path), "wb")
        self._options = pa.ipc.IpcWriteOptions(compression=compression)
        self.places: list[Place] = []

    def write(self, chunk: pa.RecordBatch) -> None:
        """One more."""
        start = self._file.tell()
        with pa.ipc.new_stream(self._file, chunk.schema, options=self._options) as stream:
            stream.write_batch(chunk)
        self.places.append(Place(start, self._file.tell() - start))

    def close(self) -> None:
        """The file is whole."""
        self._file.close()


def read_chunk(file: ReadAt, place: Place) -> pa.RecordBatch:
    """The chunk at that place. OSError, pa.ArrowException."""
    with pa.ipc.open_stream(pa.py_buffer(file.read_at(place.size, place.start))) as stream:
        return stream.read_next_batch()
