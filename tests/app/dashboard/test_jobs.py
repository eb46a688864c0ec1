"""An analysis for the dashboard ends in kept tables, a sentence, or nothing at all when it is cancelled."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.app.captures import write_capture
from wirewitness.analyser.capture import CaptureError
from wirewitness.app.dashboard import jobs as jobs_module
from wirewitness.app.dashboard.jobs import Jobs, kept_tables, key_of
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.worker import keep_tables

WAIT_S = 120


@pytest.fixture(autouse=True)
def own_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


def left_over(tmp_path: Path) -> list[str]:
    """Files in the temporary folder and unfinished parts of the cache."""
    unfinished = [path.name for path in (tmp_path / "cache").rglob("*.part")]
    return [path.name for path in (tmp_path / "temporary").iterdir()] + unfinished


def test_a_job_leaves_tables_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.py").write_text("raise SystemExit('a program of the user, in the folder where he is')")
    monkeypatch.chdir(tmp_path)
    paths = [str(write_capture(tmp_path / "a.pcap", exchanges=5))]
    key, jobs = key_of(paths, {}), Jobs()
    assert kept_tables(key, jobs) is None
    job = jobs.start(paths, {}, key)
    job.wait(WAIT_S)
    assert (job.error, job.running) == (None, False)
    folder = kept_tables(key, Jobs())
    assert folder is not None
    opened = Opened.kept(folder)
    assert opened.sql("SELECT count(*) AS n FROM exchanges").to_pylist() == [{"n": 5}]
    opened.close()
    assert left_over(tmp_path) == []


def test_a_cancelled_job_leaves_nothing(tmp_path: Path) -> None:
    paths = [str(write_capture(tmp_path / "a.pcap", exchanges=20_000))]
    key, jobs = key_of(paths, {}), Jobs()
    job = jobs.start(paths, {}, key)
    job.cancel()
    job.wait(WAIT_S)
    assert (job.folder, job.error, job.running) == (None, None, False)
    assert kept_tables(key, jobs) is None
    assert left_over(tmp_path) == []


def test_without_a_cache_the_tables_are_temporary(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder can be made here")
    paths = [str(write_capture(tmp_path / "a.pcap"))]
    jobs = Jobs()
    job = jobs.start(paths, {}, "tables-x")
    job.wait(WAIT_S)
    folder = kept_tables("tables-x", jobs)
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "temporary")
    del folder
    jobs.forget("tables-x")
    del job
    assert [path.name for path in (tmp_path / "temporary").iterdir()] == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "empty"),
        (b"not a capture at all, only text\n" * 9, "not a capture"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), ""),
    ],
)
def test_what_is_no_capture_is_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "upload.pcap"
    path.write_bytes(content)
    with pytest.raises(CaptureError) as error:
        key_of([str(path)], {})
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_one_capture_of_two_is_enough(tmp_path: Path) -> None:
    good = str(write_capture(tmp_path / "a.pcap"))
    both = [good, str(tmp_path / "gone.pcap")]
    opened = Opened.kept(keep_tables(both, {}, key_of(both, {})))
    opened.close()
    assert opened.paths == (good,)
    assert "gone.pcap" in " ".join(opened.unread)


def test_the_key_follows_content_and_options(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    first = key_of([str(write_capture(path, exchanges=3))], {})
    assert key_of([str(path)], {}) == first
    assert key_of([str(path)], {"decode_as": {"9092": "kafka"}}) != first
    assert key_of([str(write_capture(path, exchanges=4))], {}) != first


def test_jobs_that_are_done_hold_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "_JOBS_KEPT", 1)
    jobs, held = Jobs(), []
    for name in ("a", "b"):
        (tmp_path / name).write_text("no capture")
        job = jobs.start([str(tmp_path / name)], {}, name)
        job.wait(WAIT_S)
        assert job.error is not None
        held.append(len(os.listdir("/proc/self/fd")))
        del job
    assert held[0] == held[1]
    assert (jobs.job("a"), jobs.job("b") is None) == (None, False)
