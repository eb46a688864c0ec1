"""A capture and the broker's request log of the same run on one command line: each exchange counts once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.analyser.decoding.run.test_logs import asks
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.request_log import write_sample_log
from tests.support.tls_twin import TLS_13, Sides, twin
from tests.support.wire import packets_of
from wirewitness.analyser.base.options import ReadOptions

NAME = "kafka_fenced_commit"
CAPTURE = SAMPLES / f"{NAME}.pcapng"
TABLES = ["exchanges", "messages", "kafka_offset_commits", "kafka_group_events", "flows", "findings"]
HOUR_NS = 3_600_000_000_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample_log(SAMPLES, NAME, tmp_path_factory.mktemp("log") / "request.log")


def ids(analysis: wirewitness.Analysis, table: str, column: str = "exchange_id") -> Counter[Any]:
    return Counter(row[column] for row in analysis.arrow(table, columns=[column]).to_pylist())


def joined_remark(analysis: wirewitness.Analysis) -> str:
    [text] = [remark for remark in analysis.remarks if "count once" in remark]
    return text


def test_tables_are_those_of_the_capture_alone(log: Path) -> None:
    with (
        wirewitness.read([log, CAPTURE], tables=[*TABLES, "kafka_request_times"]) as both,
        wirewitness.read(CAPTURE, tables=TABLES) as alone,
    ):
        for table in ("exchanges", "kafka_offset_commits", "kafka_group_events"):
            assert ids(both, table) == ids(alone, table), table
        assert ids(both, "messages", "message_id") == ids(alone, "messages", "message_id")
        assert ids(both, "findings", "finding_id") == ids(alone, "findings", "finding_id")
        # What only the log knows stands beside the captured exchange.
        assert ids(both, "kafka_request_times") == ids(both, "exchanges")
        flows = both.arrow("flows", columns=["identified_by", "duplicate_of"]).to_pylist()
        assert {row["identified_by"] == "request log" for row in flows if row["duplicate_of"]} == {True}
        assert sum(row["duplicate_of"] is None for row in flows) == alone.arrow("flows", columns=["flow_id"]).num_rows
        assert joined_remark(both).startswith("456 of 456 logged requests")


def test_a_clock_that_is_hours_off_is_told_and_does_no_harm(log: Path) -> None:
    options = ReadOptions(log_zone_ns=-2 * HOUR_NS)
    with wirewitness.read([log, CAPTURE], tables=["exchanges"], options=options) as both:
        assert both.arrow("exchanges", columns=["ts"]).num_rows == 456
        ahead_ms = float(joined_remark(both).partition("clock is ")[2].partition(" ms")[0].replace(",", ""))
        assert abs(ahead_ms - 7_200_000) < 100


def test_the_log_fills_in_what_a_capture_lacks(log: Path, tmp_path: Path) -> None:
    """Of half a capture the rest comes from the log: all exchanges once, those without a captured answer as logged."""
    with wirewitness.read(CAPTURE, tables=["exchanges"]) as alone:
        sent = sorted(row["request_packet"] for row in alone.arrow("exchanges", columns=["request_packet"]).to_pylist())
    last = sent[len(sent) // 2]  # a request whose answer is behind the cut
    half = tmp_path / "half.pcap"
    half.write_bytes(pcap(packets_of(CAPTURE)[:last]))
    with wirewitness.read(half, tables=["exchanges"]) as alone:
        statuses = Counter(row["status"] for row in alone.arrow("exchanges", columns=["status"]).to_pylist())
    assert statuses["unanswered"] > 0
    with wirewitness.read([half, log], tables=["exchanges", "kafka_request_times"]) as both:
        found = both.arrow("exchanges", columns=["exchange_id", "status", "line", "request_packet"]).to_pylist()
        assert len(found) == len({row["exchange_id"] for row in found}) == 456
        assert {row["status"] for row in found} == {"ok", "error"}
        assert 50 < sum(row["line"] is None for row in found) < 400
        assert all((row["line"] is None) == (row["request_packet"] is not None) for row in found)
        assert ids(both, "kafka_request_times") == Counter(row["exchange_id"] for row in found)


def test_logs_alone_are_not_compared(log: Path) -> None:
    with wirewitness.read([log], tables=["exchanges"]) as analysis:
        assert not [remark for remark in analysis.remarks if "count once" in remark]


def test_a_log_of_other_connections_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "other.log"
    path.write_text("".join(asks(number, number) for number in range(200)))
    with wirewitness.read([path, CAPTURE], tables=["exchanges"]) as both:
        assert both.arrow("exchanges", columns=["ts"]).num_rows == 456 + 200
        assert not [remark for remark in both.remarks if "count once" in remark]


@pytest.mark.parametrize("with_keys", [False, True], ids=["without keys", "with keys"])
def test_the_founding_fault_is_named_from_tls_and_the_log(with_keys: bool, tmp_path: Path) -> None:
    log = write_sample_log(SAMPLES, "kafka_stale_commit", tmp_path / "request.log")
    sides = Sides(TLS_13)
    encrypted, _ = twin(packets_of(SAMPLES / "kafka_stale_commit.pcapng"), sides)
    capture, keys = tmp_path / "tls.pcap", tmp_path / "keys.log"
    capture.write_bytes(pcap(encrypted))
    keys.write_bytes(sides.keylog)
    options = ReadOptions(keylogs=(str(keys),) if with_keys else ())
    with (
        wirewitness.read([log, capture], tables=TABLES, options=options) as both,
        wirewitness.read(log, tables=TABLES) as alone,
    ):
        assert ids(both, "findings", "code") - ids(alone, "findings", "code") == Counter(
            () if with_keys else ["CAP106"]
        )
        first = both.arrow("findings").to_pylist()[0]
        assert first["code"] == "KAF103"
        assert "ledger-a at 10.77.0.12 (member e13ee0ec) committed a stale offset" in first["sentence"]
        files = {Path(one["file"]).name for one in json.loads(first["evidence"])}
        assert files == ({"tls.pcap"} if with_keys else {"request.log"})


def test_several_processes_give_the_same(log: Path) -> None:
    found = []
    for processes in (1, 2):
        with wirewitness.read([log, CAPTURE], tables=TABLES, options=ReadOptions(processes=processes)) as both:
            found.append((ids(both, "exchanges"), ids(both, "findings", "finding_id")))
    assert found[0] == found[1]
