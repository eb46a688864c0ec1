"""What a detector is, and the machine that runs them.

In: a DuckDB connection with a view for every registered table. Out: findings. A detector declares the tables and
columns that it reads and the key that cuts them into partitions; it sees one partition at a time, sorted by time, as a
mapping of table name to DataFrame, and nothing else. So the same function runs here, on Spark and in a test.

One statement per detector: its tables are put under each other, sorted by key and time by DuckDB (which spills), and
the Arrow stream is cut where the key changes (`cut.py`). Memory holds one partition and one batch.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from analyser.detectors.cut import TABLE_TAG, Key, column_of, cut, empty
from analyser.detectors.findings import Confidence, Finding, Severity
from analyser.registry.queries import quoted
from analyser.registry.tables import TABLES

Frames = Mapping[str, pd.DataFrame]

PAGE_SECTIONS = ("Finds", "Why it matters", "How it decides", "False alarms", "References")

# How a key column is read. A topic without a known name is told from others by its id.
_KEY_SQL = {"topic": "coalesce(topic, topic_id)"}
_BATCH_ROWS = 16_384
# Rows of one partition take up to half a KiB each in pandas, twice while they are put together.
MOST_PARTITION_ROWS = 1_000_000
# Partitions are dealt by a hash of their key into so many buckets, so that some of them can be looked at apart.
BUCKETS = 1024
ALL_BUCKETS = range(BUCKETS)
# Where memory does not suffice for a 32nd of them, it is short for other reasons; each attempt reads all parts.
_FEWEST_BUCKETS = BUCKETS // 32
_UNREADABLE = (duckdb.Error, pa.ArrowException, OSError)


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

    def own_columns(self, table: str) -> list[str]:
        """Columns besides the key: those declared, and those that the table is ordered by."""
        wanted = dict.fromkeys((*self.reads[table], *TABLES[table].order))
        return [column for column in wanted if column not in self.partition_by]


class PartitionTooLarge(Exception):
    """A partition has more rows than memory is planned for; it was not looked at."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A detector that could not look at one partition: it broke, or there were too many rows (PartitionTooLarge)."""

    code: str
    key: Key
    error: Exception

    @property
    def is_own_fault(self) -> bool:
        """It broke: never the capture's fault."""
        return not isinstance(self.error, PartitionTooLarge)


def run(
    con: duckdb.DuckDBPyConnection,
    detectors: Iterable[Detector],
    failures: list[Failure] | None = None,
    most_rows: int = MOST_PARTITION_ROWS,
) -> list[Finding]:
    """Run detectors over all partitions.

    A detector that raises loses its findings on that partition only: the error is appended to `failures` (with an empty
    key when its rows could not be read). Without such a list the error is raised, as tests want it.
    """
    findings: list[Finding] = []
    for detector in detectors:
        findings.extend(found_in(con, detector, ALL_BUCKETS, failures, most_rows))
    return findings


def found_in(
    con: duckdb.DuckDBPyConnection,
    detector: Detector,
    buckets: Sequence[int],
    failures: list[Failure] | None,
    most_rows: int = MOST_PARTITION_ROWS,
) -> list[Finding]:
    """Findings of the partitions in these buckets; when memory does not suffice for all, of one half and the other."""
    failed: list[Failure] | None = None if failures is None else []
    try:
        batches = con.sql(partitions_sql(detector, buckets)).to_arrow_reader(_BATCH_ROWS)
        found = list(detect_sorted(batches, detector, failed, most_rows))
    except _UNREADABLE as error:
        if not _is_out_of_memory(error):
            _failed(failures, Failure(detector.code, (), error))
            return []
        half = len(buckets) // 2
        if half >= _FEWEST_BUCKETS and detector.partition_by:
            halves = (buckets[:half], buckets[half:])
            return [one for some in halves for one in found_in(con, detector, some, failures, most_rows)]
        _failed(failures, Failure(detector.code, (), PartitionTooLarge("more rows belong together than memory holds")))
        return []
    if failures is not None:
        failures.extend(failed or ())
    return found


def _is_out_of_memory(error: Exception) -> bool:
    # An error in the middle of the rows comes by way of Arrow, which keeps only the text.
    return isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(error)


def detect_sorted(
    batches: Iterable[pa.RecordBatch],
    detector: Detector,
    failures: list[Failure] | None = None,
    most_rows: int = MOST_PARTITION_ROWS,
) -> Iterator[Finding]:
    """Findings from rows that are selected by `selection_sql` and sorted by `sorted_by`. Failures as in `run`."""

    def too_large(key: Key) -> None:
        error = PartitionTooLarge(f"more than {most_rows:,} rows belong together")
        _failed(failures, Failure(detector.code, key, error))

    for key, frames in cut(batches, detector, most_rows, too_large):
        found = _findings(detector, key, frames, failures)
        del frames  # else they are held while the next ones are put together
        yield from found


def _findings(detector: Detector, key: Key, frames: Frames, failures: list[Failure] | None) -> Sequence[Finding]:
    try:
        return list(detector.detect(frames))
    except Exception as error:
        _failed(failures, Failure(detector.code, key, error))
        return ()


def _failed(failures: list[Failure] | None, failure: Failure) -> None:
    if failures is None:
        raise failure.error
    failures.append(failure)


def partitions(con: duckdb.DuckDBPyConnection, detector: Detector) -> Iterator[tuple[Key, dict[str, pd.DataFrame]]]:
    """Key and frames of every partition that `suspects` names, in the order of the keys."""
    batches = con.sql(partitions_sql(detector)).to_arrow_reader(_BATCH_ROWS)
    return cut(batches, detector, sys.maxsize, lambda _: None)


def partitions_sql(detector: Detector, buckets: Sequence[int] = ALL_BUCKETS) -> str:
    """The statement behind `partitions`: all rows wanted, sorted by key, table and time."""
    order = ", ".join(f"{quoted(column)} NULLS FIRST" for column in sorted_by(detector))
    return f"{selection_sql(detector, buckets)} ORDER BY {order}"


def bucket_sql(detector: Detector) -> str:
    """The bucket of a row of `selection_sql`: each partition is in one of BUCKETS. Of detectors with a key."""
    return f"hash({', '.join(quoted(column) for column in detector.partition_by)}) % {BUCKETS}"


def sorted_by(detector: Detector) -> list[str]:
    """Columns of `selection_sql` by which rows must be sorted before they are cut, each ascending with null first."""
    own = [column_of(t, c) for t in detector.reads for c in TABLES[t].order if c in detector.own_columns(t)]
    return [*detector.partition_by, TABLE_TAG, *own]


def selection_sql(detector: Detector, buckets: Sequence[int] = ALL_BUCKETS) -> str:
    """All rows wanted of the partitions that `suspects` names, the tables under each other, times as int64 of ns.

    buckets: only partitions that are in one of them.
    """
    keys = [quoted(column) for column in detector.partition_by]
    # Each use reads only the columns that it needs; kept whole they would be written to disk first.
    steps = [f"r_{table} AS NOT MATERIALIZED ({_rows_sql(detector, table, buckets)})" for table in detector.reads]
    semi_join = ""
    if detector.suspects is not None:
        steps.append(f"suspects AS MATERIALIZED (SELECT DISTINCT {', '.join(keys)} FROM ({detector.suspects}))")
        same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM suspects.{key}" for key in keys)
        semi_join = f" SEMI JOIN suspects ON {same}"
    parts: list[str] = []
    for table in detector.reads:
        own = (f"{quoted(c)} AS {quoted(column_of(table, c))}" for c in detector.own_columns(table))
        columns = ", ".join([*keys, *own])
        parts.append(f"SELECT '{table}' AS {quoted(TABLE_TAG)}, {columns} FROM r_{table} AS r{semi_join}")
    return f"WITH {', '.join(steps)} {' UNION ALL BY NAME '.join(parts)}"


def _rows_sql(detector: Detector, table: str, buckets: Sequence[int]) -> str:
    has_id = "topic_id" in TABLES[table].column_names()
    columns = [
        f"{_KEY_SQL[c] if c in _KEY_SQL and has_id else quoted(c)} AS {quoted(c)}" for c in detector.partition_by
    ]
    for name in detector.own_columns(table):
        is_time = TABLES[table].column(name).kind == "time"
        columns.append(f"epoch_ns({quoted(name)}) AS {quoted(name)}" if is_time else quoted(name))
    where = f" WHERE {detector.rows[table]}" if table in detector.rows else ""
    rows = f"SELECT {', '.join(columns)} FROM {table}{where}"
    if len(buckets) == BUCKETS:
        return rows
    return f"FROM ({rows}) WHERE {bucket_sql(detector)} IN ({', '.join(map(str, buckets))})"


def empty_frames(detector: Detector) -> dict[str, pd.DataFrame]:
    """Frames without rows, with the registered column types."""
    return {table: empty(detector, table) for table in detector.reads}
