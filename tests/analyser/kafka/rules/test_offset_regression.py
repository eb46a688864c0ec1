"""KAF103 says why an offset went back: what moved it is looked for first, and what is delivered again is counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import Row, at, commit, fetch, group_event, simple_commit, stored
from tests.analyser.engine.rules.scenarios.build_offsets import epoch_end
from tests.support.rows import connection_from_rows
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.facts.stages import STAGES
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.kafka.facts.committed import add_committed
from wirewitness.analyser.tables.tables import TABLES


def found(**rows: list[Row]) -> list[Finding]:
    joins = [group_event(0, "join", "m1"), group_event(9, "join", "m1", member_id="m1-again")]
    con = connection_from_rows({"kafka_group_events": joins, **rows})
    for stage in STAGES:
        if any(TABLES[name].protocol == "kafka" for name in (*stage.makes, *stage.reads)):
            stage.run(con)
    return run(con, [RULES["KAF103"]])


def deleted(seconds: float, change: str, resource: str = "group", name: str = "billing") -> Row:
    return {
        "exchange_id": "flow9-c1", "ts": at(seconds), "ts_response": at(seconds), "cluster_id": "c1",
        "client_id": "ops", "client_address": "10.1.0.77", "operation": "x", "validate_only": False,
        "resource_type": resource, "resource_name": name, "change": change, "error_code": 0, "flow_id": "flow9",
    }  # fmt: skip


def again(**more: Any) -> dict[str, list[Row]]:
    """The group had stored 3000, reads from 1 on again and stores 2559 first."""
    return {
        "kafka_offset_commits": [commit(5, 3000), commit(15, 2559, member_id="m1-again", generation=1)],
        "kafka_fetch_partitions": [
            fetch(1, 0, next_offset=3000, records_count=3000, error_code=0),
            fetch(10, 1, next_offset=2800, records_count=2799, error_code=0, **more),
        ],
    }


@pytest.mark.parametrize("change", ["delete", "delete offsets of payments 0"])
def test_offsets_that_somebody_deleted_are_named_with_who_did_it_and_what_comes_again(change: str) -> None:
    (one,) = found(**again(), kafka_admin_changes=[deleted(7, change)], kafka_offset_fetches=[stored(9.5, -1)])
    assert "ops at 10.1.0.77" in one.sentence
    assert "2,999" in one.sentence
    assert one.numbers["records_again"] == 2999
    assert (one.severity, one.numbers["cause"]) == ("warning", "moved")
    assert "Nothing to do" not in one.next_step


def test_an_offset_that_was_gone_without_anybody_seen_is_not_a_seek() -> None:
    (one,) = found(**again(), kafka_offset_fetches=[stored(9.5, -1)])
    assert "by itself" not in one.sentence
    assert one.numbers["records_again"] == 2999


def test_offsets_of_a_topic_made_anew_are_no_step_back() -> None:
    rows = again(topic_id="new")
    rows["kafka_fetch_partitions"][0]["topic_id"] = "old"
    assert found(**rows, kafka_admin_changes=[deleted(7, "delete", "topic", "payments")]) == []


def test_a_seek_counts_what_is_fetched_again_and_is_not_waved_through() -> None:
    (one,) = found(**again())
    assert (one.severity, one.numbers["cause"], one.numbers["records_again"]) == ("info", "seek", 2999)
    assert "2,999" in one.sentence
    assert "Nothing to do" not in one.next_step


def test_a_reset_by_a_tool_does_not_say_nothing_to_do() -> None:
    (one,) = found(kafka_offset_commits=[commit(1, 1000), commit(2, 1000), commit(9, 400, "", generation=-1)])
    assert (one.numbers["records_again"], one.numbers["replay_now"]) == (0, 600)
    assert "a restart would reprocess 600" in one.sentence
    assert "Nothing to do" not in one.next_step


def test_who_is_ahead_of_the_owner_is_named_also_before_owners_are_known() -> None:
    commits = [
        row
        for n in range(6)
        for row in (commit(n + 1, 5000 + n, owner_member_id="m2"), commit(n + 1.5, 100 + n, "m2", owner_member_id="m2"))
    ]
    commits[0]["owner_member_id"] = commits[1]["owner_member_id"] = None
    con = connection_from_rows({"kafka_offset_commits": commits})
    add_committed(con)
    (one,) = run(con, [RULES["KAF103"]])
    assert (one.numbers["cause"], one.numbers["steps_back"], one.confidence) == ("overtaken", 6, "medium")


@pytest.mark.parametrize(("others", "named"), [("forked", "second process"), ("flow1", "concurrently")])
def test_a_member_that_commits_over_two_connections_may_be_two_processes(others: str, named: str) -> None:
    commits = [row for n in range(6) for row in (commit(n, 500 + n), commit(n + 0.5, 200, flow_id=others))]
    (one,) = found(kafka_offset_commits=commits)
    assert (one.severity, one.numbers["same_committer"]) == ("critical", True)
    assert named in one.next_step


JOB = {"client_id": "billing-1", "client_address": "10.1.0.1", "flow_id": "flow1"}


def reset_while_it_works(to: int, *later: Row, **rows: list[Row]) -> list[Finding]:
    """A job that reads 100 records a second, and a tool that sets its offset after 5 s."""
    before = [simple_commit(n, n * 100, **JOB) for n in range(1, 6)]
    fetches = [fetch(n, n * 100, next_offset=n * 100 + 100, records_count=100, error_code=0) for n in range(5)]
    return found(
        kafka_offset_commits=[*before, simple_commit(5.5, to), *later],
        **{"kafka_fetch_partitions": fetches, **rows},
    )


def test_a_reset_that_is_overwritten_tells_so_and_no_redelivery() -> None:
    (one,) = reset_while_it_works(0, simple_commit(6.8, 680, **JOB))
    assert "adminclient-1" in one.sentence
    assert "was lost. It was overwritten 1.3 s later by client billing-1" in one.sentence
    assert "reprocess" not in one.sentence
    assert (one.severity, one.numbers["records_again"], one.numbers["resets_lost"]) == ("info", 0, 1)
    assert len(one.evidence) == 3


def test_a_reset_forward_that_is_overwritten_does_not_accuse_the_job() -> None:
    (one,) = reset_while_it_works(5000, simple_commit(6.8, 680, **JOB))
    assert (one.severity, one.numbers["cause"], one.numbers["resets_lost"]) == ("info", "reset lost", 1)
    assert "adminclient-1" in one.sentence
    assert "by client billing-1" in one.sentence


def test_a_reset_of_a_stopped_group_that_is_read_again_counts_what_came_again() -> None:
    (one,) = reset_while_it_works(
        100,
        simple_commit(9, 300, **JOB),
        kafka_offset_fetches=[stored(7, 100)],
        kafka_fetch_partitions=[
            fetch(4, 400, next_offset=500, records_count=100, error_code=0),
            fetch(8, 100, next_offset=300, records_count=200, error_code=0, flow_id="again"),
        ],
    )
    assert (one.numbers["cause"], one.numbers["records_again"], one.numbers["resets_lost"]) == ("admin reset", 400, 0)
    assert "400 messages are reprocessed" in one.sentence


def test_a_truncated_log_is_told_with_where_and_how_much() -> None:
    (one,) = found(
        kafka_offset_commits=[commit(3, 500), commit(6, 350)],
        kafka_leader_epochs=[epoch_end(4.5, 300)],
        kafka_fetch_partitions=[
            fetch(1, 0, next_offset=520, records_count=520, error_code=0),
            fetch(5, 300, next_offset=350, records_count=50, error_code=0, high_watermark=350),
        ],
    )
    assert "the log was truncated at 300 (OffsetForLeaderEpoch). About 220 acknowledged records" in one.sentence
    assert (one.severity, one.numbers["cause"], one.numbers["records_lost"]) == ("warning", "truncated", 220)
    assert "by itself" not in one.sentence
    assert one.numbers["records_again"] is None


def test_an_epoch_that_ends_where_the_reader_was_is_no_truncation() -> None:
    (one,) = found(
        kafka_offset_commits=[commit(3, 500), commit(6, 350)],
        kafka_leader_epochs=[epoch_end(4.5, 500)],
        kafka_fetch_partitions=[
            fetch(1, 0, next_offset=500, records_count=500, error_code=0),
            fetch(5, 300, next_offset=350, records_count=50, error_code=0),
        ],
    )
    assert (one.severity, one.numbers["cause"]) == ("info", "seek")
