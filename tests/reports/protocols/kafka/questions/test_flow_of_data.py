"""Transactions and the time from a producer to its readers, from plain rows."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.kafka_producers import paid, payout, produced, read
from tests.support.rows import Rows, connection_from_rows
from wirewitness.analyser.kafka.facts.producers_stage import add_producers
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS


def shown(command: str, flag: str, rows: Rows, *columns: str, **chosen: Any) -> list[tuple[Any, ...]]:
    con = connection_from_rows(rows)
    add_producers(con)
    found = con.sql(f"select {', '.join(columns)} from ({view_sql(VIEWS[command][flag], **chosen)})").fetchall()
    con.close()
    return found


def answered(seconds: float, following: int | None, **more: Any) -> dict[str, Any]:
    """An answer that leads to this offset, 2 ms after its request."""
    return read(seconds, 1000, 1100, next_offset=following, group_id="ledger", **more)


def test_latency_counts_from_the_produce_to_the_answer_that_brings_the_batch() -> None:
    rows = {
        "kafka_produce_batches": [
            produced(1, 0, base_offset=1000, last_offset=1009),
            produced(2, 10, base_offset=1010, last_offset=1019),
            produced(3, 20, base_offset=1020, last_offset=1029),
            produced(3.5, 30, base_offset=-1, last_offset=None, error_code=19),
        ],
        "kafka_fetch_partitions": [
            answered(1.5, 1010), answered(1.6, None), answered(4, 1020), answered(5, 1020),
            answered(2.5, 1020, replica_id=2),
        ],
    }  # fmt: skip
    columns = ("topic", "group_id", "client_id", "batches", "records", "median_ms", "most_ms", "unread")
    assert shown("topics", "latency", rows, *columns) == [("orders", "ledger", None, 2, 20, 1252.0, 2002.0, 10)]


def test_readers_without_a_group_are_clients() -> None:
    rows = {
        "kafka_produce_batches": [produced(1, 0, base_offset=1000, last_offset=1009)],
        "kafka_fetch_partitions": [
            answered(2, 1010, client_id="a") | {"group_id": None},
            answered(3, 1010, client_id="b") | {"group_id": None},
        ],
    }  # fmt: skip
    assert shown("topics", "latency", rows, "group_id", "client_id", "most_ms") == [
        (None, "b", 2002.0),
        (None, "a", 1002.0),
    ]


def test_transactions_say_how_long_they_were_open() -> None:
    rows = {
        "kafka_transactions": [payout(0, "init_producer_id"), payout(3, "end_txn", committed=True)],
        "kafka_produce_batches": [paid(1, 0), paid(4, 20)],
        "kafka_fetch_partitions": [read(9, 20, 30)],
    }
    columns = ("transactional_id", "client_id", "outcome", "open_ms", "records_count")
    assert shown("clients", "transactions", rows, *columns) == [
        ("payouts", "payouts-1", "committed", 2002.0, 10),
        ("payouts", "payouts-1", "open", 5002.0, 10),
    ]
    assert shown("clients", "transactions", rows, *columns, column="client_id", names=("other",)) == []
