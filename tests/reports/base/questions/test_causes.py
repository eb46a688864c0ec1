"""Findings grouped by cause."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.reports.incident import incident_rows
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.questions.causes import causes, findings, severity_among


def finding(number: int, **changes: Any) -> dict[str, Any]:
    numbers = {"group": "g", "topic": "t", "partition": number, "delta": number, "committers": changes.pop("who", [])}
    return {
        "finding_id": f"id{number}", "code": "KAF103", "name": "offset-regression", "severity": "warning",
        "confidence": "medium", "provisional": False, "subject": f"partition={number}", "sentence": "s",
        "next_step": "n", "evidence": json.dumps([{"file": "a.pcap", "packet": number, "message_id": None}]),
        "numbers": json.dumps({**numbers, **changes.pop("numbers", {})}), **changes,
    }  # fmt: skip


def test_findings_come_by_cause_in_the_order_of_their_stories() -> None:
    rows = [
        finding(1, incident_id="id2", incident_order="b-2"),
        finding(2, incident_id="id2", incident_order="b-1"),
        finding(3, incident_id="id3", incident_order="a-1", severity="critical"),
        finding(4, incident_id=None, incident_order=None),
    ]
    found = causes(findings(RowsAnalysis({"findings": rows})))
    assert [[f.finding_id for f in cause.findings] for cause in found] == [["id3"], ["id2", "id1"], ["id4"]]
    assert [cause.severity for cause in found] == ["critical", "warning", "warning"]


def test_a_cause_knows_its_partitions_and_packets() -> None:
    cause = causes(findings(RowsAnalysis(incident_rows())))[0]
    assert cause.partitions() == [("payments", 3), ("payments", 5), ("payments", 6), ("payments", 7)]
    assert cause.packets() == {"incident.pcapng": [812, 815, 816, 817, 903, 905, 906, 907]}
    assert cause.confidence == "high"


@pytest.mark.parametrize(
    ("severity", "reached"),
    [("info", ["info"]), ("warning", ["info", "warning"]), ("critical", ["info", "warning", "critical"])],
)
def test_severity_among(severity: str, reached: list[str]) -> None:
    found = findings(RowsAnalysis({"findings": [finding(1, severity=severity)]}))
    assert [s for s in ("info", "warning", "critical") if severity_among(found, s)] == reached


def test_broken_json_in_a_finding_costs_only_its_details() -> None:
    found = findings(RowsAnalysis({"findings": [finding(1) | {"evidence": "{", "numbers": "[1]"}]}))
    assert (found[0].evidence, dict(found[0].numbers), found[0].committers) == ((), {}, ())
