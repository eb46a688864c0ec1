"""A partition that is paused: its owner fetches the others over the same connection, and not this one, though records
wait. What looks alike says nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.why.asking import Asking
from wirewitness.reports.protocols.kafka.why.partition import partition_causes, partition_link
from wirewitness.reports.protocols.kafka.why.paused import PAUSED, paused_causes, paused_link

SECOND = 1_000_000_000
SPOT = {"cluster_id": "c", "topic": "orders", "partition": 3, "group_id": "billing"}
STAND = {**SPOT, "committed_offset": 100, "log_end_offset": 160, "lag": 60, "time_lag_ms": 30_000.0}
CLIENT = {"client_id": "bill-a", "client_address": "10.0.0.1", "flow_id": "own", "cluster_id": "c"}
END = 40 * SECOND
Tables = dict[str, list[dict[str, Any]]]


def fetch(at_s: float, partition: int, **more: Any) -> dict[str, Any]:
    return {
        **CLIENT, "exchange_id": f"own-c-{at_s}", "ts": int(at_s * SECOND), "topic": "orders", "partition": partition,
        "group_id": "billing", "replica_id": -1, "error_code": 0, "file": "a.pcap", "request_packet": round(at_s * 10),
        **more,
    }  # fmt: skip


def paused() -> Tables:
    """Partition 3 is read up to 100 until 10 s; partition 4 is read until the end; 3 is written to all the time."""
    flow = {"server_address": "10.0.0.9", "server_port": 9092, "ts_first": 0, "ts_last": END, "bytes_to_server": 1,
            "bytes_to_client": 1, "handshake_seen": True}  # fmt: skip
    return {
        "captures": [{"file": "a.pcap", "ts_first": 0, "ts_last": END}],
        "flows": [flow | {"flow_id": "own", "client_address": "10.0.0.1"},
                  flow | {"flow_id": "writes", "client_address": "10.0.0.5"}],
        "kafka_fetch_partitions": [
            *(fetch(at / 2, 3, next_offset=80 + at, records_bytes=10) for at in range(21)),
            *(fetch(at / 2 + 0.1, 4, next_offset=at, records_bytes=10) for at in range(79)),
        ],
        "kafka_produce_batches": [
            {"exchange_id": f"writes-{at}", "flow_id": "writes", "ts": at * SECOND, "cluster_id": "c",
             "topic": "orders", "partition": 3, "error_code": 0, "base_offset": 80 + 2 * at, "records_count": 2}
            for at in range(40)
        ],
        "kafka_log_ends": [
            {"ts": at * SECOND, "cluster_id": "c", "topic": "orders", "partition": 3, "incarnation": 1,
             "log_end_offset": 82 + 2 * at, "source": "Produce"}
            for at in range(40)
        ],
        "kafka_ownership": [
            {**SPOT, "client_id": "bill-a", "client_address": "10.0.0.1", "member_id": "m", "generation": 1, "ts": 0,
             "shared": False, "source": "SyncGroup"}
        ],
    }  # fmt: skip


def link(tables: Tables, stand: dict[str, Any] = STAND) -> Any:
    return paused_link(Asking(RowsAnalysis(tables)), stand, END)


def test_a_paused_partition_is_told_with_what_shows_it() -> None:
    found = link(paused())
    assert found.kind == PAUSED
    assert "bill-a@10.0.0.1 read it up to 100, and fetched it last 30.0 s before the end" in found.what
    assert "Fetches for 1 other partition went over the same connection and none for this one" in found.what
    assert (found.sure, found.assumption) == ("fact", "")
    assert "paused the partition" in (paused_causes(Asking(RowsAnalysis({})), found).end or "")


def test_it_stands_among_the_causes_of_the_partition() -> None:
    ask = Asking(RowsAnalysis(paused()))
    causes = partition_causes(ask, partition_link(STAND))
    assert [one.kind for one in causes.links][:1] == [PAUSED]


def test_without_an_assignment_that_is_an_assumption() -> None:
    found = link(paused() | {"kafka_ownership": []})
    assert (found.sure, found.assumption) == ("medium", "that it is still assigned to this member")


def only(name: str, keep: Callable[[dict[str, Any]], bool]) -> Callable[[Tables], Tables]:
    return lambda tables: tables | {name: [row for row in tables[name] if keep(row)]}


def changed(name: str, **values: Any) -> Callable[[Tables], Tables]:
    return lambda tables: tables | {name: [row | values for row in tables[name]]}


ALIKE: dict[str, Callable[[Tables], Tables]] = {
    "nothing is read any more": only("kafka_fetch_partitions", lambda row: row["ts"] < 11 * SECOND),
    "others go over another connection": lambda tables: tables | {
        "kafka_fetch_partitions": [row | {"flow_id": "own" if row["partition"] == 3 else "writes"}
                                   for row in tables["kafka_fetch_partitions"]]},
    "nothing more is there": only("kafka_log_ends", lambda row: row["log_end_offset"] <= 100),
    "more came at the very end": only(
        "kafka_log_ends", lambda row: row["log_end_offset"] <= 100 or row["ts"] >= 38 * SECOND),
    "another broker may lead it": only("kafka_produce_batches", lambda row: row["ts"] < 10 * SECOND),
    "somebody else has it": changed("kafka_ownership", client_id="bill-b"),
    "it was taken away": changed("kafka_ownership", ts_end=12 * SECOND),
    "a transaction is open": lambda tables: tables | {"kafka_stable_offset_waits": [
        {"exchange_id": "t", "ts": 10 * SECOND, "cluster_id": "c", "topic": "orders", "partition": 3,
         "last_stable_offset": 100, "high_watermark": 160}]},
    "it is read on": lambda tables: tables | {"kafka_fetch_partitions": [
        *tables["kafka_fetch_partitions"], fetch(39.5, 3, next_offset=150)]},
}  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
def test_what_looks_alike_is_none(name: str) -> None:
    assert link(ALIKE[name](paused())) is None


def test_a_partition_without_lag_is_none() -> None:
    assert link(paused(), STAND | {"lag": 0}) is None
