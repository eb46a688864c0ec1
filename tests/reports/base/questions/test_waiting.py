"""Requests that ask the server to wait: they keep what latency_ms says of them, and no percentile counts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.reports.base.questions.apis import operations_of
from wirewitness.reports.base.questions.operations import operations
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.base.questions.timelines import latency_over_time, percentiles_over_time
from wirewitness.reports.protocols.kafka.questions.topics import CLIENTS

MINUTE_NS = 60_000_000_000
WAITING = {"Fetch", "JoinGroup", "SyncGroup"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Analysis]:
    with wirewitness.read(SAMPLES / "kafka_fenced_commit.pcapng") as analysis:
        yield analysis


def test_only_what_asks_to_wait_is_awaitable(kafka: Analysis) -> None:
    asked = rows(kafka, "select operation, count(*) filter (awaitable) as n from exchanges group by 1 having n > 0")
    assert {row["operation"] for row in asked} == WAITING


def test_how_long_they_waited_stays_to_be_read(kafka: Analysis) -> None:
    (fetches,) = rows(kafka, """
        select count(*) as answered, count(latency_ms) as timed, max(latency_ms) as most_ms from exchanges
        where operation = 'Fetch' and awaitable and ts_response is not null""")  # fmt: skip
    assert 0 < fetches["answered"] == fetches["timed"]
    assert fetches["most_ms"] > 200


def test_a_hello_that_waits_for_news_has_no_latency() -> None:
    with wirewitness.read(SAMPLES / "mongo_compressed.pcapng") as mongo:
        (hellos,) = rows(mongo, """
            select count(*) as n, count(latency_ms) as timed from exchanges where awaitable""")  # fmt: skip
        assert hellos["n"] > 0 == hellos["timed"]


def test_operations_count_them_without_latency(kafka: Analysis) -> None:
    told = {one.operation: one for one in operations(kafka)}
    assert told["Fetch"].exchanges == told["Fetch"].waiting > 0
    assert (told["Fetch"].median_ms, told["Fetch"].p99_ms, told["Fetch"].max_ms) == (None, None, None)
    assert told["Heartbeat"].waiting == 0
    assert told["Heartbeat"].median_ms is not None
    for row in rows(kafka, operations_of("kafka")):
        one = told[row["operation"]]
        assert (row["exchanges"], row["waiting"], row["median_ms"], row["max_ms"]) == (
            one.exchanges, one.waiting, one.median_ms, one.max_ms
        )  # fmt: skip


def test_clients_and_times_leave_them_out(kafka: Analysis) -> None:
    (short,) = rows(kafka, """
        select count(*) as n, max(latency_ms) as ms from exchanges
        where awaitable is not true and latency_ms is not null""")  # fmt: skip
    assert max(row["p99_ms"] or 0 for row in rows(kafka, CLIENTS)) <= short["ms"]
    assert sum(cell["exchanges"] for cell in latency_over_time(kafka, MINUTE_NS)) == short["n"]
    assert sum(row["exchanges"] for row in percentiles_over_time(kafka, MINUTE_NS)) == short["n"]


def test_an_operation_that_one_asks_for_shows_how_long_they_waited(kafka: Analysis) -> None:
    fetches = "operation = 'Fetch'"
    assert latency_over_time(kafka, MINUTE_NS, fetches) == percentiles_over_time(kafka, MINUTE_NS, fetches) == []
    assert latency_over_time(kafka, MINUTE_NS, fetches, waits=True)
    assert percentiles_over_time(kafka, MINUTE_NS, fetches, waits=True)
