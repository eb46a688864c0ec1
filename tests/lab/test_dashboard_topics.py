"""The tree of MQTT topics in a real browser: with the mouse, with the keyboard, on trees that somebody made to hurt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator

from tests.support.browser import Person, chromium, dashboard, person
from tests.support.mqtt_encode import connack, connect, publish
from tests.support.packets import pcap
from tests.support.wire import Talk

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

WIDE, DEEP = 3_000, 400
HOSTILE = "<img src=x onerror=alert(1)>/\x1b[2J/\u202e"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("dashboard")
    capture = folder / "topics.pcap"
    write_topics(capture)
    with dashboard(folder, [capture]) as served:
        yield served


@pytest.fixture
def somebody(browser: Browser, address: str) -> Iterator[Person]:
    with person(browser, address) as one:
        yield one
        assert one.strangers == []
        assert one.errors == []


def write_topics(path: Path) -> None:
    """A wide branch, a deep one, one that forks at every level, and a name that would like to be markup."""
    names = [f"wide/{number}/x" for number in range(WIDE)]
    names += ["deep/" + "/".join("d" * DEEP), HOSTILE, "/", "//"]
    names += ["/".join(["fork"] * level) for level in range(1, 60)]
    talk = Talk(server=("10.0.0.1", 1883)).handshake()
    hello = connect(4, "maker")
    talk.send(True, 0, hello).send(False, 0, connack())
    data = b"".join(publish(name, str(place).encode()) for place, name in enumerate(names))
    for first in range(0, len(data), 1400):
        talk.send(True, len(hello) + first, data[first : first + 1400])
    path.write_bytes(pcap(talk.packets))


def row(one: Person, name: str) -> Locator:
    return one.page.get_by_role("treegrid").get_by_role("row").filter(has=one.page.get_by_text(name, exact=True)).first


def test_a_branch_opens_and_is_chosen_by_mouse_and_keyboard(somebody: Person) -> None:
    somebody.go("/mqtt-topics")
    wide = row(somebody, "wide")
    assert wide.get_attribute("aria-expanded") == "false"
    wide.focus()
    somebody.page.keyboard.press("ArrowRight")
    somebody.settle()
    assert row(somebody, "wide").get_attribute("aria-expanded") == "true"
    tree = somebody.page.get_by_role("treegrid").inner_text()
    assert f"{WIDE - 50:,} more in wide/" in tree
    somebody.click(row(somebody, "0/x"))
    assert "under=wide%2F0%2Fx%2F" in somebody.page.url
    assert "wide/0/x/#" in somebody.reads()
    row(somebody, "wide").focus()
    somebody.page.keyboard.press("ArrowLeft")
    somebody.settle()
    assert row(somebody, "wide").get_attribute("aria-expanded") == "false"


def test_names_are_text_and_deep_branches_one_row(somebody: Person) -> None:
    somebody.go("/mqtt-topics")
    tree = somebody.page.get_by_role("treegrid")
    assert "<img src=x onerror=alert(1)>/\\x1b[2J/\\u202e" in tree.inner_text()
    assert row(somebody, "deep/" + "/".join("d" * DEEP)[: 300 - 5] + "..").count() == 1


def test_a_search_brings_up_what_the_tree_leaves_out(somebody: Person) -> None:
    somebody.go("/mqtt-topics")
    somebody.page.get_by_label("Topics with").fill("e/2777")
    somebody.page.keyboard.press("Enter")
    somebody.settle()
    assert "wide/2777/x" in somebody.page.get_by_role("treegrid").inner_text()
