"""KAF135 stands-still: a member of a group stands still again and again, and then goes on.

Finds
    Members that send nothing at all for some seconds, not even a heartbeat, several times, while others go on.

Why it matters
    Each time its partitions wait, and a silence that gets a little longer costs it its membership: the group rebalances
    and what it had in hand is read again. A process that stands still as a whole has a cause outside of its handler:
    long garbage collections, swapping, a CPU limit that throttles it, a paused machine.

How it decides
    By the fact `kafka_client_silences`: from its last request or awaited response to its next request went by twice its
    usual time between heartbeats, and ten times what nearly all of its silences last; three times at least. Others sent
    and got responses meanwhile, and no bytes of the client are missing.
    warning where the silences are `share` of the time in which it was seen, else info.
    Confidence medium: a client with heartbeats in the thread that handles records looks the same while its handler
    works. KAF130 tells of handlers that stand still while heartbeats go on, KAF111 of one silence that comes near the
    session timeout.

False alarms
    Clients of one thread whose handler takes long now and then.

What it cannot tell
    What the process waits for. A way that loses packets is told from it by TCP101. Of requests alone a client that
    waits for a response can't be told from one that stands still: nothing is said.

References
    session.timeout.ms, heartbeat.interval.ms; garbage collection logs, CPU throttling of containers.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.times import NS_PER_MS, ms_text, period_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

SILENCES = "kafka_client_silences"


def detect(frames: Frames, *, share: float = 0.05) -> Iterator[Finding]:
    """One finding for each client."""
    for row in rows_of(frames[SILENCES]):
        yield _finding(row, lasting=row["total_ms"] >= share * row["seen_ms"])


def _finding(row: Row, *, lasting: bool) -> Finding:
    longest = seconds_text(round(row["longest_ms"] * NS_PER_MS))
    return RULE.finding(
        severity="warning" if lasting else "info",
        title=f"Stood still {times(row['silences'])}, up to {longest}: {client_title(row)}",
        subject=client_subject(row),
        sentence=f"{sentence_start(client_text(row))} stood still {times(row['silences'])}, up to {longest}, "
        f"{period_text(row['ts'], row['ts_last'])}: it sent nothing, not even a heartbeat (usually one each "
        f"{ms_text(row['usual_beat_ms'])}), and waited for no response, while others went on. That is "
        f"{100 * row['total_ms'] / max(row['seen_ms'], 1):.0f} % of the time.",
        next_step="Look what stops the whole process: long garbage collections, a CPU limit of its container, "
        "swapping, a paused machine; or a handler in the thread that sends heartbeats.",
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids((row["exchange_id"], row["longest_exchange_id"])),
        ),
        numbers={
            **client_keys(row),
            "silences": row["silences"],
            "longest_ms": row["longest_ms"],
            "total_ms": row["total_ms"],
            "seen_ms": row["seen_ms"],
            "usual_beat_ms": row["usual_beat_ms"],
            "since": time_text(row["ts"]),
            "until": time_text(row["ts_last"]),
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="KAF135",
    question="stalled",
    name="stands-still",
    severity="warning",
    confidence="medium",
    reads={
        SILENCES: (
            "ts", "ts_last", "exchange_id", "client_id", "client_address", "silences", "longest_ms", "total_ms",
            "usual_beat_ms", "seen_ms", "longest_exchange_id",
        ),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        SILENCES: (
            "longest_ms IS NOT NULL AND total_ms IS NOT NULL AND seen_ms IS NOT NULL AND usual_beat_ms IS NOT NULL"
        )
    },
)  # fmt: skip
