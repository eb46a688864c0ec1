"""A dataset of captures that name processes names them as the captures do, in however many files and runs they come."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import wirewitness
from tests.analyser.analysis.test_owners import PIDS, SAMPLE, A, java
from tests.support import owned
from tests.support.archived import differences
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.run import ArchiveOptions, archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def cut(capture: bytes, files: int, folder: Path) -> list[Path]:
    """The packets of a pcapng file dealt to several, each with what stands before the first packet."""
    blocks, at = list[bytes](), 0
    while at < len(capture):
        (length,) = struct.unpack_from("<I", capture, at + 4)
        blocks.append(capture[at : at + length])
        at += length
    first = next(place for place, one in enumerate(blocks) if one[:4] == b"\6\0\0\0")
    packets = [one for one in blocks[first:] if one[:4] == b"\6\0\0\0"]
    folder.mkdir()
    paths = []
    for number in range(files):
        own = packets[len(packets) * number // files : len(packets) * (number + 1) // files]
        paths.append(folder / f"{number}.pcapng")
        paths[-1].write_bytes(b"".join([*blocks[:first], *own]))
    return paths


@pytest.mark.parametrize(("files", "runs", "range_bytes"), [(1, 1, 300_000), (4, 2, 1 << 40)])
def test_processes_of_captures_stay(
    spark: SparkSession, tmp_path: Path, files: int, runs: int, range_bytes: int
) -> None:
    captures = cut(owned.with_options(SAMPLE.read_bytes(), java), files, tmp_path / "captures")
    root = tmp_path / "dataset"
    for run in range(runs):
        known = captures[: files * (run + 1) // runs]
        summary = archive(known, root, spark, ArchiveOptions(shards=3, range_bytes=range_bytes))
        assert (summary.aside, summary.failures) == ([], [])
    assert len(Dataset.open(root).manifest.runs) == runs
    assert differences(root, captures) == []
    with wirewitness.read(root) as kept:
        found = kept.sql(f"SELECT DISTINCT client_pid, client_pod FROM flows WHERE client_address = '{A}'").to_pylist()
        assert found == [{"client_pid": PIDS[A], "client_pod": f"pod-of-{A[-2:]}"}]
        assert any(f"java pid {PIDS[A]}" in text for text in kept.findings()["sentence"])
