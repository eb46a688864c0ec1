"""Amending rows of earlier runs: facts of their flows, or names of their topics, are known otherwise now, or a request
log and a capture both tell them.

In: parts with settled rows, and what changed; parts of this run, for what is told twice. Out: parts in the staging
folder that take their place. Everything that a row has from its flow follows from the flow's number beside it, so no
raw row has to be kept for that. Rows of a connection that turns out to be another one's, seen at a second point, and of
requests that are told elsewhere go to hidden parts, and come back from there when it turns out that they are not.
"""

from __future__ import annotations

import pickle
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirewitness.analyser.archive.commit.common import CLUSTER
from wirewitness.analyser.archive.commit.deduplicate import Telling, ToldTwice, may_have
from wirewitness.analyser.archive.commit.finish_stage import FACTS, FLOWS, differ
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.parts import write_parts
from wirewitness.analyser.archive.dataset.stage_files import table_at, value_of
from wirewitness.analyser.archive.dataset.state_files import going_on_from
from wirewitness.analyser.archive.dataset.stored_types import from_stored
from wirewitness.analyser.base.storage.files import FilePath, for_parquet
from wirewitness.analyser.base.storage.folders import FolderPath, file_in
from wirewitness.analyser.decoding.rows.internal_records import decoded
from wirewitness.analyser.decoding.rows.timeorder import FLOW, NO_FLOW
from wirewitness.analyser.engine.facts.naming_tables import TOPICS  # its rows have the names of topics from the wire
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

AMENDED_DDL = "made binary"
_BATCH_ROWS = 1 << 15
_AMENDED = re.compile(r"(?:-a\d+-[0-9a-f]{8}-\d+)?(?:\.open)?\.parquet$")
_DUPLICATE = "duplicate_of"
NOBODY = pa.array([], pa.int64())


@dataclass(frozen=True, slots=True)
class AmendJob:
    """What every task is told. changed: file with the flows that changed, sorted. topics: id -> name before and now.
    again: FLOW of all connections that are told elsewhere. joins: seal of what is told twice, None for nothing. gone:
    FLOW of connections that were read again, sorted: rows of earlier runs make way for new ones."""

    root: FolderPath
    staging: FolderPath
    run: str
    changed: FolderPath
    topics: Mapping[str, tuple[str | None, str | None]]
    again: pa.Array
    joins: str | None = None
    gone: pa.Array = field(default_factory=lambda: NOBODY)


class Unit(NamedTuple):
    """A part to amend. made: in this run, with what is known now, but for what is told twice."""

    part: Part
    made: bool = False


class Amended(NamedTuple):
    """A part, and those that take its place."""

    old: Part
    new: list[Part]


def facts_of(table: str) -> tuple[str, ...]:
    """The facts of a flow that make a row of the table come out otherwise."""
    if table == FLOWS:
        return _DUPLICATE, "hop_latency_ms", "clock_offset_ms"
    own = {column.name for column in TABLES[table].columns if column.source == "flow"}
    if table == "messages":
        own |= {"client_address", "client_port", "server_address", "server_port"}
    own |= {"flow_id", _DUPLICATE, *({CLUSTER} & set(TABLES[table].column_names()))}
    return tuple(name for name in FACTS if name in own)


def has_topics(table: str) -> bool:
    """Whether its rows name topics by ids."""
    return {"topic", "topic_id"} <= set(TABLES[table].column_names())


def amend_parts(job: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Amend the parts among the rows; one row for each that has rows to amend."""
    for batch in batches:
        for packed in batch.column("part").to_pylist():
            with going_on_from(_job(job)[0].root):
                amended = amend_part(job, Unit(*pickle.loads(packed)))
            if amended is not None:
                yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(amended)], pa.binary())], ["made"])


def amend_part(seal: str, unit: Unit) -> Amended | None:
    """The parts that take this one's place; None when it stays. seal: of an `AmendJob`."""
    job, changed, joins = _job(seal)
    part, told = unit.part, None if joins is None else joins.of(made=unit.made)
    flows = changed.filter(differ(changed, facts_of(part.table))).combine_chunks()
    gone = job.gone
    if unit.made:
        flows, gone = flows.slice(0, 0), NOBODY
    place = job.staging if unit.made else job.root
    path = file_in(place / part.path)
    topics = job.topics if has_topics(part.table) and not unit.made else {}
    touching = pa.chunked_array([*flows.column(FLOW).chunks, gone], pa.int64()).sort()
    if not _is_touched(path, touching, topics) and (told is None or not told.touches(part.table, path)):
        return None
    amendment = _Amendment(part.table, flows, topics, job.again, told, gone)
    name = amended_name(part, job.run)
    made: list[Part] = []
    for hidden in (False, True):
        if part.provisional and hidden:  # they are made anew in the next run
            continue
        rows = _rows(part.table, path, amendment, hidden=hidden)
        if part.is_hidden() == hidden or amendment.moves_rows():
            made += write_parts(part.table, rows, job.staging, name, hidden=hidden, provisional=part.provisional)
    return Amended(part, made)


def amended_name(part: Part, run: str) -> str:
    """A name at the place of the old one among those of the same folder, which no other part gets in this run."""
    stem = _AMENDED.sub("", part.path.rpartition("/")[2].removeprefix("part-"))
    return f"{stem}-a{run}-{zlib.crc32(part.path.encode()):08x}"


@lru_cache(maxsize=1)
def _job(seal: str) -> tuple[AmendJob, pa.Table, Telling | None]:
    job: AmendJob = value_of(seal)
    joins = None if job.joins is None else Telling(value_of(job.joins))
    return job, table_at(job.changed), joins


def _is_touched(path: FilePath, flows: pa.ChunkedArray, topics: Mapping[str, object]) -> bool:
    """Whether a part has rows of these flows or topics, by its statistics, then by the columns."""
    with pq.ParquetFile(for_parquet(path)) as file:
        sorted_flows = flows.to_numpy()
        groups = [number for number in range(file.num_row_groups) if may_have(file.metadata, number, sorted_flows)]
        if groups:
            own = file.read_row_groups(groups, columns=[FLOW]).column(0)
            if pc.any(pc.is_in(own, flows.combine_chunks())).as_py():
                return True
        if not topics:
            return False
        ids = pa.array(list(topics), pa.string())
        return bool(pc.any(pc.is_in(file.read(columns=["topic_id"]).column(0), ids)).as_py())


def _rows(table: str, path: FilePath, amendment: _Amendment, *, hidden: bool) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(for_parquet(path)) as file:
        for stored in file.iter_batches(_BATCH_ROWS):
            batch = amendment.amended(amendment.staying(from_stored(table, stored)))
            batch = batch.filter(pc.equal(amendment.is_hidden(batch), hidden))
            if batch.num_rows:
                yield batch


class _Amendment:
    """What rows of one table become."""

    def __init__(
        self,
        table: str,
        flows: pa.Table,
        topics: Mapping[str, tuple[str | None, str | None]],
        again: pa.Array,
        told: ToldTwice | None = None,
        gone: pa.Array = NOBODY,
    ) -> None:
        """flows: those that changed, sorted by FLOW. topics: id -> name before and now. again, gone: as in AmendJob."""
        self._table = table
        self._flows = flows
        self._topics = topics
        self._again = again
        self._told = told
        self._gone = gone

    def staying(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that do not make way for new ones."""
        if not len(self._gone):
            return batch
        return batch.filter(pc.invert(pc.is_in(batch.column(FLOW), self._gone)))

    def moves_rows(self) -> bool:
        """Whether rows become hidden, or come back."""
        moves = self._told is not None or pc.any(differ(self._flows, [_DUPLICATE])).as_py()
        return self._table != FLOWS and bool(moves)

    def places(self, batch: pa.RecordBatch) -> pa.Array:
        """Where the flow of each row stands among those that changed; null for the others."""
        keys = pc.fill_null(batch.column(FLOW), NO_FLOW)
        return pc.index_in(keys, self._flows.column(FLOW).combine_chunks())

    def is_hidden(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether each amended row is told elsewhere."""
        if self._table == FLOWS:
            return pa.repeat(False, batch.num_rows)
        again = pc.is_in(batch.column(FLOW), self._again)
        return again if self._told is None else pc.or_(again, pa.array(self._told.rows.gone(self._table, batch)))

    def amended(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with all that follows from the flows and topics, and from what is told twice."""
        batch = self._with_facts(batch)
        if self._told is None:
            return batch
        return self._told.with_copies(batch) if self._table == FLOWS else self._told.rows.named(self._table, batch)

    def _with_facts(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._flows.num_rows and not self._topics:
            return batch
        places = self.places(batch)
        columns = {name: batch.column(name) for name in batch.schema.names}
        for name in facts_of(self._table):
            if name in columns:
                columns[name] = self._replaced(columns[name], self._flow(name, places), places)
        for column in TABLES[self._table].columns:
            if column.source == "derived" and column.name.endswith(("message_id", "exchange_id")):
                columns[column.name] = self._with_flow_id(columns[column.name], places)
        if self._table == "messages":
            columns.update(self._ends(columns, places))
        if self._topics:
            columns.update(self._named(columns))
        schema = arrow_schema(self._table).append(batch.schema.field(FLOW))
        return pa.RecordBatch.from_arrays([columns[name].cast(schema.field(name).type) for name in schema.names],
                                          schema=schema)  # fmt: skip

    def _flow(self, name: str, places: pa.Array) -> pa.Array:
        return self._flows.column(name).combine_chunks().take(places)

    def _replaced(self, old: pa.Array, new: pa.Array, places: pa.Array) -> pa.Array:
        return pc.if_else(pc.is_valid(places), new.cast(old.type), old)

    def _with_flow_id(self, ids: pa.Array, places: pa.Array) -> pa.Array:
        """Ids begin with that of the flow."""
        rest = pc.replace_substring_regex(ids, "^[^-]*-", "")
        return self._replaced(ids, pc.binary_join_element_wise(self._flow("flow_id", places), rest, "-"), places)

    def _ends(self, columns: Mapping[str, pa.Array], places: pa.Array) -> dict[str, pa.Array]:
        of_client = pc.equal(columns["direction"], "client_to_server")
        found = {}
        for end, first, second in (("src", "client", "server"), ("dst", "server", "client")):
            for what in ("address", "port"):
                new = pc.if_else(
                    of_client, self._flow(f"{first}_{what}", places), self._flow(f"{second}_{what}", places)
                )
                found[f"{end}_{what}"] = self._replaced(columns[f"{end}_{what}"], new, places)
        return found

    def _named(self, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """Topics whose ids have another name now, or none any more; names from the wire stay."""
        places = pc.index_in(columns["topic_id"], pa.array(list(self._topics), pa.string()))
        before, now = (pa.array(names, pa.string()).take(places) for names in zip(*self._topics.values(), strict=True))
        topic = columns["topic"]
        was_unnamed = pc.and_(pc.is_null(topic), pc.is_null(before))
        was_named = pc.fill_null(pc.equal(topic, before), False)
        mine = was_unnamed if self._table == TOPICS else pc.or_(was_unnamed, was_named)
        named = {"topic": pc.if_else(pc.and_(mine, pc.is_valid(places)), now, topic)}
        if "decoded" in columns:
            named["decoded"] = _decoded(columns, named["topic"])
        return named


def _decoded(columns: Mapping[str, pa.Array], topics: pa.Array) -> pa.Array:
    """What records of Kafka's own topics say."""
    offsets = pa.array(np.arange(len(topics) + 1), pa.int32())
    lists = ("key", "key_encoding", "value", "value_encoding", "value_bytes")
    raw = {name: pa.ListArray.from_arrays(offsets, columns[name]) for name in lists}
    return decoded(pa.RecordBatch.from_pydict({"control": columns["control"], **raw}), topics).flatten()
