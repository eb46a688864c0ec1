"""The decode stage: all chunks of a share to raw rows in files, in one task.

In: chunks sorted by share, file, range and number, and what the previous run left of the share's flows. Out: a folder
for each share with raw rows, flows, and the state for the next run; only its name goes back through Spark. Rows that
came before the end are settled: further packets add to them. Those that ending all flows brings are of this run only.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard
from pyarrow import feather

from analyser.archive.chunks import Chunk
from analyser.archive.packets import NOTE, RangeResult, from_batch
from analyser.archive.share_decoder import ShareDecoder
from analyser.build import Lookups, duplicate_flows, finish_batch
from analyser.options import ReadOptions
from analyser.pipeline import Pipeline, collector_paused
from analyser.store import HandedOver, RawStore, batches_of
from analyser.timeorder import FLOW
from dissectors.registry import dissectors

STATE_FILE, RESULT_FILE, FLOWS_FILE, RAW_FILE = "state.zst", "result.pickle", "flows.arrow", "raw.pickle"
# What tells clusters and topic names, by the columns that do.
TOLD = {
    "kafka_brokers": ("flow_id", "wire_cluster_id", "host", "port", "client_address", "server_address", "server_port"),
    "kafka_partitions": ("topic_id", "topic"),
}
RESULTS = pa.schema([("share", pa.int32()), ("folder", pa.string())])
RESULTS_DDL = "share int, folder string"


@dataclass(frozen=True, slots=True)
class DecodeJob:
    """What every task of the stage is told.

    work: folder for what the tasks write. paths: where the file of each number is. previous: the state of the previous
    run, None for none.
    """

    work: Path
    paths: Mapping[int, Path]
    tables: tuple[str, ...]
    options: ReadOptions
    previous: Path | None


class Raw(NamedTuple):
    """Raw rows of one table. flows: of which they are, sorted. unnamed: ids of topics that have no name in them."""

    rows: HandedOver
    flows: npt.NDArray[np.int64]
    unnamed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShareFolder:
    """What a task leaves for one share. settled, open: raw rows by table. ranges: only in that of share 0."""

    share: int
    settled: Mapping[str, Raw]
    open: Mapping[str, Raw]
    ranges: list[RangeResult] = field(default_factory=list)


def decode_shares(job_path: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode all shares among the rows; one row for each (RESULTS)."""
    job: DecodeJob = pickle.loads(Path(job_path).read_bytes())
    chunks = chain.from_iterable(map(from_batch, batches))
    for share, own in groupby(chunks, lambda chunk: chunk.share):
        folder = decode_share(job, share, own)
        yield pa.RecordBatch.from_arrays([pa.array([share], pa.int32()), pa.array([str(folder)])], schema=RESULTS)


def decode_share(job: DecodeJob, share: int, chunks: Iterable[Chunk]) -> Path:
    """Decode one share; the folder with all that came of it. A task that is done again uses another one."""
    folder = job.work / f"share-{share}-{uuid.uuid4().hex[:8]}"
    settled_in, open_in = folder / "settled", folder / "open"
    for path in (settled_in, open_in):
        path.mkdir(parents=True)
    ranges: list[RangeResult] = []
    with collector_paused():
        pipeline = Pipeline(
            dissectors(job.options.enable), job.tables, job.options, store=RawStore(settled_in, compression="zstd")
        )
        decoder = ShareDecoder(pipeline, job.paths.__getitem__)
        if job.previous is not None:
            _resume(job.previous / share_name(share) / STATE_FILE, pipeline, decoder)
        for chunk in chunks:
            if chunk.number == NOTE and chunk.payload is not None:
                ranges.append(pickle.loads(chunk.payload))
            decoder.take(chunk)
        decoder.settle_clock()
        settled = {name: _raw(rows) for name, rows in pipeline.decoded().store.hand_over().items()}
        state = pickle.dumps((decoder.place(), pipeline.suspended()), pickle.HIGHEST_PROTOCOL)
        (folder / STATE_FILE).write_bytes(zstandard.compress(state, 3))
        del state
        pipeline.change_store(RawStore(open_in, compression="zstd"))
        pipeline.end()
    decoded = pipeline.decoded()
    still_open = {name: _raw(rows) for name, rows in decoded.store.hand_over().items()}
    flows = decoded.flows_table()
    feather.write_feather(flows, str(folder / FLOWS_FILE), compression="zstd")
    earlier = [] if job.previous is None else earlier_raw(job.previous / share_name(share))
    for name in TOLD:
        _write_told(name, flows, [raws[name] for raws in (*earlier, settled, still_open) if name in raws], folder)
    (folder / RESULT_FILE).write_bytes(pickle.dumps(ShareFolder(share, settled, still_open, ranges)))
    return folder


def share_name(share: int) -> str:
    """The folder of a share in a state."""
    return f"share-{share}"


def earlier_raw(folder: Path) -> list[Mapping[str, Raw]]:
    """The settled raw rows of all runs before, in a share's folder of a state; the oldest run first."""
    return [raw for _, raw in raw_of_runs(folder)]


def raw_of_runs(folder: Path) -> list[tuple[str, Mapping[str, Raw]]]:
    """The same with the names of the runs."""
    found: list[tuple[str, Mapping[str, Raw]]] = []
    for path in sorted(folder.glob(f"raw-*/{RAW_FILE}")):
        raws: Mapping[str, Raw] = pickle.loads(path.read_bytes())
        own = path.parent
        moved = {
            name: raw._replace(rows=raw.rows._replace(path=own / raw.rows.path.name)) for name, raw in raws.items()
        }
        found.append((own.name.removeprefix("raw-"), moved))
    return found


def _resume(path: Path, pipeline: Pipeline, decoder: ShareDecoder) -> None:
    place, suspended = pickle.loads(zstandard.decompress(path.read_bytes()))
    decoder.resume(place)
    pipeline.resume(suspended)


def _raw(rows: HandedOver) -> Raw:
    """What an amendment of the rows depends on."""
    flows: list[npt.NDArray[np.int64]] = []
    unnamed: set[str] = set()
    if rows.chunks:
        with pa.OSFile(str(rows.path), "rb") as file, pa.ipc.open_file(file) as whole:
            names = whole.schema.names
        has_topics = {"topic", "topic_id"} <= {*names}
        wanted = [names.index(name) for name in ("topic", "topic_id", FLOW)[0 if has_topics else 2 :]]
        options = pa.ipc.IpcReadOptions(included_fields=wanted)
        with pa.OSFile(str(rows.path), "rb") as file, pa.ipc.open_file(file, options=options) as opened:
            for place in range(opened.num_record_batches):
                batch = opened.get_batch(place)
                flows.append(np.unique(batch.column(FLOW).to_numpy()))
                if has_topics:
                    ids = batch.filter(pc.is_null(batch.column("topic"))).column("topic_id")
                    unnamed.update(pc.unique(ids.drop_null()).to_pylist())
    return Raw(rows, np.unique(np.concatenate(flows)) if flows else np.zeros(0, np.int64), tuple(sorted(unnamed)))


def _write_told(table: str, flows: pa.Table, raws: Iterable[Raw], folder: Path) -> None:
    """The different rows of these columns, without those of connections that were seen before."""
    known = Lookups(flows, pa.nulls(flows.num_rows, pa.string()), {}, [], {})
    again = duplicate_flows(flows)
    found: pa.Table | None = None
    for batch in chain.from_iterable(batches_of(raw.rows) for raw in raws):
        rows = batch.filter(pc.invert(pc.is_in(batch.column(FLOW), again)))
        told = pa.Table.from_batches([finish_batch(table, rows, known, TOLD[table])])
        both = told if found is None else pa.concat_tables([found, told])
        found = both.group_by(list(TOLD[table])).aggregate([])
    if found is not None:
        pq.write_table(found, folder / f"{table}.parquet")
