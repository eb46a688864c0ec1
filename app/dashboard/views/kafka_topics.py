"""Topics: what moves through them, where their partitions lie, who writes and reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.dashboard import state
from app.dashboard.charts.bars import time_bars
from app.dashboard.charts.theme import PALETTE, QUIET, show_chart
from app.dashboard.state import View
from app.dashboard.tables import paged_table
from app.dashboard.text import empty, heading, line
from reports.questions.kafka_topics import data_rates, partitions_of
from reports.questions.kafka_views import VIEWS
from reports.questions.timelines import domain_ms, width_of

_TOPICS_COLOURED = 8
_OTHERS = "all others"


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
    paged_table(
        view.source, "partitions", partitions_of(cluster or None, topic), VIEWS["topics"]["partitions"].on_page,
        order="partition", noun="partition",
    )  # fmt: skip


def _rates(view: View) -> None:
    one, two = st.columns([1, 1])
    with one:
        side = state.segments(
            "Direction",
            "side",
            {"written": "Written", "read": "Read by clients", "replicated": "Replicated by brokers"},
        )
    with two:
        unit = state.segments("Unit", "unit", {"records": "Records", "bytes": "Bytes"})
    width = width_of(view.source)
    rows = data_rates(view.source, side, width)
    if not any(row[unit] for row in rows):
        empty("Nothing moved this way in the selected time.")
        return
    colours, shown = _largest(rows, unit)
    title = "records/s" if unit == "records" else "bytes/s"
    chart = time_bars(
        shown, width, kind="topic", value=unit, colours=colours, title=title, per_second=True,
        domain=domain_ms(view.source),
    )  # fmt: skip
    show_chart(chart, describe="Records or bytes per second by topic")


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
