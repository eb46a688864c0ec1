"""Captures that somebody brings along, in a real browser: names and bytes of strangers, credentials, other people."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.app.captures import write_capture
from tests.support.browser import Person, person

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

HOSTILE = "<img src=x onerror=alert(1)> `b` **c** $x^2$ :smile: [l](http://e.example)"


def upload(one: Person, path: Path) -> None:
    one.page.locator("input[type=file]").set_input_files(path)
    one.settle(2.0)


def test_open_a_capture_of_my_own(somebody: Person, tmp_path: Path) -> None:
    """Names from the wire are text, whatever is in them."""
    somebody.go("/")
    upload(somebody, write_capture(tmp_path / "own.pcap", exchanges=40, client_id=HOSTILE))
    text = somebody.reads()
    assert "Who talks to whom" in text
    somebody.click("Clients")
    assert HOSTILE in somebody.reads()
    somebody.click("Connections")
    somebody.click("Exchanges")
    page = somebody.page
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("a[href*='e.example']").count() == 0
    assert page.locator(".katex").count() == 0


def test_an_upload_that_is_no_capture(somebody: Person, tmp_path: Path) -> None:
    notes = tmp_path / "notes.pcap"
    notes.write_text("these are my notes of the incident\n" * 20)
    somebody.go("/")
    upload(somebody, notes)
    text = somebody.reads()
    assert "cannot be read" in text
    assert "Traceback" not in text
    somebody.click("Open another capture")
    assert "Open a capture" in somebody.reads()


def test_an_unknown_protocol_is_a_sentence(somebody: Person, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "cut.pcap", exchanges=0)
    somebody.go("/")
    upload(somebody, capture)
    assert "No Kafka, MQTT or MongoDB traffic was recognised" in somebody.reads()


def test_credentials_appear_on_no_page(somebody: Person) -> None:
    somebody.go("/?capture=kafka_sasl")
    for page in ("Exchanges", "Clients", "Connections", "Findings"):
        somebody.click(page)
        text = somebody.page.content()
        assert "lab-plain-7Qx2" not in text
        assert "eyJhbGciOiJub25lIn0" not in text


def test_an_upload_is_for_its_browser_alone(somebody: Person, browser: Browser, address: str, tmp_path: Path) -> None:
    somebody.go("/")
    upload(somebody, write_capture(tmp_path / "own.pcap", exchanges=40, client_id="mine"))
    shared = somebody.page.url.removeprefix(address)
    again = somebody.page.context.new_page()
    again.goto(somebody.page.url)
    again.get_by_text("Who talks to whom").wait_for()
    with person(browser, address) as stranger:
        stranger.go(shared)
        assert "That capture is not offered here any more." in stranger.reads()
        upload(stranger, write_capture(tmp_path / "the-same.pcap", exchanges=40, client_id="mine"))
        assert stranger.page.url.removeprefix(address) == shared
        assert "Who talks to whom" in stranger.reads()
