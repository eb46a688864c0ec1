"""Pictures of the dashboard on the sample captures, by a real browser.

    python -m tests.lab.screenshots                  the ones that the README shows, into docs/images
    python -m tests.lab.screenshots --all FOLDER     every page on a sample of its protocol, light and dark, at 1440 and
                                                     900 pixels, to look at
    python -m tests.lab.screenshots --all FOLDER --of CAPTURE     the pages of one capture, dataset or live capture

In: the samples, or what is named. Out: PNG files; those of the README with few colours, so that they stay small.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Browser

from tests.support.browser import Person, chromium, dashboard, person
from wirewitness.app.dashboard.pages import PAGES

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
COLOURS = 128
DETAILS = re.compile("^Details of 1,")
# The sample on which a protocol's pages show most.
SAMPLES = {None: "kafka_stale_commit", "kafka": "kafka_stale_commit", "mqtt": "mqtt_faults",
           "mongo": "mongo_shapes_and_errors"}  # fmt: skip


class Picture(NamedTuple):
    """A page to show: name of the file, address, button to press before, whether the page is dark, pixels."""

    name: str
    path: str
    press: str | re.Pattern[str] = ""
    dark: bool = False
    width: int = 1280


WIDTHS = (1440, 900)
SHOWN = (
    Picture("dashboard-groups", "/kafka-groups?capture=kafka_stale_commit"),
    Picture("dashboard-finding", "/?capture=kafka_stale_commit", DETAILS, dark=True),
)


def every_page(*, given: bool) -> list[Picture]:
    """All pages, light and dark, in all widths. given: of the capture that the dashboard was started with."""
    paths = {page: f"/{'' if page is PAGES[0] else page.name}" for page in PAGES}
    found = [Picture(page.name, path if given else f"{path}?capture={SAMPLES[page.needs]}")
             for page, path in paths.items()]  # fmt: skip
    if not given:
        found += [Picture("start", "/"), Picture("finding", f"/?capture={SAMPLES[None]}", DETAILS)]
    return [
        picture._replace(name=f"{picture.name}-{width}{'-dark' if dark else ''}", width=width, dark=dark)
        for picture in found for width in WIDTHS for dark in (False, True)
    ]  # fmt: skip


def take(browser: Browser, address: str, picture: Picture, folder: Path, height: int) -> Path:
    """The file of the picture."""
    with person(browser, address, dark=picture.dark) as one:
        one.page.set_viewport_size({"width": picture.width, "height": height})
        one.go(picture.path)
        if picture.press:
            one.click(picture.press)
        one.settle(1.0)
        return _write(one, folder / f"{picture.name}.png")


def _write(one: Person, path: Path) -> Path:
    """Pictures to look at have the colours of the page, those of the README few."""
    image = Image.open(io.BytesIO(one.page.screenshot())).convert("RGB")
    if path.parent == IMAGES:
        image = image.quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    return path


def main(arguments: list[str]) -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.screenshots", description=__doc__.splitlines()[0])
    parser.add_argument("--all", metavar="FOLDER", type=Path, help="every page, light and dark, into this folder")
    parser.add_argument("--of", metavar="CAPTURE", help="its pages in place of those of the samples")
    parser.add_argument("--height", type=int, default=800, help="pixels; a page is cut off there")
    args = parser.parse_args(arguments)
    folder = args.all or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    given = [args.of] if args.of else []
    with tempfile.TemporaryDirectory() as kept, dashboard(Path(kept), given) as address, chromium() as browser:
        for picture in every_page(given=bool(given)) if args.all else SHOWN:
            path = take(browser, address, picture, folder, args.height)
            print(f"{path}  {path.stat().st_size:,} bytes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
