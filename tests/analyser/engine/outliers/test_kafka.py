"""What stands out in Kafka: given rows, the lines; each kind of incident with a near miss that has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.analyser.engine.outliers.lines import Rows, at, said
from tests.analyser.engine.outliers.lines import exchange as _exchange


def exchange(number: int, client: str, operation: str, second: float, **more: Any) -> dict[str, Any]:
    return _exchange(number, client, operation, second, protocol="kafka", **more)


def commits(partition: int, offsets: list[int], ends: list[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Offsets of group g that were stored second by second, and where the log ended then."""
    for step, (offset, end) in enumerate(zip(offsets, ends, strict=True), 1):
        place = {"ts": at(step), "ts_response": at(step), "topic": "t", "partition": partition}
        own = place | {"group_id": "g", "committed_offset": offset, "exchange_id": f"f-c-{partition}-{step}"}
        yield "kafka_offset_commits", own | {"error_code": 0, "log_end_offset": end}
        yield "kafka_log_ends", {"ts": at(step), "topic": "t", "partition": partition, "log_end_offset": end}


def table_of(*told: Iterator[tuple[str, dict[str, Any]]]) -> Rows:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in told:
        for name, row in each:
            found.setdefault(name, []).append(row)
    return found


MOVING = [*range(0, 1000, 100)]
STUCK = table_of(*(commits(n, MOVING, MOVING) for n in range(5)), commits(5, [0, 0, 0], [300, 600, 900]))
EVEN = table_of(*(commits(n, MOVING, [offset + 3 for offset in MOVING]) for n in range(6)))

STOPPED = {
    **table_of(commits(0, [*range(0, 110, 10)], [*range(0, 110, 10)])),
    "kafka_members": [{"ts": at(0), "group_id": "g", "ended": "active"}],
}
STOPPED["kafka_log_ends"] += [{"ts": at(51), "topic": "t", "partition": 0, "log_end_offset": 500}]


def growing(lags: list[int]) -> Rows:
    offsets = [*range(len(lags))]
    return table_of(commits(0, offsets, [offset + lag for offset, lag in zip(offsets, lags, strict=True)]))


def fetch_range(number: int, offset: int, **more: Any) -> dict[str, Any]:
    return {"exchange_id": f"f-c-{number}", "ts": at(number), "ts_last": at(number), "topic": "t", "client_id": "c",
            "client_address": "a", "group_id": "g", "partition": 0, "first_offset": offset, "records_count": 10,
            "next_offset": offset + 10} | more  # fmt: skip


def fetch(number: int, offset: int, client: str = "c", partition: int = 0, **more: Any) -> dict[str, Any]:
    return {"exchange_id": f"f-{client}-{number}", "ts": at(number), "ts_response": at(number) + 10**6, "topic": "t",
            "client_id": client, "client_address": "a", "partition": partition, "fetch_offset": offset,
            "records_count": 10, "next_offset": offset + 10, "replica_id": -1} | more  # fmt: skip


def batch(number: int, client: str = "p", **more: Any) -> dict[str, Any]:
    return {
        "exchange_id": f"f-{client}-{number}",
        "ts": at(number),
        "ts_response": at(number) + 10**6,
        "topic": "t",
        "client_id": client,
        "client_address": "a",
        "partition": 0,
        "error_code": 0,
        "records_count": 10,
        "acks": 1,
        "base_timestamp": at(number) // 10**6,
        "batch_bytes": 100 + number,
        "producer_id": -1,
    } | more


def join(number: int, generation: int) -> dict[str, Any]:
    return {"exchange_id": f"f-j-{number}", "ts": at(number), "event": "join", "error_code": 0, "group_id": "g",
            "client_id": "c", "client_address": "a", "generation": generation}  # fmt: skip


def committed(number: int, **more: Any) -> dict[str, Any]:
    return {"exchange_id": f"f-c-{number}", "ts": at(number), "group_id": "g", "topic": "t", "partition": 0,
            "client_id": "c", "client_address": "a", "kind": "commit"} | more  # fmt: skip


def writer(number: int, **more: Any) -> dict[str, Any]:
    return {"exchange_id": f"f-p-{number}", "last_exchange_id": f"f-p-{number}", "ts": at(0), "ts_last": at(9),
            "client_id": f"p{number}", "client_address": "a", "topic": "t", "batches_count": 9, "known_count": 9,
            "first_kind": "avro", "last_kind": "avro", "first_keyed": True, "last_keyed": True, "first_codec": "lz4",
            "last_codec": "lz4", "fill_ms": 5.0} | more  # fmt: skip


def polls(gap: float, beats: int) -> Rows:
    fetches = [exchange(n, "c", "Fetch", n if n < 30 else n + gap, awaitable=True) for n in range(60)]
    beating = [exchange(100 + n, "c", "Heartbeat", 30 + n * gap / max(beats, 1)) for n in range(beats)]
    return {"exchanges": [*fetches, *beating], "kafka_members": [{"ts": at(0)}]}


JSON = {"first_kind": "json", "last_kind": "json"}
CASES: dict[str, tuple[Rows, str]] = {
    "one partition stuck": (STUCK, "lag: Lag of group g on t-5 at the end: 900 records; usual 0 records (5 others)."),
    "all partitions alike": (EVEN, ""),
    "lag only grows": (
        growing([5, 8, 10, 20, 60, 70, 80, 90, 150, 160, 170, 180]),
        "lag only grows: Lag of group g on t-0 only grows: 8 records in the first quarter of the time, 168 records "
        "in the last.",
    ),
    "a group that commits no more": (
        STOPPED,
        "offset stays: Group g committed nothing more of t-0 for 40 s, while the log went on by 400 records; before, "
        "it did every 1 s.",
    ),
    "it left": ({**STOPPED, "kafka_members": [{"ts": at(0), "group_id": "g", "ended": "left"}]}, ""),
    "a member that is silent for long": (
        {"kafka_members": [{"ts": at(0), "ts_last": at(60), "group_id": "g", "client_id": f"c{n}",
                            "client_address": "a", "max_heartbeat_gap_ms": 13_500.0 if n == 4 else 3_000.0 + n}
                           for n in range(6)]},
        "silence of a member: Client c4 at a sent nothing as a member of group g for 13.5 s; usual 3 s (5 others).",
    ),
    "lag comes and goes": (growing([5, 8, 10, 160, 170, 180, 50, 60, 70, 60, 50, 5]), ""),
    "a partition that nobody reads": (
        {"kafka_produce_batches": [batch(n, partition=n % 2) for n in range(20)],
         "kafka_fetch_partitions": [fetch(n, 10 * n) for n in range(10)]},
        "read by nobody: 100 records written to t-1 and nobody fetches it; 100 of its topic's other partitions were "
        "read.",
    ),
    "a follower reads it only": (
        {"kafka_produce_batches": [batch(n) for n in range(20)],
         "kafka_fetch_partitions": [fetch(n, 10 * n, replica_id=2) for n in range(10)]},
        "",
    ),
    "the same offset again": (
        {"kafka_fetch_ranges": [fetch_range(n, 70) for n in range(6)]},
        "same records fetched again: Client c at a was given the records at offset 70 of t-0 6 times.",
    ),
    "two groups of one program read it once each": (
        {"kafka_fetch_ranges": [fetch_range(n, 10 * (n % 3), group_id=f"g{n // 3}") for n in range(12)]}, "",
    ),
    "more joins than generations": (
        {"kafka_group_events": [join(n, 4) for n in range(20)]},
        "joins: Client c at a joined group g 20 times, in 1 generations.",
    ),
    "a generation for each join": ({"kafka_group_events": [join(n, n) for n in range(20)]}, ""),
    "ListOffsets for each record": (
        {"exchanges": [exchange(n, "c", "ListOffsets" if n % 2 else "Fetch", n) for n in range(100)]},
        "requests: Client c at a sent 50 ListOffsets, beside 50 requests with records.",
    ),
    "a monitor that reads nothing": (
        {"exchanges": [exchange(n, "c", "ListOffsets", n) for n in range(100)]}, "",
    ),
    "no fetch while heartbeats go on": (
        polls(20, 6),
        "no fetch: Client c at a fetched nothing for 21 s while 6 heartbeats went on; its gaps are 999 ms at most, but "
        "for one in twenty.",
    ),
    "it was stopped": (polls(20, 0), ""),
    "acks=all waits": (
        {"kafka_produce_batches": [batch(n, acks=1) for n in range(5)]
         + [batch(n, "safe", acks=-1, ts_response=at(n) + 4 * 10**9) for n in range(5)]},
        "acks: Produce to t with acks=-1 (client safe) takes 4 s, median; usual 1 ms (1 other).",
    ),
    "both wait": (
        {"kafka_produce_batches": [batch(n, acks=acks, ts_response=at(n) + 4 * 10**9)
                                   for n in range(5) for acks in (1, -1)]},
        "",
    ),
    "records an hour off": (
        {"kafka_produce_batches": [batch(n, base_timestamp=at(n) // 10**6 - 3_600_000) for n in range(5)]},
        "record times: Times of records of client p at a in t are 3,600 s off the time they were sent.",
    ),
    "a batch sent again": (
        {"kafka_produce_batches": [batch(n, batch_bytes=100, base_timestamp=5) for n in range(2)]},
        "same batch again: Client p at a sent 1 batches to t-0 that were in the log already, without producer id.",
    ),
    "a batch sent again with a producer id": (
        {"kafka_produce_batches": [batch(n, batch_bytes=100, base_timestamp=at(0) // 10**6, producer_id=7)
                                   for n in range(2)]},
        "",
    ),
    "a partition without leader": (
        {"kafka_partitions": [{"ts": at(n), "topic": "t", "partition": 3, "leader_id": -1} for n in range(3)]},
        "no leader: t-3 has no leader, as 3 responses say, the last one included.",
    ),
    "an election that ended": (
        {"kafka_partitions": [{"ts": at(n), "topic": "t", "partition": 3, "leader_id": n - 1} for n in range(3)]}, "",
    ),
    "a partition that one group leaves": (
        {"kafka_produce_batches": [batch(n, partition=n % 2) for n in range(20)],
         "kafka_fetch_partitions": [fetch(n, 10 * n, partition=n % 2) for n in range(10)],
         "kafka_fetch_ranges": [fetch_range(n, 10 * n) for n in range(10)]},
        "read by nobody: 100 records written to t-1 and group g does not fetch it; 100 of its topic's other partitions "
        "were read.",
    ),
    "records passed over": (
        {"kafka_fetch_ranges": [fetch_range(1, 0), fetch_range(2, 60, records_skipped=50)]},
        "records passed over: Client c at a passed over 50 records of t-0.",
    ),
    "records that nobody is seen to fetch": (
        {"kafka_fetch_ranges": [fetch_range(1, 0), fetch_range(2, 60, client_id="d")]},
        "records left out: No fetch of group g is seen of 50 records of t between those that it fetched.",
    ),
    "one range behind the other": ({"kafka_fetch_ranges": [fetch_range(1, 0), fetch_range(2, 10)]}, ""),
    "commits of the same offset": (
        table_of(commits(0, [7] * 50, [7] * 50)) | {"kafka_offset_commits": [
            row | {"client_id": "c", "client_address": "a"}
            for row in table_of(commits(0, [7] * 50, [7] * 50))["kafka_offset_commits"]]},
        "commits of the same offset: Client c at a committed for group g what it had committed before 49 times, "
        "something new 1 times.",
    ),
    "committed below what stood": (
        {"kafka_committed": [committed(1), committed(2, step_back=100)]},
        "committed offset goes back: Client c at a committed 1 times below what stood for group g, such as on t.",
    ),
    "committed in turn": (
        {"kafka_committed": [committed(n, client_id=f"c{n % 2}", near_other=True) for n in range(12)]},
        "committed in turn: Offsets of group g on t-0 were committed by others in turn, 12 times: c0 at a, c1 at a.",
    ),
    "handed over once": (
        {"kafka_committed": [committed(n, client_id=f"c{n // 6}", near_other=n in (5, 6)) for n in range(12)]}, "",
    ),
    "an instance id for each start": (
        {"kafka_group_events": [join(n, 1) | {"group_instance_id": f"i{n}"} for n in range(4)]
         + [join(n, 1) | {"group_instance_id": "x", "client_id": f"d{n % 4}"} for n in range(8)]},
        "group.instance.ids: Client c at a used 4 group.instance.ids; usual 1 (4 others).",
    ),
    "many generations": (
        {"kafka_group_events": [join(n, n) for n in range(20)]
         + [join(n, 1) | {"group_id": f"h{n}"} for n in range(4)]},
        "generations: Group g had 20 generations; usual 1 (4 others).",
    ),
    "one instance id of two clients": (
        {"kafka_members": [{"ts": at(n), "ts_last": at(n + 1), "group_id": "g", "group_instance_id": "i",
                            "client_id": f"c{n}", "client_address": "a"} for n in range(2)]},
        "one group.instance.id: Group.instance.id i of group g was used by 2 clients: c0 at a, c1 at a.",
    ),
    "a membership that was lost": (
        {"kafka_members": [{"ts": at(1), "ts_last": at(2), "group_id": "g", "client_id": "c", "client_address": "a",
                            "max_heartbeat_gap_ms": 1.0, "ended": "expired"}]},
        "membership lost: Client c at a lost its membership of group g (expired) 1 times.",
    ),
    "JSON among others": (
        {"kafka_topic_writers": [writer(n, **JSON if n == 3 else {}) for n in range(4)]},
        "writes otherwise: 9 batches of client p3 at a to t have values: json; those of its other writers: avro.",
    ),
    "half of them": ({"kafka_topic_writers": [writer(n, last_kind=f"k{n % 2}", first_kind=f"k{n % 2}")
                                              for n in range(4)]}, ""),
    "keys until a time": (
        {"kafka_topic_writers": [writer(1, last_keyed=False, key_turns=1, key_after=8, batches_count=20)]},
        "changed what it writes: Batches of client p1 at a to t had keys: keys at first, and no keys at the end, of "
        "20.",
    ),
    "a first batch that does not get smaller": (
        {"kafka_topic_writers": [writer(1, first_codec="none", codec_turns=1, codec_after=18, batches_count=20)]}, "",
    ),
    "each writer has a codec of its own": (
        {"kafka_topic_writers": [writer(n, last_codec=f"k{n}") for n in range(4)]}, "",
    ),
    "a long linger": (
        {"kafka_topic_writers": [writer(n, topic=f"t{n}", fill_ms=6_000.0 if n == 4 else 5.0) for n in range(5)]},
        "time to fill: Batches of client p4 at a to t4 are filled for 6 s, median; usual 5 ms (4 others).",
    ),
    "one broker leads all": (
        {"kafka_brokers": [{"exchange_id": f"f-{n}", "ts": at(n), "node_id": n, "host": f"b{n}", "port": 9,
                            "cluster_id": "k"} for n in range(3)],
         "kafka_leaders": [{"ts": at(n), "topic": "t", "partition": n, "leader_id": 1, "cluster_id": "k"}
                           for n in range(4)]},
        "partitions led: Broker 1 at b1:9 leads 4 of 4 partitions of t at the end; usual 0 (2 others).",
    ),
    "a transactional id each time": (
        {"kafka_transactions": [{"exchange_id": f"f-{n}", "ts": at(n), "client_address": "a",
                                 "client_id": f"p{max(n - 20, 0)}", "transactional_id": f"x{n if n < 21 else 0}"}
                                for n in range(25)]},
        "transactional ids: Client p0 at a used 21 transactional ids; usual 1 (4 others).",
    ),
    "two clusters at one address": (
        {"exchanges": [exchange(n, "c", "Produce", n, cluster_id=f"k{n % 2}") for n in range(4)]},
        "clusters: Server s:1 belongs to 2 clusters: k0, k1.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_lines(case: str) -> None:
    rows, expected = CASES[case]
    lines = said(rows)
    assert (expected in lines) if expected else not lines, lines


def test_the_partition_that_is_stuck_is_told_once() -> None:
    assert [line for line in said(STUCK) if "t-5" in line] == said(STUCK)
    assert len(said(STUCK)) == 1
