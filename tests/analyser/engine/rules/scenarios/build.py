"""Plain rows of the Kafka tables, with defaults that make a scenario readable.

In: what matters to the scenario. Out: dicts for `tests.support.rows.connection_from_rows`. Times are seconds after
START; a response comes 2 ms after its request unless told otherwise.
"""

from __future__ import annotations

from typing import Any

START = 1_790_000_000_000_000_000
SECOND = 1_000_000_000
ANSWER = 2_000_000

Row = dict[str, Any]

CLIENTS = {
    "m1": ("10.1.0.1", "billing-1", "flow1"),
    "m2": ("10.1.0.2", "billing-2", "flow2"),
    "m3": ("10.1.0.3", "billing-3", "flow3"),
    "": ("10.1.0.9", "adminclient-1", "flow9"),
}


def at(seconds: float) -> int:
    """Unix ns of a second of the scenario."""
    return START + round(seconds * SECOND)


def _exchange(flow: str, seconds: float, kind: str) -> Row:
    """Ids as the store makes them: the number at the end is the place in the stream."""
    place = round(seconds * 1_000_000) * 10
    return {"exchange_id": f"{flow}-{kind}c{place}", "flow_id": flow, "ts": at(seconds)}


def commit(seconds: float, offset: int, member: str = "m1", *, generation: int = 5, **more: Any) -> Row:
    """One partition of an answered OffsetCommit: topic payments, partition 0, group billing, cluster c1."""
    address, client_id, flow = CLIENTS[member]
    row = {
        **_exchange(more.get("flow_id", flow), seconds, ""),
        "ts_response": at(seconds) + ANSWER,
        "api": "OffsetCommit",
        "cluster_id": "c1",
        "group_id": "billing",
        "member_id": member,
        "generation": generation,
        "client_id": client_id,
        "client_address": address,
        "topic": "payments",
        "partition": 0,
        "committed_offset": offset,
        "error_code": 0,
        "file": "incident.pcapng",
        "request_packet": round(seconds * 1000) + 1,
    }
    return row | more


def simple_commit(seconds: float, offset: int, **more: Any) -> Row:
    """A commit without membership: generation -1, empty member id."""
    return commit(seconds, offset, "", generation=-1, **more)


def fetch(seconds: float, offset: int, member: str = "m1", **more: Any) -> Row:
    """One partition of an answered Fetch, on the data connection of the member's client."""
    address, client_id, flow = CLIENTS[member]
    row = {
        **_exchange(f"{flow}data", seconds, "f"),
        "request_packet": round(seconds * 1000) + 1,
        "ts_response": at(seconds) + ANSWER,
        "cluster_id": "c1",
        "client_id": client_id,
        "client_address": address,
        "replica_id": -1,
        "topic": "payments",
        "partition": 0,
        "fetch_offset": offset,
        "high_watermark": 100_000,
    }
    return row | more


def stored(seconds: float, offset: int, member: str = "m1", **more: Any) -> Row:
    """One partition of an OffsetFetch answer."""
    address, client_id, flow = CLIENTS[member]
    row = {
        **_exchange(flow, seconds, "o"),
        "cluster_id": "c1",
        "group_id": "billing",
        "client_id": client_id,
        "client_address": address,
        "topic": "payments",
        "partition": 0,
        "committed_offset": offset,
        "error_code": 0,
    }
    return row | more


def assigned(seconds: float, generation: int, plan: dict[str, list[int]], source: str = "sync_leader") -> list[Row]:
    """The whole group's plan of a generation: member -> partitions of payments."""
    return [
        {
            **_exchange("flow1", seconds, "s"),
            "cluster_id": "c1",
            "group_id": "billing",
            "generation": generation,
            "member_id": member,
            "topic": None if partition is None else "payments",
            "partition": partition,
            "source": source,
        }
        for member, partitions in plan.items()
        for partition in (partitions or [None])
    ]


def group_event(seconds: float, event: str, member: str, **more: Any) -> Row:
    """One answered group request."""
    address, client_id, flow = CLIENTS[member]
    row = {
        **_exchange(flow, seconds, "g"),
        "ts_response": at(seconds) + ANSWER,
        "cluster_id": "c1",
        "group_id": "billing",
        "event": event,
        "member_id": member,
        "client_id": client_id,
        "client_address": address,
        "error_code": 0,
    }
    return row | more


def flow(flow_id: str, **more: Any) -> Row:
    """One identified Kafka connection, whole."""
    row = {
        "flow_id": flow_id,
        "protocol": "kafka",
        "client_address": "10.1.0.1",
        "client_port": 50000,
        "server_address": "10.1.0.100",
        "server_port": 9092,
        "ts_first": START,
        "ts_last": at(10),
        "bytes_to_server": 1000,
        "bytes_to_client": 1000,
        "gap_bytes": 0,
        "handshake_seen": True,
    }
    return row | more


def tcp_flow(flow_id: str = "a", **more: Any) -> Row:
    """One Kafka connection with everything that the TCP rules read, all well."""
    row = {
        "packets": 4000,
        "data_segments": 2000,
        "retransmitted_segments": 0,
        "spurious_retransmissions": 0,
        "retransmitted_bytes": 0,
        "duplicate_packets": 0,
        "truncated_packets": 0,
        "client_window_scale": 7,
        "server_window_scale": 7,
        "client_zero_window_ms": 0.0,
        "server_zero_window_ms": 0.0,
        "ts_last_from_client": at(10),
        "ts_last_from_server": at(10),
        "handshake": "complete",
        "handshake_ms": 0.2,
        "encrypted": False,
        "tls_decryption": None,
        "file": "incident.pcapng",
        "first_packet": 1,
    }
    return flow(flow_id, **(row | more))


def capture(**more: Any) -> Row:
    """One capture file."""
    return {"file": "incident.pcapng", "packets": 9000, "ts_first": START, "ts_last": at(60)} | more


def exchange(flow_id: str, seconds: float, operation: str = "Produce", **more: Any) -> Row:
    """One exchange; `lasts` seconds until its response, or None without one."""
    lasts = more.pop("lasts", 0.002)
    row = {
        "exchange_id": f"{flow_id}-c{round(seconds * 1000)}",
        "request_message_id": f"{flow_id}-c{round(seconds * 1000)}",
        "flow_id": flow_id,
        "operation": operation,
        "request_file": "incident.pcapng",
        "request_packet": round(seconds * 1000) + 1,
        "ts": at(seconds),
        "ts_response": None if lasts is None else at(seconds + lasts),
        "latency_ms": None if lasts is None else lasts * 1000,
        "status": "unanswered" if lasts is None else "ok",
    }
    return row | more


def message(flow_id: str, seconds: float, **more: Any) -> Row:
    """One decoded request."""
    row = {
        "message_id": f"{flow_id}-c{round(seconds * 1000)}",
        "flow_id": flow_id,
        "file": "incident.pcapng",
        "packet_last": round(seconds * 1000) + 1,
        "ts": at(seconds),
        "protocol": "kafka",
        "operation": "Fetch",
        "version": "17",
        "client_id": "billing-1",
    }
    return row | more


def stall(flow_id: str, number: int, **more: Any) -> Row:
    """A delayed acknowledgement in the middle of request `number` (100 bytes each, one in a second)."""
    row = {
        "flow_id": flow_id,
        "file": "incident.pcapng",
        "packet_first": number * 4 + 1,
        "file_last": "incident.pcapng",
        "packet_last": number * 4 + 3,
        "ts": at(number),
        "ts_last": at(number + 0.0441),
        "direction": "client_to_server",
        "kind": "delayed_ack",
        "stream_offset": number * 100 + 14,
        "wait_ms": 44.0,
        "answer_ms": 0.1,
        "sent_bytes": 14,
        "next_bytes": 86,
        "segment_limit_bytes": 1460,
    }
    return row | more


def stalled(flow_id: str, count: int, **more: Any) -> dict[str, list[Row]]:
    """So many stalls (`more` of each), and the messages and exchanges of 100 bytes in which they are."""
    places = {"direction": "client_to_server", "length_bytes": 100}
    ids = [f"{flow_id}-c{number * 100}" for number in range(count)]
    return {
        "tcp_waits": [stall(flow_id, number, **more) for number in range(count)],
        "messages": [
            message(flow_id, n + 0.05, message_id=one, stream_offset=n * 100, **places) for n, one in enumerate(ids)
        ],
        "exchanges": [
            exchange(flow_id, n + 0.05, exchange_id=one, request_message_id=one) for n, one in enumerate(ids)
        ],
    }


def full_window(flow_id: str, seconds: float, lasts: float, **more: Any) -> Row:
    """A receive window of 64 KiB that is full, but for a tenth of the time, with a round trip of 100 ms."""
    row = {
        "flow_id": flow_id,
        "file": "incident.pcapng",
        "packet_first": round(seconds * 1000) + 1,
        "file_last": "incident.pcapng",
        "packet_last": round((seconds + lasts) * 1000) + 1,
        "ts": at(seconds),
        "ts_last": at(seconds + lasts),
        "direction": "server_to_client",
        "kind": "full_window",
        "stream_offset": 5000,
        "wait_ms": lasts * 900,
        "sent_bytes": round(lasts * 650_000),
        "window_least_bytes": 65_536,
        "window_most_bytes": 65_536,
        "segment_limit_bytes": 1460,
    }
    return row | more


def remark(flow_id: str | None, seconds: float, group: str, code: str, text: str = "", **more: Any) -> Row:
    """One expert info."""
    row = {
        "flow_id": flow_id,
        "file": "incident.pcapng",
        "packet": round(seconds * 1000) + 1,
        "ts": at(seconds),
        "severity": "warn",
        "group": group,
        "code": code,
        "text": text,
    }
    return row | more
