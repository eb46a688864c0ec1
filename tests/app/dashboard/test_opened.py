"""Kept tables that are damaged are noticed and made anew; what is remembered of them has a limit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.captures import write_capture
from tests.app.dashboard.opening import SCRIPT, TIMEOUT_S, shown
from wirewitness.app.dashboard import opened as opened_module
from wirewitness.app.dashboard import server_state
from wirewitness.app.dashboard.jobs import discard, key_of
from wirewitness.app.dashboard.opened import META, Opened, TablesDamaged
from wirewitness.app.dashboard.worker import keep_tables

WAIT_S = 120
EXCHANGES = 500


def analysed(tmp_path: Path) -> tuple[list[str], Path]:
    paths = [str(write_capture(tmp_path / "a.pcap", exchanges=EXCHANGES))]
    return paths, keep_tables(paths, {}, key_of(paths, {}))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    """Rows are damaged, the description at the end is not."""
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * (len(whole) // 3) + whole[4 + len(whole) // 3 :])


@pytest.mark.parametrize("damage", [cut, overwrite, Path.unlink], ids=["cut", "overwritten", "removed"])
def test_damaged_tables_are_noticed(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    _, folder = analysed(tmp_path)
    damage(folder / "exchanges.parquet")
    with pytest.raises(TablesDamaged) as error:
        Opened.kept(folder).sql("SELECT * FROM exchanges")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"paths": 1'])
def test_a_damaged_description_is_noticed(tmp_path: Path, text: str) -> None:
    _, folder = analysed(tmp_path)
    (folder / META).write_text(text)
    with pytest.raises(TablesDamaged):
        Opened.kept(folder)


def test_damaged_tables_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, folder = analysed(tmp_path)
    overwrite(folder / "exchanges.parquet")
    monkeypatch.setattr(sys, "argv", ["script", f"--given={json.dumps({'paths': paths, 'options': {}})}"])
    app = AppTest.from_file(str(SCRIPT), default_timeout=TIMEOUT_S).run()
    assert not app.exception
    assert "again: what was kept of it is damaged or gone" in shown(app)
    job = server_state.jobs().job(folder.name)
    assert job is not None
    job.wait(WAIT_S)
    app.run()
    assert not app.exception
    assert "Who talks to whom" in shown(app)
    tables = Opened.kept(folder)
    assert tables.sql("SELECT count(*) AS n FROM exchanges").to_pylist() == [{"n": EXCHANGES}]
    tables.close()


def test_only_the_cache_is_cleared(tmp_path: Path) -> None:
    _, folder = analysed(tmp_path)
    mine = tmp_path / folder.name
    mine.mkdir()
    for one in (mine, folder):
        discard(one)
    assert mine.exists()
    assert not folder.exists()


def test_work_is_done_once_and_little_of_it_kept(tmp_path: Path) -> None:
    _, folder = analysed(tmp_path)
    tables = Opened.kept(folder)
    done: list[int] = []
    for number in (1, 1, 2, 3, 3, 4, 4, 1):
        assert tables.once(number, partial(work, done, number)) == [number]
    tables.close()
    assert done == [1, 2, 3, 4, 1]


def work(done: list[int], number: int) -> list[int]:
    done.append(number)
    return [number]


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, folder = analysed(tmp_path)
    tables = Opened.kept(folder)
    monkeypatch.setattr(opened_module, "_REMEMBERED_BYTES", 100_000)
    for number in range(100):
        tables.sql(f"SELECT {number} AS n FROM exchanges WHERE false AND '{'x' * 2000}' = ''")
    assert 2 < len(tables._answers) <= 100_000 // 2000
    before = len(tables._answers)
    for _ in range(50):
        tables.sql("SELECT 1 AS n FROM exchanges WHERE false")
    assert len(tables._answers) <= before + 1
    tables.close()
