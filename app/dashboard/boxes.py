"""Boxes in which somebody chooses or types a value of the URL. In: the value's name, options; out: what is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import streamlit as st

from wirewitness.app.dashboard import state

Width: TypeAlias = int | Literal["stretch"]


def choice(
    label: str,
    name: str,
    options: Sequence[str],
    *,
    shown: Callable[[str], str] = str,
    none: str | None = None,
    hide_label: bool = False,
    width: Width = "stretch",
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
            label_visibility="collapsed" if hide_label else "visible", width=width,
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


def several(
    label: str,
    name: str,
    options: Sequence[str],
    shown: Callable[[str], str] = str,
    *,
    none: str = "all",
    most: int | None = None,
) -> list[str]:
    """Any of these options, at most `most`. none: constant text, what it stands for that nothing is chosen."""
    key = state.widget_key(name)
    if key not in st.session_state:
        st.session_state[key] = [one for one in state.value(name).split(",") if one in options]
    st.session_state[key] = [one for one in st.session_state[key] if one in options][:most]
    chosen: list[str] = st.multiselect(
        label, options, key=key, format_func=shown, placeholder=none, max_selections=most
    )
    state.store(name, ",".join(chosen))
    return chosen


def typed(label: str, name: str, placeholder: str = "", *, hide_label: bool = False, width: Width = "stretch") -> str:
    """A line of text."""
    key = state.widget_key(name)
    if key not in st.session_state:
        st.session_state[key] = state.value(name)
    found = st.text_input(
        label, key=key, placeholder=placeholder, label_visibility="collapsed" if hide_label else "visible", width=width
    )
    state.store(name, found or "")
    return found or ""


def _bound(name: str, allowed: Sequence[str], widget: Callable[[str], Any]) -> str:
    key = state.widget_key(name)
    if st.session_state.get(key) not in allowed:
        wanted = state.value(name)
        st.session_state[key] = wanted if wanted in allowed else allowed[0]
    found = widget(key)
    state.store(name, found if found is not None and found != allowed[0] else "")
    return str(found) if found is not None else allowed[0]
