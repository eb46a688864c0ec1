"""The text report: what a reader must find in it, at any width."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.reports.incident import LIVE, STALE, START_NS, incident_rows
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.engine.incidents.incidents import with_stories
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.report.contents import report

WIDTHS = [60, 80, 200]


def text_of(rows: dict[str, list[dict[str, Any]]], width: int = 80, *, colour: bool = False) -> str:
    return render(
        report(RowsAnalysis({**rows, "findings": with_stories(rows.get("findings", []))})), width, colour=colour
    )


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_verdict_comes_first() -> None:
    lines = text_of(incident_rows()).splitlines()
    assert lines[0] == "2 causes: 1 critical, 1 info. 5 findings in all."
    assert lines[1].startswith("worst      The committed offset of payments 7 in group billing went back")


@pytest.mark.parametrize("width", WIDTHS)
def test_both_committers_are_named(width: int) -> None:
    shown = words(text_of(incident_rows(), width))
    for fact in (
        LIVE, STALE, "10.11.0.21:45678 > 10.11.0.9:9092", "10.11.0.22:51234 > 10.11.0.9:9092", "flow f2bbbbbbbbbbbbbb",
        "7000 to 7900", "812 to 9315", "payments 3, 5-7", "frame.number in {812, 815..817, 903, 905..907}",
        "Stop the process at 10.11.0.22",
    ):  # fmt: skip
        assert fact in shown, fact


@pytest.mark.parametrize("width", WIDTHS)
def test_lines_fit_the_width(width: int) -> None:
    long = [line for line in text_of(incident_rows(), width).splitlines() if len(line) > width]
    assert all(LIVE in line or STALE in line or "frame.number" in line for line in long), long


def test_one_cause_is_one_block() -> None:
    shown = text_of(incident_rows())
    title = "CRITICAL Offset regression: payments-7 of group billing, and 3 more partitions KAF103 KAF103 The"
    assert words(shown).count(title) == 1
    assert "where      the worst of 4 findings like it, on 4 partitions: payments 3, 5-7" in shown
    assert "payments-3  6,803" in shown


def test_codes_about_the_same_committers_are_one_block() -> None:
    rows = incident_rows()
    rows["findings"].append(
        {
            **rows["findings"][0],
            "code": "KAF101",
            "name": "dual-committer",
            "finding_id": "d",
            "sentence": "Two write it.",
        }
    )
    shown = words(text_of(rows, 120))
    assert "2 causes: 1 critical, 1 info. 6 findings: 5 of these causes, 1 of what followed." in shown
    assert "Offset regression: payments-7 of group billing, and 3 more partitions KAF103 KAF103" in shown
    assert "KAF103 +1 payments-app@10.11.0.21" in shown
    assert "followed and with it: KAF101 Two write it. committing clients of" in shown
    assert shown.count("committing clients of payments-7:") == 1
    assert shown.count("frame.number in") == 1


def test_groups_show_lag_and_committer() -> None:
    shown = text_of(incident_rows(), 120)
    assert re.search(r"payments +3 +1200 +9003 +7803 +2 +2 +payments-app@10\.11\.0\.22\n", shown)
    assert re.search(r"payments +4 +8004 +9004 +1000 +1 +1 +payments-app@10\.11\.0\.21\n", shown)
    assert re.search(r"payments +7 +1200 +- +- +2", shown)


def test_quality_says_what_is_missing() -> None:
    shown = words(text_of(incident_rows()))
    assert "12,345 packets in 1 file, 1 min 3 s: 2026-11-18T11:06:40.000000000Z to 2026-11-18T11:07:43" in shown
    assert "1 (50 %)" in shown
    assert "1.4 kB missing from 1 connection" in shown
    assert "undecoded 1 message: kafka Key 97 version 2: unknown API key 97" in shown


def test_operations_have_errors_and_latencies() -> None:
    shown = text_of(incident_rows(), 120)
    assert re.search(r"kafka +Fetch +20 +5 +20\.500 +39\.120 +39\.500", shown)
    assert "errors     Fetch: NOT_LEADER_OR_FOLLOWER 5" in shown


def test_a_label_that_fills_its_column_has_a_space_behind_it() -> None:
    """As that of packets which the snap length cut."""
    rows = incident_rows()
    rows["captures"][0]["truncated_packets"] = 2917
    assert "  snap length 2,917 packets cut" in text_of(rows)


def test_no_escape_sequences_without_colour() -> None:
    assert "\x1b" not in text_of(incident_rows())


def test_colours_add_nothing_but_colours() -> None:
    plain, painted = text_of(incident_rows()), text_of(incident_rows(), colour=True)
    assert "\x1b[1;31m" in painted
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == plain


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_names_do_not_reach_the_terminal(width: int) -> None:
    rows = incident_rows()
    rows["exchanges"][0]["client_id"] = "\x1b]0;owned\x07\u202e"
    rows["kafka_offset_commits"][2]["client_id"] = "app\x1b[2J\nFINDINGS"
    rows["findings"][0]["sentence"] = "group a\x1b[31mb\x9b31m"
    shown = text_of(rows, width)
    assert not any(ord(char) < 32 and char != "\n" for char in shown)
    assert not re.search("[\x7f-\x9f\u202e]", shown)
    assert "\\x1b[2J\\x0aFINDINGS" in shown


def test_a_healthy_capture_says_so() -> None:
    rows = incident_rows()
    rows["findings"], rows["messages"], rows["flows"] = [], [], rows["flows"][:1]
    lines = text_of(rows).splitlines()
    assert lines[0] == "No findings."
    assert "  complete   no gaps, no one-sided connections, every message decoded." in lines


def test_an_unknown_protocol_names_the_option() -> None:
    rows = incident_rows()
    flows = [{**flow, "protocol": None} for flow in rows["flows"]]
    shown = words(text_of({"captures": rows["captures"], "flows": flows}))
    assert "No Kafka, MQTT or MongoDB traffic was recognised in 2 connections." in shown
    assert "--decode-as PORT=PROTOCOL" in shown


def test_an_empty_capture() -> None:
    capture = {**incident_rows()["captures"][0], "packets": 0, "ts_first": None, "ts_last": None}
    shown = words(text_of({"captures": [capture]}))
    assert "There is no TCP connection in 0 packets." in shown


def test_many_partitions_are_cut_with_a_pointer_to_the_rest() -> None:
    rows = incident_rows()
    commit = rows["kafka_offset_commits"][0]
    rows["kafka_offset_commits"] = [{**commit, "partition": p} for p in range(200)]
    shown = text_of(rows)
    assert "and 160 more partitions; all rows: wirewitness table kafka_offset_commits CAPTURE..." in words(shown)
    assert shown.count("\n") < 200


def test_a_time_window_is_said_and_keeps_what_reaches_into_it() -> None:
    options = ReadOptions(from_ns=START_NS + 20, to_ns=START_NS + 30)
    shown = words(render(report(RowsAnalysis(incident_rows(), options)), 80))
    assert "1 cause: 1 critical. 4 findings in all." in shown
    assert "rows from 2026-11-18T11:06:40.000000020Z before 2026-11-18T11:06:40.000000030Z." in shown
    assert "There is no TCP connection" not in shown
    assert "kafka 2 1,200 1 (50 %)" in shown
    assert "10.11.0.21 payments-app kafka 1 10 1" in shown


def test_a_capture_full_of_everything_gives_a_report_of_readable_length() -> None:
    rows = incident_rows()
    commit, finding, exchange = rows["kafka_offset_commits"][0], rows["findings"][0], rows["exchanges"][0]
    rows["kafka_offset_commits"] += [{**commit, "group_id": f"g{n}"} for n in range(300)]
    rows["exchanges"] += [{**exchange, "client_id": f"c{n}", "error_name": f"E{n}"} for n in range(300)]
    rows["findings"] += [
        {**finding, "code": f"X{n}", "finding_id": f"x{n}", "severity": "info", "numbers": '{"topic": "t"}'}
        for n in range(300)
    ]
    shown = text_of(rows)
    assert shown.count("\n") < 1000
    for rest in ("252 more causes", "281 more groups", "271 more clients", "289 more names"):
        assert rest in words(shown), rest
    assert "billing:" in shown


def test_clients_and_places_of_any_finding_are_shown() -> None:
    rows = incident_rows()
    numbers = {
        "where": "broker 10.11.0.9:1883",
        "clients": [
            {"address": "10.11.0.31", "client_id": "sensor-7", "port": 50122, "take_overs": 12},
            {"address": "10.11.0.32", "client_id": "sensor-7", "port": 40100, "take_overs": 12},
        ],
    }
    finding = {**rows["findings"][0], "code": "X1", "finding_id": "x1", "numbers": json.dumps(numbers)}
    rows["findings"] = [finding]
    lines = text_of(rows, 200).splitlines()
    at = next(i for i, line in enumerate(lines) if line.split() == ["ADDRESS", "CLIENT", "ID", "PORT", "TAKE", "OVERS"])
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["10.11.0.31", "sensor-7", "50122", "12"],
        ["10.11.0.32", "sensor-7", "40100", "12"],
    ]

    def add(clients: list[str], place: str, code: str) -> None:
        told = {"where": place, "clients": [{"address": "10.11.0.40", "client_id": c} for c in clients]}
        rows["findings"].append({**finding, "code": code, "finding_id": place, "numbers": json.dumps(told)})

    add(["a"], "one", "X2")
    add(["b"], "two", "X2")
    shown = words(text_of(rows, 200))
    assert "and 1 more like it X2 a@10.11.0.40, b@10.11.0.40" in shown
    assert "broker 10.11.0.9:1883 X1 sensor-7@10.11.0.31, sensor-7@10.11.0.32" in shown
