"""The finish stage: raw rows of a shard to registered columns in Parquet parts.

In: what the decode stage left of a shard, and what only all shards together tell (clusters, topic names, the end of the
capture). Out: parts in the staging folder, and for the next run what is known of the flows. What is known otherwise
than the previous run knew it is put beside, for `analyser/archive/commit/amend.py`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.analysis.build import (
    Lookups,
    duplicate_flows,
    finish_batch,
    pieces,
    with_ends,
    with_first_packets,
)
from wirewitness.analyser.analysis.flow_workloads import with_identities
from wirewitness.analyser.analysis.masking import masked_flows
from wirewitness.analyser.archive.commit.common import CLUSTER, KNOWN_FILE, read_common
from wirewitness.analyser.archive.commit.workloads_kept import kept_identities
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.parts import write_parts
from wirewitness.analyser.archive.dataset.stage_files import put_table, table_at, value_of
from wirewitness.analyser.archive.dataset.state_files import going_on_from, kept_table, put_kept
from wirewitness.analyser.archive.decode.decode_stage import (
    ENDED,
    FLOWS_FILE,
    OPEN_ROWS,
    SETTLED_ROWS,
    Left,
    ShardFolder,
    result_of,
    rows_of_flows,
    shard_name,
)
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.decoding.rows.rows_file import batches_of
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.tables.tables import TABLES, arrow_schema
from wirewitness.dissectors.registry import dissectors

FLOWS = "flows"
CHANGED_FILE = "changed.arrow"
# Whether the row of a flow is settled: no packet adds to it, nor does the end of the capture move.
SETTLED = "_settled"
# What was known before, in columns of this name and that of the fact.
WAS = "_was_"
# Facts of a flow that other tables repeat, or that later packets can change although the flow is over.
FACTS = tuple(
    name
    for name in (*TABLES[FLOWS].column_names(), CLUSTER)
    if name in ("duplicate_of", "hop_latency_ms", "clock_offset_ms", CLUSTER)
    or any(name in table.column_names() and table.column(name).source == "flow"
           for table in TABLES.values() if table.name != FLOWS)
)  # fmt: skip
DONE = pa.schema([("shard", pa.int32()), ("name", pa.string()), ("parts", pa.binary())])
DONE_DDL = "shard int, name string, parts binary"


@dataclass(frozen=True, slots=True)
class FinishJob:
    """What every task is told.

    staging: where parts go. run: name of this run.
    folders: of each shard. previous: state of the previous run. state: of this one, where facts are kept for the next.
    """

    staging: FolderPath
    run: str
    folders: Mapping[int, Left]
    previous: FolderPath | None
    state: FolderPath
    enable: tuple[str, ...]


def finish_units(job: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make the tables that the rows name (shard, table); one row for each (DONE)."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("shard", "name"))
        for shard, table in zip(*columns, strict=True):
            with going_on_from(_job(job).previous):
                made = pickle.dumps(finish_table(job, shard, table))
            yield pa.RecordBatch.from_arrays(
                [pa.array([shard], pa.int32()), pa.array([table]), pa.array([made], pa.binary())], schema=DONE
            )


def finish_table(job: str, shard: int, table: str) -> list[Part]:
    """The parts of one table and shard. job: seal of a `FinishJob`."""
    known = _known(job, shard)
    # Readers take names for the order in which rows of one connection and time came.
    settled, still_open = (f"{known.job.run}-{shard:04d}-{suffix}" for suffix in ("1settled", "2open"))
    if table == FLOWS:
        return _finish_flows(known, shard, settled, still_open)
    staging, made = known.job.staging, []
    if rows := known.folder.settled.get(table):
        at, only = known.place / SETTLED_ROWS / rows.path.name, known.folder.again
        batches = rows_of_flows(batches_of(rows, at), only)
        made += write_parts(table, _finished(table, batches, known), staging, settled)
        if len(known.again):
            batches = rows_of_flows(batches_of(rows, at), only)
            hidden = _finished(table, batches, known, again=True)
            made += write_parts(table, hidden, staging, settled, hidden=True)
    if rows := known.folder.open.get(table):
        batches = batches_of(rows, known.place / OPEN_ROWS / rows.path.name)
        made += write_parts(table, _finished(table, batches, known), staging, still_open, provisional=True)
    return made


class _Known(NamedTuple):
    """Everything about a shard that all its tables need. place: where what is left of it lies. again: FLOW of
    connections that were seen before."""

    job: FinishJob
    place: FolderPath
    folder: ShardFolder
    lookups: Lookups
    again: pa.Array


@lru_cache(maxsize=1)
def _job(seal: str) -> FinishJob:
    job: FinishJob = value_of(seal)
    return job


@lru_cache(maxsize=2)
def _known(seal: str, shard: int) -> _Known:
    job = _job(seal)
    place = job.folders[shard].place
    common = read_common(job.state)
    folder = result_of(job.folders[shard])
    flows = table_at(place / FLOWS_FILE)
    flows = with_ends(with_first_packets(flows, common.files, common.logs), common.covered)
    flows, _ = with_identities(flows, [kept_identities(job.state)], None)
    flows = masked_flows(flows)
    clusters = table_at(place / KNOWN_FILE).column(CLUSTER).combine_chunks()
    lookups = Lookups(flows, clusters, common.topics, common.files, dissectors(job.enable), common.logs)
    return _Known(job, place, folder, lookups, duplicate_flows(flows))


def _finish_flows(known: _Known, shard: int, settled: str, still_open: str) -> list[Part]:
    """The rows of flows that are over are written once, those of the others in every run."""
    job, flows = known.job, known.lookups.flows
    over = pc.and_(flows.column(ENDED), pc.is_valid(flows.column("ts_closed")))
    facts = flows.select([FLOW, *(name for name in FACTS if name != CLUSTER)])
    facts = facts.append_column(CLUSTER, known.lookups.clusters).append_column(SETTLED, over)
    put_kept(job.state / shard_name(shard) / FLOWS_FILE, facts)
    new = over
    if job.previous is not None and known.folder.goes_on:
        before = kept_table(job.previous / shard_name(shard) / FLOWS_FILE, facts.schema)
        if known.folder.again is not None:  # nothing that was written of them stays
            read_again = pc.is_in(before.column(FLOW), pa.array(known.folder.again, pa.int64()))
            before = before.filter(pc.invert(read_again))
        put_table(known.place / CHANGED_FILE, changed_facts(facts, before))
        written = before.filter(before.column(SETTLED)).column(FLOW)
        new = pc.and_not(over, pc.is_in(flows.column(FLOW), written.combine_chunks()))
    rows = flows.filter(new).to_batches()
    made = write_parts(FLOWS, rows, job.staging, settled)
    rows = flows.filter(pc.invert(over)).to_batches()
    return made + write_parts(FLOWS, rows, job.staging, still_open, provisional=True)


def changed_facts(facts: pa.Table, before: pa.Table) -> pa.Table:
    """The flows that were known and are known otherwise now: FLOW, FACTS, and the same as they were."""
    there = facts.filter(pc.is_in(facts.column(FLOW), before.column(FLOW).combine_chunks()))
    then = before.take(pc.index_in(there.column(FLOW), before.column(FLOW).combine_chunks()))
    for name in FACTS:
        there = there.append_column(f"{WAS}{name}", then.column(name))
    return there.filter(differ(there, FACTS))


def differ(changed: pa.Table, names: Iterable[str]) -> pa.ChunkedArray:
    """For each row whether one of these facts is another than it was."""
    found = pa.chunked_array([pa.repeat(False, changed.num_rows)])
    for name in names:
        now, then = changed.column(name), changed.column(f"{WAS}{name}")
        same = pc.fill_null(pc.equal(now, then), False)
        both_null = pc.and_(pc.is_null(now), pc.is_null(then))
        found = pc.or_(found, pc.invert(pc.or_(same, both_null)))
    return found


_FACTS = pa.schema(
    [
        (FLOW, pa.int64()),
        *(pa.field(CLUSTER, pa.string()) if name == CLUSTER else arrow_schema(FLOWS).field(name) for name in FACTS),
        (SETTLED, pa.bool_()),
    ]
)
# What `changed_facts` gives where nothing is known otherwise.
NO_CHANGES = changed_facts(_FACTS.empty_table(), _FACTS.empty_table())


def _finished(
    table: str, batches: Iterable[pa.RecordBatch], known: _Known, *, again: bool = False
) -> Iterator[pa.RecordBatch]:
    """Registered columns, and FLOW beside them. again: those of connections that were seen before, or all others."""
    lists = TABLES[table].lists
    for batch in batches:
        if len(known.again):  # a connection that was captured at two points is told once
            seen = pc.is_in(batch.column(FLOW), known.again)
            batch = batch.filter(seen if again else pc.invert(seen))
        for piece in pieces(table, batch):
            flow = piece.column(FLOW)
            if lists:
                flow = flow.take(pc.list_parent_indices(piece.column(lists[0])))
            yield finish_batch(table, piece, known.lookups).append_column(FLOW, flow)
