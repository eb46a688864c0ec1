"""All detectors over the parts of a dataset, on Spark.

In: where the parts of each table lie. Out: the findings table, and what could not be looked at. One job selects: each
task takes some detectors, and DuckDB reads from the parts the rows of partitions that `suspects` names, within a fixed
amount of memory. Few rows are sorted and looked at right there; of many, Spark makes partitions by key, sorts them, and
cuts them by the same function. Between workers only findings travel, and rows of detectors that have much to look at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa

from analyser.detectors import DETECTORS
from analyser.detectors.framework import (
    MOST_PARTITION_ROWS,
    Detector,
    Failure,
    PartitionTooLarge,
    detect_sorted,
    selection_sql,
    sorted_by,
)
from analyser.findings import Finding, findings_table
from analyser.queries import literal, name_list, quoted
from analyser.tables import TABLES, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Sorting them in one task, which spills, takes less time than sending them through Spark's shuffle.
FEW_ROWS = 10_000_000
TASK_MEMORY = "400MB"
_BATCH_ROWS = 16_384
_FINDINGS_OF_ROW = 500
_TASK_ROWS = 500_000

# What a task tells: findings as Arrow IPC, a failure as JSON, or how many rows of a detector wait for Spark.
_TOLD = pa.schema([("kind", pa.string()), ("code", pa.string()), ("data", pa.binary())])
_TOLD_DDL = "kind string, code string, data binary"


class Detected(NamedTuple):
    """The findings table, in its order, and the partitions that could not be looked at."""

    findings: pa.Table
    failures: list[Failure]


class DetectorBroke(Exception):
    """A detector raised on a worker; the text is what it raised."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What every task knows, by way of a file: parts can be many."""

    parts: dict[str, list[str]]
    codes: list[str]
    folder: str
    few_rows: int
    most_rows: int


def detect(
    spark: SparkSession,
    parts: Mapping[str, Iterable[str]],
    folder: Path,
    codes: Iterable[str] | None = None,
    few_rows: int = FEW_ROWS,
    most_rows: int = MOST_PARTITION_ROWS,
) -> Detected:
    """Findings of the detectors with these codes (None: all) over a dataset.

    parts: table -> paths of its Parquet files, enriched by the context, as every worker can open them. folder: an empty
    place for temporary files that all workers see. few_rows: detectors that want more rows get them through Spark.
    most_rows: larger partitions are not looked at, which is a failure of the kind PartitionTooLarge.
    """
    chosen = [*DETECTORS] if codes is None else [DETECTORS[code].code for code in codes]
    paths = {table: [str(path) for path in found] for table, found in parts.items()}
    plan = folder / "plan.json"
    plan.write_text(json.dumps(asdict(_Plan(paths, chosen, str(folder), few_rows, most_rows))), encoding="utf-8")
    tasks = max(1, min(len(chosen), 2 * spark.sparkContext.defaultParallelism))
    told = spark.range(0, tasks, 1, tasks).mapInArrow(_Selecting(str(plan), tasks), _TOLD_DDL).collect()
    large = {row.code: int(row.data) for row in told if row.kind == "rows"}
    for code, rows in large.items():
        told += _sorted_by_spark(spark, DETECTORS[code], folder, rows).mapInArrow(
            _Looking(code, most_rows), _TOLD_DDL
        ).collect()  # fmt: skip
    found = [_findings_of(bytes(row.data)) for row in told if row.kind == "findings"]
    order = [(column, "ascending") for column in TABLES["findings"].order]
    table = pa.concat_tables([arrow_schema("findings").empty_table(), *found]).sort_by(order)
    return Detected(table, [_failure_of(row.code, bytes(row.data)) for row in told if row.kind == "failure"])


def _sorted_by_spark(spark: SparkSession, detector: Detector, folder: Path, rows: int) -> DataFrame:
    """The selected rows with equal keys in one task, sorted there; Spark spills what does not fit."""
    from pyspark.sql.functions import col

    def column(name: str) -> Any:
        return col(f"`{name}`")

    tasks = max(spark.sparkContext.defaultParallelism, -(-rows // _TASK_ROWS))
    selected = spark.read.parquet(str(folder / f"{detector.code}.parquet"))
    keys = [column(name) for name in detector.partition_by]
    order = [column(name).asc_nulls_first() for name in sorted_by(detector)]
    return selected.repartition(tasks, *keys).sortWithinPartitions(*order)


@dataclass(frozen=True, slots=True)
class _Selecting:
    """A task of the first job. plan: path of the plan. tasks: into how many the detectors are dealt."""

    plan: str
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = _Plan(**json.loads(Path(self.plan).read_text(encoding="utf-8")))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with (
                    TemporaryDirectory(prefix="detect-", dir=plan.folder) as scratch,
                    _connection(plan.parts, scratch) as con,
                ):
                    for code in plan.codes[number :: self.tasks]:
                        yield from _told(_select(con, DETECTORS[code], plan))


@dataclass(frozen=True, slots=True)
class _Looking:
    """A task of a detector with many rows."""

    code: str
    most_rows: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _told(_look(batches, DETECTORS[self.code], self.most_rows))


Told = tuple[str, str, bytes]


def _select(con: duckdb.DuckDBPyConnection, detector: Detector, plan: _Plan) -> Iterator[Told]:
    """Pick a detector's rows; look at them, or leave them for Spark."""
    picked = quoted(f"picked {detector.code}")
    try:
        con.execute(f"CREATE TEMP TABLE {picked} AS {selection_sql(detector)}")
        ((rows,),) = con.execute(f"SELECT count(*) FROM {picked}").fetchall()
        if rows > plan.few_rows and detector.partition_by:
            path = os.path.join(plan.folder, f"{detector.code}.parquet")
            con.execute(f"COPY {picked} TO {literal(path)} (FORMAT parquet, COMPRESSION zstd)")
            yield "rows", detector.code, str(rows).encode()
        elif rows:
            order = ", ".join(f"{quoted(name)} NULLS FIRST" for name in sorted_by(detector))
            batches = con.sql(f"FROM {picked} ORDER BY {order}").to_arrow_reader(_BATCH_ROWS)
            yield from _look(batches, detector, plan.most_rows)
        con.execute(f"DROP TABLE {picked}")
    except duckdb.Error as error:
        yield "failure", detector.code, _failure_data(Failure(detector.code, (), error))


def _look(batches: Iterable[pa.RecordBatch], detector: Detector, most_rows: int) -> Iterator[Told]:
    """Findings and failures from sorted rows."""
    failures: list[Failure] = []
    held: list[Finding] = []
    for finding in detect_sorted(batches, detector, failures, most_rows):
        held.append(finding)
        if len(held) >= _FINDINGS_OF_ROW:
            yield "findings", detector.code, _findings_data(held)
            held = []
    if held:
        yield "findings", detector.code, _findings_data(held)
    for failure in failures:
        yield "failure", detector.code, _failure_data(failure)


def _told(rows: Iterable[Told]) -> Iterator[pa.RecordBatch]:
    for kind, code, data in rows:
        yield pa.record_batch([pa.array([kind]), pa.array([code]), pa.array([data], pa.binary())], schema=_TOLD)


def _connection(parts: Mapping[str, Sequence[str]], scratch: str) -> duckdb.DuckDBPyConnection:
    """A connection with a view for every registered table; it reads the parts and spills to `scratch`."""
    con = duckdb.connect(":memory:")
    for setting, value in (
        ("memory_limit", TASK_MEMORY),
        ("temp_directory", scratch),
        ("TimeZone", "UTC"),
        ("threads", 1),
        ("enable_progress_bar", False),
        ("python_enable_replacements", False),
        ("preserve_insertion_order", False),
    ):
        con.execute(f"SET {setting} = {literal(value)}")
    for table in TABLES:
        paths = list(parts.get(table, ()))
        if paths:
            source = f"read_parquet({literal(paths)}, hive_partitioning = false)"
            con.execute(f"CREATE VIEW {table} AS SELECT {name_list(TABLES[table].column_names())} FROM {source}")
        else:
            con.register(table, arrow_schema(table).empty_table())
    return con


def _findings_data(findings: Iterable[Finding]) -> bytes:
    sink = pa.BufferOutputStream()
    table = findings_table(findings)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _findings_of(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def _failure_data(failure: Failure) -> bytes:
    text = repr(failure.error) if failure.is_own_fault else str(failure.error)
    return json.dumps({"key": failure.key, "text": text, "own": failure.is_own_fault}).encode()


def _failure_of(code: str, data: bytes) -> Failure:
    told = json.loads(data)
    error = DetectorBroke(told["text"]) if told["own"] else PartitionTooLarge(told["text"])
    return Failure(code, tuple(told["key"]), error)
