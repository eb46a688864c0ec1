"""Groups, and one of them: who committed what over whom, who owned what, how far behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from markupsafe import Markup

from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.charts.axes import Domain
from wirewitness.app.dashboard.charts.commits import (
    SMALL_PX,
    committer_colours,
    lag_lines,
    ownership_lanes,
    partition_commits,
    small_commits,
)
from wirewitness.app.dashboard.charts.theme import pressed_in_chart
from wirewitness.app.dashboard.few_rows import grid
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.shown_findings import known
from wirewitness.app.dashboard.sidebar_times import moment_words
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.text import dot, empty, facts, heading, html, line
from wirewitness.app.dashboard.text import show as show_markup
from wirewitness.app.dashboard.views.exchange_filters import about_partition, client_text
from wirewitness.app.dashboard.views.finding import COMMITS_LEGEND, show_commit
from wirewitness.app.dashboard.views.findings import finding_cards
from wirewitness.app.dashboard.views.kafka_group_list import choose_group, listed_groups
from wirewitness.app.dashboard.views.kafka_share_group import show_share_group
from wirewitness.app.dashboard.views.kafka_stored import show_stored
from wirewitness.app.dashboard.views.message import show_exchange
from wirewitness.app.dashboard.workload_column import with_owners
from wirewitness.reports.base.questions.causes import causes
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.base.questions.source import rows as rows_of
from wirewitness.reports.base.questions.timelines import domain_ms, width_of
from wirewitness.reports.protocols.kafka.questions.commits import (
    Committer,
    commit_counts,
    commits,
    committers,
    log_ends,
    owners,
    partitions_by_suspicion,
)
from wirewitness.reports.protocols.kafka.questions.group_list import group_states
from wirewitness.reports.protocols.kafka.questions.groups import Group, group_told, groups
from wirewitness.reports.protocols.kafka.questions.lag_history import lag_over_time
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS
from wirewitness.reports.protocols.kafka.sections.view import state_line

_THINNED = " Of many commits, the lowest and the highest of each moment are drawn."
_CHARTS_SHOWN = 12
# Small charts side by side: more points than that only make the browser slow.
_POINTS_OF_ALL = 1500
_NAMES_SHOWN = 30
_LANES_SHOWN = 40
_LAG_LINES = 10
_LAG_LEGEND = {
    "messages": "From the committed offset, or the log start where that is further on, to the end of the log. A band "
    "goes from the least to the most of a moment, the line is how it ended.",
    "time": "How long the record at the committed offset had been in the log, at the worst of each moment. No line "
    "where the capture does not show when it was written.",
}
_PARTITIONS = VIEWS["groups"][""].on_page
MEMBERS, CHANGES = "members", "changes"
_MEMBERS = VIEWS["groups"][MEMBERS].on_page
_CHANGES = VIEWS["groups"][CHANGES].on_page


def show(view: View) -> None:
    """The page: every group in a row, and all about the chosen one; without a choice that is the worst."""
    heading("Kafka groups")
    # How a group stands at the end of the time range follows from all that was told before.
    at_end = view.source.up_to_its_end()
    every = groups(at_end)
    listed = listed_groups(view.source, at_end, every)
    if not listed:
        empty("No group joined, committed or read in the selected time.")
        show_stored(view.source)
        return
    row = choose_group(listed)
    heading(row["group_id"] or "(no name)")
    group = next(
        (one for one in every if (one.cluster_id, one.group_id) == (row["cluster_id"], row["group_id"])),
        Group(row["cluster_id"], row["group_id"], (), ()),
    )
    line(" ".join(state_line(told, _since(told)) for told in _state_of(at_end, group)), "quiet")
    if row["type"] == "share":
        show_share_group(view, at_end, group)
    else:
        _show_consumer_group(view, at_end, group)
    show_stored(view.source)


def _show_consumer_group(view: View, at_end: Selected, group: Group) -> None:
    who = committers(view.source, group.cluster_id, group.group_id)
    counts = commit_counts(view.source, group.cluster_id, group.group_id)
    _facts(view.source, group, who, counts)
    _commits(view, group, who)
    own = [f for f in known(view.source).findings if str(f.numbers.get("group")) == group.group_id]
    if own:
        st.subheader("Findings about this group", anchor=False)
        finding_cards(view, causes(own)[:3])
    _lanes(view, group, who)
    _lag(view, group)
    _tables(view, at_end, group, who, counts)


def of_group(source: Selected, cluster_id: str | None, group_id: str | None, flag: str) -> list[dict[str, Any]]:
    """The rows of a view of `groups` that are about this one."""
    found = rows_of(source, view_sql(VIEWS["groups"][flag], column="group_id", names=(group_id or "",)))
    return [row for row in found if row["cluster_id"] == cluster_id]


def _since(row: Mapping[str, Any]) -> str:
    since: int = row["ts_since"].value  # Unix ns
    return f"{moment_words(since, state.dated())} UTC"


def _state_of(source: Selected, group: Group) -> list[dict[str, Any]]:
    """Its row of all groups' states, which the list has asked for."""
    return [
        row
        for row in group_states(source)
        if (row["cluster_id"], row["group_id"]) == (group.cluster_id, group.group_id)
    ]


def _facts(source: Selected, group: Group, who: Sequence[Committer], counts: Sequence[Mapping[str, Any]]) -> None:
    """What happened in the time range, and how the group stands at its end."""
    lags = [p.lag for p in group.partitions if p.lag is not None]
    from_ns = source.options.from_ns or 0
    members = [member for member in group.members if member.last_ns >= from_ns]
    generations = [m.last_generation for m in group.members if m.last_generation is not None]
    foreign = sum(one.foreign_commits for one in who)
    refused = sum(row["refused"] for row in counts)
    facts(
        {
            "members seen": f"{len(members):,}",
            "newest generation": max(generations, default=None),
            "partitions": f"{len(group.partitions):,}",
            "commits": f"{sum(row['accepted'] for row in counts):,}",
            "refused": f"{refused:,}",
            "not by the owner": f"{foreign:,}",
            "messages of lag": f"{sum(lags):,}" if lags else "unknown",
        },
        {"not by the owner": "critical" if foreign else "plain", "refused": "warning" if refused else "plain"},
    )


def _commits(view: View, group: Group, who: Sequence[Committer]) -> None:
    """All partitions side by side, or one in full."""
    suspects = partitions_by_suspicion(view.source, group.cluster_id, group.group_id)
    if not suspects:
        return
    places = {f"{row['topic']} {row['partition']}": (row["topic"], row["partition"]) for row in suspects}
    title, box = st.columns([5, 3], vertical_alignment="bottom")
    with title:
        st.subheader("Commits by client", anchor=False)
    with box:
        chosen = boxes.choice("Partition", "partition", list(places), none="All partitions", hide_label=True)
    domain = domain_ms(view.source)
    if chosen or len(places) == 1:
        chosen = chosen or next(iter(places))
        rows, thinned = commits(view.source, group.cluster_id, group.group_id, [places[chosen]])
        ends = log_ends(view.source, group.cluster_id, places[chosen], width_of(view.source))
        show_commit(view.source, partition_commits(rows, ends, who, domain, 360))
    else:
        shown = list(places)[:_CHARTS_SHOWN]
        rows, thinned = commits_of_all(view.source, group.cluster_id, group.group_id, [*places.values()])
        _small_charts(rows, who, shown, domain)
        if len(places) > len(shown):
            line(f"The {len(shown)} partitions that look worst of {len(places)}; the box names them all.", "quiet")
    line(COMMITS_LEGEND + (_THINNED if thinned else ""), "quiet")


def commits_of_all(
    source: Source, cluster_id: str | None, group_id: str | None, places: Sequence[tuple[str, int]]
) -> tuple[list[dict[str, Any]], bool]:
    """Commits for the small charts, of the first of these partitions; see `commits`."""
    return commits(source, cluster_id, group_id, places[:_CHARTS_SHOWN], _POINTS_OF_ALL)


def _small_charts(
    rows: Sequence[Mapping[str, Any]], who: Sequence[Committer], places: Sequence[str], domain: Domain | None
) -> None:
    """One for each partition, as many side by side as the page has room for."""
    by_place: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_place.setdefault(f"{row['topic']} {row['partition']}", []).append(row)
    seen = {(row["client_id"], row["client_address"], row["member_id"]) for row in rows}
    colours = committer_colours(who)
    names = [one.name for one in who if one.identity in seen]
    show_markup(
        Markup(" ").join(html("{dot}{name} ", dot=dot(colours[name]), name=name) for name in names[:_NAMES_SHOWN])
    )
    with st.container(horizontal=True, gap="small"):
        for number, place in enumerate(places):
            chart = small_commits(by_place.get(place, []), who, place, domain)
            key = f"small-{number}"
            if pressed_in_chart(chart, key, "Commits of one partition, by client", SMALL_PX[0]) is not None:
                _open_partition(place)


def _open_partition(place: str) -> None:
    """The commits of one partition in full."""
    state.put("partition", place)
    st.rerun()


def _lanes(view: View, group: Group, who: Sequence[Committer]) -> None:
    domain = domain_ms(view.source)
    told = owners(view.source, group.cluster_id, group.group_id)
    rows = [row for row in told if row["partition"] is not None]  # a member may be told that it owns nothing
    if domain is not None:
        rows = [row for row in rows if row["t_end"] >= domain[0] and row["t"] <= domain[1]]
    if not rows:
        return
    st.subheader("Who owned which partition", anchor=False)
    lanes = list(dict.fromkeys((row["topic"], row["partition"]) for row in rows))
    names = {m.member_id: m.client_id or m.member_id for m in group.members if m.member_id}
    drawn = set(lanes[:_LANES_SHOWN])
    shown = [row for row in rows if (row["topic"], row["partition"]) in drawn]
    lane = pressed_in_chart(ownership_lanes(shown, who, names, domain), "owners", "Owner of each partition over time")
    if lane is not None:
        owner = next((member for member in group.members if member.member_id == lane["member"]), None)
        if owner is not None:
            view.go("clients", who=client_text({"client_id": owner.client_id, "client_address": owner.client_address}))
    left_out = f" The first {_LANES_SHOWN} of {len(lanes)} partitions." if len(lanes) > len(drawn) else ""
    line(f"A lane ends with the last that its owner was heard of.{left_out}", "quiet")


def _lag(view: View, group: Group) -> None:
    rows = lag_over_time(view.source, group.cluster_id, group.group_id, width_of(view.source))
    worst: dict[str, int] = {}
    for row in rows:
        row["place"] = f"{row['topic']} {row['partition']}"
        if row["most"] is not None:
            worst[row["place"]] = max(worst.get(row["place"], 0), row["most"])
    if not worst:
        return
    title, box = st.columns([5, 3], vertical_alignment="bottom")
    with title:
        st.subheader("Lag", anchor=False)
    with box:
        unit = boxes.segments("Unit of lag", "behind", {"messages": "Messages", "time": "Time"})
    kept = sorted(worst, key=lambda place: -worst[place])[:_LAG_LINES]
    drawn = [row for row in rows if row["place"] in kept]
    behind = pressed_in_chart(
        lag_lines(drawn, kept, domain_ms(view.source), unit), "lag", "Lag of partitions over time"
    )
    if behind is not None:
        _open_partition(behind["place"])
    line(_LAG_LEGEND[unit], "quiet")
    if len(worst) > len(kept):
        line(f"The {len(kept)} partitions with the largest lag of {len(worst)}.", "quiet")


def _tables(
    view: View, at_end: Selected, group: Group, who: Sequence[Committer], counts: Sequence[Mapping[str, Any]]
) -> None:
    names = {m.member_id or "": m.client_id for m in group.members}
    ranged = view.source.options.from_ns is not None or view.source.options.to_ns is not None
    if group.partitions:
        st.subheader("Partitions", anchor=False)
        if ranged:
            line(
                "Offsets, lag and owners as they were at the end of the selected time; commits are those in it.",
                "quiet",
            )
        own = {(row["topic"], row["partition"]): row for row in counts}
        states = sorted(group.partitions, key=lambda p: (p.committers < 2, -(p.lag or 0), p.topic or "", p.partition))
        rows = [
            {column.name: getattr(p, column.name, None) for column in _PARTITIONS}
            | {"owner": names.get(p.owner_member_id or "") or p.owner_member_id}
            | {name: own.get((p.topic, p.partition), {}).get(name, 0) for name in ("accepted", "refused", "committers")}
            for p in states
        ]
        place = grid("partitions", rows, _PARTITIONS, "partition", select=True)
        if place is not None:
            view.go("exchanges", **about_partition(rows[place], group.group_id))
    if group.members:
        st.subheader("Members", anchor=False)
        foreign = {one.member_id: one.foreign_commits for one in who}
        rows = [
            row | {"foreign": foreign.get(row["member_id"], 0)}
            for row in of_group(at_end, group.cluster_id, group.group_id, MEMBERS)
        ]
        member = grid("members", rows, with_owners(view.source, _MEMBERS), "member", select=True)
        if member is not None:
            view.go("clients", who=client_text(rows[member]))
        line("A row of partitions opens the group's requests about it, one of members all about the member.", "quiet")
    changes = of_group(at_end, group.cluster_id, group.group_id, CHANGES)
    if changes:
        st.subheader("States", anchor=False)
        _states(view, group, changes)


def _states(view: View, group: Group, changes: Sequence[Mapping[str, Any]]) -> None:
    """A row opens the exchange that told the state."""
    begins = [str(row["ts"].value) for row in changes]  # Unix ns
    chosen = state.value("change")
    place = grid("states", changes, _CHANGES, "state", select=True,
                 marked=begins.index(chosen) if chosen in begins else None)  # fmt: skip
    told = state.kept("change", begins[place] if place is not None else None)
    exchange = group_told(view.source, group.cluster_id, group.group_id, int(told)) if told in begins else None
    if exchange is not None:
        show_exchange(view.source.opened, exchange, "state")
    else:
        line("A row opens the request and response that reported the state.", "quiet")
