"""The finish stage: raw rows of a share to registered columns in Parquet parts.

In: what the decode stage left of a share, and what only all shares together tell (clusters, topic names, the end of the
capture). Out: parts in the staging folder. Settled rows of earlier runs are made anew where something that is now known
of their flows or topics was not known when they were made.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

from analyser.archive.common import CLUSTER, COMMON_FILE, KNOWN_FILE, Common
from analyser.archive.decode_stage import FLOWS_FILE, RESULT_FILE, Raw, ShareFolder, raw_of_runs, share_name
from analyser.archive.manifest import Part
from analyser.archive.parts import write_parts
from analyser.build import Lookups, duplicate_flows, finish_batch, pieces, with_ends, with_first_packets
from analyser.context.stages import STAGE_OF
from analyser.store import batches_of
from analyser.tables import TABLES
from analyser.timeorder import FLOW
from dissectors.registry import dissectors

DONE = pa.schema([("share", pa.int32()), ("name", pa.string()), ("parts", pa.binary())])
DONE_DDL = "share int, name string, parts binary"


@dataclass(frozen=True, slots=True)
class FinishJob:
    """What every task is told.

    staging: where parts go. run: name of this run.
    folders: of each share. previous: state of the previous run. state: of this one, where facts are kept for the next.
    """

    staging: Path
    run: str
    folders: Mapping[int, Path]
    previous: Path | None
    state: Path
    enable: tuple[str, ...]


class Made(NamedTuple):
    """Parts of one table and share. of: the run whose settled rows they are; None for rows that are not settled.

    stale: instead of parts: settled rows of the table have to be made anew, in all shares and of all runs.
    """

    table: str
    of: str | None
    parts: list[Part]
    stale: bool = False


def finish_units(job_path: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make the tables that the rows name (share, table, whole: all runs); one row for each (DONE)."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("share", "name", "whole"))
        for share, table, whole in zip(*columns, strict=True):
            made = finish_whole(job_path, share, table) if whole else finish_table(job_path, share, table)
            yield pa.RecordBatch.from_arrays(
                [pa.array([share], pa.int32()), pa.array([table]), pa.array([pickle.dumps(made)], pa.binary())],
                schema=DONE,
            )


def finish_table(job_path: str, share: int, table: str) -> list[Made]:
    """The parts of one table and share."""
    known = _known(job_path, share)
    job, name = known.job, f"{known.job.run}-{share:04d}"
    if table == "flows":
        _keep_facts(known, share)
        return [Made(table, None, _write(table, known.lookups.flows.to_batches(), job, f"{name}-2open", settled=False))]
    # Readers take names for the order in which rows of one connection and time came.
    made = []
    for run, tables in known.earlier:
        if table in tables and _is_changed(table, tables[table], known):
            if table in STAGE_OF:  # the context has mixed the rows of all shares in their parts
                return [Made(table, None, [], stale=True)]
            again = f"{run}-{share:04d}-1then{job.run}"
            parts = _write(table, _finished(table, tables[table], known), job, again, settled=True)
            made.append(Made(table, run, parts))
    for raws, of, suffix in ((known.folder.settled, job.run, "1settled"), (known.folder.open, None, "2open")):
        if table in raws:
            rows = _finished(table, raws[table], known)
            made.append(Made(table, of, _write(table, rows, job, f"{name}-{suffix}", settled=of is not None)))
    return made


def finish_whole(job_path: str, share: int, table: str) -> list[Made]:
    """The parts of one table and share from the rows of all runs."""
    known = _known(job_path, share)
    job, name = known.job, f"{known.job.run}-{share:04d}"
    settled = [*(tables for _, tables in known.earlier), known.folder.settled]
    made = []
    for raws, suffix in ((settled, "1all"), ([known.folder.open], "2open")):
        rows = chain.from_iterable(_finished(table, tables[table], known) for tables in raws if table in tables)
        made.append(Made(table, None, _write(table, rows, job, f"{name}-{suffix}", settled=suffix == "1all")))
    return made


class _Known(NamedTuple):
    """Everything about a share that all its tables need. before: the flows as the previous run knew them, or None."""

    job: FinishJob
    folder: ShareFolder
    lookups: Lookups
    again: pa.Array
    earlier: list[tuple[str, Mapping[str, Raw]]]
    before: pa.Table | None
    topics_before: Mapping[str, str]


@lru_cache(maxsize=2)
def _known(job_path: str, share: int) -> _Known:
    job: FinishJob = pickle.loads(Path(job_path).read_bytes())
    common: Common = pickle.loads((job.state / COMMON_FILE).read_bytes())
    folder: ShareFolder = pickle.loads((job.folders[share] / RESULT_FILE).read_bytes())
    flows = feather.read_table(str(job.folders[share] / FLOWS_FILE))
    flows = with_ends(with_first_packets(flows, common.files), common.last_ns)
    clusters = feather.read_table(str(job.folders[share] / KNOWN_FILE)).column(CLUSTER).combine_chunks()
    known = dissectors(job.enable)
    errors = {dissector.name: dissector.error_names for dissector in known.values()}
    facts = job.state / share_name(share)
    facts.mkdir(parents=True, exist_ok=True)
    earlier: list[tuple[str, Mapping[str, Raw]]] = []
    before, topics_before = None, {}
    if job.previous is not None:
        own = job.previous / share_name(share)
        earlier = raw_of_runs(own)
        before = feather.read_table(str(own / FLOWS_FILE))
        topics_before = pickle.loads((job.previous / COMMON_FILE).read_bytes()).topics
    lookups = Lookups(flows, clusters, common.topics, common.files, errors)
    return _Known(job, folder, lookups, duplicate_flows(flows), earlier, before, topics_before)


def _facts(lookups: Lookups) -> pa.Table:
    """What the next run compares with: the flows with their clusters."""
    return lookups.flows.append_column(CLUSTER, lookups.clusters)


def _keep_facts(known: _Known, share: int) -> None:
    """For the next run."""
    facts = known.job.state / share_name(share) / FLOWS_FILE
    feather.write_feather(_facts(known.lookups), str(facts), compression="zstd")


def _finished(table: str, raw: Raw, known: _Known) -> Iterator[pa.RecordBatch]:
    """Registered columns, and FLOW beside them."""
    lists = TABLES[table].lists
    for batch in batches_of(raw.rows):
        if len(known.again):  # a connection that was captured at two points is told once
            batch = batch.filter(pc.invert(pc.is_in(batch.column(FLOW), known.again)))
        for piece in pieces(table, batch):
            flow = piece.column(FLOW)
            if lists:
                flow = flow.take(pc.list_parent_indices(piece.column(lists[0])))
            yield finish_batch(table, piece, known.lookups).append_column(FLOW, flow)


def _write(table: str, rows: Iterable[pa.RecordBatch], job: FinishJob, name: str, *, settled: bool) -> list[Part]:
    return write_parts(table, rows, job.staging, name, provisional=not settled)


def _is_changed(table: str, raw: Raw, known: _Known) -> bool:
    """Would the rows come out otherwise than the previous run made them?"""
    if known.before is None:
        return False
    topics, before = known.lookups.topics, known.topics_before
    if any(topics.get(one) != before.get(one) for one in raw.unnamed):
        return True
    keys = raw.flows[raw.flows >= 0]
    if not len(keys):
        return False
    now, then = _facts(known.lookups), known.before
    at_now, at_then = (pa.array(np.searchsorted(facts.column(FLOW).to_numpy(), keys)) for facts in (now, then))
    own = {column.name for column in TABLES[table].columns if column.source == "flow" or column.name == CLUSTER}
    # Columns of other names are made of these.
    names = {"flow_id", "duplicate_of", "client_address", "client_port", *own} & {*now.column_names}
    return any(not now.column(one).take(at_now).equals(then.column(one).take(at_then)) for one in names)
