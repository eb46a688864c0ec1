"""Where a log ends, by what Fetch, ListOffsets and Produce tell, one answer after the other."""

from __future__ import annotations

from typing import Any

import pytest

import wirewitness
from tests.analyser.engine.rules.scenarios.build import at
from tests.conftest import SAMPLES
from tests.support.rows import connection_from_rows
from wirewitness.analyser.kafka.facts.lag import lag_query
from wirewitness.analyser.kafka.facts.log_ends import END_TABLES, MARKERS, log_end_query

Row = dict[str, Any]
PLACE = {"cluster_id": "c1", "topic": "payments", "partition": 0}


def fetched(second: float, end: int, **changes: Any) -> tuple[str, Row]:
    return "kafka_fetch_partitions", PLACE | {"ts": at(second), "high_watermark": end, **changes}


def listed(second: float, end: int, **changes: Any) -> tuple[str, Row]:
    asked = {"timestamp": -1, "offset": end, "isolation_level": 0, "replica_id": -1}
    return "kafka_list_offsets", PLACE | asked | {"ts": at(second), **changes}


def produced(second: float, end: int, **changes: Any) -> tuple[str, Row]:
    batch = {"base_offset": end - 5, "records_count": 5, "acks": -1, "error_code": 0}
    return "kafka_produce_batches", PLACE | batch | {"ts": at(second), **changes}


def described(second: float, topic_id: str) -> tuple[str, Row]:
    return "kafka_partitions", PLACE | {"ts": at(second), "topic_id": topic_id}


def committed(second: float, offset: int) -> tuple[str, Row]:
    return "kafka_offset_commits", PLACE | {
        "ts": at(second), "api": "OffsetCommit", "group_id": "g", "committed_offset": offset, "error_code": 0,
    }  # fmt: skip


def written(second: float, end: int, producer: int = 7, **changes: Any) -> tuple[str, Row]:
    in_transaction = {"transactional": True, "producer_id": producer, "producer_epoch": 0, "ts_response": at(second)}
    return produced(second, end, **in_transaction | changes)


def ended(second: float, producer: int = 7, event: str = "end_txn", **changes: Any) -> tuple[str, Row]:
    return "kafka_transactions", {
        "ts": at(second), "ts_response": at(second + 0.01), "cluster_id": "c1", "event": event,
        "producer_id": producer, "producer_epoch": 0, "error_code": 0, **changes,
    }  # fmt: skip


def tables(told: list[tuple[str, Row]]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for table, row in told:
        found.setdefault(table, []).append(row)
    return found


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([fetched(1, 56), produced(2, 648)], 648),
        ([fetched(1, 56), produced(2, 648, acks=1), produced(2, 700, acks=0)], 56),
        ([fetched(1, 56), produced(2, 648, error_code=7), produced(3, 700, error_code=None)], 56),
        ([produced(1, 648), fetched(2, 640)], 648),
        ([fetched(1, 56), listed(2, 139)], 139),
        ([fetched(1, 56), listed(2, 139, isolation_level=1), listed(2, 140, replica_id=2)], 56),
        ([listed(2, 139, isolation_level=None, replica_id=None)], 139),
        ([fetched(1, 648), fetched(2, 60), fetched(9, 61)], 648),
        ([fetched(1, 648), fetched(2, 60), fetched(11.5, 61)], 61),
        ([fetched(1, 648), fetched(300, 60)], 60),
        ([fetched(1, 648), fetched(5, 60, replica_id=2)], 648),
        ([described(0, "id1"), fetched(1, 648), described(3, "id2"), fetched(4, 7)], 7),
        (
            [described(0, "id1"), fetched(1, 648), described(3, "id2"), fetched(4, 700, topic_id="id1"), fetched(5, 7)],
            7,
        ),
        ([described(0, "id1"), fetched(1, 648), described(3, "id1"), fetched(4, 7)], 648),
        ([described(0, "id1"), fetched(1, 648), described(3, "id2")], 648),
        ([written(1, 648), ended(2)], 649),
        ([written(1, 640), written(1.5, 648), ended(2), written(3, 654), ended(4)], 655),
        ([written(1, 648), ended(2), fetched(3, 649)], 649),
        ([written(1, 648), ended(2, error_code=51), ended(3, error_code=None)], 648),
        ([written(1, 648), ended(2), ended(2.1), ended(2.2, event="write_txn_markers")], 649),
        ([written(1, 648), ended(2, event="write_txn_markers", producer_epoch=1)], 649),
        ([written(1, 640), written(1.1, 648, 8), ended(2), ended(3, 8)], 650),
        ([written(1, 648), ended(2, producer=9), ended(2, producer_epoch=4)], 648),
        ([produced(1, 648), ended(2)], 648),
        ([written(1, 648, ts_response=at(5)), ended(2)], 649),
        (
            [produced(1, 648), produced(2, 0, base_offset=2**63 - 1), written(2, 0, base_offset=2**63 - 1), ended(3)],
            648,
        ),
    ],
    ids=[
        "a batch that all replicas have",
        "batches that one replica or none confirmed",
        "batches refused or unanswered",
        "a follower is behind",
        "a list of latest offsets",
        "decided transactions only, a replica's own end",
        "old versions of the request",
        "a lower end for less than ten seconds",
        "a lower end for longer: the log was cut",
        "a lower end long after",
        "replicas' fetches",
        "made anew: it begins again",
        "a late answer of the topic before",
        "the same topic described again",
        "made anew, and nothing told of it",
        "the marker of a transaction",
        "each transaction has one",
        "a fetch sees it too",
        "an end that was refused or not answered",
        "asked for again, and written by another broker",
        "only the brokers' own request is seen",
        "two at once",
        "the end of another one",
        "no transaction",
        "its answer comes after the end was asked for",
        "damaged answers: no number holds the end of such a batch",
    ],
)
def test_the_log_end(told: list[tuple[str, Row]], expected: int) -> None:
    con = connection_from_rows(tables(told))
    assert con.sql(f"SELECT log_end FROM ({log_end_query()})").fetchall() == [(expected,)]


@pytest.mark.parametrize(("sample", "least"), [("kafka_healthy", 30), ("kafka_cluster", 20)])
def test_the_next_batch_begins_behind_the_marker(sample: str, least: int) -> None:
    with wirewitness.read(SAMPLES / f"{sample}.pcapng") as capture:
        for table in END_TABLES:
            capture.arrow(table)
        found = capture.connection.sql(f"""
            SELECT ends.log_end, (SELECT arg_min(base_offset, ts) FROM kafka_produce_batches AS batches
                                  WHERE batches.topic = ends.topic AND batches.partition = ends.partition
                                      AND error_code = 0 AND epoch_ns(batches.ts) > ends.at_ns) AS next
            FROM ({MARKERS}) AS ends(cluster, topic, topic_id, partition, ts, at_ns, log_end)
            WHERE next IS NOT NULL""").fetchall()
    assert len(found) >= least
    assert [end for end, _ in found] == [begin for _, begin in found]


def test_the_time_of_the_newest_answer_goes_with_it() -> None:
    con = connection_from_rows(tables([produced(1, 648), fetched(2, 640)]))
    assert con.sql(f"SELECT log_end, end_ns FROM ({log_end_query()})").fetchall() == [(648, at(2))]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            [described(0, "id1"), fetched(1, 648), committed(1, 600), described(3, "id2"), fetched(4, 7)],
            (None, 7, None),
        ),
        ([described(0, "id1"), fetched(1, 648), described(3, "id2"), committed(4, 2)], (2, None, None)),
        ([described(0, "id1"), fetched(1, 648), described(3, "id2"), fetched(4, 7), committed(4, 2)], (2, 7, 5)),
        ([described(0, "id1"), fetched(1, 648), committed(1, 600), described(3, "id1")], (600, 648, 48)),
    ],
    ids=["its offsets went with the topic", "only the old one's end is known", "both are new", "not made anew"],
)
def test_lag_of_a_topic_made_anew(told: list[tuple[str, Row]], expected: tuple[int | None, ...]) -> None:
    con = connection_from_rows(tables(told))
    found = con.sql(f"SELECT committed_offset, log_end_offset, lag FROM ({lag_query()})").fetchall()
    assert found == [expected]
