"""Datasets made from captures without Spark: the tables of the offline command, written by `write_parts`.

In: captures. Out: a dataset as the archive makes one: rows of each shard in parts of their own, inputs in the manifest.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import wirewitness
from tests.support.rows import Rows, arrow_from_rows
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.archive.aggregate.context import run_stage
from wirewitness.analyser.archive.dataset.dataset import Change, InputFile, write_parts
from wirewitness.analyser.archive.spark.workers import HERE
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.engine.facts.stages import STAGE_OF
from wirewitness.analyser.tables.tables import TABLES, arrow_schema
from wirewitness.dissectors.core.model import packet_of

SHARDS = 3
_IDS = ("flow_id", "exchange_id", "message_id")


def make_dataset(
    root: Path, captures: Sequence[Path], tables: Iterable[str] = TABLES, *, payload: bool = False
) -> Path:
    """A dataset of these captures, all tables finished."""
    options = wirewitness.ReadOptions(payload=payload)
    with wirewitness.read(list(captures), options=options) as analysis, Change.begin(root) as change:
        keys = flow_keys(analysis)
        for table in tables:
            for shard in range(SHARDS):
                rows = (_of_shard(batch, keys, shard) for batch in analysis.batches(table))
                change.add(*write_parts(table, rows, change.staging, f"{change.run}-{shard}"))
        change.commit(inputs_of(analysis, change.run), {"shares": SHARDS})
    return root


def make_log_ends(change: Change) -> None:
    """The tables of topics and log ends, from the rows of all others."""
    for name in ("kafka_topics", "kafka_log_ends"):
        run_stage(change, HERE, name, STAGE_OF[name])


def inputs_of(analysis: Analysis, run: str) -> Iterator[InputFile]:
    """The captures of an analysis as inputs of a run."""
    times = analysis.arrow("captures").set_column(
        6, "ts_first", analysis.arrow("captures")["ts_first"].cast(pa.int64())
    )
    for row in times.set_column(7, "ts_last", times["ts_last"].cast(pa.int64())).to_pylist():
        size = Path(row["file"]).stat().st_size
        yield InputFile(
            row["file"],
            f"key of {row['file']}",
            size,
            row["packets"],
            row["ts_first"],
            row["ts_last"],
            "read",
            None,
            run,
        )


def flow_keys(analysis: Analysis) -> dict[str, int]:
    """Flow id -> its first packet, file and number in one."""
    files = analysis.arrow("captures")["file"].to_pylist()
    flows = analysis.arrow("flows").select(["flow_id", "file", "first_packet"]).to_pylist()
    return {flow["flow_id"]: packet_of(files.index(flow["file"]), flow["first_packet"]) for flow in flows}


def with_flow(batch: pa.RecordBatch, keys: dict[str, int]) -> pa.RecordBatch:
    """The batch with the column FLOW."""
    name = next((name for name in _IDS if name in batch.schema.names), None)
    ids = [None] * batch.num_rows if name is None else batch.column(name).to_pylist()
    found = [None if one is None else keys.get(one.split("-")[0]) for one in ids]
    return batch.append_column(FLOW, pa.array(found, pa.int64()))


def _of_shard(batch: pa.RecordBatch, keys: dict[str, int], shard: int) -> pa.RecordBatch:
    """The rows whose flow belongs to a shard; those of none belong to shard 0."""
    whole = with_flow(batch, keys)
    of = [0 if key is None else zlib.crc32(str(key).encode()) % SHARDS for key in whole.column(FLOW).to_pylist()]
    return whole.filter(pc.equal(pa.array(of, pa.int64()), shard))


def take_in(
    root: FolderPath, rows: Rows, work: Sequence[Callable[[Change], object]], *, gone: Collection[str] = ()
) -> None:
    """One run: rows of tables into a dataset, then what works on all rows.

    gone: names of tables whose earlier rows do not count any more. Rows of a table named `TABLE?` are provisional.
    Columns that may not be null are 0 or empty unless told.
    """
    with Change.begin(root) as change:
        change.remove(*(part for part in change.parts() if part.provisional or part.table in gone))
        for name, held in rows.items():
            table = name.rstrip("?")
            batches = arrow_from_rows(table, [_nothing_of(table) | row for row in held]).to_batches()
            name = f"{change.run}-{'open' if name != table else 'base'}"
            change.add(*write_parts(table, batches, change.staging, name, provisional=name.endswith("open")))
        for one in work:
            one(change)
        change.commit([])


def _nothing_of(table: str) -> dict[str, object]:
    fields = [field for field in arrow_schema(table) if not field.nullable]
    return {field.name: {pa.string(): "", pa.bool_(): False}.get(field.type, 0) for field in fields}
