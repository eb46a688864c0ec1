"""What differs between two times comes first, and what is the same on both sides does not."""

from __future__ import annotations

from typing import Any

from analyser.options import ReadOptions
from reports.questions.differences import clients_between, errors_between, findings_between, operations_between
from tests.reports.questions.test_apis import SECOND, START, exchange
from tests.support.analysis_from_rows import RowsAnalysis

HALF = 50


def tables() -> dict[str, list[dict[str, Any]]]:
    """For 50 seconds all is well; then Produce takes ten times as long and Fetch fails, with an upgraded client."""
    rows = []
    for n in range(2 * HALF):
        late = n >= HALF
        rows.append(exchange(n, "writer", latency_ms=20.0 if late else 2.0, version="9"))
        failed, version = (6 if late and n % 2 else 0), ("13" if late else "12")
        rows.append(
            exchange(1000 + n, "reader", operation="Fetch", error=failed, version=version, ts=START + n * SECOND)
        )
        rows.append(exchange(2000 + n, "old", operation="Metadata", version="1", ts=START + n * SECOND))
    unknown = {"error": 3, "error_name": "UNKNOWN", "version": "1", "ts": START + SECOND}
    rows.append(exchange(5000, "old", operation="Metadata", **unknown))
    finding = {
        "finding_id": "f", "code": "KAF103", "name": "offset-regression", "severity": "critical", "confidence": "high",
        "provisional": False, "subject": "s", "sentence": "s", "next_step": "n", "ts_first": START + 60 * SECOND,
        "ts_last": START + 70 * SECOND, "evidence": "[]", "numbers": "{}",
    }  # fmt: skip
    return {"exchanges": rows, "findings": [finding]}


def sides() -> tuple[RowsAnalysis, RowsAnalysis]:
    told, middle = tables(), START + HALF * SECOND
    return RowsAnalysis(told, ReadOptions(to_ns=middle)), RowsAnalysis(told, ReadOptions(from_ns=middle))


def test_slow_and_failing_operations_come_before_those_that_stayed() -> None:
    found = operations_between(*sides())
    assert [row["operation"] for row in found] == ["Fetch", "Produce", "Metadata"]
    produce = found[1]
    assert (produce["p50_ms_a"], produce["p50_ms_b"], produce["changed"]) == (2.0, 20.0, 10.0)
    assert (found[0]["errors_a"], found[0]["errors_b"]) == (0, 25)


def test_errors_of_one_side_come_first() -> None:
    assert [(row["error"], row["exchanges_a"], row["exchanges_b"]) for row in errors_between(*sides())] == [
        ("NOT_LEADER", 0, 25), ("UNKNOWN", 1, 0)]  # fmt: skip


def test_only_clients_that_differ_are_listed() -> None:
    assert [(row["client_id"], row["before"], row["after"]) for row in clients_between(*sides())] == [
        ("reader", "Fetch 12", "Fetch 13")]  # fmt: skip


def test_findings_count_where_they_lie() -> None:
    assert [(row["code"], row["findings_a"], row["findings_b"]) for row in findings_between(*sides())] == [
        ("KAF103", 0, 1)]  # fmt: skip


def test_nothing_differs_from_itself() -> None:
    whole = RowsAnalysis(tables())
    assert {row["changed"] for row in operations_between(whole, whole)} == {1.0}
    assert clients_between(whole, whole) == []


def test_a_client_that_came_is_listed() -> None:
    early = RowsAnalysis({"exchanges": [exchange(1, "old")]})
    late = RowsAnalysis({"exchanges": [exchange(1, "old"), exchange(2, "new")]})
    assert [(row["client_id"], row["before"], row["after"]) for row in clients_between(early, late)] == [
        ("new", "not there", "there")]  # fmt: skip
