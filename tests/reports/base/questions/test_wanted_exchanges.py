"""Exchanges by what somebody looks for: names exactly and together, partitions, versions, times, cursors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.base.questions.wanted_exchanges import Wanted, exchange_query, named_exactly

AT_NS = 1_790_000_000_000_000_000
LSID = "5f1c0e2a-0000-4000-8000-000000000001"


def exchange(number: int, **changed: Any) -> dict[str, Any]:
    row = {
        "exchange_id": f"x{number}", "request_message_id": f"x{number}", "protocol": "kafka", "operation": "Fetch",
        "version": "12", "client_id": "a", "client_address": "10.0.0.1", "server_address": "10.0.0.2",
        "server_port": 9092, "status": "ok", "ts": AT_NS + number, "latency_ms": float(number),
    }  # fmt: skip
    return row | changed


def commit(number: int, group: str, topic: str, partition: int) -> dict[str, Any]:
    return {"exchange_id": f"x{number}", "ts": AT_NS, "group_id": group, "topic": topic, "partition": partition}


@pytest.fixture(scope="module")
def source() -> RowsAnalysis:
    commits = [
        commit(1, "ledger", "orders", 4), commit(1, "ledger", "orders", 5), commit(2, "ledger", "orders-dlq", 4),
        commit(3, "ledger-dlq", "orders", 4), commit(4, "ledger", "payments", 5),
    ]  # fmt: skip
    mongo = [
        {"exchange_id": "x5", "ts": AT_NS, "cursor_id": 77},
        {"exchange_id": "x6", "ts": AT_NS, "cursors_killed": [76, 77]},
        {"exchange_id": "x7", "ts": AT_NS, "lsid": LSID, "txn_number": 3},
        {"exchange_id": "x8", "ts": AT_NS, "lsid": LSID, "txn_number": 4, "cursor_id": 78},
    ]
    events = [{"exchange_id": "x9", "ts": AT_NS, "group_id": "ledger", "topics": "orders, payments"}]
    every = [exchange(number) for number in range(1, 9)]
    failed = {"status": "error", "error_code": 3, "error_name": "UNKNOWN_TOPIC_OR_PARTITION", "version": "13"}
    other = {"status": "error", "error_code": 100, "error_name": "UNKNOWN_TOPIC_ID"}
    every += [exchange(9, **failed), exchange(10, **other)]
    return RowsAnalysis(
        {"exchanges": every, "kafka_offset_commits": commits, "mongo_commands": mongo, "kafka_group_events": events}
    )


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ({"about": "orders"}, {1, 2, 3, 9}),
        ({"about": '"orders"'}, {1, 3, 9}),
        ({"about": '"ledger" "orders"'}, {1, 9}),
        ({"about": '"ledger" "orders"', "partition": "4"}, {1}),
        ({"about": '"ledger" dlq'}, {2}),
        ({"about": '"ledger" "orders"', "partition": "6"}, set()),
        ({"partition": "5"}, {1, 4}),
        ({"partition": "5 or true"}, set()),
        ({"version": "13"}, {9}),
        ({"error": "unknown_topic_id"}, {10}),
        ({"error": "3"}, {9}),
        ({"between": f"{AT_NS + 2}-{AT_NS + 4}"}, {2, 3}),
        ({"between": "yesterday"}, set()),
        ({"took": "4-6"}, {4, 5}),
        ({"took": "4"}, set()),
        ({"took": "7-"}, {7, 8, 9, 10}),
        ({"part_of": "cursor 77"}, {5, 6}),
        ({"part_of": f"transaction {LSID}/4"}, {8}),
        ({"part_of": f"transaction {LSID}"}, set()),
        ({"part_of": "cursor 1 or true"}, set()),
        ({"about": "' or true --"}, set()),
        ({"about": '"\' or true --"'}, set()),
    ],
    ids=str,
)
def test_what_is_looked_for_is_found(source: RowsAnalysis, wanted: dict[str, str], numbers: set[int]) -> None:
    found = rows(source, exchange_query(Wanted(**wanted)))  # type: ignore[arg-type]
    assert {row["exchange_id"] for row in found} == {f"x{number}" for number in numbers}


def test_names_are_quoted_and_found_together() -> None:
    assert named_exactly("ledger", None, "orders") == '"ledger" "orders"'
    assert named_exactly(None, "") is None
    assert named_exactly('a"b', "orders") == 'a"b'
