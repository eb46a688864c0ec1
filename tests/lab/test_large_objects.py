"""An object larger than anybody wants to lie on a local disk: it is read where it is, by the command and by workers.

The server has 10 GB on its own disk, so this takes room and some minutes; only the exhaustive run has it. Local
temporary folders are those of the children alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import wirewitness
from tests.bench.programs import WIREWITNESS
from tests.lab.processes import Process, wait_until
from tests.lab.s3_server import S3Server
from tests.support.replay import Replayed, replay

pytestmark = [
    pytest.mark.lab,
    pytest.mark.exhaustive,
    pytest.mark.timeout(5400),
    pytest.mark.usefixtures("in_store"),
]

SIZE_BYTES = 10_000_000_000
# What is kept while it is read: the rows, a dataset of them, and bytes on their way to them.
MOST_LOCAL_BYTES = SIZE_BYTES // 20
ADDRESS = "s3://captures/large/of-10-gb.pcap"


@pytest.fixture(scope="module")
def made(s3: S3Server) -> Replayed:
    """The object: Produce and Fetch of large batches, written to where the server has its objects."""
    path = s3.buckets / ADDRESS.removeprefix("s3://")
    path.parent.mkdir()
    return replay(path, "bulk", size_bytes=SIZE_BYTES)


def used_bytes(folder: Path) -> int:
    """On the disk, of all that lies below it just now."""
    found = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                found += os.stat(os.path.join(where, name), follow_symlinks=False).st_blocks * 512
            except OSError:
                continue  # gone meanwhile
    return found


def largest_while(command: list[str], folder: Path) -> int:
    """Run it; the most that its folder held, temporary files among it."""
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    process = Process("wirewitness", [*WIREWITNESS, *command], folder, {"TMPDIR": str(temporary)})
    largest = 0

    def has_ended() -> bool:
        nonlocal largest
        largest = max(largest, used_bytes(folder))
        return not process.is_running

    try:
        wait_until(has_ended, "the command ends", 3600)
        process.finish()
    finally:
        process.stop()
    return largest


def test_the_command_reads_it_where_it_is(made: Replayed, tmp_path: Path) -> None:
    rows = tmp_path / "run" / "exchanges.parquet"
    largest = largest_while(["table", "exchanges", ADDRESS, "--format", "parquet", "--output", str(rows)], rows.parent)
    assert pq.read_metadata(rows).num_rows == made.exchanges
    assert largest < MOST_LOCAL_BYTES


def test_workers_take_it_into_a_dataset_where_it_is(made: Replayed, tmp_path: Path) -> None:
    dataset = tmp_path / "run" / "dataset"
    command = ["archive", ADDRESS, "--output", str(dataset), "--master", "local[2]"]
    largest = largest_while(command, dataset.parent)
    with wirewitness.read(dataset, tables=["exchanges"]) as kept:
        assert kept.sql("SELECT count(*) FROM exchanges").column(0)[0].as_py() == made.exchanges
    assert largest < MOST_LOCAL_BYTES
