"""What a press on a mark of a chart asked for, which no box shows: buttons that say it and drop it.

In: names of values of the URL; out: what they have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.components.values import show_values
from wirewitness.app.dashboard.sidebar_times import moment_words


def _between_words(text: str) -> str:
    low, high = (int(end) for end in text.split("-"))
    return f"{moment_words(low, state.dated())} to {moment_words(high, state.dated())} UTC"


def _took_words(text: str) -> str:
    low, high = (float(end) if end else None for end in text.split("-"))
    return f"{low:g} to {high:g} ms" if high is not None else f"{low:g} ms and more"


# What each is called, and its words.
_WORDS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "between": ("sent from", _between_words), "took": ("took", _took_words), "part_of": ("of", str),
    "way": ("only", str), "waits": ("left out", lambda _: "long polls"),
}  # fmt: skip


def show_asked(names: Sequence[str]) -> dict[str, str]:
    """A button for each of these values that is set; a press drops it."""
    asked = {name: state.value(name) for name in names}
    there = [name for name, text in asked.items() if text]
    if there:
        told = [(_WORDS[name][0], _said(name, asked[name])) for name in there]
        place = show_values("Press to look for others too:", told, "also-asked")
        if place is not None:
            state.put(there[place], None)
            st.rerun()
    return asked


def ask(**values: str | None) -> None:
    """Narrow the rows below a chart to those of a pressed mark; what was open among them is closed."""
    for name, new in {**values, "message": None}.items():
        state.put(name, new)
    st.rerun()


def _said(name: str, text: str) -> str:
    """The words of a value; an address that somebody wrote may have anything there."""
    try:
        return _WORDS[name][1](text)
    except (ValueError, TypeError, OverflowError):
        return text
