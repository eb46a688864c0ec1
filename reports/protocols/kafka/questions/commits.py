"""Commits of consumer groups over time: who stored which offset, who owned the partition, where the log ended.

In: a source; out: rows to draw, thinned out by DuckDB where there are too many. Times `t` are Unix ms (floats).
A committer is an identity: client id, address, member id; its number in the group is the order of first commits in the
whole capture, so that it keeps its colour whatever is selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wirewitness.analyser.kafka.facts.committed import BROKER_ORDER
from wirewitness.analyser.kafka.facts.log_ends import LOG_STEPS, ends_of_bins
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.source import Source, all_rows, rows, selected

POINTS = 4000

_COMMITTERS = """
    select client_id, client_address, member_id, count(*) filter ({inside}) as commits,
           count(*) filter ({inside} and owner_member_id is not null and owner_member_id <> member_id)
               as foreign_commits,
           min(generation) filter (generation >= 0) as first_generation,
           max(generation) filter (generation >= 0) as last_generation,
           count(*) filter ({inside} and error_code <> 0) as refused,
           count(distinct (coalesce(topic, topic_id), partition)) filter ({inside}) as partitions,
           epoch_ns(min(ts)) as first_ns, epoch_ns(max(ts)) as last_ns
    from kafka_offset_commits where {group}
    group by client_id, client_address, member_id order by first_ns, client_id, client_address, member_id"""

# A commit counts from its answer on. What went back (`kafka_committed`) may have done so from before the time range;
# the last offset stored before it is where its line begins.
_OWN_COMMITS = f"""
    with told as (
        select epoch_ns(coalesce(ts_response, ts)) / 1e6 as t, coalesce(topic, topic_id) as topic, partition,
               committed_offset, client_id, client_address, member_id, generation,
               coalesce(error_code, 0) <> 0 as refused,
               coalesce(error_code = 0 and committed_offset >= 0, false) as stored,
               owner_member_id is not null and member_id is not null and owner_member_id <> member_id as by_other,
               coalesce(error_code = 0 and (exchange_id, coalesce(topic, topic_id), partition) in (
                   select (exchange_id, topic, partition) from kafka_committed where {{group}} and step_back > 0
               ), false) as went_back,
               row_number() over (partition by coalesce(topic, topic_id), partition order by {BROKER_ORDER}) as step,
               request_packet, exchange_id, not ({{inside}}) as before, {{too_late}} as too_late
        from kafka_offset_commits where {{group}} and {{place}}),
    own as (
        select * exclude (t, too_late), case when before then {{from_ms}} else t end as t
        from told where not too_late and (stored or not before)
        qualify not before or row_number() over (partition by topic, partition, before order by step desc) = 1)"""

_COMMITS = _OWN_COMMITS + " select * from own order by topic, partition, step"

# Of many commits the lowest and the highest of each committer in each bin of time, and the last, tell the same story.
_THINNED_COMMITS = (
    _OWN_COMMITS
    + """,
    binned as (
        select floor(t / {width_ms}) as bin, topic, partition, client_id, client_address, member_id, refused, stored,
               by_other, went_back, before, min_by(one, committed_offset) as lowest,
               max_by(one, committed_offset) as highest, max_by(one, one.step) as latest
        from (select *, struct_pack(t, committed_offset, generation, request_packet, exchange_id, step) as one from own)
        group by all),
    ends as (select *, unnest([lowest, highest, latest]) as one from binned)
    select * from (select distinct * exclude (bin, lowest, highest, latest, one), unnest(one) from ends)
    order by topic, partition, step"""
)

_COMMIT_COUNT = """
    select count(*) as n, epoch_ns(min(ts)) as first_ns, epoch_ns(max(ts)) as last_ns,
           count(distinct (coalesce(topic, topic_id), partition, client_id, client_address, member_id)) as kinds
    from kafka_offset_commits where {group} and {place}"""

_COUNTS = """
    select coalesce(topic, topic_id) as topic, partition, count(*) filter (error_code = 0) as accepted,
           count(*) filter (error_code <> 0) as refused,
           count(distinct struct_pack(client_address, client_id, member_id)) filter (error_code = 0) as committers
    from kafka_offset_commits where {group} group by all"""

_OWNERS = """
    select epoch_ns(ts) / 1e6 as t, greatest(epoch_ns(ts), coalesce(epoch_ns(ts_end),
               (select max(epoch_ns(ts_last)) from captures))) / 1e6 as t_end,
           topic, partition, member_id, generation
    from kafka_ownership where {group} order by topic, partition, t, member_id"""


@dataclass(frozen=True, slots=True)
class Committer:
    """Who committed for a group. name: short and unlike the others'; `*_ns` are Unix times.

    commits, foreign_commits, refused and partitions are those of the time range, all else is of the whole capture.
    """

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
    where = {"group": of_group(cluster_id, group_id), "inside": selected("kafka_offset_commits", source.options)}
    found = all_rows(source, _COMMITTERS.format(**where))
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

    t (of the answer), topic, partition, committed_offset, client_id, client_address, member_id, generation, refused,
    stored (it was accepted), by_other (the partition belonged to another member), went_back (a higher offset was stored
    just before), request_packet, exchange_id, step (its place in the broker's order), before (it is the one that stood
    when the time range began). By topic and partition, in the broker's order.
    """
    chosen = source.options
    where = {
        "group": of_group(cluster_id, group_id),
        "place": of_places(places),
        "inside": selected("kafka_offset_commits", chosen),
        "too_late": "false" if chosen.to_ns is None else f"epoch_ns(ts) >= {chosen.to_ns}",
        "from_ms": (chosen.from_ns or 0) / 1e6,
    }
    known = rows(source, _COMMIT_COUNT.format(**where))[0]
    if known["n"] <= points:
        return all_rows(source, _COMMITS.format(**where)), False
    bins = max(points // (3 * known["kinds"]), 10)
    width_ms = max((known["last_ns"] - known["first_ns"]) / 1e6 / bins, 0.001)
    return all_rows(source, _THINNED_COMMITS.format(**where, width_ms=width_ms)), True


def commit_counts(source: Source, cluster_id: str | None, group_id: str | None) -> list[dict[str, Any]]:
    """topic, partition, accepted, refused, committers: of the time range."""
    return rows(source, _COUNTS.format(group=of_group(cluster_id, group_id)))


def log_ends(
    source: Source, cluster_id: str | None, place: tuple[str | None, int], width_ns: int
) -> list[dict[str, Any]]:
    """t, log_end: the last end of the log of a topic's partition that an answer told in each bin.

    The first row is that which stood when the time range began, where one was told before.
    """
    topic, partition = place
    same = f"cluster = {literal(cluster_id or '')} and topic = {literal(topic or '')} and partition = {int(partition)}"
    to_ns, from_ns = source.options.to_ns, source.options.from_ns or 0
    told = same if to_ns is None else f"{same} and at_ns < {to_ns}"
    ends = f"select *, {_bin(width_ns)} as bin, true as here from ({LOG_STEPS}) where {told}"
    query = f"""
        with ends as ({ends})
        select greatest(bin, {from_ns}) / 1e6 as t, log_end from ({ends_of_bins("ends")})
        qualify bin >= {from_ns} or row_number() over (partition by bin < {from_ns} order by bin desc) = 1
        order by t"""
    return all_rows(source, query)


def owners(source: Source, cluster_id: str | None, group_id: str | None) -> list[dict[str, Any]]:
    """t, t_end, topic, partition, member_id, generation: who owned what; to the capture's end if it did not end."""
    return all_rows(source, _OWNERS.format(group=of_group(cluster_id, group_id)))


def of_group(cluster_id: str | None, group_id: str | None) -> str:
    """An SQL condition for rows of the group."""
    return f"{same('cluster_id', cluster_id)} and {same('group_id', group_id)}"


def of_places(places: Sequence[tuple[str, int]]) -> str:
    """An SQL condition for rows of these topics and partitions; all rows where none is named."""
    if not places:
        return "true"
    named = (same("coalesce(topic, topic_id)", topic) for topic, _ in places)
    listed = (f"({topic} and partition = {int(place[1])})" for topic, place in zip(named, places, strict=True))
    return f"({' or '.join(listed)})"


def same(column: str, value: str | None) -> str:
    """An SQL condition that takes null for a value like others."""
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


_SUSPECTS = """
    select topic, partition, count(*) as commits, count(*) filter (step_back > 0) as steps_back,
           nullif(max(step_back), 0) as furthest_back, count(*) filter (owner_member_id <> member_id) as by_others,
           count(distinct (client_id, client_address, member_id)) as committers
    from kafka_committed where {group} and kind in ('commit', 'transaction', 'below 0') group by all
    order by by_others > 0 desc, furthest_back desc nulls last, topic, partition"""


def partitions_by_suspicion(source: Source, cluster_id: str | None, group_id: str | None) -> list[dict[str, Any]]:
    """topic, partition, commits, steps_back, furthest_back, by_others, committers; what looks worst comes first."""
    return rows(source, _SUSPECTS.format(group=of_group(cluster_id, group_id)))


def _bin(width_ns: int) -> str:
    return f"at_ns // {int(width_ns)} * {int(width_ns)}"
