"""What one takes along from the dashboard, in a real browser: addresses, filters, fields, commands; ways back."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.app.program import run
from tests.support.browser import Person, open_sample, person

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

DETAILS = re.compile("^Details of 1,")
STALE = "/?capture=kafka_stale_commit"


def test_copy_a_filter_for_wireshark(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.click(DETAILS)
    code = somebody.page.locator("[data-testid=stCode]").filter(has_text="frame.number in {")
    code.first.hover()
    assert somebody.clicks <= 2
    assert code.first.get_by_label("Copy to clipboard").count() == 1


def test_copy_a_field_its_hex_the_filter_and_the_command(somebody: Person, tmp_path: Path) -> None:
    page = somebody.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    somebody.go(f"/exchanges{STALE[1:]}&packet=7401")
    somebody.press_row(somebody.tables().first)
    page.get_by_text("OffsetCommit v7 request").wait_for()
    somebody.click(page.get_by_role("option").filter(has_text="client_id").first)
    somebody.clicks = 0

    def copied(label: str) -> str:
        somebody.click(page.get_by_role("button", name=label).first)
        somebody.page.get_by_role("button", name="Copied").first.wait_for()
        page.wait_for_timeout(1700)  # until the button says again what it does
        return str(page.evaluate("navigator.clipboard.readText()"))

    client = copied("Copy value")
    assert somebody.clicks == 1
    assert client.startswith("ledger-")
    assert bytes.fromhex(copied("Copy its hex")) == len(client).to_bytes(2, "big") + client.encode()
    assert copied("Copy Wireshark filter") == "frame.number in {7401}"
    words = shlex.split(copied("Copy command"))
    told = run(*words[1:], cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert (
        f"client_id  {client}".split()
        == next(line for line in told.stdout.decode().splitlines() if "client_id" in line).split()[-2:]
    )


def test_windows_can_be_told_apart(somebody: Person) -> None:
    somebody.go("/kafka-groups?capture=kafka_stale_commit&group=orders-billing")
    assert somebody.page.title().startswith("Kafka groups: orders-billing")
    assert somebody.page.title().endswith(" · kafka_stale_commit.pcapng")


def test_the_same_rows_by_a_command(somebody: Person, tmp_path: Path) -> None:
    somebody.go(f"/exchanges{STALE[1:]}&status=error")
    somebody.click("Command")
    command = somebody.page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").inner_text()
    told = run(*shlex.split(command)[1:], "--format", "csv", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert f"{len(told.stdout.splitlines()) - 1} exchanges" in somebody.reads()


def test_a_time_range_goes_with_the_address(somebody: Person, browser: Browser, address: str) -> None:
    somebody.go(STALE)
    somebody.page.locator("[data-testid=stSidebar]").get_by_role("slider").first.focus()
    for _ in range(20):
        somebody.page.keyboard.press("ArrowRight")
    somebody.page.wait_for_url("**from=*")
    somebody.settle()
    somebody.click("Topics")
    somebody.page.wait_for_url("**/kafka-topics?*from=*")
    somebody.settle()
    shared = somebody.page.url.removeprefix(address)
    seen = somebody.page.locator("[data-testid=stSidebarUserContent]").inner_text()
    with person(browser, address) as colleague:
        colleague.go(shared)
        assert colleague.page.locator("[data-testid=stSidebarUserContent]").inner_text() == seen
        assert "Topics" in colleague.reads()
    assert somebody.clicks <= 2


def test_back_and_forward_show_what_they_showed(somebody: Person) -> None:
    """Filter, choose a row, follow it, open a finding, close the capture: each is one step of the browser."""
    page = somebody.page
    somebody.go("/")
    steps: list[tuple[str, str, int]] = []

    def seen() -> tuple[str, str, int]:
        somebody.settle()
        fields = page.get_by_text("correlation_id").count()
        return page.url, page.locator("h2").first.inner_text(), fields

    steps.append(seen())
    open_sample(somebody, "kafka_stale_commit.pcapng")
    steps.append(seen())
    somebody.click("Exchanges")
    steps.append(seen())
    page.get_by_label("Status").first.click()
    somebody.click(page.get_by_role("option", name="error"))
    steps.append(seen())
    somebody.press_row(somebody.tables().first)
    steps.append(seen())
    for name in ("Whole conversation of this connection", "Findings", DETAILS, "All findings", "Open another capture"):
        somebody.click(name)
        steps.append(seen())
    assert len({step[0] for step in steps}) == len(steps) - 1  # the list of findings is there twice
    assert "status=error" in steps[3][0]
    assert (steps[3][2], steps[4][2]) == (0, 2)
    for step in reversed(steps[:-1]):
        page.go_back()
        assert seen() == step
    for step in steps[1:]:
        page.go_forward()
        assert seen() == step
