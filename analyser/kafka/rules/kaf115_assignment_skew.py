"""KAF115 assignment-skew: partitions are dealt unevenly to members that want the same.

Finds
    Members of one group with equal subscriptions, of which one has far more partitions than another, or all of them
    while another has none.

Why it matters
    The group is as fast as its fullest member, and members without partitions do nothing: adding more does not help.

How it decides
    The newest plan of the group that stood for at least `stands_s` (the leader's SyncGroup, unless a later generation
    was heard of; KIP-848: the newest assignment of each member that is still there). Members with equal subscriptions
    are compared.
    range deals each topic on its own, and its remainder to the first members, so that many topics with few partitions
        all go to the first: a finding when a member has none while another has at least two, or when one has more than
        twice as many, and one more, as another.
    Any other assignor known (roundrobin, sticky, cooperative-sticky, uniform) differs by `skew` at most.
    warning. Silent for assignors that are not known, and for plans of Kafka Streams and Connect.

False alarms
    Partitions of very different load, which somebody deals by hand.

What it cannot tell
    Of answers alone nothing is said: the plan is in the leader's request, subscriptions in JoinGroup. In a capture that
    begins after the last rebalance there is no plan; where a later generation may have had another, nothing is said.

References
    RangeAssignor, RoundRobinAssignor, StickyAssignor (Kafka clients); UniformAssignor (KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirewitness.analyser.base.times import NS_PER_S, clock_text, time_text
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.members import KEYS, MEMBER_COLUMNS, MEMBERS, proof, who
from wirewitness.analyser.kafka.rules.names import (
    MAX_NAME,
    client_text,
    group_text,
    partition_names,
    short_who,
    title_text,
)

OWNERSHIP = "kafka_ownership"
RANGE = "range"
_EVEN = (RANGE, "roundrobin", "sticky", "cooperative-sticky", "uniform")
_MOST_CLIENTS = 20

Place = tuple[str | None, int]


def detect(frames: Frames, *, skew: int = 1, stands_s: float = 5.0) -> Iterator[Finding]:
    """One finding per group and subscription."""
    members = {row["member_id"]: row for row in rows_of(frames[MEMBERS])}
    given, at_ns = _plan(rows_of(frames[OWNERSHIP]), members)
    last_ns = max((row["ts_last"] for row in members.values()), default=0)
    if len(given) < 2 or last_ns - at_ns < stands_s * NS_PER_S:
        return
    by_topics: dict[str, list[str]] = {}
    for member_id in given:
        row = members.get(member_id)
        if row is not None and row["topics"]:
            by_topics.setdefault(",".join(sorted(row["topics"].split(","))), []).append(member_id)
    for same in by_topics.values():
        sizes = {member_id: len(given[member_id]) for member_id in same}
        assignor = members[same[0]]["assignor"]
        if len(same) > 1 and _is_uneven(max(sizes.values()), min(sizes.values()), assignor, skew):
            yield _finding(sizes, given, members, assignor, at_ns)


def _plan(rows: Sequence[Row], members: Mapping[str, Row]) -> tuple[dict[str, set[Place]], int]:
    """Partitions of each member, members without any too, and when the newest part was given."""
    rows = [row for row in rows if row["member_id"] is not None and row["source"] is not None]
    planned = [row for row in rows if row["source"] == "sync_leader" and row["generation"] is not None]
    last = max((row["generation"] for row in planned), default=0)
    heard = [row["last_generation"] for row in members.values() if row["ended"] in ("active", None)]
    if planned and (None in heard or any(one > last for one in heard)):
        return {}, 0  # the plan of a later generation is not in the capture, or may not be
    if planned:
        idle = [one for one, row in members.items() if row["last_generation"] == last]
        chosen = [row for row in rows if row["generation"] == last and row["source"].startswith("sync")]
    else:
        # Of a member that was there before the capture it is not known what it was given.
        there = {one for one, row in members.items() if row["ended"] == "active"}
        idle = [one for one in there if members[one]["ts_joined"] is not None]
        chosen = [row for row in rows if row["source"] == "consumer_heartbeat" and row["member_id"] in there]
    found: dict[str, set[Place]] = {one: set() for one in sorted(one for one in idle if one is not None)}
    for row in chosen:
        found.setdefault(row["member_id"], set()).add((row["topic"], row["partition"]))
    return found, max((row["ts"] for row in chosen), default=0)


def _is_uneven(most: int, least: int, assignor: str | None, skew: int) -> bool:
    if assignor not in _EVEN:
        return False
    if assignor == RANGE:
        return most > 2 * least + 1
    return most - least > skew


def _finding(
    sizes: Mapping[str, int],
    given: Mapping[str, set[Place]],
    members: Mapping[str, Row],
    assignor: str | None,
    at_ns: int,
) -> Finding:
    order = sorted(sizes, key=lambda one: (-sizes[one], one))
    full = members[order[0]]
    few = [members[one] for one in order if sizes[one] == sizes[order[-1]]]
    key = {"cluster": full["cluster_id"], "group": full["group_id"]}
    names = partition_names(given[order[0]])
    least = sizes[order[-1]]
    why = " range assigns each topic on its own, from the same member on." if assignor == RANGE else ""
    return RULE.finding(
        severity="warning",
        subject={**key, "client": full["client_id"], "address": full["client_address"]},
        title=title_text(
            f"Uneven assignment: {{}} has {sizes[order[0]]:,} of {sum(sizes.values()):,} partitions of group {{}}",
            short_who(full["client_address"], full["client_id"]),
            full["group_id"] or "?",
        ),
        sentence=(
            f"{group_text(full['group_id'])}: {client_text(full)} has {sizes[order[0]]} of "
            f"{count(sum(sizes.values()), 'partition')}, and {names_text([client_text(row) for row in few], 2)} "
            f"{'has' if len(few) == 1 else 'have'} {least or 'none'}, with the same subscription. It is so since "
            f"{clock_text(at_ns)} ({names_text(names, 4)}; assignor {printable(assignor or '?', MAX_NAME)}).{why}"
        ),
        next_step=(
            "Set partition.assignment.strategy to CooperativeStickyAssignor (librdkafka: cooperative-sticky) or "
            "RoundRobinAssignor, or give the topics more partitions."
        ),
        proof=proof(at_ns, at_ns, [full["last_exchange_id"], few[0]["last_exchange_id"]]),
        numbers={
            **key,
            "client_id": full["client_id"],
            "address": full["client_address"],
            "member": full["member_id"],
            "assignor": assignor,
            "most": sizes[order[0]],
            "least": least,
            "members": len(sizes),
            "idle_members": sum(size == 0 for size in sizes.values()),
            "partitions": names,
            "since": time_text(at_ns),
            "clients": [who(members[one]) for one in order][:_MOST_CLIENTS],
        },
    )


_LAST_PLANS = f"""(source = 'consumer_heartbeat' AND ts_end IS NULL)
    OR (coalesce(cluster_id, ''), group_id, generation) IN (
        SELECT (coalesce(cluster_id, ''), group_id, arg_max(generation, ts)) FROM {OWNERSHIP}
        WHERE source LIKE 'sync%' GROUP BY cluster_id, group_id)"""
RULE = Rule(
    code="KAF115",
    question="growing",
    name="assignment-skew",
    severity="warning",
    confidence="high",
    reads={
        OWNERSHIP: ("ts", "generation", "member_id", "topic", "partition", "source"),
        MEMBERS: MEMBER_COLUMNS,
    },
    partition_by=KEYS,
    detect=detect,
    rows={OWNERSHIP: _LAST_PLANS},
    suspects=f"""
        SELECT cluster_id, group_id FROM (
            SELECT cluster_id, group_id, member_id, count(*) AS size FROM r_{OWNERSHIP} GROUP BY ALL)
        GROUP BY ALL HAVING max(size) > 1""",
)
