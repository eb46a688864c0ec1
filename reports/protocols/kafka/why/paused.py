"""A partition that its owner fetches no more while it goes on with the others: the application paused it, or holds what
it was given.

In: group, topic, partition. Out: a link. A Fetch of a session lists only what changed, so that no row of a partition
says nothing by itself. It does where records waited that it would have brought at once. Another leader, a broken
connection, an open transaction or a lost membership would look alike. So the Fetches for others have to go over the
very connection that this partition was fetched on last, until the end; its broker has to have answered for this
partition meanwhile; no transaction may hold it back, and no newer owner be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.times import seconds_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.why.asking import Asking, known, place, row, where, who
from wirewitness.reports.base.why.model import Causes, Link, Row

PAUSED = "paused_partition"
# A Fetch that waits for data comes back within its wait; so many of the usual gaps, and so long, is no wait.
_GAPS, _LEAST_NS = 8, 3_000_000_000
# Fetches for others that show that reading goes on.
_LEAST_FETCHES = 3
_SPOT = "{cluster} and coalesce(topic, topic_id) {topic} and partition = {partition}"
_OF_GROUP = "group_id = {group} and coalesce(replica_id, -1) < 0 and {until}"
_OWN = f"""
    select * exclude (ts, ts_response), epoch_ns(ts) as sent_ns,
           median(epoch_ns(ts) - before_ns) over () as usual_ns, max(next_offset) over () as read_to
    from (select *, lag(epoch_ns(ts)) over (order by ts) as before_ns from kafka_fetch_partitions
          where {_SPOT} and {_OF_GROUP})
    order by sent_ns desc limit 1"""
_OTHERS = f"""
    select count(distinct exchange_id) as fetches, max(epoch_ns(ts)) as last_ns,
           count(distinct (coalesce(topic, topic_id), partition)) as partitions
    from kafka_fetch_partitions
    where flow_id = {{flow}} and {_OF_GROUP} and epoch_ns(ts) > {{since}} and not ({_SPOT})"""
# Since when there was more than it had read.
_MORE = """
    select min(epoch_ns(ts)) as since_ns from kafka_log_ends
    where {cluster} and topic {topic} and partition = {partition} and log_end_offset > {read_to} and {until}"""
# That the broker of that connection still answers for the partition, whoever asks.
_LEADS = f"""
    with answers as (
        select flow_id, ts from kafka_produce_batches where {_SPOT} and error_code = 0 and {{until}}
        union all
        select flow_id, ts from kafka_fetch_partitions where {_SPOT} and error_code = 0 and {{until}}),
    own as (select server_address, server_port from flows where flow_id = {{flow}})
    select max(epoch_ns(answers.ts)) as last_ns from answers join flows using (flow_id)
    join own on own.server_address = flows.server_address and own.server_port = flows.server_port
    where epoch_ns(answers.ts) > {{since}}"""
_HELD_BACK = f"select 1 as one from (select *, null as topic_id from kafka_stable_offset_waits) where {_SPOT} limit 1"
_OWNER = f"""
    select client_id, client_address, epoch_ns(ts_end) as end_ns from kafka_ownership
    where {_SPOT} and group_id = {{group}} and {{until}} order by ts desc limit 1"""


def paused_link(ask: Asking, facts: Mapping[str, Any], end_ns: int | None) -> Link | None:
    """None where it is not shown. facts: cluster_id, group_id, topic, partition, lag. end_ns: of what is looked at."""
    if end_ns is None or not facts.get("lag"):
        return None
    told = {
        "cluster": where(cluster_id=facts["cluster_id"]), "topic": known(facts["topic"]),
        "partition": facts["partition"], "group": literal(facts["group_id"]), "until": ask.until("epoch_ns(ts)"),
    }  # fmt: skip
    last = ask.one(_OWN.format(**told))
    if last is None or None in (last["usual_ns"], last["flow_id"], last["read_to"]):
        return None
    limit_ns = max(_GAPS * last["usual_ns"], _LEAST_NS)
    more = ask.rows(_MORE.format(**told, read_to=last["read_to"]))[0]["since_ns"]
    if more is None or end_ns - max(more, last["sent_ns"]) < limit_ns:
        return None
    of_last = {"flow": literal(last["flow_id"]), "since": last["sent_ns"]}
    if ask.rows(_LEADS.format(**told, **of_last))[0]["last_ns"] is None or ask.one(_HELD_BACK.format(**told)):
        return None
    others = ask.rows(_OTHERS.format(**told, **of_last))[0]
    if others["fetches"] < _LEAST_FETCHES or end_ns - others["last_ns"] >= limit_ns:
        return None
    owner = ask.one(_OWNER.format(**told))
    is_owner = owner is not None and owner["client_id"] == last["client_id"] and owner["end_ns"] is None
    if owner is not None and not is_owner:
        return None
    by = who(last["client_id"], last["client_address"])
    what = (
        f"{by} read it up to {last['read_to']}, and fetched it last {seconds_text(end_ns - last['sent_ns'])} before "
        f"the end; since then {count(others['fetches'], 'Fetch', 'Fetches')} for "
        f"{count(others['partitions'], 'other partition')} went over the same connection and none for this one, though "
        f"the log goes on"
    )
    spot = {name: facts[name] for name in ("cluster_id", "group_id", "topic", "partition")}
    since = f"flow_id = {literal(last['flow_id'])} and epoch_ns(ts) > {last['sent_ns']}"
    return Link(
        PAUSED, tuple(spot.values()), what, f"{by} fetches the others and not this one", last["sent_ns"], end_ns,
        (place(last),),
        (row("kafka_fetch_partitions", exchange_id=last["exchange_id"], partition=facts["partition"]),
         Row("kafka_fetch_partitions", since)),
        "fact" if is_owner else "medium", "" if is_owner else "that it is still assigned to this member",
        dict(facts),
    )  # fmt: skip


def paused_causes(_: Asking, __: Link) -> Causes:
    """Whether it was paused on purpose only the application knows."""
    return Causes(
        end="its application paused the partition, or has not taken what it was given: its own log shows which"
    )
