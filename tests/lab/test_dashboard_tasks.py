"""The tasks of docs/dashboard-tasks.md, done by a person with a real browser, in no more clicks than they allow."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator

from app.dashboard.charts.theme import BAD, PALETTE
from tests.app.captures import write_capture
from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.browser import Person, chromium, dashboard, person

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

DETAILS = re.compile("^Details of 1,")
STALE = "/?capture=kafka_stale_commit"
HOSTILE = "<img src=x onerror=alert(1)> `b` **c** $x^2$ :smile: [l](http://e.example)"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dashboard(tmp_path_factory.mktemp("dashboard")) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def somebody(browser: Browser, address: str) -> Iterator[Person]:
    with person(browser, address) as one:
        yield one
        assert one.strangers == []
        assert one.errors == []


def open_sample(one: Person, file: str) -> None:
    row = one.page.locator("[data-testid=stHorizontalBlock]").filter(has_text=file).last
    one.click(row.get_by_role("link", name="Open"))


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
    assert "messages behind" in text


def test_a_healthy_group_has_no_red(somebody: Person) -> None:
    somebody.go("/kafka-groups?capture=kafka_healthy")
    assert colours_of(somebody.charts().first)[BAD] == 0


def test_copy_a_filter_for_wireshark(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.click(DETAILS)
    code = somebody.page.locator("[data-testid=stCode]").filter(has_text="frame.number in {")
    code.first.hover()
    assert somebody.clicks <= 2
    assert code.first.get_by_label("Copy to clipboard").count() == 1


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
    somebody.press_row(somebody.tables().first)
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


def test_the_worst_group_is_first(somebody: Person) -> None:
    somebody.go(STALE)
    somebody.click("Groups")
    assert somebody.clicks <= 1
    assert somebody.page.locator("h2").nth(1).inner_text() == "payments-ledger"


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
    assert "How far behind" in somebody.reads()
    somebody.click(somebody.page.get_by_role("radio", name="Time").or_(somebody.page.get_by_text("Time", exact=True)))
    assert somebody.clicks <= 2
    assert "How long the record at the stored offset had been in the log" in somebody.reads()


def test_a_press_on_a_head_orders_all_rows(somebody: Person) -> None:
    """3,324 exchanges, of which the browser has 100; the list begins upwards."""
    somebody.go("/exchanges?capture=kafka_stale_commit")
    for downwards in (True, False):
        somebody.click(somebody.tables().first.get_by_role("columnheader", name="Time"))
        assert ("exchanges.by=-ts" in somebody.page.url) is downwards


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
    somebody.press_row(somebody.tables().first)
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
