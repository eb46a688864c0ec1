"""What becomes of rows whose requests a request log and a capture both tell, in parts of a dataset.

In: batches of finished rows, and which requests are told twice, before this run and now. Out: which rows do not count,
and rows of the table that names the exchange that is left. A row of a part has the flow and the id that it was stored
with; ids end with the place of their message.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.analysis.joined import PAIR, REQUEST_TIMES, Flags, Ints, Joined
from wirewitness.analyser.archive.commit.common import CLUSTER
from wirewitness.analyser.decoding.rows.timeorder import FLOW, NO_FLOW
from wirewitness.analyser.tables.tables import TABLES

PAIRS = pa.schema([*((name, pa.int64()) for name in PAIR[:-1]), (PAIR[-1], pa.bool_())])
_ORDER = [("flow", "ascending"), ("place", "ascending")]


def key_of(table: str) -> str | None:
    """The column whose ids tell the requests of a table's rows; None for rows of no request."""
    names = TABLES[table].column_names()
    return next((name for name in ("exchange_id", "message_id") if name in names), None)


class JoinedRows:
    """before: the pairs that the rows were stored with; now: those of all runs. facts: FLOW and facts of all flows
    among these."""

    def __init__(self, before: pa.Table, now: pa.Table, facts: pa.Table) -> None:
        differing = _differing(before, now)
        self._now, self._changed = Joined(now), Joined(differing)
        self._touched = np.union1d(*(differing.column(name).to_numpy() for name in ("flow", "other_flow")))
        self._back = Joined(_swapped(before))
        self._facts = facts.sort_by(FLOW).combine_chunks()

    def flows(self) -> Ints:
        """The flows of which something is told otherwise, by which rows are or were known."""
        return self._touched

    def differs(self, table: str, batch: pa.RecordBatch) -> bool:
        """Is there a row that becomes another one, or is to count otherwise? batch: FLOW and the table's key."""
        flow, place = _places(table, batch)
        if table != REQUEST_TIMES:
            return bool(self._elsewhere(self._changed, table, flow, place).any())
        other_flow, other_place = self._renamed(flow, place)
        return bool(((flow != other_flow) | (place != other_place)).any())

    def gone(self, table: str, batch: pa.RecordBatch) -> Flags:
        """Which rows do not count."""
        if table == REQUEST_TIMES or key_of(table) is None:
            return np.zeros(batch.num_rows, np.bool_)
        return self._elsewhere(self._now, table, *_places(table, batch))

    def named(self, table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows by the exchange that is left, where the table names it."""
        if table != REQUEST_TIMES:
            return batch
        before = _places(table, batch)
        flow, place = self._renamed(*before)
        moved = pa.array((flow != before[0]) | (place != before[1]))
        if not pc.any(moved).as_py():
            return batch
        at = pc.index_in(pa.array(flow), self._facts.column(FLOW).combine_chunks())
        columns = {name: batch.column(name) for name in batch.schema.names}
        known = {column.name for column in TABLES[table].columns if column.source == "flow"} | {CLUSTER}
        new = {name: self._facts.column(name).combine_chunks().take(at) for name in (*known, FLOW)}
        offset = pa.array(place).cast(pa.string())
        flow_ids = self._facts.column("flow_id").combine_chunks().take(at)
        new["exchange_id"] = pc.binary_join_element_wise(flow_ids, "c", offset, "-")
        for name, values in new.items():
            columns[name] = pc.if_else(moved, values.cast(columns[name].type), columns[name])
        return pa.RecordBatch.from_arrays([columns[name] for name in batch.schema.names], schema=batch.schema)

    def _renamed(self, flow: Ints, place: Ints) -> tuple[Ints, Ints]:
        """By which flow and place requests of the log are known now."""
        _, own_flow, own_place = self._back.instead(flow, place)
        return self._now.instead(own_flow, own_place)[1:]

    @staticmethod
    def _elsewhere(joined: Joined, table: str, flow: Ints, place: Ints) -> Flags:
        return joined.elsewhere(flow, place, of_requests=key_of(table) == "exchange_id")


def _places(table: str, batch: pa.RecordBatch) -> tuple[Ints, Ints]:
    """Flow and place of the request of each row; -1 where it has none. An exchange without a request is named by its
    answer."""
    key = key_of(table)
    ids = batch.column(key)
    is_one = pc.match_substring(ids, "-c-") if key == "exchange_id" else pc.is_valid(ids)
    digits = pc.if_else(pc.fill_null(is_one, False), pc.replace_substring_regex(ids, "^.*-", ""), "-1")
    flow = pc.fill_null(batch.column(FLOW), NO_FLOW)
    return flow.to_numpy(zero_copy_only=False), digits.cast(pa.int64()).to_numpy(zero_copy_only=False)


def _differing(before: pa.Table, now: pa.Table) -> pa.Table:
    """Pairs that are in one of both only, however far apart the clocks were found to be."""
    told = [name for name in PAIR if name != "apart"]
    both = pa.concat_tables([before.select(told), now.select(told)])
    counted = both.group_by(told).aggregate([([], "count_all")])
    once = counted.filter(pc.equal(counted.column("count_all"), 1))
    return once.append_column("apart", pa.repeat(pa.scalar(0, pa.int64()), once.num_rows)).select(PAIR).sort_by(_ORDER)


def _swapped(pairs: pa.Table) -> pa.Table:
    """From the captured request back to that of the log, of those by which rows are named."""
    named = pairs.filter(pc.invert(pairs.column("is_better")))
    names = {"flow": "other_flow", "place": "other_place", "other_flow": "flow", "other_place": "place"}
    columns = [named.column(names.get(name, name)) for name in PAIR]
    return pa.Table.from_arrays(columns, names=list(PAIR)).sort_by(_ORDER)
