"""Ranges come out of tasks as they do of each file, whatever is wrong with one of them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.packets import Captured, enhanced, ethernet, interface, ipv4, pcap, section, tcp
from wirewitness.analyser.archive.decode.range_run import STAGE, ranges_of
from wirewitness.analyser.archive.ingest.plan import PlannedFile
from wirewitness.analyser.archive.ingest.ranges import Range, find_ranges
from wirewitness.analyser.archive.spark.workers import HERE
from wirewitness.analyser.base.storage import buckets
from wirewitness.analyser.base.storage.address import Address
from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.base.storage.state import ObjectState
from wirewitness.analyser.capture import Source

RANGE_BYTES = 64 << 10
PACKET = ethernet(ipv4(tcp(b"x" * 300, destination_port=9092)))


class Counting:
    """Who works here, and the files of each task."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.files: list[list[str]] = []

    def run(self, stage: str, work: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        self.stages.append(stage)
        self.files += [[file.source.name for file in unit] for unit in units]
        return HERE.run(stage, work, units)


def write(path: Path, packets: int) -> Path:
    path.write_bytes(pcap([Captured(1000 * number, PACKET) for number in range(packets)]))
    return path


def planned(*paths: Path, **more: Any) -> list[PlannedFile]:
    return [PlannedFile(number, Source(str(path), path, **more), path, path.stat().st_size, "")
            for number, path in enumerate(paths)]  # fmt: skip


def test_large_captures_are_walked_by_tasks_and_no_others(tmp_path: Path) -> None:
    # A block of the reader is larger than the smaller ones.
    large = [write(tmp_path / f"{name}.pcap", count) for name, count in (("a", 100_000), ("b", 60_000), ("c", 200))]
    files, log, small = planned(*large), write(tmp_path / "log", 50_000), write(tmp_path / "small", 30)
    files += planned(log, is_log=True) + planned(small)
    workers = Counting()
    found = ranges_of(files, RANGE_BYTES, workers, 8)
    assert (workers.stages, workers.files) == ([STAGE], [[str(path)] for path in large])
    assert [len(found[str(path)]) > 1 for path in large] == [True, True, False]
    for file in files[:3]:
        assert found[file.source.name] == find_ranges(file.source, file.size, RANGE_BYTES)
    for path in (log, small):
        assert found[str(path)] == [Range(0, 0, path.stat().st_size)]


def test_many_captures_are_few_tasks(tmp_path: Path) -> None:
    files = planned(*(write(tmp_path / f"{number}.pcap", 200 + number) for number in range(9)))
    workers = Counting()
    assert {*ranges_of(files, RANGE_BYTES, workers, 4)} == {file.source.name for file in files}
    assert sorted(map(len, workers.files)) == [2, 2, 2, 3]


def test_what_cannot_be_walked_is_one_range(tmp_path: Path) -> None:
    """Reading it says what is wrong."""
    good, odd, gone = (write(tmp_path / name, 60_000) for name in ("good", "odd", "gone"))
    odd.write_bytes(b"no capture" * 20_000)
    folder = tmp_path / "folder"
    files = planned(good, odd, gone)
    gone.unlink()
    folder.mkdir()
    files.append(PlannedFile(3, Source(str(folder), folder), folder, RANGE_BYTES + 1, ""))
    found = ranges_of(files, RANGE_BYTES, Counting(), 8)
    expected = len(find_ranges(files[0].source, files[0].size, RANGE_BYTES))
    assert expected > 1
    assert [len(found[file.source.name]) for file in files] == [expected, 1, 1, 1]
    assert [ranges[-1].end for ranges in found.values()] == [file.size for file in files]


@pytest.mark.parametrize("reads", [0, 1, 2])
def test_an_object_that_its_store_stops_giving_is_one_range(reads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = section() + interface() + b"".join(enhanced(PACKET, number) for number in range(80_000))
    asked: list[int] = []

    def read(address: Address, state: ObjectState, start: int, end: int) -> memoryview:
        asked.append(start)
        if len(asked) > reads:
            raise OSError(errno.EACCES, "permission denied", str(address))
        return memoryview(data)[start:end]

    monkeypatch.setattr(buckets, "read", read)
    path = ObjectPath(Address("s3", "captures", "a.pcapng"), ObjectState(len(data), 0, "tag"))
    file = PlannedFile(0, Source(str(path), path), path, len(data), "")
    assert ranges_of([file], RANGE_BYTES, HERE, 8) == {str(path): [Range(0, 0, len(data))]}
    assert len(asked) > reads
