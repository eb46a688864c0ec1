"""Expectations over a real capture: what holds, what fails with which evidence, and what cannot be checked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.app.expect.checking import FAILED, NOTHING, OK, Outcome, check_all, tables_of
from wirewitness.app.expect.outcomes import evidence_text
from wirewitness.app.expect.rules import expectations_of

EVERYTHING = expectations_of(
    "all",
    "all",
    "[[expect]]\nname = 'all'\nno_findings = true\n[[expect]]\nsql = 'from kafka_group_events'",
)


@pytest.fixture(scope="module")
def analysis() -> Iterator[Analysis]:
    with wirewitness.read(SAMPLES / "kafka_stale_commit.pcapng", tables=tables_of(EVERYTHING)) as opened:
        yield opened


def outcome(analysis: Analysis, text: str) -> Outcome:
    (found,) = check_all(analysis, expectations_of("r", "r", f"[[expect]]\nname = 'n'\n{text}"))
    return found


BY_CLIENT = "table = 'exchanges'\nper = 'client_id'\n"
COMMITTERS = "sql = 'select distinct client_id, group_id from kafka_offset_commits'\n"
FETCHES = "table = 'exchanges'\nwhere = \"operation = 'Fetch'\"\n"


@pytest.mark.parametrize(
    ("text", "state", "said"),
    [
        pytest.param(FETCHES + "p99_latency_ms = '<= 700'", OK, "p99_latency_ms", id="soon"),
        pytest.param(
            FETCHES + "max_latency_ms = '<= 100'", FAILED,
            "max_latency_ms is 502.484, not <= 100 (733 rows)", id="late",
        ),
        pytest.param(
            FETCHES + "count = '> 0'\nmin_latency_ms = '> 0'", OK,
            "count 733 > 0; min_latency_ms", id="two numbers",
        ),
        pytest.param(FETCHES + "count = 733", OK, "count 733 == 733", id="count"),
        pytest.param(FETCHES + "count = '< 3'", FAILED, "count is 733, not < 3", id="too many"),
        pytest.param(FETCHES + "distinct_client_id = 5", OK, "distinct_client_id 5 == 5", id="distinct"),
        pytest.param(
            FETCHES + "per = 'client_id'\ncount = '>= 1'", OK,
            "733 rows, 5 groups of client_id", id="by client",
        ),
        pytest.param(
            FETCHES + "per = 'client_id'\ncount = '<= 169'", FAILED, "client_id ledger-b: count is 170", id="one client"
        ),
        pytest.param(
            "table = 'mongo_commands'\np95_latency_ms = '< 1'", NOTHING,
            "no row of mongo_commands", id="none",
        ),
        pytest.param("table = 'mongo_commands'\ncount = '> 0'", FAILED, "count is 0, not > 0", id="some are wanted"),
        pytest.param("table = 'mongo_commands'\ncount = 0", OK, "count 0 == 0", id="none is wanted"),
        pytest.param(
            "table = 'mongo_commands'\ncount = 0\nneeds = 'mongo_commands'", NOTHING,
            "no row of", id="needs some",
        ),
        pytest.param("table = 'mongo_commands'\nper = 'database'\ncount = '< 9'", NOTHING, "no row of", id="no group"),
        pytest.param(
            FETCHES + "max_error_code = 0\nabout.client = 'led*'", OK, "max_error_code 0 == 0", id="about a client"
        ),
        pytest.param(FETCHES + "count = '> 0'\nabout.client = 'x*'", FAILED, "count is 0", id="about nobody"),
        pytest.param(
            "sql = \"select * from exchanges where operation = 'Produce' and error_code <> 0\"", OK,
            "0 rows", id="sql",
        ),
        pytest.param("sql = 'select * from mongo_commands'", NOTHING, "no row of mongo_commands", id="sql of nothing"),
        pytest.param(
            COMMITTERS + "about.client = 'led*'\nabout.group = 'payments-ledger'", FAILED, "3 rows, not == 0",
            id="sql about a client",
        ),
        pytest.param(COMMITTERS + "about.client = 'x*'", OK, "0 rows", id="sql about nobody"),
        pytest.param("sql = 'select 1 from kafka_group_events'\nrows = '> 0'", OK, "rows, > 0", id="rows wanted"),
        pytest.param(
            "no_findings = ['KAF103']\nabout.group = 'shipments-*'", OK,
            "no finding of KAF103", id="healthy group",
        ),
        pytest.param(
            "no_findings = ['KAF103']\nabout.group = 'orders-billing'", FAILED,
            "19 findings of KAF103", id="sick group",
        ),
        pytest.param("no_findings = ['KAF103']\nabout.client = 'billing-a'", FAILED, "19 findings", id="sick client"),
        pytest.param("no_findings = ['KAF103']\nabout.group = 'none'", NOTHING, "with group none", id="no such group"),
        pytest.param(
            "no_findings = ['KAF103']\nabout.user = 'x'\nneeds = 'exchanges'", NOTHING,
            "findings of KAF103 are there, and say no user", id="what findings do not say",
        ),
        pytest.param("no_findings = ['MON104']", NOTHING, "no row of mongo_c", id="other protocol"),
        pytest.param(
            "no_findings = ['KAF103']\nseverity = 'critical'\nwhere = \"confidence = 'low'\"", OK,
            "no finding", id="where",
        ),
        pytest.param("no_findings = true\nseverity = 'warning'", FAILED, "27 findings of KAF103", id="any"),
        pytest.param(
            BY_CLIENT + "order = [\"operation = 'JoinGroup'\", \"operation = 'SyncGroup'\"]",
            OK, "8 rows in order", id="in order",
        ),
        pytest.param(
            BY_CLIENT + "order = [\"operation = 'SyncGroup'\", \"operation = 'JoinGroup'\"]",
            FAILED, "and none with operation = 'SyncGroup' before of the same client_id", id="out of order",
        ),
        pytest.param(
            BY_CLIENT + "order = [\"operation = 'Fetch'\", \"operation = 'find'\"]", NOTHING, "no row of exchanges",
            id="no later step",
        ),
    ],
)  # fmt: skip
def test_outcomes(analysis: Analysis, text: str, state: str, said: str) -> None:
    found = outcome(analysis, text)
    assert (found.state, said in found.said) == (state, True), found.said
    assert bool(found.findings or found.rows) == (state == FAILED and "count is 0" not in found.said)


def test_rows_of_evidence_name_their_packets(analysis: Analysis) -> None:
    slow = outcome(analysis, FETCHES + "max_latency_ms = '<= 100'")
    assert slow.rows[0]["request_packet"] == 5545
    assert [row["latency_ms"] for row in slow.rows] == sorted((row["latency_ms"] for row in slow.rows), reverse=True)
    commits = outcome(
        analysis,
        'sql = "select ts, topic, partition, committed_offset, exchange_id from kafka_offset_commits '
        "where topic = 'payments' and partition = 4 and committed_offset = 49 order by ts\"",
    )
    assert commits.rows[0]["packet"] in {7401, 7291}
    assert commits.rows[0]["ts"].startswith("2026-11-20T11:23:5")
    text = evidence_text(commits)
    assert "PACKET" in text
    assert str(commits.rows[0]["packet"]) in text


def test_findings_are_told_with_packets(analysis: Analysis) -> None:
    text = " ".join(evidence_text(outcome(analysis, "no_findings = ['offset-regression']")).split())
    assert "Group payments-ledger: the committed offset of payments-4 moved back 31 times" in text
    assert "8 of 24 packets of" in text
    assert ": 7326, 7401, " in text
    assert "and 18 more findings" in text


def test_requests_that_do_not_wait_can_be_asked_for(analysis: Analysis) -> None:
    """`awaitable` is false where it is not true: `not awaitable` finds rows."""
    found = outcome(analysis, "table = 'exchanges'\nwhere = 'not awaitable'\ncount = '> 1000'")
    assert (found.state, found.warnings) == (OK, [])


def test_a_condition_that_null_leaves_out_is_a_warning(analysis: Analysis) -> None:
    denied = outcome(analysis, "table = 'exchanges'\nwhere = \"response_bytes + null <> 3\"\ncount = 0")
    assert denied.state == OK
    assert "`where` is neither true nor false in" in denied.warnings[0]
    assert "IS NOT TRUE" in evidence_text(denied)
    for where in ("error_name = null", "(error_name = null) is not true", "operation <> 'Fetch'"):
        assert outcome(analysis, f"table = 'exchanges'\nwhere = \"{where}\"\ncount = '>= 0'").warnings == []


def test_evidence_of_connections_has_ends_and_the_first_packet(analysis: Analysis) -> None:
    found = outcome(analysis, "table = 'flows'\nwhere = \"protocol = 'kafka'\"\ncount = 0")
    (first, *_) = found.rows
    assert {"client_address", "client_port", "server_address", "server_port", "first_packet"} <= first.keys()
    text = evidence_text(found)
    assert "FIRST PACKET" in text
    assert f" {first['client_port']} " in text
    of_query = outcome(analysis, 'sql = "select flow_id, count(*) as n from exchanges group by flow_id"')
    for row in of_query.rows:
        assert row["packet"] > 0
        assert (row["server_port"] > 0, row["client_port"] > 0, bool(row["file"])) == (True, True, True)


def test_lists_are_whole(analysis: Analysis) -> None:
    rules = ["MON101", "MON102", "MON103", "MON104", "MON105", "MON106", "MON107"]
    found = outcome(analysis, f"no_findings = {rules}\nneeds = 'exchanges'")
    assert found.said == f"no finding of {', '.join(rules)}"
