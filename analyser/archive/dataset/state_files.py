"""What a run goes on from, which somebody else may have written: read without following links, and wrong in a line.

In: files and parts of a dataset. Out: tables, or a `DatasetError` that says what to do.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wirewitness.analyser.archive.dataset.arrow_sizes import as_stream, held_bytes
from wirewitness.analyser.archive.dataset.bounds import STATE, SUMMARY_ROWS, Text, json_at, within
from wirewitness.analyser.archive.dataset.place import ANEW, DatasetError
from wirewitness.analyser.archive.dataset.stage_files import put_table
from wirewitness.analyser.base.faults import FAULTS, RAISE, caught, described
from wirewitness.analyser.base.storage.exchange_files import put_bytes
from wirewitness.analyser.base.storage.files import for_parquet
from wirewitness.analyser.base.storage.folders import FolderPath, StorePath, bytes_at, file_in
from wirewitness.analyser.base.untrusted_files import bytes_in
from wirewitness.analyser.decoding.rows.timeorder import FLOW

# What the files of a state are made of; those of another version cannot be gone on from.
STATE_FORMAT = 12
_MARK = "state"
MARK = {_MARK: str(STATE_FORMAT)}


def check_files(root: FolderPath, folder: FolderPath | None, parts: Sequence[str]) -> None:
    """DatasetError where something in the folder, or a part, is no file of its own in the dataset: a link to anywhere,
    which a run would read, copy or replace, or a pipe, which it would wait for. In a store there is neither."""
    if isinstance(root, StorePath) or isinstance(folder, StorePath):
        return
    try:
        there = root.resolve()
        places = {(root / part).parent for part in parts}
        for place in (*places, *(() if folder is None else (folder,))):
            if place.exists() and place.resolve() != Path(os.path.normpath(there / os.path.relpath(place, root))):
                raise DatasetError(f"{place} is or lies behind a link, which no run goes on from: {ANEW}.")
        for path in (*(root / part for part in parts), *(() if folder is None else folder.rglob("*"))):
            kind = path.lstat().st_mode if os.path.lexists(path) else stat.S_IFREG
            if not (stat.S_ISREG(kind) or (stat.S_ISDIR(kind) and folder is not None and path.is_relative_to(folder))):
                raise DatasetError(f"{path} is no file, and no run goes on from it: {ANEW}.")
    except RuntimeError as error:  # links in a circle
        raise DatasetError(f"{root} holds links in a circle: {ANEW}.") from error


def put_kept(path: FolderPath, table: pa.Table) -> None:
    """Write a table for `kept_table`. OSError."""
    put_table(path, marked(table), "zstd")


def marked(table: pa.Table) -> pa.Table:
    """The table with the mark of this version's states."""
    return table.replace_schema_metadata(MARK)


def kept_table(path: FolderPath, expected: pa.Schema, most_rows: int = STATE.rows) -> pa.Table:
    """The table of a state. DatasetError for a file that is none, not there, of another version, or has other columns
    than `expected`, more than a state has, or rows that belong to no flow where there is a column of flows."""
    try:
        data = (
            bytes_at(path, STATE.bytes) if isinstance(path, StorePath) else bytes_in(path, STATE.bytes, os.O_NOFOLLOW)
        )
        stream = as_stream(pa.py_buffer(data))
        with pa.ipc.open_stream(stream) as reader:
            _check_columns(path, reader.schema, expected)
            held, most = held_bytes(stream), STATE.held_by(len(data))
            if held > most:
                raise DatasetError(f"{path} would take {held:,} bytes of memory, and {most:,} are the most: {ANEW}.")
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"{path} is no state of a dataset ({_said(error)}): {ANEW}.") from error
    if table.num_rows > most_rows:
        raise DatasetError(f"{path} has {table.num_rows:,} rows, and {most_rows:,} are the most: {ANEW}.")
    if FLOW in table.schema.names and table.column(FLOW).null_count:
        raise DatasetError(f"{path} is no state of a dataset (rows without a connection): {ANEW}.")
    return table.replace_schema_metadata(None)


def put_kept_json(path: FolderPath, value: Mapping[str, Any], most: Text) -> None:
    """Write an object for `kept_json`. OSError; ValueError where it is too much."""
    put_bytes(path, within(json.dumps({**value, **MARK}).encode(), most))


def kept_json(path: FolderPath, most: Text) -> dict[str, Any]:
    """The object in a file of a state. DatasetError for anything else, of another version, or with too much in it."""
    try:
        value = json_at(path, most)
    except (OSError, ValueError, RecursionError) as error:
        raise DatasetError(f"{path} is no state of a dataset ({_said(error)}): {ANEW}.") from error
    if not isinstance(value, dict):
        raise DatasetError(f"{path} is no state of a dataset: {ANEW}.")
    _check_mark(path, value.get(_MARK))
    return value


def check_summary(path: FolderPath) -> None:
    """DatasetError for rows in Parquet that are not of this version's states, or too many."""
    try:
        with pq.ParquetFile(for_parquet(file_in(path))) as file:
            told = file.metadata
        rows = sum(told.row_group(number).num_rows for number in range(told.num_row_groups))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"{path} is no state of a dataset ({_said(error)}): {ANEW}.") from error
    _check_mark(path, (told.metadata or {}).get(_MARK.encode(), b"").decode(errors="replace"))
    if not 0 <= rows <= SUMMARY_ROWS:
        raise DatasetError(f"{path} has {rows:,} rows, and {SUMMARY_ROWS:,} are the most: {ANEW}.")


def _check_columns(path: FolderPath, found: pa.Schema, expected: pa.Schema) -> None:
    _check_mark(path, (found.metadata or {}).get(_MARK.encode(), b"").decode(errors="replace"))
    if [*zip(found.names, found.types, strict=True)] != [*zip(expected.names, expected.types, strict=True)]:
        raise DatasetError(f"{path} is no state of a dataset (it has other columns): {ANEW}.")


def _check_mark(path: FolderPath, mark: object) -> None:
    if mark != MARK[_MARK]:
        raise DatasetError(f"{path} was made by another version, whose state is not gone on from: {ANEW}.")


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or (str(error) if type(error) is ValueError else type(error).__name__)


@contextmanager
def going_on_from(place: FolderPath | None) -> Iterator[None]:
    """What goes wrong in the block is a DatasetError where a run goes on from what PLACE holds; None: from nothing.

    Values of the right kind that nobody would write fail wherever they are used. What the system says of disks and
    memory is let through; --debug shows the trace.
    """
    try:
        yield
    except (OSError, MemoryError, DatasetError):
        raise
    except Exception as error:
        if place is None or type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        if os.environ.get(FAULTS) != RAISE:
            caught(error)
        raise DatasetError(f"{place} cannot be gone on from ({described(error)}): {ANEW}.") from error
