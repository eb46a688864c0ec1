"""Transactions, refused batches and standing offsets, put together from requests on any connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import at
from tests.analyser.engine.rules.scenarios.kafka_producers import (
    OLD,
    REPLICAS,
    SERVER,
    broker,
    paid,
    payout,
    produced,
    read,
    refused,
    timed,
    together,
    told,
)
from tests.support.rows import Rows, connection_from_rows
from wirewitness.analyser.kafka.facts.producers_stage import add_producers

INIT = payout(0, "init_producer_id")
SPAN = ("producer_epoch", "outcome", "ended_by", "batches_count", "records_count", "partitions", "client_id")


def made(table: str, columns: Sequence[str], rows: Rows) -> list[tuple[Any, ...]]:
    con = connection_from_rows(rows)
    add_producers(con)
    found = con.sql(f"SELECT {', '.join(columns)} FROM {table} ORDER BY ts").fetchall()
    con.close()
    return found


def end(seconds: float, **more: Any) -> dict[str, Any]:
    return payout(seconds, "end_txn", **({"committed": True} | more))


SPANS = [
    pytest.param(
        [INIT, end(3)], [paid(1, 0), paid(2, 10, partition=1)],
        [(0, "committed", "end_txn", 2, 20, "orders-0,orders-1", "payouts-1")], id="committed",
    ),
    pytest.param(
        [INIT, end(3, committed=False)], [paid(1, 0)], [(0, "aborted", "end_txn", 1, 10, "orders-0", "payouts-1")],
        id="aborted",
    ),
    pytest.param(
        [INIT, end(3), end(6), payout(5, "add_partitions_to_txn", partitions="orders-2")], [paid(1, 0), paid(4, 20)],
        [(0, "committed", "end_txn", 1, 10, "orders-0", "payouts-1"),
         (0, "committed", "end_txn", 1, 10, "orders-0,orders-2", "payouts-1")], id="two of one epoch",
    ),
    pytest.param(
        [INIT, end(3, ts_response=None, error_code=None), end(4, flow_id="pay2")], [paid(1, 0)],
        [(0, "committed", "end_txn", 1, 10, "orders-0", "payouts-1")], id="an end that is sent again",
    ),
    pytest.param([INIT], [paid(1, 0)], [(0, "open", None, 1, 10, "orders-0", "payouts-1")], id="open"),
    pytest.param(
        [INIT, payout(5, "init_producer_id", client_id="payouts-2", answered_producer_epoch=1)], [paid(1, 0)],
        [(0, "aborted", "init_producer_id", 1, 10, "orders-0", "payouts-1")], id="another starts",
    ),
    pytest.param(
        [INIT, payout(5, "write_txn_markers", transactional_id=None, committed=False, client_id="broker-1")],
        [paid(1, 0)], [(0, "aborted", "write_txn_markers", 1, 10, "orders-0", "payouts-1")], id="the coordinator",
    ),
    pytest.param(
        [INIT, payout(1.5, "add_partitions_to_txn", partitions="orders-0", client_id="AddPartitionsManager-client-2",
                      client_address="10.1.0.101"), end(3)],
        [paid(1, 0)], [(0, "committed", "end_txn", 1, 10, "orders-0", "payouts-1")], id="a broker asks for it",
    ),
    pytest.param([INIT, end(3)], [produced(1, 0)], [], id="an end without anything"),
    pytest.param([INIT], [paid(1, 0, error_code=47)], [], id="refused"),
]  # fmt: skip


@pytest.mark.parametrize(("events", "batches", "expected"), SPANS)
def test_transactions(events: list[Any], batches: list[Any], expected: list[tuple[Any, ...]]) -> None:
    assert made("kafka_transaction_spans", SPAN, {"kafka_transactions": events, "kafka_produce_batches": batches}) == (
        expected
    )


def test_a_transaction_that_may_have_begun_earlier_has_no_begin() -> None:
    columns = ("epoch_ns(ts)", "epoch_ns(ts_started)")
    assert made("kafka_transaction_spans", columns, {"kafka_produce_batches": [paid(1, 0)]}) == [(at(1), None)]
    rows = {"kafka_produce_batches": [paid(1, 0)], "kafka_transactions": [INIT]}
    assert made("kafka_transaction_spans", columns, rows) == [(at(1), at(1))]


def test_what_became_of_a_refused_batch() -> None:
    rows = {
        "kafka_produce_batches": [
            produced(1, 0), refused(2, 10, *REPLICAS), refused(3, 10, *REPLICAS), produced(4, 10),
            refused(5, 20, *REPLICAS), produced(6, 30), produced(5.5, 20, client_id="other"),
        ],
        "kafka_partitions": [told(0, [1, 2, 3]), told(2.5, [1, 2])],
        "kafka_brokers": [broker(3)],
        "flows": SERVER,
    }  # fmt: skip
    columns = ("epoch_ns(ts)", "epoch_ns(ts_stored)", "epoch_ns(ts_accepted_before)", "epoch_ns(ts_accepted_after)",
               "sequence_before", "isr", "missing", "server_address")  # fmt: skip
    gone = ([1, 2], "3 kafka-3:9092", "10.1.0.100")
    assert made("kafka_refused_batches", columns, rows) == [
        (at(2), at(4), at(1), at(4), 10, *gone),
        (at(3), at(4), at(1), at(4), 10, *gone),
        (at(5), None, at(4), at(6), 20, *gone),
    ]


def test_behind_a_new_epoch_a_batch_is_known_by_its_first_record() -> None:
    again = produced(9, 0, producer_epoch=1, base_timestamp=1_790_000_000_010)
    rows = {"kafka_produce_batches": [refused(2, 10, 45, "OUT_OF_ORDER_SEQUENCE_NUMBER"), again]}
    assert made("kafka_refused_batches", ("epoch_ns(ts_stored)",), rows) == [(at(9),)]


@pytest.mark.parametrize("damaged", [{}, {"base_offset": 2**63 - 1, "last_offset": 2**63 - 1}])
def test_between_which_offsets_an_unanswered_batch_stands(damaged: dict[str, int]) -> None:
    """Whatever a damaged answer tells besides."""
    same = {"base_timestamp": 1_790_000_000_010, "batch_bytes": 100, "transactional": False}
    batches = [
        produced(1, 0, last_offset=1009, transactional=False),
        produced(1.5, 0, transactional=False, **{"base_offset": 1000, "last_offset": 1009, **damaged}),
        {**produced(2, 10, **same), "error_code": None, "base_offset": None, "ts_response": None},
        produced(3, 20, last_offset=1029, transactional=False),
        produced(9, 0, producer_epoch=1, base_offset=1030, **same),
    ]
    found = made("kafka_repeated_batches", ("base_offset", "again_offset"), {"kafka_produce_batches": batches})
    assert found == [(1010, 1030)]


def test_how_far_record_times_of_each_writer_are_off() -> None:
    batches = together(timed("a", 0.1), timed("b", 4000, log_append_timestamp=1), timed("c", 5, base_timestamp=-1))
    columns = ("client_id", "batches_count", "records_count", "appended_count", "later_ms", "later_high_ms")
    found = made("kafka_record_times", columns, {"kafka_produce_batches": batches})
    assert found == [("a", 10, 100, 0, 100.0, 100.0), ("b", 10, 100, 10, 4_000_000.0, 4_000_000.0)]
    near = together(timed("a", 0.1), timed("b", 200))
    assert made("kafka_record_times", columns, {"kafka_produce_batches": near}) == []


def test_without_a_producer_id_a_batch_is_twice_in_the_log_where_its_answer_came_too_late() -> None:
    batches = [
        produced(2, 10, base_offset=1010, ts_response=at(40), **OLD),
        produced(32, 10, flow="new", base_offset=1020, ts_response=at(33), **OLD),
        produced(32.1, 20, base_offset=1030, ts_response=at(33), **OLD),
    ]
    columns = ("base_offset", "again_offset", "epoch_ns(ts_response)", "flow_id", "again_flow_id")
    assert made("kafka_repeated_batches", columns, {"kafka_produce_batches": batches}) == [
        (1010, 1020, at(40), "shop", "new")
    ]


def test_an_offset_that_stands_names_its_transaction_and_readers() -> None:
    rows = {
        "kafka_transactions": [INIT],
        "kafka_produce_batches": [paid(1, 1200), paid(2, 1220)],
        "kafka_fetch_partitions": [
            *(read(n, 1200, 1210 + n) for n in (2, 3, 4)), read(5, 1260, 1260),
            read(4.5, 1200, 1214, isolation_level=0, client_id="other"), read(3.5, 1200, 1300, replica_id=2),
        ],
    }  # fmt: skip
    columns = ("last_stable_offset", "high_watermark", "transactional_id", "client_id", "readers", "fetches_count",
               "epoch_ns(ts_moved) // 1000000000 - epoch_ns(ts) // 1000000000")  # fmt: skip
    assert made("kafka_stable_offset_waits", columns, rows) == [
        (1200, 1214, "payouts", "payouts-1", "ledger-1 at 10.1.0.8", 4, 3)
    ]


def test_an_offset_that_moves_is_none() -> None:
    rows = {"kafka_fetch_partitions": [read(n / 2, 1200 + n, 1300) for n in range(9)]}
    assert made("kafka_stable_offset_waits", ("last_stable_offset",), rows) == []
