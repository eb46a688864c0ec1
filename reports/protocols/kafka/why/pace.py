"""What keeps a partition from being committed on: commits that stopped, readers that read on, or that are slower than
what is written.

In: group, topic, partition. Out: links, and what several of their functions ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.times import seconds_text
from wirewitness.analyser.kafka.facts.committed import BROKER_ORDER
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.formats.words import rate
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.why.asking import (
    COMMITS_OF,
    Asking,
    known,
    name,
    names_client,
    place,
    related,
    row,
    where,
    who,
)
from wirewitness.reports.base.why.model import Causes, Link, Row
from wirewitness.reports.protocols.kafka.why.commits import of_partition
from wirewitness.reports.protocols.kafka.why.groups import membership_link, pause_link

NO_COMMIT, READS_ON, SLOWER, HELD_BACK = "no_commit", "reads_on", "slower", "held_back"
# Rules that find what slows the Fetches of a client.
_SLOWS = ("KAF302", "KAF304", "KAF317", "NET", "TCP")
# A committer that has said nothing for so many of its usual pauses, and for so long, has stopped.
_PAUSES, LEAST_NS = 8, 3_000_000_000

NEWEST_FIRST = f"row({BROKER_ORDER}) desc"
_LAST = f"""{COMMITS_OF}
    where {{of}} and {{until}} and error_code = 0 and committed_offset >= 0 order by {NEWEST_FIRST} limit 1"""
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


def no_commit_causes(ask: Asking, link: Link) -> Causes:
    """What its committer did instead: it read on, it stood, or it is no member any more."""
    facts = link.facts
    from_ns, end_ns = facts.get("silent_from_ns"), facts.get("end_ns")
    if from_ns is None or end_ns is None:
        return Causes(end="its settings show whether it ever means to commit (enable.auto.commit)")
    ended = membership_link(ask, facts, end_ns)
    if ended is not None and (ended.at_ns or 0) >= from_ns - LEAST_NS:
        return Causes((ended,))
    held = ask.one(_HELD_BACK.format(place=spot_of(facts)))
    if held is not None and facts["committed_offset"] == held["last_stable_offset"]:
        return Causes((held_back_link(held),))
    read, client = facts["read"], who(facts["client_id"], facts["client_address"])
    if (
        read["last_ns"] is not None
        and read["last_ns"] > from_ns + LEAST_NS
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
    if paused:
        return Causes((paused,))
    about = related(ask, from_ns, end_ns, lambda one: names_client(one, facts["client_id"], facts["client_address"]))
    kept = "its membership goes on, no transaction holds it back and it did not read on; its own log shows what kept it"
    return Causes(tuple(about), end="" if about else kept)


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
    last = ask.one(filled(_LAST, ask, facts))
    return stopped(ask, {**facts, "committed_offset": last["committed_offset"] if last else None}, last)


def reads_on_causes(_: Asking, __: Link) -> Causes:
    """What a client does with what it read is not on the wire."""
    return Causes(end="it is still a member; the packets do not show why it sends no commit")


def last_commit(ask: Asking, stand: Mapping[str, Any]) -> dict[str, Any] | None:
    """The last commit of the partition that the broker took."""
    return ask.one(filled(_LAST, ask, stand))


def slower_links(ask: Asking, facts: Mapping[str, Any], last: Mapping[str, Any] | None) -> list[Link]:
    """It is committed, and more is written meanwhile."""
    if last is None:
        return []
    found = ask.rows(filled(_RATES, ask, facts, member=where(member_id=last["member_id"])))[0]
    seconds = ((found["last_ns"] or 0) - (found["first_ns"] or 0)) / 1e9
    if not found["commits"] or seconds < 1 or found["written"] is None:
        return []
    by = who(last["client_id"], last["client_address"])
    done, written = found["done"] / seconds, found["written"] / seconds
    spot = {name: facts[name] for name in ("cluster_id", "group_id", "topic", "partition")}
    if facts["time_lag_ms"] is not None and facts["time_lag_ms"] * 1e6 <= LEAST_NS:
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
                 (Row("kafka_offset_commits", of_partition(facts)),),
                 facts={**facts, **{name: last[name] for name in ("client_id", "client_address")}})]  # fmt: skip


def slower_causes(ask: Asking, link: Link) -> Causes:
    """What slows its client's Fetches; what a consumer does between two of them is not on the wire."""
    facts = link.facts

    def slows(found: Finding) -> bool:
        return found.code.startswith(_SLOWS) and names_client(found, facts["client_id"], facts["client_address"])

    about = related(ask, link.at_ns, link.until_ns, slows)
    if about:
        return Causes(tuple(about))
    return Causes(
        end="no quota, slow broker, small Fetch or lossy connection of its client was found; what it does between two "
        "fetches the capture cannot show"
    )


def stopped(ask: Asking, facts: Mapping[str, Any], last: Mapping[str, Any] | None) -> list[Link]:
    """No commits came any more: since when, and whether it was still read."""
    end_ns = end_ns_of(ask)
    if end_ns is None:
        return []
    read = read_of(ask, facts)
    if last is None:
        if not read["fetches"] or read["read_to"] is None:
            return []
        who_reads = who(read["client_id"], read["client_address"])
        what = f"{who_reads} read it up to {read['read_to']} and sent no commit in the capture"
        return [_no_commit(facts, what, f"{who_reads} never commits", read["last_ns"], read, "medium",
                           "an offset may have been stored before the capture")]  # fmt: skip
    pace = ask.one(filled(_PACE, ask, facts, member=where(member_id=last["member_id"])))
    usual_ns = (pace or {}).get("usual_ns")
    quiet_ns = end_ns - last["sent_ns"]
    if usual_ns is None or quiet_ns < max(_PAUSES * usual_ns, LEAST_NS):
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


def read_of(ask: Asking, facts: Mapping[str, Any]) -> dict[str, Any]:
    query = _READ.format(place=spot_of(facts), group=literal(facts["group_id"]), until=ask.until("epoch_ns(ts)"))
    return ask.rows(query)[0]


def spot_of(facts: Mapping[str, Any]) -> str:
    """SQL: rows of this partition, whoever's."""
    cluster = where(cluster_id=facts["cluster_id"], partition=facts["partition"])
    return f"{cluster} and coalesce(topic, topic_id) {known(facts['topic'])}"


def end_ns_of(ask: Asking) -> int | None:
    if ask.until_ns is not None:
        return ask.until_ns
    found = ask.one(_END)
    return found["end_ns"] if found else None


def filled(query: str, ask: Asking, facts: Mapping[str, Any], **more: object) -> str:
    until = ask.until("epoch_ns(coalesce(ts_response, ts))")
    return query.format(of=of_partition(facts), until=until, **more)
