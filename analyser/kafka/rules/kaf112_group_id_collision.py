"""KAF112 group-id-collision: one group id is used by two applications.

Finds
    Members of one group that subscribe to topics of which none is common, while both are members; and clients that the
    group refuses (23 INCONSISTENT_GROUP_PROTOCOL), because they speak another protocol type (consumer, connect, ...) or
    offer no assignor that all members know.

Why it matters
    Each start, stop or death of one application makes the other rebalance and stop reading. A client that is refused
    reads nothing at all, and asks the coordinator again and again.

How it decides
    Topics: two clients (address, client id) were members at the same time, and their subscriptions have no topic in
    common. Subscriptions that overlap are left out: a release that adds a topic looks like that while it is rolled out.
    warning.
    Refused: 23, `refused_least` times or more; the protocol type, or the assignors offered, are compared with those of
    the members. warning; info where the client becomes a member after all, as in a change of assignors that is rolled
    out.
    Two applications that read the same topics under one group id are not to be told from one that grew.
    What it costs: the rebalances since the second one came, how long they took, and the JoinGroup and SyncGroup
    requests that they needed; of a client that is refused how often it asks, its share of the group's JoinGroups, and
    for how long it has been reading nothing.

False alarms
    An application that changes to entirely other topics, while its old and new release run side by side.

What it cannot tell
    Subscriptions are in JoinGroup requests (KIP-848: the first heartbeat): in a capture that begins after both joined
    nothing is said. Of requests alone the refusals are not seen, of answers alone the subscriptions are not. What it
    cost before the capture is not counted.

References
    Kafka protocol error 23; GroupMetadata.supportsProtocols. KIP-429 says how to change assignors in two rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text, seconds_text, time_text
from wirewitness.analyser.base.words import count, names_text, printable, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Spans
from wirewitness.analyser.kafka.rules.members import KEYS, MEMBER_COLUMNS, MEMBERS, REBALANCES, culprit, proof, who
from wirewitness.analyser.kafka.rules.names import (
    MAX_NAME,
    client_text,
    first_text,
    group_text,
    short_clients,
    short_who,
    title_text,
)

EVENTS = "kafka_group_events"
INCONSISTENT_GROUP_PROTOCOL = 23
_MOST_CLIENTS = 20
# Pairs of members are compared: a group of more clients is looked at by its first ones.
_MOST_COMPARED = 200

Client = tuple[str | None, str | None]


class _Cost(NamedTuple):
    """What two applications in one group cost while both were members: rebalances, their time, requests for them."""

    lasts_ns: int
    rebalances: int
    took_ns: int
    requests: int

    @property
    def text(self) -> str:
        if not self.rebalances:
            return ""
        asked = count(self.requests, "JoinGroup or SyncGroup request")
        return f", which took {seconds_text(self.took_ns)} and {asked}"


def detect(frames: Frames, *, refused_least: int = 1) -> Iterator[Finding]:
    """At most one finding about topics, and one per client that is refused."""
    members, events = rows_of(frames[MEMBERS]), rows_of(frames[EVENTS])
    pair = _other_topics([row for row in members if row["topics"]])
    if pair is not None:
        yield _topics(*pair, members, _cost(pair, rows_of(frames[REBALANCES]), events))
    refused: dict[Client, list[Row]] = {}
    for row in events:
        if row["error_code"] == INCONSISTENT_GROUP_PROTOCOL and row["event"] == "join":
            refused.setdefault(_client(row), []).append(row)
    joins = sum(row["event"] == "join" for row in events)
    for own in refused.values():
        if len(own) >= refused_least:
            yield _refused(own, members, joins)


def _cost(pair: tuple[Row, Row], rebalances: Sequence[Row], events: Sequence[Row]) -> _Cost:
    since_ns, until_ns = max(row["ts"] for row in pair), max(row["ts_last"] for row in pair)
    own = [row for row in rebalances if since_ns <= row["ts"] <= until_ns]
    took_ns = sum(row["ts_end"] - row["ts"] for row in own if row["ts_end"] is not None)
    requests = sum(since_ns <= row["ts"] <= until_ns for row in events)
    return _Cost(until_ns - since_ns, len(own), took_ns, requests)


def _client(row: Mapping[str, Any]) -> Client:
    return row["client_address"], row["client_id"]


def _subscribed(row: Mapping[str, Any]) -> frozenset[str]:
    return frozenset((row["topics"] or "").split(","))


def _other_topics(members: Sequence[Row]) -> tuple[Row, Row] | None:
    """Two members of other clients at the same time, with nothing in common: the earlier, and the one that came."""
    newest = list({(_client(row), row["topics"]): row for row in members}.values())[:_MOST_COMPARED]
    if len({row["topics"] for row in newest}) < 2:
        return None
    own: dict[tuple[Client, str], list[Row]] = {}
    for row in members:
        own.setdefault((_client(row), row["topics"]), []).append(row)
    times = [[(one["ts"], one["ts_last"], None) for one in own[_client(row), row["topics"]]] for row in newest]
    for (one, of_one, _), (other, _, there) in combinations(zip(newest, times, map(Spans, times), strict=True), 2):
        apart = _subscribed(one).isdisjoint(_subscribed(other)) and _client(one) != _client(other)
        # Any membership of the one overlaps with one of the other.
        if apart and any(there.meets(since, until) for since, until, _ in of_one):
            first = {_client(row): row["ts"] for row in reversed(members)}
            return (one, other) if first[_client(one)] <= first[_client(other)] else (other, one)
    return None


def _topics(one: Row, other: Row, members: Sequence[Row], cost: _Cost) -> Finding:
    key = {"cluster": one["cluster_id"], "group": one["group_id"]}
    sides = [[row for row in members if _subscribed(row) & _subscribed(side)] for side in (one, other)]
    clients = list({_client(row): row for side in sides[::-1] for row in side}.values())
    first_ns, last_ns = max(one["ts"], other["ts"]), max(one["ts_last"], other["ts_last"])
    said = "; ".join(
        f"{names_text([client_text(row) for row in {_client(row): row for row in side}.values()], 2)} subscribes to "
        f"{names_text(sorted(printable(name, MAX_NAME) for name in _subscribed(row)), 3)}"
        for side, row in zip(sides, (one, other), strict=True)
    )
    return RULE.finding(
        severity="warning",
        subject={**key, "kind": "topics"},
        title=title_text(
            "Two applications use group {}: {}, {}",
            one["group_id"] or "?",
            *(first_text(short_clients({_client(row): None for row in side})) for side in sides),
        ),
        sentence=(
            f"{group_text(one['group_id'])} is used by two applications at once: {said}. They share no topic, and each "
            f"start or stop of one stops the other. In {seconds_text(cost.lasts_ns)} together: "
            f"{count(cost.rebalances, 'rebalance')}{cost.text}."
        ),
        next_step="Give each application a group.id of its own; the new group needs its offsets set before it starts.",
        proof=proof(first_ns, last_ns, [one["exchange_id"], other["exchange_id"]]),
        numbers={
            **culprit(key, other),
            "kind": "topics",
            "topics": sorted(_subscribed(one) | _subscribed(other)),
            "rebalances": cost.rebalances,
            "stood_still_ms": cost.took_ns // NS_PER_MS,
            "join_and_sync_requests": cost.requests,
            "until": time_text(first_ns + cost.lasts_ns),
            "since": time_text(first_ns),
            "clients": [who(row) for row in clients][:_MOST_CLIENTS],
        },
    )


def _refused(events: Sequence[Row], members: Sequence[Row], joins: int) -> Finding:
    last = events[-1]
    key = {"cluster": last["cluster_id"], "group": last["group_id"]}
    others = [row for row in members if _client(row) != _client(last) and row["first_generation"] is not None]
    kinds = sorted({row["protocol_type"] for row in others if row["protocol_type"]})
    known = sorted({row["assignor"] for row in others if row["assignor"]})
    offered = last["protocols_offered"]
    if kinds and last["protocol_type"] not in kinds:
        why = (
            f"it joins as protocol type {last['protocol_type'] or '?'}, and the members are of type {', '.join(kinds)}"
        )
    elif known:
        why = f"it offers {_names(offered)}, and the group uses {_names(', '.join(known))}"
    else:
        why = f"it offers {_names(offered)}; what the members use was not seen"
    got_in = any(_client(row) == _client(last) and (row["ts_joined"] or 0) > last["ts"] for row in members)
    reads = "It joined later" if got_in else "It reads nothing"
    victims = list({_client(row): row for row in others}.values())
    lasts_ns = last["ts"] - events[0]["ts"]
    rate = (len(events) - 1) * NS_PER_S / lasts_ns if lasts_ns else None
    pace = "" if rate is None else f"{rate:,.1f} a second, "
    return RULE.finding(
        severity="info" if got_in else "warning",
        subject={**key, "client": last["client_id"], "address": last["client_address"], "kind": "refused"},
        title=title_text(
            f"JoinGroup refused {times(len(events))}: {{}} in group {{}}, 23 INCONSISTENT_GROUP_PROTOCOL",
            short_who(*_client(last)),
            last["group_id"] or "?",
        ),
        sentence=(
            f"{group_text(last['group_id'])} refused {client_text(last)} {times(len(events))} "
            f"(23 INCONSISTENT_GROUP_PROTOCOL): {why}. {reads}. Its JoinGroups, "
            f"{period_text(events[0]['ts'], last['ts'])}: {pace}{len(events) * 100 // joins} % of the group's."
        ),
        next_step=(
            "Set the same partition.assignment.strategy in all members (to change it, first offer both, then the new "
            f"one alone), or give {client_text(last)} another group.id if it is another application."
        ),
        proof=proof(events[0]["ts"], last["ts"], [row["exchange_id"] for row in events]),
        numbers={
            **key,
            "client_id": last["client_id"],
            "address": last["client_address"],
            "kind": "refused",
            "error_code": INCONSISTENT_GROUP_PROTOCOL,
            "error_name": "INCONSISTENT_GROUP_PROTOCOL",
            "requests_refused": len(events),
            "requests_per_second": None if rate is None else round(rate, 3),
            "group_joins": joins,
            "stood_still_ms": lasts_ns // NS_PER_MS,
            "offered": offered,
            "group_uses": known,
            "since": time_text(events[0]["ts"]),
            "until": time_text(last["ts"]),
            "clients": [{"address": last["client_address"], "client_id": last["client_id"]}],
            "victims": [who(row) for row in victims][:_MOST_CLIENTS],
        },
    )


def _names(text: str | None) -> str:
    return printable(text, MAX_NAME) if text else "nothing that was seen"


RULE = Rule(
    code="KAF112",
    question="concurrent",
    name="group-id-collision",
    severity="warning",
    confidence="high",
    reads={
        MEMBERS: MEMBER_COLUMNS,
        REBALANCES: ("ts", "ts_end"),
        EVENTS: (
            "ts", "exchange_id", "event", "client_id", "client_address", "protocol_type", "protocols_offered",
            "error_code",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={EVENTS: "event IN ('join', 'sync')"},
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{EVENTS} WHERE error_code = {INCONSISTENT_GROUP_PROTOCOL}
        UNION ALL
        SELECT cluster_id, group_id FROM r_{MEMBERS} WHERE topics <> ''
        GROUP BY ALL HAVING count(DISTINCT topics) > 1""",
)  # fmt: skip
