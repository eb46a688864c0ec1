"""Rows of `flows` of connections that were taken whole, in columns: the same as `flow_row` makes of one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.capture import EndpointTable
from wirewitness.analyser.capture.syn_options import NOT_SEEN, NOT_SENT
from wirewitness.analyser.tables.tables import arrow_schema
from wirewitness.analyser.tcp.complete_flows import NO_PROTOCOL, Flags, Ints, WholeFlows
from wirewitness.dissectors.registry import USUAL_PORTS

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
    client_first, server_first = _two((sides.isn + 1) & _MASK)
    sent, received = _two(sides.size)
    acked, acked_by_client = _two(np.minimum(sides.confirmed, sides.size))
    confirmed, confirmed_by_client = _two(sides.confirmed >= 0)
    scales = _shifts(*_two(sides.window_scale))
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
        "client_first_seq": client_first,
        "server_first_seq": server_first,
        "bytes_to_server": sent,
        "bytes_to_client": received,
        "handshake_seen": np.ones(count, bool),
        "handshake": _same("complete", count),
        "handshake_ms": np.maximum(flows.syn_ack_ns - flows.syn_ns, 0) / _NS_PER_MS,
        "closed_by": pc.take(pa.array(["server", "client"]), pa.array((flows.closed_by_low == low).astype(np.int8))),
        "ts_closed": flows.first_close_ns,
        **dict(zip(("client_ttl", "server_ttl"), _two(sides.ttl), strict=True)),
        **dict(zip(("client_ttl_lowest", "server_ttl_lowest"), _two(sides.ttl_lowest), strict=True)),
        **dict(zip(("client_ttl_last", "server_ttl_last"), _two(sides.ttl_last), strict=True)),
        **dict(zip(("ts_last_from_client", "ts_last_from_server"), _two(sides.last_ns), strict=True)),
        "acked_by_server": _valid(acked, confirmed),
        "acked_by_client": _valid(acked_by_client, confirmed_by_client),
        "client_window_scale": scales[0],
        "server_window_scale": scales[1],
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


def _of_resets(flows: WholeFlows) -> dict[str, pa.Array]:
    """What is told of resets; nothing of connections that FINs ended."""
    if flows.resets is None:
        return {}
    by_low, ttl, *_ = flows.resets
    by_client = by_low == flows.client_is_low
    return {
        "reset_by": pc.take(pa.array(["server", "client"]), pa.array(by_client.astype(np.int8))),
        "reset_ttl": pa.array(ttl),
        "client_reset_ttl": _valid(ttl, by_client),
        "server_reset_ttl": _valid(ttl, ~by_client),
    }


def seen_columns(flows: WholeFlows) -> list[Ints]:
    """Pair, first sequence numbers and sizes of the streams of the low and the high endpoint; see `FlowRecords`."""
    low, sides = flows.client_is_low, flows.sides
    starts = _by_end((sides.isn + 1) & _MASK, low)
    return [flows.pair, *_by_end(sides.isn, low), *starts, *_by_end(sides.size, low)]


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
