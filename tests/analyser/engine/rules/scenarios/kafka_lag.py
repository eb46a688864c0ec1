"""Groups that fall behind, or store what the log does not have; and what only looks like it."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import Row, assigned, at, commit, fetch, flow, group_event
from tests.analyser.engine.rules.scenarios.build_groups import beats, join
from tests.analyser.engine.rules.scenarios.build_offsets import paused, read
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def written(seconds: range, per_second: int, begin: int = 0, **more: object) -> list[Row]:
    """A batch a second that all replicas in sync have."""
    return [
        {"exchange_id": f"flow8-c{n}", "ts": at(n), "ts_response": at(n + 0.01), "cluster_id": "c1", "flow_id": "flow8",
         "client_id": "feed", "client_address": "10.1.0.8", "topic": "payments", "partition": 0, "acks": -1,
         "base_offset": begin + place * per_second, "records_count": per_second, "error_code": 0,
         "last_offset": begin + (place + 1) * per_second - 1,
         "batch_bytes": 100_000} | more
        for place, n in enumerate(seconds)
    ]  # fmt: skip


_WRITTEN = written(range(40), 50)
# It fetches 500 records and stores 100 each five seconds.
_SLOW = [read(1, 0, 50, high_watermark=50), read(2, 50, 500, high_watermark=500)]
# It fetches each second all that is new.
_AHEAD = [read(n + 0.2, n * 10, n * 10 + 10, high_watermark=n * 10 + 10) for n in range(40)]
_STORED = [commit(n, n * 20) for n in range(3, 40, 5)]


def loaded(more: int, slower: int = 5) -> dict[str, list[Row]]:
    """From second 20 on another producer writes `more` records a second beside the five of the first one; the group
    commits five a second, and `slower` from then on."""
    other = {"client_id": "load-test", "client_address": "10.1.0.9", "flow_id": "flow9"}
    begins = [*range(0, 100, 5), *range(100, 100 + 20 * (5 + more), 5 + more)]
    done = [*range(5, 101, 5), *range(100 + slower, 101 + 20 * slower, slower)]
    return {
        "kafka_produce_batches": [
            *(row for n, begin in enumerate(begins) for row in written(range(n, n + 1), 5, begin)),
            *(row for n, begin in enumerate(begins[20:], 20) for row in written(
                range(n, n + 1), more, begin + 5, exchange_id=f"flow9-c{n}", **other)),
        ],
        "kafka_fetch_partitions": [
            read(n + 0.2, end - 5, end, high_watermark=begin + 5) for n, (begin, end) in
            enumerate(zip(begins, done, strict=True))
        ],
        "kafka_offset_commits": [commit(n + 0.5, end) for n, end in enumerate(done)],
    }  # fmt: skip


def stops(*group: Row, reads: float = 60, last: int = 60, **more: list[Row]) -> dict[str, list[Row]]:
    """What it does in `last` seconds; the log goes on by two records a second."""
    return {
        "kafka_produce_batches": written(range(last), 2),
        "kafka_group_events": [join(0, "m1", 5), *group],
        "kafka_fetch_partitions": [
            read(n + 0.1, n * 2, n * 2 + 2, high_watermark=n * 2 + 2) for n in range(last) if n < reads
        ],
        "kafka_offset_commits": [commit(n + 0.2, n * 2 + 2) for n in range(10)],
        **more,
    }


def left_out(by_hand: bool = False, **more: list[Row]) -> dict[str, list[Row]]:
    """A group that reads partitions 0 and 1 of payments, of which 0, 1 and 2 are written."""
    members = [] if by_hand else [join(0, "m1", 5), *beats("m1", 5, *range(1, 30, 3))]
    return {
        "kafka_produce_batches": [row for n in range(3) for row in written(range(30), 2, partition=n)],
        "kafka_group_events": members,
        "kafka_assignments": [] if by_hand else assigned(0.5, 5, {"m1": [0, 1]}),
        "kafka_fetch_partitions": [
            read(n + 0.1 + part / 100, n * 2, n * 2 + 2, high_watermark=n * 2 + 2, partition=part)
            for n in range(1, 30) for part in range(2)
        ],
        "kafka_offset_commits": [
            commit(n + 0.2 + part / 100, n * 2 + 2, "" if by_hand else "m1", generation=-1 if by_hand else 5,
                   partition=part, **(_BY_HAND if by_hand else {}))
            for n in range(1, 30) for part in range(2)
        ],
        **more,
    }  # fmt: skip


_BY_HAND = {"client_id": "billing-1", "client_address": "10.1.0.1", "flow_id": "flow1"}

_EACH_FOUR_SECONDS = [commit(n + 0.2, n * 2 + 2) for n in range(0, 17, 4)]

KAFKA_LAG_FIRES: list[Scenario] = [
    fires("KAF107", "warning", "it reads on and commits no more", **stops(*beats("m1", 5, *range(1, 60, 3)))),
    fires("KAF107", "warning", "its handler is stuck, its heartbeats go on",
          **stops(*beats("m1", 5, *range(1, 60, 3)), reads=10)),
    fires("KAF107", "warning", "four of its usual gaps, while another partition moves on", **stops(
        *beats("m1", 5, *range(1, 60, 3)), last=34, kafka_offset_commits=[
            *_EACH_FOUR_SECONDS, *(commit(n + 0.3, n * 2 + 2, partition=1) for n in range(0, 37, 4))])),
    fires("KAF107", "warning", "its process ended, and it was the only member",
          **stops(reads=10, flows=[flow("flow1", closed_by="client", ts_closed=at(10.5), ts_last=at(10.5))])),
    fires("KAF130", "warning", "nothing is handled for eighteen seconds, and then it goes on", **paused(15, 33)),
    fires("KAF130", "info", "for seven of its usual gaps", **paused(15, 21)),
    fires("KAF343", "warning", "the plan of the group leaves a partition out", **left_out()),
    fires("KAF343", "warning", "a consumer that takes two of three partitions by hand", **left_out(by_hand=True)),
    fires("KAF108", "warning", "a handler slower than what is written", kafka_produce_batches=_WRITTEN,
          kafka_fetch_partitions=_SLOW, kafka_offset_commits=_STORED),
    fires("KAF108", "warning", "fetches run ahead of a handler that is slower than the log",
          kafka_produce_batches=written(range(40), 10), kafka_fetch_partitions=_AHEAD,
          kafka_offset_commits=[commit(n + 0.5, n * 4) for n in range(1, 40)]),
    fires("KAF108", "warning", "ten times as much is written by somebody new", **loaded(more=45)),
    fires("KAF113", "critical", "stored far beyond the end of the log",
          kafka_fetch_partitions=[fetch(n, 100, high_watermark=100) for n in (1, 5)],
          kafka_offset_commits=[commit(3, 5100, log_end_offset=100)]),
    fires("KAF113", "critical", "-1 takes the stored offset away",
          kafka_offset_commits=[commit(1, 100), commit(2, 110), commit(3, -1)]),
    Scenario("another member stores one again", "KAF113",
             {"kafka_offset_commits": [commit(1, 100), commit(3, -1), commit(8, 110, "m2", generation=6)]},
             frozenset({("KAF113", "critical"), ("KAF101", "info")})),
    fires("KAF113", "warning", "-1 stands until the next commit of its committer",
          kafka_offset_commits=[commit(1, 100), commit(3, -1), commit(4, 110), commit(6, -1), commit(7, 120)]),
    fires("KAF113", "info", "-1 where nothing was stored", kafka_offset_commits=[commit(1, -1), commit(3, -1)]),
]  # fmt: skip
KAFKA_LAG_NEAR_MISSES: list[Scenario] = [
    silent("KAF107", "a group that is stopped in order", **stops(group_event(10.5, "leave", "m1"), reads=10)),
    silent("KAF107", "for less than ten seconds", **stops(*beats("m1", 5, *range(1, 60, 3)), last=18)),
    silent("KAF107", "no longer than three times its longest pause before", **stops(
        *beats("m1", 5, *range(1, 60, 3)), last=40, kafka_offset_commits=[
            commit(n + 0.2, n * 2 + 2) for n in (0, 1, 2, 11, 12, 13)])),
    silent("KAF107", "four of its usual gaps, and there is no other partition",
           **stops(*beats("m1", 5, *range(1, 60, 3)), last=34, kafka_offset_commits=_EACH_FOUR_SECONDS)),
    silent("KAF107", "a topic that is quiet since then", **stops(
        *beats("m1", 5, *range(1, 60, 3)), kafka_produce_batches=written(range(10), 2),
        kafka_fetch_partitions=[read(n + 0.1, min(n * 2, 20), min(n * 2 + 2, 20), high_watermark=min(n * 2 + 2, 20))
                                for n in range(60)])),
    silent("KAF107", "its group requests go where nobody captures", **stops()),
    silent("KAF130", "for four of its usual gaps", **paused(15, 18)),
    silent("KAF130", "nothing is in its hand: nothing came", **paused(15, 33, given=False)),
    silent("KAF130", "its heartbeats stop, too", **paused(15, 33, beat=14.5)),
    silent("KAF130", "a rebalance lies between", **paused(15, 33, generation=6)),
    silent("KAF343", "another member has it",
           **left_out(kafka_assignments=assigned(0.5, 5, {"m1": [0, 1], "m2": [2]}))),
    silent("KAF343", "what other members have is not known",
           **left_out(kafka_assignments=assigned(0.5, 5, {"m1": [0, 1]}, "sync_answer"))),
    silent("KAF343", "by hand, as much is read as not", **left_out(by_hand=True, kafka_produce_batches=[
        row for n in range(4) for row in written(range(30), 2, partition=n)])),
    silent("KAF343", "by hand, and only the host of the reader was captured", **left_out(
        by_hand=True, kafka_produce_batches=[
            row for n in range(3) for row in written(range(30), 2, partition=n, client_address="10.1.0.1")])),
    silent("KAF343", "four batches", **left_out(kafka_produce_batches=[
        *written(range(30), 2), *written(range(30), 2, partition=1), *written(range(5, 9), 2, partition=2)])),
    silent("KAF108", "far behind, and catching up", kafka_produce_batches=_WRITTEN,
           kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100, high_watermark=9000) for n in range(40)],
           kafka_offset_commits=[commit(n + 0.5, n * 100 + 100) for n in range(40)]),
    silent("KAF108", "it prefetches, and its handler keeps up three seconds later",
           kafka_produce_batches=written(range(40), 10), kafka_fetch_partitions=_AHEAD,
           kafka_offset_commits=[commit(n + 0.5, max(n - 3, 0) * 10) for n in range(1, 40)]),
    silent("KAF108", "it reads to the end and commits late", kafka_produce_batches=_WRITTEN,
           kafka_fetch_partitions=[read(n + 0.1, n * 50, n * 50 + 50, high_watermark=n * 50 + 50) for n in range(40)],
           kafka_offset_commits=[commit(1, 50)]),
    silent("KAF108", "a quiet topic, read to its end", kafka_offset_commits=[commit(n, 500) for n in range(3, 40, 5)],
           kafka_fetch_partitions=[read(n, 500, high_watermark=500) for n in range(40)]),
    silent("KAF113", "the end that is known is an old one",
           kafka_fetch_partitions=[
               read(1, 60, 100, high_watermark=100), read(2, 100, 140, high_watermark=140),
               read(5, 140, high_watermark=140),
           ],
           kafka_offset_commits=[commit(3, 140, log_end_offset=100)]),
    silent("KAF113", "times that are cut to seconds: a Fetch of before seems sent after the commit",
           kafka_fetch_partitions=[
               read(1, 60, 100, high_watermark=100), read(3.1, 100, 140, high_watermark=120),
               read(3.6, 140, high_watermark=140),
           ],
           kafka_offset_commits=[commit(3, 140, log_end_offset=100)]),
    silent("KAF113", "-1 is refused", ("KAF105", "info"),
           kafka_offset_commits=[commit(1, 100), commit(3, -1, error_code=27)]),
    silent("KAF113", "nothing was told after it", kafka_fetch_partitions=[fetch(1, 100, high_watermark=100)],
           kafka_offset_commits=[commit(3, 5100, log_end_offset=100)]),
]  # fmt: skip
