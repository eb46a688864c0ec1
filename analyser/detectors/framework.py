"""What a detector is, and the machine that runs them.

In: a DuckDB connection with a view for every registered table. Out: findings. A detector declares the tables and
columns that it reads and the key that cuts them into partitions; it sees one partition at a time, sorted by time, as a
mapping of table name to DataFrame, and nothing else. So the same function runs here, on Spark and in a test.

One statement per detector: its tables are put under each other, sorted by key and time by DuckDB (which spills), and
the Arrow stream is cut where the key changes. Memory holds one partition and one batch.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from analyser.findings import Confidence, Finding, Severity
from analyser.queries import quoted
from analyser.tables import ARROW_TYPES, PANDAS_TYPES, TABLES

Frames = Mapping[str, pd.DataFrame]

PAGE_SECTIONS = ("Finds", "Why it matters", "How it decides", "False alarms", "References")

# How a key column is read. A topic without a known name is told from others by its id.
_KEY_SQL = {"topic": "coalesce(topic, topic_id)"}
_TABLE_TAG = "@table"
_BATCH_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class Detector:
    """One rule.

    severity, confidence: the highest that its findings may have.
    reads: table -> columns. Columns of `partition_by` are given in any case.
    partition_by: key columns; every table in `reads` has them. Empty: the whole capture is one partition.
    detect: (frames, **thresholds) -> findings; pure. Its keyword-only arguments are the thresholds with their defaults.
    rows: table -> SQL boolean, which of its rows are wanted.
    suspects: a SELECT of the key columns over `r_<table>` (the rows wanted, key columns included): only partitions
        that it names are looked at. It must name every partition that could give a finding with the default thresholds.
    """

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    reads: Mapping[str, tuple[str, ...]]
    partition_by: tuple[str, ...]
    detect: Callable[..., Iterable[Finding]]
    rows: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    suspects: str | None = None

    @property
    def thresholds(self) -> dict[str, Any]:
        """Name -> default of every threshold."""
        parameters = inspect.signature(self.detect).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    @property
    def page(self) -> str:
        """The page for people: the docstring of the detector's module."""
        return inspect.cleandoc(sys.modules[self.detect.__module__].__doc__ or "")

    def columns(self, table: str) -> tuple[str, ...]:
        """Columns of that table's frame: the key first."""
        return (*self.partition_by, *(c for c in self.reads[table] if c not in self.partition_by))


@dataclass(frozen=True, slots=True)
class Failure:
    """A detector that broke on one partition. Our own fault, never the capture's."""

    code: str
    key: tuple[Any, ...]
    error: Exception


def run(
    con: duckdb.DuckDBPyConnection,
    detectors: Iterable[Detector],
    failures: list[Failure] | None = None,
) -> list[Finding]:
    """Run detectors over all partitions.

    A detector that raises loses its findings on that partition only: the error is appended to `failures` (with an empty
    key when its rows could not be read). Without such a list the error is raised, as tests want it.
    """
    findings: list[Finding] = []
    for detector in detectors:
        try:
            for key, frames in partitions(con, detector):
                findings.extend(_findings(detector, key, frames, failures))
        except duckdb.Error as error:
            _failed(failures, Failure(detector.code, (), error))
    return findings


def _findings(
    detector: Detector, key: tuple[Any, ...], frames: Frames, failures: list[Failure] | None
) -> Sequence[Finding]:
    try:
        return list(detector.detect(frames))
    except Exception as error:
        _failed(failures, Failure(detector.code, key, error))
        return ()


def _failed(failures: list[Failure] | None, failure: Failure) -> None:
    if failures is None:
        raise failure.error
    failures.append(failure)


def partitions(
    con: duckdb.DuckDBPyConnection, detector: Detector
) -> Iterator[tuple[tuple[Any, ...], dict[str, pd.DataFrame]]]:
    """Key and frames of every partition that `suspects` names, in the order of the keys."""
    key: tuple[Any, ...] | None = None
    held: dict[str, list[pd.DataFrame]] = {}
    for batch in con.sql(partitions_sql(detector)).to_arrow_reader(_BATCH_ROWS):
        for piece_key, table, piece in _pieces(_with_registered_types(batch, detector), detector):
            if key is not None and piece_key != key:
                yield key, _frames(held, detector)
                held = {}
            key = piece_key
            held.setdefault(table, []).append(piece)
    if key is not None:
        yield key, _frames(held, detector)


def partitions_sql(detector: Detector) -> str:
    """The statement behind `partitions`: all rows wanted, sorted by key, table and time."""
    keys = [quoted(column) for column in detector.partition_by]
    steps = [f"r_{table} AS ({_rows_sql(detector, table)})" for table in detector.reads]
    semi_join = ""
    if detector.suspects is not None:
        steps.append(f"suspects AS (SELECT DISTINCT {', '.join(keys)} FROM ({detector.suspects}))")
        same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM suspects.{key}" for key in keys)
        semi_join = f" SEMI JOIN suspects ON {same}"
    parts: list[str] = []
    order: list[str] = [f"{key} NULLS FIRST" for key in keys] + [quoted(_TABLE_TAG)]
    for table in detector.reads:
        own = _own_columns(detector, table)
        columns = ", ".join([*keys, *(f"{quoted(c)} AS {quoted(f'{table}.{c}')}" for c in own)])
        parts.append(f"SELECT '{table}' AS {quoted(_TABLE_TAG)}, {columns} FROM r_{table} AS r{semi_join}")
        order += [f"{quoted(f'{table}.{c}')} NULLS FIRST" for c in TABLES[table].order if c in own]
    return f"WITH {', '.join(steps)} {' UNION ALL BY NAME '.join(parts)} ORDER BY {', '.join(order)}"


def _rows_sql(detector: Detector, table: str) -> str:
    has_id = "topic_id" in TABLES[table].column_names()
    columns = [
        f"{_KEY_SQL[c] if c in _KEY_SQL and has_id else quoted(c)} AS {quoted(c)}" for c in detector.partition_by
    ]
    for name in _own_columns(detector, table):
        is_time = TABLES[table].column(name).kind == "time"
        columns.append(f"epoch_ns({quoted(name)}) AS {quoted(name)}" if is_time else quoted(name))
    where = f" WHERE {detector.rows[table]}" if table in detector.rows else ""
    return f"SELECT {', '.join(columns)} FROM {table}{where}"


def _own_columns(detector: Detector, table: str) -> list[str]:
    """Columns besides the key: those declared, and those that the table is ordered by."""
    wanted = dict.fromkeys((*detector.reads[table], *TABLES[table].order))
    return [column for column in wanted if column not in detector.partition_by]


def _with_registered_types(batch: pa.RecordBatch, detector: Detector) -> pd.DataFrame:
    """The batch as a DataFrame whose columns have the types of the registry."""
    times = {
        f"{table}.{column}"
        for table in detector.reads
        for column in _own_columns(detector, table)
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


def _pieces(frame: pd.DataFrame, detector: Detector) -> Iterator[tuple[tuple[Any, ...], str, pd.DataFrame]]:
    """(key, table, rows) of every run of rows with one key and table; the rows with the table's own columns.

    The columns of each table are picked once for the whole batch: a slice of rows is cheap, one of columns is not.
    """
    tags = frame[_TABLE_TAG].to_numpy()
    rows_of = {table: np.flatnonzero(tags == table) for table in detector.reads}
    own: dict[str, pd.DataFrame] = {}
    for table, rows in rows_of.items():
        names = [c if c in detector.partition_by else f"{table}.{c}" for c in detector.columns(table)]
        own[table] = frame[names].iloc[rows].set_axis(detector.columns(table), axis=1)
    starts = _run_starts(frame, [*detector.partition_by, _TABLE_TAG])
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
            frames[table] = _empty(detector, table)
            continue
        frame = pieces[0] if len(pieces) == 1 else pd.concat(pieces)
        frame.index = pd.RangeIndex(len(frame))
        frames[table] = frame
    return frames


def empty_frames(detector: Detector) -> dict[str, pd.DataFrame]:
    """Frames without rows, with the registered column types."""
    return {table: _empty(detector, table) for table in detector.reads}


def _empty(detector: Detector, table: str) -> pd.DataFrame:
    kinds = {column: TABLES[table].column(column).kind for column in detector.columns(table)}
    return pd.DataFrame({column: pd.Series(dtype=PANDAS_TYPES[kind]) for column, kind in kinds.items()})
