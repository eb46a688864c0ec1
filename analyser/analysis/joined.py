"""Exchanges that a capture and a request log both tell: they count once.

In: raw rows of `messages` and `exchanges`, and the flows. Out: which requests are told twice, and the rows of a table
with each of them once: as the capture has them, or as the log does where the capture lacks the answer. A row of
`kafka_request_times` names the exchange that is left. A request is known by the ends of its connection, its API,
version and correlation id, and by when it was sent: ports are used again, and ids begin anew. Clocks differ, so what
counts is how much: the pairs of one run are apart by about the same time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.analysis.build import in_logs
from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.tables.coded import plain
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER

if TYPE_CHECKING:
    import duckdb

NEEDED = ("messages", "exchanges")
# Its rows name the exchange that is left; those of other tables are left out.
REQUEST_TIMES = "kafka_request_times"
_NS_PER_MS = 1e6
# Offsets are below it: correlation ids of 32 bits and a line's number, or bytes of a stream.
_OFFSET_BITS = 42
ENDS = ("client_address", "client_port", "server_address", "server_port")
# A request of a log and the same one of a capture: flow and place of each, by how much the log's clock is ahead, and
# whether the log knows the answer and the capture does not.
PAIR = ("flow", "place", "other_flow", "other_place", "apart", "is_better")
_MESSAGES = (FLOW, "stream_offset", "ts", "operation", "version", "correlation_id")
_EXCHANGES = (FLOW, "request_offset", "error_code")
_AROUND_NS = 60_000_000_000
# Requests alike in all that tells them apart are left alone where they are more: each would be compared with each.
_MOST_ALIKE = 100

_PAIRS = f"""
    WITH told AS (
        SELECT m.{FLOW} AS flow, stream_offset AS place, m.ts::bigint AS ts, operation, version, correlation_id,
               error_code, logged, struct_pack({", ".join(ENDS)}) AS ends
        FROM joining_messages m JOIN joining_flows f USING ({FLOW})
        LEFT JOIN joining_exchanges e ON e.{FLOW} = m.{FLOW} AND e.request_offset = m.stream_offset
        QUALIFY count(*) OVER (PARTITION BY logged, ends, operation, version, correlation_id) <= {_MOST_ALIKE}
    ), pairs AS (
        SELECT l.flow AS flow, l.place AS place, c.flow AS other_flow, c.place AS other_place, l.ts - c.ts AS apart,
               c.error_code IS NULL AND l.error_code IS NOT NULL AS is_better
        FROM told l JOIN told c USING (ends, operation, version, correlation_id) WHERE l.logged AND NOT c.logged
    ), near AS (
        SELECT *, apart - (SELECT median(apart) FROM pairs) AS off FROM pairs
    )
    SELECT {", ".join(PAIR)} FROM near WHERE abs(off) <= {_AROUND_NS}
    QUALIFY row_number() OVER (PARTITION BY flow, place ORDER BY abs(off), other_flow, other_place) = 1
        AND row_number() OVER (PARTITION BY other_flow, other_place ORDER BY abs(off), flow, place) = 1
    ORDER BY flow, place"""

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Requests(NamedTuple):
    """Requests by flow and place, both as numbers that sort as their keys do."""

    flows: Ints
    keys: Ints

    @classmethod
    def of(cls, flow: Ints, place: Ints) -> Requests:
        """Those with these flows and places, in any order."""
        flows = np.unique(flow)
        return cls(flows, np.searchsorted(flows, flow) << _OFFSET_BITS | place)

    def find(self, flow: Ints, place: Ints) -> Ints:
        """Where each of these stands among the keys, -1 where it does not; keys must be sorted."""
        if not len(self.keys):
            return np.full(len(flow), -1)
        at = np.minimum(np.searchsorted(self.flows, flow), len(self.flows) - 1)
        keys = at.astype(np.int64) << _OFFSET_BITS | place
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where((self.flows[at] == flow) & (self.keys[found] == keys) & (place >= 0), found, -1)


class Joined:
    """The requests that were told twice. ahead_ns: by how much the log's clock is ahead of the capture's."""

    def __init__(self, pairs: pa.Table) -> None:
        flow, place, other_flow, other_place, apart = (pairs.column(at).to_numpy() for at in range(5))
        better = pairs.column(5).to_numpy()
        self.requests = len(flow)
        self.ahead_ns = int(np.median(apart)) if len(apart) else 0
        # Of the log, which stay behind; of the capture, which do where the log knows more.
        self._logged = Requests.of(flow[~better], place[~better])
        self._instead = other_flow[~better], other_place[~better]
        order = np.lexsort((other_place[better], other_flow[better]))
        self._captured = Requests.of(other_flow[better][order], other_place[better][order])
        self._by_flow = dict(zip(*np.unique(flow[~better], return_counts=True), strict=True))
        self._other = dict(zip(flow.tolist(), other_flow.tolist(), strict=True))

    def once(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The raw rows of a table without those that are told elsewhere."""
        names = batch.schema.names
        column = next((one for one in ("request_offset", "stream_offset") if one in names), None)
        if column is None or not self.requests:
            return batch
        flow = batch.column(FLOW).to_numpy()
        place = pc.fill_null(batch.column(column), -1).to_numpy()
        if name == REQUEST_TIMES:
            return self._renamed(batch, flow, place)
        gone = self.elsewhere(flow, place, of_requests=column == "request_offset")
        return pc.filter(batch, pa.array(~gone)) if gone.any() else batch

    def elsewhere(self, flow: Ints, place: Ints, *, of_requests: bool) -> Flags:
        """Are rows with these flows and places told elsewhere? of_requests: of exchanges, of which the captured one is
        left out, too, where the log knows more; messages of a capture stay."""
        found = self._logged.find(flow, place) >= 0
        return found | (self._captured.find(flow, place) >= 0) if of_requests else found

    def instead(self, flow: Ints, place: Ints) -> tuple[Flags, Ints, Ints]:
        """Whether requests of the log are told by a capture, and flow and place of each by which it is known."""
        found = self._logged.find(flow, place)
        is_told = found >= 0
        if not is_told.any():
            return is_told, flow, place
        other_flow, other_place = self._instead
        return is_told, np.where(is_told, other_flow[found], flow), np.where(is_told, other_place[found], place)

    def with_duplicates(self, flows: pa.Table, requests: dict[int, int]) -> pa.Table:
        """The flows; those of the log of which the capture has every request name the captured one. requests: how many
        each has."""
        whole = self.whole(requests)
        keys = flows.column(FLOW).to_pylist()
        ids = dict(zip(keys, flows.column("flow_id").to_pylist(), strict=True))
        known = flows.column("duplicate_of").to_pylist()
        of = [ids.get(whole[key]) if key in whole else kept for key, kept in zip(keys, known, strict=True)]
        field = flows.schema.field("duplicate_of")
        return flows.set_column(flows.schema.get_field_index(field.name), field, pa.array(of, field.type))

    def whole(self, requests: dict[int, int]) -> dict[int, int]:
        """Connections of the log of which the capture has every request -> the captured one. requests: as above."""
        return {flow: self._other[flow] for flow, number in self._by_flow.items() if requests.get(flow) == number}

    def remark(self, requests: dict[int, int]) -> str:
        """What people are told. requests: as above."""
        every = sum(requests.values())
        return (
            f"{self.requests:,} of {every:,} logged requests on connections that a capture has are in it, too, and "
            f"count once; the log's clock is {self.ahead_ns / _NS_PER_MS:,.1f} ms ahead of the capture's"
        )

    def _renamed(self, batch: pa.RecordBatch, flow: Ints, place: Ints) -> pa.RecordBatch:
        is_told, other_flow, other_place = self.instead(flow, place)
        if not is_told.any():
            return batch
        changed = {FLOW: other_flow, "request_offset": other_place}
        arrays = [pa.array(changed[one]) if one in changed else batch.column(one) for one in batch.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def joined(
    con: duckdb.DuckDBPyConnection, store: RawStore, flows: pa.Table, logs: Collection[int]
) -> tuple[Joined, dict[int, int]]:
    """The requests told twice, and how many requests each connection of the logs has. flows: with FLOW."""
    of_logs = in_logs(flows.column(FLOW), logs)
    ends = flows.select([FLOW, *ENDS]).append_column("logged", of_logs)
    messages = _rows(store, "messages", _MESSAGES, [FLOW, "direction", "role"], ends)
    exchanges = _rows(store, "exchanges", _EXCHANGES, [FLOW], ends)
    pairs = pairs_of(con, ends, messages, exchanges)
    logged = pc.filter(messages.column(FLOW), in_logs(messages.column(FLOW), logs)).to_numpy()
    flow, number = np.unique(logged, return_counts=True)
    return Joined(pairs), dict(zip(flow.tolist(), number.tolist(), strict=True))


def pairs_of(con: duckdb.DuckDBPyConnection, flows: pa.Table, messages: pa.Table, exchanges: pa.Table) -> pa.Table:
    """The requests told twice (PAIR). flows: FLOW, ENDS, whether they are `logged`. messages, exchanges: the requests
    of such flows, with the columns of raw rows."""
    for name, rows in (("flows", flows), ("messages", messages), ("exchanges", exchanges)):
        con.register(f"joining_{name}", rows)
    try:
        return con.sql(_PAIRS).to_arrow_table()
    finally:
        for name in ("flows", "messages", "exchanges"):
            con.unregister(f"joining_{name}")


def _rows(store: RawStore, name: str, columns: tuple[str, ...], needed: list[str], ends: pa.Table) -> pa.Table:
    """Requests of the connections that a log and a capture may shard, by their ends."""
    shared = shared_flows(ends)
    found = []
    schema = pa.schema([store.tables[name].schema.field(one) for one in columns])
    for batch in store.tables[name].batches():
        chosen = pc.is_in(batch.column(FLOW), shared)
        if "direction" in needed:
            from_client = pc.equal(batch.column("direction"), CLIENT_TO_SERVER)
            asks = pc.and_(from_client, pc.equal(batch.column("role"), "request"))
            chosen = pc.and_(chosen, pc.fill_null(asks, False))
        found.append(plain(pc.filter(batch.select(columns), chosen), schema))
    return pa.Table.from_batches(found, schema)


def shared_flows(ends: pa.Table) -> pa.Array:
    """Flows of a log and of captures between the same ends."""
    keys = pc.binary_join_element_wise(*(pc.cast(ends.column(one), pa.string()) for one in ENDS), " ")
    of_log = pc.filter(keys, ends.column("logged"))
    of_capture = pc.filter(keys, pc.invert(ends.column("logged")))
    both = pc.and_(pc.is_in(keys, pc.unique(of_log)), pc.is_in(keys, pc.unique(of_capture)))
    return pc.filter(ends.column(FLOW), both).combine_chunks()
