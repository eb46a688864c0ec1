"""KAF320 log-truncated: the log of a partition was cut, and records that had been stored or read are gone.

Finds
    Partitions whose log ends below where it had ended before, in the same incarnation of the topic. Question: what
    went back, and who led there.

Why it matters
    The records were acknowledged, and consumers may have handled them; no replica has them any more, and other records
    get their offsets. Consumers that had read further go back or are refused, their groups' offsets go back with them,
    and nobody logs it as a loss.

How it decides
    By the facts of leaders (`kafka_leaders`, `kafka_truncations`). OffsetForLeaderEpoch told a reader that the log of
    the epoch which it has read ends below its position, and it went on there (KIP-320); or a batch was stored at an
    offset below an end that a response had reported before it was sent. What a producer sends again, and a log that
    begins at 0, do not count. The records gone are those from there to the highest position or end known: at least so
    many. A broker that leads from then on, and was not among the replicas in sync last reported, was elected unclean.

False alarms
    A topic that was deleted and made anew outside the capture, by clients so old that no answer has topic ids, whose
    new log is seen from its middle on.

What it cannot tell
    What the records were, unless the capture has them. Replicas in sync change between two answers: the one that was
    elected may have been in sync again. Of one direction alone nothing is said.

References
    KIP-101, KIP-279 and KIP-320 (leader epochs and truncation); unclean.leader.election.enable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.titles import short
from wirewitness.analyser.base.words import count, names_text
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, partition_names, partition_text
from wirewitness.analyser.kafka.rules.producers import evidence_of

TRUNCATIONS = "kafka_truncations"
KEYS = ("cluster_id", "topic", "partition")
_MOST_CLIENTS = 20


def detect(frames: Frames, *, records_least: int = 1) -> Iterator[Finding]:
    """One finding for each leader epoch in which the log was cut, with `records_least` records gone."""
    terms: dict[object, list[Row]] = {}
    for row in rows_of(frames[TRUNCATIONS]):
        terms.setdefault((row["leader_id"], row["leader_epoch"]), []).append(row)
    for rows in terms.values():
        if _end(rows) - _cut(rows) >= records_least:
            yield _finding(rows)


def _cut(rows: Sequence[Row]) -> int:
    return int(min(row["truncated_at"] for row in rows))


def _end(rows: Sequence[Row]) -> int:
    return int(max(row["end_before"] for row in rows))


def _finding(rows: Sequence[Row]) -> Finding:
    first = rows[0]
    cut, end = _cut(rows), _end(rows)
    key = {"cluster": first["cluster_id"], "topic": first["topic"], "partition": first["partition"]}
    clients = {(row["client_address"], row["client_id"]): row for row in rows}
    return RULE.finding(
        confidence="high" if any(row["source"] != "Produce" for row in rows) else "medium",
        title=(
            f"Log of {short(first['topic'])}-{first['partition']} truncated at {cut}: about "
            f"{count(end - cut, 'acknowledged record')} gone"
        ),
        subject={**key, "leader_epoch": first["leader_epoch"]},
        sentence=(
            f"{partition_text(first['topic'], first['partition'])} was truncated at {cut}{_leader(first)}: about "
            f"{count(end - cut, 'acknowledged record')} up to {end} are gone."
        ),
        next_step=(
            "Look whether the broker that leads now was in sync (unclean.leader.election.enable, min.insync.replicas, "
            "producers with acks=1). What is gone can only come from its producers, or from what consumers made of it."
        ),
        proof=Proof(first["ts"], rows[-1]["ts"], evidence_of(rows)),
        numbers={
            **key,
            "partitions": partition_names([(first["topic"], first["partition"])]),
            "truncated_at": cut,
            "end_before": end,
            "records_lost": end - cut,
            "leader_id": first["leader_id"],
            "leader_epoch": first["leader_epoch"],
            "isr_before": first["isr_before"],
            "unclean": first["unclean"],
            "source": sorted({row["source"] for row in rows}),
            "since": time_text(first["ts_leader"] or first["ts"]),
            "clients": [client_numbers(row) for row in clients.values()][:_MOST_CLIENTS],
        },
    )


def _leader(row: Row) -> str:
    """Which broker led from then on, and whether it was in sync."""
    if row["leader_id"] is None:
        return ""
    text = f" when broker {row['leader_id']} became leader ({moment_text(row['ts_leader'] or row['ts'])}"
    if row["unclean"] and row["isr_before"]:
        text += f", unclean: in sync was {names_text([str(one) for one in row['isr_before']], 3)}"
    return text + ")"


RULE = Rule(
    code="KAF320",
    question="went back",
    name="log-truncated",
    severity="critical",
    confidence="high",
    reads={
        TRUNCATIONS: (
            "ts", "truncated_at", "end_before", "source", "leader_id", "leader_epoch", "ts_leader", "isr_before",
            "unclean", "client_id", "client_address", "exchange_id", "file", "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={TRUNCATIONS: "truncated_at IS NOT NULL AND end_before IS NOT NULL"},
    suspects=AnyRow(TRUNCATIONS),
)  # fmt: skip
