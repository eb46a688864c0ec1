"""Commits and fetches of a dataset have the context that all its rows give, in whatever runs and order they come."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.engine.rules.scenarios.build import (
    START,
    Row,
    assigned,
    at,
    commit,
    fetch,
    flow,
    group_event,
    remark,
)
from tests.support.archived import parts_of
from tests.support.datasets import take_in
from tests.support.rows import Rows, connection_from_rows, with_log_ends
from tests.support.shares import examples
from wirewitness.analyser.archive.aggregate.context import run_context, run_stage
from wirewitness.analyser.archive.aggregate.hour_summaries import stamp_again
from wirewitness.analyser.archive.aggregate.kafka_context import hours_to_make
from wirewitness.analyser.archive.dataset.dataset import Change, write_parts
from wirewitness.analyser.archive.dataset.parts import HOUR_NS
from wirewitness.analyser.archive.spark.workers import HERE
from wirewitness.analyser.engine.facts.stages import STAGE_OF
from wirewitness.analyser.kafka.facts.enrich import enrich
from wirewitness.analyser.kafka.facts.ownership import add_owners

RUNS = 3
FLOWS = [flow(f"flow{one}", client_address=f"10.1.0.{one}") for one in (1, 2, 3)]
CONTEXT = {
    "kafka_offset_commits": "ts, owner_member_id, ownership_confidence, log_end_offset, epoch_ns(client_gap_ts)",
    "kafka_fetch_partitions": "ts, group_id",
}


class Told(NamedTuple):
    """Rows of a table, the run that takes them in, and whether they are provisional there and come again later."""

    table: str
    rows: list[Row]
    run: int
    open: bool


# Some seconds about the edges and in the middle of five hours.
_seconds = st.tuples(st.integers(0, 4), st.sampled_from([-4, -2, 0, 2, 4, 1800, 1803, 1806]), st.integers(0, 999)).map(
    lambda told: 3600 * told[0] + 2800 + told[1] + told[2] / 1000
)
_members = st.sampled_from(["m1", "m2", "m3"])
_waits = st.sampled_from([2_000_000, 2_000_000, 5_000_000_000, HOUR_NS, 2 * HOUR_NS + 7])


@st.composite
def _rows(draw: st.DrawFn) -> tuple[str, list[Row]]:
    seconds, member, wait = draw(_seconds), draw(_members), draw(_waits)
    generation, partition = draw(st.integers(1, 4)), draw(st.integers(0, 1))
    more: dict[str, Any] = {"ts_response": at(seconds) + wait}
    kind = draw(st.sampled_from(["commit", "commit", "fetch", "fetch", "event", "assign", "gap", "ends"]))
    if kind == "commit":
        group = draw(st.sampled_from(["billing", "billing", "billing", "audit"]))
        row = commit(seconds, 1, member, generation=generation, partition=partition, group_id=group, **more)
        return "kafka_offset_commits", [row]
    if kind == "fetch":
        ends = draw(st.integers(-1, 9))
        return "kafka_fetch_partitions", [fetch(seconds, 1, member, partition=partition, high_watermark=ends, **more)]
    if kind == "event":
        event = draw(st.sampled_from(["join", "heartbeat", "leave", *["consumer_heartbeat"] * 4]))
        return "kafka_group_events", [group_event(seconds, event, member, generation=generation, **more)]
    if kind == "assign":
        source = draw(st.sampled_from(["sync_leader", "consumer_heartbeat", "consumer_heartbeat", "describe"]))
        return "kafka_assignments", assigned(seconds, generation, {member: [partition]}, source)
    if kind == "gap":
        return "expert_infos", [remark(f"flow{member[1]}", seconds, "tcp", "gap")]
    row = {"exchange_id": "l", "flow_id": "flow1", "ts": at(seconds), "cluster_id": "c1", "topic": "payments",
           "partition": partition, "timestamp": -1, "offset": generation}  # fmt: skip
    return "kafka_list_offsets", [row]


_told = st.tuples(_rows(), st.integers(0, RUNS - 1), st.booleans()).map(lambda both: Told(*both[0], *both[1:]))


@examples(4)
@given(st.lists(_told, min_size=2, max_size=30, unique_by=lambda one: (one.table, one.rows[0]["ts"])))
def test_several_runs_know_what_all_rows_tell(told: list[Told]) -> None:
    with TemporaryDirectory() as folder:
        for run in range(RUNS + 1):
            settled = _of([one for one in told if one.run + one.open == run])
            held = _of([one for one in told if one.open and one.run == run])
            both = {**settled, **{f"{name}?": rows for name, rows in held.items()}, "flows": FLOWS}
            take_in(Path(folder) / "d", both, [run_context], gone=["flows"])
        _check(Path(folder) / "d", {**_of(told), "flows": FLOWS})


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        ({}, {"kafka_offset_commits": [commit(4 * 3600, 9)]}, {4}),
        ({}, {"kafka_fetch_partitions": [fetch(4 * 3600, 9, high_watermark=3)]}, {4}),
        # The group was heard of in a generation that the member did not reach; after hours it tells that it did.
        (
            {
                "kafka_assignments": assigned(5, 5, {"m1": [0]}, "consumer_heartbeat"),
                "kafka_group_events": [
                    group_event(5, "consumer_heartbeat", "m1", generation=5),
                    group_event(3700, "heartbeat", "m2", generation=6),
                ],
            },
            {"kafka_group_events": [group_event(4 * 3600, "consumer_heartbeat", "m1", generation=6)]},
            {1, 2},
        ),
        # The client turns out to be a member of two groups.
        ({}, {"kafka_group_events": [group_event(4 * 3600, "join", "m1", group_id="audit", generation=1)]}, {0, 1, 2}),
        # A log end of an earlier hour that comes late.
        ({}, {"kafka_fetch_partitions": [fetch(3600 - 7, 9, high_watermark=3)]}, {0, 1, 2}),
    ],
    ids=["commit", "fetch", "doubt is taken back", "two groups", "late"],
)
def test_hours_that_can_differ_are_found(
    first: dict[str, list[Row]], then: dict[str, list[Row]], expected: set[int], tmp_path: Path
) -> None:
    base = {
        "kafka_offset_commits": [commit(3600 * hour + 10, hour) for hour in range(3)],
        "kafka_fetch_partitions": [fetch(3600 * hour + 9, hour, partition=1) for hour in range(3)],
        "flows": FLOWS,
    }
    found: list[set[int | None]] = []

    def looked_at(change: Change) -> None:
        run_stage(change, HERE, "owners", STAGE_OF["kafka_ownership"])
        found.append({hour and hour - START // HOUR_NS for some in hours_to_make(change) for hour in some})

    take_in(tmp_path / "d", {**base, **first}, [looked_at, run_context])
    take_in(tmp_path / "d", then, [looked_at, run_context])
    _check(tmp_path / "d", {name: [*base.get(name, ()), *first.get(name, ()), *then.get(name, ())]
                            for name in (base | first | then)})  # fmt: skip
    assert found == [{0, 1, 2}, expected]


def test_parts_that_are_only_put_together_are_not_read_again(tmp_path: Path) -> None:
    rows = [commit(3600 * hour + 10, hour) for hour in range(3)]

    def put_together(change: Change) -> None:
        parts = change.parts("kafka_offset_commits")
        whole = parts_of(tmp_path / "d", "kafka_offset_commits").to_batches()
        change.remove(*parts)
        change.add(*write_parts("kafka_offset_commits", whole, change.staging, f"{change.run}-whole"))
        stamp_again(change)

    found: list[int] = []
    take_in(tmp_path / "d", {"kafka_offset_commits": rows}, [run_context])
    take_in(tmp_path / "d", {}, [run_context, put_together])
    take_in(tmp_path / "d", {}, [lambda change: found.append(len(hours_to_make(change)))])
    assert found == [0]


def _of(told: list[Told]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for one in told:
        found.setdefault(one.table, []).extend(one.rows)
    return found


def _check(root: Path, rows: Rows) -> None:
    """The dataset has the context columns that the stage gives when it reads everything at once."""
    con = with_log_ends(connection_from_rows(rows))
    add_owners(con)
    enrich(con)
    for table, columns in CONTEXT.items():
        kept = parts_of(root, table)
        con.register("kept", kept)
        expected, made = (con.sql(f"SELECT {columns} FROM {name} ORDER BY ALL").fetchall() for name in (table, "kept"))
        assert made == expected, table
