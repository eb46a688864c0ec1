"""Where a commit comes from: what its member was given, and when it lost it. In: a commit; out: its assignment, the
commit that overtook it, the reading that began again, or whoever is no member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.times import moment_text, seconds_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.why.asking import COMMITS_OF, Asking, by_id, known, name, place, row, where, who
from wirewitness.reports.base.why.model import Causes, Link, Row
from wirewitness.reports.protocols.kafka.why.groups import assignment_link, membership_link, rebalance_between

COMMIT, REFUSED, LOST, TOOL, OVERTAKEN, REREAD = (
    "commit", "refused_commit", "lost_assignment", "tool", "overtaken", "reading_again",
)  # fmt: skip
# Two commits of a member on their way at a time are no further apart than this.
_AT_ONCE_NS = 5_000_000_000
_REBALANCING = (22, 25, 27, 82, 110)
_MEANS = {
    22: "the generation of its sender is over",
    25: "the group does not know its sender any more",
    27: "the group was rebalancing",
    82: "another member has its static name",
    110: "its member epoch is over",
    113: "its member epoch is over",
}

_GIVEN = """
    select *, epoch_ns(ts) as at_ns from kafka_ownership
    where {group} and member_id = {member} and {place} and epoch_ns(ts) <= {at_ns} order by ts desc limit 1"""
# Who got it next after a member had it.
_TAKEN = """
    select *, epoch_ns(ts) as at_ns from kafka_ownership
    where {group} and member_id <> {member} and {place} and epoch_ns(ts) > {from_ns} and epoch_ns(ts) <= {at_ns}
    order by ts limit 1"""
# How far the member was when it lost it, and how often it wrote the offset since.
_WRITTEN = """
    select max(committed_offset) filter (epoch_ns(ts) <= {lost_ns}) as highest_before,
           arg_max(committed_offset, ts) filter (epoch_ns(ts) <= {lost_ns}) as last_before,
           count(*) filter (epoch_ns(ts) > {lost_ns} and committed_offset = {offset}) as again,
           arg_min(exchange_id, ts) filter (committed_offset = {offset}) as first_exchange_id,
           min(epoch_ns(ts)) filter (committed_offset = {offset}) as first_ns
    from kafka_offset_commits where {of} and member_id = {member} and epoch_ns(ts) <= {at_ns}"""
_RUN = """
    select *, epoch_ns(ts) as at_ns from kafka_fetch_ranges
    where {place} and {group} and {client} and first_offset <= {offset} and epoch_ns(ts) > {from_ns}
        and epoch_ns(ts) <= {at_ns} and started_by <> 'first' order by ts desc limit 1"""
_NAME_OF = """
    select client_id, client_address from kafka_group_events where {group} and member_id = {member}
        and client_id is not null order by ts limit 1"""
_READS = "select count(*) as n from kafka_fetch_partitions where {client} and {group}"


def of_partition(facts: Mapping[str, Any]) -> str:
    """SQL: rows of kafka_offset_commits about this partition of this group."""
    return f"{_group(facts)} and {_place(facts)}"


def commit_link(commit: Mapping[str, Any], higher: Mapping[str, Any] | None) -> Link:
    """A stored commit. higher: one before it that had stored more."""
    client = who(commit["client_id"], commit["client_address"])
    generation = commit["generation"]
    as_member = "" if not commit["member_id"] else f" as a member of generation {generation}"
    foreign = commit["owner_member_id"] not in (None, commit["member_id"])
    over = "" if higher is None else f" over {higher['committed_offset']}"
    what = f"{client} stored {commit['committed_offset']}{over}{as_member}"
    rows = [_commit_row(commit)]
    places = [place(commit)]
    if higher is not None:
        what += f"; {who(higher['client_id'], higher['client_address'])} had stored {higher['committed_offset']} at "
        what += moment_text(higher["at_ns"])
        rows.append(_commit_row(higher))
        places.append(place(higher))
    if foreign:
        what += ", and the partition was not its own any more"
    short = f"{client} stored {commit['committed_offset']}{over}"
    facts = {**commit, "higher": higher}
    return Link(COMMIT, (commit["exchange_id"], commit["topic"], commit["partition"]), what, short,
                commit["sent_ns"], commit["at_ns"], tuple(places), tuple(rows), facts=facts)  # fmt: skip


def commit_causes(ask: Asking, link: Link) -> Causes:
    """What its sender was given, or who it is."""
    commit = link.facts
    if not commit["member_id"]:
        return Causes(tuple(_no_member(ask, commit)), end="it names no member, so it has no assignment")
    given = ask.one(_filled(_GIVEN, commit))
    if given is None:
        own = commit["owner_member_id"] == commit["member_id"]
        told = "before this capture, or went another way" if own else "not in this capture"
        return Causes(tuple(_why_lower(ask, commit)), end=f"what its member was given is {told}")
    taken = ask.one(_filled(_TAKEN, commit, from_ns=given["at_ns"]))
    if taken is not None and commit["owner_member_id"] != commit["member_id"]:
        return Causes((_lost(ask, commit, given, taken),))
    lower = _why_lower(ask, commit)
    client = who(commit["client_id"], commit["client_address"])
    return Causes((*lower, assignment_link(given, client)))


def _lost(ask: Asking, commit: Mapping[str, Any], given: Mapping[str, Any], taken: Mapping[str, Any]) -> Link:
    query = _filled(
        _WRITTEN, commit, lost_ns=taken["at_ns"], of=of_partition(commit), offset=commit["committed_offset"]
    )
    written: dict[str, Any] = {"again": 0, "highest_before": None} if ask.brief else ask.rows(query)[0]
    client = who(commit["client_id"], commit["client_address"])
    other = _client_of(ask, taken)
    named = f"{name(commit['topic'])}-{commit['partition']}"
    what = (
        f"{client} had {named} from {moment_text(given['at_ns'])} on (generation {given['generation']}), until "
        f"generation {taken['generation']} gave it to {other}"
    )
    if written["again"] > 1:
        what += f"; since then it wrote {commit['committed_offset']} {count(written['again'], 'time')}"
    if written["highest_before"] == commit["committed_offset"]:
        what += ", which is how far it was when it lost it"
    rows = (
        row("kafka_ownership", exchange_id=given["exchange_id"], member_id=given["member_id"],
            partition=given["partition"]),
        row("kafka_ownership", exchange_id=taken["exchange_id"], member_id=taken["member_id"],
            partition=taken["partition"]),
    )  # fmt: skip
    short = f"generation {taken['generation']} gave {named} of {client} to {other}"
    return Link(LOST, (given["exchange_id"], taken["exchange_id"], commit["topic"], commit["partition"]), what, short,
                taken["at_ns"], None, (by_id(given["exchange_id"]), by_id(taken["exchange_id"])), rows,
                facts=dict(taken))  # fmt: skip


def lost_causes(ask: Asking, link: Link) -> Causes:
    """The rebalance that gave it to another."""
    found = rebalance_between(ask, link.facts)
    return Causes((found,)) if found else Causes(end="the rebalance that moved it is not in this capture")


def _why_lower(ask: Asking, commit: Mapping[str, Any]) -> list[Link]:
    """Of a commit that stored less than had been stored: the commit that it followed, or the reading behind it."""
    higher = commit.get("higher")
    if higher is None:
        return []
    # The answer to the higher one came after the lower one was sent: both were on their way at once.
    at_once = higher["member_id"] == commit["member_id"] and higher["at_ns"] >= commit["sent_ns"]
    if ask.brief and not at_once:
        return []
    run = None if at_once else ask.one(
        _RUN.format(
            place=_place(commit), group=_group(commit), offset=commit["committed_offset"],
            client=where(client_id=commit["client_id"], client_address=commit["client_address"]),
            from_ns=higher["sent_ns"], at_ns=commit["sent_ns"],
        )
    )  # fmt: skip
    if run is not None:
        return [reading_link(run)]
    same = higher["member_id"] == commit["member_id"]
    if not same or commit["sent_ns"] - higher["sent_ns"] > _AT_ONCE_NS:
        return []
    client = who(commit["client_id"], commit["client_address"])
    apart = seconds_text(commit["sent_ns"] - higher["sent_ns"])
    what = (
        f"{client} itself had sent {higher['committed_offset']} {apart} before: its commits of one partition overtake "
        "each other"
    )
    words = "" if at_once else "it did not read the lower offset again, so the lower commit is an older one sent late"
    return [
        Link(OVERTAKEN, (higher["exchange_id"], commit["exchange_id"]), what,
             f"commits of {client} overtake each other", higher["sent_ns"], higher["at_ns"],
             (place(higher), place(commit)), (_commit_row(higher), _commit_row(commit)),
             "fact" if at_once else "medium", words)
    ]  # fmt: skip


def overtaken_causes(_: Asking, __: Link) -> Causes:
    """Who sends in which order is the client's affair."""
    return Causes(end="a client does so that commits without waiting for the response to the commit before")


def reading_link(run: Mapping[str, Any]) -> Link:
    """A reader that began elsewhere than where its last answer led to."""
    client = who(run["client_id"], run["client_address"])
    before = "" if run["next_offset_before"] is None else f"; its last response had led to {run['next_offset_before']}"
    what = f"{client} read {name(run['topic'])}-{run['partition']} from {run['first_offset']} on{before}"
    return Link(REREAD, (run["exchange_id"], run["topic"], run["partition"]), what,
                f"{client} read from {run['first_offset']} on", run["at_ns"], None, (place(run),),
                (row("kafka_fetch_ranges", exchange_id=run["exchange_id"], partition=run["partition"]),),
                facts=dict(run))  # fmt: skip


def reading_causes(ask: Asking, link: Link) -> Causes:
    """Who changed the offsets, what was stored, or that the client sought by itself."""
    run = link.facts
    if run["change"] is not None and run["change_exchange_id"] is not None:
        changed = who(run["change_client_id"], run["change_client_address"])
        what = f"{changed} changed what it goes on from: {name(run['change'])}"
        if run["change_offset"] is not None:
            what += f" {run['change_offset']}"
        at_ns = ask.one(
            f"select epoch_ns(ts) as at_ns from exchanges where {where(exchange_id=run['change_exchange_id'])}"
        )
        return Causes((
            Link("admin", (run["change_exchange_id"],), what, what, at_ns["at_ns"] if at_ns else None, None,
                 (), (row("exchanges", exchange_id=run["change_exchange_id"]),)),
        ))  # fmt: skip
    if run["stored_offset"] is not None and run["stored_offset"] == run["first_offset"] and run["stored_exchange_id"]:
        found = ask.one(f"{COMMITS_OF} where {where(exchange_id=run['stored_exchange_id'])} and {_place(run)}")
        if found is not None:
            return Causes((commit_link(found, None),))
    return Causes(end="no stored offset, reset or commit of the group leads there: only the client's log shows why")


def refused_link(refused: Mapping[str, Any], times: int) -> Link:
    """A commit that the broker did not take. times: how often that came after the last one that it took."""
    client = who(refused["client_id"], refused["client_address"])
    error = refused["error_name"] or refused["error_code"]
    means = f": {_MEANS[refused['error_code']]}" if refused["error_code"] in _MEANS else ""
    again = "" if times == 1 else f" (the first of {times:,})"
    what = f"the broker refused offset {refused['committed_offset']} of {client} with {error}{again}{means}"
    return Link(REFUSED, (refused["exchange_id"], refused["topic"], refused["partition"]), what,
                f"{error} to {client}", refused["sent_ns"], refused["at_ns"], (place(refused),),
                (_commit_row(refused),), facts=dict(refused))  # fmt: skip


def refused_causes(ask: Asking, link: Link) -> Causes:
    """How its sender came to be no member of the generation any more."""
    refused = link.facts
    if refused["error_code"] not in _REBALANCING:
        return Causes(end="the broker's log says more about this error")
    found = [membership_link(ask, refused, refused["sent_ns"]), rebalance_between(ask, refused)]
    links = tuple(one for one in found if one is not None)
    return Causes(links) if links else Causes(end="how its membership ended is not in this capture")


def _no_member(ask: Asking, commit: Mapping[str, Any]) -> list[Link]:
    """Who commits without being a member: a tool, or a consumer that assigns its partitions itself."""
    client = who(commit["client_id"], commit["client_address"])
    reads = ask.rows(
        _READS.format(
            client=where(client_id=commit["client_id"], client_address=commit["client_address"]), group="true"
        )
    )[0]["n"]
    if reads:
        what = f"{client} names no member and reads by itself: it assigns its own partitions"
        words = "a client that fetches and commits without a member id assigns its partitions itself"
    else:
        what = f"{client} names no member and reads nothing: a tool or an administrator set the offset"
        words = "a client that commits without being a member, and fetches nothing, is a tool"
    return [Link(TOOL, (commit["exchange_id"],), what, what, commit["sent_ns"], None, (place(commit),),
                 (_commit_row(commit),), "high", words, {"reads": reads})]  # fmt: skip


def tool_causes(_: Asking, link: Link) -> Causes:
    """Nothing goes before a person's decision, or before what a program has read."""
    if link.facts["reads"]:
        return Causes(end="it commits what it has read; no member is before it")
    return Causes(end="the capture cannot show who started it, and why")


def _client_of(ask: Asking, given: Mapping[str, Any]) -> str:
    found = ask.one(_NAME_OF.format(group=_group(given), member=literal(given["member_id"])))
    return who(found["client_id"], found["client_address"]) if found else f"member {name(given['member_id'])}"


def _commit_row(commit: Mapping[str, Any]) -> Row:
    return row("kafka_offset_commits", exchange_id=commit["exchange_id"], partition=commit["partition"])


def _group(facts: Mapping[str, Any]) -> str:
    return where(cluster_id=facts["cluster_id"], group_id=facts["group_id"])


def _place(facts: Mapping[str, Any]) -> str:
    return f"coalesce(topic, topic_id) {known(facts['topic'])} and {where(partition=facts['partition'])}"


def _filled(query: str, commit: Mapping[str, Any], **more: object) -> str:
    return query.format(
        group=_group(commit), place=_place(commit), member=literal(commit["member_id"]), at_ns=commit["sent_ns"], **more
    )
