"""Findings grouped by cause."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reports.questions.causes import causes, findings, severity_reached
from tests.reports.incident import incident_rows
from tests.support.analysis_from_rows import RowsAnalysis


def finding(number: int, **changes: Any) -> dict[str, Any]:
    numbers = {"group": "g", "topic": "t", "partition": number, "delta": number, "committers": changes.pop("who", [])}
    return {
        "finding_id": f"id{number}", "code": "KAF103", "name": "offset-regression", "severity": "warning",
        "confidence": "medium", "provisional": False, "subject": f"partition={number}", "sentence": "s",
        "next_step": "n", "evidence": json.dumps([{"file": "a.pcap", "packet": number, "message_id": None}]),
        "numbers": json.dumps({**numbers, **changes.pop("numbers", {})}), **changes,
    }  # fmt: skip


def grouped(*rows: dict[str, Any]) -> list[list[str]]:
    found = causes(findings(RowsAnalysis({"findings": list(rows)})))
    return [[f.finding_id for f in cause.findings] for cause in found]


A = [{"address": "10.0.0.1", "client_id": "c", "member_id": "m1", "generation": 1}]
A_LATER = [{**A[0], "generation": 2}]
B = [{"address": "10.0.0.2", "client_id": "c", "member_id": "m2", "generation": 1}]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([finding(1, who=A), finding(2, who=A)], [["id2", "id1"]], id="same committers, worst first"),
        pytest.param([finding(1, who=A), finding(2, who=A_LATER)], [["id2", "id1"]], id="generations do not part them"),
        pytest.param([finding(1, who=A), finding(2, who=B)], [["id2"], ["id1"]], id="other committers"),
        pytest.param([finding(1, who=A), finding(2, who=A, code="KAF101")], [["id2", "id1"]], id="other code"),
        pytest.param(
            [finding(1, code="CAP101"), finding(2, code="CAP102")], [["id2"], ["id1"]], id="other code, no committers"
        ),
        pytest.param(
            [finding(1, code="CAP107"), finding(2, code="CAP107")], [["id2", "id1"]], id="one code, no committers"
        ),
        pytest.param(
            [finding(1, who=A), finding(2, who=A + B, numbers={"partition": 1}), finding(3, who=A)],
            [["id3"], ["id2", "id1"]],
            id="one partition, some committers each",
        ),
        pytest.param(
            [finding(1, who=A), finding(2, who=A, numbers={"group": "h"})], [["id2"], ["id1"]], id="other group"
        ),
        pytest.param(
            [finding(1, who=A), finding(2, who=A, numbers={"cluster": "x"})], [["id2"], ["id1"]], id="other cluster"
        ),
        pytest.param(
            [finding(9, who=A), finding(2, who=A, severity="critical")],
            [["id2", "id9"]],
            id="severity outranks numbers",
        ),
        pytest.param(
            [finding(1, who=A), finding(2, who=B, severity="critical")], [["id2"], ["id1"]], id="critical cause first"
        ),
    ],
)
def test_causes(rows: list[dict[str, Any]], expected: list[list[str]]) -> None:
    assert grouped(*rows) == expected


def test_offsets_are_not_a_measure_of_badness() -> None:
    assert grouped(finding(1, who=A, numbers={"last_offset": 10**9}), finding(2, who=A)) == [["id2", "id1"]]


def test_a_cause_knows_its_partitions_and_packets() -> None:
    cause = causes(findings(RowsAnalysis(incident_rows())))[0]
    assert cause.partitions() == [("payments", 3), ("payments", 5), ("payments", 6), ("payments", 7)]
    assert cause.packets() == {"incident.pcapng": [812, 815, 816, 817, 903, 905, 906, 907]}
    assert cause.confidence == "high"


@pytest.mark.parametrize(
    ("severity", "reached"),
    [("info", ["info"]), ("warning", ["info", "warning"]), ("critical", ["info", "warning", "critical"])],
)
def test_severity_reached(severity: str, reached: list[str]) -> None:
    source = RowsAnalysis({"findings": [finding(1, severity=severity)]})
    assert [s for s in ("info", "warning", "critical") if severity_reached(source, s)] == reached


def test_broken_json_in_a_finding_costs_only_its_details() -> None:
    found = findings(RowsAnalysis({"findings": [finding(1) | {"evidence": "{", "numbers": "[1]"}]}))
    assert (found[0].evidence, dict(found[0].numbers), found[0].committers) == ((), {}, ())
