"""From ids to messages with all their fields, for the flow view and the inspector. In: an opened capture; out: views.

The index of a capture is made by the first question and kept in the user's cache, as `wirewitness show` does.
"""

from __future__ import annotations

import streamlit as st

from analyser.capture import CaptureError, in_time_order, open_captures
from analyser.evidence.bytes import BytesGone
from analyser.evidence.index import Index, open_index
from analyser.evidence.rows import UnknownId, parse_message_id
from app.dashboard.opened import Opened
from reports.message_view import MessageView, view_message


class NoPackets(Exception):
    """The bytes of a message cannot be shown; the text is a sentence."""


def exchange_views(opened: Opened, message_id: str, *, payload: bool) -> list[MessageView]:
    """The message and the other one of its exchange, the client's first. Raises NoPackets."""
    try:
        with st.spinner("Reading the packets"):
            index = _index(str(opened.folder), opened.paths, opened)
            row = index.message(parse_message_id(message_id))
            partner = index.partner(row)
            both = [row] if partner is None else sorted((row, partner), key=lambda one: one.direction)
            return [view_message(index, one, payload=payload) for one in both]
    except BytesGone as error:
        raise NoPackets(f"{error}. The capture changed since it was analysed.") from error
    except (CaptureError, OSError) as error:
        _index.clear()  # its files may be gone from the cache: the next question makes it anew
        raise NoPackets(f"The packets cannot be read: {error}") from error
    except UnknownId as error:
        raise NoPackets(f"No message {message_id} in this capture.") from error


@st.cache_resource(show_spinner=False, max_entries=4)
def _index(folder: str, paths: tuple[str, ...], _opened: Opened) -> Index:
    return open_index(in_time_order(open_captures(list(paths))), _opened.reading)
