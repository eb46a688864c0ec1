"""Where a log ends and starts, by what answers tell one after the other, and the incarnations of topics."""

from __future__ import annotations

from typing import Any

import pytest

import wirewitness
from tests.analyser.engine.rules.scenarios.build import at
from tests.conftest import SAMPLES
from tests.support.rows import connection_from_rows, with_log_ends
from wirewitness.analyser.kafka.facts import log_ends
from wirewitness.analyser.kafka.facts.lag import lag_query
from wirewitness.analyser.kafka.facts.log_ends import MARKERS

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


def described(second: float, topic_id: str, source: str = "Metadata") -> tuple[str, Row]:
    return "kafka_partitions", PLACE | {"ts": at(second), "topic_id": topic_id, "source": source}


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
    con = with_log_ends(connection_from_rows(tables(told)))
    assert con.sql("SELECT arg_max(log_end_offset, ts) FROM kafka_log_ends").fetchall() == [(expected,)]


def fetched_start(second: float, start: int, **changes: Any) -> tuple[str, Row]:
    return fetched(second, 100, log_start_offset=start, **changes)


def cut(second: float, change: str, **changes: Any) -> tuple[str, Row]:
    return "kafka_admin_changes", {
        "ts": at(second), "cluster_id": "c1", "operation": "DeleteRecords", "resource_type": "topic",
        "resource_name": "payments", "change": f"delete records {change}", "error_code": 0, **changes,
    }  # fmt: skip


# In: answers. Out: ts, incarnation, log_end_offset, log_start_offset, ts_last, source of each step.
STEPS: dict[str, tuple[list[tuple[str, Row]], list[tuple[Any, ...]]]] = {
    "a response that repeats it is no step": (
        [fetched(1, 56), fetched(2, 56), fetched(3, 57)],
        [(1, 1, 56, None, 2, "Fetch"), (3, 1, 57, None, 3, "Fetch")],
    ),
    "but the first of each minute is": (
        [fetched(1, 56), fetched(61, 56), fetched(62, 56)],
        [(1, 1, 56, None, 1, "Fetch"), (61, 1, 56, None, 62, "Fetch")],
    ),
    "a lower end for less than ten seconds": (
        [fetched(1, 56), fetched(2, 50), produced(3, 60)],
        [(1, 1, 56, None, 2, "Fetch"), (3, 1, 60, None, 3, "Produce")],
    ),
    "cut by an unclean election": (
        [fetched(1, 56), fetched(30, 50)],
        [(1, 1, 56, None, 1, "Fetch"), (30, 1, 50, None, 30, "Fetch")],
    ),
    "the start moves up and never back": (
        [fetched_start(1, 0), fetched_start(2, 40), fetched_start(3, 10)],
        [(1, 1, 100, 0, 1, "Fetch"), (2, 1, 100, 40, 3, "Fetch")],
    ),
    "the earliest offset of a ListOffsets": (
        [fetched(1, 56), listed(2, 7, timestamp=-2)],
        [(1, 1, 56, None, 1, "Fetch"), (2, 1, 56, 7, None, "ListOffsets")],
    ),
    "an offset by time is neither": ([fetched(1, 56), listed(2, 7, timestamp=5)], [(1, 1, 56, None, 1, "Fetch")]),
    "records deleted": (
        [fetched(1, 56), cut(2, "0<30,1<9")],
        [(1, 1, 56, None, 1, "Fetch"), (2, 1, 56, 30, None, "DeleteRecords")],
    ),
    "records not deleted": (
        [fetched(1, 56), cut(2, "0<30", error_code=1), cut(3, "0<30", validate_only=True), cut(4, "0<-1")],
        [(1, 1, 56, None, 1, "Fetch")],
    ),
    "a new topic begins without both": (
        [described(0, "id1"), fetched_start(1, 40), described(3, "id2"), fetched(4, 7)],
        [(1, 1, 100, 40, 1, "Fetch"), (4, 2, 7, None, 4, "Fetch")],
    ),
    "a late response of the topic before": (
        [described(0, "id1"), described(3, "id2"), fetched(4, 7), fetched(5, 100, topic_id="id1")],
        [(4, 2, 7, None, 4, "Fetch")],
    ),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("at_a_time", [1 << 20, 1])
def test_steps(monkeypatch: pytest.MonkeyPatch, name: str, at_a_time: int) -> None:
    told, expected = STEPS[name]
    monkeypatch.setattr(log_ends, "STEP_ROWS", at_a_time)
    con = with_log_ends(connection_from_rows(tables(told)))
    found = con.sql("""
        SELECT epoch_ns(ts), incarnation, log_end_offset, log_start_offset, epoch_ns(ts_last), source
        FROM kafka_log_ends WHERE partition = 0 ORDER BY ts""").fetchall()
    times = [(at(row[0]), *row[1:4], None if row[4] is None else at(row[4]), row[5]) for row in expected]
    assert found == times


def deleted(second: float, **changes: Any) -> tuple[str, Row]:
    return "kafka_admin_changes", {
        "ts": at(second), "cluster_id": "c1", "operation": "DeleteTopics", "resource_type": "topic",
        "resource_name": "payments", "change": "delete", "error_code": 0, **changes,
    }  # fmt: skip


# In: what was told. Out: ts, incarnation, topic_id, ts_from, ts_until, started_by.
TOPICS: dict[str, tuple[list[tuple[str, Row]], list[tuple[Any, ...]]]] = {
    "one id": ([described(1, "id1"), described(5, "id1")], [(1, 1, "id1", None, None, None)]),
    "another id": (
        [described(1, "id1"), described(5, "id2")],
        [(1, 1, "id1", None, 5, None), (5, 2, "id2", 5, None, "Metadata")],
    ),
    "another id, by who created it": (
        [described(1, "id1"), described(5, "id2", "CreateTopics"), described(6, "id2")],
        [(1, 1, "id1", None, 5, None), (5, 2, "id2", 5, None, "CreateTopics")],
    ),
    "deleted and made anew": (
        [described(1, "id1"), deleted(3), described(5, "id2")],
        [(1, 1, "id1", None, 3, None), (5, 2, "id2", 3, None, "DeleteTopics")],
    ),
    "deleted": (
        [described(1, "id1"), deleted(3)],
        [(1, 1, "id1", None, 3, None), (3, 2, None, 3, None, "DeleteTopics")],
    ),
    "deleted before anything told its id": ([deleted(3)], [(3, 2, None, 3, None, "DeleteTopics")]),
    "not deleted": ([described(1, "id1"), deleted(3, error_code=29)], [(1, 1, "id1", None, None, None)]),
}


@pytest.mark.parametrize("name", TOPICS)
def test_incarnations_of_a_topic(name: str) -> None:
    told, expected = TOPICS[name]
    con = with_log_ends(connection_from_rows(tables(told)))
    found = con.sql("""
        SELECT epoch_ns(ts), incarnation, topic_id, epoch_ns(ts_from), epoch_ns(ts_until), started_by
        FROM kafka_topics ORDER BY incarnation""").fetchall()
    assert con.sql("SELECT * FROM kafka_topics WHERE (topic_id IS NULL) <> (named_by IS NULL)").fetchall() == []
    assert found == [
        (at(ts), number, topic_id, *(None if one is None else at(one) for one in (since, until)), started_by)
        for ts, number, topic_id, since, until, started_by in expected
    ]


@pytest.mark.parametrize(("sample", "least"), [("kafka_healthy", 30), ("kafka_cluster", 20)])
def test_the_next_batch_begins_behind_the_marker(sample: str, least: int) -> None:
    with wirewitness.read(SAMPLES / f"{sample}.pcapng") as capture:
        for table in ("kafka_produce_batches", "kafka_transactions"):
            capture.arrow(table)
        found = capture.connection.sql(f"""
            SELECT ends.log_end, (SELECT arg_min(base_offset, ts) FROM kafka_produce_batches AS batches
                                  WHERE batches.topic = ends.topic AND batches.partition = ends.partition
                                      AND error_code = 0 AND epoch_ns(batches.ts) > ends.at_ns) AS next
            FROM ({MARKERS}) AS ends
            WHERE next IS NOT NULL""").fetchall()
    assert len(found) >= least
    assert [end for end, _ in found] == [begin for _, begin in found]


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
    con = with_log_ends(connection_from_rows(tables(told)))
    found = con.sql(f"SELECT committed_offset, log_end_offset, lag FROM ({lag_query()})").fetchall()
    assert found == [expected]
