"""All detectors over the parts of a dataset, on Spark.

In: where the parts of each table lie. Out: the findings table, and what could not be looked at. Each task takes some
detectors; DuckDB reads from the parts the rows of partitions that `suspects` names and sorts them, within a fixed
amount of memory. Where a detector has many rows to look at, a second job deals its partitions to more tasks, by buckets
of their keys. Between workers only findings and counts travel.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import pyarrow as pa

from analyser.archive.dataset.stored import stored_rows
from analyser.archive.spark.workers import seen_as
from analyser.detectors import DETECTORS
from analyser.detectors.detector import Detector
from analyser.detectors.findings import Finding, findings_table, stories_table, table_rows
from analyser.detectors.partition_sql import ALL_BUCKETS, bucket_sql, selection_sql
from analyser.detectors.places import MESSAGES
from analyser.detectors.running import MOST_PARTITION_ROWS, Failure, found_in
from analyser.detectors.told import failure_data, failure_of
from analyser.registry.queries import literal, name_list
from analyser.registry.tables import TABLES, arrow_schema
from analyser.storage.files import let_reach
from analyser.storage.folders import FolderPath, folder_at
from analyser.storage.handing import bytes_at, put_bytes, scratch_in

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

# As it is seen in Spark.
STAGE = "findings"
# One task looks at so many rows in some ten seconds; a detector with more of them is dealt to several.
FEW_ROWS = 1_000_000
# Every task reads all parts of its tables, which takes about a tenth of the time that it needs for so many rows.
PIECE_ROWS = 4_000_000
TASK_MEMORY = "400MB"
_FINDINGS_OF_ROW = 500
# Opening a connection takes as long as a detector with little to do; of four tasks a worker the last is a short one.
_TASKS_OF_WORKER = 4

# What a task tells: findings as Arrow IPC, a failure as JSON, or how many rows are in which buckets.
_TOLD = pa.schema([("kind", pa.string()), ("code", pa.string()), ("data", pa.binary())])
_TOLD_DDL = "kind string, code string, data binary"


class Detected(NamedTuple):
    """The findings table, in its order, and the partitions that could not be looked at."""

    findings: pa.Table
    failures: list[Failure]


class _Unit(NamedTuple):
    """What one task looks at. buckets: of partitions of the detector; None: all, or it tells that they are too many."""

    code: str
    buckets: list[int] | None


@dataclass(frozen=True, slots=True)
class _Plan:
    """What every task knows, by way of a file: parts can be many. tasks: what each has to do."""

    parts: dict[str, list[str]]
    folder: str
    few_rows: int
    most_rows: int
    tasks: list[list[_Unit]]


def detect(
    spark: SparkSession,
    parts: Mapping[str, Iterable[str]],
    sizes: Mapping[str, int],
    folder: FolderPath,
    codes: Iterable[str] | None = None,
    few_rows: int = FEW_ROWS,
    most_rows: int = MOST_PARTITION_ROWS,
) -> Detected:
    """Findings of the detectors with these codes (None: all) over a dataset.

    parts: table -> paths or addresses of its Parquet files, enriched by the context, as every worker can open them.
    sizes: table -> bytes of these. folder: a place for
    temporary files that all workers see. few_rows: detectors that want more rows are dealt to several tasks.
    most_rows: larger partitions are not looked at, which is a failure of the kind PartitionTooLarge.
    """
    chosen = [*DETECTORS] if codes is None else [DETECTORS[code].code for code in codes]
    paths = {table: [str(path) for path in found] for table, found in parts.items()}
    workers = spark.sparkContext.defaultParallelism
    reads = {code: sum(sizes.get(table, 0) for table in DETECTORS[code].reads) for code in chosen}
    units = [(_Unit(code, None), size) for code, size in reads.items() if size]
    plan = _Plan(paths, str(folder), few_rows, most_rows, _dealt(units, _TASKS_OF_WORKER * workers))
    told = _run(spark, plan, folder / "plan.json")
    large = [unit for row in told if row.kind == "rows" for unit in _pieces(row.code, bytes(row.data), workers)]
    if large:
        plan = _Plan(paths, str(folder), few_rows, most_rows, _dealt(large, len(large)))
        told += _run(spark, plan, folder / "pieces.json")
    found = [_findings_of(bytes(row.data)) for row in told if row.kind == "findings"]
    table = pa.concat_tables([arrow_schema("findings").empty_table(), *found])
    return Detected(
        stories_table(table_rows(table)),
        [failure_of(row.code, bytes(row.data)) for row in told if row.kind == "failure"],
    )


def _dealt(units: Iterable[tuple[_Unit, int]], most_tasks: int) -> list[list[_Unit]]:
    """The dearest first, each to the task that has least to do; tasks with much to do come first."""
    tasks: list[tuple[int, int, list[_Unit]]] = [(0, number, []) for number in range(most_tasks)]
    for unit, cost in sorted(units, key=lambda pair: -pair[1]):
        load, number, own = heapq.heappop(tasks)
        heapq.heappush(tasks, (load + cost, number, [*own, unit]))
    return [own for load, _, own in sorted(tasks, key=lambda task: (-task[0], task[1])) if own]


def _pieces(code: str, counted: bytes, workers: int) -> list[tuple[_Unit, int]]:
    """The buckets of a detector with many rows in pieces of about equal size, each with its rows."""
    buckets = sorted(json.loads(counted), key=lambda pair: (-pair[1], pair[0]))
    number = max(workers, -(-sum(rows for _, rows in buckets) // PIECE_ROWS))
    dealt = _dealt(((_Unit(code, [bucket]), rows) for bucket, rows in buckets), number)
    rows_of = dict(buckets)
    pieces = [sorted(bucket for unit in units for bucket in unit.buckets or ()) for units in dealt]
    return [(_Unit(code, piece), sum(rows_of[bucket] for bucket in piece)) for piece in pieces]


def _run(spark: SparkSession, plan: _Plan, path: FolderPath) -> list[Row]:
    """What all tasks of a plan tell."""
    put_bytes(path, json.dumps(asdict(plan)).encode())
    tasks = len(plan.tasks)
    if not tasks:
        return []
    with seen_as(spark, STAGE):
        return spark.range(0, tasks, 1, tasks).mapInArrow(_Looking(str(path)), _TOLD_DDL).collect()


@dataclass(frozen=True, slots=True)
class _Looking:
    """A task. plan: path of the plan."""

    plan: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = _Plan(**json.loads(bytes_at(folder_at(self.plan))))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with (
                    scratch_in(folder_at(plan.folder)) as scratch,
                    _connection(str(scratch)) as con,
                ):
                    let_reach(con, (path for found in plan.parts.values() for path in found))
                    for code, buckets in plan.tasks[number]:
                        _make_views(con, DETECTORS[code], plan.parts)
                        for kind, data in _look(con, DETECTORS[code], buckets, plan):
                            row = [pa.array([kind]), pa.array([code]), pa.array([data], pa.binary())]
                            yield pa.record_batch(row, schema=_TOLD)


Told = tuple[str, bytes]


def _look(con: duckdb.DuckDBPyConnection, detector: Detector, buckets: list[int] | None, plan: _Plan) -> Iterator[Told]:
    """Findings and failures; or how many rows are in which buckets, if they are many and nobody has chosen some."""
    if buckets is None and detector.partition_by:
        try:
            counted = _rows_of_buckets(con, detector, plan.few_rows)
        except duckdb.OutOfMemoryException:
            counted = [(bucket, PIECE_ROWS // len(ALL_BUCKETS)) for bucket in ALL_BUCKETS]
        except duckdb.Error as error:
            yield "failure", failure_data(Failure(detector.code, (), error))
            return
        if counted:
            yield "rows", json.dumps(counted).encode()
            return
    failures: list[Failure] = []
    found = found_in(con, detector, buckets or ALL_BUCKETS, failures, plan.most_rows)
    for start in range(0, len(found), _FINDINGS_OF_ROW):
        yield "findings", _findings_data(found[start : start + _FINDINGS_OF_ROW])
    for failure in failures:
        yield "failure", failure_data(failure)


def _rows_of_buckets(con: duckdb.DuckDBPyConnection, detector: Detector, few_rows: int) -> list[tuple[int, int]]:
    """Bucket and number of its rows that have to be looked at; empty where there are few in all."""
    # The number of rows stands in each part, so that this takes no time.
    if sum(con.sql(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in detector.reads) <= few_rows:
        return []
    counts = con.sql(
        f"SELECT {bucket_sql(detector)} AS bucket, count(*) FROM ({selection_sql(detector)}) GROUP BY bucket"
    ).fetchall()
    return counts if sum(rows for _, rows in counts) > few_rows else []


def _connection(scratch: str) -> duckdb.DuckDBPyConnection:
    """A connection that spills to `scratch`."""
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
    return con


def _make_views(con: duckdb.DuckDBPyConnection, detector: Detector, parts: Mapping[str, Sequence[str]]) -> None:
    """A view for every table that the detector's statements name, and for that in which evidence is looked up."""
    named = {*re.findall(r"\w+", selection_sql(detector)), MESSAGES}
    for table in TABLES:
        if table not in named:
            continue
        paths = list(parts.get(table, ()))
        if paths:
            columns = name_list(TABLES[table].column_names())
            con.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT {columns} FROM {stored_rows(table, paths)}")
        else:
            con.register(table, arrow_schema(table).empty_table())


def _findings_data(findings: Iterable[Finding]) -> bytes:
    sink = pa.BufferOutputStream()
    table = findings_table(findings)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _findings_of(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
