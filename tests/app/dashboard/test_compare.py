"""The page that puts two captures, or two times of one, side by side."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.captures import write_capture
from tests.app.dashboard.opening import SCRIPT, TIMEOUT_S, kept, opened, sample, shown, tables
from tests.app.program import run
from tests.conftest import SAMPLES
from wirewitness.app.dashboard.jobs import key_of
from wirewitness.app.dashboard.offers import content_id
from wirewitness.app.dashboard.views.compare import DOORS, where_is
from wirewitness.app.dashboard.worker import keep_tables


def side_by_side(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """What `wirewitness dashboard A B --compare` opens."""
    for path in paths:
        keep_tables([str(path)], {}, key_of([str(path)], {}))
    order = {"paths": [str(path) for path in paths], "options": {}, "compare": True}
    monkeypatch.setattr(sys, "argv", ["script", f"--given={json.dumps(order)}"])
    return AppTest.from_file(str(SCRIPT), default_timeout=TIMEOUT_S)


def differing(app: AppTest) -> list[str]:
    """The first column with words of the table of differences."""
    return [row["What"] for row in tables(app)[0]]


def test_two_captures_begin_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [SAMPLES / "mqtt_healthy.pcapng", SAMPLES / "mqtt_faults.pcapng"]
    app = side_by_side(paths, monkeypatch)
    app.query_params.update({"capture": content_id([str(paths[0])]), "other": content_id([str(paths[1])])})
    app.run()
    app._page_hash = next(key for key, info in app._registered_pages.items() if info["url_pathname"] == "compare")
    app.query_params["sides"] = "captures"
    app.run()
    assert not app.exception
    text = shown(app)
    assert "mqtt_healthy.pcapng: " in text
    assert "mqtt_faults.pcapng: " in text
    assert "MQT103 keep-alive-missed" in differing(app)[0]


def test_a_capture_beside_its_copy_differs_in_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run, that is: other times, another file."""
    paths = [write_capture(tmp_path / "a.pcap", exchanges=300), write_capture(tmp_path / "b.pcap", exchanges=305)]
    app = side_by_side(paths, monkeypatch)
    app.query_params.update({"capture": content_id([str(paths[0])]), "other": content_id([str(paths[1])])})
    app.run()
    app._page_hash = next(key for key, info in app._registered_pages.items() if info["url_pathname"] == "compare")
    app.query_params["sides"] = "captures"
    app.run()
    assert not app.exception
    assert "but for what chance makes" in shown(app)


def test_two_times_of_one_capture() -> None:
    kept(sample("kafka_fenced_commit"))
    whole = opened("kafka_fenced_commit", "compare")
    assert not whole.exception
    assert "Before" in shown(whole)
    app = opened("kafka_fenced_commit", "compare", {"sides": "ranges"})
    assert not app.exception
    boxes = [box.label for box in app.text_input]
    assert {"First: from, UTC", "First: to, UTC", "Second: from, UTC", "Second: to, UTC"} <= set(boxes)
    app.text_input(key="ww_w_second-to").set_value("no time").run()
    assert "no time is no time" in shown(app)


def test_without_another_capture_it_says_how_to_name_one() -> None:
    kept(sample("mqtt_faults"))
    app = opened("mqtt_faults", "compare", {"sides": "captures"})
    assert not app.exception
    assert "wirewitness dashboard A B --compare" in shown(app)


@pytest.mark.parametrize(
    ("captures", "sentence"),
    [
        (["a.pcap"], b"--compare takes two captures, 1 given"),
        (["a.pcap", "a.pcap", "a.pcap"], b"--compare takes two captures, 3 given"),
        (["a.pcap", "notes.txt"], b"notes.txt"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, captures: list[str], sentence: bytes) -> None:
    (tmp_path / "notes.txt").write_text("nothing like a capture, but long enough to be looked at\n" * 5)
    write_capture(tmp_path / "a.pcap")
    result = run("dashboard", "--no-browser", "--compare", *captures, cwd=tmp_path)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert result.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("row", "column", "side"),
    [
        ({"exchanges_a": 3, "exchanges_b": 4}, "exchanges_a", 0),
        ({"exchanges_a": 3, "exchanges_b": 4}, "p99_ms_b", 1),
        ({"exchanges_a": 3, "exchanges_b": 4}, "operation", 1),
        ({"exchanges_a": 3, "exchanges_b": 0}, "exchanges_b", 0),
        ({"there_a": False, "there_b": True}, "before", 1),
        ({"findings_a": 3, "findings_b": 4}, "a", 0),
    ],
)
def test_a_press_opens_the_side_that_has_something(row: dict[str, object], column: str, side: int) -> None:
    assert where_is(row, column) == side


def test_doors_lead_to_what_is_behind() -> None:
    row = {"protocol": "mqtt", "operation": "not decoded", "error": "not told"}
    page, values = DOORS["error"](row)
    assert page == "exchanges"
    assert {name: value for name, value in values.items() if value} == {"protocol_of": "mqtt", "status": "error"}
    page, values = DOORS["finding"]({"code": "MQT103", "name": "keep-alive-missed"})
    assert (page, values["rule"], values["finding"]) == ("findings", "MQT103 keep-alive-missed", None)
