"""Tables of the dashboard in a real browser: rows open by a press, Enter and Space; heads order all rows."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator

from tests.support.browser import Person

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

STALE = "capture=kafka_stale_commit"


def press(one: Person, *keys: str) -> None:
    for key in keys:
        one.page.keyboard.press(key)
    one.settle()


def tab_to(one: Person, table: Locator) -> None:
    """By Tab alone, from the box before it on."""
    for _ in range(60):
        one.page.keyboard.press("Tab")
        if table.locator(":focus").count():
            return
    raise AssertionError("no Tab leads to the table")


@pytest.mark.parametrize("key", ["Enter", " "], ids=["Enter", "Space"])
def test_a_row_opens_by_keys_alone(somebody: Person, key: str) -> None:
    """Arrows only move: nothing opens before the key."""
    somebody.go(f"/exchanges?{STALE}")
    table = somebody.tables().first
    somebody.page.get_by_label("Packet", exact=True).focus()
    tab_to(somebody, table)
    press(somebody, "ArrowDown", "ArrowDown", "ArrowRight")
    assert "message=" not in somebody.page.url
    row = table.locator("tr:has(:focus)")
    told = row.locator("td").all_text_contents()
    press(somebody, key)
    assert "message=" in somebody.page.url
    assert somebody.page.get_by_text("correlation_id").count() >= 2
    assert table.locator("tr[aria-selected=true] td").all_text_contents() == told
    # The focus is still there, so that the next row is one arrow away.
    first = somebody.page.url
    press(somebody, "ArrowDown", key)
    assert somebody.page.url != first
    press(somebody, "Control+End")
    last = table.locator("tr:has(:focus) td").all_text_contents()
    assert last == table.locator("tbody tr").last.locator("td").all_text_contents()
    assert table.locator(":focus").evaluate("(one) => one.getBoundingClientRect().bottom <= innerHeight")


@pytest.mark.smoke
def test_a_row_that_leads_to_another_page_does_so_by_enter(somebody: Person) -> None:
    somebody.go(f"/clients?{STALE}")
    somebody.tables().first.locator("[tabindex='0']").focus()
    press(somebody, "ArrowDown", "Enter")
    assert "who=" in somebody.page.url
    somebody.page.go_back()
    somebody.settle()
    assert "who=" not in somebody.page.url


def test_a_head_orders_all_rows_by_a_press_and_by_enter(somebody: Person) -> None:
    """3,324 exchanges, of which the browser has 100; the list begins upwards."""
    somebody.go(f"/exchanges?{STALE}")
    table = somebody.tables().first
    head = table.get_by_role("columnheader", name="Latency ms")

    def latencies() -> list[float]:
        place = table.locator("th").all_text_contents().index("Latency ms")
        return [
            float(text.replace(",", "")) for text in table.locator(f"td:nth-child({place + 1})").all_text_contents()
        ]

    assert head.get_attribute("aria-sort") == "none"
    somebody.click(head)
    assert "exchanges.by=latency_ms" in somebody.page.url
    assert head.get_attribute("aria-sort") == "ascending"
    least = latencies()
    assert least == sorted(least)
    head.focus()
    press(somebody, "Enter")
    assert "exchanges.by=-latency_ms" in somebody.page.url
    assert head.get_attribute("aria-sort") == "descending"
    most = latencies()
    assert most == sorted(most, reverse=True)
    assert most[-1] > least[-1]


def test_rows_at_hand_are_ordered_too(somebody: Person) -> None:
    somebody.go(f"/kafka-groups?{STALE}")
    table = somebody.tables().first
    worst = table.locator("td:first-child").all_text_contents()
    assert table.locator("tr[aria-selected=true] td").first.text_content() == worst[0]
    somebody.click(table.get_by_role("columnheader", name="Group", exact=True))
    assert table.locator("td:first-child").all_text_contents() == sorted(worst)
    assert table.locator("tr[aria-selected=true] td").first.text_content() == worst[0]


def test_what_is_cut_is_whole_where_one_looks(somebody: Person) -> None:
    somebody.page.set_viewport_size({"width": 900, "height": 800})
    somebody.go(f"/exchanges?{STALE}")
    cell = somebody.tables().first.locator("td").filter(has_text="client_software_version=").first
    fits = "(one) => one.scrollWidth <= one.clientWidth"
    assert not cell.evaluate(fits)
    cell.evaluate("(one) => one.focus()")
    assert cell.evaluate(fits)


def test_text_that_is_marked_to_copy_opens_nothing(somebody: Person) -> None:
    somebody.go(f"/exchanges?{STALE}")
    box = somebody.tables().first.locator("tbody td").nth(2).bounding_box()
    assert box is not None
    mouse = somebody.page.mouse
    mouse.move(box["x"] + 8, box["y"] + 10)
    mouse.down()
    mouse.move(box["x"] + 50, box["y"] + 10)
    mouse.up()
    somebody.settle()
    assert "message=" not in somebody.page.url
