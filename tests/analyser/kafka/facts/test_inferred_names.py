"""Names of topic ids that nothing names: only what fits alone is believed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import at
from tests.support.rows import connection_from_rows
from wirewitness.analyser.kafka.facts.inferred_names import Inferred, inferred_names, naming_remarks

Row = dict[str, Any]
ME = {"client_id": "app", "client_address": "10.0.0.1", "partition": 0}
COMMITS, FETCHES, BATCHES = "kafka_offset_commits", "kafka_fetch_partitions", "kafka_produce_batches"


def reads(topic_id: str, *ends: int, **changes: Any) -> list[tuple[str, Row]]:
    """Fetches by id, one a second: each goes on where the last one ended."""
    return [
        (FETCHES, ME | {"ts": at(second), "ts_response": at(second + 0.1), "topic_id": topic_id, "fetch_offset": before,
                        "next_offset": end, "high_watermark": end} | changes)
        for second, (before, end) in enumerate(zip((None, *ends), ends, strict=False))
    ]  # fmt: skip


def stores(topic: str, *offsets: int, **changes: Any) -> list[tuple[str, Row]]:
    return [
        (COMMITS, ME | {"ts": at(second + 0.5), "api": "OffsetCommit", "group_id": "g", "topic": topic,
                        "committed_offset": offset, "error_code": 0} | changes)
        for second, offset in enumerate(offsets)
    ]  # fmt: skip


def begins(topic: str, topic_id: str, *offsets: int, at_offset: int | None = None) -> list[tuple[str, Row]]:
    """Offsets that it is told by name, one a second, each where its next fetch by id begins, or at `at_offset`."""
    return [
        row
        for second, offset in enumerate(offsets)
        for row in (
            ("kafka_offset_fetches", ME | {"ts": at(second), "ts_response": at(second + 0.1), "topic": topic,
                                           "committed_offset": offset, "error_code": 0}),
            (FETCHES, ME | {"ts": at(second + 0.2), "topic_id": topic_id,
                            "fetch_offset": offset if at_offset is None else at_offset}),
        )
    ]  # fmt: skip


def writes(topic: str, *ends: int, size: int = 5) -> list[tuple[str, Row]]:
    """Batches by name, each between the fetches of two seconds."""
    return [
        (BATCHES, {"ts": at(second + 0.4), "ts_response": at(second + 0.5), "topic": topic, "partition": 0, "acks": -1,
                   "base_offset": end - size, "records_count": size, "error_code": 0})
        for second, end in enumerate(ends)
    ]  # fmt: skip


def inferred(*told: list[tuple[str, Row]], named: dict[str, str] | None = None) -> dict[str, str]:
    tables: dict[str, list[Row]] = {}
    for rows in told:
        for table, row in rows:
            tables.setdefault(table, []).append(row)
    found = inferred_names(connection_from_rows(tables), named or {})
    return {topic_id: name.topic for topic_id, name in found.items()}


ENDS = (10, 25, 31, 48, 60, 77)
BATCH_ENDS = (10, 15, 20, 25, 30, 35, 40)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([reads("id1", *ENDS), stores("orders", *ENDS)], {"id1": "orders"}),
        ([reads("id1", *ENDS), stores("orders", *ENDS[:4])], {}),
        ([reads("id1", *ENDS), stores("orders", *ENDS, client_address="10.0.0.2")], {}),
        ([reads("id1", *ENDS), stores("orders", *ENDS, partition=3)], {}),
        ([reads("id1", *ENDS), stores("orders", *(one + 1 for one in ENDS))], {}),
        ([reads("id1", *ENDS), stores("orders", *ENDS[:5], 59)], {}),
        ([reads("id1", *ENDS), reads("id2", *ENDS), stores("orders", *ENDS)], {}),
        ([reads("id1", *ENDS), stores("orders", *ENDS), stores("payments", *ENDS)], {}),
        ([reads("id1", *ENDS), stores("orders", *ENDS), stores("payments", 25, 900)], {"id1": "orders"}),
        ([reads("id1", *ENDS), stores("orders", *(0 for _ in ENDS))], {}),
        ([reads("id1", *ENDS, replica_id=2), stores("orders", *ENDS)], {}),
        ([begins("orders", "id1", 28, 90, 120)], {"id1": "orders"}),
        ([begins("orders", "id1", 28, 28, 90)], {}),
        ([begins("orders", "id1", 28, 90, 120, at_offset=300)], {}),
        ([begins("orders", "id1", 28, 90, 120), begins("orders", "id2", 28, 90, 120)], {}),
        ([begins("orders", "id1", 28, 90, 120), begins("payments", "id1", 28, 90, 120)], {}),
        ([reads("id1", *BATCH_ENDS), writes("orders", *BATCH_ENDS[1:])], {"id1": "orders"}),
        ([reads("id1", *BATCH_ENDS), writes("orders", *BATCH_ENDS[1:], 2**63 + 4)], {"id1": "orders"}),
        ([reads("id1", *BATCH_ENDS), writes("orders", *BATCH_ENDS[1:5])], {}),
        ([reads("id1", *BATCH_ENDS), writes("orders", *BATCH_ENDS[1:-1], 43)], {}),
        ([reads("id1", *BATCH_ENDS), writes("orders", *BATCH_ENDS[1:]), writes("audit", *BATCH_ENDS[1:])], {}),
        ([reads("id1", *BATCH_ENDS), reads("id2", *BATCH_ENDS), writes("orders", *BATCH_ENDS[1:])], {}),
        ([reads("id1", *BATCH_ENDS), writes("orders", *BATCH_ENDS[1:]), stores("audit", *BATCH_ENDS)], {}),
    ],
    ids=[
        "committed what it fetched",
        "too few",
        "another client committed",
        "another partition",
        "always one more",
        "one of six is no position of it",
        "two ids fit",
        "two names fit",
        "another name fits here and there",
        "nothing but zeros",
        "a broker replicates",
        "it begins where it was told",
        "one offset told twice is one",
        "it begins elsewhere",
        "two ids begin there",
        "two names were told alike",
        "batches between the ends",
        "a damaged answer: no number holds the end of its batch",
        "too few batches",
        "a batch that its log never had",
        "an application writes to two topics alike",
        "two ids with equal ends",
        "producers and consumers contradict",
    ],
)
def test_inferred(told: list[list[tuple[str, Row]]], expected: dict[str, str]) -> None:
    assert inferred(*told) == expected


def test_a_name_that_has_an_id_is_given_to_no_other() -> None:
    told = reads("id1", *ENDS), stores("orders", *ENDS)
    assert inferred(*told, named={"id0": "orders"}) == {}


def test_what_is_said_of_names() -> None:
    said = naming_remarks({"id1": Inferred("orders", "6 of 6 offsets fit")}, {"id3", "id2"})
    assert said == [
        "topic id id1 is taken for orders: 6 of 6 offsets fit",
        "2 topic ids without a name: id2, id3; --topic-id NAME=ID gives one",
    ]
    assert naming_remarks({}, ()) == []
