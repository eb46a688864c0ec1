"""The message inspector as a part of pages: one exchange with all fields and bytes."""

from __future__ import annotations

from functools import partial

from app.dashboard import boxes, state
from app.dashboard.command_line import command_line
from app.dashboard.components.inspector import show_messages
from app.dashboard.offers import without_folder
from app.dashboard.opened import Opened
from app.dashboard.packets import NoPackets, exchange_views
from app.dashboard.state import View
from app.dashboard.text import card

_SHOWN = "shown"


def payloads_shown() -> bool:
    """Whether somebody asked to see what applications sent."""
    return state.value("payload") == _SHOWN


def flow_link(view: View, flow_id: str, message_id: str | None = None) -> None:
    """The way to the connection, at that message."""
    view.link("connections", "Whole conversation of this connection", icon=":material/swap_vert:", flow=flow_id,
              message=message_id, line=None)  # fmt: skip


def show_exchange(opened: Opened, message_id: str, key: str) -> None:
    """The message and its partner; a sentence where their bytes are not at hand. key: constant, one for each page."""
    shown = boxes.segments("Payloads", "payload", {"hidden": "Payloads hidden", _SHOWN: "Payloads shown"})
    try:
        views = exchange_views(opened, message_id, payload=shown == _SHOWN)
    except NoPackets as error:
        card("The bytes are not at hand", without_folder(str(error)), "warning")
        return
    show_messages(views, f"{key}-inspector", partial(command_line, opened, "show"))
