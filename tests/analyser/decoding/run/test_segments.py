"""Rows of log segments: records of all codecs, and offsets as brokers store them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.app.program import run
from tests.support.record_batches import CODEC_NUMBERS, Sent, batch, message_set
from tests.support.segments import (
    START_MS,
    commit_key,
    commit_value,
    commits,
    end_of_transaction,
    numbered,
    segment,
    write_segment,
)
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureError

OFFSETS = "__consumer_offsets-7"


def rows(paths: list[Path] | Path, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
    """Rows of a table, in its order."""
    given = paths if isinstance(paths, list) else [paths]
    with wirewitness.read(given, tables=[table, "captures"], options=ReadOptions(payload=True)) as found:
        return [tuple(row.values()) for row in found.arrow(table, columns=columns).to_pylist()]


def remarks(path: Path) -> list[str]:
    with wirewitness.read(path, tables=["kafka_stored_offsets", "kafka_records", "captures"]) as found:
        return [one["remarks"] or "" for one in found.arrow("captures", columns=["remarks"]).to_pylist()]


def test_records_of_all_codecs_are_rows_of_no_flow(tmp_path: Path) -> None:
    parts = [(10 * n, numbered(10, codec, 10 * n)) for n, codec in enumerate(CODEC_NUMBERS)]
    path = write_segment(tmp_path, "orders-eu-3", segment(*parts))
    wanted = ["api", "topic", "partition", "offset", "key", "value", "headers", "codec", "crc_ok", "producer_id"]
    found = rows(path, "kafka_records", wanted)
    assert found == [
        ("Segment", "orders-eu", 3, 10 * at + n, f"k{n + 10 * at}", f"v{n + 10 * at}" * 20, f'[["n", "{n + 10 * at}"]]',
         codec, True, -1)
        for at, codec in enumerate(CODEC_NUMBERS)
        for n in range(10)
    ]  # fmt: skip
    nobody = ["exchange_id", "flow_id", "ts_response", "client_id", "client_address", "cluster_id", "topic_id"]
    assert set(rows(path, "kafka_records", nobody)) == {(None,) * len(nobody)}
    assert rows(path, "flows", ["flow_id"]) == []


def test_a_compressed_segment_says_the_same(tmp_path: Path) -> None:
    data = segment((0, numbered(3)), (3, numbered(4, "lz4")))
    path = write_segment(tmp_path, "t-0", data)
    packed = path.with_name("packed.log.gz")
    packed.write_bytes(gzip.compress(data))
    wanted = ["topic", "offset", "ts", "timestamp", "value"]
    assert rows(packed, "kafka_records", wanted) == rows(path, "kafka_records", wanted)
    assert len(rows(path, "kafka_records", wanted)) == 7


@pytest.mark.parametrize(("magic", "codec"), [(0, "none"), (1, "none"), (1, "gzip")])
def test_old_formats(tmp_path: Path, magic: int, codec: str) -> None:
    data = message_set([Sent(START_MS + n, b"k", b"v%d" % n) for n in range(3)], magic, codec)
    found = rows(write_segment(tmp_path, "t-0", data), "kafka_records", ["offset", "value", "crc_ok"])
    assert found == [(n, f"v{n}", True) for n in range(3)]


def test_without_a_folder_that_names_it_the_partition_is_null_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(segment((0, numbered(2))))
    assert rows(path, "kafka_records", ["topic", "partition", "offset"]) == [(None, None, 0), (None, None, 1)]
    assert "the folder of a segment names them" in remarks(path)[0]


def test_stored_offsets_of_all_versions(tmp_path: Path) -> None:
    key = commit_key("g", "t", 4)
    values = [commit_value(100 + version, version, metadata=f"m{version}") for version in range(4)]
    sent = [Sent(START_MS + 50 + n, key, value) for n, value in enumerate([*values, None])]
    path = write_segment(tmp_path, OFFSETS, segment((20, batch(sent, "zstd"))))
    wanted = [
        "group_id", "topic", "partition", "committed_offset", "leader_epoch", "metadata", "tombstone", "log_partition",
        "log_offset",
    ]  # fmt: skip
    assert rows(path, "kafka_stored_offsets", wanted) == [
        ("g", "t", 4, 100, None, "m0", False, 7, 20),
        ("g", "t", 4, 101, None, "m1", False, 7, 21),
        ("g", "t", 4, 102, None, "m2", False, 7, 22),
        ("g", "t", 4, 103, 5, "m3", False, 7, 23),
        ("g", "t", 4, None, None, None, True, 7, 24),
    ]
    times = rows(path, "kafka_stored_offsets", ["ts", "commit_ts", "expire_ts"])
    ms = [tuple(None if one is None else one.value // 1_000_000 - START_MS for one in row) for row in times]
    assert ms == [(50, 0, None), (51, 0, 1000), (52, 0, None), (53, 0, None), (54, None, None)]


def test_offsets_of_a_transaction_say_how_it_ended(tmp_path: Path) -> None:
    data = segment(
        (0, commits(10, producer=1)),
        (1, commits(20, producer=2)),
        (2, end_of_transaction(1, commit=True)),
        (3, end_of_transaction(2, commit=False)),
        (4, commits(30, producer=1)),
        (5, commits(40)),
    )
    found = rows(
        write_segment(tmp_path, OFFSETS, data), "kafka_stored_offsets", ["log_offset", "transaction", "producer_id"]
    )
    assert found == [(0, "committed", 1), (1, "aborted", 2), (4, "open", 1), (5, None, None)]


def test_a_batch_with_a_wrong_checksum_stores_nothing(tmp_path: Path) -> None:
    good, bad = commits(10), bytearray(commits(77))
    bad[-5] ^= 1
    path = write_segment(tmp_path, OFFSETS, segment((0, good), (1, bytes(bad)), (2, good)))
    assert rows(path, "kafka_stored_offsets", ["committed_offset"]) == [(10,), (10,)]
    assert {one for (one,) in rows(path, "kafka_records", ["crc_ok"])} == {True, False}
    assert "1 batch with a wrong checksum" in remarks(path)[0]


def test_records_that_nobody_knows_are_counted(tmp_path: Path) -> None:
    odd = [Sent(START_MS, b"\0\x63" + b"x", b"\0\0"), Sent(START_MS, commit_key("g", "t", 0), b"\0\x09" + bytes(20))]
    path = write_segment(tmp_path, OFFSETS, segment((0, batch([*odd, odd[0]])), (3, commits(5))))
    assert rows(path, "kafka_stored_offsets", ["committed_offset"]) == [(5,)]
    assert "3 times, the first: a record of __consumer_offsets is not read" in remarks(path)[0]


def test_other_topics_store_no_offsets(tmp_path: Path) -> None:
    path = write_segment(tmp_path, "copy-of-offsets-7", segment((0, commits(5))))
    assert rows(path, "kafka_stored_offsets", ["committed_offset"]) == []
    assert rows(path, "kafka_records", ["offset"]) == [(0,)]


def test_what_is_broken_beside_it_does_not_hide_a_segment(tmp_path: Path) -> None:
    path = write_segment(tmp_path, "t-0", segment((0, numbered(2))))
    empty = write_segment(tmp_path, "t-1", b"")
    with pytest.raises(CaptureError):
        rows(empty, "kafka_records", ["offset"])
    assert rows([path, empty], "kafka_records", ["offset"]) == [(0,), (1,)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["live", "--read"], "is a log segment; only `analyse`"),
        (["extract", "--output", "x.pcapng", "--flow", "0" * 16], "is a log segment, which has no packets to extract"),
    ],
    ids=["live", "extract"],
)
def test_who_takes_packets_only_says_so(tmp_path: Path, words: list[str], told: str) -> None:
    path = write_segment(tmp_path, "t-0", segment((0, numbered(2))))
    result = run(*words, str(path), cwd=tmp_path)
    assert told in result.stderr.decode()
    assert result.returncode != 0
