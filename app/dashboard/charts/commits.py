"""Commits coloured by committer, ownership lanes, lag. In: rows of `reports.questions.commits`; out: charts.

A line that only climbs is a healthy partition. Two colours that take turns, or a line that falls, is the fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from app.dashboard.charts.theme import BAD, LOW, QUIET, AnyChart, clock, colours, frame, shapes, time_x
from reports.questions.commits import Committer

Rows = Sequence[Mapping[str, Any]]
# The height of a chart is that of all of it.
_LEGEND_AND_AXIS_PX = 84
_COLUMNS = ("t", "offset", "committer", "generation", "member", "packet", "kind", "place")


def commit_marks(rows: Rows, committers: Sequence[Committer]) -> list[dict[str, Any]]:
    """Rows to draw: the committer by its name, and what kind of commit it is."""
    names = {committer.identity: committer.name for committer in committers}
    return [
        {
            "t": row["t"],
            "offset": row["committed_offset"],
            "committer": names.get((row["client_id"], row["client_address"], row["member_id"]), "unknown"),
            "generation": row["generation"],
            "member": row["member_id"],
            "packet": row["request_packet"],
            "kind": _kind(row),
            "place": f"{row['topic']} {row['partition']}",
        }
        for row in rows
    ]


def _kind(row: Mapping[str, Any]) -> str:
    if row["refused"]:
        return "refused"
    if row["by_other"]:
        return "went back, not its owner" if row["went_back"] else "not its owner"
    return "went back" if row["went_back"] else "forward"


def partition_commits(rows: Rows, ends: Rows, committers: Sequence[Committer], height: int = 300) -> AnyChart:
    """One partition: every commit as a point, in the colour of who sent it, over the end of the log."""
    data = frame(commit_marks(rows, committers), _COLUMNS)
    names = _present(data["committer"], committers)
    base = alt.Chart(data)
    path = base.mark_line(strokeWidth=1, color=QUIET, opacity=0.6, interpolate="step-after").encode(
        time_x(), alt.Y("offset:Q", title="offset", scale=alt.Scale(zero=False)), order="t:Q"
    ).transform_filter("datum.kind != 'refused'")  # fmt: skip
    layers: list[Any] = [path, _points(base, names, committers)]
    if ends:
        log = alt.Chart(frame(ends)).mark_line(strokeDash=[4, 3], color=QUIET, strokeWidth=1.5).encode(
            time_x(), alt.Y("log_end:Q"), tooltip=[clock(), alt.Tooltip("log_end:Q", title="log end", format=",")]
        )  # fmt: skip
        layers.insert(0, log)
    chart: AnyChart = alt.layer(*layers).properties(height=height)
    return chart


def group_commits(rows: Rows, committers: Sequence[Committer], places: Sequence[str], columns: int) -> AnyChart:
    """Small charts, one for each partition: the ones at fault catch the eye among those that only climb."""
    data = frame(commit_marks(rows, committers), _COLUMNS)
    data = data[data["place"].isin(list(places))]
    names = _present(data["committer"], committers)
    base = alt.Chart(data)
    path = base.mark_line(strokeWidth=1, color=QUIET, opacity=0.55, interpolate="step-after").encode(
        time_x(), alt.Y("offset:Q", title=None, scale=alt.Scale(zero=False)), order="t:Q"
    ).transform_filter("datum.kind != 'refused'")  # fmt: skip
    width = {1: 880, 2: 420, 3: 268}[columns]
    layered: Any = alt.layer(path, _points(base, names, committers, size=22)).properties(width=width, height=110)
    chart: AnyChart = layered.facet(
        facet=alt.Facet("place:N", sort=list(places), title=None, header=alt.Header(labelFontWeight="bold")),
        columns=columns,
    ).resolve_scale(y="independent")  # fmt: skip
    return chart


def ownership_lanes(rows: Rows, committers: Sequence[Committer], members: Mapping[str, str]) -> AnyChart:
    """Who owned which partition from when to when. members: member id -> name, in the committers' colours."""
    known = {committer.member_id: committer.name for committer in committers}
    data = frame(
        [
            {"t": row["t"], "t_end": row["t_end"], "place": f"{row['topic']} {row['partition']}",
             "owner": known.get(row["member_id"]) or members.get(row["member_id"], row["member_id"]),
             "generation": row["generation"], "member": row["member_id"]}
            for row in rows
        ],
        ("t", "t_end", "place", "owner", "generation", "member"),
    )  # fmt: skip
    names = [c.name for c in committers]
    names += [name for name in dict.fromkeys(data["owner"]) if name not in names]
    lanes = list(dict.fromkeys(f"{row['topic']} {row['partition']}" for row in rows))
    chart: AnyChart = (
        alt.Chart(data, height=(18 if len(lanes) <= 12 else 13) * len(lanes) + _LEGEND_AND_AXIS_PX)
        .mark_bar(height=11 if len(lanes) <= 12 else 8)
        .encode(
            time_x(), alt.X2("t_end"),
            alt.Y("place:N", sort=lanes, title=None, axis=alt.Axis(labelLimit=220, labelOverlap=False)),
            alt.Color("owner:N", scale=colours(names), legend=alt.Legend(title=None, orient="top", columns=6)),
            tooltip=[clock(title="from"), clock("t_end", "until"), "place:N", "owner:N", "generation:Q", "member:N"],
        )
    )  # fmt: skip
    return chart


def lag_lines(rows: Rows, places: Sequence[str]) -> AnyChart:
    """Messages between the stored offset and the end of the log, over time."""
    chart: AnyChart = (
        alt.Chart(frame(rows, ("t", "place", "lag")), height=LOW + 60)
        .mark_line(interpolate="step-after")
        .encode(
            time_x(), alt.Y("lag:Q", title="messages behind"),
            alt.Color("place:N", scale=colours(places), legend=alt.Legend(title=None, orient="right")),
            tooltip=[clock(), "place:N", alt.Tooltip("lag:Q", format=",")],
        )
    )  # fmt: skip
    return chart


def _points(base: alt.Chart, names: Sequence[str], committers: Sequence[Committer], size: int = 45) -> AnyChart:
    """Filled points; a ring around those of somebody who did not own the partition; crosses for refused ones."""
    every = [committer.name for committer in committers]
    colour = alt.Color(
        "committer:N", scale=_scale(every, names),
        legend=alt.Legend(title=None, orient="top", columns=6, symbolType="circle", labelLimit=260),
    )  # fmt: skip
    shape = alt.Shape("committer:N", scale=_scale(every, names, shapes), legend=None)
    tips = [
        clock(), "committer:N", alt.Tooltip("offset:Q", format=","), alt.Tooltip("generation:Q"), "kind:N",
        alt.Tooltip("packet:Q", format="d"), "member:N", "place:N",
    ]  # fmt: skip
    place = (time_x(), alt.Y("offset:Q"))
    ring = base.mark_point(size=size * 3.2, color=BAD, strokeWidth=1.3, filled=False, opacity=0.9).encode(
        *place, tooltip=tips
    ).transform_filter("datum.kind != 'refused' && datum.kind != 'forward'")  # fmt: skip
    kept = base.mark_point(filled=True, size=size, opacity=0.95).encode(*place, colour, shape, tooltip=tips)
    refused = base.mark_point(shape="cross", size=size * 1.6, filled=True, angle=45).encode(
        *place, colour, tooltip=tips
    )  # fmt: skip
    chart: AnyChart = alt.layer(
        ring,
        kept.transform_filter("datum.kind != 'refused'"),
        refused.transform_filter("datum.kind == 'refused'"),
    )
    return chart


def _present(column: Any, committers: Sequence[Committer]) -> list[str]:
    found = set(column)
    return [committer.name for committer in committers if committer.name in found]


def _scale(every: Sequence[str], present: Sequence[str], make: Any = colours) -> alt.Scale:
    """The scale of all committers cut down to those that are drawn: colours stay, the legend is short."""
    whole = make(every)
    kept = {name: value for name, value in zip(whole.domain, whole.range, strict=True) if name in set(present)}
    return alt.Scale(domain=list(kept), range=list(kept.values()))
