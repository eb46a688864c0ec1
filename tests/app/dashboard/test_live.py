"""What `wirewitness live --share` leaves for dashboards, and how the dashboard follows it."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

import wirewitness
from tests.app.dashboard.opening import opened, shown
from tests.app.program import run
from tests.conftest import ROOT
from wirewitness.app.dashboard.live import LiveRun
from wirewitness.app.dashboard.offers import live_offer
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.snapshots import MARK, SHARED_TABLES, Snapshots, is_live, is_running, newest, title_of
from wirewitness.reports.base.questions.source import all_rows

SAMPLE = ROOT / "sample_pcaps" / "kafka_fenced_commit.pcapng"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a live analysis that has ended."""
    folder = tmp_path_factory.mktemp("shared") / "watch"
    result = run("live", "-r", str(SAMPLE), "--share", str(folder), "--quiet")
    assert result.returncode == 0, result.stderr
    return folder


def test_the_newest_tables_are_those_of_the_capture(shared: Path) -> None:
    assert is_live(shared)
    assert not is_running(shared)
    folder = newest(shared)
    assert folder is not None
    tables = Opened.kept(folder)
    with wirewitness.read(SAMPLE, tables=SHARED_TABLES) as analysis:
        for name in ("flows", "messages", "exchanges", "kafka_offset_commits", "findings"):
            query = f"SELECT count(*) AS n FROM {name}"
            assert all_rows(tables, query) == all_rows(analysis, query), name
    tables.close()


def test_a_newer_state_replaces_the_older_ones(tmp_path: Path) -> None:
    with wirewitness.read(SAMPLE, tables=("flows",)) as analysis:
        snapshots = Snapshots(tmp_path / "watch", "eth0", {})
        folder = tmp_path / "watch"
        assert newest(folder) is None
        assert is_running(folder)
        with pytest.raises(FileExistsError, match="another live capture"):
            Snapshots(folder, "eth1", {})
        assert title_of(folder) == "eth0"
        seen = []
        for _ in range(5):
            snapshots.write(analysis)
            seen.append(newest(folder))
        assert len(set(seen)) == 5
        assert sorted(one.name for one in folder.glob("tables-*")) == [one.name for one in seen[-3:] if one is not None]
        assert not list(folder.glob("part-*"))
        snapshots.end()
        assert not is_running(folder)
        assert newest(folder) == seen[-1]


def test_tables_that_cannot_be_written_leave_nothing(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with wirewitness.read(SAMPLE, tables=("flows",)) as analysis:
        snapshots = Snapshots(tmp_path / "watch", "eth0", {})
        analysis.arrow("flows")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                snapshots.write(analysis)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path / "watch") == [MARK]


def test_a_capture_of_another_user_is_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Capturing needs rights that looking does not."""

    def refused(_process: int, _signal: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    Snapshots(tmp_path / "watch", "eth0", {})
    monkeypatch.setattr(os, "kill", refused)
    assert is_running(tmp_path / "watch")


@pytest.mark.parametrize("name", ["letter.txt", "part-0.parquet"])
def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("dear")
    result = run("live", "-r", str(SAMPLE), "--share", str(tmp_path))
    assert result.returncode == 2
    assert name.encode() in result.stderr
    assert os.listdir(tmp_path) == [name]


def test_the_dashboard_shows_a_shared_folder(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer = live_offer(str(shared), "live eth0")
    monkeypatch.setattr("wirewitness.app.dashboard.offered.recent", lambda: [offer])
    app = opened(offer.id)
    assert not app.exception
    text = shown(app)
    assert "Live, ended: tables of" in text
    assert "KAF105" in text


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_a_folder_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    """Somebody could plant links there, which a capture by root would follow."""
    folder = tmp_path / "watch"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(PermissionError, match="can be changed by others"):
        Snapshots(folder, "eth0", {})
    assert not list(folder.iterdir())


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of somebody else's")
    (tmp_path / "precious").write_text("kept")
    folder = tmp_path / "watch"
    folder.mkdir()
    (folder / "live.json.new").symlink_to(tmp_path / "precious")
    os.chown(folder, 4321, 4321)
    result = run("live", "-r", str(SAMPLE), "--share", str(folder), "--quiet")
    assert result.returncode == 2
    assert "belongs to somebody else" in result.stderr.decode()
    assert (tmp_path / "precious").read_text() == "kept"


def test_links_are_neither_followed_nor_kept(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "watch").symlink_to(tmp_path / "real")
    with pytest.raises(NotADirectoryError):
        Snapshots(tmp_path / "watch", "eth0", {})
    Snapshots(tmp_path / "real", "eth0", {}).end()
    (tmp_path / "real" / "live.json.new").symlink_to(tmp_path / "precious")
    (tmp_path / "real" / "tables-1").symlink_to(tmp_path)
    Snapshots(tmp_path / "real", "eth0", {}).end()
    assert (tmp_path / "precious").read_text() == "kept"
    assert not (tmp_path / "real" / "tables-1").is_symlink()


def test_what_is_shared_is_for_its_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with wirewitness.read(SAMPLE, tables=("flows",)) as analysis:
            snapshots = Snapshots(tmp_path / "watch", "eth0", {})
            snapshots.write(analysis)
            snapshots.end()
    finally:
        os.umask(before)
    for path in [tmp_path / "watch", *(tmp_path / "watch").iterdir()]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.skipif(os.geteuid() != 0, reason="capturing needs root")
def test_a_capture_that_somebody_stops_has_no_error(tmp_path: Path) -> None:
    capture = LiveRun(tmp_path, "lo", "1")
    while capture.running and not is_running(tmp_path):
        time.sleep(0.05)
    capture.stop()
    assert (capture.running, capture.error) == (False, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="capturing needs root")
def test_a_capture_that_cannot_begin_says_why(tmp_path: Path) -> None:
    capture = LiveRun(tmp_path, "no-such0", "")
    while capture.running:
        time.sleep(0.05)
    capture.stop()
    assert "no-such0" in capture.error
