"""What brokers refuse about a partition, or lost of it: no leader, a Fetch or a Produce with an error, a cut log.

In: a partition (cluster, topic, number), or an exchange. Out: links, the error that came most often first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.times import seconds_text
from wirewitness.analyser.base.words import count
from wirewitness.reports.base.why.asking import Asking, known, name, place, related, where, who
from wirewitness.reports.base.why.model import Causes, Link, Row

NO_LEADER, REFUSED_ACCESS, TRUNCATED = "no_leader", "refused_access", "truncated"
# org.apache.kafka.common.protocol.Errors: what the broker says with the code.
_MEANS = {
    1: "the offset is outside the log",
    3: "the broker does not have this topic or partition",
    5: "the partition has no leader",
    6: "the broker is not the leader of the partition",
    7: "the replicas did not confirm in time",
    9: "the replica is not available",
    10: "the batch is larger than the broker takes",
    19: "fewer replicas are in sync than min.insync.replicas asks for",
    20: "fewer replicas were in sync than min.insync.replicas asks for; the leader has the records",
    29: "the client may not use the topic",
    47: "the producer epoch is over",
    74: "the client's leader epoch is over",
    76: "the codec is not allowed",
    87: "the record is not valid for the topic",
    90: "another producer has its transactional id",
}
_UNREACHED = (5, 6, 9)

# The last time that Metadata told of it, and since when it was so.
_LEADER = """
    with told as (
        select *, epoch_ns(ts) as at_ns, coalesce(leader_id < 0 or error_code = 5, false) as without
        from kafka_partitions where {place} and {until} and (leader_id is not null or error_code = 5)),
    last_good as (select coalesce(max(at_ns), 0) as good_ns from told where not without)
    select *, min(at_ns) over () as since_ns, max(at_ns) over () as last_ns, count(*) over () as n,
           good_ns from told, last_good
    where without and at_ns > good_ns order by at_ns limit 1"""
# Of requests after the last one that went well: the error that came most often, and its first request.
_REFUSED = """
    with told as (
        select exchange_id, client_id, client_address, error_code, error_name, file, request_packet, topic, partition,
               epoch_ns(ts) as sent_ns, epoch_ns(coalesce(ts_response, ts)) as at_ns
        from (select * replace (coalesce(topic, topic_id) as topic) from {table})
        where {place} and {which} and {until} and error_code is not null),
    good as (select coalesce(max(sent_ns), 0) as good_ns from told where error_code = 0)
    select *, count(*) over () as refused, count(*) over (partition by error_code) as n,
           max(at_ns) over (partition by error_code) as last_ns
    from told, good where error_code <> 0 and sent_ns > good_ns order by n desc, sent_ns limit 1"""
# The cut that took most of what the group had read or stored.
_CUT = """
    select *, epoch_ns(ts) as learned_ns, epoch_ns(coalesce(ts_leader, ts)) as at_ns from kafka_truncations
    where {place} and {until} and truncated_at < {reached} order by end_before - truncated_at desc, ts limit 1"""
_OF_EXCHANGE = """
    select topic, partition, error_code, error_name, count(*) over (partition by error_code) as n, file, request_packet,
           exchange_id, client_id, client_address, epoch_ns(ts) as sent_ns, epoch_ns(coalesce(ts_response, ts)) as at_ns
    from (select * replace (coalesce(topic, topic_id) as topic) from {table})
    where {own} and error_code <> 0 order by n desc, topic, partition limit 1"""
_TABLES = {"Fetch": "kafka_fetch_partitions", "Produce": "kafka_produce_batches"}


def no_leader(ask: Asking, facts: Mapping[str, Any]) -> Link | None:
    """That brokers reported no leader of the partition, and none since."""
    found = ask.one(_LEADER.format(place=_place(facts), until=ask.until("epoch_ns(ts)")))
    if found is None:
        return None
    named = f"{name(facts['topic'])}-{facts['partition']}"
    lasted = seconds_text(found["last_ns"] - found["since_ns"])
    over = f", {count(found['n'], 'time')} within {lasted}" if found["n"] > 1 else ""
    what = f"brokers reported no leader of {named}{over}: nobody can read or write it"
    after = f" and epoch_ns(ts) > {found['good_ns']} and (leader_id < 0 or error_code = 5)"
    return Link(NO_LEADER, (facts["cluster_id"], facts["topic"], facts["partition"]), what, f"no leader of {named}",
                found["since_ns"], found["last_ns"], (place(found),),
                (Row("kafka_partitions", _place(facts) + after),), facts=dict(facts))  # fmt: skip


def truncated(ask: Asking, facts: Mapping[str, Any], reached: int) -> Link | None:
    """That the partition's log was cut below an offset that the group had reached."""
    spot = where(cluster_id=facts["cluster_id"], topic=facts["topic"], partition=facts["partition"])
    found = ask.one(_CUT.format(place=spot, until=ask.until("epoch_ns(ts)"), reached=int(reached)))
    if found is None:
        return None
    named = f"{name(facts['topic'])}-{facts['partition']}"
    lost = count(found["end_before"] - found["truncated_at"], "record")
    led = "" if found["leader_id"] is None else f" when broker {found['leader_id']} became leader"
    led += ", which was not in sync" if led and found["unclean"] else ""
    what = f"the log of {named} was truncated at {found['truncated_at']}{led}: about {lost} up to {found['end_before']}"
    return Link(TRUNCATED, (found["exchange_id"], facts["topic"], facts["partition"]), f"{what} are gone",
                f"{named} truncated at {found['truncated_at']}", found["at_ns"], found["learned_ns"], (place(found),),
                (Row("kafka_truncations", f"{spot} and {where(exchange_id=found['exchange_id'])}"),),
                facts=dict(facts))  # fmt: skip


def refused_access(ask: Asking, facts: Mapping[str, Any], operation: str, which: str = "true") -> Link | None:
    """That Fetches or Produces of the partition are refused since the last one that went well. which: an SQL condition
    on their rows."""
    table = _TABLES[operation]
    query = _REFUSED.format(table=table, place=_place(facts), which=which, until=ask.until("epoch_ns(ts)"))
    found = ask.one(query)
    return None if found is None else _refusal(found, operation, facts)


def refusal_of(ask: Asking, exchange: Mapping[str, Any]) -> Link | None:
    """The error of most partitions of a Fetch or a Produce."""
    operation = exchange["operation"]
    if operation not in _TABLES:
        return None
    own = where(exchange_id=exchange["exchange_id"])
    found = ask.one(_OF_EXCHANGE.format(table=_TABLES[operation], own=own))
    if found is None:
        return None
    facts = {"cluster_id": exchange["cluster_id"], "topic": found["topic"], "partition": found["partition"]}
    return _refusal({**found, "refused": found["n"], "last_ns": found["at_ns"]}, operation, facts, one_request=True)


def _refusal(found: Mapping[str, Any], operation: str, facts: Mapping[str, Any], *, one_request: bool = False) -> Link:
    client = who(found["client_id"], found["client_address"])
    named = f"{name(facts['topic'])}-{facts['partition']}"
    error = name(found["error_name"] or found["error_code"])
    means = f": {_MEANS[found['error_code']]}" if found["error_code"] in _MEANS else ""
    what = f"the broker refused the {operation} of {named} by {client} with {error}{means}"
    if one_request:
        what += f"; {count(found['n'] - 1, 'more partition')} likewise" if found["n"] > 1 else ""
    elif found["refused"] > 1:
        of = "" if found["n"] == found["refused"] else f" of {found['refused']:,} that were refused"
        lasted = seconds_text(found["last_ns"] - found["at_ns"])
        what += f"; {found['n']:,} requests{of} within {lasted}, and none succeeded since"
    return Link(REFUSED_ACCESS, (found["exchange_id"], facts["topic"], facts["partition"]), what,
                f"{error} to {client}", found["sent_ns"], found["last_ns"], (place(found),),
                (Row(_TABLES[operation], f"{where(exchange_id=found['exchange_id'], partition=facts['partition'])} "
                     "and error_code <> 0"),),
                facts={**facts, "error_code": found["error_code"], "at_ns": found["at_ns"],
                       "last_ns": found["last_ns"]})  # fmt: skip


def refused_access_causes(ask: Asking, link: Link) -> Causes:
    """Whether the partition has no leader; findings about it."""
    facts = link.facts
    leader = no_leader(ask, facts) if facts["error_code"] in _UNREACHED else None
    if leader is not None:
        return Causes((leader,))
    return no_leader_causes(ask, link)


def no_leader_causes(ask: Asking, link: Link) -> Causes:
    """Findings about the partition in that time."""
    facts = link.facts
    spot = (str(facts["topic"]), facts["partition"])
    about = related(
        ask, link.at_ns, link.until_ns, lambda one: not one.numbers.get("group") and spot in one.partitions()
    )
    return (
        Causes(tuple(about)) if about else Causes(end="the brokers' logs show why; no finding is about this partition")
    )


def _place(facts: Mapping[str, Any]) -> str:
    """SQL: rows of this partition."""
    cluster = where(cluster_id=facts["cluster_id"], partition=facts["partition"])
    return f"{cluster} and coalesce(topic, topic_id) {known(facts['topic'])}"
