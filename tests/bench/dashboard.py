"""The dashboard on a large generated capture, and on a dataset of three days: what the browser itself measures.

    python -m tests.bench.dashboard                  a million messages and more; minutes, of which analysing takes most
    python -m tests.bench.dashboard --packets 50000  a smoke run
    python -m tests.bench.dashboard --keep FOLDER    keeps captures and tables there, and takes those that are there
    python -m tests.bench.dashboard --only days      the capture or the days alone

For each page and each interaction: the time from the press (or the address) to the last change in the page, by the
browser's clock; the processor time of the server meanwhile, which other work on the machine changes less; and the
bytes that the server sent for it, Streamlit's own scripts left out. Standard output gets Markdown. A missed aim is
shown, not hidden, and does not change the exit status.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, WebSocket

from tests.bench.programs import WIREWITNESS
from tests.support import forty_groups
from tests.support.browser import Person, chromium, dashboard, person
from tests.support.replay import replay
from wirewitness.app.dashboard.pages import PAGES

# Five packets carry four messages: the others only confirm.
PACKETS = 1_260_000
VIEW_S, INTERACTION_S, VIEW_MB = 3.0, 1.0, 5.0
ANALYSED_MS = 1_800_000
# Notes when the page changed last, on the clock of the page.
_WATCH = """
window.__changed = 0;
new MutationObserver(() => { window.__changed = performance.now(); })
  .observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
"""


class Measured(NamedTuple):
    """One page or interaction. seconds: until the page stood still; cpu_s: of the server; megabytes: sent for it."""

    what: str
    seconds: float
    cpu_s: float
    megabytes: float
    aim_s: float


class Meter:
    """Counts what the server sends over the page's connections, and what it computes."""

    def __init__(self, page: Page) -> None:
        self.bytes = 0
        self._server = server_process()
        page.on("websocket", self._listen)
        page.add_init_script(_WATCH)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._count)

    def _count(self, frame: str | bytes) -> None:
        self.bytes += len(frame)

    def cpu_s(self) -> float:
        """Processor time of the server so far."""
        fields = Path(f"/proc/{self._server}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def server_process() -> int:
    """The dashboard that this process started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return next(int(one) for one in children if b"\0dashboard\0" in Path(f"/proc/{one}/cmdline").read_bytes())


def measured(one: Person, meter: Meter, what: str, act: Callable[[], object], aim_s: float) -> Measured:
    """What `act` takes. A new address starts the clock anew, so its times count from there."""
    before, cpu_s = meter.bytes, meter.cpu_s()
    clock, origin = one.page.evaluate("[performance.now(), performance.timeOrigin]")
    act()
    one.settle()
    changed, later_origin = one.page.evaluate("[window.__changed, performance.timeOrigin]")
    start = clock if origin == later_origin else 0.0
    sent = (meter.bytes - before) / 1e6
    return Measured(what, max(changed - start, 0.0) / 1000, meter.cpu_s() - cpu_s, sent, aim_s)


def measure(browser: Browser, address: str) -> list[Measured]:
    """First view, every page, and the interactions with what is most to compute."""
    found: list[Measured] = []
    with person(browser, address) as one:
        meter = Meter(one.page)
        found.append(measured(one, meter, "first view", lambda: one.go("/"), VIEW_S))
        names = one.page.locator("[data-testid=stSidebar] .stPageLink a").all_inner_texts()
        titles = {page.title for page in PAGES}
        links = [(place, name.split("\n")[-1]) for place, name in enumerate(names)]
        for place, name in links[1:]:
            link = one.page.locator("[data-testid=stSidebar] .stPageLink a").nth(place)
            kind = "page" if name in titles else "link"
            found.append(measured(one, meter, f"{kind} {name}", link.click, VIEW_S))
        found += interactions(one, meter)
    return found


def interactions(one: Person, meter: Meter) -> list[Measured]:
    """What one does with the table of all exchanges, and with the time range."""
    page = one.page
    one.go("/exchanges")
    search = page.get_by_label("Client", exact=True)
    head = one.tables().first.get_by_role("columnheader", name="Latency ms")

    def typed() -> None:
        search.fill("1")
        search.press("Enter")

    def sorted_by_latency() -> None:
        head.click()

    steps: list[tuple[str, Callable[[], object]]] = [
        ("exchanges: next page", lambda: page.get_by_role("button", name="Next rows").click()),
        ("exchanges: filter by client", typed),
        ("exchanges: order by latency", sorted_by_latency),
        ("time range, exchanges", lambda: _narrow(one)),
    ]
    found = [measured(one, meter, what, act, INTERACTION_S) for what, act in steps]
    one.go("/")
    found.append(measured(one, meter, "time range, overview", lambda: _narrow(one), INTERACTION_S))
    return found


def _narrow(one: Person) -> None:
    slider = one.page.locator("[data-testid=stSidebar]").get_by_role("slider").first
    before = one.page.url
    slider.focus()
    one.page.keyboard.press("ArrowRight")
    one.page.wait_for_function("before => location.href !== before", arg=before)


class Subject(NamedTuple):
    """What is looked at: in words, and where it is."""

    about: str
    path: Path


def large(kept: Path, packets: int) -> Subject:
    """A capture with more messages than anybody reads."""
    capture = kept / f"generated-{packets}.pcap"
    if not capture.exists():
        replay(capture, "small", packets=packets)
    return Subject(f"{packets:,} packets (generated)", capture)


def days(kept: Path, _: int) -> Subject:
    """Forty groups over three days, as a dataset."""
    capture, dataset = kept / "forty-groups.pcap", kept / "three-days"
    if not dataset.exists():
        forty_groups.write(capture)
        command = [*WIREWITNESS, "archive", str(capture), "--output", str(dataset), "--master", "local[1]"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Subject("dataset of forty groups over three days", dataset)


SUBJECTS: dict[str, Callable[[Path, int], Subject]] = {"capture": large, "days": days}


def report(found: list[Measured], about: str, analysed_s: float) -> str:
    """Markdown."""
    lines = [
        f"Dashboard, {about}; analysed and first shown after {analysed_s:.0f} s.",
        f"Aims: a view within {VIEW_S:.0f} s, an interaction within {INTERACTION_S:.0f} s, {VIEW_MB:.0f} MB for each.",
        "",
        "| what | s | server CPU s | MB | |",
        "|---|---:|---:|---:|---|",
    ]
    for one in found:
        missed = [name for name, is_missed in (("slow", one.seconds > one.aim_s), ("large", one.megabytes > VIEW_MB))
                  if is_missed]  # fmt: skip
        figures = " | ".join(f"{figure:.2f}" for figure in (one.seconds, one.cpu_s, one.megabytes))
        lines.append(f"| {one.what} | {figures} | {', '.join(missed)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.dashboard", description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int, default=PACKETS, help="packets of the generated capture")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where captures and tables stay")
    parser.add_argument("--only", choices=SUBJECTS, help="measure this alone")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        kept = args.keep or Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        for name, make in SUBJECTS.items():
            if args.only in (None, name):
                subject = make(kept, args.packets)
                print(look_at(kept, subject), flush=True)
    return 0


def look_at(kept: Path, subject: Subject) -> str:
    """The report about it. Every page is seen for the first time by this server."""
    with dashboard(kept, [subject.path]) as address, chromium() as browser:
        started = time.monotonic()
        with person(browser, address) as first:
            first.page.goto(address)
            first.page.get_by_text("Who talks to whom").wait_for(timeout=ANALYSED_MS)
        analysed_s = time.monotonic() - started
        return report(measure(browser, address), subject.about, analysed_s)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
