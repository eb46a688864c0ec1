"""Errors that no rule judged: which are listed, which are everyday, which a finding explains."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.reports.incident import SECOND_NS, START_NS
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.base.questions.causes import findings
from wirewitness.reports.base.questions.operations import clients
from wirewitness.reports.base.questions.unclassified import unjudged_errors
from wirewitness.reports.report.contents import report

Row = dict[str, Any]
NAMES = {6: "NOT_LEADER_OR_FOLLOWER", 19: "NOT_ENOUGH_REPLICAS", 79: "MEMBER_ID_REQUIRED"}


def at(seconds: float) -> int:
    return START_NS + round(seconds * SECOND_NS)


def flow(flow_id: str = "f", **changes: Any) -> Row:
    return {
        "flow_id": flow_id, "protocol": "kafka", "client_address": "10.0.0.1", "client_port": 50_000,
        "server_address": "10.0.0.9", "server_port": 9092, "ts_first": at(0), "ts_last": at(100),
        "observed_until": at(100), "packets": 100, "data_segments": 90, "bytes_to_server": 10, "bytes_to_client": 10,
        "handshake_seen": True, "handshake": "complete", "gap_bytes": 0, "encrypted": False, **changes,
    }  # fmt: skip


def exchange(number: int, seconds: float, operation: str = "Produce", error: int | None = 0, **changes: Any) -> Row:
    status = "unanswered" if error is None else "error" if error else "ok"
    return {
        "exchange_id": f"x{number}", "flow_id": "f", "protocol": "kafka", "operation": operation, "client_id": "feed",
        "client_address": "10.0.0.1", "ts": at(seconds), "status": status, "error_code": error,
        "error_name": NAMES.get(error or 0), **changes,
    }  # fmt: skip


def finding(first: float = 0.0, last: float = 100.0, evidence: str = "none", **numbers: Any) -> Row:
    return {
        "finding_id": "id", "code": "KAF205", "name": "produce-rejected", "severity": "warning", "confidence": "high",
        "provisional": False, "subject": "s", "sentence": "It was refused.", "next_step": "n", "ts_first": at(first),
        "ts_last": at(last), "evidence": json.dumps([{"file": "a", "packet": 1, "message_id": evidence}]),
        "numbers": json.dumps(numbers),
    }  # fmt: skip


def listed(*exchanges: Row, flows: list[Row] | None = None, found: list[Row] | None = None) -> list[tuple[Any, ...]]:
    source = RowsAnalysis({"exchanges": exchanges, "flows": flows or [flow()], "findings": found or []})
    return [(e.exchanges, e.operation, e.error_code) for e in unjudged_errors(source, findings(source))]


REFUSED = [exchange(n, n, error=19) for n in range(5)]


def test_errors_of_one_client_are_counted() -> None:
    assert listed(*REFUSED, exchange(9, 9)) == [(5, "Produce", 19)]


@pytest.mark.parametrize(
    ("exchanges", "expected"),
    [
        pytest.param([exchange(1, 1, "JoinGroup", 79)], [], id="the broker gives a member its id"),
        pytest.param([exchange(1, 1, "Heartbeat", 27)], [], id="a rebalance"),
        pytest.param([exchange(1, 1, error=6), exchange(2, 3)], [], id="a leader moved, and it goes on"),
        pytest.param([exchange(1, 1, error=6), exchange(2, 40)], [(1, "Produce", 6)], id="it goes on much later"),
        pytest.param([exchange(1, 1, error=6), exchange(2, 3, "Fetch")], [(1, "Produce", 6)], id="another goes on"),
        pytest.param([exchange(1, 95, error=6)], [], id="the capture ends before that is known"),
        pytest.param(
            [exchange(n, n / 10, "Heartbeat", 27) for n in range(100)], [(100, "Heartbeat", 27)], id="again and again"
        ),
        pytest.param([exchange(n, n, "Heartbeat", 27) for n in range(80)], [], id="again, but slowly"),
        pytest.param([exchange(1, 1, error=19), exchange(2, 3)], [(1, "Produce", 19)], id="never everyday"),
    ],
)
def test_everyday_errors_are_left_out(exchanges: list[Row], expected: list[tuple[Any, ...]]) -> None:
    assert listed(*exchanges) == expected


@pytest.mark.parametrize(
    ("found", "is_explained"),
    [
        pytest.param(finding(evidence="x3"), True, id="one of them is evidence"),
        pytest.param(finding(evidence="y"), False, id="evidence is something else"),
        pytest.param(finding(error_code=19), True, id="the code, no clients"),
        pytest.param(finding(error_code=19, address="10.0.0.1", client_id="feed"), True, id="code and client"),
        pytest.param(
            finding(error_code=19, victims=[{"address": "10.0.0.1", "client_id": "feed"}]), True, id="code and victim"
        ),
        pytest.param(finding(error_code=19, address="10.0.0.1", client_id="other"), False, id="another client"),
        pytest.param(finding(error_code=29), False, id="another code"),
        pytest.param(finding(60, 70, error_code=19), False, id="another time"),
        pytest.param(finding(errors={"19": 5}), True, id="one of several codes"),
    ],
)
def test_what_a_finding_explains_is_left_out(found: Row, is_explained: bool) -> None:
    assert (listed(*REFUSED, found=[found]) == []) == is_explained


@pytest.mark.parametrize(("due", "counts"), [(True, True), (False, False), (None, False)])
def test_a_missing_answer_counts_where_one_was_due(due: bool | None, counts: bool) -> None:
    missing = exchange(1, 10, "Produce", None, answer_due=due)
    assert listed(missing, flows=[flow()]) == ([(1, "Produce", None)] if counts else [])
    source = RowsAnalysis({"exchanges": [missing, exchange(2, 5)], "flows": [flow()]})
    assert [(c.exchanges, c.errors) for c in clients(source, 9)] == [(2, 1 if counts else 0)]


def test_the_head_says_so() -> None:
    source = RowsAnalysis({"exchanges": REFUSED, "flows": [flow()]})
    text = " ".join(render(report(source), 300).split())
    assert text.startswith(
        "No findings, but 5 errors that no rule judges. errors 5 Produce NOT_ENOUGH_REPLICAS of client"
    )
    assert "client feed at 10.0.0.1, 11:06:40.000 UTC to 11:06:44.000 UTC: no rule" in text


def test_clients_of_one_error_share_a_line() -> None:
    others = [exchange(n, n, error=19, client_id=f"feed-{n}") for n in range(6, 9)]
    source = RowsAnalysis({"exchanges": [*REFUSED, *others], "flows": [flow()]})
    text = " ".join(render(report(source), 300).split())
    assert "8 Produce NOT_ENOUGH_REPLICAS of 4 clients, 5 of them of client feed at 10.0.0.1" in text


@pytest.mark.parametrize("evidence", ["nothing", "[", "{}", "3", "[1, null, {}]", '[{"message_id": [1]}]', "[" * 5_000])
def test_evidence_that_cannot_be_read_explains_nothing(evidence: str) -> None:
    """Of a dataset that somebody else wrote."""
    assert listed(*REFUSED, found=[finding() | {"evidence": evidence}]) == [(5, "Produce", 19)]


def test_evidence_of_many_thousand_messages_explains_the_one_that_failed() -> None:
    many = [{"message_id": f"m{number}"} for number in range(50_000)]
    told = finding() | {"evidence": json.dumps([*many, {"message_id": "x4"}])}
    assert listed(*REFUSED, found=[told]) == []
