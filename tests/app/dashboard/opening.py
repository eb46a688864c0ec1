"""Opens the dashboard without a browser: Streamlit's AppTest runs the real frame over kept tables of a capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from streamlit.testing.v1 import AppTest

from app.dashboard.jobs import key_of
from app.dashboard.offers import Offer, samples
from app.dashboard.worker import keep_tables
from tests.app.program import ROOT

SCRIPT = ROOT / "app" / "dashboard" / "streamlit_app.py"
TIMEOUT_S = 60


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
    for name, value in (values or {}).items():
        app.query_params[name] = value
    app.run()
    return on_page(app, page) if page else app


def on_page(app: AppTest, page: str) -> AppTest:
    """The same session after a click in the navigation."""
    hashes = {info["url_pathname"]: key for key, info in app._registered_pages.items()}
    app._page_hash = hashes[page]
    return app.run()


def shown(app: AppTest) -> str:
    """All text of a page that AppTest knows of, markup included."""
    parts: list[str] = [element.body for element in app.get("html")]
    readers: tuple[Callable[[], list[str]], ...] = (
        partial(lambda: [element.value for element in app.subheader]),
        partial(lambda: [element.value for element in app.code]),
        partial(lambda: [element.value for element in app.caption]),
        partial(lambda: [element.label for element in app.button]),
        partial(lambda: [element.value.to_csv() for element in app.dataframe]),
    )
    for read in readers:
        parts += read()
    return "\n".join(parts)
