"""What the dearest pages ask of a long capture is answered when it was analysed, and is what its tables say."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.captures import write_capture
from tests.app.dashboard.opening import SCRIPT, TIMEOUT_S, kept, on_page, shown
from tests.support import forty_groups
from wirewitness.app.dashboard import worker
from wirewitness.app.dashboard.answers import keep_answer, kept_answer
from wirewitness.app.dashboard.offers import given_offer
from wirewitness.app.dashboard.opened import Opened

# What is in the query that follows every group from its first message on, and in that of the chart of commits.
DEAR = ("lag_passed", "went_back")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return forty_groups.write(tmp_path / "days.pcap")


def test_groups_and_compare_ask_nothing_dear_at_first_sight(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    run = Opened._run
    monkeypatch.setattr(Opened, "_run", lambda self, query: (asked.append(query), run(self, query))[1])
    monkeypatch.setattr(worker, "LONG", 1_000)
    offer = given_offer([str(capture)], {})
    kept(offer)
    assert {name for name in DEAR for query in asked if name in query} == set(DEAR)
    asked.clear()
    monkeypatch.setattr(sys, "argv", ["script", f"--given={json.dumps({'paths': [str(capture)], 'options': {}})}"])
    app = AppTest.from_file(str(SCRIPT), default_timeout=TIMEOUT_S)
    app.query_params["capture"] = offer.id
    app.run()
    for page in ("kafka-groups", "compare"):
        app = on_page(app, page)
        assert not app.exception
    assert "What differs" in shown(app)
    assert asked != []
    assert [query for query in asked if any(name in query for name in DEAR)] == []


def test_kept_answers_are_what_the_tables_say(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LONG", 1_000)
    folder = kept(given_offer([str(capture)], {}))
    queries = [pa.ipc.open_file(path).schema.metadata[b"query"].decode() for path in folder.glob("answer-*")]
    assert len(queries) > 20
    tables = Opened.kept(folder)
    for query in queries:
        told, found = kept_answer(folder, query), tables._run(query)
        assert told is not None
        assert told.schema.remove_metadata() == found.schema.remove_metadata()
        assert sorted(map(repr, told.to_pylist())) == sorted(map(repr, found.to_pylist()))
    tables.close()


def test_of_a_short_capture_nothing_is_asked_ahead(capture: Path) -> None:
    assert list(kept(given_offer([str(capture)], {})).glob("answer-*")) == []


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("damage", [cut, lambda path: path.write_bytes(b"\xff" * 900), Path.unlink, Path.mkdir])
def test_an_answer_that_cannot_be_read_is_asked_anew(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    folder = kept(given_offer([str(write_capture(tmp_path / "a.pcap", exchanges=4))], {}))
    query = "SELECT count(*) AS n FROM exchanges"
    keep_answer(folder, query, pa.table({"n": [77]}))
    tables = Opened.kept(folder)
    assert tables.sql(query).to_pylist() == [{"n": 77}]
    tables.close()
    (path,) = folder.glob("answer-*")
    if damage == Path.mkdir:
        path.unlink()
    damage(path)
    tables = Opened.kept(folder)
    assert tables.sql(query).to_pylist() == [{"n": 4}]
    tables.close()


def test_answers_that_lie_elsewhere_are_not_taken(tmp_path: Path) -> None:
    """A dataset, or what another user shares, has none."""
    folder = kept(given_offer([str(write_capture(tmp_path / "a.pcap", exchanges=4))], {}))
    query = "SELECT count(*) AS n FROM exchanges"
    keep_answer(folder, query, pa.table({"n": [77]}))
    shared = folder.rename(tmp_path / "shared")
    tables = Opened.kept(shared)
    assert tables.sql(query).to_pylist() == [{"n": 4}]
    tables.close()


def test_an_answer_to_another_query_is_none(tmp_path: Path) -> None:
    keep_answer(tmp_path, "SELECT 1", pa.table({"n": [1]}))
    (path,) = tmp_path.glob("answer-*")
    keep_answer(tmp_path, "SELECT 2", pa.table({"n": [2]}))
    (other,) = set(tmp_path.glob("answer-*")) - {path}
    other.write_bytes(path.read_bytes())
    assert kept_answer(tmp_path, "SELECT 2") is None
    assert kept_answer(tmp_path, "SELECT 1") is not None
