"""KAF318 share-redelivery: a record of a share group comes back again and again.

Finds
    Records that members of a share group acquired `deliveries` times or more: who had them, who released them or let
    their lock run out, and what became of them.

Why it matters
    A record that no member can handle is delivered until group.share.delivery.count.limit (5 by default) is reached.
    Then the broker archives it: it counts as done, and nobody handled it. Until then it costs the members' time again
    and again.

How it decides
    delivery_count of the records that ShareFetch answers give. Between two deliveries the acknowledgement tells why: a
    release, or none, then the acquisition lock ran out or the member went away. The member that had it most often
    is named first.
    critical when a record was delivered `limit` times or more, was given back after the last time or its lock ran out
    while the partition was read on, and it was not delivered again until the capture ends: the broker archived it. (The
    limit is the broker's setting, and not on the wire.)
    Else a warning. One that was accepted or rejected in the end is told as such.
    Confidence medium for what is archived. A delivery that the capture lacks shows in the next count, so gaps do no
    harm, but what came after the last delivery may be missing: findings are provisional.
    Of requests alone nothing is said: only answers count deliveries, and a release without its answer may have been
    refused, or be one that the client sent again.

False alarms
    Members that release records on purpose, to try them later.

What it cannot tell
    What is wrong with the record. Who had it before the capture began: only the count of these deliveries is known.

References
    KIP-932; ShareFetch, ShareAcknowledge; group.share.delivery.count.limit, group.share.record.lock.duration.ms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, period_text, time_text
from wirewitness.analyser.base.titles import short
from wirewitness.analyser.base.words import count, names_text, printable, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_text, place

FETCHES, ACKNOWLEDGES = "kafka_share_fetches", "kafka_share_acknowledges"
KEYS = ("cluster_id", "group_id", "topic_id", "partition")
MAX_RUNS = 50
_DONE = {"accept": "accepted", "reject": "rejected"}


class _Run(NamedTuple):
    """Neighbouring records with one history.

    ended: the acknowledgement after the last delivery; None without one. now_ns: when the partition was last heard of.
    """

    first: int
    last: int
    deliveries: list[Row]
    released: list[Row]
    ended: Row | None
    now_ns: int

    @property
    def delivered(self) -> int:
        """How often, as the broker counts."""
        most: int = max(row["delivery_count"] for row in self.deliveries)
        return most

    @property
    def records(self) -> int:
        return self.last - self.first + 1

    @property
    def given_back(self) -> bool:
        """Nobody has it after its last delivery, and nobody handled it."""
        if self.ended is not None:
            return bool(self.ended["acknowledge_type"] == "release")
        last = self.deliveries[-1]
        lock_ms = last["lock_timeout_ms"]
        return bool(lock_ms) and self.now_ns > last["ts"] + lock_ms * NS_PER_MS


def detect(frames: Frames, *, deliveries: int = 3, limit: int = 5) -> Iterator[Finding]:
    """At most one finding for a partition: records delivered `deliveries` times; `limit`: then they are archived."""
    fetches, told = rows_of(frames[FETCHES]), rows_of(frames[ACKNOWLEDGES])
    runs = [run for run in _runs(fetches, told, deliveries) if run.deliveries]
    if runs:
        yield _finding(sorted(runs, key=lambda run: (-run.delivered, run.first)), limit)


def _runs(fetches: Sequence[Row], told: Sequence[Row], deliveries: int) -> Iterator[_Run]:
    """The histories of all records that were delivered so often, MAX_RUNS at most."""
    often = [row for row in fetches if row["delivery_count"] >= deliveries]
    now_ns = max((row["ts"] for row in (*fetches, *told)), default=0)
    edges = sorted({row["first_offset"] for row in often} | {row["last_offset"] + 1 for row in often})[: MAX_RUNS + 1]
    if edges:
        fetches = [row for row in fetches if row["first_offset"] < edges[-1] and row["last_offset"] >= edges[0]]
        told = [row for row in told if row["first_offset"] < edges[-1] and row["last_offset"] >= edges[0]]
    for first, after in pairwise(edges):
        if any(_has(row, first) for row in often):
            given = [row for row in fetches if _has(row, first)]
            said = [row for row in told if _has(row, first) and not row["error_code"]]
            last_ns = given[-1]["ts"]
            ended = next((row for row in reversed(said) if row["ts"] >= last_ns), None)
            released = [row for row in said if row["acknowledge_type"] == "release"]
            yield _Run(first, after - 1, given, released, ended, now_ns)


def _has(row: Row, offset: int) -> bool:
    found: bool = row["first_offset"] <= offset <= row["last_offset"]
    return found


def _finding(runs: Sequence[_Run], limit: int) -> Finding:
    worst = runs[0]
    first = worst.deliveries[0]
    archived = [run for run in runs if run.given_back and run.delivered >= limit]
    people = Counter((row["client_id"], row["client_address"], row["member_id"]) for row in worst.deliveries)
    clients = [{"address": who[1], "client_id": who[0], "member_id": who[2], "deliveries": n}
               for who, n in sorted(people.items(), key=lambda item: (-item[1], str(item[0])))]  # fmt: skip
    severity: Severity = "critical" if archived else "warning"
    topic = first["topic"] or first["topic_id"] or "?"
    key = {"cluster": first["cluster_id"], "group": first["group_id"], "topic": topic, "partition": first["partition"]}
    rows = sorted((row for run in runs for row in (*run.deliveries, *run.released)), key=lambda row: row["ts"])
    return RULE.finding(
        severity=severity,
        confidence="medium" if archived else "high",
        provisional=True,
        subject=key,
        title=_title(worst, first, done=worst.ended is not None and worst.ended["acknowledge_type"] in _DONE),
        sentence=_sentence(runs, place(first), clients, worst in archived),
        next_step=(
            f"Read record {worst.first} of {printable(topic, 120)}-{first['partition']} (kafka-console-consumer.sh "
            "--partition --offset) and the log of the member named: why can it not handle it? Let the application "
            "reject what it will never handle (AcknowledgeType.REJECT) and put it aside; where handling takes longer "
            "than group.share.record.lock.duration.ms, renew the lock or raise it."
        ),
        proof=Proof(rows[0]["ts"], rows[-1]["ts"], map(_evidence, rows)),
        numbers={
            **key,
            "topic_id": first["topic_id"],
            "offset": worst.first,
            "offsets": [[run.first, run.last] for run in runs],
            "deliveries": worst.delivered,
            "releases": len(worst.released),
            "client_id": clients[0]["client_id"],
            "address": clients[0]["address"],
            "member": clients[0]["member_id"],
            "clients": clients[:20],
            "since": time_text(rows[0]["ts"]),
            "until": time_text(rows[-1]["ts"]),
            "records": sum(run.records for run in runs),
            "records_again": sum(run.records * (run.delivered - 1) for run in runs),
            "records_lost": sum(run.records for run in archived) if archived else None,
        },
    )


def _title(worst: _Run, first: Row, *, done: bool) -> str:
    what = f"{short(first['topic'])}-{first['partition']}"
    often = f"delivered {times(worst.delivered)}" + ("" if done else ", not done")
    which = f"Record {worst.first}" if worst.records == 1 else f"Records {worst.first} to {worst.last}"
    return f"{which} of {what} {often}: share group {short(first['group_id'])}"


def _sentence(runs: Sequence[_Run], where: str, clients: Sequence[Row], archived: bool) -> str:
    worst = runs[0]
    first = worst.deliveries[0]
    named = [client_text({"client_id": one["client_id"], "client_address": one["address"]}) for one in clients]
    who = names_text(list(dict.fromkeys(named)), 2)
    one = worst.records == 1
    what = f"record {worst.first} of {where} was" if one else f"records {worst.first} to {worst.last} of {where} were"
    more = sum(run.records for run in runs) - worst.records
    seen = len(worst.deliveries)
    missing = "" if seen >= worst.delivered else f" ({seen} of these are in the capture)"
    others = f" ({count(more, 'record')} more of this partition came back, too)" if more else ""
    span = period_text(first["ts"], worst.deliveries[-1]["ts"])
    return (
        f"Share group {printable(first['group_id'] or '?', 120)}: {what} delivered "
        f"{times(worst.delivered)}{missing} to {who}, {span}{others}. {_why(worst)} {_end(worst, archived)}"
    )


def _why(run: _Run) -> str:
    if run.released:
        return f"It was released {times(len(run.released))}."
    lock_ms = max((row["lock_timeout_ms"] or 0 for row in run.deliveries), default=0)
    lock = f" of {lock_ms / 1000:g} s" if lock_ms else ""
    return f"Nobody acknowledged it in between: its lock{lock} ran out, or its member went away."


def _end(run: _Run, archived: bool) -> str:
    kind = None if run.ended is None else run.ended["acknowledge_type"]
    if kind in _DONE:
        return f"In the end it was {_DONE[kind]}."
    if archived:
        return "It has not come again since: the broker has archived it, and nobody handled it."
    return "When the capture ended it was not done."


def _evidence(row: Row) -> Evidence:
    if "delivery_count" in row:
        return Evidence(row["file"], row["response_packet"], row["response_message_id"])
    return Evidence(row["file"], row["request_packet"], row["exchange_id"])


_COLUMNS = (
    "ts", "exchange_id", "topic", "member_id", "client_id", "client_address", "first_offset", "last_offset",
    "error_code", "file", "request_packet", "response_packet", "response_message_id",
)  # fmt: skip
RULE = Rule(
    code="KAF318",
    question="repeated",
    name="share-redelivery",
    severity="critical",
    confidence="high",
    reads={
        FETCHES: (*_COLUMNS, "delivery_count", "lock_timeout_ms"),
        ACKNOWLEDGES: (*_COLUMNS, "acknowledge_type"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={FETCHES: "first_offset IS NOT NULL AND delivery_count IS NOT NULL AND last_offset >= first_offset"},
    suspects=AnyRow(FETCHES, "delivery_count >= 3"),
)
