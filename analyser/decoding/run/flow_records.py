"""Ended flows on their way to the `flows` table, in columns: a flow costs a few hundred bytes here.

In: ended flows, in any order. Out: the registered table with each flow's first packet in the column FLOW.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.capture import EndpointTable
from wirewitness.analyser.capture.syn_options import NOT_SEEN, NOT_SENT
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.capture_rows import flow_row
from wirewitness.analyser.tables.tables import arrow_schema
from wirewitness.analyser.tcp.complete_flows import NO_PROTOCOL, Flags, Ints, WholeFlows
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.tcp import MASK
from wirewitness.analyser.tcp.two_points import Delays, Seen, duplicates
from wirewitness.dissectors.core.encryption import NO_KEY
from wirewitness.dissectors.registry import USUAL_PORTS

# Rows of `flows` of connections that were taken whole, in columns: the same as `flow_row` makes of one.

_NS_PER_MS = 1e6


def whole_rows(flows: WholeFlows, endpoints: EndpointTable) -> pa.RecordBatch:
    """The columns of `flows` that these tell by themselves; there is one at least."""
    count, low, sides = len(flows), flows.client_is_low, flows.sides
    ends = endpoints.many(flows.pair)
    isn_low, isn_high = _by_end(sides.isn, low)
    ids = [
        hashlib.blake2b(f"{a}|{b}|{c}|{d}|{e}|{high}|{own}".encode(), digest_size=8).hexdigest()
        for (a, b, c, d, e), high, own in zip(ends, isn_high.tolist(), isn_low.tolist(), strict=True)
    ]
    is_low = low.tolist()
    clients = [(one[0], one[1]) if first else (one[2], one[3]) for one, first in zip(ends, is_low, strict=True)]
    servers = [(one[2], one[3]) if first else (one[0], one[1]) for one, first in zip(ends, is_low, strict=True)]
    protocol = pc.take(
        pa.array([*flows.protocols, None], pa.string()),
        pa.array(np.where(flows.protocol == NO_PROTOCOL, len(flows.protocols), flows.protocol)),
    )
    told: dict[str, Any] = {
        "flow_id": ids,
        "protocol": protocol,
        "identified_by": _where(flows.protocol != NO_PROTOCOL, "content"),
        "client_address": [address for address, _ in clients],
        "client_port": [port for _, port in clients],
        "server_address": [address for address, _ in servers],
        "server_port": [port for _, port in servers],
        "encapsulation": [one[4] or None for one in ends],
        "ts_first": flows.ts_first_ns,
        "ts_last": flows.ts_last_ns,
        "packets": flows.packets,
        "data_segments": flows.data_segments,
        "handshake_seen": np.ones(count, bool),
        "handshake": _same("complete", count),
        "handshake_ms": np.maximum(flows.syn_ack_ns - flows.syn_ns, 0) / _NS_PER_MS,
        "closed_by": pc.take(pa.array(["server", "client"]), pa.array((flows.closed_by_low == low).astype(np.int8))),
        "ts_closed": flows.first_close_ns,
        **_of_sides(flows),
        **_of_resets(flows),
        "encrypted": np.zeros(count, bool),
        "port_protocol": [USUAL_PORTS.get(port) for _, port in servers],
        **{name: np.zeros(count, np.int64) for name in _ZERO},
        **{name: np.zeros(count) for name in ("client_zero_window_ms", "server_zero_window_ms")},
    }
    arrays = [
        _array(told[one.name], one.type) if one.name in told else pa.nulls(count, one.type)
        for one in arrow_schema("flows")
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema("flows"))


def _of_sides(flows: WholeFlows) -> dict[str, Any]:
    """What each side tells by itself."""
    sides = flows.sides
    acked, acked_by_client = _two(np.minimum(sides.confirmed, sides.size))
    confirmed, confirmed_by_client = _two(sides.confirmed >= 0)
    pairs = {
        ("client_first_seq", "server_first_seq"): _two((sides.isn + 1) & _MASK),
        ("bytes_to_server", "bytes_to_client"): _two(sides.size),
        ("client_ttl", "server_ttl"): _two(sides.ttl),
        ("client_ttl_lowest", "server_ttl_lowest"): _two(sides.ttl_lowest),
        ("client_packets", "server_packets"): _two(sides.packets),
        ("client_ttl_last", "server_ttl_last"): _two(sides.ttl_last),
        ("ts_last_from_client", "ts_last_from_server"): _two(sides.last_ns),
        ("client_window_scale", "server_window_scale"): _shifts(*_two(sides.window_scale)),
    }
    return {
        **{name: column for names, two in pairs.items() for name, column in zip(names, two, strict=True)},
        "acked_by_server": _valid(acked, confirmed),
        "acked_by_client": _valid(acked_by_client, confirmed_by_client),
    }


def _of_resets(flows: WholeFlows) -> dict[str, pa.Array]:
    """What is told of resets; nothing of connections that FINs ended."""
    if flows.resets is None:
        return {}
    by_low, ttl, *_, ip_id = flows.resets
    by_client = by_low == flows.client_is_low
    of_client, of_server = _two(flows.sides.ip_id)
    last = np.where(by_client, of_client, of_server)
    step, has_ids = (ip_id - last) & 0xFFFF, (ip_id > 0) & (last > 0)
    return {
        "reset_by": pc.take(pa.array(["server", "client"]), pa.array(by_client.astype(np.int8))),
        "reset_ttl": pa.array(ttl),
        "client_reset_ttl": _valid(ttl, by_client),
        "server_reset_ttl": _valid(ttl, ~by_client),
        "client_reset_step": _valid(step, by_client & has_ids),
        "server_reset_step": _valid(step, ~by_client & has_ids),
    }


def seen_columns(flows: WholeFlows) -> list[Ints | pa.Array]:
    """Pair, first sequence numbers and sizes of the streams of the low and the high endpoint; see `FlowRecords`."""
    low, sides = flows.client_is_low, flows.sides
    starts = _by_end((sides.isn + 1) & _MASK, low)
    numbers = [flows.pair, *_by_end(sides.isn, low), *starts, *_by_end(sides.size, low)]
    return [*numbers, *(pa.nulls(len(flows), field.type) for field in _LOCKED)]


_MASK = (1 << 32) - 1
_ZERO = (
    "gap_bytes", "retransmitted_segments", "retransmitted_bytes", "spurious_retransmissions", "out_of_order_segments",
    "duplicate_packets", "truncated_packets",
)  # fmt: skip


def _two(of_sides: Any) -> tuple[Any, Any]:
    """Of the clients and of the servers."""
    return of_sides[0::2], of_sides[1::2]


def _by_end(of_sides: Ints, client_is_low: Flags) -> tuple[Ints, Ints]:
    """Of the low and of the high endpoints."""
    client, server = _two(of_sides)
    return np.where(client_is_low, client, server), np.where(client_is_low, server, client)


def _shifts(client: Ints, server: Ints) -> tuple[pa.Array, pa.Array]:
    """By how many bits windows are scaled, as `window_shift` says of one side."""
    none = (client == NOT_SENT) | (server == NOT_SENT)

    def shift(mine: Ints, agreed: Flags) -> pa.Array:
        known = none | (agreed & (mine != NOT_SEEN))
        return _valid(np.where(none, 0, np.maximum(mine, NOT_SENT)), known)

    # A SYN-ACK asks for it only when the SYN did.
    return shift(client, server != NOT_SEEN), shift(server, np.ones(len(server), bool))


def _where(flags: Flags, text: str) -> pa.Array:
    return pc.take(pa.array([text, None], pa.string()), pa.array((~flags).astype(np.int8)))


def _same(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)


def _valid(values: Ints, valid: Flags) -> pa.Array:
    return pa.array(values, mask=~valid)


def _array(values: Sequence[Any] | Ints | pa.Array, kind: pa.DataType) -> pa.Array:
    found = values if isinstance(values, pa.Array) else pa.array(values)
    return found if found.type == kind else pc.cast(found, kind)


_CHUNK_ROWS = 4096
_TWO_POINTS = ("pair", "isn0", "isn1", "start0", "start1", "size0", "size1")
# Of a connection without a key: its last packet, what keys are found by, and the kinds of those that were there.
_LOCKED = pa.schema(
    [
        ("last_packet", pa.int64()),
        ("client_random", pa.binary()),
        ("session_id", pa.binary()),
        ("tried", pa.int64()),
    ]
)
_SEEN = pa.schema([*((name, pa.int64()) for name in _TWO_POINTS), *_LOCKED])
_UNLOCKED = (None,) * len(_LOCKED)
# Connections that a key may open, were it there: FLOW and the same.
LOCKED = pa.schema([(FLOW, pa.int64()), *_LOCKED])


class FlowRecords:
    """Collects ended flows. delays: what tells how far apart two points of the capture are. forgotten: flows that
    were let go."""

    def __init__(self, endpoints: EndpointTable) -> None:
        self.delays: Delays | None = None
        self.forgotten = 0
        self._endpoints = endpoints
        self._rows: list[dict[str, Any]] = []
        self._seen: list[tuple[int | bytes | None, ...]] = []
        self._first_packets: list[int] = []
        self._logged_rows: list[dict[str, Any]] = []
        self._first_lines: list[int] = []
        self._logged_batches: list[pa.RecordBatch] = []
        self._batches: list[pa.RecordBatch] = []
        self._seen_batches: list[pa.RecordBatch] = []

    def add(self, flow: Flow) -> None:
        """A flow that has ended; every flow comes once."""
        self._rows.append(flow_row(flow, self._endpoints))
        self._first_packets.append(flow.first_packet)
        high, low = flow.halves
        isns = tuple(-1 if half.isn is None else half.isn & MASK for half in (low, high))
        starts = tuple(half.base & MASK for half in (low, high))
        self._seen.append((flow.pair, *isns, *starts, low.stream_bytes, high.stream_bytes, *_locked(flow)))
        if len(self._rows) >= _CHUNK_ROWS:
            self._pack()

    def add_logged(self, first_line: int, row: dict[str, Any]) -> None:
        """A connection of a request log, with the columns that the log tells."""
        self._logged_rows.append(row)
        self._first_lines.append(first_line)
        if len(self._logged_rows) >= _CHUNK_ROWS:
            self._pack_logged()

    def add_whole(self, flows: WholeFlows) -> None:
        """Connections that were taken whole and have ended."""
        self._pack()
        for first in range(0, len(flows), _CHUNK_ROWS):
            some = flows.chosen(np.arange(first, min(first + _CHUNK_ROWS, len(flows))))
            self._batches.append(whole_rows(some, self._endpoints))
            columns = [c if isinstance(c, pa.Array) else pa.array(c) for c in seen_columns(some)]
            self._seen_batches.append(pa.record_batch(columns, schema=_SEEN))
            self._first_packets += some.first_packet.tolist()

    def forget(self, before_ns: int, most: int) -> None:
        """Forget flows that ended before this time, and the first ended of more than `most`; whole chunks of them."""
        self._pack()
        self._pack_logged()
        while _is_old(self._batches, before_ns, len(self._first_packets) > most):
            gone = self._batches.pop(0).num_rows
            self.forgotten += gone
            del self._first_packets[:gone]
            del self._seen_batches[0]
        while _is_old(self._logged_batches, before_ns, len(self._first_lines) > most):
            gone = self._logged_batches.pop(0).num_rows
            self.forgotten += gone
            del self._first_lines[:gone]

    @property
    def first_packets(self) -> list[int]:
        """First packets, or lines, of all ended flows that are not forgotten."""
        return self._first_packets + self._first_lines

    def table(self) -> pa.Table:
        """All flows with their first packet in the column FLOW, sorted by that."""
        self._pack()
        keys = pa.array(self._first_packets, pa.int64())
        table = pa.Table.from_batches(self._batches, arrow_schema("flows")).append_column(FLOW, keys)
        table = self._with_duplicates(_by_first_packet(table), _by_first_packet(self._all_seen()))
        return table if not self._first_lines else _by_first_packet(pa.concat_tables([table, self._logged_table()]))

    def locked(self) -> pa.Table:
        """The ended connections whose keys are not there, with what these are found by (LOCKED)."""
        seen = self._all_seen()
        return seen.filter(pc.is_valid(seen.column("client_random"))).select(LOCKED.names)

    def pairs(self, flows: Collection[int]) -> dict[int, int]:
        """The pairs of those of these flows that have ended, by their first packets."""
        seen = self._all_seen()
        seen = seen.filter(pc.is_in(seen.column(FLOW), pa.array([*flows], pa.int64())))
        return dict(zip(seen.column(FLOW).to_pylist(), seen.column("pair").to_pylist(), strict=True))

    def replace(self, other: FlowRecords, flows: Sequence[int]) -> None:
        """These flows, which have ended here and there, are as `other` has them. The pairs are those of here."""
        other._pack()
        self._pack()
        theirs = pa.Table.from_batches(other._batches, arrow_schema("flows")), other._all_seen()
        places = {first: place for place, first in enumerate(other._first_packets)}
        start = 0
        for number, batch in enumerate(self._batches):
            own = self._first_packets[start : start + batch.num_rows]
            start += batch.num_rows
            wanted = {*own} & {*flows}
            if not wanted:
                continue
            rows = [places[first] + len(own) if first in wanted else place for place, first in enumerate(own)]
            seen = self._seen_batches[number]
            self._batches[number] = _taken(batch, theirs[0], rows)
            mixed = _taken(seen, theirs[1].select(_SEEN.names), rows)
            self._seen_batches[number] = mixed.set_column(0, _SEEN.field(0), seen.column(0))

    def _all_seen(self) -> pa.Table:
        """What is kept of ended flows beside their rows, with FLOW."""
        self._pack()
        seen = pa.Table.from_batches(self._seen_batches, _SEEN)
        return seen.append_column(FLOW, pa.array(self._first_packets, pa.int64()))

    def let_go(self) -> None:
        """Of the rows, which somebody has as a table; which flows they were is still known."""
        for batches in (self._batches, self._seen_batches, self._logged_batches):
            batches.clear()

    def _logged_table(self) -> pa.Table:
        self._pack_logged()
        table = pa.Table.from_batches(self._logged_batches, arrow_schema("flows"))
        return table.append_column(FLOW, pa.array(self._first_lines, pa.int64()))

    def _with_duplicates(self, table: pa.Table, seen: pa.Table) -> pa.Table:
        if self.delays is None or not self._endpoints.has_encapsulations:
            return table
        columns = [pc.cast(table.column(name), pa.int64()).to_pylist() for name in ("ts_first", "ts_last", "gap_bytes")]
        numbers = zip(*columns, *(column.to_pylist() for column in seen.select(_TWO_POINTS).columns), strict=True)
        flows = [
            Seen(row, pair, self._endpoints[pair][:4], first, last, (i0, i1), (s0, s1), (n0, n1), gaps)
            for row, (first, last, gaps, pair, i0, i1, s0, s1, n0, n1) in enumerate(numbers)
        ]
        ids = table.column("flow_id").to_pylist()
        of: list[str | None] = [None] * len(ids)
        latency: list[float | None] = [None] * len(ids)
        offset: list[float | None] = [None] * len(ids)
        for found in duplicates(flows, self.delays):
            of[found.row] = ids[found.of]
            latency[found.row], offset[found.row] = found.hop_latency_ms, found.clock_offset_ms
        for name, values in (("duplicate_of", of), ("hop_latency_ms", latency), ("clock_offset_ms", offset)):
            field = table.schema.field(name)
            table = table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))
        return table

    def _pack(self) -> None:
        if self._rows:
            self._batches.append(pa.RecordBatch.from_pylist(self._rows, schema=arrow_schema("flows")))
            columns = zip(*self._seen, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, _SEEN, strict=True)]
            self._seen_batches.append(pa.record_batch(arrays, schema=_SEEN))
            self._rows.clear()
            self._seen.clear()

    def _pack_logged(self) -> None:
        if self._logged_rows:
            self._logged_batches.append(pa.RecordBatch.from_pylist(self._logged_rows, schema=arrow_schema("flows")))
            self._logged_rows.clear()


def _locked(flow: Flow) -> tuple[int | bytes | None, ...]:
    """The columns of _LOCKED; nothing where a key is there, or would not do."""
    known = flow.encryption
    if known is None or known.client_random is None or known.decryption != NO_KEY:
        return _UNLOCKED
    return flow.last_packet, known.client_random, known.session_id, known.tried


def _taken(batch: pa.RecordBatch, more: pa.Table, rows: Sequence[int]) -> pa.RecordBatch:
    """Rows of a batch and of what comes behind it."""
    both = pa.concat_tables([pa.Table.from_batches([batch]), more])
    (found,) = both.take(pa.array(rows, pa.int64())).combine_chunks().to_batches()
    return found


def _by_first_packet(flows: pa.Table) -> pa.Table:
    return pc.take(flows, pc.sort_indices(flows, [(FLOW, "ascending")]))


def _is_old(batches: list[pa.RecordBatch], before_ns: int, are_too_many: bool) -> bool:
    """Is the first of these to be forgotten?"""
    if not batches:
        return False
    return are_too_many or pc.max(pc.cast(batches[0].column("ts_last"), pa.int64())).as_py() < before_ns
