"""The ways in which stored offsets go wrong in practice, with every code that they must give."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import ANSWER, Row, assigned, at, commit, fetch, group_event
from tests.analyser.engine.rules.scenarios.build_offsets import read
from tests.analyser.engine.rules.scenarios.scenario import Scenario


def out_of_order_commits() -> dict[str, list[Row]]:
    """One member, one generation, one connection: commits are built at the same time and sent out of order.

    Partition 0 goes back now and then, partition 1 falls back to one old value again and again, partition 2 is healthy.
    """
    rows: list[Row] = []
    for n in range(20):
        newer, older = 1000 + 10 * n, 1000 + 10 * n - 5
        pair = [(0.0, newer), (0.0005, older)] if n % 3 == 0 and n else [(0.0, older), (0.0005, newer)]
        for delay, offset in pair:
            rows.append(commit(n + delay, offset, ts_response=at(n + delay) + ANSWER))
        rows.append(commit(n + 0.2, 1000 + n, partition=2))
        rows.append(commit(n + 0.3, 2000 + n if n % 2 else 1500, partition=1))
    return {
        "kafka_assignments": assigned(0, 5, {"m1": [0, 1, 2]}),
        "kafka_offset_commits": rows,
        "kafka_fetch_partitions": [fetch(n, 3000 + n, partition=p) for n in range(20) for p in range(3)],
    }


def stale_store() -> dict[str, list[Row]]:
    """A member commits an old offset of a partition that it lost, with its current member id and generation."""
    rows = [commit(n, 400 + 10 * n, generation=5) for n in range(10)]
    for n in range(12, 40):
        rows.append(commit(n, 400 + 10 * n, "m2", generation=6))
        rows.append(commit(n + 0.5, 480, "m1", generation=6))
        rows.append(commit(n + 0.5, 900 + n, "m1", generation=6, partition=1))
    return {
        "kafka_assignments": [*assigned(0, 5, {"m1": [0, 1]}), *assigned(11, 6, {"m1": [1], "m2": [0]})],
        "kafka_group_events": [group_event(10.5, "join", "m1", generation=6)],
        "kafka_offset_commits": rows,
        "kafka_fetch_partitions": [read(n, 400 + 10 * n, 410 + 10 * n, "m2") for n in range(12, 40)],
    }


def ahead_of_the_owner() -> dict[str, list[Row]]:
    """A member commits the end of a partition that another one reads and commits far behind it."""
    rows = []
    for n in range(1, 30):
        rows.append(commit(n, 400 + 10 * n, "m2"))
        rows.append(commit(n + 0.5, 900 + n, "m1", partition=1))
        if n > 5:
            rows.append(commit(n + 0.5, 5000 + 10 * n, "m1"))
    return {
        "kafka_assignments": assigned(0, 5, {"m1": [1], "m2": [0]}),
        "kafka_offset_commits": rows,
        "kafka_fetch_partitions": [read(n - 0.3, 400 + 10 * n, 410 + 10 * n, "m2") for n in range(1, 30)],
    }


def fenced_store() -> dict[str, list[Row]]:
    """The near miss: the same old offset with the generation of its claim; the broker refuses it."""
    refused = [commit(n + 0.5, 480, "m1", generation=5, error_code=22) for n in range(12, 40)]
    commits = stale_store()["kafka_offset_commits"]
    rest = [row for row in commits if row["committed_offset"] != 480 or row["generation"] == 5]
    return {**stale_store(), "kafka_offset_commits": [*rest, *refused]}


FAULTS: list[Scenario] = [
    Scenario(
        "one member sends its commits out of order", "KAF103", out_of_order_commits(),
        frozenset({("KAF102", "critical"), ("KAF103", "critical")}),
    ),
    Scenario(
        "a former owner keeps committing its old offset", "KAF101", stale_store(),
        frozenset({("KAF101", "critical"), ("KAF102", "critical"), ("KAF103", "critical"), ("KAF104", "critical")}),
    ),
    Scenario(
        "the old offset is refused", "KAF105", fenced_store(), frozenset({("KAF105", "warning")}),
    ),
    Scenario(
        "a member stores offsets ahead of the owner", "KAF103", ahead_of_the_owner(),
        frozenset({("KAF101", "critical"), ("KAF103", "critical"), ("KAF104", "critical")}),
    ),
]  # fmt: skip
