"""Why the stored offset of a partition is what it is. In: group, topic, partition. Out: the commit that stored it, what
keeps it from moving on, and who changed it besides.

As in `wirewitness groups`, what is stored is what the last accepted commit, or the last OffsetFetch, told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.words import count
from wirewitness.analyser.tables.queries import literal
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
from wirewitness.reports.base.why.model import Causes, Link
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS
from wirewitness.reports.protocols.kafka.why.commits import commit_link, of_partition, refused_link
from wirewitness.reports.protocols.kafka.why.pace import (
    LEAST_NS,
    NEWEST_FIRST,
    NO_COMMIT,
    SLOWER,
    end_ns_of,
    filled,
    last_commit,
    read_of,
    slower_links,
    spot_of,
    stopped,
)
from wirewitness.reports.protocols.kafka.why.paused import PAUSED, paused_link
from wirewitness.reports.protocols.kafka.why.refused import no_leader, refused_access, truncated

PARTITION = "stored_offset"
# Links that say why it does not go on.
_EXPLAINS = ("no_leader", "refused_access", "refused_commit", NO_COMMIT, SLOWER, PAUSED)
# What is looked for before nothing is said to be wrong.
TESTED = (
    "refused commits and fetches, a missing leader, a truncated log, offsets that moved back, commits of other "
    "members, commits that stopped, a paused partition, findings about the partition, its group and its client"
)

_HIGHEST = f"""{COMMITS_OF}
    where {{of}} and {{until}} and error_code = 0 and committed_offset > {{above}}
    order by committed_offset desc, {NEWEST_FIRST} limit 1"""
# The error that came most often since, and its first commit.
_REFUSED = f"""
    select *, count(*) over (partition by error_code) as n from ({COMMITS_OF})
    where {{of}} and {{until}} and error_code <> 0 and epoch_ns(ts) >= {{since}} order by n desc, ts limit 1"""
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
    last = last_commit(ask, facts)
    stored_ns = last["at_ns"] if last else 0
    links: list[Link] = []
    higher = None
    if last is not None and last["committed_offset"] == facts["committed_offset"]:
        higher = ask.one(filled(_HIGHEST, ask, facts, above=last["committed_offset"]))
        links.append(commit_link(last, higher))
    else:
        links.extend(_changed(ask, facts))
    refused = ask.one(filled(_REFUSED, ask, facts, since=stored_ns))
    if refused is not None:
        links.insert(0, refused_link(refused, refused["n"]))
    elif facts["lag"] or last is None:
        # Of an offset that went back the way back explains the distance.
        paused = None if higher else paused_link(ask, facts, end_ns_of(ask))
        slow = [paused] if paused else stopped(ask, facts, last) or ([] if higher else slower_links(ask, facts, last))
        links[:0] = slow
    links[:0] = barred(ask, facts)
    reached = max((one["committed_offset"] or 0 for one in (facts, higher) if one is not None), default=0)
    if (cut := truncated(ask, facts, reached)) is not None:
        links.insert(0, cut)
    never = facts["committed_offset"] is None
    if (facts["lag"] or never) and not higher and not any(one.kind in _EXPLAINS for one in links):
        end_ns, clients = end_ns_of(ask), clients_of(ask, facts, last)
        since_ns = 0 if never else stored_ns or end_ns
        links += related(ask, since_ns, end_ns, lambda one: is_about(one, facts, clients))
    if not links:
        return Causes(end=_nothing(facts, last))
    return Causes(tuple(links))


def barred(ask: Asking, facts: Mapping[str, Any]) -> list[Link]:
    """That the partition has no leader, or that its group's Fetches are refused, at the last."""
    fetches = f"group_id {known(facts['group_id'])} and coalesce(replica_id, -1) < 0"
    found = (no_leader(ask, facts), refused_access(ask, facts, "Fetch", fetches))
    return [one for one in found if one is not None]


def clients_of(ask: Asking, facts: Mapping[str, Any], last: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Client id and address of who committed the partition last; where nobody did, of all that fetch it for the group.
    last: that commit."""
    if last is not None:
        return [(last["client_id"], last["client_address"])]
    fetches = f"{spot_of(facts)} and group_id {known(facts['group_id'])}"
    query = f"select distinct client_id, client_address from kafka_fetch_partitions where {fetches} order by all"
    return [(one["client_id"], one["client_address"]) for one in ask.rows(query)]


def is_about(found: Finding, facts: Mapping[str, Any], clients: Sequence[tuple[str, str]]) -> bool:
    """Whether a finding names the partition, its group as a whole, or one of these clients (client id, address)."""
    numbers, places = found.numbers, found.partitions()
    here = (str(facts["topic"]), facts["partition"]) in places
    if numbers.get("group") is not None:
        return numbers["group"] == facts["group_id"] and (here or not places)
    return here or any(names_client(found, *one) for one in clients)


def flows_of(facts: Mapping[str, Any]) -> str:
    """A SELECT of the connections on which the group commits, fetches and rebalances this partition."""
    group = where(cluster_id=facts["cluster_id"], group_id=facts["group_id"])
    fetches = f"{spot_of(facts)} and group_id {known(facts['group_id'])}"
    return (
        f"select flow_id from kafka_offset_commits where {of_partition(facts)} union "
        f"select flow_id from kafka_fetch_partitions where {fetches} union "
        f"select flow_id from kafka_group_events where {group}"
    )


def is_healthy(ask: Asking, stand: Mapping[str, Any]) -> str:
    """What to say of a partition of which nothing is wrong; empty where something may be."""
    last = last_commit(ask, stand)
    if last is None or last["committed_offset"] != stand["committed_offset"] or stand["lag"] is None:
        return ""
    if barred(ask, stand) or truncated(ask, stand, last["committed_offset"]):
        return ""
    owner = last["owner_member_id"]
    if owner is not None and owner != last["member_id"]:
        return ""
    if ask.one(filled(_HIGHEST, ask, stand, above=last["committed_offset"])) or ask.one(
        filled(_REFUSED, ask, stand, since=last["at_ns"])
    ):
        return ""
    if stand["lag"] == 0:
        return f"committed up to the end of the log ({stand['log_end_offset']})"
    if paused_link(ask, stand, end_ns_of(ask)):
        return ""
    read = read_of(ask, stand)
    offset, end = stand["committed_offset"], stand["log_end_offset"]
    if read["read_to"] is not None and read["read_to"] <= offset:
        ended = _read_ended(ask, read)
        return "" if ended else f"all that was read is committed ({offset}); the log goes to {end}"
    if stopped(ask, stand, last) or stand["time_lag_ms"] is None or stand["time_lag_ms"] * 1e6 > LEAST_NS:
        return ""
    return f"committed up to {offset} at the usual pace; the log goes to {end}"


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


def _read_ended(ask: Asking, read: Mapping[str, Any]) -> bool:
    """Nobody fetched it in the last seconds of the capture although the log goes on."""
    end_ns = end_ns_of(ask)
    return end_ns is not None and read["last_ns"] is not None and end_ns - read["last_ns"] > LEAST_NS


def _nothing(facts: Mapping[str, Any], last: Mapping[str, Any] | None) -> str:
    if last is not None:
        return "who changed it since the last commit is not in this capture"
    if facts["committed_offset"] is not None:
        return "a response reported it; the commit that stored it was before the capture, or went another way"
    return f"nothing in this capture stored an offset: {count(0, 'commit')} of it"
