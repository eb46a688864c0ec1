"""KAF132 group-each-start: a client joins under a new group id each time that it starts.

Finds
    Clients that use one group id after the other, each once.

Why it matters
    A new group has no committed offsets: by auto.offset.reset each start reads everything again, or skips what came
    while it was away. The offsets of the old groups stay on the broker, and no lag alarm knows the next one's name.

How it decides
    By memberships (`kafka_members`): `groups` group ids of one client id and address or more, each in one time that
    ends before the next one begins. Names of the console consumer, which makes one up by design, are left out.

False alarms
    A tool that is meant to read a topic from its start each time.

What it cannot tell
    Whether one process does it, or many short ones that share client id and address.

References
    group.id of consumers; kafka-console-consumer (group console-consumer-N); offsets.retention.minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.members import MEMBERS
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

_GROUPS = 5
_MOST = 20


def detect(frames: Frames, *, groups: int = _GROUPS) -> Iterator[Finding]:
    """At most one finding for a client."""
    times: dict[str, list[Row]] = {}
    for row in rows_of(frames[MEMBERS]):
        times.setdefault(row["group_id"], []).append(row)
    spans = sorted(
        (min(row["ts"] for row in own), max(row["ts_ended"] or row["ts_last"] for row in own)) for own in times.values()
    )
    if len(spans) >= groups and all(ended <= began for (_, ended), (began, _) in pairwise(spans)):
        yield _finding([own[0] for own in times.values()])


def _finding(firsts: Sequence[Row]) -> Finding:
    first, last = firsts[0], firsts[-1]
    names = [row["group_id"] for row in firsts]
    return RULE.finding(
        subject=client_subject(first),
        title=f"{count(len(names), 'group id')}, one after the other: {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} joined {count(len(names), 'group')} one after the other, each once, "
            f"{period_text(first['ts'], last['ts'])}: a new group id for each start ({names_text(names, 2)}). A new "
            "group has no committed offsets."
        ),
        next_step=(
            "Give the application one fixed group.id. Look for a UUID, a host name or a process number in it; delete "
            "the groups that are left over."
        ),
        proof=Proof(
            first["ts"], last["ts"], [Evidence(None, None, row["exchange_id"]) for row in (*firsts[:8], *firsts[-8:])]
        ),
        numbers={
            **client_keys(first),
            "groups": names[:_MOST],
            "groups_count": len(names),
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
            "clients": [client_numbers(first)],
        },
    )


RULE = Rule(
    code="KAF132",
    question="repeated",
    name="group-each-start",
    severity="warning",
    confidence="medium",
    reads={MEMBERS: ("ts", "ts_last", "ts_ended", "group_id", "exchange_id")},
    partition_by=("cluster_id", "client_address", "client_id"),
    detect=detect,
    rows={MEMBERS: "client_id IS NOT NULL AND group_id NOT LIKE 'console-consumer-%'"},
    suspects=f"""
        SELECT cluster_id, client_address, client_id FROM r_{MEMBERS} GROUP BY ALL
        HAVING count(DISTINCT group_id) >= {_GROUPS}""",
)
