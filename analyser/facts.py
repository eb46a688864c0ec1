"""The `captures` and `flows` tables, made from what the capture layer and the flow table counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from analyser.capture import CaptureStats, EndpointTable
from analyser.flows import Flow, flow_id
from analyser.tables import arrow_schema
from analyser.timeorder import FLOW

LINK_NAMES = {
    0: "BSD loopback",
    1: "Ethernet",
    12: "raw IP",
    14: "raw IP",
    101: "raw IP",
    108: "BSD loopback",
    113: "Linux cooked",
    228: "raw IPv4",
    229: "raw IPv6",
    276: "Linux cooked v2",
}


def file_label(name: str) -> str:
    """A path as text that every format can hold: bytes that are not UTF-8 are shown as \\xNN."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def captures_table(captures: Sequence[CaptureStats]) -> pa.Table:
    """One row per capture file."""
    rows = [_capture_row(stats) for stats in captures]
    return pa.Table.from_pylist(rows, schema=arrow_schema("captures"))


def _capture_row(stats: CaptureStats) -> dict[str, Any]:
    drops = [
        count for interface in stats.interfaces for count in (interface.if_drop, interface.os_drop) if count is not None
    ]
    return {
        "file": file_label(stats.file),
        "format": stats.format + (f" ({stats.compression})" if stats.compression else ""),
        "link_types": ", ".join(LINK_NAMES.get(number, f"link type {number}") for number in stats.link_types),
        "packets": stats.packets,
        "captured_bytes": stats.captured_bytes,
        "wire_bytes": stats.wire_bytes,
        "ts_first": stats.ts_first_ns,
        "ts_last": stats.ts_last_ns,
        "tcp_segments": stats.tcp_segments,
        "other_packets": stats.other_packets,
        "undecoded_packets": sum(stats.undecoded_packets.values()),
        "truncated_packets": stats.truncated_packets,
        "snaplen": stats.snaplen or None,
        "dropped_packets": sum(drops) if drops else None,
        "remarks": "; ".join(remark.text for remark in stats.remarks) or None,
    }


def flows_table(flows: Sequence[Flow], endpoints: EndpointTable) -> pa.Table:
    """One row per flow, with its first packet in the column FLOW and sorted by that."""
    ordered = sorted(flows, key=lambda flow: flow.first_packet)
    rows = [_flow_row(flow, endpoints) for flow in ordered]
    keys = pa.array([flow.first_packet for flow in ordered], pa.int64())
    return pa.Table.from_pylist(rows, schema=arrow_schema("flows")).append_column(FLOW, keys)


def _flow_row(flow: Flow, endpoints: EndpointTable) -> dict[str, Any]:
    pair = endpoints[flow.pair]
    low, high = (pair.low_address, pair.low_port), (pair.high_address, pair.high_port)
    client_is_low = flow.client_is_low
    if client_is_low is None:
        # Nothing told the sides apart: servers listen on the lower port more often than not.
        client_is_low = pair.low_port > pair.high_port
    client, server = (low, high) if client_is_low else (high, low)
    to_server, to_client = flow.halves[client_is_low], flow.halves[not client_is_low]
    closed_by = None
    if flow.closed_by_low is not None:
        closed_by = "client" if flow.closed_by_low == client_is_low else "server"
    return {
        "flow_id": flow_id(flow, endpoints),
        "protocol": flow.protocol,
        "identified_by": flow.identified_by,
        "client_address": client[0],
        "client_port": client[1],
        "server_address": server[0],
        "server_port": server[1],
        "encapsulation": pair.encapsulation or None,
        "ts_first": flow.ts_first_ns,
        "ts_last": flow.ts_last_ns,
        "packets": flow.packets,
        "bytes_to_server": to_server.stream_bytes,
        "bytes_to_client": to_client.stream_bytes,
        "handshake_seen": all(flow.syn_seen),
        "closed_by": closed_by,
        "gap_bytes": sum(half.gap_bytes for half in flow.halves),
        "retransmitted_segments": sum(half.retransmitted for half in flow.halves),
        "out_of_order_segments": sum(half.out_of_order for half in flow.halves),
        "duplicate_packets": None,
        "truncated_packets": sum(half.truncated for half in flow.halves),
    }
