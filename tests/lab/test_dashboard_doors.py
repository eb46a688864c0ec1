"""Every row and every mark of the dashboard leads on, in a real browser: what a press opens is there, and not empty."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.lab.screenshots import DETAILS, SAMPLES
from tests.support.browser import Person
from wirewitness.app.dashboard.pages import PAGES

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

# Where more of the tables have rows than on the sample of screenshots.
MORE = (
    "/kafka-brokers?capture=kafka_admin", "/kafka-groups?capture=kafka_share_streams",
    "/mongo-cursors?capture=mongo_healthy", "/mqtt-deliveries?capture=mqtt_faults&below=deliveries",
    "/clients?capture=kafka_stale_commit&who=ledger-a@10.77.0.12",
)  # fmt: skip
# A machine that is busy with other things shows what was pressed late.
LATE_MS = 20_000
NOTHING = re.compile(
    r"No exchanges in the selected|Nothing matches|It sent nothing|cannot be shown|A fault of wirewitness|No such "
)


def addresses() -> list[str]:
    own = (page for page in PAGES if page.name != "compare")
    return [f"/{'' if page is PAGES[0] else page.name}?capture={SAMPLES[page.needs]}" for page in own] + list(MORE)


def led_on(one: Person, before: str) -> str:
    """What is wrong with what the press opened; "" if nothing."""
    try:
        one.page.wait_for_url(lambda url: url != before, timeout=LATE_MS)
    except PlaywrightTimeout:
        return "leads nowhere"
    one.settle()
    found = NOTHING.search(one.reads())
    return f"{one.page.url}: {found.group()}" if found else ""


@pytest.mark.parametrize("path", addresses())
def test_the_last_row_of_every_table_leads_on(somebody: Person, path: str) -> None:
    """The last one: of groups the first is open already."""
    somebody.go(path)
    wrong: dict[str, str] = {}
    for place in range(somebody.tables().count()):
        somebody.go(path)
        table = somebody.tables().nth(place)
        before = somebody.page.url
        somebody.click(table.locator("tbody tr").last.locator("td").first)
        wrong[f"{place} {table.get_attribute('aria-label') if before == somebody.page.url else ''}"] = led_on(
            somebody, before
        )
    assert {name: said for name, said in wrong.items() if said} == {}


# The middle of a mark on the screen: of a line it is half way along.
MIDDLE = """(one) => {
  const box = one.getBoundingClientRect();
  if (one.getAttribute("aria-roledescription") !== "line mark") return [box.x + box.width / 2, box.y + box.height / 2];
  const at = one.getPointAtLength(one.getTotalLength() * 0.6).matrixTransform(one.getScreenCTM());
  return [at.x, at.y];
}"""


def press_mark(one: Person, chart: Locator, kind: str) -> None:
    mark = chart.locator(f".role-mark :is(path, line)[aria-roledescription='{kind}']").first
    mark.scroll_into_view_if_needed()
    one.page.mouse.click(*mark.evaluate(MIDDLE))
    one.settle()


@pytest.mark.parametrize(
    ("path", "chart", "kind", "leads"),
    [
        ("/?capture=kafka_stale_commit", "Errors and requests", "rect mark", "/exchanges.*between=.*status="),
        ("/kafka-apis?capture=kafka_stale_commit", "How many exchanges", "rect mark", "/exchanges.*between=.*took="),
        ("/kafka-apis?capture=kafka_stale_commit", "Errors and missing", "rect mark", "/exchanges.*protocol_of=kafka"),
        ("/kafka-groups?capture=kafka_stale_commit", "Commits of one", "point", "partition=payments"),
        ("/kafka-groups?capture=kafka_stale_commit", "Owner of each", "bar", "/clients.*who=ledger-"),
        ("/kafka-groups?capture=kafka_stale_commit", "Lag of partitions", "line mark", "partition=payments"),
        ("/kafka-topics?capture=kafka_stale_commit", "Records or bytes", "rect mark", "topic="),
        ("/mqtt-clients?capture=mqtt_takeover_loop", "Connections of MQTT", "bar", "/connections.*flow="),
        ("/mqtt-clients?capture=mqtt_takeover_loop", "Connections of MQTT", "tick", "/connections.*flow="),
        ("/kafka-apis?capture=kafka_stale_commit", "Percentiles", "rule mark", "/exchanges.*took=.*-&waits=no"),
        ("/mqtt-topics?capture=mqtt_faults", "MQTT messages", "rect mark", "between=.*way="),
        ("/mqtt-deliveries?capture=mqtt_healthy", "Latency from", "rect mark", "below=deliveries.*took="),
        ("/mongo-shapes?capture=mongo_shapes_and_errors", "Query shapes by", "bar", "shape="),
        ("/mongo-shapes?capture=mongo_shapes_and_errors", "Query shapes over", "rule mark", "between=.*shape="),
        ("/mongo-commands?capture=mongo_shapes_and_errors", "MongoDB commands", "rect mark", "/exchanges.*operation="),
        ("/mongo-commands?capture=mongo_shapes_and_errors", "Latency of MongoDB", "rect mark", "/exchanges.*took="),
    ],
)
def test_a_mark_leads_on(somebody: Person, path: str, chart: str, kind: str, leads: str) -> None:
    somebody.go(path)
    before = somebody.page.url
    drawn = somebody.page.locator(f"[data-testid=stVegaLiteChart][aria-label^='{chart}']").first
    press_mark(somebody, drawn, kind)
    somebody.page.wait_for_url(re.compile(leads), timeout=LATE_MS)
    assert led_on(somebody, before) == ""
    somebody.page.go_back()
    somebody.settle()
    for _ in range(3):
        if somebody.page.url == before:
            break
        somebody.page.go_back()
        somebody.settle()
    assert somebody.page.url == before, "the press is not told again when one comes back"


@pytest.mark.parametrize("chart", ["Exchanges per second", "Latency on"])
def test_a_mark_of_a_finding_without_a_partition_lists_its_connections(somebody: Person, chart: str) -> None:
    """In the whole time, which the chart shows, whatever time is selected."""
    somebody.go("/?capture=mqtt_takeover_loop")
    somebody.click(DETAILS)
    drawn = somebody.page.locator(f"[data-testid=stVegaLiteChart][aria-label^='{chart}']").first
    before = somebody.page.url
    press_mark(somebody, drawn, "rect mark")
    somebody.page.wait_for_url(re.compile("/exchanges.*between=.*part_of=finding"), timeout=LATE_MS)
    assert led_on(somebody, before) == ""
    assert somebody.tables().first.locator("tbody tr").count() > 0
