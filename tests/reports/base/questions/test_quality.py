"""What the capture could show."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reports.incident import START_NS, incident_rows
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.base.faults import CODE
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.base.questions.quality import quality
from wirewitness.reports.report.capture import capture_section

CAPTURE = incident_rows()["captures"][0]
FLOW = incident_rows()["flows"][0]
UNSEEN = {"bytes_to_client": 0, "handshake_seen": False, "ts_last_from_server": None, "acked_by_server": None}
FAULT = {"code": CODE, "text": "a fault of ours"}


def section_text(**rows: Any) -> str:
    shown = render([capture_section(quality(RowsAnalysis({"captures": [CAPTURE], **rows})))], 200)
    return " ".join(shown.split())


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        pytest.param({"captures": [CAPTURE | {"dropped_packets": 7}]}, "dropped 7 packets dropped while", id="drops"),
        pytest.param({"captures": [CAPTURE | {"truncated_packets": 1}]}, "1 packet cut by the snap", id="snap length"),
        pytest.param({"captures": [CAPTURE | {"undecoded_packets": 3}]}, "3 packets whose layers", id="layers"),
        pytest.param({"captures": [CAPTURE | {"remarks": "the last block is cut"}]}, "last block is cut", id="remark"),
        pytest.param({"flows": [FLOW | {"duplicate_packets": 5}]}, "5 packets captured twice", id="doubled"),
        pytest.param({"flows": [FLOW | UNSEEN]}, "connection with one direction only", id="one-sided"),
        pytest.param({"flows": [FLOW | {"gap_bytes": 10}]}, "10 bytes missing from 1 connection", id="gap"),
        pytest.param({"messages": [{"complete": False}]}, "1 of 1 message cut", id="cut message"),
        pytest.param(
            {"expert_infos": [FAULT | {"flow_id": "a"}, FAULT | {"flow_id": "b"}]},
            "2 connections: a fault of ours.",
            id="a fault on connections",
        ),
        pytest.param({"expert_infos": [FAULT, FAULT]}, "2 times a fault of ours.", id="a fault elsewhere"),
        pytest.param({"flows": [FLOW | {"protocol": None}]}, "not identified 1 600", id="unknown protocol"),
    ],
)
def test_limits_are_said(rows: dict[str, Any], sentence: str) -> None:
    shown = section_text(**rows)
    assert sentence in shown
    assert ("complete no gaps" in shown) == (sentence.startswith("not identified"))


def test_a_fault_that_the_capture_remarks_is_said_once() -> None:
    captures = [CAPTURE | {"remarks": FAULT["text"]}]
    assert section_text(captures=captures, expert_infos=[FAULT]).count(FAULT["text"]) == 1


def test_many_faults_are_counted() -> None:
    shown = section_text(expert_infos=[FAULT | {"text": f"fault {number}."} for number in range(15)])
    assert (shown.count("fault fault"), "and 5 more faults" in shown) == (10, True)


def test_a_flow_without_bytes_is_not_one_sided() -> None:
    assert "complete" in section_text(flows=[FLOW | {"bytes_to_client": 0, "bytes_to_server": 0}])


def test_a_flow_that_was_answered_by_a_reset_is_not_one_sided() -> None:
    answered, given_up = (dict.fromkeys(("closed_by", "reset_by"), side) for side in ("server", "client"))
    assert "complete" in section_text(flows=[FLOW | UNSEEN | answered])
    assert "1 connection with one direction only" in section_text(flows=[FLOW | UNSEEN | given_up])


def test_cut_messages_are_not_undecoded_ones() -> None:
    assert "undecoded" not in section_text(messages=[{"complete": False, "error": "cut"}])


def test_answers_in_another_order_are_told_with_the_first_of_the_worst_connection() -> None:
    def remark(flow_id: str, packet: int, code: str = "answer_out_of_order") -> dict[str, Any]:
        place = {"flow_id": flow_id, "ts": START_NS + packet, "packet": packet, "file": "a.pcap"}
        return place | {"code": code, "text": f"Fetch (correlation id {packet}) is answered late"}

    shown = section_text(expert_infos=[remark("f", 9), remark("g", 12), remark("g", 11), remark("f", 3, "copy")])
    assert (
        "order 3 responses on 2 connections in another order than the requests, which no broker does: g, packet 11 "
        "of a.pcap: Fetch (correlation id 11) is answered late." in shown
    )
    assert "order" not in section_text(expert_infos=[remark("f", 3, "copy")])


def test_undecoded_messages_by_kind() -> None:
    messages = [
        {"protocol": "kafka", "operation": "Key 97", "version": version, "complete": True, "error": "unknown"}
        for version in ("1", "1", "2")
    ]
    found = quality(RowsAnalysis({"messages": messages})).undecoded
    assert [(u.operation, u.version, u.messages) for u in found] == [("Key 97", "1", 2), ("Key 97", "2", 1)]


def test_several_files_span_the_time_of_all() -> None:
    later = CAPTURE | {"file": "b.pcap", "ts_first": START_NS + 10, "ts_last": START_NS + 100 * 10**9}
    seen = quality(RowsAnalysis({"captures": [later, CAPTURE]}))
    assert [c.file for c in seen.captures] == ["incident.pcapng", "b.pcap"]
    assert seen.span_ns == (START_NS, START_NS + 100 * 10**9)
    assert seen.packets == 24690


def test_many_files_are_cut() -> None:
    files = [CAPTURE | {"file": f"{n:03}.pcap"} for n in range(30)]
    assert "and 20 more files" in section_text(captures=files)
