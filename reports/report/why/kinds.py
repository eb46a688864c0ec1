"""All kinds of links: which function looks for the causes of each. In: nothing. Out: KINDS.

To add a kind: a function of a link that gives its causes, in the file of its matter, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wirewitness.reports.base.why import network
from wirewitness.reports.base.why.asking import Asking
from wirewitness.reports.base.why.model import Causes, Link
from wirewitness.reports.protocols.kafka.why import commits, groups, partition
from wirewitness.reports.protocols.mqtt.why import mqtt
from wirewitness.reports.report.why import exchange, findings


def _admin(_: Asking, __: Link) -> Causes:
    return Causes(end="who typed it, and why, no packet tells")


KINDS: Mapping[str, Callable[[Asking, Link], Causes]] = {
    findings.FINDING: findings.finding_causes,
    exchange.EXCHANGE: exchange.exchange_causes,
    exchange.TCP_WAIT: exchange.tcp_wait_causes,
    "ended": exchange.ended_causes,
    partition.PARTITION: partition.partition_causes,
    partition.NO_COMMIT: partition.no_commit_causes,
    partition.READS_ON: partition.reads_on_causes,
    partition.SLOWER: partition.slower_causes,
    partition.HELD_BACK: partition.held_back_causes,
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
    mqtt.DELIVERY: mqtt.delivery_causes,
    mqtt.AWAY: mqtt.away_causes,
    mqtt.TAKEN_OVER: mqtt.taken_over_causes,
    mqtt.SILENT: mqtt.silent_causes,
    mqtt.SESSION: mqtt.session_causes,
    mqtt.HELD_UP: mqtt.held_up_causes,
    mqtt.REFUSED: mqtt.refused_causes,
    mqtt.TOO_LARGE: mqtt.too_large_causes,
    mqtt.NOT_SUBSCRIBED: mqtt.not_subscribed_causes,
    network.AGAIN: network.again_causes,
    network.CLOSED: network.closed_causes,
    network.SERVER_STOOD: network.server_stood_causes,
    network.STOOD: network.stood_causes,
}
