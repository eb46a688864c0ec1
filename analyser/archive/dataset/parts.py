"""Rows of a table to Parquet parts, one folder for each protocol, day and hour.

In: Arrow batches with registered columns. Out: files and what the manifest says of them. Usable in a Spark worker:
nothing is shared, memory is bounded, and a task that is done again overwrites its own files.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirewitness.analyser.archive.dataset.part import HIDDEN, Part, Place
from wirewitness.analyser.archive.dataset.stored_types import part_schema, stored_schema, to_stored
from wirewitness.analyser.base.storage.exchange_files import NewFile
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.tables.parquet import parquet_options
from wirewitness.analyser.tables.tables import ALL_TABLES

ROW_GROUP_ROWS = 1 << 16
ROW_GROUP_BYTES = 16 << 20
OPEN_FILES = 8
HOUR_NS = 3_600_000_000_000
_NO_HOUR = np.iinfo(np.int64).min


def time_column(table: str) -> str | None:
    """The column by whose hour the rows of a table are parted: its first time."""
    return next((column.name for column in ALL_TABLES[table].columns if column.kind == "time"), None)


def write_parts(
    table: str,
    batches: Iterable[pa.RecordBatch],
    folder: FolderPath,
    name: str,
    *,
    provisional: bool = False,
    hidden: bool = False,
) -> list[Part]:
    """Write rows below `folder`/`table` as `part-NAME-NNNN.parquet`; the parts, with paths relative to the folder.

    batches: with the registered columns; FLOW may stand beside them. Rows keep their order within a part. name: unique
    within the dataset, such as RUN-SHARE. hidden: below `folder`/HIDDEN, where no reader looks. Memory: about
    OPEN_FILES times ROW_GROUP_BYTES, whatever comes.
    """
    writer = _Writer(table, folder, name, provisional=provisional, hidden=hidden)
    try:
        for batch in batches:
            writer.add(_with_flow(batch, table))
        writer.close()
    except BaseException:
        writer.abandon()
        raise
    return writer.parts


def _with_flow(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    schema = part_schema(table)
    if FLOW not in batch.schema.names:
        batch = batch.append_column(pa.field(FLOW, pa.int64()), pa.nulls(batch.num_rows, pa.int64()))
    return batch.select(schema.names).cast(schema)


def places(table: str, batch: pa.RecordBatch) -> Iterator[tuple[Place, pa.RecordBatch]]:
    """The rows of a batch by the place where they belong, in their order."""
    if not batch.num_rows:
        return
    hours = _hours(table, batch)
    protocols, codes = _protocols(table, batch)
    starts = np.flatnonzero(np.diff(hours) | np.diff(codes)) + 1
    if len(starts) == 0:
        yield _place(hours[0], protocols[codes[0]]), batch
        return
    keys, which = np.unique(np.stack([hours, codes]), axis=1, return_inverse=True)
    for number in range(keys.shape[1]):
        rows = np.flatnonzero(which.reshape(-1) == number)
        yield _place(keys[0, number], protocols[keys[1, number]]), batch.take(pa.array(rows))


def _place(hour: Any, protocol: str | None) -> Place:
    return Place(protocol, None if hour == _NO_HOUR else int(hour))


def _hours(table: str, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    column = time_column(table)
    if column is None:
        return np.full(batch.num_rows, _NO_HOUR, np.int64)
    times = batch.column(column).cast(pa.int64())
    hours = pc.fill_null(times, 0).to_numpy() // HOUR_NS
    hours[times.is_null().to_numpy(zero_copy_only=False)] = _NO_HOUR
    return np.asarray(hours)


def _protocols(table: str, batch: pa.RecordBatch) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The protocols that occur, and for each row which one it has."""
    if "protocol" not in batch.schema.names:
        return [ALL_TABLES[table].protocol], np.zeros(batch.num_rows, np.int64)
    encoded = batch.column("protocol").dictionary_encode(null_encoding="encode")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


class _File(NamedTuple):
    """A part that is being written, elsewhere until it is whole. path: where it belongs, relative to the folder."""

    new: NewFile
    path: str
    writer: pq.ParquetWriter
    held: list[pa.RecordBatch]
    counts: Counter[str]


class _Writer:
    """Files by place; the one not used longest is closed when too many are open."""

    def __init__(self, table: str, folder: FolderPath, name: str, *, provisional: bool, hidden: bool) -> None:
        self.parts: list[Part] = []
        self._table = table
        self._folder = folder
        self._tables = f"{HIDDEN}/{table}" if hidden else table
        self._name = name
        self._provisional = provisional
        self._open: OrderedDict[Place, _File] = OrderedDict()
        self._numbers: Counter[Place] = Counter()

    def add(self, batch: pa.RecordBatch) -> None:
        for place, rows in places(self._table, batch):
            for start in range(0, rows.num_rows, ROW_GROUP_ROWS):
                self._add(place, rows.slice(start, ROW_GROUP_ROWS))

    def close(self) -> None:
        while self._open:
            self._close(*self._open.popitem(last=False))

    def abandon(self) -> None:
        """Leave nothing of what is not whole."""
        for file in self._open.values():
            file.writer.close()
            file.new.drop()

    def _add(self, place: Place, rows: pa.RecordBatch) -> None:
        if place not in self._open:
            if len(self._open) >= OPEN_FILES:
                self._close(*self._open.popitem(last=False))
            self._open[place] = self._new(place)
        self._open.move_to_end(place)
        file = self._open[place]
        file.held.append(to_stored(self._table, rows))
        file.counts.update(rows=rows.num_rows, held_rows=rows.num_rows, held_bytes=rows.nbytes)
        if file.counts["held_rows"] >= ROW_GROUP_ROWS or file.counts["held_bytes"] >= ROW_GROUP_BYTES:
            _flush(file)

    def _new(self, place: Place) -> _File:
        number = self._numbers[place]
        self._numbers[place] += 1
        path = f"{self._tables}/{place.folder()}/{self._file_name(number)}"
        new, schema = NewFile(self._folder / path), stored_schema(self._table)
        writer = pq.ParquetWriter(new.path, schema, **parquet_options(schema))
        return _File(new, path, writer, [], Counter())

    def _file_name(self, number: int) -> str:
        return Part.name_of(self._name, number, provisional=self._provisional)

    def _close(self, _: Place, file: _File) -> None:
        _flush(file)
        file.writer.close()
        size = file.new.path.stat().st_size
        try:
            file.new.put()
        finally:
            file.new.drop()
        self.parts.append(Part(self._table, file.path, file.counts["rows"], size, self._provisional))


def _flush(file: _File) -> None:
    """What is held becomes a row group."""
    if file.held:
        file.writer.write_table(pa.Table.from_batches(file.held))
        file.held.clear()
        file.counts["held_rows"] = file.counts["held_bytes"] = 0
