"""The frame of the dashboard: which capture, the sidebar, the navigation. Streamlit runs this file for every change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path, PurePath

import streamlit as st

from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.capture import CaptureError
from wirewitness.analyser.tables.queries import QueryError
from wirewitness.app.dashboard import server_state, state
from wirewitness.app.dashboard.jobs import discard
from wirewitness.app.dashboard.landing import show_failed, show_landing, show_reading, tables_of
from wirewitness.app.dashboard.live import follow, live_folder
from wirewitness.app.dashboard.offered import given, offer_of
from wirewitness.app.dashboard.offers import Offer, remember
from wirewitness.app.dashboard.opened import Opened, Selected, TablesDamaged, TablesGone, version_of
from wirewitness.app.dashboard.page_entry import PageEntry
from wirewitness.app.dashboard.pages import PAGES, pages_for
from wirewitness.app.dashboard.sidebar import show_links, show_sidebar
from wirewitness.app.dashboard.text import STYLE, card, empty, heading
from wirewitness.dissectors.registry import SEGMENTS_OF
from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.base.questions.quality import quality

_ICON = Path(__file__).with_name("icon.svg")  # a named icon would be fetched from the internet


def chosen_offer() -> Offer | None:
    """The capture that the URL names, else the first of the command line until it is closed."""
    own = given()
    wanted = state.value("capture")
    if wanted:
        return offer_of(wanted)
    if not own.offers or st.session_state.get("ww_closed"):
        return None
    if own.compare and not state.value("other"):
        state.put("other", own.offers[1].id)
        state.put("sides", "captures")
        st.session_state["ww_compare"] = True
    return own.offers[0]


def main() -> None:
    """One run."""
    st.set_page_config(page_title="wirewitness", page_icon=str(_ICON), layout="wide")
    st.html(STYLE)
    state.begin()
    offer = chosen_offer()
    if offer is None:
        _only(partial(show_landing, unknown=bool(state.value("capture"))))
    else:
        state.put("capture", offer.id)
        key, folder = tables_of(offer)
        if folder is not None:
            _show_capture(offer, folder)
        else:
            _only(partial(show_reading, offer, key))
    state.finish()


def _show_capture(offer: Offer, folder: FolderPath) -> None:
    version = ""
    try:
        version = version_of(folder)
        _show_pages(offer, server_state.opened(str(folder), version))
        st.session_state.pop("ww_gone", None)
    except (TablesGone, CaptureError, OSError, ValueError) as error:
        if isinstance(error, QueryError):
            raise
        server_state.opened.clear(str(folder), version)
        server_state.jobs().forget(folder.name)
        if isinstance(error, TablesDamaged):
            discard(folder)
        if st.session_state.get("ww_gone") == str(folder):  # opened anew they cannot be read either
            show_failed(offer, str(error) or str(error.__cause__))
            return
        st.session_state["ww_gone"] = str(folder)
        st.rerun()


def _show_pages(offer: Offer, opened: Opened) -> None:
    if st.session_state.get("ww_remembered") != offer.id:
        if server_state.private():
            remember(offer)
        st.session_state["ww_remembered"] = offer.id
    seen = quality(Selected(opened, opened.options))
    protocols = [flows.protocol for flows in seen.flows if flows.protocol]
    if seen.batches is not None and SEGMENTS_OF not in protocols:
        protocols.append(SEGMENTS_OF)
    pages = {one.name: _page(partial(_run_page, one, opened, seen.span_ns, protocols), one) for one in PAGES}
    page = _current(pages)
    if st.session_state.pop("ww_compare", False):
        state.go("compare", sides="captures")
    links = st.sidebar.container(gap=None)
    show_sidebar(offer, opened, seen.span_ns, protocols)
    with links:
        show_links(pages_for(protocols))
    folder = live_folder(offer)
    if folder is not None:
        with st.sidebar:
            follow(folder, opened.folder.name)
    page.run()


def _page(show: Callable[[], None], entry: PageEntry) -> st.Page:
    return st.Page(show, title=entry.title, url_path=entry.name, default=entry is PAGES[0])


def _current(pages: Mapping[str, st.Page]) -> st.Page:
    """The page that the address names. Every page is known in every run, or Back would not find the one it left."""
    page = st.navigation(list(pages.values()), position="hidden")
    state.enter(page.url_path or PAGES[0].name, pages)
    return page


def _run_page(entry: PageEntry, opened: Opened, span_ns: tuple[int, int] | None, protocols: Collection[str]) -> None:
    if entry not in pages_for(protocols):
        heading(entry.title)
        empty(f"This capture has no {entry.section} traffic.")
        return
    options = state.options_of(span_ns)
    st.set_page_config(page_title=_window_title(entry, opened))
    view = state.View(Selected(opened, options))
    state.set_dated(span_ns and (options.from_ns or span_ns[0], options.to_ns or span_ns[1]))
    try:
        entry.show(view)
    except QueryError as error:
        empty(f"This cannot be shown: {error}")
    except TablesGone:
        raise
    except Exception as error:  # the last resort: our own fault is a sentence, and the other pages still work
        if st.get_option("client.showErrorDetails") == "full":
            raise
        card("A fault of wirewitness", f"Please report it: {type(error).__name__}: {error}", "critical")


def _window_title(entry: PageEntry, opened: Opened) -> str:
    """`Groups: payments-ledger · incident.pcapng`, so that windows can be told apart."""
    shown = state.value(entry.one) if entry.one else ""
    title = f"{entry.section} {entry.title.lower()}" if entry.needs else entry.title
    name = PurePath(opened.paths[0]).name if opened.paths else "live"
    return visible(f"{title}{f': {shown}' if shown else ''} · {name}")


def _only(show: Callable[[], None]) -> None:
    """The same on every page: there is no capture to look at yet, so nothing stands in the sidebar."""
    st.html("<style>[data-testid=stSidebar], [data-testid=stExpandSidebarButton] {display: none}</style>")
    _current({one.name: _page(show, one) for one in PAGES}).run()


main()
