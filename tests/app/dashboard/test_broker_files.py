"""A request log and log segments in the dashboard: every page, with lines where captures have packets."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.app.dashboard.opening import follow, kept, links, on_page, opened, shown
from tests.conftest import SAMPLES
from tests.support.record_batches import Sent, batch
from tests.support.request_log import write_sample_log
from tests.support.segments import commit_key, commit_value, segment, write_segment
from wirewitness.app.dashboard.components.inspector import message_data
from wirewitness.app.dashboard.components.ladder import ladder_lines
from wirewitness.app.dashboard.jobs import key_of
from wirewitness.app.dashboard.offers import Offer, Uploads, given_offer
from wirewitness.app.dashboard.opened import Opened, Selected
from wirewitness.app.dashboard.packets import exchange_views
from wirewitness.app.dashboard.pages import PAGES

STALE = SAMPLES / "request_logs" / "kafka_stale_commit.log.gz"


def given(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> Offer:
    """What the command line named, with its tables."""
    named = [str(path) for path in paths]
    order = {"paths": named, "options": {}, "private": True}
    monkeypatch.setattr(sys, "argv", ["streamlit_app.py", f"--given={json.dumps(order)}"])
    offer = given_offer(named, {})
    kept(offer)
    return offer


def test_every_page_opens_on_a_log_and_a_finding_names_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    offer = given(monkeypatch, STALE)
    app = opened(offer.id)
    assert not app.exception
    assert "logged requests" in shown(app)
    linked = {link.page for link in links(app.sidebar)} - {""}
    assert {entry.name for entry in PAGES if entry.needs == "kafka"} <= linked
    for page in sorted(linked):
        app = on_page(app, page)
        assert not app.exception, (page, [error.message for error in app.exception])
    app = follow(opened(offer.id), "Details")
    text = shown(app)
    assert not app.exception
    assert "there are no packets to take along" in text
    assert f"lines of {STALE}: " in text
    assert "frame.number" not in text


def test_a_message_is_shown_by_its_line(tmp_path: Path) -> None:
    log = write_sample_log(SAMPLES, "kafka_fenced_commit", tmp_path / "request.log")
    tables = Opened.kept(kept(given_offer([str(log)], {})))
    told = tables.sql("SELECT message_id, flow_id, line FROM messages WHERE operation = 'OffsetCommit' LIMIT 1")
    [row] = told.to_pylist()
    asked, answered = (message_data(view, "show") for view in exchange_views(tables, row["message_id"], payload=False))
    assert ["line", f"{row['line']} of request.log"] in asked["facts"]
    assert [label for label, _ in asked["copies"]] == ["Copy command"]
    assert {"group_id", "client_id"} <= {name for _, name, *_ in asked["fields"]}
    assert (asked["role"], answered["role"], asked["hex"]) == ("request", "response", [])
    drawn = ladder_lines(Selected(tables, tables.options), row["flow_id"], 0, 500, row["message_id"])
    assert f"line {row['line']}" in {one["detail"] for one in drawn if one["kind"] == "message"}


def test_a_log_beside_a_capture_leaves_both_their_places(tmp_path: Path) -> None:
    log = write_sample_log(SAMPLES, "kafka_stale_commit", tmp_path / "request.log")
    capture = SAMPLES / "kafka_fenced_commit.pcapng"
    tables = Opened.kept(kept(given_offer([str(capture), str(log)], {})))
    found = {}
    for name, condition in (("packets", "line IS NULL"), ("line", "line IS NOT NULL")):
        query = f"SELECT message_id FROM messages WHERE operation = 'OffsetCommit' AND {condition} LIMIT 1"
        message_id = tables.sql(query).column(0)[0].as_py()
        views = exchange_views(tables, message_id, payload=False)
        found[name] = [fact for view in views for fact in message_data(view, "show")["facts"] if fact[0] == name]
    assert [len(facts) for facts in found.values()] == [2, 2]


def test_stored_offsets_of_a_segment_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [Sent(1, commit_key("billing", "orders", 3), commit_value(offset), []) for offset in (7, 9, 8)]
    path = write_segment(tmp_path, "__consumer_offsets-1", segment((0, batch(sent))))
    app = opened(given(monkeypatch, path).id, "kafka-groups")
    assert not app.exception
    assert "On 1 partition the offset went back, once in all" in shown(app)


def test_an_upload_of_a_log_is_taken(tmp_path: Path) -> None:
    uploads = Uploads()
    try:
        offer = uploads.add("kafka-request.log.gz", memoryview(STALE.read_bytes()), "me")
        assert key_of(offer.paths, {})
    finally:
        uploads.close()
