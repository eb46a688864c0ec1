"""Topics: what moves through them, where their partitions lie, who writes and reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.charts.bars import time_bars
from wirewitness.app.dashboard.charts.theme import PALETTE, QUIET, pressed_in_chart
from wirewitness.app.dashboard.few_rows import grid
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import empty, heading, line
from wirewitness.app.dashboard.views.exchange_filters import about_partition, exchange_filters
from wirewitness.app.dashboard.views.kafka_group_list import group_key
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.timelines import domain_ms, width_of
from wirewitness.reports.base.questions.wanted_exchanges import named_exactly
from wirewitness.reports.protocols.kafka.questions.groups import groups
from wirewitness.reports.protocols.kafka.questions.topics import data_rates, partitions_of
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

_TOPICS_COLOURED = 8
_OTHERS = "all others"
_GROUPS = (
    Column("group_id", "Group"),
    Column("partitions", "Partitions", "count"),
    Column("lag", "Lag", "offset"),
    Column("most", "Most on one partition", "offset"),
)


def show(view: View) -> None:
    """The page."""
    heading("Kafka topics")
    _rates(view)
    st.subheader("Topics", anchor=False)
    topics = VIEWS["topics"][""]
    chosen = paged_table(
        view.source, "topics", topics.sql, topics.on_page, order="-bytes_written", noun="topic", search=("topic",),
        select=True, keep=("topic", "cluster_id"), marked=state.value("topic"),
    )  # fmt: skip
    if chosen is not None:
        state.put("cluster", chosen["cluster_id"])
    topic, cluster = state.kept("topic", chosen["topic"] if chosen else None), state.value("cluster")
    if not topic:
        line("Choose a row to see its partitions.", "quiet")
        return
    heading(topic)
    view.link("exchanges", "Its exchanges", "", ":material/list:", **exchange_filters(named=named_exactly(topic)))
    partition = paged_table(
        view.source, "partitions", partitions_of(cluster or None, topic), VIEWS["topics"]["partitions"].on_page,
        order="partition", noun="partition", select=True,
    )  # fmt: skip
    if partition is not None:
        view.go("exchanges", **about_partition({**partition, "topic": topic}))
    _groups(view, cluster or None, topic)


def _groups(view: View, cluster: str | None, topic: str) -> None:
    """Groups that have offsets of the topic, and how far behind they are at the end of the selected time."""
    rows: list[dict[str, Any]] = []
    for group in groups(view.source.up_to_its_end()):
        own = [one for one in group.partitions if one.topic == topic and group.cluster_id == cluster]
        if own:
            lags = [one.lag for one in own if one.lag is not None]
            rows.append({"group_id": group.group_id, "cluster_id": group.cluster_id, "partitions": len(own),
                         "lag": sum(lags) if lags else None, "most": max(lags, default=None)})  # fmt: skip
    if not rows:
        return
    st.subheader("Groups that read it", anchor=False)
    worst = sorted(rows, key=lambda row: -(row["lag"] or 0))
    place = grid("groups", worst, _GROUPS, "group", select=True)
    if place is not None:
        key = group_key(worst[place]["cluster_id"], worst[place]["group_id"])
        view.go("kafka-groups", group=key, partition=None)
    line("A row opens the group.", "quiet")


def _rates(view: View) -> None:
    one, two = st.columns([3, 2])
    with one:
        side = boxes.segments(
            "Direction",
            "side",
            {"written": "Written", "read": "Read by clients", "replicated": "Replicated by brokers"},
        )
    with two:
        unit = boxes.segments("Unit", "unit", {"records": "Records", "bytes": "Bytes"})
    width = width_of(view.source)
    rows = data_rates(view.source, side, width)
    if not any(row[unit] for row in rows):
        empty("Nothing moved this way in the selected time.")
        return
    colours, shown = _largest(rows, unit)
    title = "records/s" if unit == "records" else "bytes/s"
    chart = time_bars(
        shown, width, kind="topic", value=unit, colours=colours, title=title, per_second=True,
        domain=domain_ms(view.source), opens=True,
    )  # fmt: skip
    bar = pressed_in_chart(chart, "rates", "Records or bytes per second by topic")
    if bar is not None and bar["kind"] != _OTHERS:
        state.put("topic", bar["kind"])
        state.put("cluster", None)
        st.rerun()


def _largest(rows: Sequence[Mapping[str, Any]], unit: str) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Colours of the topics with most, and the rows with all other topics put together."""
    totals: dict[str, int] = {}
    for row in rows:
        totals[row["topic"]] = totals.get(row["topic"], 0) + (row[unit] or 0)
    named = sorted(totals, key=lambda topic: (-totals[topic], topic))[:_TOPICS_COLOURED]
    colours = {topic: PALETTE[number] for number, topic in enumerate(named)}
    if len(totals) > len(named):
        colours[_OTHERS] = QUIET
    sums: dict[tuple[float, str], int] = {}
    for row in rows:
        key = (row["t"], row["topic"] if row["topic"] in colours else _OTHERS)
        sums[key] = sums.get(key, 0) + (row[unit] or 0)
    return colours, [{"t": t, "topic": topic, unit: number} for (t, topic), number in sums.items()]
