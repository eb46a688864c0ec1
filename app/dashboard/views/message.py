"""The message inspector as a part of pages: one exchange with all fields and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.command_line import command_line
from wirewitness.app.dashboard.components.inspector import show_messages
from wirewitness.app.dashboard.components.values import show_values
from wirewitness.app.dashboard.offers import without_folder
from wirewitness.app.dashboard.opened import Opened
from wirewitness.app.dashboard.packets import NoPackets, exchange_views
from wirewitness.app.dashboard.text import card
from wirewitness.app.dashboard.views.exchange_filters import exchange_filters
from wirewitness.reports.base.questions.exchange_text import CommonValue, exchange_values
from wirewitness.reports.base.questions.wanted_exchanges import named_exactly

_SHOWN = "shown"
EXCHANGES_PAGE = "exchanges"


def payloads_shown() -> bool:
    """Whether somebody asked to see what applications sent."""
    return state.value("payload") == _SHOWN


def flow_link(flow_id: str, message_id: str | None = None) -> None:
    """The way to the connection, at that message."""
    state.link("connections", "Whole conversation of this connection", icon=":material/swap_vert:", flow=flow_id,
               message=message_id, line=None)  # fmt: skip


def show_exchange(opened: Opened, message_id: str, key: str) -> None:
    """The message and its partner; a sentence where their bytes are not at hand. key: constant, one for each page.

    Above them what the exchange has in common with others: a press on a value shows the exchanges with it.
    """
    values = exchange_values(opened, message_id)
    _ways(message_id, values)
    _same(values, key)
    shown = boxes.segments("Payloads", "payload", {"hidden": "Payloads hidden", _SHOWN: "Payloads shown"})
    try:
        views = exchange_views(opened, message_id, payload=shown == _SHOWN)
    except NoPackets as error:
        card("The bytes are not at hand", without_folder(str(error)), "warning")
        return
    show_messages(views, f"{key}-inspector", partial(command_line, opened, "show"))


# What a kind of value is called, and the filter of the page of exchanges that looks for it.
_FILTERS = {"client": "client", "server": "server", "operation": "operation", "error": "error", "about": "named"}


def _ways(message_id: str, values: Sequence[CommonValue]) -> None:
    """To the connection, at that message, and to all about the client."""
    with st.container(horizontal=True, gap="small"):
        flow_link(message_id.split("-", maxsplit=1)[0], message_id)
        client = next((one.value for one in values if one.kind == "client"), None)
        if client is not None:
            state.link("clients", "All about this client", icon=":material/devices:", who=client)


def _same(values: Sequence[CommonValue], key: str) -> None:
    """Buttons that look for exchanges with one of these values; on the page of exchanges, among those that it shows."""
    told = [(one.kind, one.value) for one in values]
    place = show_values("Only exchanges with", told, f"{key}-values") if told else None
    if place is None:
        return
    kind, value = told[place]
    if kind == "about":
        value = named_exactly(value) or value
    if state.page() != EXCHANGES_PAGE:
        state.go(EXCHANGES_PAGE, **exchange_filters(**{_FILTERS[kind]: value}))
    for name, new in ((_FILTERS[kind], value), ("exchanges.page", None)):
        state.put(name, new)
    st.rerun()
