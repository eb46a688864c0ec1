"""Memory does not follow the size of the capture: processes of their own read one capture and one four times as large.

The generated captures are too small for the row buffers to fill, which would hide a plateau behind their growth. The
reader therefore shrinks the buffers by the same factor by which these captures are smaller than real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.replay import Replayed, replay
from tests.support.shares import share

PACKETS = 60_000
BUFFER_DIVISOR = 16
ROW_BUFFERS = {
    "wirewitness.analyser.decoding.rows.raw_table": ("CHUNK_ROWS", "MAX_ROWS_IN_MEMORY"),
    "wirewitness.dissectors.core.deferred": ("MAX_BYTES", "MAX_FRAMES"),
    "wirewitness.analyser.analysis.analysis": ("BATCH_ROWS", "ROW_GROUP_ROWS"),
    "wirewitness.analyser.analysis.stored_tables": ("SMALL_ROWS", "SMALL_BYTES"),
}
# Allocators keep some slack, and Arrow's own keeps much of it, not always the same. The larger captures are at least
# 25 MB larger than the smaller ones: bytes or rows that stayed would show.
GROWTH_MIB = 16
ALLOCATOR = {"ARROW_DEFAULT_MEMORY_POOL": "system"}

# VmHWM is the peak of this program alone; ru_maxrss would count the process that started it.
READER = """
import importlib, json, sys
import wirewitness

def peak_mib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

path, tables, divisor, buffers, out = json.loads(sys.argv[1])
for module_name, names in buffers.items():
    module = importlib.import_module(module_name)
    for name in names:
        setattr(module, name, getattr(module, name) // divisor)
with wirewitness.read(path, tables=tables) as analysis:
    read = peak_mib()
    rows = analysis.write_parquet(tables[0], out)
print(json.dumps([rows, read, peak_mib()]))
"""


class Peak(NamedTuple):
    """Rows of the table and the peaks after reading and after writing it."""

    rows: int
    read_mib: float
    written_mib: float


def peak(capture: Path, table: str) -> Peak:
    """Read CAPTURE for one table and write the table, in a process of its own."""
    given = json.dumps([str(capture), [table], BUFFER_DIVISOR, ROW_BUFFERS, str(capture.with_suffix(".parquet"))])
    env = os.environ | ALLOCATOR
    done = subprocess.run([sys.executable, "-c", READER, given], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return Peak(*json.loads(done.stdout))


class Pair(NamedTuple):
    """A capture, one four times as large, and what they hold."""

    smaller: Path
    larger: Path
    smaller_holds: Replayed
    larger_holds: Replayed


@pytest.fixture
def pair(profile: str, tmp_path: Path) -> Iterator[Pair]:
    """Captures of a profile; they are removed at once, for they are large."""
    smaller, larger = tmp_path / "1x.pcap", tmp_path / "4x.pcap"
    yield Pair(smaller, larger, replay(smaller, profile, PACKETS), replay(larger, profile, 4 * PACKETS))
    smaller.unlink()
    larger.unlink()


@pytest.mark.parametrize("profile", share(["small", "bulk"], ["small"]))
def test_peak_does_not_follow_the_size_of_the_capture(pair: Pair) -> None:
    smaller, larger = peak(pair.smaller, "exchanges"), peak(pair.larger, "exchanges")
    assert pair.larger_holds.size_bytes - pair.smaller_holds.size_bytes > 25_000_000
    assert (smaller.rows, larger.rows) == (pair.smaller_holds.exchanges, pair.larger_holds.exchanges)
    assert larger.read_mib - smaller.read_mib <= GROWTH_MIB
    assert larger.written_mib - smaller.written_mib <= GROWTH_MIB
