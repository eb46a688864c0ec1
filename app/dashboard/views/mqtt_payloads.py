"""What changed from one payload of a topic to the next, below the message that is open."""

from __future__ import annotations

import streamlit as st

from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.packets import NoPackets, payload_of
from wirewitness.app.dashboard.sidebar_times import moment_words
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.text import line, small_table
from wirewitness.app.dashboard.views.message import payloads_shown
from wirewitness.reports.base.formats.payload_changes import Changes, payload_changes
from wirewitness.reports.base.formats.words import span
from wirewitness.reports.protocols.mqtt.questions.topics import publish_before


def show_changes(view: View, message_id: str) -> None:
    """The payload beside that of the topic's message before; in words only, unless payloads are to be seen."""
    before = publish_before(view.source, message_id)
    if before is None:
        line("No earlier message of its topic is in the capture.", "quiet")
        return
    st.subheader("Since the message before", anchor=False)
    at = moment_words(before["ts_ns"], state.dated())
    apart = f"{span(before['apart_ns'])} before, at {at} in packet {before['packet']}"
    if before["same"]:
        line(f"The same payload as {apart}.")
    elif not payloads_shown():
        line(f"Another payload than {apart}. Switch payloads on to see what changed.")
    else:
        line(f"Another payload than {apart}.")
        try:
            _differences(*(payload_of(view.source.opened, one) for one in (before["message_id"], message_id)))
        except NoPackets as error:
            line(str(error), "quiet")
    # A link, not a button: for another address the table of messages is another one, which marks that row.
    view.link("mqtt-topics", "Open the message before", icon=":material/history:", message=before["message_id"])


def _differences(before: bytes | None, after: bytes | None) -> None:
    if before is None or after is None:
        line("One of the two payloads is not whole in the capture.", "quiet")
        return
    found = payload_changes(before, after)
    if not found.changes:
        line("The values are the same, only written in another way.", "quiet")
        return
    _table(found)


def _table(found: Changes) -> None:
    place = "Value" if found.kind == "JSON" else "Place"
    rows = ((one.place or "(all)", _said(one.before), _said(one.after)) for one in found.changes)
    small_table((place, "Before", "Now"), rows)
    if found.left:
        line(f"and {found.left:,} more", "quiet")


def _said(value: str | None) -> str:
    return "not there" if value is None else value
