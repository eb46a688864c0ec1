"""Rows of groups that read, store offsets, stop and begin again. In: seconds and offsets. Out: rows."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import CLIENTS, Row, at, commit, fetch, group_event, stored
from tests.analyser.engine.rules.scenarios.build_groups import beats


def read(seconds: float, offset: int, to: int | None = None, member: str = "m1", **more: Any) -> Row:
    """A fetch that is given all records from one offset to another; nothing without `to`."""
    given = {} if to is None else {"next_offset": to, "records_count": to - offset}
    return fetch(seconds, offset, member, **{"error_code": 0, "log_start_offset": 0, **given, **more})


def listed(seconds: float, timestamp: int, offset: int | None, member: str = "m1", **more: Any) -> Row:
    """One partition of a ListOffsets answer."""
    row = stored(seconds, 0, member, **more)
    kept = {name: value for name, value in row.items() if name not in ("group_id", "committed_offset")}
    return {**kept, "timestamp": timestamp, "offset": offset}


def epoch_end(seconds: float, offset: int, member: str = "m1", **more: Any) -> Row:
    """One partition of an OffsetForLeaderEpoch answer: where the log of the epoch ends that the client has read."""
    row = stored(seconds, offset, member)
    kept = {name: value for name, value in row.items() if name not in ("group_id", "committed_offset")}
    return {**kept, "replica_id": -1, "current_leader_epoch": 2, "requested_epoch": 0, "leader_epoch": 0,
            "end_offset": offset, **more}  # fmt: skip


# What changes a resource: by its type and the text of the change.
_OPERATIONS = {("topic", "delete"): "DeleteTopics", ("group", "delete"): "DeleteGroups"}


def changed(seconds: float, resource: str, name: str, text: str, **more: Any) -> Row:
    """Something that an operator changed."""
    operation = _OPERATIONS.get((resource, text), "CreatePartitions")
    row = {
        "exchange_id": f"flow9-c{round(seconds * 1000)}", "ts": at(seconds), "ts_response": at(seconds + 0.002),
        "cluster_id": "c1", "client_id": "ops", "client_address": "10.1.0.77", "operation": operation,
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
READ = [read(1, 0, 300), read(2, 300, 500)]
STORED = [commit(3, 500)]


_M2 = {
    "member_id": "m2",
    "client_address": CLIENTS["m2"][0],
    "client_id": CLIENTS["m2"][1],
    "flow_id": CLIENTS["m2"][2],
}


def joined(**rows: list[Row]) -> dict[str, list[Row]]:
    """These rows, and two members who joined the group."""
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


def takes_over(*late: Row, until: int = 30) -> dict[str, list[Row]]:
    """m1 commits partitions 0 and 1 each second; m2 takes partition 0 after ten seconds and commits what is given."""
    return joined(
        kafka_offset_commits=[
            *(commit(n + 0.5, n * 10 + 10, partition=1) for n in range(until)),
            *(commit(n + 0.5, n * 10 + 10) for n in range(10)), *(row | _M2 for row in late),
        ],
        kafka_fetch_partitions=[
            *(read(n, n * 10, n * 10 + 10, partition=1) for n in range(until)),
            *(read(n, n * 10, n * 10 + 10, "m1" if n < 10 else "m2") for n in range(until)),
        ],
    )  # fmt: skip


def paused(
    since: int, until: int, *, beat: float = 1.0, given: bool = True, generation: int = 5
) -> dict[str, list[Row]]:
    """m1 is given ten records a second and commits them, but for a time; its heartbeats go on. given: it fetches more
    before that time. generation: of its commits behind it."""
    there = [n for n in range(40) if not since <= n < until]
    last = since + given
    return {
        "kafka_group_events": [*JOINS, *beats("m1", 5, *(n * beat for n in range(round(40 / beat))))],
        "kafka_offset_commits": [
            commit(n + 0.5, n * 10 + 10, generation=5 if n < since else generation, log_end_offset=n * 10 + 10)
            for n in there
        ],
        "kafka_fetch_partitions": [
            read(n, (last if n == until else n) * 10, n * 10 + 10, high_watermark=n * 10 + 10)
            for n in range(40)
            if n < last or n >= until
        ],
    }


def anew(times: int, to: int = 0) -> dict[str, list[Row]]:
    """m1 reads 100 records more in each ten seconds, commits most of them, and goes back so many times."""
    turns = range(times + 1)
    return joined(
        kafka_offset_commits=[commit(n * 10 + 5, n * 100 + 90) for n in turns],
        kafka_fetch_partitions=[read(n * 10 + 1, to if n else 0, n * 100 + 100) for n in turns],
    )


def overlapping(times: int, further: int, given: int = 100) -> dict[str, list[Row]]:
    """m1 is given so many records again and again, each time from so much further on."""
    return joined(kafka_fetch_partitions=[read(n / 2, n * further, n * further + given) for n in range(times)])


def at_rest(below: int, *, every: int = 1, transactional: bool = False, **more: Any) -> dict[str, list[Row]]:
    """A record each second, read at once; so many seconds apart a commit so many records below the end."""
    return joined(
        kafka_offset_commits=[commit(n + 0.5, n + 1 - below, **more) for n in range(2, 30, every)],
        kafka_fetch_partitions=[read(n, n, n + 1, high_watermark=n + 1) for n in range(30)],
        kafka_produce_batches=produced(transactional),
    )


def produced(transactional: bool) -> list[Row]:
    """A batch of payments-0 that was stored."""
    return [
        {"exchange_id": "p", "ts": at(1), "ts_response": at(1), "cluster_id": "c1", "topic": "payments",
         "partition": 0, "base_offset": 0, "last_offset": 50, "transactional": transactional, "error_code": 0},
    ]  # fmt: skip


def taken_over(late: Row, back: float = 20.0) -> dict[str, list[Row]]:
    """m1 is frozen after it was given 500 records, m2 takes over where the group had stored 300, m1 commits late."""
    return {
        "kafka_group_events": JOINS,
        "kafka_offset_commits": [commit(2, 300), late],
        "kafka_offset_fetches": [stored(9, 300, "m2")],
        "kafka_fetch_partitions": [*READ, read(10, 300, 600, "m2"), read(back + 5, 600, 700, "m2")],
    }


def went_ahead(*later: Row, both: bool = True) -> dict[str, list[Row]]:
    """m1 stored up to 152 of partition 0 each second, had fetched to 500, and fetches from 212 on; beside, partition 1.

    both: its commits before were of both partitions.
    """
    first = [commit(n, 32 + 30 * n) for n in (range(1, 5) if both else (4,))]
    return joined(
        kafka_offset_commits=[*first, *(commit(n, 30 * n, partition=1) for n in range(1, 5)), *later],
        kafka_fetch_partitions=[
            read(0.1, 0, 300), read(0.2, 300, 500), read(0.1, 0, 900, partition=1),
            read(5, 212, 500), *(read(n, 500, 500) for n in range(6, 14)),
        ],
    )  # fmt: skip
