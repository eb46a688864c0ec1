"""Offsets at the end of 64 bits: what is added to them has no column, and costs nothing else."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.attacks import answer, kafka, spoken, text
from tests.support.mutated_captures import tables

LAST = (1 << 63) - 1


def batch(base_offset: int) -> bytes:
    """A batch that says it has six records, of which none is there."""
    body = struct.pack(">iBIhiqqqhii", 0, 2, 0, 0, 5, 1000, 1000, -1, -1, -1, 0)
    return struct.pack(">qi", base_offset, len(body)) + body


def produced(base_offset: int) -> bytes:
    records = batch(0) * 2
    asked = struct.pack(">hhii", -1, 1, 1000, 1) + text(b"t") + struct.pack(">iii", 1, 0, len(records)) + records
    said = struct.pack(">i", 1) + text(b"t") + struct.pack(">iihqqi", 1, 0, 0, base_offset, -1, 0)
    return spoken((True, kafka(0, 3, 1, asked)), (False, answer(1, said)))


def fetched(base_offset: int) -> bytes:
    records = batch(base_offset)
    asked = struct.pack(">iiiibi", -1, 500, 1, 1000, 0, 1) + text(b"t") + struct.pack(">iiqi", 1, 0, 1, 1000)
    said = struct.pack(">ii", 0, 1) + text(b"t") + struct.pack(">iihqqii", 1, 0, 0, 5, 5, 0, len(records)) + records
    return spoken((True, kafka(1, 4, 1, asked)), (False, answer(1, said)))


@pytest.mark.parametrize("base_offset", [LAST - 12, LAST - 11, LAST - 10, LAST - 5, LAST - 4, LAST])
@pytest.mark.parametrize(
    ("made", "table", "count"), [(produced, "kafka_produce_batches", 2), (fetched, "kafka_fetch_partitions", 1)]
)
def test_rows_are_there(tmp_path: Path, made: Callable[[int], bytes], table: str, count: int, base_offset: int) -> None:
    capture = tmp_path / "x.pcap"
    capture.write_bytes(made(base_offset))
    found = tables(capture, 1 << 20)
    assert found[table].num_rows == count
    assert "dissector_bug" not in found["expert_infos"]["code"].to_pylist()
