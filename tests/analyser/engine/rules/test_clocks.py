"""What is concluded from order is no accusation where the capture's order is wrong; the rest stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pytest

from wirewitness.analyser.engine.rules.clocks import doubted, mixed_up
from wirewitness.analyser.engine.rules.findings import Evidence, Finding

QUESTIONS = {"KAF103": "went back", "KAF322": "refused"}
FOUND = Finding(
    code="KAF103",
    name="offset-back",
    severity="critical",
    confidence="high",
    provisional=False,
    subject="group=g",
    sentence="It went back.",
    next_step="Look.",
    ts_first_ns=1,
    ts_last_ns=2,
    evidence=(Evidence("a.pcap", 7, None),),
    numbers={},
)


def tables(exchanges: int, turned: int, late: int = 0) -> duckdb.DuckDBPyConnection:
    """So many exchanges of a.pcap, so many of them with the response a second before the request; remarks on it."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE exchanges AS SELECT 'a.pcap' AS request_file, CASE WHEN n < ? THEN -1000.0 ELSE 1.0 END AS "
        "latency_ms FROM range(?) AS numbers(n)",
        [turned, exchanges],
    )
    con.execute("CREATE TABLE expert_infos AS SELECT 'a.pcap' AS file, 'captured_late' AS code FROM range(?)", [late])
    return con


def judged(con: duckdb.DuckDBPyConnection, findings: Sequence[Finding]) -> Sequence[Finding]:
    return doubted(findings, QUESTIONS, lambda: mixed_up(con))


@pytest.mark.parametrize(("turned", "late"), [(3, 0), (0, 3), (2, 1)])
def test_what_rests_on_order_is_less_sure(turned: int, late: int) -> None:
    (found,) = judged(tables(200, turned, late), [FOUND])
    assert (found.severity, found.confidence, found.finding_id) == ("info", "low", FOUND.finding_id)
    assert found.sentence.startswith(FOUND.sentence)
    assert "out of order" in found.sentence


@pytest.mark.parametrize("turned", [0, 2])
def test_a_few_exchanges_over_a_step_of_the_clock_change_nothing(turned: int) -> None:
    assert [*judged(tables(200, turned), [FOUND])] == [FOUND]


def test_what_does_not_rest_on_order_and_what_other_files_show_stays() -> None:
    refused = replace(FOUND, code="KAF322")
    elsewhere = replace(FOUND, evidence=(Evidence("b.pcap", 7, None),))
    assert [*judged(tables(10, 10), [refused, elsewhere])] == [refused, elsewhere]


def test_without_tables_nothing_is_doubted() -> None:
    assert [*judged(duckdb.connect(), [FOUND])] == [FOUND]
