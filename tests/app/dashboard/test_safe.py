"""What is nobody else's: recent files, paths on a server for others, cells that a spreadsheet would calculate."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.captures import write_capture
from tests.app.dashboard.opening import SCRIPT, TIMEOUT_S, shown
from tests.app.program import run
from tests.support.packets import pcap
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.app.dashboard import downloads
from wirewitness.app.dashboard.jobs import key_of
from wirewitness.app.dashboard.offers import given_offer, recent, remember
from wirewitness.app.dashboard.opened import Opened, Selected
from wirewitness.app.dashboard.worker import keep_tables


def started(order: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(sys, "argv", ["script", f"--given={json.dumps({'paths': [], 'options': {}, **order})}"])
    app = AppTest.from_file(str(SCRIPT), default_timeout=TIMEOUT_S).run()
    assert not app.exception
    return app


def test_recent_files_are_for_their_user_alone(tmp_path: Path) -> None:
    offer = given_offer([str(write_capture(tmp_path / "mine.pcap"))], {})
    before = os.umask(0)
    try:
        remember(offer)
        remember(given_offer([str(write_capture(tmp_path / "other.pcap"))], {}))
    finally:
        os.umask(before)
    assert [Path(one.paths[0]).name for one in recent()] == ["other.pcap", "mine.pcap"]
    made = list((tmp_path / "state").rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}
    assert all(path.stat().st_mode & 0o077 == 0 for path in made if path.name == "wirewitness")


@pytest.mark.parametrize("private", [True, False])
def test_others_are_shown_no_paths_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private: bool
) -> None:
    remember(given_offer([str(write_capture(tmp_path / "secret-name.pcap"))], {}))
    text = shown(started({"private": private}, monkeypatch))
    assert ("secret-name" in text) is private
    assert "kafka_stale_commit" in text


def test_no_cell_of_a_download_is_a_formula(tmp_path: Path) -> None:
    paths = [str(write_capture(tmp_path / "a.pcap", client_id="=1+1"))]
    source = Selected(Opened.kept(keep_tables(paths, {}, key_of(paths, {}))), ReadOptions())
    text = downloads.csv_of(source, "select client_id from exchanges", "client_id", ["client_id"])
    assert set(text.decode().splitlines()[1:]) == {"'=1+1"}


def test_a_live_capture_without_packets_has_a_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture, folder = tmp_path / "empty.pcap", tmp_path / "watch"
    capture.write_bytes(pcap([]))
    assert run("live", "-r", str(capture), "--share", str(folder), "--quiet").returncode == 0
    app = started({"paths": [str(folder)]}, monkeypatch)
    assert "no packets" in shown(app).lower()
    next(button for button in app.button if button.label == "Open another capture").click()
    app.run()
    assert not app.exception
    assert "kafka_stale_commit" in shown(app)
