"""Errors name the client with most of them and its share, whatever the order of rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.questions.apis import CLIENTS_BY_ERRORS, errors_of, operations_of
from wirewitness.reports.base.questions.client_rows import (
    Who,
    client_connections,
    client_groups,
    client_operations,
    who_of,
)
from wirewitness.reports.base.questions.exchange_rows import constant
from wirewitness.reports.base.questions.exchange_text import exchanges_say
from wirewitness.reports.base.questions.wanted_exchanges import Wanted, exchange_query

START = 1_790_000_000_000_000_000
SECOND = 1_000_000_000


def exchange(
    number: int, client: str | None, *, error: int = 0, operation: str = "Produce", **more: Any
) -> dict[str, Any]:
    """One exchange a second."""
    return {
        "exchange_id": f"f-c{number}", "flow_id": f"flow-{client}", "protocol": "kafka", "operation": operation,
        "client_id": client, "client_address": "10.0.0.2", "ts": START + number * SECOND, "latency_ms": 1.0,
        "status": "error" if error else "ok", "error_code": error, "error_name": "NOT_LEADER" if error else "NONE",
        "request_message_id": f"f-c{number}", "server_address": "10.0.0.9", "server_port": 9092, **more,
    }  # fmt: skip


ROWS = [
    *(exchange(n, "rare", error=6) for n in range(3)),
    *(exchange(n, "worst", error=6) for n in range(3, 294)),
    *(exchange(n, "fine") for n in range(294, 400)),
    exchange(400, None, error=3, operation="Metadata", error_name=None),
]


@pytest.mark.parametrize("step", [1, -1])
def test_the_client_with_most_errors_is_named_with_its_share(step: int) -> None:
    source = RowsAnalysis({"exchanges": ROWS[::step]})
    errors = {row["operation"]: row for row in source.sql(errors_of("kafka")).to_pylist()}
    assert (errors["Produce"]["client_id"], errors["Produce"]["most_by"]) == ("worst", "291 of 294")
    assert (errors["Metadata"]["error"], errors["Metadata"]["client_address"]) == ("3", "10.0.0.2")
    operations = {row["operation"]: row for row in source.sql(operations_of("kafka")).to_pylist()}
    assert (operations["Produce"]["errors"], operations["Produce"]["client_id"]) == (294, "worst")
    assert operations["Produce"]["most_by"] == "291 of 294"


def test_clients_by_errors_leave_out_those_without() -> None:
    found = RowsAnalysis({"exchanges": ROWS}).sql(f"{CLIENTS_BY_ERRORS} order by errors desc, client_id").to_pylist()
    assert [(row["client_id"], row["errors"], row["mostly"]) for row in found] == [
        ("worst", 291, "NOT_LEADER 291 of 291"), ("rare", 3, "NOT_LEADER 3 of 3"), (None, 1, "3 1 of 1")]  # fmt: skip


def test_an_operation_without_errors_names_nobody() -> None:
    (row,) = RowsAnalysis({"exchanges": [exchange(1, "fine")]}).sql(operations_of("kafka")).to_pylist()
    assert (row["errors"], row["client_id"], row["most_by"]) == (0, None, None)


def test_no_error_is_called_none() -> None:
    source = RowsAnalysis({"exchanges": ROWS})
    names = source.sql(f"select distinct error_name from ({exchange_query(Wanted())})").column(0).to_pylist()
    assert set(names) == {"NOT_LEADER", None}


def test_columns_with_one_value_are_told_apart_from_others() -> None:
    source = RowsAnalysis({"exchanges": ROWS})
    same = constant(source, exchange_query(Wanted(client="worst")), ["protocol", "client_id", "error_name", "version"])
    assert same == {"protocol": "kafka", "client_id": "worst", "error_name": "NOT_LEADER", "version": None}
    assert "error_name" not in constant(source, exchange_query(Wanted()), ["error_name", "client_id"])


def test_what_asks_the_server_to_wait_can_be_left_out() -> None:
    source = RowsAnalysis({"exchanges": [exchange(1, "a", awaitable=True), exchange(2, "a", awaitable=False),
                                         exchange(3, "a")]})  # fmt: skip
    found = source.sql(f"select exchange_id from ({exchange_query(Wanted(waits='no'))}) order by 1")
    assert found.column(0).to_pylist() == ["f-c2", "f-c3"]


def test_what_an_exchange_says() -> None:
    commits = [
        {"exchange_id": "f-c1", "ts": START, "flow_id": "f", "api": "OffsetCommit", "group_id": "ledger",
         "topic": "payments", "partition": part, "committed_offset": 40 + part}
        for part in range(5)
    ]  # fmt: skip
    source = RowsAnalysis({
        "exchanges": [exchange(1, "a", operation="OffsetCommit"), exchange(2, "a", operation="Heartbeat")],
        "kafka_offset_commits": commits,
        "messages": [{"message_id": "f-c2", "flow_id": "f", "ts": START, "summary": "group_id=ledger"}],
    })  # fmt: skip
    assert exchanges_say(source, dict.fromkeys(("f-c1", "f-c2", "f-c3"), START)) == {
        "f-c1": "ledger · payments 0 = 40, payments 1 = 41, payments 2 = 42 and 2 more",
        "f-c2": "group_id=ledger",
    }
    assert exchanges_say(source, {}) == {}


def test_all_of_one_client() -> None:
    commit = {"exchange_id": "f-c1", "ts": START, "flow_id": "f", "api": "OffsetCommit", "group_id": "ledger",
              "client_id": "worst", "client_address": "10.0.0.2", "error_code": 25, "partition": 0}  # fmt: skip
    flow = {"flow_id": "flow-worst", "ts_first": START, "ts_last": START}
    source = RowsAnalysis({"exchanges": ROWS, "kafka_offset_commits": [commit], "flows": [flow]})
    who = who_of("worst@10.0.0.2")
    assert who == Who("worst", "10.0.0.2")
    (operation,) = source.sql(client_operations(who)).to_pylist()
    assert (operation["errors"], operation["error"]) == (291, "NOT_LEADER")
    assert len(source.sql(client_connections(who)).to_pylist()) == 1
    assert [(row["group_id"], row["commits"], row["refused"]) for row in client_groups(source, who)] == [
        ("ledger", 1, 1)
    ]
    assert who_of("@10.0.0.2") == Who(None, "10.0.0.2")
    assert who_of("worst") is None
