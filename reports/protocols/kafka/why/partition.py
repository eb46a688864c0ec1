"""Why the stored offset of a partition is what it is. In: group, topic, partition. Out: the commit that stored it, what
keeps it from moving on, and who changed it besides.

As in `wirewitness groups`, what is stored is what the last accepted commit, or the last OffsetFetch, told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.times import seconds_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.kafka.facts.committed import BROKER_ORDER
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.formats.words import rate
from wirewitness.reports.base.why.asking import COMMITS_OF, Asking, known, name, place, row, where, who
from wirewitness.reports.base.why.model import Causes, Link, Row
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS
from wirewitness.reports.protocols.kafka.why.commits import commit_link, of_partition, refused_link
from wirewitness.reports.protocols.kafka.why.groups import membership_link, pause_link

PARTITION = "stored_offset"
NO_COMMIT, READS_ON, SLOWER, HELD_BACK = "no_commit", "reads_on", "slower", "held_back"
# A committer that has said nothing for so many of its usual pauses, and for so long, has stopped.
_PAUSES, _LEAST_NS = 8, 3_000_000_000

_NEWEST_FIRST = f"row({BROKER_ORDER}) desc"
_LAST = f"""{COMMITS_OF}
    where {{of}} and {{until}} and error_code = 0 and committed_offset >= 0 order by {_NEWEST_FIRST} limit 1"""
_HIGHEST = f"""{COMMITS_OF}
    where {{of}} and {{until}} and error_code = 0 and committed_offset > {{above}}
    order by committed_offset desc, {_NEWEST_FIRST} limit 1"""
_REFUSED = f"""
    select *, count(*) over () as n from ({COMMITS_OF})
    where {{of}} and {{until}} and error_code <> 0 and epoch_ns(ts) >= {{since}} order by ts limit 1"""
# How a member commits, and how far the group has read.
_PACE = """
    select count(*) as n, median(gap) as usual_ns, max(sent_ns) as last_ns from (
        select epoch_ns(ts) as sent_ns, epoch_ns(ts) - lag(epoch_ns(ts)) over (order by ts) as gap
        from kafka_offset_commits where {of} and {until} and {member})"""
_READ = """
    select max(next_offset) as read_to, max(epoch_ns(ts)) as last_ns, arg_max(exchange_id, ts) as exchange_id,
           arg_max(file, ts) as file, arg_max(request_packet, ts) as request_packet, count(*) as fetches,
           arg_max(client_id, ts) as client_id, arg_max(client_address, ts) as client_address
    from kafka_fetch_partitions
    where {place} and group_id = {group} and coalesce(replica_id, -1) < 0 and {until}"""
# From the first to the last commit of a member: what was committed, and what was written.
_RATES = f"""
    select count(*) as commits, min(sent_ns) as first_ns, max(sent_ns) as last_ns,
           max(committed_offset) - arg_min(committed_offset, sent_ns) as done,
           max(log_end_offset) - arg_min(log_end_offset, sent_ns) as written,
           arg_min(log_end_offset - committed_offset, sent_ns) as behind
    from ({COMMITS_OF}) where {{of}} and {{until}} and {{member}} and error_code = 0 and log_end_offset is not null"""
_HELD_BACK = """
    select *, epoch_ns(ts) as at_ns from (select *, null as topic_id from kafka_stable_offset_waits)
    where {place} order by ts desc limit 1"""
_END = "select max(epoch_ns(ts_last)) as end_ns from captures"
_CHANGES = """
    select *, epoch_ns(coalesce(ts_response, ts)) as at_ns from kafka_admin_changes
    where error_code = 0 and not validate_only and {until} and ({of_group} or {of_topic})
    order by ts desc limit 1"""


def standing(ask: Asking, groups: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """How each partition of these groups stands, of all where none is named."""
    view = VIEWS["groups"][""]
    return ask.rows(view_sql(view, column="group_id", names=groups, until_ns=ask.until_ns, now_ns=ask.until_ns))


def partition_link(stand: Mapping[str, Any]) -> Link:
    """The first link of a partition: a row of `standing`."""
    spot = {name: stand[name] for name in ("cluster_id", "group_id", "topic", "partition")}
    offset, end, lag = stand["committed_offset"], stand["log_end_offset"], stand["lag"]
    named = f"{name(stand['topic'])}-{stand['partition']}"
    if offset is None:
        what = f"no committed offset of {named} is known of group {name(stand['group_id'])}"
    else:
        end_text = "" if end is None else f"; the lag is {lag:,}, the log ends at {end}" if lag else \
            f", which is the end of the log ({end})"  # fmt: skip
        what = f"the committed offset of {named} is {offset}{end_text}"
    return Link(PARTITION, tuple(spot.values()), what, facts=dict(stand))


def partition_causes(ask: Asking, link: Link) -> Causes:
    """The commit that stored it; before it, what has kept it from going on."""
    facts = link.facts
    last = ask.one(_filled(_LAST, ask, facts))
    stored_ns = last["at_ns"] if last else 0
    links: list[Link] = []
    higher = None
    if last is not None and last["committed_offset"] == facts["committed_offset"]:
        higher = ask.one(_filled(_HIGHEST, ask, facts, above=last["committed_offset"]))
        links.append(commit_link(last, higher))
    else:
        links.extend(_changed(ask, facts))
    refused = ask.one(_filled(_REFUSED, ask, facts, since=stored_ns))
    if refused is not None:
        links.insert(0, refused_link(refused, refused["n"]))
    elif facts["lag"] or last is None:
        # Of an offset that went back the way back explains the distance.
        links[:0] = _stopped(ask, facts, last) or ([] if higher else _slower(ask, facts, last))
    if not links:
        return Causes(end=_nothing(facts, last))
    return Causes(tuple(links))


def no_commit_causes(ask: Asking, link: Link) -> Causes:
    """What its committer did instead: it read on, it stood, or it is no member any more."""
    facts = link.facts
    from_ns, end_ns = facts.get("silent_from_ns"), facts.get("end_ns")
    if from_ns is None or end_ns is None:
        return Causes(end="its settings show whether it ever means to commit (enable.auto.commit)")
    ended = membership_link(ask, facts, end_ns)
    if ended is not None and (ended.at_ns or 0) >= from_ns - _LEAST_NS:
        return Causes((ended,))
    held = ask.one(_HELD_BACK.format(place=_spot(facts)))
    if held is not None and facts["committed_offset"] == held["last_stable_offset"]:
        return Causes((held_back_link(held),))
    read, client = facts["read"], who(facts["client_id"], facts["client_address"])
    if (
        read["last_ns"] is not None
        and read["last_ns"] > from_ns + _LEAST_NS
        and (read["read_to"] or 0) > (facts["committed_offset"] or 0)
    ):
        what = (
            f"{who(read['client_id'], read['client_address'])} read it on up to {read['read_to']}: what it reads, it "
            "does not commit"
        )
        return Causes((
            Link(READS_ON, (read["exchange_id"],), what, f"{client} reads on without commits", from_ns, read["last_ns"],
                 (place(read),), (row("kafka_fetch_partitions", exchange_id=read["exchange_id"]),)),
        ))  # fmt: skip
    member = {**facts, "rebalance_timeout_ms": None}
    paused = pause_link(ask, member, end_ns)
    return Causes((paused,)) if paused else Causes(end="its own log shows what kept it")


def held_back_link(held: Mapping[str, Any]) -> Link:
    """A row of kafka_stable_offset_waits."""
    by = who(held["client_id"], held["client_address"])
    whose = f"a transaction of {by}" if held["client_id"] else "a transaction"
    named = f" ({name(held['transactional_id'])})" if held["transactional_id"] else ""
    what = (
        f"{whose}{named} is open at {held['last_stable_offset']}: readers of committed records get nothing after it, "
        f"and the log goes to {held['high_watermark']}"
    )
    return Link(HELD_BACK, (held["exchange_id"], held["topic"], held["partition"]), what, f"{whose} stays open",
                held["at_ns"], None, (place(held),),
                (row("kafka_stable_offset_waits", exchange_id=held["exchange_id"], partition=held["partition"]),),
                facts=dict(held))  # fmt: skip


def held_back_causes(_: Asking, __: Link) -> Causes:
    """Whether a transaction ends is its producer's affair."""
    return Causes(end="its producer's log shows why it is not ended; `wirewitness clients --transactions` shows it")


def stopped_links(ask: Asking, cluster_id: str | None, group_id: str, topic: str, partition: int) -> list[Link]:
    """Of a partition that is not committed any more: since when."""
    facts: dict[str, Any] = {"cluster_id": cluster_id, "group_id": group_id, "topic": topic, "partition": partition}
    last = ask.one(_filled(_LAST, ask, facts))
    return _stopped(ask, {**facts, "committed_offset": last["committed_offset"] if last else None}, last)


def reads_on_causes(_: Asking, __: Link) -> Causes:
    """What a client does with what it read is not on the wire."""
    return Causes(end="its own code or settings show why it sends no commit: its connection and membership are fine")


def is_healthy(ask: Asking, stand: Mapping[str, Any]) -> str:
    """What to say of a partition of which nothing is wrong; empty where something may be."""
    last = ask.one(_filled(_LAST, ask, stand))
    if last is None or last["committed_offset"] != stand["committed_offset"] or stand["lag"] is None:
        return ""
    owner = last["owner_member_id"]
    if owner is not None and owner != last["member_id"]:
        return ""
    if ask.one(_filled(_HIGHEST, ask, stand, above=last["committed_offset"])) or ask.one(
        _filled(_REFUSED, ask, stand, since=last["at_ns"])
    ):
        return ""
    if stand["lag"] == 0:
        return f"nothing is wrong: committed up to the end of the log ({stand['log_end_offset']})"
    read = _read(ask, stand)
    offset, end = stand["committed_offset"], stand["log_end_offset"]
    if read["read_to"] is not None and read["read_to"] <= offset:
        ended = _read_ended(ask, read)
        return "" if ended else f"nothing is wrong: all that was read is committed ({offset}); the log goes to {end}"
    if _stopped(ask, stand, last) or stand["time_lag_ms"] is None or stand["time_lag_ms"] * 1e6 > _LEAST_NS:
        return ""
    return f"nothing is wrong: committed up to {offset} at the usual pace; the log goes to {end}"


def _slower(ask: Asking, facts: Mapping[str, Any], last: Mapping[str, Any] | None) -> list[Link]:
    """It is committed, and more is written meanwhile."""
    if last is None:
        return []
    found = ask.rows(_filled(_RATES, ask, facts, member=where(member_id=last["member_id"])))[0]
    seconds = ((found["last_ns"] or 0) - (found["first_ns"] or 0)) / 1e9
    if not found["commits"] or seconds < 1 or found["written"] is None:
        return []
    by = who(last["client_id"], last["client_address"])
    done, written = found["done"] / seconds, found["written"] / seconds
    spot = {name: facts[name] for name in ("cluster_id", "group_id", "topic", "partition")}
    if facts["time_lag_ms"] is not None and facts["time_lag_ms"] * 1e6 <= _LEAST_NS:
        return []
    if written > done * 1.05:
        what = f"{by} commits {rate(done)} records/s, and {rate(written)} records/s are written to it"
        short = "read more slowly than written"
    else:
        what = (
            f"{by} had a lag of {found['behind']:,} at its first commit in the capture; since then it commits "
            f"{rate(done)} records/s where {rate(written)} are written"
        )
        short = "it lagged before"
    return [Link(SLOWER, tuple(spot.values()), what, short, found["first_ns"], found["last_ns"], (),
                 (Row("kafka_offset_commits", of_partition(facts)),), facts=dict(facts))]  # fmt: skip


def slower_causes(_: Asking, __: Link) -> Causes:
    """What a consumer does between two polls is not on the wire."""
    return Causes(end="what takes its consumers the time, between two fetches, is theirs")


def _stopped(ask: Asking, facts: Mapping[str, Any], last: Mapping[str, Any] | None) -> list[Link]:
    """No commits came any more: since when, and whether it was still read."""
    end_ns = _end_ns(ask)
    if end_ns is None:
        return []
    read = _read(ask, facts)
    if last is None:
        if not read["fetches"] or read["read_to"] is None:
            return []
        who_reads = who(read["client_id"], read["client_address"])
        what = f"{who_reads} read it up to {read['read_to']} and sent no commit in the capture"
        return [_no_commit(facts, what, f"{who_reads} never commits", read["last_ns"], read, "medium",
                           "an offset may have been stored before the capture")]  # fmt: skip
    pace = ask.one(_filled(_PACE, ask, facts, member=where(member_id=last["member_id"])))
    usual_ns = (pace or {}).get("usual_ns")
    quiet_ns = end_ns - last["sent_ns"]
    if usual_ns is None or quiet_ns < max(_PAUSES * usual_ns, _LEAST_NS):
        return []
    client = who(last["client_id"], last["client_address"])
    told = (
        f"no commit of it came for the last {seconds_text(quiet_ns)} of the capture, where {client} used to send one "
        f"every {seconds_text(round(usual_ns))}"
    )
    facts = {**facts, "silent_from_ns": last["sent_ns"], "client_id": last["client_id"], "end_ns": end_ns,
             "client_address": last["client_address"], "member_id": last["member_id"], "read": read}  # fmt: skip
    return [_no_commit(facts, told, f"no commit for {seconds_text(quiet_ns)}", last["sent_ns"], last, "fact", "")]


def _no_commit(
    facts: Mapping[str, Any], what: str, short: str, at_ns: int, found: Mapping[str, Any], sure: Any, assumption: str
) -> Link:
    spot = {name: facts[name] for name in ("cluster_id", "group_id", "topic", "partition")}
    table = "kafka_offset_commits" if "committed_offset" in found else "kafka_fetch_partitions"
    return Link(
        NO_COMMIT, tuple(spot.values()), what, short, at_ns, facts.get("end_ns"), (place(found),),
        (row(table, exchange_id=found["exchange_id"], topic=facts["topic"], partition=facts["partition"]),),
        sure, assumption, dict(facts),
    )  # fmt: skip


def _changed(ask: Asking, facts: Mapping[str, Any]) -> list[Link]:
    """Who changed the group's offsets, or the topic, last."""
    group, topic = facts["group_id"], facts["topic"]
    query = _CHANGES.format(
        until=ask.until("epoch_ns(ts)"),
        of_group=f"(resource_type = 'group' and resource_name = {literal(group)})",
        of_topic=f"(operation = 'DeleteTopics' and resource_name = {literal(topic)})",
    )
    found = ask.one(query)
    if found is None:
        return []
    return [admin_link(found)]


def admin_link(found: Mapping[str, Any]) -> Link:
    """A row of kafka_admin_changes that was made."""
    client = who(found["client_id"], found["client_address"])
    what = f"{client} asked to {name(found['change'])} of {name(found['resource_name'])} ({found['operation']})"
    return Link(
        "admin", (found["exchange_id"],), what, f"{client}: {name(found['change'])}", found["at_ns"], None,
        (place(found),), (row("kafka_admin_changes", exchange_id=found["exchange_id"]),),
    )  # fmt: skip


def _read(ask: Asking, facts: Mapping[str, Any]) -> dict[str, Any]:
    query = _READ.format(place=_spot(facts), group=literal(facts["group_id"]), until=ask.until("epoch_ns(ts)"))
    return ask.rows(query)[0]


def _spot(facts: Mapping[str, Any]) -> str:
    """SQL: rows of this partition, whoever's."""
    cluster = where(cluster_id=facts["cluster_id"], partition=facts["partition"])
    return f"{cluster} and coalesce(topic, topic_id) {known(facts['topic'])}"


def _read_ended(ask: Asking, read: Mapping[str, Any]) -> bool:
    """Nobody fetched it in the last seconds of the capture although the log goes on."""
    end_ns = _end_ns(ask)
    return end_ns is not None and read["last_ns"] is not None and end_ns - read["last_ns"] > _LEAST_NS


def _end_ns(ask: Asking) -> int | None:
    if ask.until_ns is not None:
        return ask.until_ns
    found = ask.one(_END)
    return found["end_ns"] if found else None


def _filled(query: str, ask: Asking, facts: Mapping[str, Any], **more: object) -> str:
    until = ask.until("epoch_ns(coalesce(ts_response, ts))")
    return query.format(of=of_partition(facts), until=until, **more)


def _nothing(facts: Mapping[str, Any], last: Mapping[str, Any] | None) -> str:
    if last is not None:
        return "who changed it since the last commit is not in this capture"
    if facts["committed_offset"] is not None:
        return "a response reported it; the commit that stored it was before the capture, or went another way"
    return f"nothing in this capture stored an offset: {count(0, 'commit')} of it"
