"""The table `stands_out`: how many lines, in which order, without what findings tell; and what reports make of it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.analyser.engine.outliers.lines import Rows, at, exchange, found
from tests.analyser.engine.outliers.test_kafka import batch, fetch_range
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.analysis.all_rules import populations
from wirewitness.analyser.analysis.needed import needed_tables
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.engine.rules.questions import QUESTIONS
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.report.contents import report
from wirewitness.reports.report.json_document import json_pieces

MANY: Rows = {
    "exchanges": [
        exchange(n, f"c{n % 40}", operation, n / 10, protocol="kafka", status="error", error_code=29, error_name="NO")
        for n, operation in enumerate(["Produce", "Fetch", "OffsetCommit"] * 40)
    ],
    "kafka_fetch_ranges": [fetch_range(n, 70, client_id=f"c{n % 5}") for n in range(50)],
    "kafka_produce_batches": [batch(n, f"c{n % 4}", base_timestamp=1) for n in range(20)],
    "kafka_group_events": [
        {"exchange_id": f"f-j-{n}", "ts": at(n), "event": "join", "error_code": 0, "group_id": f"g{n % 3}",
         "client_id": "c", "client_address": "a", "generation": 1} for n in range(60)
    ],
    "kafka_partitions": [{"ts": at(n), "topic": "t", "partition": n % 7, "leader_id": -1} for n in range(30)],
    "mqtt_publishes": [{"message_id": f"m{n}", "ts": at(n), "topic": f"/t{n % 5}", "client_id": "c",
                        "direction": "client_to_server"} for n in range(20)],
}  # fmt: skip
AGAIN: Rows = {
    "kafka_fetch_ranges": [fetch_range(n, 70) for n in range(6)],
    "exchanges": [exchange(n, "c", "Fetch", n) for n in range(6)],
}


def finding(**columns: Any) -> dict[str, Any]:
    return {
        "finding_id": "1",
        "code": "KAF119",
        "subject": "",
        "title": "",
        "sentence": "",
        "evidence": "[]",
        "severity": "info",
        "confidence": "low",
        "name": "x",
        "next_step": "",
        "numbers": "{}",
    } | columns


def test_at_most_ten_lines_and_two_of_a_measure_the_surest_first() -> None:
    rows = found(MANY)
    assert [row["rank"] for row in rows] == [*range(1, 11)]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    measures = [row["measure"] for row in rows]
    assert max(map(measures.count, measures)) == 2


def test_the_order_of_rows_changes_nothing() -> None:
    shuffled = {name: random.Random(7).sample([*rows], len(rows)) for name, rows in MANY.items()}
    assert found(shuffled) == found(MANY)


def test_a_line_names_exchanges_as_findings_do() -> None:
    (row,) = found(AGAIN)
    assert json.loads(row["evidence"]) == [
        {"file": "x.pcap", "packet": 1, "message_id": "f-c-0"}, {"file": "x.pcap", "packet": 6, "message_id": "f-c-5"},
    ]  # fmt: skip
    assert (row["subject"], row["value"], row["usual"]) == ("client=c address=a topic=t partition=0", 6, 1)


@pytest.mark.parametrize(
    ("told", "is_left"),
    [
        ({"sentence": "Client c fetches the same of t-0 again."}, False),
        ({"subject": "client=c", "title": "It reads t-0 again"}, False),
        ({"evidence": '[{"file": "x.pcap", "packet": 6, "message_id": "f-c-5"}]'}, False),
        ({"sentence": "Client c fetches the same of t-0 again.", "code": "KAF302"}, True),
        ({"sentence": "Client c fetches of t-01."}, True),
        ({"sentence": "Client abc reads t-0."}, True),
        ({"sentence": "Client c is slow."}, True),
        ({"sentence": "What c writes to t-0."}, True),
    ],
)
def test_what_a_finding_tells_is_left_out(told: dict[str, Any], is_left: bool) -> None:
    assert bool(found({**AGAIN, "findings": [finding(**told)]})) is is_left


def test_what_else_is_to_be_said_of_a_named_subject_is_behind() -> None:
    fewer = [fetch_range(n, 70, client_id="d", topic="u") for n in range(5)]
    rows = {**AGAIN, "kafka_fetch_ranges": [*AGAIN["kafka_fetch_ranges"], *fewer]}
    assert [row["subject"][:8] for row in found(rows)] == ["client=c", "client=d"]
    told = finding(code="KAF302", sentence="Client c is slow to read t-0.")
    assert [row["subject"][:8] for row in found({**rows, "findings": [told]})] == ["client=d", "client=c"]


def test_each_measure_asks_one_of_the_questions_of_rules() -> None:
    assert {measure.question for one in populations() for measure in one.measures} <= {*QUESTIONS}


def test_tables_that_are_compared_are_read_for_it() -> None:
    needed = {*needed_tables(["stands_out"])}
    assert {name for one in populations() for name in one.reads} <= needed


LINE = {"rank": 1, "measure": "lag", "subject": "group=g", "protocol": "kafka", "value": 77.0, "usual": 1.0,
        "others": 5, "unit": "records", "score": 3.99, "sentence": "Lag of group g is 77 records.", "ts_first": at(1),
        "ts_last": at(9), "evidence": '[{"file": "x.pcap", "packet": 7, "message_id": "f-c-1"}]'}  # fmt: skip


def text_of(rows: Rows, options: ReadOptions | None = None) -> str:
    return render(report(RowsAnalysis(rows, options)), 100, colour=False)


def test_a_report_has_the_lines_below_the_findings() -> None:
    text = text_of({"stands_out": [LINE], "findings": [finding(sentence="It went back.")]})
    assert "Lag of group g is 77 records. See packet 7." in text
    assert text.index("FINDINGS") < text.index("WHAT STANDS OUT")


def test_no_findings_is_never_said_alone_above_a_line() -> None:
    assert text_of({"stands_out": [LINE]}).startswith("No findings, but 1 value stands out: see WHAT STANDS OUT.")
    assert text_of({}).startswith("No findings.")
    assert "STANDS OUT" not in text_of({})


def test_lines_are_narrowed_like_findings() -> None:
    assert "77 records" not in text_of({"stands_out": [LINE]}, ReadOptions(protocols=("mqtt",)))


def test_json_has_the_rows() -> None:
    document = json.loads(b"".join(json_pieces(RowsAnalysis({"stands_out": [LINE]}))))
    (line,) = document["stands_out"]
    assert {name: line[name] for name in ("measure", "value", "usual", "others", "unit", "score")} == {
        name: LINE[name] for name in ("measure", "value", "usual", "others", "unit", "score")
    }
    assert line["evidence"] == [{"file": "x.pcap", "packet": 7, "message_id": "f-c-1"}]


def test_values_at_the_ends_of_int64_cost_no_line_of_others() -> None:
    least, most = -(2**63), 2**63 - 1
    odd = {
        "kafka_fetch_ranges": [*AGAIN["kafka_fetch_ranges"],
                               *(fetch_range(n, least, client_id="x", next_offset=most) for n in range(6))],
        "kafka_offset_commits": [{"ts": at(n), "group_id": "g", "topic": "t", "partition": 0, "error_code": 0,
                                  "committed_offset": most if n % 2 else 0, "log_end_offset": most} for n in range(40)],
        "mongo_commands": [{"ts": at(n), "command": "insert", "documents_sent": most, "n": least, "write_errors": least,
                            "status": "ok", "client_address": "a", "database": "d", "response_bytes": most}
                           for n in range(40)],
    }  # fmt: skip
    told = [row["subject"] for row in found({**AGAIN, **odd})]
    assert "client=c address=a topic=t partition=0" in told
