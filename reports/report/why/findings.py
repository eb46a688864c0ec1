"""Why a finding came about: what its incident begins with, and what its evidence rests on.

In: a finding. Out: the finding that it follows from; the commit, member, rebalance or exchange behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.why.asking import Asking, finding_link, where
from wirewitness.reports.base.why.model import Causes, Link
from wirewitness.reports.base.why.network import ns_of_number
from wirewitness.reports.protocols.kafka.why.commits import commit_link, refused_link
from wirewitness.reports.protocols.kafka.why.groups import membership_of, pause_link, rebalance_link
from wirewitness.reports.protocols.kafka.why.pace import stopped_links
from wirewitness.reports.protocols.mqtt.why import causes as mqtt

_MEMBER = """
    select *, epoch_ns(ts) as first_ns, epoch_ns(ts_last) as last_ns, epoch_ns(ts_ended) as ended_ns,
           epoch_ns(ts_silent) as silent_ns, epoch_ns(ts_closed) as closed_ns
    from kafka_members where {group} and {member} and ended is not null
    order by ended = 'active', abs(epoch_ns(ts_last) - {at_ns}) limit 1"""
_REBALANCE = """
    select *, epoch_ns(ts) as at_ns, epoch_ns(ts_end) as end_ns, epoch_ns(ts_waited_last) as waited_last_ns
    from kafka_rebalances
    where {group} and epoch_ns(ts) between {from_ns} and {to_ns} order by waited_ms desc nulls last, ts limit 1"""


def leads_back(found: Finding) -> bool:
    """Whether its rule's numbers can lead further back than its sentence, by small tables alone."""
    return found.code in _BEHIND and _BEHIND[found.code] not in (_stopped, _pause, _changed)


def finding_causes(ask: Asking, link: Link) -> Causes:
    """What its rule's numbers lead to; where they lead to nothing, what its incident begins with."""
    found: Finding = link.facts["finding"]
    look = _BEHIND.get(found.code)
    behind = [one for one in look(ask, found) if one is not None] if look else []
    first = None if found.incident_id == found.finding_id else _finding(ask, found.incident_id)
    if first is not None and first.code == found.code:
        return Causes(tuple(behind), end=f"it is one of several findings of {found.code} with one cause, which begin "
                      f"with {first.finding_id}")  # fmt: skip
    if first is not None and not behind:
        behind.append(_followed(first))
    if behind:
        return Causes(tuple(behind))
    if look is not None:
        return Causes(end="what led to it is not in this capture")
    return Causes(
        end=f"nothing further back is looked for behind {found.code}: its packets and numbers are all it says"
    )


def _followed(first: Finding) -> Link:
    link = finding_link(first)
    words = "it concerns the same and comes no earlier, and the rule of the one names what the other's rule finds"
    return Link(link.kind, link.key, link.what, link.short, link.at_ns, link.until_ns, link.places, link.rows, "medium",
                words, link.facts)  # fmt: skip


def _finding(ask: Asking, finding_id: str) -> Finding | None:
    return next((one for one in ask.findings() if one.finding_id == finding_id), None)


def _evidence(ask: Asking, found: Finding) -> list[dict[str, Any]]:
    """The accepted commits of its evidence about its partition, in the broker's order."""
    if found.topic_partition is None:
        return []
    spot = (found.numbers.get("group"), *found.topic_partition)
    rows = [
        one for one in ask.commits(evidence_ids(found))
        if (one["group_id"], one["topic"], one["partition"]) == spot and one["error_code"] == 0
    ]  # fmt: skip
    return sorted(rows, key=lambda one: (one["at_ns"], one["sent_ns"]))


def evidence_ids(found: Finding) -> list[str]:
    """Ids of its messages."""
    return [str(one["message_id"]) for one in found.evidence if one.get("message_id")]


def _stale_commit(ask: Asking, found: Finding) -> list[Link | None]:
    """The commit of its evidence that went back furthest, and the one it went back from."""
    worst: tuple[int, dict[str, Any], dict[str, Any]] | None = None
    highest: dict[str, Any] | None = None
    for commit in _evidence(ask, found):
        if highest is None or commit["committed_offset"] >= highest["committed_offset"]:
            highest = commit
        elif worst is None or highest["committed_offset"] - commit["committed_offset"] > worst[0]:
            worst = highest["committed_offset"] - commit["committed_offset"], commit, highest
    return [] if worst is None else [commit_link(worst[1], worst[2])]


def _foreign_commit(ask: Asking, found: Finding) -> list[Link | None]:
    """A commit of its evidence by somebody else than the owner, the last one."""
    foreign = [one for one in _evidence(ask, found) if one["owner_member_id"] not in (None, one["member_id"])]
    return [commit_link(foreign[-1], None)] if foreign else []


def _dual(ask: Asking, found: Finding) -> list[Link | None]:
    return _stale_commit(ask, found) or _foreign_commit(ask, found)


def _refused(ask: Asking, found: Finding) -> list[Link | None]:
    """The first refused commit of its evidence."""
    rows = [one for one in ask.commits(evidence_ids(found)) if one["error_code"]]
    first = min(rows, key=lambda one: one["sent_ns"], default=None)
    return [refused_link(first, int(found.numbers.get("refused_requests") or 1))] if first else []


def _member(ask: Asking, found: Finding) -> list[Link | None]:
    """How the membership that it names ended; of one that lives on, the silence alone."""
    numbers = found.numbers
    if numbers.get("member") is None or found.first_ns is None:
        return []
    at_ns = ns_of_number(numbers.get("since")) or found.first_ns
    row_found = ask.one(_MEMBER.format(group=_group(found), member=where(member_id=numbers["member"]), at_ns=at_ns))
    if row_found is None or row_found["ended"] == "active":
        return []
    return [membership_of(row_found)]


def _rebalance(ask: Asking, found: Finding) -> list[Link | None]:
    """The rebalance in its time for which was waited longest; before it the membership, where it is about one."""
    if found.numbers.get("kind") in ("dead", "gone"):
        return _member(ask, found)
    from_ns, to_ns = ns_of_number(found.numbers.get("since")) or found.first_ns, found.last_ns
    if from_ns is None or to_ns is None:
        return []
    one = ask.one(_REBALANCE.format(group=_group(found), from_ns=from_ns - 1_000_000_000, to_ns=to_ns))
    return [rebalance_link(one)] if one else []


def _pause(ask: Asking, found: Finding) -> list[Link | None]:
    """Of a member that leaves again and again: the pause before it left last."""
    members = _member(ask, found)
    if not members or members[0] is None:
        return []
    facts = members[0].facts
    return [pause_link(ask, facts, facts["ended_ns"]) or members[0]]


def _stopped(ask: Asking, found: Finding) -> list[Link | None]:
    """Of the first of its partitions: since when it is not committed."""
    numbers = found.numbers
    for topic, partition in found.partitions()[:1]:
        return list(stopped_links(ask, numbers.get("cluster"), str(numbers.get("group")), topic, partition))
    return []


def _changed(ask: Asking, found: Finding) -> list[Link | None]:
    """Who changed what the group goes on from, where its rule names the change."""
    from wirewitness.reports.protocols.kafka.why.commits import reading_link

    ids = _ids(found)
    query = f"""
        select *, epoch_ns(ts) as at_ns from kafka_fetch_ranges
        where {_group(found)} and exchange_id in ({ids}) and change_exchange_id is not null order by ts limit 1"""
    one = ask.one(query)
    return [reading_link(one)] if one else []


def _ended(ask: Asking, found: Finding) -> list[Link | None]:
    """How the connection of its first evidence that ended did so."""
    flows = [str(found.numbers.get("flow_id"))] if found.numbers.get("flow_id") else []
    flows += [str(one["message_id"]).partition("-")[0] for one in found.evidence if one.get("message_id")]
    ended = (mqtt.end_of(ask, flow) for flow in dict.fromkeys(flows))
    return [next((one for one in ended if one is not None), None)]


# Code -> what looks behind it. Rules that tell the whole of what is known by themselves are not here.
_BEHIND: Mapping[str, Callable[[Asking, Finding], list[Link | None]]] = {
    "KAF101": _dual, "KAF102": _dual, "KAF103": _stale_commit, "KAF104": _foreign_commit, "KAF105": _refused,
    "KAF106": _dual, "KAF111": _member, "KAF116": _pause, "KAF119": _pause, "KAF126": _rebalance, "KAF127": _member,
    "KAF107": _stopped, "KAF109": _stopped, "KAF122": _stopped, "KAF114": _changed, "KAF121": _changed,
    "MQT102": _ended, "MQT103": _ended,
}  # fmt: skip


def _group(found: Finding) -> str:
    return where(cluster_id=found.numbers.get("cluster"), group_id=found.numbers.get("group"))


def _ids(found: Finding) -> str:
    return ", ".join(literal(one["message_id"]) for one in found.evidence if one.get("message_id")) or "''"
