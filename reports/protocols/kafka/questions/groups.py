"""Kafka consumer groups as the wire shows them. In: an analysis; out: per group its members and partitions.

A partition's row is what kafka-consumer-groups --describe prints, and the column nobody else has: who committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wirewitness.reports.base.questions.source import Source, any_rows, rows
from wirewitness.reports.protocols.kafka.questions.commits import of_group
from wirewitness.reports.protocols.kafka.questions.group_partitions import STANDS_OF_GROUPS, at_time

# Which exchange told something that a table says without naming it. In: a source and what was told; out: its id.

# The answer tells it, as a rule; of a request that has none, the request.
_GROUP = """
    select exchange_id from kafka_group_events where {where}
    order by abs(epoch_ns(coalesce(ts_response, ts)) - {at_ns}), epoch_ns(ts), exchange_id limit 1"""


def group_told(source: Source, cluster_id: str | None, group_id: str | None, at_ns: int) -> str | None:
    """The exchange about the group that is nearest to this time, Unix ns."""
    found = rows(source, _GROUP.format(where=of_group(cluster_id, group_id), at_ns=int(at_ns)))
    return str(found[0]["exchange_id"]) if found else None


# What the members of share groups (KIP-932) were given and what they said of it. In: conditions. Out: SELECTs.
#
# Records are counted by the ranges of offsets that answers name. An acknowledgement counts where it was accepted.

_SPAN = "(last_offset - first_offset + 1)"
_TOLD = f"""
    select client_id, client_address, coalesce(topic, topic_id) as topic, partition, records_count as fetched,
           case when delivery_count > 1 then records_count else 0 end as redelivered, delivery_count,
           0 as accepted, 0 as released, 0 as rejected, (coalesce(error_code, 0) <> 0)::integer as failed
    from kafka_share_fetches where {{where}}
    union all
    select client_id, client_address, coalesce(topic, topic_id), partition, 0, 0, null,
           case when acknowledge_type = 'accept' and error_code = 0 then {_SPAN} else 0 end,
           case when acknowledge_type = 'release' and error_code = 0 then {_SPAN} else 0 end,
           case when acknowledge_type = 'reject' and error_code = 0 then {_SPAN} else 0 end,
           (coalesce(error_code, 0) <> 0)::integer
    from kafka_share_acknowledges where {{where}}"""
_SUMS = """
           coalesce(sum(fetched), 0)::bigint as fetched, coalesce(sum(redelivered), 0)::bigint as redelivered,
           coalesce(sum(accepted), 0)::bigint as accepted, coalesce(sum(released), 0)::bigint as released,
           coalesce(sum(rejected), 0)::bigint as rejected, coalesce(sum(failed), 0)::bigint as errors"""

# One row: sums over the rows that fit `{where}`.
SHARE_COUNTS = f"select {_SUMS} from ({_TOLD}) as told"
_DELIVERIES = f"""
    select client_id, client_address, topic, partition, max(delivery_count) as most_deliveries, {_SUMS}
    from ({_TOLD}) as told group by client_id, client_address, topic, partition"""


def deliveries_of(where: str) -> str:
    """A SELECT: one row for each client and partition. where: which group, as `commits.of_group` says it."""
    return _DELIVERIES.format(where=where)


# What a member said is put together first: there are a million commits, and some tens of members. Who it is stands in
# its own requests: offsets of transactions are sent by its producer, and others may send its LeaveGroup.
MEMBERS = """
    with seen as (
        select cluster_id, group_id, member_id, group_instance_id, client_id, client_address,
               min(generation) filter (generation >= 0) as first_generation,
               max(generation) filter (generation >= 0) as last_generation,
               event <> 'leave' as itself, 0 as commits, min(ts) as first_ts, max(ts) as last_ts
        from kafka_group_events group by all
        union all
        select cluster_id, group_id, member_id, group_instance_id, client_id, client_address,
               min(generation) filter (generation >= 0), max(generation) filter (generation >= 0),
               false, count(*), min(ts), max(ts)
        from kafka_offset_commits group by all)
    select cluster_id, group_id, member_id,
           arg_max(group_instance_id, last_ts) as group_instance_id,
           arg_max(client_id, row(itself, last_ts)) as client_id,
           arg_max(client_address, row(itself, last_ts)) as client_address,
           min(first_generation) as first_generation,
           max(last_generation) as last_generation,
           sum(commits)::bigint as committed_partitions,
           epoch_ns(min(first_ts)) as first_ns, epoch_ns(max(last_ts)) as last_ns
    from seen where group_id is not null and member_id <> ''
    group by cluster_id, group_id, member_id
    order by cluster_id, group_id, first_ns, member_id"""

# Without a row in any of these there is no group. Generations alone, which stand before `--from` too, show none.
_TOLD_BY = (
    "kafka_offset_commits", "kafka_offset_fetches", "kafka_group_events", "kafka_ownership", "kafka_members",
    "kafka_clients",
)  # fmt: skip

_STATES = f"""
    select cluster_id, group_id, topic, partition, committed_offset, log_end_offset, lag, member_id, client_id,
           client_address, owner_member_id, generation, accepted, refused, committers, sent_ns as last_ns,
           log_end_age_ms, time_lag_ms
    from ({STANDS_OF_GROUPS.replace("{until}", "true")}) order by cluster_id, group_id, topic, partition"""


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
    accepted ones. All but the counts are None when no commit was accepted. lag: see analyser/kafka/facts/lag.py.
    log_end_age_ms: since the log end was told; time_lag_ms: since it passed the offset (time_lag.py), None: not known.
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
    lag: int | None
    log_end_age_ms: float | None
    time_lag_ms: float | None


@dataclass(frozen=True, slots=True)
class Group:
    """One consumer group of one cluster."""

    cluster_id: str | None
    group_id: str | None
    members: tuple[Member, ...]
    partitions: tuple[PartitionState, ...]


def groups(source: Source) -> list[Group]:
    """All groups that joined or committed in the capture."""
    if not any_rows(source, _TOLD_BY):
        return []
    members = _by_group(rows(source, MEMBERS))
    partitions = _by_group(rows(source, at_time(_STATES, source.options.to_ns)))
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
