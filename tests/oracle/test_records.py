"""Records of the lab's captures and of generated ones, against programs that share no code with this project.

kafka-python reads the batches that are found in the bytes of the lab's connections by their checksums; Wireshark reads
generated captures in each codec.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import crc32c
import pytest
from kafka.record.memory_records import MemoryRecords

import wirewitness
from tests.conftest import SAMPLES
from tests.support.lab_exchanges import lab_connections
from tests.support.record_batches import CODEC_NUMBERS
from tests.support.replay_records import write_records
from wirewitness.analyser.base.options import ReadOptions

LAB = ("kafka_healthy.pcapng", "kafka_stale_commit.pcapng", "kafka_fenced_commit.pcapng", "kafka_admin.pcapng")
CODECS = tuple(CODEC_NUMBERS)
_HEADER_BYTES = 61
# api, codec, offset (Fetch), time in ms, key, value, headers
Seen = tuple[str, str, int | None, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def batches_in(message: bytes) -> Iterator[bytes]:
    """Whole batches of format 2 anywhere in a message, proven by their checksums."""
    at = message.find(b"\x02")
    while at >= 0:
        start = at - 16
        if start >= 0 and start + _HEADER_BYTES <= len(message):
            length, _, _, checksum = struct.unpack_from(">iibI", message, start + 8)
            end = start + 12 + length
            if start + _HEADER_BYTES <= end <= len(message) and crc32c.crc32c(message[at + 5 : end]) == checksum:
                yield message[start:end]
                at = end - 1
        at = message.find(b"\x02", at + 1)


def seen_by_kafka_python(path: Path) -> Counter[Seen]:
    found: Counter[Seen] = Counter()
    for exchange in (one for connection in lab_connections(path) for one in connection):
        if exchange.api_key not in {0, 1}:
            continue
        api, message = ("Produce", exchange.request) if exchange.api_key == 0 else ("Fetch", exchange.response)
        for raw in batches_in(message):
            codec = CODECS[raw[22] & 7]
            for record in MemoryRecords(raw).next_batch():
                offset = record.offset if api == "Fetch" else None
                headers = tuple(record.headers)
                found[api, codec, offset, record.timestamp, record.key, record.value, headers] += 1
    return found


@cache
def records(name: str) -> list[dict[str, Any]]:
    with wirewitness.read(SAMPLES / name, tables=["kafka_records"], options=ReadOptions(payload=True)) as analysis:
        return analysis.arrow("kafka_records").to_pylist()


def raw(text: str | None, encoding: str | None) -> bytes | None:
    if text is None or encoding is None:
        return None
    return bytes.fromhex(text) if encoding == "hex" else text.encode()


@pytest.mark.parametrize("name", LAB)
def test_every_record_of_the_lab_is_there(name: str) -> None:
    expected = seen_by_kafka_python(SAMPLES / name)
    assert sum(expected.values()) > 300
    found: Counter[Seen] = Counter()
    for row in records(name):
        assert (row["error"], row["crc_ok"]) == (None, True)
        headers = tuple((header[0], raw(header[1], (*header, "utf8")[2])) for header in json.loads(row["headers"]))
        key, value = raw(row["key"], row["key_encoding"]), raw(row["value"], row["value_encoding"])
        assert (row["key_bytes"], row["value_bytes"]) == (key and len(key), value and len(value))
        offset = row["offset"] if row["api"] == "Fetch" else None
        time_ms = row["timestamp"].value // 1_000_000
        found[row["api"], row["codec"], offset, time_ms, key, value, headers] += 1
    assert found == expected


@pytest.mark.parametrize("name", LAB)
def test_records_are_fetched_at_the_offsets_they_were_written_to(name: str) -> None:
    content: dict[str, dict[tuple[str, int, int], tuple[Any, ...]]] = {"Produce": {}, "Fetch": {}}
    for row in records(name):
        place = row["topic"], row["partition"], row["offset"]
        told = row["key"], row["value"], row["timestamp"], row["headers"]
        assert content[row["api"]].setdefault(place, told) == told
    both = content["Produce"].keys() & content["Fetch"].keys()
    assert len(both) > 50
    assert [place for place in both if content["Produce"][place] != content["Fetch"][place]] == []


@pytest.mark.parametrize("codec", CODECS)
def test_keys_as_wireshark_shows_them(tmp_path: Path, tshark: str, codec: str) -> None:
    path = tmp_path / "records.pcap"
    write_records(path, codec, 400_000)
    command = [tshark, "-n", "-r", str(path), "-T", "fields", "-e", "kafka.message_key"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    keys: Counter[str] = Counter()
    for line in shown:
        keys.update(bytes.fromhex(key).decode() for key in line.split(",") if key)
    with wirewitness.read(path, tables=["kafka_records"], options=ReadOptions(payload=True)) as analysis:
        found = analysis.arrow("kafka_records")
    assert found.num_rows > 2000
    assert Counter(found.column("key").to_pylist()) == keys
