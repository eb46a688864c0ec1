"""Every rule fires where it must, with exactly its code, and stays silent on its near misses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.analyser.engine.rules.concerned import connected, looked_at
from tests.analyser.engine.rules.scenarios import FAULTS, FIRES, NEAR_MISSES, Scenario
from tests.analyser.engine.rules.scenarios.beside import BESIDE
from tests.analyser.engine.rules.scenarios.build import exchange, message
from tests.support.shares import RUNS_THE_REST, proves_more, share
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.requested_codes import with_signs
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.tables.tables import TABLES


def findings_of(scenario: Scenario) -> list[Finding]:
    con = connected(scenario)
    return run(con, with_signs(con, looked_at(scenario), TABLES))


# One that fires and one near miss of each code; `make test-exhaustive` runs all.
ONE_OF_EACH = [*{one.code: one for one in reversed(FIRES)}.values(), *{one.code: one for one in NEAR_MISSES}.values()]


@pytest.mark.parametrize("scenario", share([*FIRES, *NEAR_MISSES, *FAULTS], [*ONE_OF_EACH, *FAULTS]), ids=str)
@proves_more
def test_scenario_gives_exactly_these_findings(scenario: Scenario) -> None:
    found = findings_of(scenario)
    expected = scenario.expected | (BESIDE.get(str(scenario), set()) if RUNS_THE_REST else set())
    assert {(f.code, f.severity) for f in found} == expected, [f.sentence for f in found]
    assert [f.sentence for f in found if re.search(r" -[\d.,]+ m?s\b", f.sentence)] == [], (
        "a length of time is negative"
    )


@pytest.mark.parametrize("code", RULES)
def test_every_rule_has_a_scenario_and_a_near_miss(code: str) -> None:
    assert any(s.code == code for s in FIRES)
    assert any(s.code == code for s in NEAR_MISSES)
    worst = {severity for s in (*FIRES, *FAULTS) for c, severity in s.expected if c == code}
    assert RULES[code].severity in worst, "no scenario reaches the severity that the detector declares"


def test_out_of_order_commits_name_the_one_member() -> None:
    found = {(f.code, f.numbers["partition"]): f for f in findings_of(FAULTS[0])}
    assert set(found) == {("KAF103", 0), ("KAF102", 1), ("KAF103", 1)}
    step = found["KAF103", 0]
    assert step.numbers["same_committer"] is True
    assert step.numbers["sent_before_answer"] == step.numbers["steps_back"] >= 6
    assert step.numbers["worst_delta"] == 5
    assert "billing-1" in step.sentence
    assert "sarama" in step.next_step
    assert found["KAF102", 1].numbers["stuck_offset"] == 1500


def test_stale_store_names_both_committers_and_what_is_lost() -> None:
    found = {f.code: f for f in findings_of(FAULTS[1])}
    for code in ("KAF101", "KAF102", "KAF103", "KAF104"):
        finding = found[code]
        committers = {c["member_id"]: c for c in finding.numbers["committers"]}
        assert set(committers) == {"m1", "m2"}
        assert committers["m1"]["address"] == "10.1.0.1"
        assert committers["m1"]["generation"] == 6
        assert finding.numbers["partition"] == 0
        for named in ("10.1.0.1", "billing-1", "m1", "payments-0"):
            assert named in finding.sentence
    assert found["KAF101"].numbers["last_offset"] == 480
    assert found["KAF101"].numbers["replay_now"] == 790 - 480
    assert "310 messages" in found["KAF101"].sentence
    assert found["KAF103"].confidence == "high"
    assert found["KAF104"].numbers["owner_member_id"] == "m2"


def test_who_stores_offsets_ahead_of_the_owner_is_named_and_not_the_owner() -> None:
    found = {f.code: f for f in findings_of(FAULTS[3])}
    step = found["KAF103"]
    assert (step.numbers["cause"], step.numbers["replay_now"], step.confidence) == ("overtaken", 0, "high")
    assert [c["member_id"] for c in step.numbers["committers"]] == ["m1", "m2"]
    assert "stale" not in step.sentence
    for code in ("KAF101", "KAF103"):
        assert "billing-1" in found[code].next_step
        assert "billing-2" not in found[code].next_step


@pytest.mark.parametrize("code", ["TCP101", "TCP102", "TCP103", "TCP105", "TCP106", "NET101"])
def test_findings_on_a_connection_name_its_client(code: str) -> None:
    scenario = next(s for s in FIRES if s.code == code)
    flows = [dict(flow) for flow in scenario.rows["flows"]]
    places = ("client_address", "client_port", "server_address", "server_port")
    said: dict[str, list[Mapping[str, Any]]] = {
        "messages": [message(flow["flow_id"], 0.1) for flow in flows],
        "exchanges": [
            exchange(flow["flow_id"], 0.1, client_id="billing-1") | {place: flow[place] for place in places}
            for flow in flows
        ],
    }
    rows = {**scenario.rows, **{table: [*scenario.rows.get(table, ()), *more] for table, more in said.items()}}
    (found,) = [one for one in findings_of(replace(scenario, rows=rows)) if one.code == code]
    assert "billing-1" in found.sentence
    assert found.numbers.get("client_id", found.numbers.get("clients", [{}])[0].get("client_id")) == "billing-1"


@pytest.mark.parametrize(("took_s", "words"), [(0.0004, "the longest 0.4 ms"), (1.4, "the longest 1.4 s")])
def test_a_quick_exchange_on_a_full_window_took_no_0_ms(took_s: float, words: str) -> None:
    scenario = next(s for s in FIRES if s.code == "TCP106")
    rows = {**scenario.rows, "exchanges": [exchange("a", 1.5, "Fetch", lasts=took_s)]}
    (found,) = findings_of(replace(scenario, rows=rows))
    assert words in found.sentence


@pytest.mark.parametrize("took_s", [0.0, 1e-7])
def test_an_exchange_below_the_clock_of_the_capture_is_not_called_the_longest(took_s: float) -> None:
    scenario = next(s for s in FIRES if s.code == "TCP106")
    rows = {**scenario.rows, "exchanges": [exchange("a", 1.5, "Fetch", lasts=took_s)]}
    (found,) = findings_of(replace(scenario, rows=rows))
    assert "1 exchange went on meanwhile." in found.sentence


@pytest.mark.parametrize(("protocol", "named"), [("kafka", True), ("mongo", False), (None, False)])
def test_a_small_buffer_is_set_where_the_protocol_of_the_flow_sets_it(protocol: str | None, named: bool) -> None:
    scenario = next(s for s in FIRES if s.code == "TCP106")
    rows = {**scenario.rows, "flows": [dict(flow) | {"protocol": protocol} for flow in scenario.rows["flows"]]}
    (found,) = findings_of(replace(scenario, rows=rows))
    assert ("(receive.buffer.bytes or socket.receive.buffer.bytes)" in found.next_step) == named
    assert "Kafka" not in found.next_step
