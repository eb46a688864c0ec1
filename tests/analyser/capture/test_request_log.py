"""Request logs: what is one, its lines and their times, and what is remarked on."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable
from pathlib import Path

import lz4.frame
import pytest
import zstandard

from tests.support.packets import pcap
from tests.support.request_log import START_MS, heartbeat, line
from wirewitness.analyser.capture import CaptureError, CaptureStats, open_captures
from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.endpoints import EndpointTable
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.log_times import LineTimes, zone_ns_of
from wirewitness.analyser.capture.reader import read_batches
from wirewitness.analyser.capture.request_log import LogLine, RequestLog, is_request_log

NS_PER_S = 1_000_000_000
START_NS = START_MS * 1_000_000
OTHER = "[2026-11-20 11:24:05,123] INFO [Partition orders-4 broker=1] ISR updated (kafka.cluster.Partition)\n"


def read(text: str | bytes, block_bytes: int = 1 << 16, max_line: int = 1 << 20) -> tuple[list[LogLine], CaptureStats]:
    """All lines of a log, and what was remarked."""
    limits = CaptureLimits(block_bytes=block_bytes, max_line_bytes=max_line)
    raw = text.encode() if isinstance(text, str) else text
    blocks, stats = BlockBuffer(io.BytesIO(raw), limits), CaptureStats("log")
    assert is_request_log(blocks)
    log = RequestLog(blocks, stats, limits, 0)
    found = list(log.lines())
    log.end({})
    return found, stats


def codes(stats: CaptureStats) -> dict[str, str]:
    return {remark.code: remark.text for remark in stats.remarks}


@pytest.mark.parametrize("block_bytes", [64, 1000, 1 << 16])
def test_lines_have_their_numbers_whatever_the_blocks(block_bytes: int) -> None:
    text = OTHER * 3 + line(heartbeat()) + OTHER + line(heartbeat(), START_MS + 5) + line(heartbeat()).rstrip("\n")
    found, stats = read(text, block_bytes)
    assert [(one.number, one.ts_ns) for one in found] == [(4, START_NS), (6, START_NS + 5_000_000), (7, START_NS)]
    assert all(one.text.startswith(b'{"isForwarded"') and one.text.endswith(b"logger)") for one in found)
    assert (stats.lines, stats.captured_bytes, stats.remarks) == (3, len(text), [])


def test_lines_may_end_as_on_windows() -> None:
    found, _ = read((OTHER + line(heartbeat())).replace("\n", "\r\n"))
    assert [one.number for one in found] == [2]


@pytest.mark.parametrize("block_bytes", [100, 5000, 1 << 16])
def test_a_line_that_is_too_long_is_passed_over(block_bytes: int) -> None:
    long = line(heartbeat(principal="x" * 20_000))
    found, stats = read(line(heartbeat()) + long + line(heartbeat()) + long.rstrip("\n"), block_bytes, max_line=3000)
    assert [one.number for one in found] == [1, 3]
    assert codes(stats) == {"log_long": "2 lines longer than 3,000 bytes, which are passed over"}


def test_a_line_without_a_time_gets_that_of_the_one_before() -> None:
    bare = line(heartbeat()).partition("] ")[2]
    found, stats = read(bare + line(heartbeat()) + bare)
    assert [(one.number, one.ts_ns) for one in found] == [(2, START_NS), (3, START_NS)]
    assert set(codes(stats)) == {"log_no_time", "log_time"}


@pytest.mark.parametrize("block_bytes", [64, 1000, 1 << 16])
def test_times_of_whole_seconds_keep_the_order_of_lines(block_bytes: int) -> None:
    """As `%d{yyyy-MM-dd HH:mm:ss}` writes them."""
    text = "".join(line(heartbeat(), START_MS + 300 * number).replace(",", "\0", 1) for number in range(8))
    text = re.sub("\0[0-9]{3}", "", text)
    found, stats = read(text, block_bytes)
    times = [one.ts_ns for one in found]
    assert times == sorted(set(times))
    assert [ns // NS_PER_S for ns in times] == [(START_MS + 300 * number) // 1000 for number in range(8)]
    assert all(one.is_cut for one in found)
    assert codes(stats)["log_seconds"].startswith("8 lines have times of whole seconds: the order of lines holds")


def test_the_older_form_is_said() -> None:
    older = OTHER.replace("ISR", "Completed request:RequestHeader(apiKey=FETCH) --")
    found, stats = read(line(heartbeat()) + older * 2)
    assert len(found) == 1
    assert codes(stats)["log_older"].startswith("2 lines in the form of older brokers")


PACKED = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "lz4": lz4.frame.compress,
}


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED.keys())
def test_a_log_is_known_by_its_content(pack: object, tmp_path: Path) -> None:
    path = tmp_path / "anything"
    path.write_bytes(pack((OTHER * 2000 + line(heartbeat())).encode()))  # type: ignore[operator]
    [source] = open_captures([path])
    assert (source.is_log, source.first_ns) == (True, START_NS)


@pytest.mark.parametrize(
    "content",
    [OTHER.encode() * 50, b"\0" + line(heartbeat()).encode(), OTHER.replace("ISR", "Completed request:").encode(), b""],
    ids=["other loggers alone", "binary", "the words alone", "empty"],
)
def test_what_is_no_log(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log"
    path.write_bytes(content)
    with pytest.raises(CaptureError):
        open_captures([path])


def test_a_capture_that_holds_such_a_line_is_a_capture(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([]) + line(heartbeat()).encode())
    [source] = open_captures([path])
    assert not source.is_log


def test_who_wants_packets_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(line(heartbeat()))
    [source] = open_captures([path])
    with pytest.raises(CaptureError, match="is a request log of Kafka: it has no packets"):
        list(read_batches(source, EndpointTable(100), CaptureStats("a.log")))


def times(prefixes: Iterable[str], zone_ns: int | None = None) -> list[int | None]:
    clock = LineTimes(zone_ns)
    return [clock.of(prefix.encode()) for prefix in prefixes]


@pytest.mark.parametrize(
    ("prefix", "expected_ns"),
    [
        ("[2026-11-20 11:25:18,282] DEBUG ", START_NS),
        ("2026-11-20T11:25:18.282 DEBUG ", START_NS),
        ("2026-11-20 11:25:18.282456789 ", START_NS + 456_789),
        ("2026-11-20 11:25:18 ", START_NS - 282_000_000),
        ("2026-11-20T11:25:18,282Z ", START_NS),
        ("2026-11-20T12:25:18,282+01:00 ", START_NS),
        ("2026-11-20T07:55:18,282-0330 ", START_NS),
        ("2026-11-20T11:25:18.282Z stdout F [2026-11-20 06:25:18,281] DEBUG ", START_NS),
        ("pod/kafka-0 [2026-11-20 11:25:18,282] ", START_NS),
        ("1795173918282 ", 1_795_173_918_282_000_000),
        ("11:25:18,282 DEBUG ", None),
        ("[2026-13-20 11:25:18,282] ", None),
        ("[9999-11-20 11:25:18,282] ", None),
        ("99999999999999999999 ", None),
        ("", None),
    ],
)
def test_times_of_lines(prefix: str, expected_ns: int | None) -> None:
    assert times([prefix]) == [expected_ns]


def test_a_zone_counts_where_a_time_names_none() -> None:
    two_hours = zone_ns_of("+02:00")
    assert two_hours == 7200 * NS_PER_S
    assert times(["[2026-11-20 13:25:18,282] ", "2026-11-20T11:25:18,282Z "], two_hours) == [START_NS, START_NS]


@pytest.mark.parametrize("text", ["", "2", "+2", "+25:00", "+02:60", "Europe/Berlin", "+٠٢:٠٠"])
def test_what_is_no_zone(text: str) -> None:
    with pytest.raises(ValueError, match="is no zone"):
        zone_ns_of(text)
