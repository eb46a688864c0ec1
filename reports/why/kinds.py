"""All kinds of links: which function looks for the causes of each. In: nothing. Out: KINDS.

To add a kind: a function of a link that gives its causes, in the file of its matter, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wirewitness.reports.why import exchange, findings, kafka_commits, kafka_groups, kafka_partition, mqtt, network
from wirewitness.reports.why.ask import Asking
from wirewitness.reports.why.model import Causes, Link


def _admin(_: Asking, __: Link) -> Causes:
    return Causes(end="who typed it, and why, no packet tells")


KINDS: Mapping[str, Callable[[Asking, Link], Causes]] = {
    findings.FINDING: findings.finding_causes,
    exchange.EXCHANGE: exchange.exchange_causes,
    exchange.TCP_WAIT: exchange.tcp_wait_causes,
    "ended": exchange.ended_causes,
    kafka_partition.PARTITION: kafka_partition.partition_causes,
    kafka_partition.NO_COMMIT: kafka_partition.no_commit_causes,
    kafka_partition.READS_ON: kafka_partition.reads_on_causes,
    kafka_partition.SLOWER: kafka_partition.slower_causes,
    kafka_partition.HELD_BACK: kafka_partition.held_back_causes,
    "admin": _admin,
    kafka_commits.COMMIT: kafka_commits.commit_causes,
    kafka_commits.REFUSED: kafka_commits.refused_causes,
    kafka_commits.LOST: kafka_commits.lost_causes,
    kafka_commits.TOOL: kafka_commits.tool_causes,
    kafka_commits.OVERTAKEN: kafka_commits.overtaken_causes,
    kafka_commits.REREAD: kafka_commits.reading_causes,
    kafka_groups.ASSIGNED: kafka_groups.assignment_causes,
    kafka_groups.REBALANCE: kafka_groups.rebalance_causes,
    kafka_groups.MEMBERSHIP: kafka_groups.membership_causes,
    kafka_groups.STARTED: kafka_groups.started_causes,
    kafka_groups.WAITED: kafka_groups.waited_causes,
    kafka_groups.PAUSE: kafka_groups.pause_causes,
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
