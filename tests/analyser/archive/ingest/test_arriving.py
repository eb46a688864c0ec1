"""Which captures a run takes: complete ones of the time asked for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wirewitness.analyser.archive.ingest import arriving as intake
from wirewitness.analyser.archive.ingest.arriving import (
    CLOCK_SLACK_NS,
    Intake,
    files_named,
    is_by_choice,
    is_complete,
    is_on_network,
    is_open_for_writing,
)
from wirewitness.analyser.capture import Source

NOW_S = time.time()
HOUR_S = 3600.0


def written(path: Path, ago_s: float) -> Path:
    """A file that was last written so long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (NOW_S - ago_s, NOW_S - ago_s))
    return path


def ns(seconds: float) -> int:
    return int(seconds * 1e9)


@pytest.mark.parametrize(
    ("given", "first_ago_s", "expected"),
    [
        pytest.param(Intake(), 2 * HOUR_S, None, id="no time asked for"),
        pytest.param(Intake(since_ns=ns(NOW_S - 2 * HOUR_S)), 3 * HOUR_S, None, id="ends after since"),
        pytest.param(Intake(since_ns=ns(NOW_S)), 3 * HOUR_S, intake.TOO_EARLY, id="ends before since"),
        pytest.param(
            Intake(since_ns=ns(NOW_S - HOUR_S - 1) + CLOCK_SLACK_NS), 3 * HOUR_S, None, id="clocks differ a little"
        ),
        pytest.param(Intake(until_ns=ns(NOW_S - 2 * HOUR_S)), 3 * HOUR_S, None, id="begins before until"),
        pytest.param(Intake(until_ns=ns(NOW_S - 3 * HOUR_S)), 3 * HOUR_S, intake.TOO_LATE, id="begins at until"),
        pytest.param(Intake(until_ns=1), None, None, id="a capture without packets has no time"),
    ],
)
def test_times(given: Intake, first_ago_s: float | None, expected: str | None, tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", HOUR_S)
    source = Source("a.pcap", path, first_ns=None if first_ago_s is None else ns(NOW_S - first_ago_s))
    reason = given.reason(source)
    assert reason == (expected and f"a.pcap {expected}")
    assert reason is None or is_by_choice(reason)


def test_a_file_that_is_gone_is_left_to_the_reader(tmp_path: Path) -> None:
    assert Intake().reason(Source("gone", tmp_path / "gone")) is None


def test_a_file_that_another_process_writes_is_not_complete(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pcap", HOUR_S)
    assert is_complete(path)
    program = "import sys; f = open(sys.argv[1], 'ab'); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        if is_open_for_writing(path) is None:
            pytest.skip("this file system does not tell who writes")
        assert not is_complete(path)
        assert Intake().reason(Source("a.pcap", path)) == f"a.pcap {intake.GROWING}"
        writer.communicate()
    assert is_complete(path)


@pytest.mark.parametrize(
    ("ago_s", "neighbour_ago_s", "expected"),
    [
        pytest.param(5, None, False, id="just written"),
        pytest.param(60, None, True, id="settled"),
        pytest.param(5, 3, True, id="a newer one lies beside it"),
        pytest.param(5, 60, False, id="an older one lies beside it"),
    ],
)
def test_where_the_system_does_not_tell(
    ago_s: float, neighbour_ago_s: float | None, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "is_open_for_writing", lambda _: None)
    now_s = NOW_S
    monkeypatch.setattr(time, "time", lambda: now_s)
    path = written(tmp_path / "a.pcap", ago_s)
    if neighbour_ago_s is not None:
        written(tmp_path / "b.pcap", neighbour_ago_s)
    assert is_complete(path, settled_s=30) is expected


@pytest.mark.parametrize(
    ("system", "expected"), [("ext4 /dev/sda1", False), ("nfs4 host:/captures", True), ("cifs //host/captures", True)]
)
def test_a_file_of_another_machine(system: str, expected: bool, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    with written(tmp_path / "a.pcap", 1).open("rb") as file:
        device = os.fstat(file.fileno()).st_dev
        own = f"{os.major(device)}:{os.minor(device)}"
        mounts.write_text(f"1 1 0:0 / / rw - nfs4 x rw\n36 35 {own} / /mnt rw shared:1 - {system} rw\n")
        assert is_on_network(file.fileno(), mounts) is expected
        assert not is_on_network(file.fileno(), tmp_path / "none")


def test_files_of_paths_directories_and_patterns(tmp_path: Path) -> None:
    for name in ("a.pcap", "deep/er/b.pcap", "c[1].pcap"):
        written(tmp_path / name, 1)
    found = [*files_named([tmp_path / "deep", f"{tmp_path}/a*", tmp_path / "c[1].pcap", tmp_path / "gone"])]
    assert found == [tmp_path / "deep/er/b.pcap", tmp_path / "a.pcap", tmp_path / "c[1].pcap"]
