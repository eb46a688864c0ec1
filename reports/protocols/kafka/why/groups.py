"""Why a member was given what it has, or lost its place: rebalances, memberships, silences, pauses.

In: a member or a generation of a group. Out: what set the rebalance off, back to the client that started, left or
fell silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.times import ms_text, seconds_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.why.asking import Asking, by_id, name, row, where, who
from wirewitness.reports.base.why.model import Causes, Link, Place, Row
from wirewitness.reports.base.why.network import network_links, server_stood

ASSIGNED, REBALANCE, MEMBERSHIP, STARTED, WAITED, PAUSE = (
    "assigned", "rebalance", "membership", "started", "waited", "poll_pause",
)  # fmt: skip
_SECOND_NS = 1_000_000_000
# An assignment is told when its rebalance ends, by each member at its own time.
_NEAR_NS = 2 * _SECOND_NS
# Whoever waits less for a member was not held up by it.
_LEAST_WAIT_MS = 1000.0
# Reading again and again has pauses of the server's waiting (fetch.max.wait.ms); longer ones are the client's.
_LEAST_PAUSE_NS = 3 * _SECOND_NS

_SOURCES = {
    "sync_leader": "as the leader's SyncGroup says", "sync_answer": "as the response to its SyncGroup says",
    "consumer_heartbeat": "as the response to its heartbeat says", "describe": "as a DescribeGroups says",
}  # fmt: skip

_REBALANCE = """
    select *, epoch_ns(ts) as at_ns, epoch_ns(ts_end) as end_ns, epoch_ns(ts_waited_last) as waited_last_ns
    from kafka_rebalances"""
_OF_GENERATION = f"""{_REBALANCE}
    where {{group}} and epoch_ns(ts) <= {{at_ns}} and (generation = {{generation}}
        or protocol <> 'classic' and generation_before < {{generation}} and generation >= {{generation}})
    order by ts desc limit 1"""
# Whatever ended a generation: the first one that began behind it.
_AFTER = f"""{_REBALANCE}
    where {{group}} and epoch_ns(ts) <= {{at_ns}} and generation > {{generation}} order by ts limit 1"""
_MEMBER = """
    select *, epoch_ns(ts) as first_ns, epoch_ns(ts_last) as last_ns, epoch_ns(ts_ended) as ended_ns,
           epoch_ns(ts_silent) as silent_ns, epoch_ns(ts_closed) as closed_ns
    from kafka_members where {group} and {member} and epoch_ns(ts) <= {at_ns} order by ts desc limit 1"""
_EARLIER = """
    select *, epoch_ns(ts) as first_ns, epoch_ns(ts_last) as last_ns, epoch_ns(ts_ended) as ended_ns,
           epoch_ns(ts_silent) as silent_ns, epoch_ns(ts_closed) as closed_ns
    from kafka_members where {group} and {client} and exchange_id <> {own} and epoch_ns(ts) < {at_ns}
    order by ts desc limit 1"""
_LEFT = """
    select *, epoch_ns(ts) as at_ns from kafka_group_events
    where {group} and member_id = {member} and (event = 'leave' or event like '%heartbeat' and generation < 0)
        and epoch_ns(ts) between {from_ns} and {to_ns} order by ts desc limit 1"""
_FETCHES = """
    select max(epoch_ns(coalesce(ts_response, ts))) filter (epoch_ns(ts) <= {at_ns}) as last_ns,
           arg_max(exchange_id, ts) filter (epoch_ns(ts) <= {at_ns}) as exchange_id,
           min(epoch_ns(ts)) filter (epoch_ns(ts) > {at_ns}) as next_ns
    from kafka_fetch_partitions where {client} and coalesce(replica_id, -1) < 0"""
_BEATS = """
    select count(*) as n from kafka_group_events
    where {group} and member_id = {member} and event like '%heartbeat' and epoch_ns(ts) between {from_ns} and {to_ns}"""
_FIRST_SEEN = """
    select epoch_ns(min(ts_first)) as at_ns, arg_min(flow_id, ts_first) as flow_id, arg_min(file, ts_first) as file,
           arg_min(first_packet, ts_first) as packet, arg_min(handshake_seen, ts_first) as starts
    from flows where flow_id in (select flow_id from exchanges where {client})"""


def assignment_link(given: Mapping[str, Any], client: str) -> Link:
    """A row of kafka_ownership."""
    named = f"{name(given['topic'])}-{given['partition']}"
    how = _SOURCES.get(given["source"], name(given["source"]))
    what = f"{client} was given {named} in generation {given['generation']}, {how}"
    return Link(ASSIGNED, (given["exchange_id"], given["member_id"], given["topic"], given["partition"]), what,
                f"{client} got {named} in generation {given['generation']}", given["at_ns"], None,
                (by_id(given["exchange_id"]),),
                (row("kafka_ownership", exchange_id=given["exchange_id"], member_id=given["member_id"],
                     partition=given["partition"]),), facts=dict(given))  # fmt: skip


def assignment_causes(ask: Asking, link: Link) -> Causes:
    """The rebalance that made its generation."""
    found = rebalance_between(ask, link.facts)
    return Causes((found,)) if found else Causes(end="the rebalance that led to it was before this capture")


def rebalance_between(ask: Asking, facts: Mapping[str, Any]) -> Link | None:
    """The rebalance that made the generation of an assignment, or that ended the one of a refused request."""
    generation = facts.get("generation")
    if generation is None:
        return None
    query = _AFTER if facts.get("error_code") else _OF_GENERATION
    at_ns = facts["at_ns"] + _NEAR_NS
    found = ask.one(query.format(group=_group(facts), at_ns=at_ns, generation=int(generation)))
    return rebalance_link(found) if found else None


def rebalance_link(found: Mapping[str, Any]) -> Link:
    """A row of kafka_rebalances."""
    to = "?" if found["generation"] is None else found["generation"]
    before = "" if found["generation_before"] is None else f"generation {found['generation_before']} to "
    what = f"group {name(found['group_id'])} rebalanced, {before}generation {to}"
    by = who(found["trigger_client_id"], found["trigger_address"])
    if found["trigger"] is not None:
        what += f"; {_set_off(found['trigger'], by)}"
    moved = found["partitions_moved"]
    if moved:
        what += f"; {count(moved, 'partition')} changed hands"
    places = tuple(by_id(one) for one in dict.fromkeys((found["exchange_id"], found["last_exchange_id"])) if one)
    return Link(REBALANCE, (found["cluster_id"], found["group_id"], found["at_ns"]), what,
                f"rebalance to generation {to}", found["at_ns"], found["end_ns"], places,
                (_rebalance_row(found),), facts=dict(found))  # fmt: skip


def _set_off(trigger: str, by: str) -> str:
    told = {
        "joined": f"{by} joined", "left": f"{by} left", "expired": f"the session of {by} timed out",
        "subscription changed": f"{by} subscribed to other topics", "topic changed": "a topic of it changed",
        "partitions given up": "it goes on with what members gave up (cooperative)",
        "leader": f"the leader {by} joined again by itself", "member": f"{by} joined again by itself",
    }  # fmt: skip
    return told.get(trigger, name(trigger))


def rebalance_causes(ask: Asking, link: Link) -> Causes:
    """Who set it off, and whom all waited for."""
    found, links = link.facts, []
    trigger, member = found["trigger"], found["trigger_member_id"]
    if trigger in ("left", "expired") and member:
        links.append(_membership(ask, found, member, found["at_ns"]))
    elif trigger == "joined" and member:
        links.append(_joined(ask, found, member))
    if (found["waited_ms"] or 0) >= _LEAST_WAIT_MS and found["waited_for"] == "late member":
        links.append(_waited(found))
    known_links = tuple(one for one in links if one is not None)
    if known_links:
        return Causes(known_links)
    ends = {
        None: "what set it off is not in this capture",
        "topic changed": "the group's packets do not show who changed the topic",
    }
    return Causes(end=ends.get(trigger, "only the client's log shows why it did so"))


def _joined(ask: Asking, found: Mapping[str, Any], member: str) -> Link | None:
    joined = ask.one(
        _MEMBER.format(group=_group(found), member=where(member_id=member), at_ns=found["at_ns"] + _NEAR_NS)
    )
    if joined is None:
        return None
    client = _client(joined)
    earlier = ask.one(
        _EARLIER.format(
            group=_group(found), client=client, own=literal(joined["exchange_id"]), at_ns=joined["first_ns"]
        )
    )
    by = who(joined["client_id"], joined["client_address"])
    if earlier is not None and earlier["ended"] != "active":
        return membership_of(earlier, came_back_ns=joined["first_ns"])
    seen = {"at_ns": None} if ask.brief else ask.rows(_FIRST_SEEN.format(client=client))[0]
    what = f"{by} joined"
    places: tuple[Place, ...] = (by_id(joined["exchange_id"]),)
    rows = [_member_row(joined)]
    at_ns = joined["first_ns"]
    if seen["at_ns"] is not None and seen["starts"]:
        at_ns = seen["at_ns"]
        later = seconds_text(found["at_ns"] - at_ns)
        what = f"{by} connected for the first time in this capture, and joined {later} later"
        places = (Place(seen["file"], seen["packet"]), *places)
        rows.append(row("flows", flow_id=seen["flow_id"]))
    return Link(STARTED, (joined["exchange_id"],), what, f"{by} joined", at_ns, found["at_ns"], places, tuple(rows),
                facts=dict(joined))  # fmt: skip


def started_causes(_: Asking, __: Link) -> Causes:
    """Nothing in a capture goes before a program that starts."""
    return Causes(end="the consumer started here; the capture cannot show why")


def _waited(found: Mapping[str, Any]) -> Link:
    client = who(found["waited_client_id"], found["waited_address"])
    what = f"all waited {ms_text(found['waited_ms'])} for {client}, whose JoinGroup came last"
    return Link(WAITED, (found["cluster_id"], found["group_id"], found["at_ns"], found["waited_member_id"]), what,
                f"all waited for {client}", found["at_ns"], found["end_ns"], (by_id(found["last_exchange_id"]),),
                (_rebalance_row(found),), facts=dict(found))  # fmt: skip


def waited_causes(ask: Asking, link: Link) -> Causes:
    """What the late member did meanwhile: it handles what it read, as a rule."""
    found = link.facts
    member = found["waited_member_id"]
    beats = ask.rows(
        _BEATS.format(group=_group(found), member=literal(member), from_ns=found["at_ns"], to_ns=found["end_ns"])
    )[0]["n"]
    if beats:
        return Causes(end=f"it sent {count(beats, 'heartbeat')} meanwhile, so it was alive and had not polled again")
    return Causes(end="its own log shows what kept it")


def membership_link(ask: Asking, facts: Mapping[str, Any], at_ns: int) -> Link | None:
    """How the membership of a request's sender ended."""
    return _membership(ask, facts, facts["member_id"], at_ns) if facts.get("member_id") else None


def _membership(ask: Asking, facts: Mapping[str, Any], member: str, at_ns: int) -> Link | None:
    found = ask.one(_MEMBER.format(group=_group(facts), member=where(member_id=member), at_ns=at_ns))
    return membership_of(found) if found is not None and found["ended"] not in (None, "active") else None


def membership_of(found: Mapping[str, Any], came_back_ns: int | None = None) -> Link:
    """A row of kafka_members that ended. came_back_ns: when its client joined again."""
    by = who(found["client_id"], found["client_address"])
    silence_ms, timeout = found["max_heartbeat_gap_ms"], found["session_timeout_ms"]
    ended, until_ns = found["ended"], found["ended_ns"]
    at_ns = found["last_ns"]
    if ended == "left":
        reason = f", saying: {name(found['reason'])}" if found["reason"] else ""
        remover = f"; {name(found['removed_by'])} took it out" if found["removed_by"] else ""
        what, short, at_ns = f"{by} left the group{reason}{remover}", f"{by} left", until_ns
    elif ended == "replaced":
        what, short, at_ns = f"another member took the static name of {by}", f"static name of {by} taken", until_ns
    elif ended == "fenced":
        what, short, at_ns = f"{by} was fenced (82): its static name is used twice", f"{by} was fenced", until_ns
    else:
        gone_ns = until_ns if came_back_ns is None else min(until_ns or came_back_ns, came_back_ns)
        silent_ns = found["silent_ns"] if silence_ms and ended == "removed" else found["last_ns"]
        at_ns = silent_ns or found["last_ns"]
        lasted = (gone_ns or at_ns) - at_ns
        if ended == "removed" and silence_ms and lasted < silence_ms * 1e6:
            what = f"{by} sent its group nothing for {ms_text(silence_ms)}"
        else:
            what = f"{by} was not heard of any more" + (f" for {seconds_text(lasted)}" if lasted > 0 else "")
        if timeout:
            what += f" (session timeout {ms_text(timeout)})"
        what += ", and the group went on without it"
        short = f"{by} fell silent"
    if came_back_ns is not None and came_back_ns > (at_ns or 0):
        what += f"; it came back {seconds_text(came_back_ns - at_ns)} later under a new member id" if at_ns else ""
    return Link(MEMBERSHIP, (found["group_id"], found["member_id"], found["exchange_id"]), what, short, at_ns,
                came_back_ns or until_ns, (by_id(found["last_exchange_id"]),), (_member_row(found),),
                facts=dict(found))  # fmt: skip


def membership_causes(ask: Asking, link: Link) -> Causes:
    """What stood while it was silent; or why it left."""
    found = link.facts
    if found["ended"] == "left":
        paused = pause_link(ask, found, found["ended_ns"])
        if paused is not None:
            return Causes((paused,))
        return Causes(end="it sent LeaveGroup by itself; the capture cannot show why")
    if found["ended"] == "replaced":
        other = ask.one(_MEMBER.format(group=_group(found), member=where(member_id=found["replaced_by"]),
                                       at_ns=(found["ended_ns"] or found["last_ns"]) + _NEAR_NS))  # fmt: skip
        if other is not None and other["client_address"] != found["client_address"]:
            return Causes(end=f"{who(other['client_id'], other['client_address'])} has the same group.instance.id")
        return Causes(end="a static member that restarts joins under its own name again")
    if found["ended"] == "fenced":
        return Causes(end="their settings show which two programs share the name (group.instance.id)")
    from_ns = link.at_ns or found["last_ns"]
    to_ns = max(link.until_ns or 0, found["ended_ns"] or 0, from_ns)
    stood = server_stood(ask, from_ns, max(link.until_ns or to_ns, from_ns))
    return Causes((stood,)) if stood else network_links(ask, found, from_ns, to_ns)


def pause_link(ask: Asking, member: Mapping[str, Any], at_ns: int | None) -> Link | None:
    """The pause between two polls of a member before that time, while its heartbeats went on."""
    if at_ns is None:
        return None
    client = where(client_id=member["client_id"], client_address=member["client_address"])
    fetched = ask.rows(_FETCHES.format(client=client, at_ns=at_ns))[0]
    if fetched["last_ns"] is None or at_ns - fetched["last_ns"] < _LEAST_PAUSE_NS:
        return None
    beats = ask.rows(
        _BEATS.format(
            group=_group(member), member=literal(member["member_id"]), from_ns=fetched["last_ns"], to_ns=at_ns
        )
    )[0]["n"]
    if not beats:
        return None
    by = who(member["client_id"], member["client_address"])
    lasted = seconds_text(at_ns - fetched["last_ns"])
    what = f"{by} fetched nothing for {lasted}, while it sent {count(beats, 'heartbeat')}"
    beaten = (
        f"{_group(member)} and {where(member_id=member['member_id'])} and event like '%heartbeat' "
        f"and epoch_ns(ts) between {fetched['last_ns']} and {at_ns}"
    )
    limit = member["rebalance_timeout_ms"]
    fits = limit is not None and abs(at_ns - fetched["last_ns"] - limit * 1e6) < max(_SECOND_NS, limit * 1e5)
    words = "the application did not poll: it was busy with what it had read"
    words += f" for as long as it may (max.poll.interval.ms: {ms_text(limit)})" if fits else ""
    return Link(PAUSE, (member["group_id"], member["member_id"], at_ns), what, f"{by} did not poll for {lasted}",
                fetched["last_ns"], at_ns, (by_id(fetched["exchange_id"]),),
                (row("kafka_fetch_partitions", exchange_id=fetched["exchange_id"]), Row("kafka_group_events", beaten)),
                "high" if fits else "medium", words, dict(member))  # fmt: skip


def pause_causes(_: Asking, __: Link) -> Causes:
    """What a program does with records is not on the wire."""
    return Causes(end="the capture cannot show what took its application so long: look at what it does with a record")


def _client(member: Mapping[str, Any]) -> str:
    return where(client_id=member["client_id"], client_address=member["client_address"])


def _member_row(found: Mapping[str, Any]) -> Row:
    return row("kafka_members", member_id=found["member_id"], exchange_id=found["exchange_id"])


def _rebalance_row(found: Mapping[str, Any]) -> Row:
    moment = f"epoch_ns(ts) = {found['at_ns']}"
    return Row("kafka_rebalances", f"{where(group_id=found['group_id'])} and {moment}")


def _group(facts: Mapping[str, Any]) -> str:
    return where(cluster_id=facts["cluster_id"], group_id=facts["group_id"])
