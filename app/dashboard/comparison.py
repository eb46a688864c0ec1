"""The two sides of a comparison: two captures, or two times of one. In: the URL; out: a `Side` for each.

Where a side cannot be shown yet (its capture is analysed, or cannot be read), the page says so instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureError
from wirewitness.app.dashboard import boxes, server_state, state
from wirewitness.app.dashboard.jobs import discard
from wirewitness.app.dashboard.landing import show_failed, show_reading, tables_of
from wirewitness.app.dashboard.offered import offer_of, offered
from wirewitness.app.dashboard.offers import Offer
from wirewitness.app.dashboard.opened import Selected, TablesDamaged, TablesGone, version_of
from wirewitness.app.dashboard.sidebar_times import moment_ns, moment_words
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.text import card, empty, line
from wirewitness.reports.base.formats.words import span
from wirewitness.reports.base.questions.timelines import selected_span_ns


class Side(NamedTuple):
    """One of two. name: a constant word. about: what it is. values: the URL under which other pages show it."""

    name: str
    about: str
    source: Selected
    values: Mapping[str, str | None]


Sides = tuple[Side, Side]


def moment_sides(view: View) -> Sides | None:
    """The selected time before a moment and after it; without a moment, its halves."""
    times = _times(view)
    if times is None:
        return None
    middle = (times[0] + times[1]) // 2
    at = _moment(boxes.typed("Moment, UTC", "at", _words(middle), width=240), middle)
    at = min(max(at, times[0] + 1), times[1])
    chosen = view.source.options
    return _part(view, "Before", (chosen.from_ns, at)), _part(view, "After", (at, chosen.to_ns))


def range_sides(view: View) -> Sides | None:
    """Two times that are written; without them the first and the last half of the selected time."""
    times = _times(view)
    if times is None:
        return None
    middle = (times[0] + times[1]) // 2
    one, two, three, four = st.columns(4)
    with one:
        begin = _moment(boxes.typed("First: from, UTC", "first-from", _words(times[0])), times[0])
    with two:
        end = _moment(boxes.typed("First: to, UTC", "first-to", _words(middle)), middle)
    with three:
        again = _moment(boxes.typed("Second: from, UTC", "second-from", _words(middle)), middle)
    with four:
        last = _moment(boxes.typed("Second: to, UTC", "second-to", _words(times[1])), times[1])
    return (
        _part(view, "First", (min(begin, end), max(begin, end) + 1)),
        _part(view, "Second", (min(again, last), max(again, last) + 1)),
    )


def capture_sides(view: View) -> Sides | None:
    """The capture that is open and another one, as the box names it."""
    here = state.value("capture")
    titles = _titles([offer for offer in offered() if offer.id != here])
    one, _ = st.columns([4, 5])
    with one:
        chosen = boxes.choice("The other capture", "other", list(titles), shown=titles.__getitem__, none="choose one")
    other = offer_of(chosen) if chosen else None
    if other is None:
        empty("Choose the capture to put beside this one; what is not listed can be named on the command line, "
              "wirewitness dashboard A B --compare, or uploaded.")  # fmt: skip
        return None
    key, folder = tables_of(other)
    if folder is None:
        show_reading(other, key, leave=_leave)
        return None
    version = ""
    try:
        version = version_of(folder)
        source = Selected(
            server_state.opened(str(folder), version), ReadOptions(protocols=view.source.options.protocols)
        )
        selected_span_ns(source)  # read now, so that what is damaged is found here
    except (TablesGone, CaptureError, OSError, ValueError) as error:
        server_state.opened.clear(str(folder), version)
        server_state.jobs().forget(folder.name)
        if isinstance(error, TablesDamaged):
            discard(folder)
        show_failed(other, str(error) or str(error.__cause__), leave=_leave)
        return None
    own = offer_of(here)
    if view.source.options.from_ns is not None or view.source.options.to_ns is not None:
        line("The selected time is that of A; B is shown whole.", "quiet")
    return (
        Side("A", _about(own.title if own else "", view.source), view.source, {}),
        Side("B", _about(other.title, source), source, {"capture": other.id, "other": here, "from": None, "to": None}),
    )


def _titles(offers: Sequence[Offer]) -> dict[str, str]:
    """By id, each another one: a box knows what was chosen by its words. Of captures of one name the folder tells."""
    found: dict[str, str] = {}
    for offer in offers:
        words = (offer.title, f"{offer.title}, {offer.note}", f"{offer.title}, {offer.id}")
        found.setdefault(offer.id, next(one for one in words if one not in found.values()))
    return found


def show_sides(view: View, sides: Sides) -> None:
    """What is beside what, and the way to each alone."""
    for half, side in zip(st.columns(2, gap="large"), sides, strict=True):
        with half:
            words, way = st.columns([4, 1], vertical_alignment="center", gap="small")
            with words:
                card(side.name, side.about)
            with way:
                view.link("overview", "Look at it", f"alone, {side.name}", **side.values)


def _leave() -> None:
    state.put("other", None)


def _times(view: View) -> tuple[int, int] | None:
    times = selected_span_ns(view.source)
    if times is None or times[0] == times[1]:
        empty("Nothing in the selected time.")
        return None
    return times


def _part(view: View, name: str, ends: tuple[int | None, int | None]) -> Side:
    """None: as far as the capture goes, so that it is asked what other pages ask."""
    source = view.source.part(*ends)
    from_ns, to_ns = (str(end) if end is not None else None for end in ends)
    return Side(name, _about("", source), source, {"from": from_ns, "to": to_ns})


def _about(title: str, source: Selected) -> str:
    """`incident.pcapng: 44.1 s, 3,324 exchanges`, or from when to when."""
    times = selected_span_ns(source)
    number = source.rows("select count(*) as n from exchanges")[0]["n"]
    if times is None:
        return f"{title}: no exchanges" if title else "no exchanges"
    begin = "" if title else f"{_words(times[0])} to {_words(times[1])}, "
    length = span(times[1] - times[0])
    return f"{f'{title}: ' if title else ''}{begin}{length}, {number:,} exchanges"


def _words(at_ns: int) -> str:
    return moment_words(at_ns, state.dated())


def _moment(written: str, default_ns: int) -> int:
    """A time in UTC that somebody wrote, if it is one."""
    found = moment_ns(written, default_ns) if written else default_ns
    if found is None:
        line(f"{written} is no time: write 17:45:10 or 2026-11-20T17:45:10.", "quiet")
        return default_ns
    return found
