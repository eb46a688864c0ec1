"""KAF308 isr-flapping: a replica leaves the in-sync replicas and comes back, again and again.

Finds
    Brokers whose replicas shrink out of the ISR and grow into it `flaps_least` times within `within_s`. One finding for
    each broker.

Why it matters
    Such a broker is alive but cannot keep up, or is cut off for a while each time: full disks, long garbage
    collections, a bad link, too many partitions. While it is out there is one copy fewer; with acks=all and
    min.insync.replicas writes wait or are refused (KAF205), and when the leader dies then, records are lost.

How it decides
    Metadata and DescribeTopicPartitions tell the ISR; each client notices when its own metadata is renewed. What all
    clients are told of a partition is put in order of time; an answer that repeats what was overtaken less than
    `stale_s` before came from a broker that did not know it yet, and does not count. Out and in again is one flap.
    A warning, critical when nobody but the leader was in sync at some time. Confidence high: each change was told. What
    nobody asked for is missed.

False alarms
    Brokers that are restarted several times within minutes.

What it cannot tell
    Why a replica falls behind. One that is out and in again between two questions of all clients is not seen.

References
    replica.lag.time.max.ms; AlterPartition (KIP-497).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S, clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import first_of
from wirewitness.analyser.base.words import count, names_text, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import most_within
from wirewitness.analyser.kafka.rules.names import partitions_of, places_text
from wirewitness.analyser.kafka.rules.producers import evidence_of

TOLD, BROKERS = "kafka_partitions", "kafka_brokers"
KEYS = ("cluster_id",)


class _Flaps(NamedTuple):
    """How often one replica of one partition came back, with the answers that told it out and in."""

    back: list[int]
    rows: list[Row]


def detect(frames: Frames, *, flaps_least: int = 3, within_s: float = 300.0, stale_s: float = 2.0) -> Iterator[Finding]:
    """One finding for each broker that came back so often to one partition at least."""
    names = {row["node_id"]: f"{row['host']}:{row['port']}" for row in rows_of(frames[BROKERS])}
    logs: dict[tuple[str, int], list[Row]] = {}
    for row in rows_of(frames[TOLD]):
        logs.setdefault((row["topic"], row["partition"]), []).append(row)
    found: dict[int, list[_Flaps]] = {}
    for rows in logs.values():
        for node, flaps in _flaps(_in_order(rows, round(stale_s * NS_PER_S))).items():
            if len(most_within(flaps.back, round(within_s * NS_PER_S), int)) >= flaps_least:
                found.setdefault(node, []).append(flaps)
    for node, held in sorted(found.items()):
        yield _finding(node, names.get(node), held)


def _in_order(rows: Sequence[Row], stale_ns: int) -> list[Row]:
    """Rows that tell something new."""
    kept: list[Row] = []
    for row in rows:
        isr = sorted(row["isr"])
        if kept and sorted(kept[-1]["isr"]) == isr:
            continue
        if len(kept) > 1 and sorted(kept[-2]["isr"]) == isr and row["ts"] - kept[-1]["ts"] < stale_ns:
            continue
        kept.append(row)
    return kept


def _flaps(rows: Sequence[Row]) -> dict[int, _Flaps]:
    out: dict[int, Row] = {}
    found: dict[int, _Flaps] = {}
    known: set[int] = set()
    for row in rows:
        now = {int(node) for node in row["isr"]}
        for node in known - now:
            out[node] = row
        for node in now & out.keys():
            flaps = found.setdefault(node, _Flaps([], []))
            flaps.back.append(row["ts"])
            flaps.rows.extend((out.pop(node), row))
        known |= now
    return found


def _finding(node: int, name: str | None, held: Sequence[_Flaps]) -> Finding:
    rows = sorted((row for flaps in held for row in flaps.rows), key=lambda row: row["ts"])
    most = max(len(flaps.back) for flaps in held)
    least = min(len(row["isr"]) for row in rows)
    since, until = rows[0]["ts"], rows[-1]["ts"]
    partitions = partitions_of(rows)
    alone = least <= 1 < max(len(row["replicas"]) if row["replicas"] is not None else 1 for row in rows)
    broker = f"Broker {node} ({name})" if name else f"Broker {node}"
    key = {"cluster": rows[0]["cluster_id"], "node_id": node}
    worst = " At some time nobody but the leader was in sync." if alone else ""
    return RULE.finding(
        severity="critical" if alone else "warning",
        subject=key,
        title=f"Broker {node} left the in-sync replicas {times(most)}: {first_of(partitions)}",
        sentence=(
            f"{broker} left the in-sync replicas and came back {times(most)}, from {clock_text(since)} on, for "
            f"{seconds_text(until - since)}: {count(len(partitions), 'partition')} ({places_text(rows, 3)}) had as "
            f"few as {count(least, 'replica')} in sync.{worst}"
        ),
        next_step=(
            f"Look at broker {node}: its log (Shrinking ISR), disk latency, garbage collection, network, and whether "
            "it has more partitions than num.replica.fetchers can follow. replica.lag.time.max.ms only hides it."
        ),
        proof=Proof(since, until, evidence_of(rows)),
        numbers={
            **key,
            "server": name,
            "clients": [],
            "flaps": most,
            "partitions": partitions,
            "least_in_sync": least,
            "where": names_text(partitions, 3),
            "since": time_text(since),
            "until": time_text(until),
        },
    )


_LOG = "(coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition)"
_SHRUNK = (
    f"partition IS NOT NULL AND isr IS NOT NULL AND {_LOG} IN (SELECT {_LOG} FROM kafka_partitions "
    "WHERE partition IS NOT NULL AND isr IS NOT NULL GROUP BY 1 HAVING count(DISTINCT len(isr)) > 1)"
)

RULE = Rule(
    code="KAF308",
    question="waiting",
    name="isr-flapping",
    severity="critical",
    confidence="high",
    reads={
        TOLD: ("ts", "exchange_id", "topic", "partition", "replicas", "isr", "file", "request_packet"),
        BROKERS: ("ts", "exchange_id", "node_id", "host", "port"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={TOLD: _SHRUNK, BROKERS: "node_id IS NOT NULL AND host IS NOT NULL AND source <> 'FindCoordinator'"},
    suspects=AnyRow(TOLD),
)  # fmt: skip
