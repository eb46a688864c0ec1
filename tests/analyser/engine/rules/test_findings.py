"""The finding itself: stable ids, words, the table."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from wirewitness.analyser.engine.rules.findings import (
    MAX_EVIDENCE,
    Evidence,
    Finding,
    findings_table,
    some_evidence,
    subject_text,
)
from wirewitness.analyser.tables.tables import arrow_schema

FINDING = Finding(
    code="KAF101",
    name="dual-committer",
    severity="critical",
    confidence="high",
    provisional=False,
    subject="cluster=c group=g topic=t partition=0",
    sentence="Two.",
    next_step="Look.",
    ts_first_ns=1_790_000_000_123_456_789,
    ts_last_ns=1_790_000_001_000_000_001,
    evidence=(Evidence("a.pcap", 7, "f-c1"), Evidence("a.pcap", 9, None)),
    numbers={"partition": 0, "topic": "t", "committers": [{"address": "10.0.0.1"}]},
)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"sentence": "Other words."}, True),
        ({"severity": "info", "numbers": {}}, True),
        ({"evidence": (Evidence("b.pcap", 3, "f-c1"),)}, True),
        ({"evidence": (Evidence("a.pcap", 7, "f-c2"),)}, False),
        ({"subject": "cluster=c group=g topic=t partition=1"}, False),
        ({"code": "KAF103"}, False),
    ],
    ids=["sentence", "severity", "another file", "another message", "another subject", "another code"],
)
def test_id_is_made_of_code_subject_and_first_evidence(change: dict[str, object], same: bool) -> None:
    assert (replace(FINDING, **change).finding_id == FINDING.finding_id) is same


def test_a_packet_without_message_does_not_change_the_id() -> None:
    one = replace(FINDING, evidence=(Evidence("a.pcap", 7, None),))
    assert one.finding_id == replace(one, evidence=(Evidence("b.pcap", 8, None),)).finding_id


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"topic": "a", "partition": 0}, "topic=a partition=0"),
        ({"cluster": None, "group": "two words"}, 'cluster=? group="two words"'),
        ({"group": 'q"='}, 'group="q\\"="'),
        ({"group": ""}, 'group=""'),
    ],
)
def test_subject_text(parts: dict[str, object], expected: str) -> None:
    assert subject_text(**parts) == expected


def test_evidence_is_kept_short_with_both_ends_and_without_repeats() -> None:
    many = [Evidence("a", n // 2, None) for n in range(1000)]
    kept = some_evidence(many)
    assert len(kept) == MAX_EVIDENCE
    assert (kept[0].packet, kept[-1].packet) == (0, 499)
    assert some_evidence(many[:4]) == (Evidence("a", 0, None), Evidence("a", 1, None))


def test_table_has_the_registered_schema_order_and_nanoseconds() -> None:
    table = findings_table([replace(FINDING, subject="z"), FINDING, replace(FINDING, code="CAP101")])
    assert table.schema == arrow_schema("findings")
    assert table.column("code").to_pylist() == ["KAF101", "KAF101", "CAP101"]  # as reports tell them
    assert table.column("ts_first").cast("int64").to_pylist()[0] == 1_790_000_000_123_456_789
    assert json.loads(table.column("evidence").to_pylist()[0])[1] == {"file": "a.pcap", "packet": 9, "message_id": None}
    assert findings_table([]).schema == arrow_schema("findings")


def test_numbers_that_are_not_known_are_null() -> None:
    found = replace(FINDING, numbers={"hop_ms": float("nan"), "examples": [{"clock_ms": float("inf")}]})
    (numbers,) = findings_table([found]).column("numbers").to_pylist()
    assert json.loads(numbers) == {"hop_ms": None, "examples": [{"clock_ms": None}]}


@pytest.mark.parametrize(
    ("name", "numbers", "title"),
    [
        ("offset-regression", {"group": "g", "topic": "t", "partition": 4}, "Offset regression: t-4 of group g"),
        ("lag-growing", {"group": "g", "topics": ["t"]}, "Lag growing: group g"),
        ("qos-incomplete", {"clients": [{"client_id": "a", "address": "10.0.0.1"}]}, "QoS incomplete: a"),
        ("refused", {"address": "10.0.0.1", "client_id": None}, "Refused: 10.0.0.1"),
        ("certificate", {"server": "10.0.0.2:9093"}, "Certificate: 10.0.0.2:9093"),
        ("clocks", {}, "Clocks"),
        ("hot-partition", {"topic": "t" * 249, "partition": 0}, f"Hot partition: {'t' * 47}…-0"),
        ("refused", {"clients": "not a list", "client": "a\x1b[2J"}, r"Refused: a\x1b[2J"),
    ],
)
def test_without_a_title_the_rules_name_and_where(name: str, numbers: dict[str, object], title: str) -> None:
    assert replace(FINDING, name=name, numbers=numbers, title="").title == title


def test_a_title_of_a_rule_is_kept_and_printable() -> None:
    assert replace(FINDING, title="Moved back:\n49").title == r"Moved back:\n49"
    assert len(replace(FINDING, title="x" * 500).title) == 120
    assert findings_table([replace(FINDING, title="Moved back")]).column("title").to_pylist() == ["Moved back"]
