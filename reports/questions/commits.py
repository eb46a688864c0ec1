"""Commits of consumer groups over time: who stored which offset, who owned the partition, where the log ended.

In: a source; out: rows to draw, thinned out by DuckDB where there are too many. Times `t` are Unix ms (floats).
A committer is an identity: client id, address, member id; its number in the group is the order of first commits in the
whole capture, so that it keeps its colour whatever is selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analyser.context.kafka_lag import lag_query
from analyser.context.log_ends import log_end_query
from analyser.context.stored_offsets import BROKER_ORDER
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

_OWN_COMMITS = f"""
    with own as (
        select epoch_ns(ts) / 1e6 as t, coalesce(topic, topic_id) as topic, partition, committed_offset,
               client_id, client_address, member_id, generation, coalesce(error_code, 0) <> 0 as refused,
               owner_member_id is not null and member_id is not null and owner_member_id <> member_id as by_other,
               coalesce(error_code, 0) = 0 and committed_offset < max(committed_offset)
                   filter (coalesce(error_code, 0) = 0) over (partition by coalesce(topic, topic_id), partition
                   order by {BROKER_ORDER} rows between unbounded preceding and 1 preceding) as went_back,
               request_packet
        from kafka_offset_commits where {{group}} and {{place}})"""

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
    source: Source, cluster_id: str | None, place: tuple[str | None, int], width_ns: int
) -> list[dict[str, Any]]:
    """t, log_end: the last end of the log of a topic's partition that an answer told in each bin."""
    topic, partition = place
    same = f"cluster = {literal(cluster_id or '')} and topic = {literal(topic or '')} and partition = {int(partition)}"
    ends = log_end_query(_bin(width_ns), same)
    return rows(source, f"select bin / 1e6 as t, log_end from ({ends}) order by t")


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
_SUSPECTS = f"""
    with own as (
        select coalesce(topic, topic_id) as topic, partition, committed_offset,
               max(committed_offset) over (partition by coalesce(topic, topic_id), partition
                   order by {BROKER_ORDER} rows between unbounded preceding and 1 preceding) as highest
        from kafka_offset_commits where {{group}} and coalesce(error_code, 0) = 0),
    back as (
        select topic, partition, count(*) filter (committed_offset < highest) as steps_back,
               max(highest - committed_offset) filter (committed_offset < highest) as furthest_back
        from own group by all),
    senders as (
        select coalesce(topic, topic_id) as topic, partition, client_id, client_address, member_id,
               count(*) as commits, count(*) filter (owner_member_id <> member_id) as by_others
        from kafka_offset_commits where {{group}} and coalesce(error_code, 0) = 0 group by all),
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


def lag_over_time(source: Source, cluster_id: str | None, group_id: str | None, width_ns: int) -> list[dict[str, Any]]:
    """t, topic, partition, lag: at the end of each bin, from the first one in which the group committed."""
    group = f"cluster = {literal(cluster_id or '')} and group_id = {literal(group_id or '')}"
    lags = lag_query(
        str(int(width_ns)), group=group, commits="(accepted or refused)", ends=f"cluster = {literal(cluster_id or '')}"
    )
    query = f"select bin / 1e6 as t, topic, partition, lag from ({lags}) where lag is not null order by all"
    return rows(source, query)


def _bin(width_ns: int) -> str:
    return f"at_ns // {int(width_ns)} * {int(width_ns)}"
