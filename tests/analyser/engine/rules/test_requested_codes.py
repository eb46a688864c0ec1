"""An analysis asks every rule that could find something, and spares those that could not."""

from __future__ import annotations

from pathlib import Path

import pytest

import wirewitness
from tests.analyser.engine.rules.scenarios import FIRES, Scenario
from tests.support.packets import pcap
from tests.support.wire import ACK, RST, SYN, Talk
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.facts.stages import STAGES
from wirewitness.analyser.engine.rules.requested_codes import asked


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
    assert {"KAF101", "KAF302"} <= codes
    assert [code for code in codes if code.startswith(("MQT", "MON"))] == []


def test_a_rule_without_rows_is_spared() -> None:
    assert "KAF101" not in _codes({"flows", "exchanges"}, {"kafka"})


def test_a_capture_of_refused_connections_alone_names_who_does_not_wait(tmp_path: Path) -> None:
    talks = [Talk(client=("10.0.0.1", 40_000 + n), ts_ns=10**18 + n * 10**8) for n in range(40)]
    for talk in talks:
        talk.send(True, -1, flags=SYN).send(False, -1, flags=RST | ACK, ack=0)
    path = tmp_path / "refused.pcap"
    path.write_bytes(pcap([packet for talk in talks for packet in talk.packets], nanoseconds=True))
    with wirewitness.read(str(path)) as analysis:
        assert "NET103" in set(analysis.findings()["code"])
