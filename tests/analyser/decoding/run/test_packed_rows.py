"""What comes of compressed inputs follows their size, in rows; ordinary ones are read whole, with the rows they have in
the clear."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support import mqtt_encode as mqtt
from tests.support.attacks import MQTT_SERVER, Wire
from tests.support.packets import section
from tests.support.request_log import heartbeat, line
from tests.support.segments import numbered, segment
from tests.support.shards_here import decode_in_shards
from tests.support.wire import Talk
from wirewitness.analyser.analysis.needed import needed_tables
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import Source
from wirewitness.analyser.capture.packing import TOO_MUCH
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.limits import CaptureLimits, Limits
from wirewitness.dissectors.registry import PROTOCOLS

CODECS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 9),
    "zstd": zstandard.ZstdCompressor(level=19).compress,
}
WANTED = needed_tables([name for name in TABLES if name != "findings"])
SLACK = 20_000
# A slice of 64 KiB may go beyond the limit: of pings it gives a message and a row for every two bytes.
BEYOND = 1 << 16
PINGS = 100_000


def limits(slack_rows: int = SLACK) -> Limits:
    return Limits(capture=CaptureLimits(packing_slack_of_all_rows=slack_rows))


def pings(number: int = 0, count: int = PINGS, segment_bytes: int = 32_000) -> bytes:
    """A capture of one connection with so many of the smallest messages."""
    wire = Wire(Talk(client=("10.0.0.1", 40_000 + number), server=MQTT_SERVER), segment_bytes=segment_bytes)
    wire.say(True, mqtt.connect(4, "c")).say(False, mqtt.connack())
    return wire.say(True, mqtt.packet(mqtt.PINGREQ) * count).capture()


def sources(files: Sequence[bytes]) -> list[Source]:
    return [Source(f"{number}", stream=io.BytesIO(data)) for number, data in enumerate(files)]


def read(files: Sequence[bytes], limited: Limits, shards: int = 0) -> Decoded:
    if shards:
        return decode_in_shards(sources(files), WANTED, shards, limited)
    return Pipeline(PROTOCOLS, WANTED, ReadOptions(), limited).run(sources(files))


def rows(decoded: Decoded) -> int:
    return decoded.store.given_rows


def told(decoded: Decoded) -> list[int]:
    """How often each capture says that it was too much."""
    return [sum(remark.code == TOO_MUCH for remark in capture.remarks) for capture in decoded.captures]


def tables(decoded: Decoded) -> dict[str, list[dict[str, Any]]]:
    """All rows that were decoded, by their tables, and the connections."""
    found = {
        name: [row for batch in raw.batches() for row in batch.to_pylist()]
        for name, raw in decoded.store.tables.items()
    }
    found["flows"] = decoded.flows_table().to_pylist()
    decoded.store.close()
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_the_smallest_messages_are_read_up_to_a_multiple_of_the_size(codec: str) -> None:
    packed = CODECS[codec](pings())
    limited = limits()
    decoded = read([packed], limited)
    most = SLACK + limited.capture.usual_rows_per_packed_byte * len(packed)
    # Messages count, too; without the limit there were a row of each.
    assert most / 3 < rows(decoded) < most + BEYOND < PINGS
    assert told(decoded) == [1]
    decoded.store.close()


def test_each_process_has_its_own_share_and_the_capture_is_told_of_once() -> None:
    """Other shards take the usual limits."""
    packed = CODECS["zstd"](pings(1, 200_000) + pings(2, 200_000)[24:] + pings(3, 200_000)[24:])
    limited = Limits()
    decoded = read([packed], limited, 2)
    most = limited.capture.packing_slack_of_all_rows + limited.capture.usual_rows_per_packed_byte * len(packed)
    assert most / 3 < rows(decoded) < 2 * (most + BEYOND) < 600_000
    assert told(decoded) == [1]
    decoded.store.close()


def test_many_small_files_have_one_slack() -> None:
    files = [CODECS["zstd"](pings(number, 30_000)) for number in range(12)]
    decoded = read(files, limits())
    size = sum(map(len, files))
    assert rows(decoded) < SLACK + limits().capture.usual_rows_per_packed_byte * size + BEYOND < 12 * 30_000
    assert told(decoded)[2:] == [1] * 10
    assert not decoded.unread
    decoded.store.close()


def test_a_file_behind_one_that_was_too_much_is_read() -> None:
    ordinary = (SAMPLES / "mqtt_faults.pcapng").read_bytes()
    decoded = read([CODECS["zstd"](pings(1, 30_000)), CODECS["gzip"](ordinary)], limits(100_000))
    assert told(decoded) == [0, 0]
    decoded.store.close()
    decoded = read([CODECS["zstd"](pings(1, 30_000)), CODECS["gzip"](ordinary), ordinary], limits(59_000))
    assert told(decoded) == [1, 0, 0]
    assert decoded.captures[1].packets == decoded.captures[2].packets > 100
    decoded.store.close()


def test_what_is_not_compressed_has_no_such_limit() -> None:
    decoded = read([pings(count=50_000)], limits(0))
    assert rows(decoded) > 50_000
    assert told(decoded) == [0]
    decoded.store.close()


@pytest.mark.parametrize("shards", [0, 2])
@pytest.mark.parametrize("name", ["kafka_admin", "mqtt_faults", "mqtt_websocket", "mongo_shapes_and_errors"])
def test_ordinary_captures_give_the_same_rows_packed_without_any_slack(name: str, shards: int) -> None:
    """So few rows are left that everything is decoded in slices."""
    data = (SAMPLES / f"{name}.pcapng").read_bytes()
    plain, packed = read([data], limits(0)), read([CODECS["zstd"](data)], limits(0), shards)
    assert told(packed) == [0]
    expected, found = tables(plain), tables(packed)
    for table, of_table in expected.items():
        assert found[table] == of_table, table


@pytest.mark.parametrize("segment_bytes", [1_000, 60_000])
def test_slices_change_no_row(segment_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a limit is far and near: parts and slices of any size."""
    wire = Wire(Talk(server=MQTT_SERVER), segment_bytes=segment_bytes)
    wire.say(True, mqtt.connect(4, "c")).say(False, mqtt.connack())
    for _ in range(40):
        wire.say(True, b"".join(mqtt.publish(f"t/{n % 7}", b"x" * (n % 90), 1, n % 500 + 1) for n in range(99)))
        wire.say(False, b"".join(mqtt.packet(mqtt.PUBACK, (n % 500 + 1).to_bytes(2, "big")) for n in range(99)))
    data = wire.capture()
    expected = tables(read([data], limits()))
    monkeypatch.setattr("wirewitness.analyser.decoding.stream_portions.SLICE_BYTES", 50)
    monkeypatch.setattr("wirewitness.analyser.capture.packing._LEAST_PART_BYTES", 500)
    found = tables(read([CODECS["gzip"](data)], limits(100_000)))
    for table, of_table in expected.items():
        assert found[table] == of_table, table


def test_lines_of_a_request_log_count() -> None:
    packed = CODECS["zstd"](line(heartbeat()).encode() * 20_000)
    decoded = read([packed], limits(3_000))
    assert 1_000 < rows(decoded) < 3_000 + limits().capture.usual_rows_per_packed_byte * len(packed) + BEYOND // 100
    assert told(decoded) == [1]
    decoded.store.close()


def test_batches_of_a_log_segment_count() -> None:
    packed = CODECS["zstd"](segment(*((number, numbered(1)) for number in range(20_000))))
    decoded = read([packed], limits(-4 * len(packed) + 3_000))
    assert 1_000 < rows(decoded) < 3_000 + BEYOND // 50
    assert told(decoded) == [1]
    decoded.store.close()


def test_looking_for_records_in_damage_counts() -> None:
    """Each byte of it is looked at, and zeros pack a thousand times as small."""
    zeros = CODECS["gzip"](section() + bytes(64 << 20))
    decoded = read([zeros, zeros], limits())
    assert told(decoded) == [1, 1]
    decoded.store.close()


def test_the_report_says_that_a_limit_is_reached_and_the_exit_status_is_3(tmp_path: Path) -> None:
    path = tmp_path / "pings.pcap.zst"
    path.write_bytes(CODECS["zstd"](pings(count=150_000)))
    done = run("analyse", path)
    shown = done.stdout.decode()
    assert done.returncode == 3
    assert "Something is missing here because a limit is reached: see CAPTURE." in shown
    assert "limit      a limit is reached, what is compressed becomes far more than its size tells" in shown
    assert "the rest of 1 input is not read" in done.stderr.decode()
