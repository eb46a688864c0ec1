"""The sidebar: the capture, and the time range and protocols that all pages share. In: a capture; out: URL values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import streamlit as st

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.landing import close
from wirewitness.app.dashboard.live import live_folder
from wirewitness.app.dashboard.offers import Offer
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.page_entry import PageEntry
from wirewitness.app.dashboard.sidebar_times import moment_ns, moment_words
from wirewitness.app.dashboard.text import html, line, show
from wirewitness.app.dashboard.views.exchange_filters import exchange_filters
from wirewitness.reports.base.formats.words import span
from wirewitness.reports.base.questions.exchange_rows import packet_messages

_STEPS = 400
_DAY_NS = 86_400_000_000_000
_SECOND_NS, _MINUTE_NS, _HOUR_NS = 1_000_000_000, 60_000_000_000, 3_600_000_000_000
# From here on the handles count hours.
_LONG_NS = 3 * _HOUR_NS
_PRESETS = {"Last minute": _MINUTE_NS, "Last 10 min": 10 * _MINUTE_NS, "Last hour": 60 * _MINUTE_NS,
            "Last day": _DAY_NS}  # fmt: skip


def show_sidebar(offer: Offer, opened: Opened, span_ns: tuple[int, int] | None, protocols: Sequence[str]) -> None:
    """What is looked at, and how it is narrowed."""
    with st.sidebar:
        show(
            html(
                '<div class="ww-title">{title}</div><div class="ww-quiet">{size}</div>',
                title=offer.title, size="" if live_folder(offer) else offer.size,
            )
        )  # fmt: skip
        if span_ns is not None and span_ns[1] > span_ns[0]:
            _time_range(span_ns)
        if len(protocols) > 1:
            boxes.several("Protocols", "protocol", list(protocols))
        _packet(opened)
        st.button("Open another capture", on_click=close, key="ww_close", icon=":material/folder_open:")


def show_links(entries: Sequence[PageEntry]) -> None:
    """The way to every page that has something to show; a link carries what the page's address says."""
    for section, members in groupby(entries, key=lambda entry: entry.section):
        show(html('<div class="ww-section">{section}</div>', section=section))
        for entry in members:
            state.link(entry.name, entry.title, icon=entry.icon)
    show(html('<hr class="ww-rule">'))


def _packet(opened: Opened) -> None:
    """Go to a packet: the exchange whose message lies in it, among its neighbours."""
    number = st.text_input("Go to packet", key="ww_packet", placeholder="number")
    if not number or number == st.session_state.get("ww_packet_shown"):
        return
    st.session_state["ww_packet_shown"] = number
    found = packet_messages(opened, int(number)) if number.isdecimal() and len(number) < 19 else []
    if not found:
        line(f"No message of a known protocol lies in packet {number}.", "quiet")
        return
    message_id = found[0]["message_id"]
    state.go("exchanges", **exchange_filters(packet=number, message=message_id))


def _time_range(span_ns: tuple[int, int]) -> None:
    """The time that all pages show: two ends to write, a handle for each, and presets; the URL holds Unix ns."""
    first, last = span_ns
    _slider(first, last)
    options = state.options_of(span_ns)
    low, high = options.from_ns or first, min(options.to_ns or last, last)
    several_days = first // _DAY_NS != last // _DAY_NS
    one, two = (st.container(), st.container()) if several_days else st.columns(2)
    with one:
        # Another time is another box, so that it shows what the handles and presets chose.
        begin = st.text_input("From, UTC", value=moment_words(low, several_days), key=f"ww_from_{low}")
    with two:
        end = st.text_input("To, UTC", value=moment_words(high, several_days), key=f"ww_to_{high}")
    _take_written(begin, end, (low, high), span_ns)
    show(html('<div class="ww-quiet">{span} of {whole}</div>', span=span(max(high - low, 0)), whole=span(last - first)))
    _presets(options, span_ns)


def _take_written(begin: str, end: str, shown: tuple[int, int], span_ns: tuple[int, int]) -> None:
    """Show the time that was written where it is another one; a sentence where it is none."""
    wanted = []
    for text, now in zip((begin, end), shown, strict=True):
        same = text in ("", moment_words(now, False), moment_words(now, True))
        found = now if same else moment_ns(text, now)
        if found is None:
            show(
                html('<div class="ww-quiet">{text} is no time: write 17:45:10 or 2026-11-20T17:45:10</div>', text=text)
            )
            return
        wanted.append(min(max(found, span_ns[0]), span_ns[1]))
    if tuple(wanted) != shown:
        _choose(wanted[0], wanted[1], span_ns)
        st.rerun()


def _presets(options: ReadOptions, span_ns: tuple[int, int]) -> None:
    lengths = [text for text, length in _PRESETS.items() if length < span_ns[1] - span_ns[0]]
    if lengths:
        st.pills("Presets", lengths, key="ww_preset", label_visibility="collapsed", on_change=_preset,
                 args=(span_ns,))  # fmt: skip
    if options.from_ns is not None or options.to_ns is not None:
        st.button("Whole time", on_click=_reset, key="ww_whole", type="tertiary")


def _preset(span_ns: tuple[int, int]) -> None:
    chosen = st.session_state.get("ww_preset")
    if chosen:
        _choose(span_ns[1] - _PRESETS[chosen], span_ns[1], span_ns)
        st.session_state["ww_preset"] = None


def _slider(first: int, last: int) -> None:
    """Two handles over the capture's time, in seconds or hours since its first packet."""
    unit_ns = _unit_ns(first, last)
    whole = (0.0, (last - first) / unit_ns)
    step = whole[1] / _STEPS
    key = "ww_w_range"
    options = state.options_of((first, last))
    if key not in st.session_state:
        low = ((options.from_ns or first) - first) / unit_ns
        high = ((options.to_ns - first) / unit_ns) if options.to_ns is not None else whole[1]
        st.session_state[key] = (min(max(low, 0.0), whole[1]), min(max(high, 0.0), whole[1]))
    low, high = st.session_state[key]
    near_end = whole[1] - 1.5 * step  # the browser counts whole steps and may end one before the last
    shown_end = st.session_state.get("ww_range_end", whole[1])
    if high > near_end or high >= shown_end:  # a capture that grows is still shown to its end
        high = whole[1]
    before = (min(low, whole[1]), min(high, whole[1]))
    st.session_state[key] = before
    st.session_state["ww_range_end"] = whole[1]
    settings: dict[str, Any] = {"step": step, "key": key, "format": "%.3f" if step < 0.1 else "%.1f",
                                "on_change": _slid, "args": (first, last)}  # fmt: skip
    if unit_ns == _HOUR_NS:
        st.slider("Hours from the first packet", *whole, **settings)
    else:
        st.slider("Seconds from the first packet", *whole, **settings)


def _unit_ns(first: int, last: int) -> int:
    """The unit in which the handles count."""
    return _HOUR_NS if last - first > _LONG_NS else _SECOND_NS


def _slid(first: int, last: int) -> None:
    """Take the handles over; what was written exactly stays where they did not move."""
    low, high = st.session_state["ww_w_range"]
    unit_ns = _unit_ns(first, last)
    whole = (last - first) / unit_ns
    if high > whole - 1.5 * whole / _STEPS:
        high = whole
    state.put("from", str(first + round(low * unit_ns)) if low > 0 else None)
    state.put("to", str(first + round(high * unit_ns)) if high < whole else None)


def _choose(begin: int, end: int, span_ns: tuple[int, int]) -> None:
    """Show this time; an end of the capture is left open, for it may grow."""
    begin, end = min(begin, end), max(begin, end)
    state.put("from", str(begin) if begin > span_ns[0] else None)
    state.put("to", str(end) if end < span_ns[1] else None)
    state.put("range", None)


def _reset() -> None:
    for name in ("from", "to", "range"):
        state.put(name, None)
