"""The tasks of docs/dashboard-tasks.md, done by a person with a real browser, in no more clicks than they allow."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support import forty_groups
from tests.support.browser import Person, dashboard, open_sample, person
from wirewitness.app.dashboard.charts.theme import BAD, PALETTE

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

DETAILS = re.compile("^Details of 1,")
STALE = "/?capture=kafka_stale_commit"


def colours_of(chart: Locator) -> dict[str, int]:
    """How many pixels of a chart have which of the colours that mean something."""
    picture = Image.open(io.BytesIO(chart.screenshot())).convert("RGB")
    counts = {f"#{r:02x}{g:02x}{b:02x}": number for number, (r, g, b) in picture.getcolors(1 << 24) or []}
    return {colour: near(colour, counts) for colour in (*PALETTE[:3], BAD)}


def near(colour: str, counts: dict[str, int]) -> int:
    """Pixels of that colour; points are drawn a little transparent."""
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return sum(
        number
        for found, number in counts.items()
        if all(abs(int(found[i : i + 2], 16) - wanted[i // 2]) <= 14 for i in (1, 3, 5))
    )


def evidence(one: Person) -> Locator:
    """The exchanges behind a finding; above them stands who it was."""
    return one.page.get_by_role("grid", name="exchanges")


def test_name_the_client_and_take_its_evidence_along(somebody: Person, tmp_path: Path) -> None:
    somebody.go("/")
    open_sample(somebody, "kafka_stale_commit.pcapng")
    somebody.click(DETAILS)
    text = somebody.reads()
    assert "client ledger-a at 10.77.0.12" in text
    with somebody.page.expect_download() as saved:
        somebody.click("Download evidence")
    target = tmp_path / "evidence.pcapng"
    saved.value.save_as(target)
    assert somebody.clicks <= 5
    finding = saved.value.suggested_filename.removesuffix(".pcapng").partition("-")[2]
    same = tmp_path / "extracted.pcapng"
    sample = SAMPLES / "kafka_stale_commit.pcapng"
    assert run("extract", sample, "--finding", finding, "-o", same, cwd=tmp_path).returncode == 0
    assert target.read_bytes() == same.read_bytes()


def test_see_the_fault_without_a_word(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.click("Groups")
    found = colours_of(somebody.charts().first)
    assert somebody.clicks <= 2
    assert min(found.values()) > 100, found
    text = somebody.reads()
    assert "not by the owner" in text
    assert "messages of lag" in text


def test_a_healthy_group_has_no_red(somebody: Person) -> None:
    somebody.go("/kafka-groups?capture=kafka_healthy")
    assert colours_of(somebody.charts().first)[BAD] == 0


@pytest.mark.parametrize(
    ("page", "words"),
    [("APIs", ["Produce", "OffsetCommit", "MEMBER_ID_REQUIRED"]), ("Clients", ["sarama", "v1.61.1", "ledger-a"])],
)
def test_kafka_views_answer(somebody: Person, page: str, words: list[str]) -> None:
    somebody.go(STALE)
    somebody.click(page)
    text = somebody.reads()
    assert [word for word in words if word not in text] == []
    assert somebody.clicks <= 2


@pytest.mark.parametrize(
    ("sample", "clicks", "words"),
    [
        ("mqtt_takeover_loop.pcapng", [DETAILS], ["MQT102"]),
        ("mongo_shapes_and_errors.pcapng", ["Query shapes"], ["find"]),
    ],
)
def test_other_protocols_answer(
    somebody: Person, sample: str, clicks: list[str | re.Pattern[str]], words: list[str]
) -> None:
    somebody.go("/")
    open_sample(somebody, sample)
    for name in clicks:
        somebody.click(name)
    text = somebody.reads()
    assert [word for word in words if word not in text] == []
    assert somebody.clicks <= 3


def test_read_a_request_and_its_answer(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.click("Exchanges")
    somebody.press_row(somebody.tables().first)
    assert somebody.clicks <= 3
    assert somebody.page.get_by_text("correlation_id").count() >= 2


def test_the_bytes_of_one_stale_commit(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.click(DETAILS)
    somebody.clicks = 0
    somebody.press_row(evidence(somebody))
    assert somebody.clicks <= 2
    assert somebody.page.get_by_text("correlation_id").count() >= 2
    assert somebody.page.get_by_text("OffsetCommit v7 request").count() == 1


def test_all_errors_of_a_client(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.press_row(somebody.tables().first)
    assert somebody.clicks <= 2
    assert "/exchanges?" in somebody.page.url
    assert "status=error" in somebody.page.url
    assert "client=labels-a" in somebody.page.url
    assert "status error" in somebody.reads()


def test_the_worst_of_forty_groups_is_first(browser: Browser, tmp_path: Path) -> None:
    """Its commits stand below the list; axes say the days."""
    capture = forty_groups.write(tmp_path / "days.pcap")
    with dashboard(tmp_path, [capture]) as served, person(browser, served) as one:
        one.go("/")
        one.click("Groups")
        assert one.clicks <= 1
        assert one.page.locator("h2").nth(1).inner_text() == forty_groups.name_of(forty_groups.TWO_WRITERS)
        assert "40 groups" in one.reads()
        chart = one.page.locator("[data-testid=stVegaLiteChart][aria-label^='Lag of partitions']")
        said = chart.locator(".role-axis-label text, .role-axis-title text").all_text_contents()
        assert any("Nov" in text and ":" in text for text in said), said
        assert "18 Nov to 21 Nov 2026, UTC" in said


def test_go_to_a_packet(somebody: Person) -> None:
    somebody.go("/findings?capture=kafka_stale_commit")
    box = somebody.page.get_by_label("Go to packet")
    somebody.click(box)
    box.fill("7401")
    box.press("Enter")
    somebody.page.wait_for_url("**/exchanges?*")
    somebody.settle()
    assert somebody.clicks <= 1
    assert somebody.page.get_by_text("7401 of kafka_stale_commit.pcapng").count() == 1


def test_who_loops_is_seen_from_the_lanes(somebody: Person) -> None:
    somebody.go("/?capture=mqtt_takeover_loop")
    somebody.click("Clients")
    assert somebody.clicks <= 1
    assert "meter-17: taken over 13 times, by 10.77.0.11 and 10.77.0.12." in somebody.reads()


def test_lag_in_messages_and_in_time(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.click("Groups")
    assert "Lag" in somebody.reads()
    somebody.click(somebody.page.get_by_role("radio", name="Time").or_(somebody.page.get_by_text("Time", exact=True)))
    assert somebody.clicks <= 2
    assert "How long the record at the committed offset had been in the log" in somebody.reads()


def test_what_differs_between_before_and_after(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.click("Compare")
    assert somebody.clicks <= 1
    text = somebody.reads()
    assert "The largest and surest first." in text
    assert "offset-regression" in text


def test_what_differs_between_two_captures(browser: Browser, tmp_path: Path) -> None:
    """A press on a figure of B opens what is behind it, there; the way back is that of the browser."""
    captures = [SAMPLES / "kafka_healthy.pcapng", SAMPLES / "kafka_stale_commit.pcapng"]
    with dashboard(tmp_path, captures, "--compare") as served, person(browser, served) as one:
        one.go("/")
        text = one.reads()
        assert "kafka_healthy.pcapng: " in text
        assert text.index("KAF103 offset-regression") < text.index("EndTxn per second")
        first = one.page.url
        one.press_row(one.tables().first, column=3)
        assert one.clicks <= 1
        assert "/findings?" in one.page.url
        assert "rule=KAF103" in one.page.url
        assert "payments-ledger" in one.reads()
        for _ in range(2):  # as from every row that opens another page
            one.page.go_back()
            one.settle()
        assert one.page.url == first
        assert one.errors == []


def a_point(chart: Locator, colour: str) -> tuple[float, float]:
    """The middle of a mark of that colour: all around it has the colour too."""
    picture = Image.open(io.BytesIO(chart.screenshot())).convert("RGB")
    wanted = tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
    for y in range(60, picture.height - 60):  # below the legend
        for x in range(60, picture.width - 60):
            around = [picture.getpixel((x + dx, y + dy)) for dx in (-2, 0, 2) for dy in (-2, 0, 2)]
            if all(abs(a - b) <= 20 for found in around for a, b in zip(found, wanted, strict=True)):
                return x, y
    raise AssertionError(f"no mark of {colour}")


def test_a_point_of_a_findings_chart_opens_its_commit_in_place(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.click(DETAILS)
    somebody.clicks = 0
    chart = somebody.charts().first
    chart.scroll_into_view_if_needed()
    somebody.settle()
    somebody.press_at(chart, *a_point(chart, PALETTE[0]))
    assert somebody.clicks == 1
    assert "commit=" in somebody.page.url
    somebody.page.get_by_text("OffsetCommit v7 request").wait_for()
    # A row of the evidence takes its place, and not the other way round.
    somebody.press_row(evidence(somebody))
    assert "commit=" not in somebody.page.url
    assert "message=" in somebody.page.url
    somebody.press_at(chart, *a_point(chart, PALETTE[0]))
    assert "commit=" in somebody.page.url
    somebody.click("Close the commit")
    assert "commit=" not in somebody.page.url
    assert somebody.page.get_by_text("Press a point to see the commit").count() == 1


def test_a_value_of_an_open_message_filters_by_it(somebody: Person) -> None:
    somebody.go(f"/exchanges{STALE[1:]}&status=error")
    somebody.press_row(somebody.tables().first)
    somebody.clicks = 0
    somebody.click(somebody.page.get_by_role("button", name=re.compile("^client labels-a@10.77.0.15")))
    assert somebody.clicks == 1
    assert "client=labels-a%4010.77.0.15" in somebody.page.url
    assert "status=error" in somebody.page.url
    assert "client labels-a" in somebody.reads()
    somebody.click("All about this client")
    assert "labels-a at 10.77.0.15" in somebody.reads()
    somebody.go("/kafka-brokers?capture=kafka_admin")
    somebody.press_row(somebody.tables().last)
    somebody.click(somebody.page.get_by_role("button", name=re.compile("^operation ")))
    assert "/exchanges?" in somebody.page.url
    assert "operation=" in somebody.page.url


def test_who_talks_to_whom_opens_what_they_said(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.press_row(somebody.tables().last)
    assert somebody.clicks == 1
    assert re.search(r"/exchanges\?.*client=%4010\.77\.0\.\d+&server=10\.77\.0\.2%3A9092", somebody.page.url)
    assert "address 10.77.0." in somebody.reads()
