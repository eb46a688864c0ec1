"""Standard keys of a finding's numbers: by them findings are put together to incidents, and their costs compared.

A fact that is not known is left out: never 0 as a guess. Each rule adds what it measured under names of its own.

Joining
    cluster, group (groups: a list), topic (topics), partition with topic (partitions: a list of "topic-0").
    address, client_id, member, instance_id: of the one client that caused it.
    clients or committers: mappings with address, client_id, member_id and what else is known of each; whom the reader
        should look at, the culprit first. victims: likewise, those who only suffer.
    transactional_id, producer_id, topic_id; flow_id (flows); server (servers) as `host:port`; missing_servers: those
        that were not there, where others speak of them.
    error_code, or errors (code -> requests): errors on the wire that the finding judges, of its clients and victims.
    where: a text for people. since, until: ISO 8601 or Unix ms, when the condition held, where evidence is narrower.

Cost, each at least 0
    records_lost: never delivered, never stored, or skipped for good.
    records_again: delivered, handled or written more than once.
    stood_still_ms: wall time in which a partition, group or client made no progress because of it.
    records_behind: records that wait at the end, or at worst.
    requests_refused: requests answered with an error or not at all, connections refused.
    wasted_ms: time that requests took beyond what was needed, all of them together.
    left_behind: cursors, sessions, connections and collections that were opened and are not used or not closed.
    breaches: packets that break the protocol's rules, commands that break with what all others keep to.
    bytes: what was sent without need, or at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.analyser.base.words import printable

# A title fits a line of a terminal and the head of a card; a name of a topic may have 249 characters.
LONGEST_TITLE, _LONGEST_NAME = 120, 48
# Words of rules' names that are not written as they stand there.
_SPELT = {
    "dup": "DUP", "id": "id", "isr": "ISR", "n": "N", "ping": "PINGREQ", "qos": "QoS", "qos2": "QoS 2", "tls": "TLS",
}  # fmt: skip
# What each unit costs, in records that are handled twice: a record lost is worse than some handled twice; a second in
# which something stands still compares with some records, one in which single requests wait with less; what only waits
# is small.
COSTS: Mapping[str, float] = {
    "records_lost": 5.0,
    "records_again": 1.0,
    "stood_still_ms": 0.005,
    "records_behind": 0.05,
    "requests_refused": 0.2,
    "wasted_ms": 0.001,
    "left_behind": 0.1,
    "breaches": 0.01,
    "bytes": 0.000_000_1,
}
# What rules from before these keys call records delivered again or skipped.
_FORMER = ("replay_now", "replay", "worst_delta", "delta", "messages")


def cost(numbers: Mapping[str, Any]) -> float:
    """What a finding cost, to compare it with others; 0 where its numbers do not say."""
    named = sum(weight * _known(numbers.get(key)) for key, weight in COSTS.items())
    return named or max((abs(_known(numbers.get(key))) for key in _FORMER), default=0.0)


def _known(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else 0.0


def default_title(name: str, numbers: Mapping[str, Any]) -> str:
    """What a finding is called whose rule gives no title: `Offset regression: payments-4 of group ledger`."""
    words = " ".join(_SPELT.get(word, word) for word in name.split("-"))
    where = _where(numbers)
    return f"{words[:1].upper()}{words[1:]}{': ' if where else ''}{where}"


def _where(numbers: Mapping[str, Any]) -> str:
    """The narrowest thing that the numbers name: a partition, a group, a place, a client, a server."""
    topic, partition, group = numbers.get("topic"), numbers.get("partition"), numbers.get("group")
    place = f"{_short(topic)}-{partition}" if topic is not None and isinstance(partition, int) else ""
    if group is not None:
        return f"{place} of group {_short(group)}" if place else f"group {_short(group)}"
    clients = numbers.get("committers") or numbers.get("clients")
    client = clients[0] if isinstance(clients, list) and clients and isinstance(clients[0], Mapping) else numbers
    named = client.get("client_id", client.get("client")) or client.get("address")
    others = (numbers.get("where"), named, numbers.get("server"), topic)
    return place or next((_short(one) for one in others if one), "")


def _short(value: object) -> str:
    return printable(str(value), _LONGEST_NAME)
