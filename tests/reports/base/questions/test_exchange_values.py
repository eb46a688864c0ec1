"""What an exchange has in common with others, each as the list of exchanges filters by it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.questions.exchange_text import CommonValue, exchange_values
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.base.questions.wanted_exchanges import Wanted, exchange_query

NO_EXCHANGE = "f-c-9"


def exchange(number: int, **changed: Any) -> dict[str, Any]:
    request = f"f-c-{number}"
    row = {
        "exchange_id": request, "request_message_id": request, "response_message_id": f"f-s-{number}",
        "protocol": "kafka", "operation": "OffsetCommit", "client_id": "ledger-a", "client_address": "10.0.0.1",
        "server_address": "fd00::2", "server_port": 9092, "status": "ok", "error_code": 0, "error_name": "NONE",
        "ts": 1,
    }  # fmt: skip
    return row | changed


@pytest.fixture
def analysis() -> RowsAnalysis:
    commits = [
        {"exchange_id": "f-c-1", "group_id": "ledger", "topic": topic, "partition": n, "ts": 1}
        for n, topic in enumerate(("payments", "payments", "refunds"))
    ]
    failed = {"status": "error", "error_code": 22, "error_name": "ILLEGAL_GENERATION", "client_id": None}
    return RowsAnalysis({"exchanges": [exchange(1), exchange(2, **failed)], "kafka_offset_commits": commits})


@pytest.mark.parametrize("message", ["f-c-1", "f-s-1"])
def test_of_the_request_and_of_the_answer(analysis: RowsAnalysis, message: str) -> None:
    assert exchange_values(analysis, message) == [
        CommonValue("client", "ledger-a@10.0.0.1"), CommonValue("server", "[fd00::2]:9092"),
        CommonValue("operation", "OffsetCommit"), CommonValue("about", "ledger"), CommonValue("about", "payments"),
        CommonValue("about", "refunds"),
    ]  # fmt: skip


def test_each_value_finds_the_exchange(analysis: RowsAnalysis) -> None:
    for message in ("f-c-1", "f-c-2"):
        for kind, value in exchange_values(analysis, message):
            found = rows(analysis, exchange_query(Wanted()._replace(**{kind: value})))
            assert message in {row["exchange_id"] for row in found}, (kind, value)


def test_an_error_is_one_and_no_error_none(analysis: RowsAnalysis) -> None:
    told = exchange_values(analysis, "f-c-2")
    assert told[0] == CommonValue("client", "@10.0.0.1")
    assert [one.value for one in told if one.kind == "error"] == ["ILLEGAL_GENERATION"]
    assert [one for one in exchange_values(analysis, "f-c-1") if one.kind == "error"] == []


def test_a_message_without_an_exchange_has_none(analysis: RowsAnalysis) -> None:
    assert exchange_values(analysis, NO_EXCHANGE) == []
