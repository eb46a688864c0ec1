"""What the benchmark of archives reads and says; the generator of rotated captures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.bench.archives import Archived, archive_verdicts
from tests.bench.process_tree import Seen, TreeRun, measure_tree
from tests.bench.spark_events import shuffled_bytes
from tests.support.replay import Replayed
from tests.support.replay_rotated import replay_rotated
from tests.support.wire import packets_of
from wirewitness.analyser.archive.ingest.ranges import RANGE_BYTES, find_ranges
from wirewitness.analyser.capture import Source

SIZE = Replayed(packets=10, size_bytes=100_000_000, exchanges=4, flows=2, requests=4, responses=4)


def test_half_of_the_bytes_are_one_connections_and_no_packet_is_cut(tmp_path: Path) -> None:
    made = replay_rotated(tmp_path, 3_000_000, 3, many_flows=20)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) >= 6
    assert made.size_bytes == sum(path.stat().st_size for path in tmp_path.iterdir()) >= 3_000_000
    hot = sum(path.stat().st_size for path in tmp_path.glob("hot.pcap*"))
    assert 0.4 < hot / made.size_bytes < 0.6
    packets = [packets_of(tmp_path / name) for name in names]
    assert sum(map(len, packets)) == made.packets
    for name in names:
        path = tmp_path / name
        assert find_ranges(Source(name, path), path.stat().st_size, RANGE_BYTES)[-1].end == path.stat().st_size


def test_shuffled_bytes_are_those_of_all_tasks(tmp_path: Path) -> None:
    events = [
        {"Event": "SparkListenerTaskEnd", "Task Metrics": {"Shuffle Write Metrics": {"Shuffle Bytes Written": 70}}},
        {"Event": "SparkListenerTaskEnd", "Task Metrics": None},
        {"Event": "SparkListenerJobEnd"},
        {"Event": "SparkListenerTaskEnd", "Task Metrics": {"Shuffle Write Metrics": {"Shuffle Bytes Written": 7}}},
    ]
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events))
    assert shuffled_bytes([log]) == 77


def run_of(
    program: str, wall_s: float, own_mib: float, shuffled: int | None, startup_s: float = 0.0, driver_s: float = 1.0
) -> Archived:
    seen = {"driver": Seen(100.0, 200.0, driver_s), "worker": Seen(own_mib, 2 * own_mib, 1.0)}
    return Archived(program, SIZE, TreeRun(wall_s, 40.0, seen), startup_s, shuffled)


def test_verdicts_leave_start_up_aside() -> None:
    found = [
        run_of("offline", 10, 300, None),
        run_of("one", 25, 2000, 6_000_000, 5, 1.4),
        run_of("two", 15, 500, 1_000_000, 5),
    ]
    assert archive_verdicts(found) == [
        "- two: 1.00 x offline, start-up apart, aim 1 x: met",
        "- archive: 2.00 x from one core to two",
        "- one: largest process 2000 MiB, aim 1536: MISSED; shuffled 6.00%, aim 5%: MISSED",
        "- one: driver: 1.4 s of processor time, 3.5% of all, bound 3%: MISSED",
        "- two: largest process 500 MiB, aim 1536: met; shuffled 1.00%, aim 5%: met",
        "- two: driver: 1.0 s of processor time, 2.5% of all, bound 3%: met",
    ]


def test_a_tree_of_processes_is_measured(tmp_path: Path) -> None:
    """The child holds 64 MiB, the program itself little."""
    child = "import time; held = bytearray(64 << 20); time.sleep(0.6)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    run = measure_tree([sys.executable, "-c", program], tmp_path / "out", tmp_path / "err")
    assert run.wall_s >= 0.6
    assert run.peaks["worker"].own_mib >= 64 > run.peaks["driver"].own_mib
