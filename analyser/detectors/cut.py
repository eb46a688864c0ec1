"""One sorted stream of rows to the partitions of a detector.

In: Arrow batches sorted by key, table and time, whoever sorted them (DuckDB here, Spark in an archive), times as int64
of nanoseconds. Out: key and frames of one partition after the other. Memory holds one partition and one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from analyser.tables import ARROW_TYPES, PANDAS_TYPES, TABLES

if TYPE_CHECKING:
    from analyser.detectors.framework import Detector

TABLE_TAG = "@table"
Key = tuple[Any, ...]


def column_of(table: str, column: str) -> str:
    """The name of a table's own column where tables stand under each other. No dot: Spark would take it apart."""
    return f"{table}@{column}"


def cut(
    batches: Iterable[pa.RecordBatch],
    detector: Detector,
    most_rows: int,
    too_large: Callable[[Key], None],
) -> Iterator[tuple[Key, dict[str, pd.DataFrame]]]:
    """Key and frames of every partition, in the order of the stream.

    most_rows: a partition with more rows is left out, without ever being held, and its key is given to `too_large`.
    """
    key: Key | None = None
    held: dict[str, list[pd.DataFrame]] = {}
    rows = 0
    for batch in batches:
        for piece_key, table, piece in _pieces(_with_registered_types(batch, detector), detector):
            if piece_key != key:
                if key is not None and rows <= most_rows:
                    yield key, _frames(held, detector)
                key, held, rows = piece_key, {}, 0
            if rows <= most_rows < rows + len(piece):
                held = {}
                too_large(piece_key)
            rows += len(piece)
            if rows <= most_rows:
                held.setdefault(table, []).append(piece)
    if key is not None and rows <= most_rows:
        yield key, _frames(held, detector)


def _with_registered_types(batch: pa.RecordBatch, detector: Detector) -> pd.DataFrame:
    """The batch as a DataFrame whose columns have the types of the registry."""
    times = {
        column_of(table, column)
        for table in detector.reads
        for column in detector.own_columns(table)
        if TABLES[table].column(column).kind == "time"
    }
    columns = [
        column.cast(ARROW_TYPES["time"]) if name in times else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    typed = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    frame: pd.DataFrame = typed.to_pandas(types_mapper=_PANDAS_OF_ARROW.get)
    return frame


_PANDAS_OF_ARROW: dict[pa.DataType, Any] = {
    pa.string(): pd.StringDtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def _pieces(frame: pd.DataFrame, detector: Detector) -> Iterator[tuple[Key, str, pd.DataFrame]]:
    """(key, table, rows) of every run of rows with one key and table; the rows with the table's own columns.

    The columns of each table are picked once for the whole batch: a slice of rows is cheap, one of columns is not.
    """
    tags = frame[TABLE_TAG].to_numpy()
    rows_of = {table: np.flatnonzero(tags == table) for table in detector.reads}
    own: dict[str, pd.DataFrame] = {}
    for table, rows in rows_of.items():
        names = [c if c in detector.partition_by else column_of(table, c) for c in detector.columns(table)]
        own[table] = frame[names].iloc[rows].set_axis(detector.columns(table), axis=1)
    starts = _run_starts(frame, [*detector.partition_by, TABLE_TAG])
    heads = frame[list(detector.partition_by)].iloc[starts]
    columns = [heads[name].array.to_numpy(dtype=object, na_value=None).tolist() for name in detector.partition_by]
    for number, (start, end) in enumerate(pairwise([*starts, len(frame)])):
        table = str(tags[start])
        first, last = np.searchsorted(rows_of[table], (start, end))
        yield tuple(column[number] for column in columns), table, own[table].iloc[first:last]


def _run_starts(frame: pd.DataFrame, names: Sequence[str]) -> list[int]:
    """Positions at which a row differs from the one before it in any of these columns."""
    changed: npt.NDArray[np.bool_] = np.zeros(len(frame), dtype=bool)
    changed[:1] = True
    for name in names:
        codes = pd.factorize(frame[name], use_na_sentinel=True)[0]
        changed[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(changed).tolist()


def _frames(held: Mapping[str, list[pd.DataFrame]], detector: Detector) -> dict[str, pd.DataFrame]:
    """One frame per table, the pieces of each put together; empty ones for tables without rows."""
    frames: dict[str, pd.DataFrame] = {}
    for table in detector.reads:
        pieces = held.get(table)
        if not pieces:
            frames[table] = empty(detector, table)
            continue
        frame = pieces[0] if len(pieces) == 1 else pd.concat(pieces)
        frame.index = pd.RangeIndex(len(frame))
        frames[table] = frame
    return frames


def empty(detector: Detector, table: str) -> pd.DataFrame:
    """A frame without rows, with the registered column types."""
    kinds = {column: TABLES[table].column(column).kind for column in detector.columns(table)}
    return pd.DataFrame({column: pd.Series(dtype=PANDAS_TYPES[kind]) for column, kind in kinds.items()})
