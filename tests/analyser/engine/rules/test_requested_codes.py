"""An analysis asks every rule that could find something, and spares those that could not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.analyser.engine.rules.scenarios import FIRES, Scenario
from tests.analyser.engine.rules.scenarios.build import Row, exchange, remark, tcp_flow
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.rows import connection_from_rows
from tests.support.shares import every, share
from tests.support.wire import ACK, RST, SYN, Talk
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.facts.stages import STAGE_OF, STAGES
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.engine.rules.requested_codes import asked, signs_of, with_signs
from wirewitness.analyser.engine.rules.rule import AnyRow


def _codes(filled: set[str], protocols: set[str | None]) -> set[str]:
    return {rule.code for rule in asked(RULES.values(), filled, protocols)}


def test_every_rule_is_asked_where_its_scenarios_have_rows() -> None:
    assert [str(one) for one in FIRES if one.code not in _codes(*_there(one))] == []


def _there(scenario: Scenario) -> tuple[set[str], set[str | None]]:
    """Tables with rows, and what flows and exchanges speak."""
    filled = {table for table, rows in scenario.rows.items() if rows}
    filled |= {made for stage in STAGES if filled & {*stage.makes, *stage.reads} for made in stage.makes}
    spoken = {dict(row).get("protocol") for table in ("flows", "exchanges") for row in scenario.rows.get(table, ())}
    return filled, spoken


@pytest.mark.parametrize("protocols", [{"kafka"}, {"mongo"}, {None}], ids=str)
def test_rules_about_connections_are_asked_whatever_these_carry(protocols: set[str | None]) -> None:
    assert _codes({"flows", "captures"}, protocols) >= {"NET101", "NET103", "NET104", "TCP101", "CAP101", "CAP105"}


def test_rules_of_a_protocol_that_nobody_speaks_are_spared() -> None:
    codes = _codes({"flows", "messages", "exchanges", "expert_infos", "kafka_offset_commits"}, {"kafka"})
    assert {"KAF104", "KAF302"} <= codes
    assert [code for code in codes if code.startswith(("MQT", "MON"))] == []


def test_a_rule_without_rows_is_spared() -> None:
    assert "KAF104" not in _codes({"flows", "exchanges"}, {"kafka"})


def _with_signs(rows: Mapping[str, list[Row]]) -> set[str]:
    return {rule.code for rule in with_signs(connection_from_rows(rows), [*RULES.values()], rows)}


def test_a_rule_is_asked_where_it_has_one_of_its_signs() -> None:
    plain = tcp_flow("f1", protocol="mqtt")
    assert {"CAP101", "TCP101", "TLS101", "KAF304"}.isdisjoint(_with_signs({"flows": [plain]}))
    assert "CAP101" in _with_signs({"flows": [plain, {**plain, "flow_id": "f2", "gap_bytes": 5}]})
    jump = remark("f1", 1, "capture", "time_backwards")
    assert "CAP108" in _with_signs({"flows": [plain], "expert_infos": [jump]})
    assert "KAF304" in _with_signs({"exchanges": [exchange("f1", 1, throttle_time_ms=5)]})


def _errors(code: int, **more: Any) -> Mapping[str, list[Row]]:
    error = {"status": "error", "error_code": code, **more}
    return {"exchanges": [exchange("f1", 1, "Metadata", protocol="kafka", **error)]}


def test_refusals_are_looked_for_where_one_is_for_good() -> None:
    assert "KAF322" in _with_signs(_errors(29))
    assert "KAF322" not in _with_signs(_errors(3))  # a topic may still be made
    assert "KAF322" not in _with_signs(_errors(29, status="ok"))


@pytest.mark.parametrize("operation", ["ListOffsets", "JoinGroup", "Metadata"])
def test_repeated_lookups_are_looked_for_where_there_are_ten_of_one_api(operation: str) -> None:
    def asked_times(times: int) -> set[str]:
        asks = [exchange("f1", n, operation, protocol="kafka") for n in range(times)]
        others = [exchange("f1", n, "FindCoordinator", protocol="kafka") for n in range(9)]
        return _with_signs({"exchanges": [*asks, *others]})

    assert "KAF323" in asked_times(10)
    assert "KAF323" not in asked_times(9)


@pytest.mark.parametrize("code", ["MON123", "MON101"])
def test_numbers_at_the_ends_of_int64_hide_no_rule(code: str) -> None:
    most = 2**63 - 1
    odd = {"command": "update", "documents_sent": most, "n": most, "write_errors": most, "untried": 1,
           "latency_ms": 500.0}  # fmt: skip
    rule = replace(RULES[code], suspects=AnyRow("mongo_commands", "n + write_errors > 0 OR latency_ms > 100"))
    con = connection_from_rows({"mongo_commands": [odd]})
    assert with_signs(con, [rule, RULES["MON139"]], ["mongo_commands"]) == [rule]


SIGNED = [one for one in FIRES if signs_of(RULES[one.code])]


@pytest.mark.parametrize("scenario", share(SIGNED, every(12, SIGNED)), ids=str)
def test_what_fires_has_a_sign(scenario: Scenario) -> None:
    rule = RULES[scenario.code]
    assert with_signs(connection_from_rows(scenario.rows), [rule], [*scenario.rows]) == [rule]


def test_signs_are_of_tables_that_no_stage_makes() -> None:
    assert [rule.code for rule in RULES.values() if signs_of(rule).keys() & STAGE_OF.keys()] == []


def test_facts_are_made_where_a_rule_or_a_query_wants_them() -> None:
    with wirewitness.read(str(SAMPLES / "mqtt_takeover_loop.pcapng")) as analysis:
        analysis.findings()
        made = views(analysis._source.con)
        assert "mqtt_deliveries" in made
        assert {"gaps", "connection_ends"}.isdisjoint(made)
        assert analysis.sql("SELECT count(*) AS n FROM Connection_Ends")["n"].to_pylist() != [0]
        assert "connection_ends" in views(analysis._source.con)


def test_a_capture_of_refused_connections_alone_names_who_does_not_wait(tmp_path: Path) -> None:
    talks = [Talk(client=("10.0.0.1", 40_000 + n), ts_ns=10**18 + n * 10**8) for n in range(40)]
    for talk in talks:
        talk.send(True, -1, flags=SYN).send(False, -1, flags=RST | ACK, ack=0)
    path = tmp_path / "refused.pcap"
    path.write_bytes(pcap([packet for talk in talks for packet in talk.packets], nanoseconds=True))
    with wirewitness.read(str(path)) as analysis:
        assert "NET103" in set(analysis.findings()["code"])
