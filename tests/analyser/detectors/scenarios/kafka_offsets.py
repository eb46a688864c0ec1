"""Where groups read: records skipped, read again, never committed; and what only looks like it."""

from __future__ import annotations

from typing import Any

from tests.analyser.detectors.scenarios.build import Row, at, commit, fetch, group_event, simple_commit, stored
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


KAFKA_OFFSETS_FIRES: list[Scenario] = [
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
