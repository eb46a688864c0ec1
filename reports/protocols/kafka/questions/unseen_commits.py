"""Offsets that a broker stored while it was captured, and that no packet and no logged request asks for.

In: an analysis of log segments beside captures or request logs. Out: a value for each group, topic and
`__consumer_offsets` partition. All groups of such a partition have one coordinator, so where a commit of one of them is
seen the coordinator is. A stored offset is seen where a commit of the same group, partition and offset was asked for at
its time, give or take a second: the clock of the broker may differ, by about the same for all. Nothing is said of
segments and captures of different times.
"""

from __future__ import annotations

from dataclasses import dataclass

from wirewitness.reports.base.questions.source import Source, all_rows

_NS_PER_S = 1_000_000_000
# Clocks that differ more are those of other times: offsets begin anew with a topic.
_CLOCKS_APART_NS = 600 * _NS_PER_S
# Between request and answer the offset is stored; one that has no answer may wait.
_AROUND_NS, _UNANSWERED_NS = _NS_PER_S, 60 * _NS_PER_S
# What was asked for at the edge of a file may lie beyond it.
_EDGE_NS = 2 * _NS_PER_S
# Commits of one offset over and over say little about clocks, and each would be compared with each.
_MOST_ALIKE = 100

_BOTH = """
    select count(*) filter (batches is not null) > 0 and count(*) filter (packets > 0 or lines > 0) > 0 as both
    from captures"""
_TOLD = f"""
    with stored as (
        select distinct log_partition, log_offset, group_id, topic, partition, committed_offset,
               epoch_ns(coalesce(commit_ts, ts)) as at_ns
        from kafka_stored_offsets
        where not tombstone and (transaction is null or transaction = 'committed') and log_partition is not null
    ), asked as (
        select group_id, nullif(topic, topic_id) as topic, partition, committed_offset, epoch_ns(commits.ts) as at_ns,
               epoch_ns(commits.ts_response) as done_ns,
               server_address || ':' || server_port as server
        from kafka_offset_commits as commits join flows using (flow_id)
    ), few as (
        select group_id, partition, committed_offset from asked group by all having count(*) <= {_MOST_ALIKE}
    ), pairs as (
        select log_partition, log_offset, stored.at_ns - asked.at_ns as apart, done_ns - asked.at_ns as took, server
        from stored join asked using (group_id, partition, committed_offset)
        where (asked.topic is null or asked.topic = stored.topic)
            and abs(stored.at_ns - asked.at_ns) <= {_CLOCKS_APART_NS}
    ), clocks as (
        select log_partition, median(apart)::bigint as ahead_ns, count(distinct log_offset) as compared,
               string_agg(distinct server, ', ' order by server) as servers
        from pairs semi join (select log_partition, log_offset from stored join few using (
            group_id, partition, committed_offset)) as clear using (log_partition, log_offset)
        group by log_partition
    ), seen as (
        select distinct log_partition, log_offset from pairs join clocks using (log_partition)
        where apart - ahead_ns between -{_AROUND_NS} and coalesce(took, {_UNANSWERED_NS}) + {_AROUND_NS}
    ), spans as (
        select epoch_ns(ts_first) as first_ns, epoch_ns(ts_last) as last_ns from captures
        where (packets > 0 or lines > 0) and ts_first is not null
    )"""
_UNSEEN = f"""{_TOLD}
    select group_id, topic, log_partition, any_value(servers) as servers,
           list(distinct partition order by partition) as partitions, count(*) as stored,
           min(at_ns - ahead_ns) as first_ns, max(at_ns - ahead_ns) as last_ns
    from stored join clocks using (log_partition) anti join seen using (log_partition, log_offset)
    where exists (from spans where at_ns - ahead_ns between first_ns + {_EDGE_NS} and last_ns - {_EDGE_NS})
    group by group_id, topic, log_partition order by stored desc, group_id, topic, log_partition"""
_CLOCKS = f"""{_TOLD}
    select log_partition, ahead_ns, compared, servers from clocks order by compared desc, log_partition"""


@dataclass(frozen=True, slots=True)
class UnseenCommits:
    """Stored offsets of a group and topic that nothing asks for. servers: where commits of their coordinator were asked
    for. first_ns, last_ns: Unix times by the clock of the capture."""

    group_id: str | None
    topic: str | None
    log_partition: int
    servers: str
    partitions: list[int]
    stored: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class StoredClock:
    """By how much the clock of a partition's broker is ahead of the capture's, from so many commits that both have."""

    log_partition: int
    ahead_ns: int
    compared: int
    servers: str


def unseen_commits(source: Source) -> list[UnseenCommits]:
    """Most first; empty where segments and captures are not both there, or not of one time."""
    return [UnseenCommits(**row) for row in all_rows(source, _UNSEEN)] if _has_both(source) else []


def stored_clocks(source: Source) -> list[StoredClock]:
    """Of each partition of `__consumer_offsets` with commits that both have, those with most first."""
    return [StoredClock(**row) for row in all_rows(source, _CLOCKS)] if _has_both(source) else []


def _has_both(source: Source) -> bool:
    return bool(all_rows(source, _BOTH)[0]["both"])
