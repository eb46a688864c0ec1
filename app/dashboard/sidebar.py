"""The sidebar: the capture, and the time range and protocols that all pages share. In: a capture; out: URL values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import streamlit as st

from app.dashboard import state
from app.dashboard.landing import close
from app.dashboard.live import live_folder
from app.dashboard.offers import Offer
from app.dashboard.opened import Opened
from app.dashboard.page_entry import PageEntry
from app.dashboard.text import html, show
from reports.formats.values import time_text
from reports.formats.words import size, span

_STEPS = 400


def show_sidebar(offer: Offer, opened: Opened, span_ns: tuple[int, int] | None, protocols: Sequence[str]) -> None:
    """What is looked at, and how it is narrowed."""
    with st.sidebar:
        show(
            html(
                '<div class="ww-title">{title}</div><div class="ww-quiet">{size}</div>',
                title=offer.title, size="" if live_folder(offer) else size(offer.size_bytes),
            )
        )  # fmt: skip
        if span_ns is not None and span_ns[1] > span_ns[0]:
            _time_range(span_ns)
        if len(protocols) > 1:
            state.several("Protocols", "protocol", list(protocols))
        st.button("Open another capture", on_click=close, key="ww_close", icon=":material/folder_open:")


def show_links(entries: Sequence[PageEntry]) -> None:
    """The way to every page that has something to show; a link carries what the page's address says."""
    for section, members in groupby(entries, key=lambda entry: entry.section):
        show(html('<div class="ww-section">{section}</div>', section=section))
        for entry in members:
            state.link(entry.name, entry.title, icon=entry.icon)
    show(html('<hr class="ww-rule">'))


def _time_range(span_ns: tuple[int, int]) -> None:
    """Two handles over the capture's time, in ms since its first packet; the URL holds absolute ns."""
    first, last = span_ns
    whole = (0.0, (last - first) / 1e9)
    step = whole[1] / _STEPS
    key = "ww_w_range"
    if key not in st.session_state:
        options = state.options_of(span_ns)
        low = ((options.from_ns or first) - first) / 1e9
        high = ((options.to_ns - first) / 1e9) if options.to_ns is not None else whole[1]
        st.session_state[key] = (min(max(low, 0.0), whole[1]), min(max(high, 0.0), whole[1]))
    low, high = st.session_state[key]
    near_end = whole[1] - 1.5 * step  # the browser counts whole steps and may end one before the last
    shown_end = st.session_state.get("ww_range_end", whole[1])
    if high > near_end or high >= shown_end:  # a capture that grows is still shown to its end
        high = whole[1]
    st.session_state[key] = (min(low, whole[1]), min(high, whole[1]))
    st.session_state["ww_range_end"] = whole[1]
    chosen: Any = st.slider(
        "Seconds from the first packet", *whole, step=step, key=key, format="%.3f" if step < 0.1 else "%.1f"
    )
    low, high = chosen
    if high > near_end:
        high = whole[1]
    state.put("from", str(first + round(low * 1e9)) if low > 0 else None)
    state.put("to", str(first + round(high * 1e9)) if high < whole[1] else None)
    shown = (first + round(low * 1e9), min(first + round(high * 1e9), last))
    show(
        html(
            '<div class="ww-quiet">{from_} to {to} UTC, {span}</div>',
            from_=time_text(shown[0])[:23].replace("T", " "), to=time_text(shown[1])[11:23],
            span=span(max(shown[1] - shown[0], 0)),
        )
    )  # fmt: skip
    if low > 0 or high < whole[1]:
        st.button("Whole time", on_click=_reset, key="ww_whole", type="tertiary")


def _reset() -> None:
    for name in ("from", "to", "range"):
        state.put(name, None)
