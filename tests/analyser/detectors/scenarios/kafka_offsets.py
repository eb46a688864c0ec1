"""Where groups read: records skipped, read again, never committed; and what only looks like it."""

from __future__ import annotations

from typing import Any

from tests.analyser.detectors.scenarios.build import (
    Row,
    at,
    commit,
    fetch,
    flow,
    group_event,
    remark,
    simple_commit,
    stored,
)
from tests.analyser.detectors.scenarios.scenario import Scenario, fires, silent


def read(seconds: float, offset: int, to: int | None = None, member: str = "m1", **more: Any) -> Row:
    """A fetch that is given all records from one offset to another; nothing without `to`."""
    given = {} if to is None else {"next_offset": to, "records_count": to - offset}
    return fetch(seconds, offset, member, **{"error_code": 0, "log_start_offset": 0, **given, **more})


def listed(seconds: float, timestamp: int, offset: int, member: str = "m1", **more: Any) -> Row:
    """One partition of a ListOffsets answer."""
    row = stored(seconds, offset, member, **more)
    kept = {name: value for name, value in row.items() if name not in ("group_id", "committed_offset")}
    return {**kept, "timestamp": timestamp, "offset": offset}


def changed(seconds: float, resource: str, name: str, text: str, **more: Any) -> Row:
    """Something that an operator changed."""
    row = {
        "exchange_id": f"flow9-c{round(seconds * 1000)}", "ts": at(seconds), "ts_response": at(seconds + 0.002),
        "cluster_id": "c1", "client_id": "ops", "client_address": "10.1.0.77", "operation": "DeleteGroups",
        "validate_only": False, "resource_type": resource, "resource_name": name, "change": text, "error_code": 0,
        "flow_id": "flow9",
    }  # fmt: skip
    return row | more


def poisoned(rounds: int, reason: str | None = None, **more: Any) -> dict[str, list[Row]]:
    """A member that reads the same record again, each time after it was out and joined again on its connection."""
    turns = range(1, rounds + 1)
    return {
        "kafka_group_events": [
            group_event(0, "join", "m1"),
            *(group_event(n * 10, "leave", "m1", member_id=f"m1-{n}", reason=reason, **more) for n in turns),
            *(group_event(n * 10 + 1, "join", "m1", member_id=f"m1-{n + 1}", generation=n) for n in turns),
        ],
        "kafka_offset_fetches": [stored(n * 10 + 2, 48) for n in turns],
        "kafka_offset_commits": [commit(0.5, 48)],
        "kafka_fetch_partitions": [read(0.2, 0, 100), *(read(n * 10 + 3, 48, 100 + n) for n in turns)],
    }


JOINS = [group_event(0, "join", "m1"), group_event(0, "join", "m2")]
# The group has read and stored up to 500 by its first member.
_READ = [read(1, 0, 300), read(2, 300, 500)]
_STORED = [commit(3, 500)]


def _joined(**rows: list[Row]) -> dict[str, list[Row]]:
    return {"kafka_group_events": JOINS, **rows}


def restarted(times: int, below: int, **more: Any) -> dict[str, list[Row]]:
    """A member that reads 100 records, commits so many records below and is restarted, again and again."""
    ends = range(100, 100 * (times + 1) + 1, 100)
    return {
        "kafka_group_events": [group_event(n * 10, "join", "m1") for n in range(times + 1)],
        "kafka_offset_commits": [commit(n * 10 + 5, end - below) for n, end in enumerate(ends)],
        "kafka_offset_fetches": [stored(n * 10 + 11, end - below) for n, end in enumerate(ends)],
        "kafka_fetch_partitions": [
            read(1, 0, 100),
            *(read(n * 10 + 12, end - below, end + 100, flow_id=f"f{n}", **more) for n, end in enumerate(ends)),
        ],
    }


def taken_over(late: Row, back: float = 20.0) -> dict[str, list[Row]]:
    """m1 is frozen after it was given 500 records, m2 takes over where the group had stored 300, m1 commits late."""
    return {
        "kafka_group_events": JOINS,
        "kafka_offset_commits": [commit(2, 300), late],
        "kafka_offset_fetches": [stored(9, 300, "m2")],
        "kafka_fetch_partitions": [*_READ, read(10, 300, 600, "m2"), read(back + 5, 600, 700, "m2")],
    }


KAFKA_OFFSETS_FIRES: list[Scenario] = [
    fires(
        "KAF109", "warning", "commits stop while reading goes on",
        **_joined(
            kafka_offset_commits=[commit(n, n * 100) for n in range(1, 9)],
            kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(40)],
        ),
    ),
    fires(
        "KAF120", "warning", "the next fetch is far above where the answer led",
        **_joined(kafka_fetch_partitions=[*_READ, read(4, 900, 950)]),
    ),
    fires(
        "KAF120", "info", "it goes back behind what was stored by itself",
        **_joined(kafka_offset_commits=_STORED, kafka_fetch_partitions=[*_READ, read(4, 100, 200)]),
    ),
    fires(
        "KAF121", "critical", "a partition is added and read from its end after it was written to",
        **_joined(
            kafka_admin_changes=[changed(5, "topic", "payments", "partitions=1")],
            kafka_offset_fetches=[stored(6, -1)],
            kafka_list_offsets=[listed(6.1, -1, 40)],
            kafka_fetch_partitions=[read(7, 40, 50)],
        ),
    ),
    fires(
        "KAF122", "warning", "1,200 records and no commit",
        **_joined(kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(12)]),
    ),
    fires(
        "KAF123", "info", "a commit for each record",
        kafka_offset_commits=[commit(n / 100, 1000 + n) for n in range(400)],
    ),
    fires("KAF124", "warning", "three restarts, each one record below", **restarted(3, 1)),
    fires(
        "KAF125", "warning", "one partition is left alone while it grows",
        **_joined(
            kafka_offset_commits=[commit(n, n * 10, partition=1) for n in range(1, 60)],
            kafka_fetch_partitions=[
                read(1, 0, 80), *(read(n, n * 10, n * 10 + 10, partition=1, high_watermark=n * 10) for n in range(60)),
                read(59, 700, high_watermark=800, client_id="other", client_address="10.1.0.9"),
            ],
        ),
    ),
    fires(
        "KAF127", "warning", "a frozen member comes back, and its commit is refused",
        **taken_over(commit(20, 500, error_code=25)),
    ),
    fires(
        "KAF127", "warning", "one whose fetches are not in the capture is refused after another took over",
        **_joined(
            kafka_offset_commits=[commit(20, 500, error_code=25)],
            kafka_offset_fetches=[stored(9, 300, "m2")],
            kafka_fetch_partitions=[read(10, 300, 600, "m2")],
        ),
    ),
    fires(
        "KAF127", "critical", "a frozen member comes back, and its commit is taken",
        **taken_over(commit(20, 500)),
    ),
    fires(
        "KAF129", "critical", "a refused commit is stored later over a newer one",
        kafka_offset_commits=[commit(1, 300, error_code=25), commit(5, 500), commit(6, 300)],
        kafka_fetch_partitions=[read(4, 490, 500)],
    ),
    fires(
        "KAF129", "warning", "and newer ones follow",
        kafka_offset_commits=[
            commit(1, 300, error_code=27), commit(5, 500), commit(6, 300), commit(7, 600),
        ],
        kafka_fetch_partitions=[read(4, 490, 500)],
    ),
    fires(
        "KAF119", "critical", "a record whose handling takes longer than max.poll.interval",
        **poisoned(3, "consumer poll timeout has expired."),
    ),
    fires("KAF119", "critical", "a client that gives no reason joins again on its connection", **poisoned(3)),
    fires(
        "KAF121", "critical", "the group was deleted, and begins again at latest",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_admin_changes=[changed(5, "group", "billing", "delete")],
            kafka_offset_fetches=[stored(6, -1)],
            kafka_list_offsets=[listed(6.1, -1, 900)],
            kafka_fetch_partitions=[*_READ, read(7, 900, 950)],
        ),
    ),
    fires(
        "KAF121", "critical", "retention removed what a stopped group had not read",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_offset_fetches=[stored(60, 500)],
            kafka_list_offsets=[listed(61, -2, 800)],
            kafka_fetch_partitions=[
                *_READ, read(60.5, 500, error_code=1), read(62, 800, 900, log_start_offset=800),
            ],
        ),
    ),
    fires(
        "KAF121", "warning", "a tool sets a stopped group forward, to a member that is new",
        **_joined(
            kafka_offset_commits=[*_STORED, simple_commit(5, 700)],
            kafka_offset_fetches=[stored(6, 700, "m2")],
            kafka_fetch_partitions=[*_READ, read(7, 700, 750, "m2")],
        ),
    ),
    fires(
        "KAF121", "info", "the client begins elsewhere by itself",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_offset_fetches=[stored(6, 500)],
            kafka_fetch_partitions=[*_READ, read(7, 700, 750)],
        ),
    ),
    fires(
        "KAF114", "warning", "the offset is gone, and the whole log comes again",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_offset_fetches=[stored(60, -1, "m2")],
            kafka_list_offsets=[listed(61, -2, 0, "m2")],
            kafka_fetch_partitions=[*_READ, read(62, 0, 300, "m2")],
        ),
    ),
    fires(
        "KAF114", "warning", "the broker answers with an older offset than it had accepted",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_offset_fetches=[stored(6, 200)],
            kafka_fetch_partitions=[*_READ, read(7, 200, 300)],
        ),
    ),
]  # fmt: skip

KAFKA_OFFSETS_NEAR_MISSES: list[Scenario] = [
    silent(
        "KAF109", "commits every few seconds",
        **_joined(
            kafka_offset_commits=[commit(n * 5, n * 500) for n in range(1, 9)],
            kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(42)],
        ),
    ),
    silent(
        "KAF120", "the answer in between is missing",
        **_joined(kafka_fetch_partitions=[*_READ, fetch(3, 500, ts_response=None), read(4, 900, 950)]),
    ),
    silent(
        "KAF120", "bytes of the client are missing in between",
        **_joined(
            flows=[flow("a")],
            expert_infos=[remark("a", 3, "tcp", "gap")],
            kafka_fetch_partitions=[*_READ, read(4, 900, 950)],
        ),
    ),
    silent(
        "KAF120", "fetched ahead and dropped: it fetches again what was not handled",
        **_joined(kafka_offset_commits=[commit(1.5, 200)], kafka_fetch_partitions=[*_READ, read(4, 280, 600)]),
    ),
    silent(
        "KAF120", "an answer of which no batch could be read leads nobody knows where",
        **_joined(kafka_fetch_partitions=[read(1, 0, records_bytes=5000), read(2, 168, 200)]),
    ),
    silent(
        "KAF120", "a topic without a known name may have been told an offset",
        **_joined(
            kafka_fetch_partitions=[read(n, o, o + 100, topic=None, topic_id="id") for n, o in ((1, 0), (2, 500))]
        ),
    ),
    silent(
        "KAF122", "a producer commits in its transactions what the consumer reads",
        **_joined(
            kafka_offset_commits=[
                commit(n, n * 100, api="TxnOffsetCommit", client_id="billing-1-producer") for n in range(1, 12)
            ],
            kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100) for n in range(12)],
        ),
    ),
    silent(
        "KAF122", "a client without group requests in the capture",
        kafka_fetch_partitions=[read(n, n * 100, n * 100 + 100, client_id="tool") for n in range(12)],
    ),
    silent(
        "KAF122", "a quiet topic",
        **_joined(kafka_fetch_partitions=[read(n, 100) for n in range(0, 90, 3)]),
    ),
    silent("KAF123", "fifty in a second, each of many records",
           kafka_offset_commits=[commit(n / 100, 1000 + n * 7) for n in range(400)]),
    silent("KAF123", "one record at a time, once a second",
           kafka_offset_commits=[commit(n, 1000 + n) for n in range(300)]),
    silent("KAF124", "restarts go on where reading had ended", **restarted(4, 0)),
    silent(
        "KAF124", "one rebalance while a record of each partition is under way",
        **_joined(
            kafka_offset_commits=[commit(3, 499, partition=n) for n in range(4)],
            kafka_offset_fetches=[stored(9, 499, "m2", partition=n) for n in range(4)],
            kafka_fetch_partitions=[
                *(row | {"partition": n} for n in range(4) for row in _READ),
                *(read(10, 499, 600, "m2", partition=n) for n in range(4)),
            ],
        ),
    ),
    silent("KAF124", "restarts with a few records left", **restarted(4, 3)),
    silent("KAF124", "markers of transactions take an offset each", **{
        **restarted(4, 1),
        "kafka_produce_batches": [
            {"exchange_id": "p", "ts": at(1), "ts_response": at(1), "cluster_id": "c1", "topic": "payments",
             "partition": 0, "base_offset": 0, "last_offset": 50, "transactional": True, "error_code": 0},
        ],
    }),
    silent(
        "KAF125", "a partition that does not grow",
        **_joined(
            kafka_offset_commits=[commit(n, n * 10, partition=1) for n in range(1, 60)],
            kafka_fetch_partitions=[
                read(1, 0, 80, high_watermark=80),
                *(read(n, n * 10, n * 10 + 10, partition=1, high_watermark=n * 10) for n in range(60)),
            ],
        ),
    ),
    silent(
        "KAF125", "what was fetched is handled slowly: its commits rise",
        **_joined(
            kafka_offset_commits=[
                row for n in range(1, 60) for row in (commit(n, n), commit(n, n * 10, partition=1))
            ],
            kafka_fetch_partitions=[
                read(1, 0, 80), *(read(n, n * 10, n * 10 + 10, partition=1, high_watermark=n * 10) for n in range(60)),
                read(59, 700, high_watermark=800, client_id="other", client_address="10.1.0.9"),
            ],
        ),
    ),
    silent(
        "KAF127", "a commit that was under way in the rebalance",
        **taken_over(commit(10.5, 500, error_code=25), back=11),
    ),
    silent(
        "KAF127", "the partition comes back to its member",
        **{
            **taken_over(commit(20, 650)),
            "kafka_offset_fetches": [stored(9, 300, "m2"), stored(14, 600)],
            "kafka_fetch_partitions": [*_READ, read(10, 300, 600, "m2"), read(15, 600, 650)],
        },
    ),
    silent(
        "KAF129", "a refused commit is sent again at once",
        kafka_offset_commits=[commit(1, 300, error_code=16), commit(1.2, 300), commit(5, 500)],
    ),
    silent(
        "KAF129", "the client turned back and works up to the same offset again", ("KAF103", "info"),
        kafka_offset_commits=[commit(1, 300, error_code=25), commit(5, 500), commit(9, 300)],
        kafka_fetch_partitions=[read(4, 490, 500), read(7, 200, 300)],
    ),
    silent("KAF119", "a record that took too long once", **poisoned(1, "consumer poll timeout has expired.")),
    silent(
        "KAF119", "a member that is restarted again and again has a new connection each time",
        **{
            **poisoned(0),
            "kafka_group_events": [
                row for n in range(5) for row in (
                    group_event(n * 10, "join", "m1", member_id=f"m1-{n}", flow_id=f"f{n}"),
                    group_event(n * 10 + 9, "leave", "m1", member_id=f"m1-{n}", flow_id=f"f{n}"),
                )
            ],
            "kafka_offset_fetches": [stored(n * 10 + 2, 48) for n in range(1, 5)],
            "kafka_fetch_partitions": [read(0.2, 0, 100), *(read(n * 10 + 3, 48, 100 + n) for n in range(1, 5))],
        },
    ),
    silent(
        "KAF119", "thrown out while nothing new is there: no record comes again",
        **{
            **poisoned(4),
            "kafka_fetch_partitions": [read(0.2, 0, 48), *(read(n * 10 + 3, 48) for n in range(1, 5))],
        },
    ),
    silent(
        "KAF121", "a group that is new begins at latest",
        **_joined(
            kafka_offset_fetches=[stored(0.5, -1)],
            kafka_list_offsets=[listed(0.6, -1, 900)],
            kafka_fetch_partitions=[read(1, 900, 950)],
        ),
    ),
    silent(
        "KAF121", "a restart goes on at the stored offset",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_offset_fetches=[stored(6, 500)],
            kafka_fetch_partitions=[*_READ, read(7, 500, 600, flow_id="new")],
        ),
    ),
    silent(
        "KAF121", "the capture begins in the middle of reading",
        **_joined(kafka_offset_commits=[commit(0.5, 300)], kafka_fetch_partitions=[read(1, 500, 600)]),
    ),
    silent(
        "KAF121", "a commit of another member is not in the capture",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_offset_fetches=[stored(60, 900)],
            kafka_fetch_partitions=[*_READ, read(61, 900, 950)],
        ),
    ),
    silent(
        "KAF121", "another member of the group had read the records",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_offset_fetches=[stored(6, 500)],
            kafka_fetch_partitions=[*_READ, read(4, 500, 900, "m2"), read(7, 900, 950)],
        ),
    ),
    silent(
        "KAF121", "one direction of the capture is missing",
        **_joined(
            kafka_offset_commits=[commit(3, 500, error_code=None, ts_response=None)],
            kafka_fetch_partitions=[
                fetch(n, n * 300, ts_response=None, high_watermark=None) for n in range(1, 5)
            ],
        ),
    ),
    silent(
        "KAF121", "the leader moves to another broker, and reading goes on there",
        **_joined(
            kafka_offset_commits=[commit(1.5, 300)],
            kafka_fetch_partitions=[*_READ, read(7, 500, 600, flow_id="broker2")],
        ),
    ),
    silent(
        "KAF114", "fetched and not yet stored when it was taken over",
        **_joined(
            kafka_offset_commits=[commit(3, 300)],
            kafka_offset_fetches=[stored(6, 300, "m2")],
            kafka_fetch_partitions=[*_READ, read(7, 300, 600, "m2")],
        ),
    ),
    silent(
        "KAF114", "a topic made anew has other offsets",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_admin_changes=[changed(4, "topic", "payments", "delete")],
            kafka_offset_fetches=[stored(6, -1)],
            kafka_list_offsets=[listed(6.1, -2, 0)],
            kafka_fetch_partitions=[
                *(row | {"topic_id": "old"} for row in _READ), read(7, 0, 100, topic_id="new"),
            ],
        ),
    ),
    silent(
        "KAF114", "the offsets of another group were deleted",
        **_joined(
            kafka_offset_commits=_STORED,
            kafka_admin_changes=[changed(4, "group", "billing-2", "delete")],
            kafka_offset_fetches=[stored(6, 500)],
            kafka_fetch_partitions=[*_READ, read(7, 500, 600)],
        ),
    ),
]  # fmt: skip
