"""Following a directory: a batch for captures that became complete, none for those that are being written."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wirewitness.analyser.archive.ingest.follow import CompleteReader, follow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_offsets_count_files_in_the_order_of_discovery(tmp_path: Path) -> None:
    (tmp_path / "b.pcap").write_bytes(b"b")
    reader = CompleteReader([str(tmp_path)], 0.0)
    assert reader.initialOffset() == {"files": 0}
    assert reader.latestOffset() == {"files": 1}
    with (tmp_path / "a.pcap").open("wb") as growing:
        growing.write(b"a")
        growing.flush()
        during = reader.latestOffset()
    after = reader.latestOffset()
    assert after == {"files": 2}
    assert during in ({"files": 1}, {"files": 2})  # the latter where the system does not tell who writes
    (partition,) = reader.partitions({"files": 1}, after)
    assert [*reader.read(partition)] == [(str(tmp_path / "a.pcap"),)]


@pytest.mark.lab
@pytest.mark.timeout(600)
def test_a_stream_of_runs(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "0.pcap").write_bytes(b"0")
    seen: list[set[str]] = []
    over = threading.Event()

    def take_in() -> bool:
        seen.append({path.name for path in folder.iterdir()})
        if len(seen) == 3:
            over.set()
        else:
            (folder / f"{len(seen)}.pcap").write_bytes(b"next")
        return False

    follow(spark, [str(folder)], take_in, over.is_set, tmp_path / "notes", settled_s=0)
    assert seen == [{"0.pcap"}, {"0.pcap", "1.pcap"}, {"0.pcap", "1.pcap", "2.pcap"}]


@pytest.mark.lab
@pytest.mark.timeout(600)
def test_an_error_of_a_run_ends_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "0.pcap").write_bytes(b"0")

    def take_in() -> bool:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        follow(spark, [str(tmp_path / "0.pcap")], take_in, lambda: False, tmp_path / "notes", settled_s=0)
