"""Opens the dashboard without a browser: Streamlit's AppTest runs the real frame over kept tables of a capture."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from tests.conftest import ROOT
from wirewitness.app.dashboard.jobs import key_of
from wirewitness.app.dashboard.offers import Offer, samples
from wirewitness.app.dashboard.worker import keep_tables

SCRIPT = ROOT / "app" / "dashboard" / "streamlit_app.py"
# A page takes a second; on a machine that is busy with other things a minute is not enough.
TIMEOUT_S = 600


def sample(name: str) -> Offer:
    """The sample capture of that name."""
    return next(offer for offer in samples() if offer.id == name)


def kept(offer: Offer) -> Path:
    """Its tables, made in this process."""
    return keep_tables(list(offer.paths), {}, key_of(offer.paths, {}))


def opened(capture: str, page: str = "", values: Mapping[str, str] | None = None) -> AppTest:
    """The page as a session sees it that begins with this address."""
    app = AppTest.from_file(str(SCRIPT), default_timeout=TIMEOUT_S)
    app.query_params["capture"] = capture
    app.run()
    return on_page(app, page, values) if page else app


def links(part: AppTest | Block) -> list[Any]:
    """What the browser is told of each link to a page."""
    return [one.proto for one in part.get("page_link")]


def on_page(app: AppTest, page: str, values: Mapping[str, str] | None = None) -> AppTest:
    """The same session after a click in the sidebar; with `values` in the address besides."""
    return _follow(app, next(link for link in links(app.sidebar) if link.page == page), values or {})


def follow(app: AppTest, label: str) -> AppTest:
    """The same session after a click on the first link whose label begins so."""
    return _follow(app, next(link for link in links(app) if link.label.startswith(label)), {})


def _follow(app: AppTest, link: Any, values: Mapping[str, str]) -> AppTest:
    app._page_hash = link.page_script_hash
    app.query_params.clear()
    app.query_params.update({**dict(parse_qsl(link.query_string)), **values})
    return app.run()


def tables(part: AppTest | Block) -> list[list[dict[str, str]]]:
    """The rows of each table whose rows open: title of a column -> text of the cell."""
    told = (json.loads(one.proto.json) for one in part.get("bidi_component"))
    return [
        [dict(zip((head["title"] for head in one["columns"]), row["cells"], strict=True)) for row in one["rows"]]
        for one in told
        if "columns" in one and "rows" in one
    ]


def shown(app: AppTest) -> str:
    """All text of a page that AppTest knows of, markup included."""
    parts: list[str] = [element.body for element in app.get("html")]
    readers: tuple[Callable[[], list[str]], ...] = (
        partial(lambda: [element.value for element in app.subheader]),
        partial(lambda: [element.value for element in app.code]),
        partial(lambda: [element.value for element in app.caption]),
        partial(lambda: [element.label for element in app.button]),
        partial(lambda: [str(row) for rows in tables(app) for row in rows]),
    )
    for read in readers:
        parts += read()
    return "\n".join(parts)
