"""Rows of captures as the tables have them. In: what decoding gave. Out: the flows, and finished batches of any table.

What is told twice, by two points of a capture or by a log and a capture, is told once here. Rows that cannot be
finished are left out, and a sentence says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from wirewitness.analyser.analysis.build import (
    Lookups,
    duplicate_flows,
    finish_batch,
    log_files,
    pieces,
    with_ends,
    with_first_packets,
)
from wirewitness.analyser.analysis.covered import covered
from wirewitness.analyser.analysis.masking import masked_flows
from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.base.faults import told
from wirewitness.analyser.base.words import count
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.capture_rows import capture_remarks, file_label
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.tables.coded import Coder
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

if TYPE_CHECKING:
    import duckdb

    from wirewitness.analyser.analysis.joined import Joined
    from wirewitness.analyser.capture.workloads.address_names import AddressNames

# Finished rows in the registered order of their table.
#
# In: batches in the order of time, each with all rows of its times. Out: the same, rows of one time in order as well.
# The store has those in the order in which they came, which is that of the message: a Produce request names topics
# and partitions as its client likes.


def order_columns(table: str, columns: Sequence[str] | None) -> Sequence[str] | None:
    """These columns and those that the table is ordered by; None for all."""
    return None if columns is None else [*dict.fromkeys((*columns, *TABLES[table].order))]


def in_order(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows in the table's order, null last; those that are equal by it in the order in which they came."""
    if _is_in_order(table, batch):
        return batch
    keys = {name: _plain(table, name, batch.column(name)) for name in TABLES[table].order}
    return pc.take(batch, pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys]))


def _is_in_order(table: str, batch: pa.RecordBatch) -> bool:
    """Is each row behind the one before it? Of most rows their times tell."""
    equal = np.arange(1, batch.num_rows)
    for name in TABLES[table].order:
        if not len(equal):
            return True
        column = batch.column(name)
        before = _plain(table, name, pc.take(column, pa.array(equal - 1)))
        row = _plain(table, name, pc.take(column, pa.array(equal)))
        missing, missing_before = pc.is_null(row), pc.is_null(before)
        falls = pc.coalesce(pc.greater(before, row), pc.and_not(missing_before, missing))
        if pc.any(falls).as_py():
            return False
        same = pc.coalesce(pc.equal(before, row), pc.and_(missing_before, missing))
        equal = equal[same.to_numpy(zero_copy_only=False)]
    return True


def _plain(table: str, name: str, column: pa.Array) -> pa.Array:
    return pc.cast(column, arrow_schema(table).field(name).type)


Batches = Iterator[pa.RecordBatch]


class DecodedRows:
    """The rows of decoded captures.

    names: of addresses, from files. faults: gets sentences about rows that are left out. beside: takes batches from
    another thread, or as they come. remarks: what `flows` noticed. has_owners: flows know who is at their ends.
    """

    def __init__(
        self, decoded: Decoded, names: AddressNames | None, faults: list[str], beside: Callable[[Batches], Batches]
    ) -> None:
        self._decoded, self._names, self._faults, self._beside = decoded, names, faults, beside
        self.files = [file_label(stats.file) for stats in decoded.captures]
        self.logs = log_files(decoded.captures)
        self.remarks: list[str] = []
        self.has_identities = False
        self._duplicates = pa.array([], pa.int64())
        self._joined: Joined | None = None

    def flows(self, connect: Callable[[], duckdb.DuckDBPyConnection]) -> pa.Table:
        """The flows with FLOW, sorted by that; asked for once and first. connect: called where logs are joined."""
        spans = covered((stats.ts_first_ns, stats.ts_last_ns) for stats in self._decoded.captures)
        flows = with_first_packets(self._decoded.take_flows(), self.files, self.logs)
        flows = with_ends(flows, spans)
        flows = masked_flows(self._with_identities(self._joined_with_logs(connect, flows)))
        self._duplicates = duplicate_flows(flows)
        return flows

    def batches(
        self, name: str, known: Lookups, columns: Sequence[str] | None = None, coder: Coder | None = None
    ) -> Batches:
        """The rows as registered. columns: None for all. coder: for rows that stay, with codes for texts."""
        if name == "expert_infos":
            remarks = capture_remarks(self._decoded.captures)
            yield remarks if columns is None else remarks.select(columns)
        if name not in self._decoded.store.tables:  # no dissector that fills it is switched on
            return
        try:
            for batch in self._beside(self._decoded.store.tables[name].batches()):
                yield from self._finished(name, batch, known, columns, coder)
        except Exception as error:
            self._faults.append(told(error, f"rows of {name}", "the rest of them is left out"))

    def _finished(
        self, name: str, batch: pa.RecordBatch, known: Lookups, columns: Sequence[str] | None, coder: Coder | None
    ) -> Batches:
        if self._joined is not None:
            batch = self._joined.once(name, batch)
        # A connection that was captured at two points is told once.
        if len(self._duplicates):
            batch = pc.filter(batch, pc.invert(pc.is_in(batch.column(FLOW), self._duplicates)))
        for piece in pieces(name, batch):
            try:
                finished = in_order(name, finish_batch(name, piece, known, order_columns(name, columns), coder))
                yield finished if columns is None else finished.select(columns)
            except Exception as error:
                rest = f"left out: {count(piece.num_rows, 'row')}"
                self._faults.append(told(error, f"columns of {name}", rest))

    def _joined_with_logs(self, connect: Callable[[], duckdb.DuckDBPyConnection], flows: pa.Table) -> pa.Table:
        """The flows, when it is known what logs and captures tell twice."""
        if not self.logs or len(self.logs) == len(self._decoded.captures):
            return flows
        from wirewitness.analyser.analysis.joined import NEEDED, joined

        if not self._decoded.store.tables.keys() >= {*NEEDED}:
            return flows
        self._joined, requests = joined(connect(), self._decoded.store, flows, self.logs)
        if not self._joined.requests:
            return flows
        self.remarks.append(self._joined.remark(requests))
        return self._joined.with_duplicates(flows, requests)

    def _with_identities(self, flows: pa.Table) -> pa.Table:
        """The flows, with who is at their ends where somebody says."""
        captures = self._decoded.captures
        seen = [stats.identities for stats in captures if len(stats.identities)]
        if not seen and self._names is None and not any(stats.names for stats in captures):
            return flows
        from wirewitness.analyser.analysis.flow_workloads import names_with_captures, with_identities

        names = names_with_captures(self._names, [stats.names for stats in captures])
        flows, remarks = with_identities(flows, seen, names)
        self.remarks += remarks
        self.has_identities = True
        return flows


def flows_in_order(flows: pa.Table) -> pa.Table:
    """Flows in the order of their table; those that are, as most are by their first packets, are not copied."""
    rows = flows.combine_chunks().to_batches()
    return pa.Table.from_batches([in_order("flows", one) for one in rows], flows.schema)


Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, each made by a thread while the one before it is used, as Arrow and Parquet let others run.

    What making them raises is raised here, in its turn; who stops early waits for the one that is being made.
    """
    from concurrent.futures import ThreadPoolExecutor

    nothing = object()
    with ThreadPoolExecutor(1) as thread:
        made = thread.submit(next, items, nothing)
        while (item := made.result()) is not nothing:
            made = thread.submit(next, items, nothing)
            yield item  # type: ignore[misc]
