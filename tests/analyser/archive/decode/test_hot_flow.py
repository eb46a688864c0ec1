"""One connection with half of all bytes streams through its worker: memory does not grow with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import IMPORT_PATH
from tests.support.replay_rotated import HOT, replay_rotated

MIB = 1 << 20
# What a worker process does for one shard: chunks as they come, raw rows, parts. It tells its peak memory in KiB: VmHWM
# is that of this program alone, ru_maxrss would count the process that started it.
PROGRAM = """
import sys
from pathlib import Path
from wirewitness.analyser.archive.commit.common import put_together, write_common
from wirewitness.analyser.archive.dataset.stage_files import put_value
from wirewitness.analyser.archive.decode.decode_stage import RESULT_FILE, DecodeJob, Left, decode_shard
from wirewitness.analyser.archive.commit.finish_stage import FinishJob, finish_table
from wirewitness.analyser.archive.dataset.manifest import InputFile
from wirewitness.analyser.archive.decode.packets import RangeJob, range_chunks
from wirewitness.analyser.archive.ingest.ranges import RANGE_BYTES, find_ranges
from wirewitness.analyser.capture import Source
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.analyser.base.storage.exchange_files import seal_of

folder, path = Path(sys.argv[1]), Path(sys.argv[2])
source = Source(str(path), path)
ranges = find_ranges(source, path.stat().st_size, RANGE_BYTES)
chunks = (chunk for part in ranges for chunk in range_chunks(RangeJob(0, source, part, 1)))
share = folder / "share"
decode_shard(DecodeJob(folder, {0: path}, tuple(TABLES), ReadOptions(), None), 0, chunks, share)
state = folder / "state"
state.mkdir()
files = [InputFile(str(path), "", path.stat().st_size, 0, None, None, "read", None, "000001")]
write_common(put_together([share], files, folder, {}), state)
result = share / RESULT_FILE
left = {0: Left(share, seal_of(result, result.read_bytes()))}
job = put_value(folder / "job", FinishJob(folder / "parts", "000001", left, None, state, ()))
tables = ("flows", "messages", "exchanges")
rows = sum(part.rows for table in tables for part in finish_table(job, 0, table))
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(rows, int(status["VmHWM"].split()[0]))
"""


def peak(folder: Path, size_bytes: int) -> tuple[int, int]:
    """Rows that came of the connection with half of so many bytes, and the peak memory in bytes of its worker."""
    replay_rotated(folder / "captures", size_bytes, 1, many_flows=10)
    hot = folder / "captures" / HOT
    assert hot.stat().st_size > 0.4 * size_bytes
    command = [sys.executable, "-c", PROGRAM, str(folder), str(hot)]
    # As the command sets it: Arrow's own allocators keep what they got, more or less of it by chance.
    environment = {**os.environ, "PYTHONPATH": IMPORT_PATH, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    rows, kib = map(int, done.stdout.split())
    print(f"{size_bytes / MIB:.0f} MiB: peak {kib / 1024:.0f} MiB")
    return rows, kib << 10


@pytest.mark.lab
def test_a_hot_connection_takes_no_more_memory_when_it_is_longer(tmp_path: Path) -> None:
    (few, short), (many, long) = (peak(tmp_path / str(size), size * MIB) for size in (24, 96))
    assert many > 3 * few
    assert long < short + 48 * MIB, (short / MIB, long / MIB)
    assert long < 512 * MIB
