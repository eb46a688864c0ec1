"""MQTT topics as a tree, the messages of a branch, and what changed between two payloads of a topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from urllib.parse import quote, unquote

import streamlit as st

from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.charts.mqtt import messages_over_time
from wirewitness.app.dashboard.charts.theme import pressed_in_chart
from wirewitness.app.dashboard.components.tree import Line, show_tree
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.packets import NoPackets, payload_of
from wirewitness.app.dashboard.sidebar_times import moment_words
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import empty, heading, line, small_table
from wirewitness.app.dashboard.views.asked import ask, show_asked
from wirewitness.app.dashboard.views.message import payloads_shown, show_exchange
from wirewitness.reports.base.formats.payload_changes import Changes, payload_changes
from wirewitness.reports.base.formats.words import size, span
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.timelines import domain_ms, selected_span_ns, width_of
from wirewitness.reports.base.questions.wanted_exchanges import in_cell
from wirewitness.reports.protocols.mqtt.questions.topics import (
    LONGEST_BRANCH,
    MOST_OPEN,
    Branch,
    Level,
    below,
    publish_before,
    publishes,
    publishes_over_time,
    topic_tree,
    topics,
)

# What changed from one payload of a topic to the next, below the message that is open.


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


_FIGURES = ("Topics", "Published", "Per s", "Forwarded", "Payload", "Publishers", "Receivers", "Retained", "Last")
_ORDERS = {
    "published": "Published", "sent_on": "Forwarded", "payload_bytes": "Payload", "topics": "Topics",
    "retained": "Retained", "latest": "Last", "segment": "Name",
}  # fmt: skip
# At first sight branches with so few topics are open, where the top of the tree has no more rows than that.
_FEW = 12
_NONE = "none"
_BELOW = {"messages": "Messages", "topics": "Topics as a list"}
_TOPICS = (
    Column("topic", "Topic", "text", "large"),
    Column("published", "Published", "count"),
    Column("per_second", "Per s", "rate"),
    Column("sent_on", "Forwarded", "count"),
    Column("payload_bytes", "Payload", "bytes"),
    Column("publishers", "Publishers", "count"),
    Column("receivers", "Receivers", "count"),
    Column("retained", "Retained", "count"),
    Column("latest", "Last", "time"),
)
_MESSAGES = (
    Column("ts", "Time", "time"),
    Column("direction", "Direction"),
    Column("client_id", "Client", "text", 110),
    Column("topic", "Topic", "text", "medium"),
    Column("qos", "QoS", "plain", 50),
    Column("retain", "Retain", "flag"),
    Column("dup", "Dup", "flag"),
    Column("payload_bytes", "Payload", "bytes"),
    Column("handshake", "Handshake"),
    Column("completed_ms", "Completed ms", "ms"),
    Column("deliveries", "Deliveries", "count"),
    Column("packet", "Packet", "plain"),
)


def show(view: View) -> None:
    """The page: the tree, and below it what the chosen branch holds."""
    heading("MQTT topics")
    source = view.source
    times = selected_span_ns(source)
    span_ns = times[1] - times[0] if times is not None else 1
    branch = below(state.value("under"))
    width = width_of(source)
    over_time = publishes_over_time(source, width, branch)
    if over_time:
        chart = messages_over_time(over_time, width, domain_ms(source))
        bar = pressed_in_chart(chart, "rates", "MQTT messages over time")
        if bar is not None:
            ask(between=bar["bin"], way=bar["kind"], below=None)
    _tree(source, branch, span_ns)
    if branch:
        _path(branch)
    # Only what is looked at is asked for: a list of a million topics takes seconds.
    if boxes.segments("Below the tree", "below", _BELOW) == "topics":
        _list(source, branch, span_ns)
    else:
        _messages(view, branch)


def _list(source: Selected, branch: str, span_ns: int) -> None:
    chosen = paged_table(source, "topics", topics(branch, span_ns), _TOPICS, order="-published", noun="topic",
                         search=("topic",), select=True, keep=("branch",))  # fmt: skip
    if chosen is not None and chosen["branch"] != branch:
        _choose(chosen["branch"])
        state.put("below", None)
        st.rerun()


def _messages(view: View, branch: str) -> None:
    asked = show_asked(("between", "way"))
    query = publishes(branch, asked["way"], in_cell(asked["between"]))
    message = paged_table(view.source, "publishes", query, _MESSAGES, order="ts", noun="message",
                          search=("topic", "client_id"), select=True, keep=("message_id",),
                          marked=state.value("message"))  # fmt: skip
    wanted = state.kept("message", message["message_id"] if message else None)
    if wanted:
        show_exchange(view.source.opened, wanted, "publish")
        show_changes(view, wanted)
    else:
        line("Choose a message to see its bytes, and what changed since the one before of its topic. A bar lists its "
             "messages.", "quiet")  # fmt: skip


def _tree(source: Selected, branch: str, span_ns: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        containing = boxes.typed("Topics with", "topics.with", "Search", hide_label=True, width=210)
        order = boxes.choice("Order", "topics.order", list(_ORDERS), shown=lambda one: f"Order: {_ORDERS[one]}",
                             hide_label=True, width=210)  # fmt: skip
    look = partial(topic_tree, source, span_ns=span_ns, containing=containing, order=order)
    opened = _opened()
    levels = look(opened or ())
    if "" not in levels:
        empty(f"No topic with {containing}." if containing else "No message with a topic in the selected time.")
        return
    if opened is None:
        opened = _first_opened(levels[""])
        levels = look(opened)
    pressed = show_tree("Topic", _FIGURES, list(_lines(levels, opened, branch)), "topic-tree")
    if pressed.toggled is not None:
        _toggle(pressed.toggled, opened)
        st.rerun()
    if pressed.chosen is not None and pressed.chosen != branch:
        _choose(pressed.chosen)
        st.rerun()
    if len(opened) >= MOST_OPEN:
        line(f"{MOST_OPEN} branches are open, and no more can be: close one to open another.", "quiet")


def _lines(levels: Mapping[str, Level], opened: Sequence[str], chosen: str) -> Iterator[Line]:
    """The rows of open branches below each other; without recursion, since names are as deep as somebody sent them."""
    waiting = list(_of_level(levels[""], "", 0, opened, chosen))[::-1]
    while waiting:
        one = waiting.pop()
        yield one
        if one.opens and one.key is not None and one.key in levels:
            waiting += list(_of_level(levels[one.key], one.key, one.depth + 1, opened, chosen))[::-1]


def _of_level(level: Level, branch: str, depth: int, opened: Sequence[str], chosen: str) -> Iterator[Line]:
    for row in level.rows:
        opens = row.branch in opened if row.deeper and len(row.branch) < LONGEST_BRANCH else None
        yield Line(row.branch, depth, row.label or "(empty)", _cells(row), opens, row.branch == chosen)
    more = level.total - len(level.rows)
    if more:
        where = f" in {branch}" if branch else ""
        yield Line(None, depth, f"{more:,} more{where}: search, or see the topics as a list")


def _cells(row: Branch) -> tuple[str, ...]:
    facts = row.facts
    at = datetime.fromtimestamp(facts["latest_ms"] / 1000, UTC)
    return (
        f"{facts['topics']:,}", f"{facts['published']:,}", f"{facts['per_second']:,.1f}", f"{facts['sent_on']:,}",
        size(facts["payload_bytes"] or 0), f"{facts['publishers']:,}", f"{facts['receivers']:,}",
        f"{facts['retained']:,}", f"{at:%d %b %H:%M:%S}" if state.dated() else f"{at:%H:%M:%S.%f}"[:12],
    )  # fmt: skip


def _opened() -> list[str] | None:
    """Branches that are open, from the address; None where it does not say."""
    text = state.value("open")
    if not text:
        return None
    return [unquote(one) for one in text.split(" ") if one != _NONE][:MOST_OPEN]


def _first_opened(top: Level) -> list[str]:
    few = (row.branch for row in top.rows if row.deeper and row.facts["topics"] <= _FEW)
    return list(few) if top.total <= _FEW else []


def _toggle(branch: str, opened: Sequence[str]) -> None:
    """Open a branch, or close it and what is open below it."""
    kept = [one for one in opened if not one.startswith(branch)]
    now = kept if branch in opened else [*opened, branch][:MOST_OPEN]
    state.put("open", " ".join(quote(one, safe="/") for one in now) or _NONE)


def _path(branch: str) -> None:
    above = branch[:-1].rpartition("/")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.code(f"{branch}#", language=None)
        st.button("Up", icon=":material/arrow_upward:", key="up", on_click=_choose, args=("".join(above[:2]) or None,))
        st.button("All topics", key="top", type="tertiary", on_click=_choose, args=(None,))


def _choose(branch: str | None) -> None:
    """Look at another branch; the message that was open lies elsewhere."""
    state.put("under", branch)
    state.put("message", None)
