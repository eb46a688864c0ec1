"""From a link to its causes, and theirs. In: a first link. Out: a `Step` with the steps behind it.

A chain has no circles and an end: a link is told once, and depth, candidates and the number of all links are bounded.
What is left out is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from wirewitness.reports.base.why import network
from wirewitness.reports.base.why.asking import FINDING, Asking
from wirewitness.reports.base.why.model import Causes, Link, Step
from wirewitness.reports.protocols.kafka.why import commits, groups, pace, partition, paused, refused
from wirewitness.reports.protocols.mqtt.why import causes as mqtt
from wirewitness.reports.protocols.mqtt.why import topic
from wirewitness.reports.report.why import exchange, findings, waits

# All kinds of links: which function looks for the causes of each. In: nothing. Out: KINDS.
#
# To add a kind: a function of a link that gives its causes, in the file of its matter, and a line here.


def _admin(_: Asking, __: Link) -> Causes:
    return Causes(end="the capture cannot show who typed it, and why")


KINDS: Mapping[str, Callable[[Asking, Link], Causes]] = {
    FINDING: findings.finding_causes,
    exchange.EXCHANGE: exchange.exchange_causes,
    waits.TCP_WAIT: waits.tcp_wait_causes,
    waits.QUEUE: waits.queue_causes,
    "ended": exchange.ended_causes,
    partition.PARTITION: partition.partition_causes,
    pace.NO_COMMIT: pace.no_commit_causes,
    pace.READS_ON: pace.reads_on_causes,
    pace.SLOWER: pace.slower_causes,
    pace.HELD_BACK: pace.held_back_causes,
    refused.NO_LEADER: refused.no_leader_causes,
    refused.TRUNCATED: refused.no_leader_causes,
    refused.REFUSED_ACCESS: refused.refused_access_causes,
    "admin": _admin,
    commits.COMMIT: commits.commit_causes,
    commits.REFUSED: commits.refused_causes,
    commits.LOST: commits.lost_causes,
    commits.TOOL: commits.tool_causes,
    commits.OVERTAKEN: commits.overtaken_causes,
    commits.REREAD: commits.reading_causes,
    groups.ASSIGNED: groups.assignment_causes,
    groups.REBALANCE: groups.rebalance_causes,
    groups.MEMBERSHIP: groups.membership_causes,
    groups.STARTED: groups.started_causes,
    groups.WAITED: groups.waited_causes,
    groups.PAUSE: groups.pause_causes,
    paused.PAUSED: paused.paused_causes,
    mqtt.DELIVERY: mqtt.delivery_causes,
    mqtt.AWAY: mqtt.away_causes,
    mqtt.TAKEN_OVER: mqtt.taken_over_causes,
    mqtt.SILENT: mqtt.silent_causes,
    mqtt.SESSION: mqtt.session_causes,
    mqtt.HELD_UP: mqtt.held_up_causes,
    mqtt.REFUSED: mqtt.refused_causes,
    mqtt.TOO_LARGE: mqtt.too_large_causes,
    topic.TOPIC: topic.topic_causes,
    topic.FATE: topic.fate_causes,
    network.AGAIN: network.again_causes,
    network.CLOSED: network.closed_causes,
    network.SERVER_STOOD: network.server_stood_causes,
    network.STOOD: network.stood_causes,
}


MOST_DEPTH, MOST_CANDIDATES, MOST_LINKS = 12, 4, 40
# What is seen after its effect is no cause; clocks of captures in several files differ a little.
_SLACK_NS = 50_000_000


@dataclass(slots=True)
class _Walk:
    ask: Asking
    told: set[tuple[Hashable, ...]] = field(default_factory=set)


def walk(ask: Asking, first: Link) -> Step:
    """The link with all that led to it."""
    return _step(_Walk(ask), first, None, 0)


def _step(walking: _Walk, link: Link, effect: Link | None, depth: int) -> Step:
    walking.told.add((link.kind, *link.key))
    found = KINDS[link.kind](walking.ask, link) if depth < MOST_DEPTH else Causes(end="the chain goes on from here")
    early = [one for one in found.links if not _is_later(one, link)]
    fresh = [one for one in early if (one.kind, *one.key) not in walking.told]
    if early and not fresh:
        return Step(link, end="what led to this is shown above")
    shown = fresh[:MOST_CANDIDATES]
    steps: list[Step] = []
    for one in shown:
        if len(walking.told) >= MOST_LINKS:
            break
        if (one.kind, *one.key) not in walking.told:
            steps.append(_step(walking, one, link, depth + 1))
    left_out = found.more + len(fresh) - len(steps)
    return Step(link, tuple(steps), found.end, left_out)


def _is_later(cause: Link, effect: Link) -> bool:
    if cause.at_ns is None or effect.at_ns is None:
        return False
    return cause.at_ns > max(effect.at_ns, effect.until_ns or 0) + _SLACK_NS
