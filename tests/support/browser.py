"""A dashboard of our own and a person with a browser before it: real server, real Chromium, clicks counted."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, ViewportSize, sync_playwright

from tests.app.program import COMMAND, environment
from tests.conftest import require_program

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
    "--disable-background-networking", "--disable-sync",
)  # fmt: skip
SIZE: ViewportSize = {"width": 1280, "height": 800}
PATIENCE_S = 90.0
# Streamlit tells in the page whether its script is at work; a page of ours that waits says so in words.
_STATE = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  if (!app || app.getAttribute('data-test-script-state') !== 'notRunning') return 'working';
  if (document.querySelector('[data-testid=stSkeleton], [data-testid=stSpinner]')) return 'working';
  return document.body.innerText.includes('Analysing ') ? 'working' : 'settled';
}"""


class Person:
    """Somebody at the dashboard. clicks: presses of the mouse so far. strangers: requests to other machines."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.clicks = 0
        self.strangers: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self._seen(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _seen(self, url: str) -> None:
        if not url.startswith((self.address, self.address.replace("http", "ws"), "data:", "blob:")):
            self.strangers.append(url)

    def go(self, path: str) -> None:
        """Type an address."""
        self.page.goto(self.address + path)
        self.settle()

    def click(self, target: Locator | str | re.Pattern[str]) -> None:
        """Press the mouse on a thing, or on the first button or link with that name."""
        if not isinstance(target, Locator):
            target = self.page.get_by_role("button", name=target, exact=True).or_(
                self.page.get_by_role("link", name=target, exact=True)
            )
        target.first.scroll_into_view_if_needed()
        target.first.click()
        self.clicks += 1
        self.settle()

    def press_at(self, target: Locator, x: float, y: float) -> None:
        """Press the mouse on a point of a thing."""
        target.scroll_into_view_if_needed()
        target.click(position={"x": x, "y": y})
        self.clicks += 1
        self.settle()

    def settle(self, quiet_s: float = 0.6) -> None:
        """Until nothing moves any more."""
        end = time.monotonic() + PATIENCE_S
        since = None
        while time.monotonic() < end:
            now = time.monotonic()
            if self.page.evaluate(_STATE) != "settled":
                since = None
            elif since is None:
                since = now
            elif now - since > quiet_s:
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"the page at {self.page.url} does not come to rest")

    def reads(self) -> str:
        """The words of the page; tables are read cell by cell."""
        words = self.page.locator("[data-testid=stMain]").inner_text()
        return words + "\n" + "\n".join(self.tables().locator("th, td").all_text_contents())

    def charts(self) -> Locator:
        """The charts of the page."""
        return self.page.locator("[data-testid=stVegaLiteChart]")

    def tables(self) -> Locator:
        """The tables of the page whose rows open."""
        return self.page.locator("[data-testid=stMain] [role=grid]")

    def press_row(self, table: Locator, row: int = 0, column: int = 0) -> None:
        """Press the mouse on a row of a table, counted from 0, in that column."""
        self.click(table.locator("tbody tr").nth(row).locator("td").nth(column))


def open_sample(one: Person, file: str) -> None:
    """Press "Open" beside a sample on the start page."""
    row = one.page.locator("[data-testid=stHorizontalBlock]").filter(has_text=file).last
    one.click(row.get_by_role("link", name="Open"))


@contextmanager
def dashboard(folder: Path, captures: Sequence[str | Path] = (), *options: str) -> Iterator[str]:
    """The address of a dashboard that keeps its cache and state in the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*COMMAND, "dashboard", "--no-browser", "--port", str(port), *map(str, captures), *options]
    env = environment(XDG_CACHE_HOME=str(folder / "cache"), XDG_STATE_HOME=str(folder / "state"))
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=env) as server,
    ):
        try:
            _wait_for(port, server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(30)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for several persons, one after the other or together."""
    program = require_program("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def person(browser: Browser, address: str, *, dark: bool = False) -> Iterator[Person]:
    """Somebody who was never here before; downloads are allowed."""
    context = browser.new_context(viewport=SIZE, color_scheme="dark" if dark else "light", accept_downloads=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    try:
        yield Person(context.new_page(), address)
    finally:
        context.close()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(400):
        if server.poll() is not None:
            raise AssertionError("the dashboard ended at once; see server.log")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the dashboard does not listen")
