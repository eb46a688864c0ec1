"""Pictures of the dashboard on the sample captures, by a real browser.

    python -m tests.lab.screenshots                  the ones that the README shows, into docs/images
    python -m tests.lab.screenshots --all FOLDER     every page on a sample of its protocol, light and dark, to look at

In: the samples. Out: PNG files of 1280 x 800, with few colours so that they stay small.
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

from app.dashboard.pages import PAGES
from tests.support.browser import Person, chromium, dashboard, person

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
COLOURS = 128
DETAILS = re.compile("^Details of 1,")
# The sample on which a protocol's pages show most.
SAMPLES = {None: "kafka_stale_commit", "kafka": "kafka_stale_commit", "mqtt": "mqtt_faults",
           "mongo": "mongo_shapes_and_errors"}  # fmt: skip


class Picture(NamedTuple):
    """A page to show: name of the file, address, button to press before, whether the page is dark."""

    name: str
    path: str
    press: str | re.Pattern[str] = ""
    dark: bool = False


SHOWN = (
    Picture("dashboard-groups", "/kafka-groups?capture=kafka_stale_commit"),
    Picture("dashboard-finding", "/?capture=kafka_stale_commit", DETAILS, dark=True),
)


def every_page() -> list[Picture]:
    """All pages, light and dark, and the page before there is a capture."""
    found = [Picture("start", "/")]
    for page in PAGES:
        path = f"/{'' if page is PAGES[0] else page.name}?capture={SAMPLES[page.needs]}"
        found.append(Picture(page.name, path))
    found.append(Picture("finding", f"/?capture={SAMPLES[None]}", DETAILS))
    return [one for picture in found for one in (picture, picture._replace(name=f"{picture.name}-dark", dark=True))]


def take(browser: Browser, address: str, picture: Picture, folder: Path, height: int) -> Path:
    """The file of the picture."""
    with person(browser, address, dark=picture.dark) as one:
        one.page.set_viewport_size({"width": 1280, "height": height})
        one.go(picture.path)
        if picture.press:
            one.click(picture.press)
        one.settle(1.0)
        return _write(one, folder / f"{picture.name}.png")


def _write(one: Person, path: Path) -> Path:
    image = Image.open(io.BytesIO(one.page.screenshot())).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def main(arguments: list[str]) -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.screenshots", description=__doc__.splitlines()[0])
    parser.add_argument("--all", metavar="FOLDER", type=Path, help="every page, light and dark, into this folder")
    parser.add_argument("--height", type=int, default=800, help="pixels; a page is cut off there")
    args = parser.parse_args(arguments)
    folder = args.all or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as kept, dashboard(Path(kept)) as address, chromium() as browser:
        for picture in every_page() if args.all else SHOWN:
            path = take(browser, address, picture, folder, args.height)
            print(f"{path}  {path.stat().st_size:,} bytes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
