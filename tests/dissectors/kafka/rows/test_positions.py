"""Rows that are made in masses are plain tuples by position: each value stands under the name of its field."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import crc32c
import pytest

from tests.dissectors.kafka.test_decoder import Wire
from tests.support import kafka_encode, record_batches
from tests.support.mqtt_encode import string
from wirewitness.dissectors.kafka.rows.fields import KAFKA_ROWS

Named = dict[str, Any]
COMMIT, FETCH, PRODUCE = 8, 1, 0


def named_rows(wire: Wire, table: str) -> list[Named]:
    return [dict(zip(KAFKA_ROWS[table].names, row, strict=True)) for row in wire.out.rows(table) or ()]


def exchanged(key: int, version: int, tags: bytes, random: Random) -> tuple[Wire, Named, Named]:
    """A request with its response, and both values."""
    asked, request = kafka_encode.message(key, version, "request", random)
    answer, response = kafka_encode.message(key, version, "response", random)
    return Wire().request(key, version, 1, tags + asked).response(1, tags + answer), request, response


def same(row: Named, **expected: object) -> bool:
    return {name: row[name] for name in expected} == expected


def test_commits() -> None:
    seen = 0
    for seed in range(20):
        wire, request, _ = exchanged(COMMIT, 8, b"\0", Random(seed))
        told = [(topic, part) for topic in request["topics"] for part in topic["partitions"]]
        for row, (topic, part) in zip(named_rows(wire, "kafka_offset_commits"), told, strict=True):
            seen += 1
            assert same(
                row, request_offset=0, response_offset=0, ts=1_000_000, ts_response=2_000_000, request_packet=1,
                response_packet=2, api="OffsetCommit", group_id=request["group_id"], member_id=request["member_id"],
                group_instance_id=request["group_instance_id"], client_id="c", topic=topic["name"] or None,
                generation=request["generation_id_or_member_epoch"], topic_id=None, partition=part["partition_index"],
                committed_offset=part["committed_offset"], leader_epoch=part["committed_leader_epoch"],
                metadata=part["committed_metadata"], producer_id=None, producer_epoch=None,
            )  # fmt: skip
    assert seen > 10


def test_fetches() -> None:
    seen = 0
    for seed in range(20):
        wire, request, response = exchanged(FETCH, 6, b"", Random(seed))
        answered = {
            (t["topic"] or None, p["partition_index"]): p for t in response["responses"] for p in t["partitions"]
        }
        for row in named_rows(wire, "kafka_fetch_partitions"):
            part = answered.get((row["topic"], row["partition"]))
            if part is None:
                continue
            seen += 1
            assert same(
                row, request_packet=1, response_packet=2, client_id="c", replica_id=request["replica_id"],
                topic_id=None, high_watermark=part["high_watermark"], last_stable_offset=part["last_stable_offset"],
                log_start_offset=part["log_start_offset"], records_bytes=len(part["records"] or b""),
                error_code=part["error_code"], max_wait_ms=request["max_wait_ms"], min_bytes=request["min_bytes"],
                max_bytes=request["max_bytes"], isolation_level=request["isolation_level"], session_id=None,
                session_epoch=None,
            )  # fmt: skip
    assert seen > 10


@pytest.mark.parametrize("version", [12, 17])
def test_leaders_and_diverging_epochs_of_fetches(version: int) -> None:
    seen, without = 0, 0
    for seed in range(60):
        wire, _, response = exchanged(FETCH, version, b"\0", Random(seed))
        rows = {row["partition"]: row for row in named_rows(wire, "kafka_fetch_partitions")}
        for part in (one for topic in response["responses"] for one in topic["partitions"]):
            led, cut = part["current_leader"] or {"leader_epoch": -1}, part["diverging_epoch"] or {"epoch": -1}
            row = rows[part["partition_index"]]
            seen += led["leader_epoch"] >= 0 and cut["epoch"] >= 0
            without += led["leader_epoch"] < 0 or cut["epoch"] < 0
            known = led["leader_epoch"] >= 0
            assert row["current_leader_id"] == (led["leader_id"] if known else None)
            assert row["current_leader_epoch"] == (led["leader_epoch"] if known else None)
            told = (row["diverging_epoch"], row["diverging_end_offset"])
            assert told == ((cut["epoch"], cut["end_offset"]) if cut["epoch"] >= 0 else (None, None))
    assert seen > 3
    assert without > 3


def test_the_leader_that_a_produce_response_names() -> None:
    batch = record_batches.batch([record_batches.Sent(1, b"k", b"v")])
    size = len(batch) + 1
    # acks=all, timeout; topic t, partition 4, records, no tags
    body = bytes.fromhex("00 ffff 00000005 02 02 74 02 00000004") + bytes([size & 0x7F | 0x80, size >> 7]) + batch
    # error 6, no offsets; tag 0 of 9 bytes: broker 2 leads in epoch 7; no throttling
    part = "02 02 74 02 00000004 0006 ffffffffffffffff ffffffffffffffff ffffffffffffffff 01 00"
    answer = bytes.fromhex(f"00 {part} 01 00 09 00000002 00000007 00 00 00000000 00")
    wire = Wire().request(PRODUCE, 10, 1, b"\0" + body + bytes(3)).response(1, answer)
    (row,) = named_rows(wire, "kafka_produce_batches")
    assert same(row, partition=4, error_code=6, current_leader_id=2, current_leader_epoch=7, crc_ok=True)


def fetch_of_session(session: int, epoch: int, *parts: tuple[int, int, int]) -> bytes:
    """Fetch v7. parts: partition, offset, most bytes."""
    body = struct.pack(">iiiibiii", -1, 500, 1, 900, 1, session, epoch, 1) + string("t")
    body += struct.pack(">i", len(parts))
    return body + b"".join(struct.pack(">iqqi", part, at, -1, most) for part, at, most in parts) + bytes(4)


def answer_of_session(session: int, *parts: int) -> bytes:
    body = struct.pack(">ihii", 0, 0, session, 1) + string("t") + struct.pack(">i", len(parts))
    return body + b"".join(struct.pack(">ihqqqii", part, 0, 9, 9, 0, 0, 0) for part in parts)


def asked_in_sessions(wire: Wire) -> list[tuple[object, ...]]:
    columns = ("session_id", "session_epoch", "partition", "fetch_offset", "partition_max_bytes")
    return [tuple(row[name] for name in columns) for row in named_rows(wire, "kafka_fetch_partitions")]


def test_a_fetch_session_keeps_what_was_asked_for() -> None:
    wire = Wire().request(FETCH, 7, 1, fetch_of_session(0, 0, (3, 5, 100), (4, 6, 200)))
    # Sent before the answer to the first is read: that one is told with what the first asked for.
    wire.request(FETCH, 7, 2, fetch_of_session(77, 1, (3, 7, 300)))
    wire.response(1, answer_of_session(77, 3, 4)).response(2, answer_of_session(77, 3, 4))
    assert asked_in_sessions(wire) == [(77, 0, 3, 5, 100), (77, 0, 4, 6, 200), (77, 1, 3, 7, 300), (77, 1, 4, 6, 200)]


def test_an_answer_that_later_requests_overtook_is_told_with_what_its_own_asked_for() -> None:
    wire = Wire().request(FETCH, 7, 1, fetch_of_session(0, 0, (3, 5, 100))).response(1, answer_of_session(77, 3))
    wire.request(FETCH, 7, 2, fetch_of_session(77, 1))
    for epoch, offset in ((2, 7), (3, 9), (4, 11)):
        wire.request(FETCH, 7, epoch + 1, fetch_of_session(77, epoch, (3, offset, 100)))
    for number in (2, 3, 4, 5):
        wire.response(number, answer_of_session(77, 3))
    assert asked_in_sessions(wire) == [
        (77, 0, 3, 5, 100), (77, 1, 3, 5, 100), (77, 2, 3, 7, 100), (77, 3, 3, 9, 100), (77, 4, 3, 11, 100),
    ]  # fmt: skip


def test_produced_batches() -> None:
    sent = [record_batches.Sent(1, b"k", b"v")] * 3
    batch = record_batches.batch(sent, producer=(77, 5, 9))
    body = b"\xff\xff\xff\xff\0\0\0\x05" + b"\0\0\0\1" + string("orders") + b"\0\0\0\1" + (4).to_bytes(4, "big")
    answer = b"\0\0\0\1" + string("orders") + b"\0\0\0\1" + (4).to_bytes(4, "big") + (6).to_bytes(2, "big")
    wire = Wire().request(PRODUCE, 3, 1, body + len(batch).to_bytes(4, "big") + batch)
    wire.response(1, answer + (500).to_bytes(8, "big") + (-1).to_bytes(8, "big", signed=True) + bytes(4))
    (row,) = named_rows(wire, "kafka_produce_batches")
    assert same(
        row, request_packet=1, response_packet=2, client_id="c", topic="orders", topic_id=None, partition=4,
        base_offset=500, last_offset=502, timeout_ms=5, transactional_id=None, records_count=3,
        codec="none", batch_bytes=len(batch), uncompressed_bytes=len(batch),
        producer_id=77, producer_epoch=5, base_sequence=9, base_timestamp=1, max_timestamp=1, log_append_timestamp=-1,
        content_crc=crc32c.crc32c(b"\x02k\x02v"), first_key_bytes=1, first_key_crc=crc32c.crc32c(b"k"),
        first_value_kind="text", acks=-1, transactional=False, crc_ok=True, error_code=6,
    )  # fmt: skip
