"""Request logs through the whole way: connections, files that follow each other, what is odd, evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wirewitness
from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.request_log import START_MS, date, header, heartbeat, line, write_sample_log
from tests.support.segments import numbered, write_segment
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import EndpointTable, open_captures
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.flow_records import FlowRecords
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.dissectors.core.closed import closed_user
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import dissectors

START_NS = START_MS * 1_000_000
OTHER = "[2026-11-20 11:24:05,123] INFO something else (kafka.cluster.Partition)\n"


def asks(number: int, ms: int = 0, connection: str = "10.0.0.2:9092-10.0.0.11:40000-1-7", **changes: Any) -> str:
    """A Heartbeat with this correlation id."""
    said = heartbeat(requestHeader=header(12, 4, number, "HEARTBEAT"), connection=connection, **changes)
    return line(said, START_MS + ms)


def rows(paths: Iterable[Path], table: str, options: ReadOptions | None = None) -> list[dict[str, Any]]:
    """All rows of a table; times as Unix ns."""
    with wirewitness.read(list(paths), tables=[table], options=options) as analysis:
        told = analysis.arrow(table)
    names = [field.name for field in told.schema if pa.types.is_timestamp(field.type)]
    for name in names:
        told = told.set_column(told.schema.get_field_index(name), name, told.column(name).cast(pa.int64()))
    found: list[dict[str, Any]] = told.to_pylist()
    return found


def written(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"request.log.{number}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def test_an_exchange_has_no_packets_but_a_line(tmp_path: Path) -> None:
    [path] = written(tmp_path, OTHER * 4 + asks(7))
    [row] = rows([path], "exchanges")
    assert (row["operation"], row["version"], row["status"], row["error_code"]) == ("Heartbeat", "4", "error", 27)
    assert (row["client_address"], row["client_port"]) == ("10.0.0.11", 40000)
    assert (row["server_address"], row["server_port"]) == ("10.0.0.2", 9092)
    assert (row["request_file"], row["line"]) == (str(path), 5)
    nothing = ("request_packet", "response_packet", "request_bytes", "response_bytes")
    assert [row[name] for name in nothing] == [None] * 4
    assert (row["ts_response"], row["latency_ms"]) == (START_NS, 1.25)
    [asked, answered] = rows([path], "messages")
    assert (asked["line"], asked["packet_last"], asked["stream_offset"], asked["length_bytes"]) == (5, None, None, None)
    assert (asked["message_id"], answered["message_id"]) == (row["request_message_id"], row["response_message_id"])


def test_a_flow_says_what_the_log_knows(tmp_path: Path) -> None:
    [flow] = rows(written(tmp_path, asks(1) + asks(2, 500)), "flows")
    assert (flow["identified_by"], flow["protocol"], flow["handshake_seen"]) == ("request log", "kafka", False)
    unknown = ("first_packet", "packets", "bytes_to_server", "gap_bytes", "encrypted", "closed_by", "handshake")
    assert [flow[name] for name in unknown] == [None] * len(unknown)
    assert flow["ts_last"] - flow["ts_first"] == 501_250_000


def test_a_connection_goes_on_in_the_next_file_whatever_they_are_called(tmp_path: Path) -> None:
    later, sooner = written(tmp_path, asks(3, 1000), asks(1) + asks(2, 500))
    assert len(rows([later, sooner], "flows")) == 1
    both = rows([later, sooner], "exchanges")
    assert [(Path(row["request_file"]).suffix, row["line"]) for row in both] == [(".1", 1), (".1", 2), (".0", 1)]
    assert [row["exchange_id"].rpartition("-")[2] for row in both] == ["1", "2", "3"]


def test_ids_are_the_same_where_a_file_begins_elsewhere(tmp_path: Path) -> None:
    whole, moved = written(tmp_path, asks(1) + asks(2), OTHER + asks(1) + OTHER + asks(2))
    ids = [[row["exchange_id"] for row in rows([path], "exchanges")] for path in (whole, moved)]
    assert ids[0] == ids[1]


def test_a_correlation_id_that_comes_again_names_another_message(tmp_path: Path) -> None:
    found = rows(written(tmp_path, asks(5) + asks(5, 1) + asks(-3, 2) + asks(6, 3)), "exchanges")
    assert len({row["exchange_id"] for row in found}) == 4


def test_requests_of_one_connection_never_come_before_the_last_answer(tmp_path: Path) -> None:
    text = "".join(asks(number, 0, totalTimeMs=0.3) for number in range(3))
    found = rows(written(tmp_path, text), "exchanges")
    ends = [(row["ts"] - START_NS, row["ts_response"] - START_NS) for row in found]
    assert ends == [(-300_000, 0), (0, 300_000), (300_000, 600_000)]


def test_a_request_comes_after_the_answer_before_it_where_times_are_cut_to_seconds(tmp_path: Path) -> None:
    text = "".join(asks(number, totalTimeMs=400.0) for number in range(1, 6))
    text = text.replace(date(START_MS), date(START_MS).partition(",")[0])
    found = rows(written(tmp_path, text), "exchanges")
    times = [ns for row in found for ns in (row["ts"], row["ts_response"])]
    assert times == sorted(times)
    assert {row["ts_response"] // 1_000_000_000 for row in found} == {START_MS // 1000}


def test_a_forwarded_request_has_no_rows_but_its_exchange(tmp_path: Path) -> None:
    said = heartbeat(
        requestHeader=header(20, 6, 1, "DELETE_TOPICS"),
        request={"topics": [{"name": "gone", "topicId": "AAAAAAAAAAAAAAAAAAAAAA"}], "timeoutMs": 1},
        response={"throttleTimeMs": 0, "responses": [
            {"name": "gone", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 0, "errorMessage": None}]},
    )  # fmt: skip
    direct, forwarded = written(tmp_path, line(said), line({**said, "isForwarded": True}))
    assert [row["resource_name"] for row in rows([direct], "kafka_admin_changes")] == ["gone"]
    assert rows([forwarded], "kafka_admin_changes") == []
    assert [row["operation"] for row in rows([forwarded], "exchanges")] == ["DeleteTopics"]
    assert [row["forwarded"] for row in rows([forwarded], "kafka_request_times")] == [True]


def test_a_produce_without_acks_is_one_way_and_others_unknown(tmp_path: Path) -> None:
    body = {"transactionalId": None, "acks": 0, "timeoutMs": 1, "topicData": []}
    produce = line(heartbeat(requestHeader=header(0, 9, 1, "PRODUCE"), request=body, response=""))
    assert [row["status"] for row in rows(written(tmp_path, produce + asks(2, response="")), "exchanges")] == [
        "one_way", None,
    ]  # fmt: skip


def test_one_remark_for_each_kind_and_the_rest_is_read(tmp_path: Path) -> None:
    text = asks(1) + line("{]") * 3 + line('{"a":' * 50_000) + line("{}") * 2 + asks(2)
    text += line('{"x":1,"x":2,' + json.dumps(heartbeat())[1:]) + asks(3, totalTimeMs=float("inf")) + asks(4)[:200]
    [path] = written(tmp_path, text)
    assert len(rows([path], "exchanges")) == 3
    remarks = {row["code"]: row["text"] for row in rows([path], "expert_infos")}
    assert remarks["log_json"].startswith("4 lines that are no JSON")
    assert set(remarks) == {"log_json", "log_depth", "log_header", "log_twice", "log_number", "log_zone"}


def test_a_body_that_does_not_fit_is_told_and_the_exchange_is_there(tmp_path: Path) -> None:
    [path] = written(tmp_path, asks(1, request={"groupId": 7}) + asks(2))
    broken, _, whole, _ = rows([path], "messages")
    assert (broken["error"], whole["error"]) == ("group_id is not a text", None)
    [remark] = [row for row in rows([path], "expert_infos") if row["code"] == "malformed_message"]
    assert (remark["line"], remark["packet"], remark["span"]) == (1, None, None)
    assert len(rows([path], "exchanges")) == 2


def test_a_forgotten_connection_counts_as_another(tmp_path: Path) -> None:
    ends = [f"10.0.0.2:9092-10.0.0.11:{port}-1-7" for port in (40000, 40001, 40002)]
    text = "".join(asks(number, number, ends[number % 3]) for number in range(6))
    [source] = open_captures(written(tmp_path, text))
    pipeline = Pipeline(dissectors(), ["exchanges"], ReadOptions(), replace(Limits(), max_logged_connections=2))
    decoded = pipeline.run([source])
    assert len(set(decoded.flows_table().column("flow_id").to_pylist())) == 6
    decoded.store.close()


@pytest.fixture(scope="module")
def stale(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample_log(SAMPLES, "kafka_stale_commit", tmp_path_factory.mktemp("log") / "kafka-request.log")


def test_evidence_names_lines(stale: Path) -> None:
    printed = run("analyse", stale, "--format", "json", "--quiet", "--log-zone", "Z")
    [first, *_] = [one for one in json.loads(printed.stdout)["findings"] if one["code"] == "KAF103"]
    lines = stale.read_text().splitlines()
    assert first["evidence"]
    for one in first["evidence"]:
        assert (one["file"], one["packet"]) == (str(stale), None)
        assert '"requestApiKeyName":"OFFSET_COMMIT"' in lines[one["line"] - 1]


def test_the_report_prints_lines_and_what_a_log_lacks(stale: Path) -> None:
    printed = run("analyse", stale, "--log-zone", "Z")
    report = printed.stdout.decode()
    assert printed.stderr == b""
    assert "from a request log: 3,324 requests." in report
    assert f"lines of {stale}: " in report
    assert "frame.number" not in report


def test_several_processes_give_the_same(tmp_path: Path) -> None:
    [path] = written(tmp_path, "".join(asks(number, number) for number in range(50)))
    capture = SAMPLES / "kafka_fenced_commit.pcapng"
    one, two = (rows([path, capture], "exchanges", ReadOptions(processes=number)) for number in (1, 2))
    assert one == two
    assert {row["line"] is None for row in one} == {True, False}


def test_show_has_the_fields_of_a_line(tmp_path: Path) -> None:
    [path] = written(tmp_path, OTHER + asks(7))
    [exchange] = rows([path], "exchanges")
    asked, answered = (
        run("show", path, exchange[f"{role}_message_id"], "--no-index").stdout.decode()
        for role in ("request", "response")
    )
    assert f"  line     2 of {path}\n" in asked
    for field in (
        "  what     kafka  Heartbeat v4 request\n",
        "  group_id  orders\n",
        f"  principal  {closed_user('User:billing')}\n",
    ):
        assert field in asked
    assert "  error_code  27 (REBALANCE_IN_PROGRESS)\n" in answered
    assert "  remote_ms  0.25\n" in answered
    both = json.loads(run("show", path, "--packet", "2", "--format", "json", "--no-index").stdout)["messages"]
    assert [(one["role"], one["line"]) for one in both] == [("request", 2), ("response", 2)]


def test_show_says_what_is_not_there(tmp_path: Path) -> None:
    [path] = written(tmp_path, OTHER + asks(7))
    none = run("show", path, "--packet", "1", "--no-index")
    assert (none.returncode, none.stderr.decode()) == (2, "wirewitness: no message is in line 1\n")
    segment = write_segment(tmp_path, "orders-3", numbered(3))
    none = run("show", segment, "--packet", "1", "--no-index")
    assert none.returncode == 2
    assert "is a log segment: it has records, no messages" in none.stderr.decode()


def test_show_hides_credentials_and_secret_settings(tmp_path: Path) -> None:
    login = heartbeat(requestHeader=header(36, 2, 1, "SASL_AUTHENTICATE"), request={"authBytes": "aHVudGVyMg=="})
    resource = {"resourceType": 2, "resourceName": "t", "configs": [{"name": "x.password", "value": "hunter2"}]}
    body = {"resources": [resource], "validateOnly": False}
    configs = heartbeat(requestHeader=header(33, 2, 2, "ALTER_CONFIGS"), request=body)
    [path] = written(tmp_path, line(login) + line(configs))
    for number, hidden in ((1, "auth_bytes  ***"), (2, "value  ***")):
        shown = run("show", path, "--packet", str(number), "--no-index").stdout.decode()
        assert hidden in shown
        assert not any(secret in shown for secret in ("hunter2", "aHVudGVyMg", "68756e74657232"))


def test_extract_says_that_there_are_no_packets(tmp_path: Path) -> None:
    [path] = written(tmp_path, asks(1))
    done = run("extract", str(path), "--flow", "x", "-o", "out.pcapng", cwd=tmp_path)
    assert (done.returncode, "has no packets to extract" in done.stderr.decode()) == (2, True)


def test_connections_that_ended_long_ago_are_forgotten() -> None:
    """A log that is followed for weeks has many: those stay that ended last, or not so long ago."""
    records = FlowRecords(EndpointTable(10))
    for number in range(10_000):
        row = {"flow_id": f"{number:016x}", "protocol": "kafka", "ts_first": number, "ts_last": number + 1}
        records.add_logged(number << 1, row)
    records.forget(5_000, 20_000)
    left = records.first_packets
    assert len(left) + records.forgotten == 10_000
    assert 5_000 <= len(left) < 10_000
    records.forget(0, 2_000)
    assert len(records.first_packets) <= 2_000
    table = records.table()
    assert table.column("flow_id").to_pylist()[-1] == f"{9_999:016x}"
    assert table.column(FLOW).to_pylist() == records.first_packets
