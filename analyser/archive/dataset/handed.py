"""Tables and values that stages of a run leave to each other, in files of any place.

In: a place, a table or a value. Out: the same on another machine. What a run goes on from, and somebody else may have
written, `kept.py` reads: no value comes from there.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyarrow import feather

from analyser.storage.folders import FolderPath, StorePath
from analyser.storage.handing import NewFile, bytes_at, put_bytes


def put_value(path: FolderPath, value: Any) -> None:
    """Leave a value to a task of this run. OSError."""
    put_bytes(path, pickle.dumps(value))


def value_at(path: FolderPath) -> Any:
    """The value that this run left there. OSError."""
    return pickle.loads(bytes_at(path))


def put_table(path: FolderPath, table: pa.Table, compression: str | None = None) -> None:
    """Write a table, which is there at once. OSError."""
    with NewFile(path) as written:
        feather.write_feather(table, str(written), compression=compression)


def table_at(path: FolderPath, columns: Iterable[str] | None = None) -> pa.Table:
    """A table, or some of its columns. OSError."""
    source = pa.BufferReader(bytes_at(path)) if isinstance(path, StorePath) else str(path)
    return feather.read_table(source, columns=None if columns is None else [*columns])
