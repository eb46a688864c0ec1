"""Commits coloured by committer, ownership lanes. In: rows of `reports.protocols.kafka.questions.commits`; out: charts.

A line that only climbs is a healthy partition. Two colours that take turns, or a line that falls, is the fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import altair as alt

from wirewitness.app.dashboard.charts.axes import Domain, time_x
from wirewitness.app.dashboard.charts.theme import (
    BAD,
    LOW,
    QUIET,
    AnyChart,
    clock,
    colours,
    frame,
    pressed_mark,
    shapes,
    with_pressed,
)
from wirewitness.reports.base.formats.words import span
from wirewitness.reports.protocols.kafka.questions.commits import Committer

# How far behind a group was over time. In: rows of `reports.protocols.kafka.questions.lag_history`; out: a chart.

LAG_UNITS = {"messages": "messages of lag", "time": "time lag"}


def lag_lines(rows: Rows, places: Sequence[str], domain: Domain | None = None, unit: str = "messages") -> AnyChart:
    """How far behind each partition was. A band is from the least to the most of a bin, the line how the bin ended.

    rows: of `lag_over_time` with a `place`. unit: of LAG_UNITS. A partition with one bin is a point. A pressed line
    tells its `place`.
    """
    data = frame(lag_points(rows, domain[1] if domain else None), _LAG_COLUMNS)
    base = alt.Chart(data, height=LOW + 60)
    colour = alt.Color(
        "place:N",
        scale=colours(places),
        legend=alt.Legend(title=None, orient="right", symbolOpacity=1, symbolType="stroke"),
    )
    tips = [
        clock(), "place:N", alt.Tooltip("lag:Q", format=",", title="lag at its end"),
        alt.Tooltip("least:Q", format=",", title="least"), alt.Tooltip("most:Q", format=",", title="most"),
        alt.Tooltip("behind:N", title="time lag, at most"), alt.Tooltip("stored:Q", format=","),
        alt.Tooltip("log_end:Q", format=",", title="log end"),
    ]  # fmt: skip
    x = time_x(domain=domain)
    y = _UNIT_AXES[unit]()
    line = with_pressed(
        base.mark_line(interpolate="step-after", cursor="pointer").encode(x, y, colour, tooltip=tips), "place"
    )
    dots = base.mark_point(filled=True, size=45).encode(x, y, colour, tooltip=tips).transform_filter("datum.alone")
    band = base.mark_area(interpolate="step-after", opacity=0.28).encode(x, alt.Y("least:Q"), alt.Y2("most"), colour)
    # A layer without marks is read out as a picture that has no name.
    chart: AnyChart = alt.layer(*([] if unit == "time" else [band]), line, *([dots] if data["alone"].any() else []))
    return chart


_LAG_COLUMNS = ("t", "place", "lag", "least", "most", "stored", "log_end", "behind_s", "behind", "alone")
_SECONDS = (
    "datum.value >= 7200 ? format(datum.value / 3600, ',~r') + ' h' : "
    "datum.value >= 120 ? format(datum.value / 60, ',~r') + ' min' : format(datum.value, ',~r') + ' s'"
)


def lag_points(rows: Rows, until_ms: float | None) -> list[dict[str, Any]]:
    """The rows to draw; the last of each partition once more at `until_ms`, for it stands until then."""
    counts = Counter(row["place"] for row in rows if row["lag"] is not None)
    points = [
        {
            **{name: row[name] for name in ("t", "place", "lag", "least", "most", "stored", "log_end")},
            "behind_s": None if row["behind_ms"] is None else row["behind_ms"] / 1000,
            "behind": "not known" if row["behind_ms"] is None else span(round(row["behind_ms"] * 1e6)),
            "alone": counts[row["place"]] == 1,
        }
        for row in rows
    ]
    last = {point["place"]: point for point in points}
    held = [point for point in last.values() if until_ms is not None and point["t"] < until_ms]
    return points + [{**point, "t": until_ms, "alone": False} for point in held]


_UNIT_AXES: dict[str, Callable[[], alt.Y]] = {
    "messages": lambda: alt.Y("lag:Q", title=LAG_UNITS["messages"], axis=alt.Axis(tickMinStep=1)),
    "time": lambda: alt.Y("behind_s:Q", title=LAG_UNITS["time"], axis=alt.Axis(labelExpr=_SECONDS)),
}


Rows = Sequence[Mapping[str, Any]]
# The height of a chart is that of all of it.
_LEGEND_AND_AXIS_PX = 108
_COLUMNS = ("t", "offset", "committer", "generation", "member", "packet", "kind", "place", "stored", "step", "message")
# The selection of a point, and what it tells: the message.
POINT = "commit"
_PATH = "datum.stored"
_NO_POINT = ("was before", "remains")
_POINT = " && ".join(f"datum.kind != '{kind}'" for kind in _NO_POINT)


def commit_marks(rows: Rows, committers: Sequence[Committer], until_ms: float | None = None) -> list[dict[str, Any]]:
    """Rows to draw: the committer by its name, and what kind of commit it is. rows: in the broker's order.

    until_ms: to there the last stored offset of each partition is carried on.
    """
    names = {committer.identity: committer.name for committer in committers}
    marks = [
        {
            "t": row["t"],
            "offset": row["committed_offset"],
            "committer": names.get((row["client_id"], row["client_address"], row["member_id"]), "unknown"),
            "generation": row["generation"],
            "member": row["member_id"],
            "packet": row["request_packet"],
            "kind": _kind(row),
            "place": f"{row['topic']} {row['partition']}",
            "stored": row["stored"],
            "step": row["step"],
            "message": row["exchange_id"],
        }
        for row in rows
    ]
    last = {mark["place"]: mark for mark in marks if mark["stored"]}
    ends = [mark for mark in last.values() if until_ms is not None and mark["t"] < until_ms]
    return marks + [{**mark, "t": until_ms, "kind": "remains", "step": mark["step"] + 1} for mark in ends]


def _kind(row: Mapping[str, Any]) -> str:
    if row["before"]:
        return "was before"
    if row["refused"]:
        return "refused"
    if row["by_other"]:
        return "went back, not its owner" if row["went_back"] else "not its owner"
    if row["went_back"]:
        return "went back"
    return "forward" if row["stored"] else "no response seen"


def partition_commits(
    rows: Rows, ends: Rows, committers: Sequence[Committer], domain: Domain | None = None, height: int = 300
) -> AnyChart:
    """One partition: every commit as a point, in the colour of who sent it, over the end of the log."""
    data = frame(commit_marks(rows, committers, domain[1] if domain else None), _COLUMNS)
    names = _present(data["committer"], committers)
    selection = alt.selection_point(name=POINT, fields=["message"])
    layers: list[Any] = [_path(domain), *_points(set(data["kind"]), names, committers, domain, selection=selection)]
    if ends:
        until = [{**ends[-1], "t": domain[1]}] if domain and ends[-1]["t"] < domain[1] else []
        log = alt.Chart(frame([*ends, *until])).mark_line(
            strokeDash=[4, 3], color=QUIET, strokeWidth=1.5, interpolate="step-after"
        ).encode(
            time_x(domain=domain), alt.Y("log_end:Q"),
            tooltip=[clock(), alt.Tooltip("log_end:Q", title="log end", format=",")]
        )  # fmt: skip
        layers.insert(0, log)
    chart: AnyChart = alt.layer(*layers, data=data).properties(height=height)
    return chart


def small_commits(rows: Rows, committers: Sequence[Committer], place: str, domain: Domain | None = None) -> AnyChart:
    """One of many small charts, one for each partition: those at fault catch the eye among those that only climb.

    Without a legend, which stands once over all of them. rows: of one partition; place: its name, which a pressed
    point tells as `place`.
    """
    data = frame(commit_marks(rows, committers, domain[1] if domain else None), _COLUMNS)
    names, kinds = [one.name for one in committers], set(data["kind"])
    points = _points(kinds, names, committers, domain, size=22, titled=False, selection=pressed_mark("place"))
    chart: AnyChart = alt.layer(_path(domain, titled=False), *points, data=data).properties(
        height=SMALL_PX[1], title=alt.TitleParams(place, fontSize=11, anchor="middle", offset=4)
    )
    return chart


def committer_colours(committers: Sequence[Committer]) -> dict[str, str]:
    """The colour of each by its name, in every chart of the group."""
    scale = colours([one.name for one in committers])
    return dict(zip(scale.domain, scale.range, strict=True))


# Width and height of a small chart.
SMALL_PX = (268, 150)


def _path(domain: Domain | None, *, titled: bool = True) -> AnyChart:
    """What the broker had stored: its steps in the order of its answers, to the end of the time range."""
    chart: AnyChart = alt.Chart().mark_line(strokeWidth=1, color=QUIET, opacity=0.6, interpolate="step-after").encode(
        time_x(domain=domain, titled=titled),
        alt.Y("offset:Q", title="offset" if titled else None, scale=alt.Scale(zero=False)), order="step:Q",
    ).transform_filter(_PATH)  # fmt: skip
    return chart


def ownership_lanes(
    rows: Rows, committers: Sequence[Committer], members: Mapping[str, str], domain: Domain | None = None
) -> AnyChart:
    """Who owned which partition from when to when. members: member id -> name, in the committers' colours.

    A pressed lane tells the owner's `member`.
    """
    known = {committer.member_id: committer.name for committer in reversed(committers)}  # who came first
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
        .mark_bar(height=11 if len(lanes) <= 12 else 8, clip=True, cursor="pointer")
        .encode(
            time_x(domain=domain), alt.X2("t_end"),
            alt.Y("place:N", sort=lanes, title=None, axis=alt.Axis(labelLimit=220, labelOverlap=False)),
            alt.Color("owner:N", scale=colours(names), legend=alt.Legend(title=None, orient="top", columns=6)),
            tooltip=[clock(title="from"), clock("t_end", "until"), "place:N", "owner:N", "generation:Q", "member:N"],
        )
    )  # fmt: skip
    return with_pressed(chart, "member")


_RINGED = frozenset({"went back", "not its owner", "went back, not its owner"})


def _points(
    kinds: Set[str],
    names: Sequence[str],
    committers: Sequence[Committer],
    domain: Domain | None,
    size: int = 45,
    *,
    titled: bool = True,
    selection: alt.Parameter,
) -> list[AnyChart]:
    """Layers: filled points; a ring around those of somebody who did not own the partition; crosses for refused ones.

    kinds: of the marks that there are. selection: what a pressed point tells.
    """
    # The chart has the data and its layers none: altair writes whole tables out to see whether they are the same.
    base = alt.Chart()
    every = [committer.name for committer in committers]
    colour = alt.Color(
        "committer:N", scale=_scale(every, names),
        legend=alt.Legend(title=None, orient="top", columns=6, symbolType="circle", labelLimit=260) if titled else None,
    )  # fmt: skip
    shape = alt.Shape("committer:N", scale=_scale(every, names, shapes), legend=None)
    tips = [
        # As tooltips and not as texts: of a text altair makes one slowly.
        clock(), alt.Tooltip("committer:N"), alt.Tooltip("offset:Q", format=","), alt.Tooltip("generation:Q"),
        alt.Tooltip("kind:N"), alt.Tooltip("packet:Q", format="d"), alt.Tooltip("member:N"), alt.Tooltip("place:N"),
    ]  # fmt: skip
    place = (time_x(domain=domain, titled=titled), alt.Y("offset:Q"))
    ring = base.mark_point(size=size * 3.2, color=BAD, strokeWidth=1.3, filled=False, opacity=0.9).encode(
        *place, tooltip=tips
    ).transform_filter(alt.FieldOneOfPredicate("kind", sorted(_RINGED)))  # fmt: skip
    kept = (
        base.mark_point(filled=True, size=size, opacity=0.95, cursor="pointer")
        .encode(*place, colour, shape, tooltip=tips)
        .add_params(selection)
    )
    refused = base.mark_point(shape="cross", size=size * 1.6, filled=True, angle=45).encode(
        *place, colour, tooltip=tips
    )  # fmt: skip
    # A layer without marks is read out as a picture that has no name; but that of the selection has to be there.
    layers: list[AnyChart] = [ring] if kinds & _RINGED else []
    layers.append(kept.transform_filter(f"datum.kind != 'refused' && {_POINT}"))
    if "refused" in kinds:
        layers.append(refused.transform_filter("datum.kind == 'refused'"))
    return layers


def _present(column: Any, committers: Sequence[Committer]) -> list[str]:
    found = set(column)
    return [committer.name for committer in committers if committer.name in found]


def _scale(every: Sequence[str], present: Sequence[str], make: Any = colours) -> alt.Scale:
    """The scale of all committers cut down to those that are drawn: colours stay, the legend is short."""
    whole = make(every)
    kept = {name: value for name, value in zip(whole.domain, whole.range, strict=True) if name in set(present)}
    return alt.Scale(domain=list(kept), range=list(kept.values()))
