"""Commits of consumer groups over time: who stored which offset, who owned the partition, where the log ended.

In: a source; out: rows to draw, thinned out by DuckDB where there are too many. Times `t` are Unix ms (floats).
A committer is an identity: client id, address, member id; its number in the group is the order of first commits in the
whole capture, so that it keeps its colour whatever is selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analyser.registry.queries import literal
from reports.questions.source import Source, all_rows, rows

POINTS = 4000

_COMMITTERS = """
    select client_id, client_address, member_id, count(*) as commits,
           count(*) filter (owner_member_id is not null and owner_member_id <> member_id) as foreign_commits,
           min(generation) filter (generation >= 0) as first_generation,
           max(generation) filter (generation >= 0) as last_generation,
           count(*) filter (error_code <> 0) as refused,
           count(distinct (coalesce(topic, topic_id), partition)) as partitions,
           epoch_ns(min(ts)) as first_ns, epoch_ns(max(ts)) as last_ns
    from kafka_offset_commits where {group}
    group by client_id, client_address, member_id order by first_ns, client_id, client_address, member_id"""

_OWN_COMMITS = """
    with own as (
        select epoch_ns(ts) / 1e6 as t, coalesce(topic, topic_id) as topic, partition, committed_offset,
               client_id, client_address, member_id, generation, coalesce(error_code, 0) <> 0 as refused,
               owner_member_id is not null and member_id is not null and owner_member_id <> member_id as by_other,
               coalesce(error_code, 0) = 0 and committed_offset < max(committed_offset)
                   filter (coalesce(error_code, 0) = 0) over (partition by coalesce(topic, topic_id), partition
                   order by ts, request_packet rows between unbounded preceding and 1 preceding) as went_back,
               request_packet
        from kafka_offset_commits where {group} and {place})"""

_COMMITS = _OWN_COMMITS + " select * from own order by t, topic, partition"

# Of many commits the lowest and the highest of each committer in each bin of time tell the same story.
_THINNED_COMMITS = (
    _OWN_COMMITS
    + """,
    binned as (
        select floor(t / {width_ms}) as bin, topic, partition, client_id, client_address, member_id, refused, by_other,
               went_back, min_by(one, committed_offset) as lowest, max_by(one, committed_offset) as highest
        from (select *, struct_pack(t := t, o := committed_offset, g := generation, p := request_packet) as one
              from own)
        group by all),
    ends as (select * exclude (lowest, highest), lowest as one from binned
             union select * exclude (lowest, highest), highest from binned)
    select one.t as t, topic, partition, one.o as committed_offset, client_id, client_address, member_id,
           one.g as generation, refused, by_other, went_back, one.p as request_packet
    from ends order by t, topic, partition"""
)

_COMMIT_COUNT = """
    select count(*) as n, epoch_ns(min(ts)) as first_ns, epoch_ns(max(ts)) as last_ns,
           count(distinct (coalesce(topic, topic_id), partition, client_id, client_address, member_id)) as kinds
    from kafka_offset_commits where {group} and {place}"""

_LOG_ENDS = """
    with ends as (
        select epoch_ns(coalesce(ts_response, ts)) / 1e6 as t, topic, partition, high_watermark as log_end
        from kafka_fetch_partitions where high_watermark >= 0 and {cluster} and {topics}
        union all
        select epoch_ns(ts) / 1e6, topic, partition, "offset" from kafka_list_offsets
        where timestamp = -1 and "offset" >= 0 and {cluster} and {topics})
    select floor(t / {width_ms}) * {width_ms} as t, topic, partition, max(log_end) as log_end
    from ends group by all order by all"""

_OWNERS = """
    with told as (
        select epoch_ns(ts) / 1e6 as t, member_id, topic, partition, generation from kafka_assignments
        where {group}),
    changes as (
        select *, lead(t) over (partition by topic, partition order by t) as t_end,
               lag(member_id) over (partition by topic, partition order by t) as before,
               lag(generation) over (partition by topic, partition order by t) as generation_before
        from told),
    starts as (
        select * from changes
        where before is distinct from member_id or generation_before is distinct from generation)
    select t, coalesce(lead(t) over (partition by topic, partition order by t), {last_ms}) as t_end,
           topic, partition, member_id, generation
    from starts order by topic, partition, t"""


@dataclass(frozen=True, slots=True)
class Committer:
    """Who committed for a group. name: short and unlike the others'; `*_ns` are Unix times."""

    name: str
    client_id: str | None
    client_address: str | None
    member_id: str | None
    commits: int
    foreign_commits: int
    refused: int
    partitions: int
    first_generation: int | None
    last_generation: int | None
    first_ns: int
    last_ns: int

    @property
    def identity(self) -> tuple[str | None, str | None, str | None]:
        """Client id, address, member id."""
        return self.client_id, self.client_address, self.member_id


def committers(source: Source, cluster_id: str | None, group_id: str | None) -> list[Committer]:
    """Everybody who committed for the group in the capture, in the order of their first commits."""
    found = all_rows(source, _COMMITTERS.format(group=of_group(cluster_id, group_id)))
    names = _names([(row["client_id"], row["client_address"], row["member_id"]) for row in found])
    return [Committer(name, **row) for name, row in zip(names, found, strict=True)]


def commits(
    source: Source,
    cluster_id: str | None,
    group_id: str | None,
    places: Sequence[tuple[str, int]] = (),
    points: int = POINTS,
) -> tuple[list[dict[str, Any]], bool]:
    """Commits of a group, of these topics and partitions where some are named, and whether rows were left out.

    t, topic, partition, committed_offset, client_id, client_address, member_id, generation, refused, by_other (the
    partition belonged to another member), went_back (a higher offset was sent before), request_packet.
    """
    where = {"group": of_group(cluster_id, group_id), "place": of_places(places)}
    known = rows(source, _COMMIT_COUNT.format(**where))[0]
    if known["n"] <= points:
        return rows(source, _COMMITS.format(**where)), False
    bins = max(points // (2 * known["kinds"]), 10)
    width_ms = max((known["last_ns"] - known["first_ns"]) / 1e6 / bins, 0.001)
    return rows(source, _THINNED_COMMITS.format(**where, width_ms=width_ms)), True


def log_ends(
    source: Source, cluster_id: str | None, topics: list[str], width_ms: float, place: tuple[str, int] | None = None
) -> list[dict[str, Any]]:
    """t, topic, partition, log_end: the highest end of the log that a broker told in each bin."""
    listed = ", ".join(literal(topic) for topic in topics) or "''"
    chosen = f"topic in ({listed})"
    if place is not None:
        chosen = f"topic = {literal(place[0])} and partition = {int(place[1])}"
    return rows(source, _LOG_ENDS.format(cluster=_same("cluster_id", cluster_id), topics=chosen, width_ms=width_ms))


def owners(source: Source, cluster_id: str | None, group_id: str | None, last_ns: int) -> list[dict[str, Any]]:
    """t, t_end, topic, partition, member_id, generation: who was told to own what, until the next one was."""
    return all_rows(source, _OWNERS.format(group=of_group(cluster_id, group_id), last_ms=last_ns / 1e6))


def of_group(cluster_id: str | None, group_id: str | None) -> str:
    """An SQL condition for rows of the group."""
    return f"{_same('cluster_id', cluster_id)} and {_same('group_id', group_id)}"


def of_places(places: Sequence[tuple[str, int]]) -> str:
    """An SQL condition for rows of these topics and partitions; all rows where none is named."""
    if not places:
        return "true"
    same = (_same("coalesce(topic, topic_id)", topic) for topic, _ in places)
    listed = (f"({topic} and partition = {int(place[1])})" for topic, place in zip(same, places, strict=True))
    return f"({' or '.join(listed)})"


def _same(column: str, value: str | None) -> str:
    return f"{column} is null" if value is None else f"{column} = {literal(value)}"


def _names(identities: list[tuple[str | None, str | None, str | None]]) -> list[str]:
    """The client id; with its address where two share it, and with the end of the member id where both are shared."""
    clients = [identity[0] for identity in identities]
    places = [identity[:2] for identity in identities]
    names = []
    for client, address, member in identities:
        name = client or "(no client id)"
        if clients.count(client) > 1 or not client:
            name += f" @{address}"
        if places.count((client, address)) > 1:
            name += f" {(member or '(no member)')[-6:]}"
        names.append(name)
    return names


# The window is the dear part, so it carries numbers only; who committed is counted beside it.
_SUSPECTS = """
    with own as (
        select coalesce(topic, topic_id) as topic, partition, committed_offset,
               max(committed_offset) over (partition by coalesce(topic, topic_id), partition
                   order by ts, request_packet rows between unbounded preceding and 1 preceding) as highest
        from kafka_offset_commits where {group} and coalesce(error_code, 0) = 0),
    back as (
        select topic, partition, count(*) filter (committed_offset < highest) as steps_back,
               max(highest - committed_offset) filter (committed_offset < highest) as furthest_back
        from own group by all),
    senders as (
        select coalesce(topic, topic_id) as topic, partition, client_id, client_address, member_id,
               count(*) as commits, count(*) filter (owner_member_id <> member_id) as by_others
        from kafka_offset_commits where {group} and coalesce(error_code, 0) = 0 group by all),
    totals as (
        select topic, partition, sum(commits)::bigint as commits, sum(by_others)::bigint as by_others,
               count(*) as committers
        from senders group by all)
    select t.topic, t.partition, t.commits, b.steps_back, b.furthest_back, t.by_others, t.committers
    from totals t join back b on b.topic is not distinct from t.topic and b.partition is not distinct from t.partition
    order by by_others > 0 desc, furthest_back desc nulls last, t.topic, t.partition"""


def partitions_by_suspicion(source: Source, cluster_id: str | None, group_id: str | None) -> list[dict[str, Any]]:
    """topic, partition, commits, steps_back, furthest_back, by_others, committers; what looks worst comes first."""
    return rows(source, _SUSPECTS.format(group=of_group(cluster_id, group_id)))


# Only the last commit of a bin counts. Ends of the log are told a million times: of each bin the newest before and
# after that commit are enough, and few are left to be put in order.
_LAG = """
    with stored as (
        select epoch_ns(ts) // {width} as bin, topic, partition, max(ts) as ts,
               arg_max(committed_offset, ts) as committed_offset
        from kafka_offset_commits
        where {group} and coalesce(error_code, 0) = 0 and topic is not null group by all),
    ends as (
        select ts, topic, partition, high_watermark as log_end from kafka_fetch_partitions
        where high_watermark >= 0 and {cluster}
        union all
        select ts, topic, partition, "offset" from kafka_list_offsets
        where timestamp = -1 and "offset" >= 0 and {cluster}),
    newest as (
        select e.topic, e.partition, epoch_ns(e.ts) // {width} as bin, e.ts <= s.ts as is_before,
               max(e.ts) as ts, arg_max(log_end, e.ts) as log_end
        from ends e left join stored s
          on s.topic = e.topic and s.partition = e.partition and s.bin = epoch_ns(e.ts) // {width}
        group by all)
    select s.bin * {width} / 1e6 as t, s.topic, s.partition, greatest(n.log_end - s.committed_offset, 0) as lag
    from stored s asof join newest n on n.topic = s.topic and n.partition = s.partition and s.ts >= n.ts
    order by all"""


def lag_over_time(source: Source, cluster_id: str | None, group_id: str | None, width_ns: int) -> list[dict[str, Any]]:
    """t, topic, partition, lag: at each bin's last commit, against the newest end of the log told before it."""
    query = _LAG.format(
        cluster=_same("cluster_id", cluster_id), group=of_group(cluster_id, group_id), width=int(width_ns)
    )
    return rows(source, query)
