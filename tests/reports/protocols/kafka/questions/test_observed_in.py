"""The exchange that told how a group stands is the one whose answer came then."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import at
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.protocols.kafka.questions.groups import group_told


def event(number: int, asked: float, answered: float | None, group: str = "billing") -> dict[str, Any]:
    return {"exchange_id": f"x{number}", "ts": at(asked), "ts_response": None if answered is None else at(answered),
            "cluster_id": "c1", "group_id": group, "event": "join"}  # fmt: skip


def test_the_answer_counts_and_not_the_request() -> None:
    """A JoinGroup waits for seconds: its request is older than the answer of a heartbeat that came before its own."""
    told = [event(1, 0, 9), event(2, 7, 7.1), event(3, 9, 9.0, "other"), event(4, 20, None)]
    source = RowsAnalysis({"kafka_group_events": told})
    assert group_told(source, "c1", "billing", at(9)) == "x1"
    assert group_told(source, "c1", "billing", at(7.05)) == "x2"
    assert group_told(source, "c1", "billing", at(30)) == "x4"
    assert group_told(source, "c1", "nobody", at(9)) is None
    assert group_told(source, None, "billing", at(9)) is None
