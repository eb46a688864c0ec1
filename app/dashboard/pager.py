"""Pages of a long table. In: how many rows there are; out: the page that is shown, and buttons that move it."""

from __future__ import annotations

from functools import partial

import streamlit as st

from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.text import html, show


def pager(key: str, total: int, page_rows: int, words: str) -> int:
    """The page that is shown, counted from 0, and what moves it. words: how many rows there are of what."""
    last = max(-(-total // page_rows), 1) - 1
    name = f"{key}.page"
    page = min(state.number(name, 0), last)
    if last:
        step = partial(state.put, name)
        st.button("Previous rows", icon=":material/chevron_left:", key=f"{name}-", disabled=page == 0, on_click=step,
                  args=(str(page - 1) if page > 1 else None,), type="tertiary")  # fmt: skip
        first = page * page_rows + 1
        beside(f"{first:,} to {min(first + page_rows - 1, total):,} of {words}")
        st.button("Next rows", icon=":material/chevron_right:", key=f"{name}+", disabled=page == last, on_click=step,
                  args=(str(page + 1),), type="tertiary")  # fmt: skip
    else:
        beside(words)
    return page


def beside(words: str) -> None:
    """Small words beside buttons, no wider than they are."""
    show(html('<span class="ww-quiet">{words}</span>', words=words), narrow=True)
