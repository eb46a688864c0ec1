"""Every page opens on captures of each protocol, and says what its capture's maker knows."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.dashboard.opening import SCRIPT, TIMEOUT_S, follow, kept, links, on_page, opened, sample, shown
from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from tests.support.shares import long_cases
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.app.dashboard import downloads, server_state
from wirewitness.app.dashboard.offers import samples
from wirewitness.app.dashboard.opened import Opened, Selected
from wirewitness.app.dashboard.pages import PAGES

FEW = ("mqtt_faults", "kafka_fenced_commit", "mongo_show_databases")


def open_every_page(name: str) -> None:
    kept(sample(name))
    app = opened(name)
    entries = {entry.name for entry in PAGES if entry.needs is None or name.startswith(entry.needs)}
    linked = {link.page or PAGES[0].name for link in links(app.sidebar)}
    assert entries <= linked
    for page in sorted(linked - {PAGES[0].name}):
        app = on_page(app, page)
        assert not app.exception, (page, [error.message for error in app.exception])
        assert shown(app), page


@pytest.mark.parametrize("name", FEW)
def test_every_page_opens(name: str) -> None:
    open_every_page(name)


@pytest.mark.lab
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", long_cases([offer.id for offer in samples() if offer.id not in FEW]))
def test_every_page_opens_on_every_sample(name: str) -> None:
    open_every_page(name)


def test_a_finding_names_who_did_it_and_can_be_taken_along() -> None:
    kept(sample("mqtt_faults"))
    app = opened("mqtt_faults")
    assert not app.exception
    app = follow(app, "Details")
    assert not app.exception
    assert app.query_params["finding"]
    text = shown(app)
    assert "frame.number in {" in text
    assert "What to do next" in text


def test_filters_stand_in_the_url_and_come_back() -> None:
    kept(sample("mqtt_faults"))
    app = opened("mqtt_faults", "findings", {"severity": "critical"})
    assert app.selectbox(key="ww_w_severity").value == "critical"
    app.selectbox(key="ww_w_severity").set_value("warning")
    app.run()
    assert app.query_params["severity"] == "warning"
    app = on_page(app, "")
    assert "severity" not in app.query_params
    assert app.query_params["capture"] == "mqtt_faults"
    app = on_page(app, "findings")
    assert app.query_params["severity"] == "warning"
    assert app.selectbox(key="ww_w_severity").value == "warning"


def test_an_address_without_a_filter_clears_it() -> None:
    """As Back does; what the address does not say of the page is not kept."""
    kept(sample("mqtt_faults"))
    app = opened("mqtt_faults", "findings", {"severity": "critical"})
    app.query_params.clear()
    app.query_params["capture"] = "mqtt_faults"
    app.run()
    assert app.selectbox(key="ww_w_severity").value == ""
    assert "severity" not in app.query_params
    app.query_params.clear()
    app.run()
    assert "Open a capture" in [header.value for header in app.header]


def test_a_page_of_a_protocol_that_is_not_there_is_a_sentence() -> None:
    kept(sample("mqtt_faults"))
    app = opened("mqtt_faults")
    app._page_hash = next(key for key, info in app._registered_pages.items() if info["url_pathname"] == "kafka-groups")
    app.run()
    assert not app.exception
    assert "This capture has no Kafka traffic." in shown(app)


def test_a_table_too_long_for_a_download_names_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "CSV_ROWS", 3)
    kept(sample("mqtt_faults"))
    app = opened("mqtt_faults", "exchanges", {"operation": "CONNECT"})
    assert not app.exception
    command = next(one.value for one in app.code if one.value.startswith("wirewitness query"))
    words = shlex.split(command)
    assert words[-2:] == [">", "exchanges.csv"]
    told = run(*words[1:-2])
    assert told.returncode == 0, told.stderr
    assert told.stdout.count(b"CONNECT") > 3
    source = Selected(Opened.kept(kept(sample("mqtt_faults"))), ReadOptions())
    text = downloads.csv_of(source, "select operation from exchanges", "ts", ["operation"])
    assert len(text.splitlines()) == 1 + 3


def test_a_dataset_opens_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = SAMPLES / "mongo_show_databases.pcapng"
    dataset = make_dataset(tmp_path / "set", [capture])
    order = {"paths": [str(dataset)], "options": {}}
    monkeypatch.setattr(sys, "argv", ["script", f"--given={json.dumps(order)}"])
    app = AppTest.from_file(str(SCRIPT), default_timeout=TIMEOUT_S).run()
    assert not app.exception
    assert "mongo-shapes" in {link.page for link in links(app.sidebar)}
    assert "Who talks to whom" in shown(app)


def test_a_damaged_dataset_is_a_sentence_and_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make_dataset(tmp_path / "set", [SAMPLES / "mongo_show_databases.pcapng"])
    next((dataset / "exchanges").rglob("*.parquet")).unlink()
    uploads = server_state.uploads()
    order = {"paths": [str(dataset)], "options": {}}
    monkeypatch.setattr(sys, "argv", ["script", f"--given={json.dumps(order)}"])
    app = AppTest.from_file(str(SCRIPT), default_timeout=TIMEOUT_S).run()
    assert not app.exception
    assert "is missing" in shown(app)
    assert "Open another capture" in shown(app)
    assert server_state.uploads() is uploads


def test_another_capture_begins_without_the_filters_of_the_last() -> None:
    kept(sample("mqtt_faults"))
    app = opened("mqtt_faults", "exchanges", {"operation": "PUBLISH"})
    assert app.selectbox(key="ww_w_operation").value == "PUBLISH"
    next(button for button in app.button if button.label == "Open another capture").click()
    app.run()
    assert not app.exception
    assert app.session_state["ww_values"] == {}


@pytest.mark.parametrize("capture", ["../../etc/passwd", "nothing", "/etc/passwd"])
def test_only_what_is_offered_opens(capture: str, tmp_path: Path) -> None:
    app = opened(capture)
    assert not app.exception
    assert "That capture is not offered here any more." in shown(app)
