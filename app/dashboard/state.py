"""What a session looks at: the capture, time range, protocols and each page's filters. All of it stands in the URL.

Values live in the session; a run ends by writing them into the URL. Where it finds another URL than the last run wrote
(first run, Back, a link), the URL is right: it says all about its page, and what it leaves out is not set. So a copied
address opens the same page, Back and Forward show what they showed, and each page's filters wait for its return.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.app.dashboard.opened import Selected
from wirewitness.dissectors.registry import dissector_of

_VALUES = "ww_values"
_TOUCHED = "ww_touched"
_WRITTEN = "ww_written"
_ARRIVED = "ww_arrived"
_PAGE = "ww_page"
_PAGES = "ww_pages"
_STAYED = "ww_stayed"
_USED = "ww_used"
_ARRIVALS = "ww_arrivals"
_DATED = "ww_dated"
_DAY_NS = 86_400_000_000_000
# Addresses of the last runs that a browser may not have seen yet, at most.
_UNSEEN = 50
# Values of the frame; all others belong to a page and leave the URL with it.
SHARED = ("capture", "other", "from", "to", "protocol")


def begin() -> None:
    """Take the frame's values over from the URL where somebody else than the last run wrote it; first in every run."""
    st.session_state.setdefault(_VALUES, {})
    st.session_state.setdefault(_USED, {})
    st.session_state[_TOUCHED] = set()
    given = dict(st.query_params)
    arrived = st.session_state[_ARRIVED] = _arrived(given)
    if arrived:
        st.session_state[_ARRIVALS] = arrivals() + 1
        if given.get("capture", "") != st.session_state[_VALUES].get("capture", ""):
            forget()
        _take((*SHARED, "range"), given)


def _arrived(given: dict[str, str]) -> bool:
    """Whether somebody else than this session wrote the URL.

    A browser that is quicker than this script sends addresses that the script has replaced meanwhile, until it has
    seen the last one; those say nothing new, unless they come from its history.
    """
    written: list[dict[str, str]] = st.session_state.setdefault(_WRITTEN, [])
    context = get_script_run_ctx()
    if given in written and not (context is not None and context.is_history_navigation and given != written[-1]):
        del written[: written.index(given)]
        return False
    written[:] = [given]
    return True


def _write(wanted: dict[str, str]) -> None:
    """Note what stands in the URL from now on."""
    written: list[dict[str, str]] = st.session_state[_WRITTEN]
    if written[-1:] != [wanted]:
        written.append(wanted)
        del written[:-_UNSEEN]


def page() -> str:
    """The page that this run shows."""
    shown: str = st.session_state.get(_PAGE, "")
    return shown


def enter(page: str, pages: Mapping[str, Any]) -> None:
    """Which page this run shows, and its values from the URL; before the page. pages: those that `go` can open."""
    st.session_state[_STAYED] = st.session_state.get(_PAGE) == page
    st.session_state[_PAGE] = page
    st.session_state[_PAGES] = dict(pages)
    if st.session_state[_ARRIVED]:
        given = dict(st.query_params)
        used = _used(page)
        used.update(given.keys() - set(SHARED))
        _take(used, given)


def finish() -> None:
    """Write the values of the frame and of the page into the URL; call it last in every run."""
    page = st.session_state.get(_PAGE, "")
    _used(page).update(st.session_state[_TOUCHED] - set(SHARED))
    wanted = address(page)
    _write(wanted)
    # A link to the same page leaves the browser's address as it is, so it is sent even when it did not change. For
    # another page that would be in vain, and might reach the browser before the page does: a step too many for Back.
    if st.session_state.get(_STAYED) or dict(st.query_params) != wanted:
        st.query_params.from_dict(wanted)


def address(page: str) -> dict[str, str]:
    """The part of a page's URL behind the question mark, with the filters that the page had when it was left."""
    values: dict[str, str] = st.session_state[_VALUES]
    return {name: values[name] for name in (*SHARED, *sorted(_used(page))) if values.get(name)}


def arrivals() -> int:
    """How often the session came to an address that it had not written itself: what was chosen before is old then."""
    count: int = st.session_state.get(_ARRIVALS, 0)
    return count


def set_dated(span_ns: tuple[int, int] | None) -> None:
    """Tell this run's tables which time they show: Unix ns of its ends."""
    st.session_state[_DATED] = span_ns is not None and span_ns[0] // _DAY_NS != span_ns[1] // _DAY_NS


def dated() -> bool:
    """Whether times need their day: the selected time has more than one."""
    return bool(st.session_state.get(_DATED))


def _used(page: str) -> set[str]:
    """Names of the values that a page has asked for, without those of the frame."""
    used: set[str] = st.session_state[_USED].setdefault(page, set())
    return used


def _take(names: Collection[str], given: Mapping[str, str]) -> None:
    for name in names:
        put(name, given.get(name))


def value(name: str) -> str:
    """A value as text, "" when it is not set."""
    st.session_state[_TOUCHED].add(name)
    found: str = st.session_state[_VALUES].get(name, "")
    return found


def put(name: str, new: str | None) -> None:
    """Set or clear a value; widgets that show it take it over in the next run."""
    _set(name, new)
    st.session_state.pop(widget_key(name), None)


def kept(name: str, new: str | None) -> str:
    """A choice that stays in the URL until another one is made. new: what was chosen in this run, if anything."""
    if new:
        put(name, new)
    return value(name)


def forget() -> None:
    """Clear all values: what comes next is another capture."""
    for name in (*st.session_state[_VALUES], "range"):
        put(name, None)


def store(name: str, new: str) -> None:
    """Set or clear a value as the box says that shows it."""
    value(name)
    _set(name, new)


def number(name: str, default: int) -> int:
    """A whole number from the URL that no widget shows."""
    text = value(name)
    return int(text) if text.isdecimal() and len(text) < 12 else default


def go(page: str, **values: str | None) -> None:
    """Open a page with these values and those that it was left with; the run ends here.

    From another page this takes two steps of the browser's history; a `link` takes one.
    """
    for name, new in values.items():
        put(name, new)
    _used(page).update(values.keys() - set(SHARED))
    wanted = address(page)
    _write(wanted)
    st.switch_page(st.session_state[_PAGES][page], query_params=wanted)


def link(page: str, label: str, about: str = "", icon: str | None = None, **values: str | None) -> None:
    """A link that opens a page with these values and those that it was left with.

    label: constant text. about: what is only read out, so that links with one label can be told apart; of it, only
    letters, digits, commas and hyphens are taken. Such links are as wide as their column.
    """
    about = re.sub(r"[^\w ,-]", " ", about)
    target = {**address(page), **values}
    st.page_link(
        st.session_state[_PAGES][page], label=f"{label} :gray[{about}]" if about else label, icon=icon,
        query_params={name: one for name, one in target.items() if one}, width="stretch" if about else "content",
    )  # fmt: skip


class View:
    """What a page gets: the selected rows, and ways to other pages."""

    def __init__(self, source: Selected) -> None:
        self.source = source

    def go(self, page: str, **values: str | None) -> None:
        """Open another page with these values; the run ends here."""
        go(page, **values)

    def link(self, page: str, label: str, about: str = "", icon: str | None = None, **values: str | None) -> None:
        """See `link`."""
        link(page, label, about, icon, **values)


def options_of(span_ns: tuple[int, int] | None) -> ReadOptions:
    """The time range and protocols of the URL as options of a source; what cannot be read is left out."""
    from_ns, to_ns = _time(value("from")), _time(value("to"))
    if span_ns is None or (from_ns is not None and to_ns is not None and from_ns > to_ns):
        from_ns = to_ns = None
    protocols = tuple(one for one in value("protocol").split(",") if dissector_of(one) is not None)
    return ReadOptions(from_ns=from_ns, to_ns=to_ns, protocols=protocols)


def _time(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= 19 else None


def _set(name: str, new: str | None) -> None:
    values: dict[str, str] = st.session_state[_VALUES]
    if new:
        values[name] = new
    else:
        values.pop(name, None)


def widget_key(name: str) -> str:
    """The key of the box that shows a value; `put` takes it from the box, so that it shows the new one."""
    return f"ww_w_{name}"
