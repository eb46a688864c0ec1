"""Kafka consumer groups as the wire shows them. In: an analysis; out: per group its members and partitions.

A partition's row is what kafka-consumer-groups --describe prints, and the column nobody else has: who committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports.questions.source import Source, rows

# What a member said is put together first: there are a million commits, and some tens of members.
MEMBERS = """
    with seen as (
        select cluster_id, group_id, member_id, group_instance_id, client_id, client_address,
               min(generation) filter (generation >= 0) as first_generation,
               max(generation) filter (generation >= 0) as last_generation,
               0 as commits, min(ts) as first_ts, max(ts) as last_ts
        from kafka_group_events group by all
        union all
        select cluster_id, group_id, member_id, group_instance_id, client_id, client_address,
               min(generation) filter (generation >= 0), max(generation) filter (generation >= 0),
               count(*), min(ts), max(ts)
        from kafka_offset_commits group by all)
    select cluster_id, group_id, member_id,
           arg_max(group_instance_id, last_ts) as group_instance_id,
           arg_max(client_id, last_ts) as client_id,
           arg_max(client_address, last_ts) as client_address,
           min(first_generation) as first_generation,
           max(last_generation) as last_generation,
           sum(commits)::bigint as committed_partitions,
           epoch_ns(min(first_ts)) as first_ns, epoch_ns(max(last_ts)) as last_ns
    from seen where group_id is not null and member_id <> ''
    group by cluster_id, group_id, member_id
    order by cluster_id, group_id, first_ns, member_id"""

# Which commit is the stored one is decided by the answers: two requests on different connections may cross. `{until}`
# stands for a SQL boolean over `answered`, the Unix ns of a row's answer.
# The end of a partition: the newest high watermark that a Fetch or a ListOffsets (timestamp -1: latest) was told.
PARTITIONS = """
    with ends as (
        select cluster_id, topic, partition, arg_max(log_end, answered) as log_end from (
            select cluster_id, topic, partition, high_watermark as log_end,
                   epoch_ns(coalesce(ts_response, ts)) as answered
            from kafka_fetch_partitions
            where high_watermark >= 0
            union all
            select cluster_id, topic, partition, "offset", epoch_ns(ts) from kafka_list_offsets
            where timestamp = -1 and "offset" >= 0)
        where {until} group by all),
    commits as (
        select *, epoch_ns(coalesce(ts_response, ts)) as answered from kafka_offset_commits),
    stored as (
        select cluster_id, group_id, coalesce(topic, topic_id) as topic, partition,
               max_by(struct_pack(o := committed_offset, e := log_end_offset, m := member_id, c := client_id,
                                  a := client_address, w := owner_member_id, g := generation),
                      struct_pack(t := coalesce(ts_response, ts), p := response_packet, q := request_packet))
                   filter (error_code = 0) as last,
               count(*) filter (error_code = 0) as accepted,
               count(*) filter (error_code <> 0) as refused,
               count(distinct struct_pack(a := client_address, c := client_id, m := member_id))
                   filter (error_code = 0) as committers,
               epoch_ns(max(ts) filter (error_code = 0)) as last_ns
        from commits where {until} group by all)
    select s.cluster_id, s.group_id, s.topic, s.partition, s.last.o as committed_offset,
           coalesce(e.log_end, s.last.e) as log_end_offset, s.last.m as member_id, s.last.c as client_id,
           s.last.a as client_address, s.last.w as owner_member_id, s.last.g as generation,
           s.accepted, s.refused, s.committers, s.last_ns
    from stored s left join ends e
      on e.cluster_id is not distinct from s.cluster_id and e.topic = s.topic and e.partition = s.partition
    order by s.cluster_id, s.group_id, s.topic, s.partition"""


@dataclass(frozen=True, slots=True)
class Member:
    """One member id of a group; generations are None when none was on the wire."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_address: str | None
    first_generation: int | None
    last_generation: int | None
    committed_partitions: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The last accepted commit of one partition, who wrote it, and how far the log had grown.

    accepted, refused: commits in the capture. committers: identities (address, client id, member id) among the
    accepted ones. All but the counts are None when no commit was accepted.
    """

    topic: str | None
    partition: int
    committed_offset: int | None
    log_end_offset: int | None
    member_id: str | None
    client_id: str | None
    client_address: str | None
    owner_member_id: str | None
    generation: int | None
    accepted: int
    refused: int
    committers: int
    last_ns: int | None

    @property
    def lag(self) -> int | None:
        """Messages between the committed offset and the end of the log; None when one of them is not known."""
        if self.committed_offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.committed_offset


@dataclass(frozen=True, slots=True)
class Group:
    """One consumer group of one cluster."""

    cluster_id: str | None
    group_id: str | None
    members: tuple[Member, ...]
    partitions: tuple[PartitionState, ...]


def groups(source: Source) -> list[Group]:
    """All groups that joined or committed in the capture."""
    members = _by_group(rows(source, MEMBERS))
    partitions = _by_group(rows(source, PARTITIONS.replace("{until}", "true")))
    keys = sorted({*members, *partitions}, key=lambda key: tuple(part or "" for part in key))
    return [
        Group(
            *key,
            tuple(Member(**row) for row in members.get(key, [])),
            tuple(PartitionState(**row) for row in partitions.get(key, [])),
        )
        for key in keys
    ]


def _by_group(found: list[dict[str, Any]]) -> dict[tuple[str | None, str | None], list[dict[str, Any]]]:
    grouped: dict[tuple[str | None, str | None], list[dict[str, Any]]] = {}
    for row in found:
        key = (row.pop("cluster_id"), row.pop("group_id"))
        grouped.setdefault(key, []).append(row)
    return grouped
