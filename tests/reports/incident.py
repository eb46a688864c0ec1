"""Rows of a made-up incident: one group, a live and a stale member, one healthy partition among them."""

from __future__ import annotations

import json
from typing import Any

from wirewitness.analyser.engine.incidents.incidents import with_stories

START_NS = 1_795_000_000_000_000_000
SECOND_NS = 1_000_000_000
LIVE = "sarama-4f0c1f0e-6b8d-4d0a-9c39-0a8e5d7b1c11"
STALE = "sarama-9be77a52-0d5c-4f3e-8a54-b7c2d1e0f922"
Rows = dict[str, list[dict[str, Any]]]


def incident_rows() -> Rows:
    """All tables of the incident."""
    return {
        "captures": [_capture()],
        "flows": [
            _flow("f1aaaaaaaaaaaaaa", "10.11.0.21", 45678),
            _flow("f2bbbbbbbbbbbbbb", "10.11.0.22", 51234, gap=1448),
        ],
        "messages": [_undecoded_message()],
        "exchanges": [_exchange(i) for i in range(40)],
        "findings": with_stories([*(_finding(p) for p in (3, 5, 6, 7)), _gap_finding()]),
        "kafka_offset_commits": [c for p in (3, 4, 5, 6, 7) for c in _commits(p)],
        "kafka_group_events": [_join(LIVE, "10.11.0.21", 4), _join(STALE, "10.11.0.22", 4)],
        "kafka_fetch_partitions": [
            {"ts": START_NS, "topic": "payments", "partition": p, "high_watermark": 9000 + p, "exchange_id": "e"}
            for p in (3, 4, 5)
        ],
    }


def _capture() -> dict[str, Any]:
    return {
        "file": "incident.pcapng", "format": "pcapng", "packets": 12345, "captured_bytes": 3_400_000,
        "wire_bytes": 3_400_000, "ts_first": START_NS, "ts_last": START_NS + 63 * SECOND_NS, "tcp_segments": 12000,
        "other_packets": 345, "undecoded_packets": 0, "truncated_packets": 0,
    }  # fmt: skip


def _flow(flow_id: str, client: str, port: int, gap: int = 0) -> dict[str, Any]:
    return {
        "flow_id": flow_id, "protocol": "kafka", "identified_by": "content", "client_address": client,
        "client_port": port, "server_address": "10.11.0.9", "server_port": 9092, "ts_first": START_NS,
        "ts_last": START_NS + SECOND_NS, "packets": 600, "bytes_to_server": 10_000, "bytes_to_client": 9_000,
        "handshake_seen": gap == 0, "gap_bytes": gap, "retransmitted_segments": 0, "out_of_order_segments": 0,
        "truncated_packets": 0,
    }  # fmt: skip


def _undecoded_message() -> dict[str, Any]:
    return {
        "message_id": "m1", "flow_id": "f1aaaaaaaaaaaaaa", "file": "incident.pcapng", "ts": START_NS,
        "protocol": "kafka", "operation": "Key 97", "version": "2", "complete": True, "error": "unknown API key 97",
        "stream_offset": 0, "length_bytes": 40,
    }  # fmt: skip


def _exchange(i: int) -> dict[str, Any]:
    failed = i % 8 == 0
    return {
        "exchange_id": f"x{i}", "flow_id": "f1aaaaaaaaaaaaaa", "protocol": "kafka",
        "operation": "OffsetCommit" if i % 2 else "Fetch", "client_id": "payments-app", "client_address": "10.11.0.21",
        "ts": START_NS + i, "latency_ms": 1.5 + i, "status": "error" if failed else "ok",
        "error_code": 6 if failed else 0, "error_name": "NOT_LEADER_OR_FOLLOWER" if failed else None,
    }  # fmt: skip


def _commits(partition: int) -> list[dict[str, Any]]:
    writers = [(LIVE, "10.11.0.21", 8000 + partition), (STALE, "10.11.0.22", 1200)]
    if partition == 4:
        writers = writers[:1]
    return [
        {
            "exchange_id": f"c{partition}{n}", "ts": START_NS + n, "api": "OffsetCommit", "group_id": "billing",
            "topic": "payments", "partition": partition, "committed_offset": offset, "error_code": 0,
            "member_id": member, "client_id": "payments-app", "client_address": address, "generation": 4,
            "request_packet": 800 + n, "file": "incident.pcapng", "flow_id": "f1aaaaaaaaaaaaaa",
        }
        for n, (member, address, offset) in enumerate(writers)
    ]  # fmt: skip


def _join(member: str, address: str, generation: int) -> dict[str, Any]:
    return {
        "exchange_id": f"j{address}", "ts": START_NS, "group_id": "billing", "event": "join", "member_id": member,
        "client_id": "payments-app", "client_address": address, "generation": generation, "flow_id": "f1aaaaaaaaaaaaaa",
    }  # fmt: skip


def _committer(member: str, address: str, flow: str, offsets: list[int]) -> dict[str, Any]:
    return {
        "address": address, "client_id": "payments-app", "member_id": member, "generation": 4, "flow_id": flow,
        "offsets": offsets, "commits": len(offsets), "first_packet": 812, "last_packet": 9315,
    }  # fmt: skip


def _finding(partition: int) -> dict[str, Any]:
    numbers = {
        "group": "billing", "topic": "payments", "partition": partition, "delta": 6800 + partition, "regressions": 12,
        "committers": [
            _committer(LIVE, "10.11.0.21", "f1aaaaaaaaaaaaaa", list(range(7000, 8000, 100))),
            _committer(STALE, "10.11.0.22", "f2bbbbbbbbbbbbbb", [1200, 1200, 1200]),
        ],
    }  # fmt: skip
    evidence = [
        {"file": "incident.pcapng", "packet": p, "message_id": f"m{p}"} for p in (812, 815, 816, 817, 900 + partition)
    ]
    return {
        "finding_id": f"KAF103-{partition:04d}", "code": "KAF103", "name": "offset-regression", "severity": "critical",
        "confidence": "high", "provisional": False,
        "subject": f"group=billing topic=payments partition={partition}",
        "sentence": f"The committed offset of payments {partition} in group billing went back from {8000 + partition} "
                    f"to 1200: 10.11.0.22 keeps committing an old offset while 10.11.0.21 advances.",
        "next_step": "Stop the process at 10.11.0.22 or make it drop its offset store when it loses a partition.",
        "ts_first": START_NS, "ts_last": START_NS + SECOND_NS,
        "evidence": json.dumps(evidence), "numbers": json.dumps(numbers),
    }  # fmt: skip


def _gap_finding() -> dict[str, Any]:
    return {
        "finding_id": "CAP101-1", "code": "CAP101", "name": "gaps", "severity": "info", "confidence": "high",
        "provisional": False, "subject": "flow=f2bbbbbbbbbbbbbb", "sentence": "1 flow misses 1,448 bytes.",
        "next_step": "Capture with a larger buffer.", "evidence": "[]", "numbers": '{"gap_bytes": 1448}',
        "ts_first": None, "ts_last": None,
    }  # fmt: skip
