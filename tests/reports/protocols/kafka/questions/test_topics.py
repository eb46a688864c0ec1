"""Partitions of topics that were deleted, and requests without an answer, as views of Kafka tell them."""

from __future__ import annotations

from typing import Any

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.questions.failures import UNANSWERED
from wirewitness.reports.base.questions.operations import clients, operations
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

Row = dict[str, Any]
S = 1_000_000_000
PLACE = {"cluster_id": "c", "topic": "t", "partition": 0}


def fetched(second: int, end: int, topic_id: str) -> Row:
    return PLACE | {"ts": second * S, "ts_response": second * S, "high_watermark": end, "log_start_offset": 2,
                    "topic_id": topic_id, "records_count": 5}  # fmt: skip


def described(second: int, topic_id: str, leader: int) -> Row:
    return PLACE | {
        "ts": second * S,
        "topic_id": topic_id,
        "leader_id": leader,
        "leader_epoch": 0,
        "replicas": [leader],
    }


def deleted(second: int, **changes: Any) -> Row:
    return {"cluster_id": "c", "ts": second * S, "ts_response": second * S, "operation": "DeleteTopics",
            "resource_name": "t", "error_code": 0, **changes}  # fmt: skip


LIVED = ([fetched(5, 90, "a")], [described(1, "a", 1)])
AGAIN = ([fetched(25, 7, "b")], [described(22, "b", 2)])


@pytest.mark.parametrize(
    ("fetches", "told", "changes", "expected"),
    [
        pytest.param(*LIVED, [], (90, 2, 1, None), id="it lives"),
        pytest.param(*LIVED, [deleted(9)], (None, None, None, 9 * S), id="deleted"),
        pytest.param(*LIVED, [deleted(9, error_code=29)], (90, 2, 1, None), id="a refused deletion"),
        pytest.param(*LIVED, [deleted(9, cluster_id="d")], (90, 2, 1, None), id="in another cluster"),
        pytest.param(LIVED[0] + AGAIN[0], LIVED[1] + AGAIN[1], [deleted(9)], (7, 2, 2, None), id="made anew"),
        pytest.param(LIVED[0], LIVED[1] + AGAIN[1], [deleted(9)], (None, None, 2, None), id="made anew, not yet read"),
        pytest.param(
            [*LIVED[0], fetched(12, 91, "a")], LIVED[1], [deleted(9)], (None, None, None, 9 * S), id="an old answer"
        ),
    ],
)
def test_a_deleted_topic_has_no_log_end_and_no_leader(
    fetches: list[Row], told: list[Row], changes: list[Row], expected: tuple[int | None, ...]
) -> None:
    tables = {"kafka_fetch_partitions": fetches, "kafka_partitions": told, "kafka_admin_changes": changes}
    view = VIEWS["topics"]["partitions"]
    (row,) = [one for one in rows(RowsAnalysis(tables), view_sql(view)) if one["cluster_id"] == "c"]
    gone = row["ts_deleted"]
    assert (row["log_end"], row["log_start"], row["leader_id"], gone.value if gone else None) == expected
    assert row["records_read"] == 5 * len(fetches)


def test_the_topic_that_the_operator_deleted() -> None:
    view = VIEWS["topics"]["partitions"]
    with wirewitness.read(SAMPLES / "kafka_admin.pcapng", tables=[*view.tables]) as analysis:
        found = rows(analysis, view_sql(view))
    gone = {row["topic"]: (row["leader_id"], str(row["ts_deleted"])) for row in found if row["ts_deleted"] is not None}
    assert gone == {"orders-assigned": (None, "2026-11-20 12:16:20.619835184+00:00")}
    assert {row["leader_id"] for row in found if row["topic"] == "orders"} == {1}


def test_no_answer_means_the_same_everywhere() -> None:
    """A link was cut: a commit and heartbeat had no answer; fetches that the end of the capture left open count not."""
    (capture,) = (SAMPLES / "incidents/link_down-2").glob("*.zst")
    views = VIEWS["clients"][""], VIEWS["brokers"]["endpoints"], VIEWS["clients"]["over-time"]
    with wirewitness.read(capture, tables=sorted({table for view in views for table in view.tables})) as analysis:
        due = len(rows(analysis, UNANSWERED))
        open_ = rows(analysis, "select count(*) as n from exchanges where status = 'unanswered'")[0]["n"]
        of_clients, *others = (rows(analysis, view_sql(view, width_ns=S)) for view in views)
        by_operation = operations(analysis)
        by_client = {(one.client_id, one.client_address): one.errors for one in clients(analysis, 1000)}
    assert 0 < due < open_
    assert sum(one.unanswered for one in by_operation) == due
    for found in (of_clients, *others):
        assert sum(row["unanswered"] for row in found) == due
    assert by_client == {
        (row["client_id"], row["client_address"]): row["errors"] + row["unanswered"] for row in of_clients
    }
