"""What a session looks at: the capture, time range, protocols and each page's filters. All of it stands in the URL.

Values live in the session; a run begins with what the URL says (first run) and ends by writing them back, so that a
copied address opens the same page and a click in the navigation keeps the filters that all pages share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from analyser.archive.dataset import is_dataset
from analyser.options import ReadOptions
from app.dashboard.jobs import Jobs
from app.dashboard.offers import Uploads
from app.dashboard.opened import Opened, Selected
from dissectors.registry import dissector_of

_VALUES = "ww_values"
_TOUCHED = "ww_touched"
_WRITTEN = "ww_written"
# Values of the frame; all others belong to a page and leave the URL with it.
SHARED = ("capture", "from", "to", "protocol")


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """The analyses of this server."""
    return Jobs()


@st.cache_resource(show_spinner=False)
def uploads() -> Uploads:
    """The uploads of this server."""
    return Uploads()


@st.cache_resource(show_spinner=False, max_entries=6, on_release=lambda opened: opened.close())
def opened(folder: str, version: int) -> Opened:
    """Kept tables or a dataset, opened once for all sessions. version: changes when a dataset does."""
    path = Path(folder)
    return Opened.dataset(path) if is_dataset(path) else Opened.kept(path)


def begin() -> None:
    """Take values over from the URL where somebody else than the last run wrote it; call it first in every run."""
    st.session_state.setdefault(_VALUES, {})
    if dict(st.query_params) != st.session_state.get(_WRITTEN):
        for name, new in st.query_params.items():
            put(name, new)
    st.session_state[_TOUCHED] = set()


def finish() -> None:
    """Write the values that this run used into the URL; call it last in every run."""
    values: dict[str, str] = st.session_state[_VALUES]
    used = st.session_state[_TOUCHED].union(SHARED)
    wanted = {name: value for name, value in values.items() if name in used and value}
    if dict(st.query_params) != wanted:
        st.query_params.from_dict(wanted)
    st.session_state[_WRITTEN] = wanted


def value(name: str) -> str:
    """A value as text, "" when it is not set."""
    st.session_state[_TOUCHED].add(name)
    found: str = st.session_state[_VALUES].get(name, "")
    return found


def put(name: str, new: str | None) -> None:
    """Set or clear a value; widgets that show it take it over in the next run."""
    values: dict[str, str] = st.session_state[_VALUES]
    if new:
        values[name] = new
    else:
        values.pop(name, None)
    st.session_state.pop(_widget(name), None)


def forget() -> None:
    """Clear all values: what comes next is another capture."""
    for name in (*st.session_state[_VALUES], "range"):
        put(name, None)


def choice(
    label: str,
    name: str,
    options: Sequence[str],
    *,
    shown: Callable[[str], str] = str,
    none: str | None = None,
    hide_label: bool = False,
) -> str:
    """A box with one of these options; "" when nothing is chosen, which needs `none`, the text for it."""
    allowed = (["", *options]) if none is not None else list(options)
    if not allowed:
        return ""
    return _bound(
        name,
        allowed,
        lambda key: st.selectbox(
            label, allowed, key=key, format_func=lambda one: shown(one) if one else none or "",
            label_visibility="collapsed" if hide_label else "visible",
        ),
    )  # fmt: skip


def segments(label: str, name: str, options: Mapping[str, str]) -> str:
    """A row of buttons, one of them chosen. options: value -> constant label."""
    return _bound(
        name,
        list(options),
        lambda key: st.segmented_control(
            label, list(options), format_func=lambda one: options[one], key=key, required=True,
            label_visibility="collapsed",
        ),
    )  # fmt: skip


def several(label: str, name: str, options: Sequence[str], shown: Callable[[str], str] = str) -> list[str]:
    """Any of these options; none chosen stands for all."""
    key = _widget(name)
    if key not in st.session_state:
        st.session_state[key] = [one for one in value(name).split(",") if one in options]
    st.session_state[key] = [one for one in st.session_state[key] if one in options]
    chosen: list[str] = st.multiselect(label, options, key=key, format_func=shown, placeholder="all")
    _store(name, ",".join(chosen))
    return chosen


def typed(label: str, name: str, placeholder: str = "", *, hide_label: bool = False) -> str:
    """A line of text."""
    key = _widget(name)
    if key not in st.session_state:
        st.session_state[key] = value(name)
    found = st.text_input(
        label, key=key, placeholder=placeholder, label_visibility="collapsed" if hide_label else "visible"
    )
    _store(name, found or "")
    return found or ""


def number(name: str, default: int) -> int:
    """A whole number from the URL that no widget shows."""
    text = value(name)
    return int(text) if text.isdecimal() and len(text) < 12 else default


class View:
    """What a page gets: the selected rows, and ways to other pages."""

    def __init__(self, source: Selected, pages: Mapping[str, Any]) -> None:
        self.source = source
        self.pages = pages

    def go(self, page: str, **values: str | None) -> None:
        """Open another page with these values; the run ends here."""
        for name, new in values.items():
            put(name, new)
        wanted = {**{name: value(name) for name in SHARED}, **{name: new for name, new in values.items() if new}}
        st.switch_page(self.pages[page], query_params={name: new for name, new in wanted.items() if new})


def options_of(span_ns: tuple[int, int] | None) -> ReadOptions:
    """The time range and protocols of the URL as options of a source; what cannot be read is left out."""
    from_ns, to_ns = _time(value("from")), _time(value("to"))
    if span_ns is None or (from_ns is not None and to_ns is not None and from_ns > to_ns):
        from_ns = to_ns = None
    protocols = tuple(one for one in value("protocol").split(",") if dissector_of(one) is not None)
    return ReadOptions(from_ns=from_ns, to_ns=to_ns, protocols=protocols)


def _time(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= 19 else None


def _bound(name: str, allowed: Sequence[str], widget: Callable[[str], Any]) -> str:
    key = _widget(name)
    if st.session_state.get(key) not in allowed:
        wanted = value(name)
        st.session_state[key] = wanted if wanted in allowed else allowed[0]
    found = widget(key)
    _store(name, found if found is not None and found != allowed[0] else "")
    return str(found) if found is not None else allowed[0]


def _store(name: str, new: str) -> None:
    value(name)
    values: dict[str, str] = st.session_state[_VALUES]
    if new:
        values[name] = new
    else:
        values.pop(name, None)


def _widget(name: str) -> str:
    return f"ww_w_{name}"
