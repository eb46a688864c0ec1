"""Every page in a real browser: what axe-core finds, buttons on narrow pages, marks and axes that can be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.lab.axe import faults
from tests.lab.screenshots import DETAILS, SAMPLES
from tests.support.browser import Person, dashboard, person
from tests.support.replay_mqtt import write_publishes
from wirewitness.app.dashboard.pages import PAGES

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

NARROW = {"width": 900, "height": 900}
# Vega-Lite has no way to name the frame of a range that is dragged out; the time boxes of the sidebar do the same.
UNNAMED = 'class="mark-rect role-mark range_brush'
ADDRESSES = {
    "start": "/",
    **{page.name: f"/{'' if page is PAGES[0] else page.name}?capture={SAMPLES[page.needs]}" for page in PAGES},
    "mqtt-lanes": "/mqtt-clients?capture=mqtt_takeover_loop",
}
# Buttons and links whose words do not fit into them, or that stand out of the page.
CUT = """() => [...document.querySelectorAll("[data-testid=stMain] :is(button, a)")].filter((one) => {
  const box = one.getBoundingClientRect();
  const hidden = !box.width || getComputedStyle(one).visibility === "hidden";
  if (hidden) return false;
  const words = [...one.querySelectorAll("p")];
  const fits = (word) => word.getBoundingClientRect().right <= box.right && word.scrollWidth <= word.clientWidth + 1;
  const inside = words.every(fits);
  return !inside || box.right > innerWidth + 1 || box.left < 0;
}).map((one) => one.textContent.slice(0, 60))"""
UNREAD = """() => [...document.querySelectorAll(".stVegaLiteChart .role-mark path")].filter((one) =>
  one.getAttribute("role") === "graphics-symbol" && !(one.getAttribute("aria-label") || "").includes(":")).length"""
TIMES = """() => [...document.querySelectorAll(".stVegaLiteChart .role-axis-label text")]
  .map((one) => one.textContent).filter((one) => one.includes(":"))"""


def serious(one: Person) -> list[str]:
    found = [fault for fault in faults(one.page) if fault.impact in ("serious", "critical")]
    return [f"{fault.rule}: {fault.why}: {fault.element}" for fault in found if UNNAMED not in fault.element]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, address: str, dark: bool) -> None:
    found: dict[str, list[str]] = {}
    with person(browser, address, dark=dark) as one:
        for name, path in ADDRESSES.items():
            one.go(path)
            found[name] = serious(one)
        one.go(ADDRESSES["overview"])
        one.click(DETAILS)
        found["finding"] = serious(one)
        one.go(ADDRESSES["exchanges"])
        one.page.get_by_label("Go to packet").fill("7401")
        one.page.keyboard.press("Enter")
        one.settle()
        found["message"] = serious(one)
    assert {name: said for name, said in found.items() if said} == {}


def test_a_page_of_900_pixels_cuts_no_button(browser: Browser, address: str) -> None:
    cut: dict[str, list[str]] = {}
    with person(browser, address) as one:
        one.page.set_viewport_size(NARROW)
        for name, path in ADDRESSES.items():
            one.go(path)
            cut[name] = one.page.evaluate(CUT)
            assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    assert {name: said for name, said in cut.items() if said} == {}


@pytest.mark.parametrize("name", ["kafka-groups", "mqtt-lanes", "mongo-shapes", "overview"])
def test_marks_can_be_read_out(browser: Browser, address: str, name: str) -> None:
    with person(browser, address) as one:
        one.go(ADDRESSES[name])
        assert one.charts().count() > 0
        assert one.page.evaluate(UNREAD) == 0


def test_a_second_has_more_than_two_times_on_its_axis(browser: Browser, tmp_path: Path) -> None:
    capture = tmp_path / "second.pcap"
    write_publishes(capture, 600, 20)
    with dashboard(tmp_path, [capture]) as served, person(browser, served) as one:
        one.go("/mqtt-clients")
        times = one.page.evaluate(TIMES)
        assert 3 <= len(times) <= 9
        assert times == sorted(set(times))
