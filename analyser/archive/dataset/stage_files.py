"""Tables and values that stages of a run leave to each other, in files of any place.

In: a place, a table or a value. Out: the same on another machine. What a run goes on from, and somebody else may have
written, `state_files.py` reads: no value comes from there.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyarrow import feather

from wirewitness.analyser.base.storage.exchange_files import NewFile, put_sealed, sealed
from wirewitness.analyser.base.storage.folders import FolderPath, StorePath, bytes_at


def put_value(path: FolderPath, value: Any) -> str:
    """Leave a value to a task of this run; its seal, by which the task finds it. OSError.

    The seal goes by Spark. So nobody who can write where the dataset lies makes a task run what he put there.
    """
    return put_sealed(path, pickle.dumps(value))


def value_of(seal: str) -> Any:
    """The value that this run left. OSError where it is another one."""
    return pickle.loads(sealed(seal))


def put_table(path: FolderPath, table: pa.Table, compression: str | None = None) -> None:
    """Write a table, which is there at once. OSError."""
    with NewFile(path) as written:
        feather.write_feather(table, str(written), compression=compression)


def table_at(path: FolderPath, columns: Iterable[str] | None = None) -> pa.Table:
    """A table, or some of its columns. OSError."""
    source = pa.BufferReader(bytes_at(path)) if isinstance(path, StorePath) else str(path)
    return feather.read_table(source, columns=None if columns is None else [*columns])
