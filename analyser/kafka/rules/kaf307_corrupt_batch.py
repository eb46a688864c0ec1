"""KAF307 corrupt-batch: record batches whose checksum is wrong.

Finds
    Batches in Produce requests or Fetch responses whose CRC does not fit their bytes, although the message is whole.

Why it matters
    The records are not what the producer wrote. A broker answers such a Produce with 2 (CORRUPT_MESSAGE), a consumer
    that checks (check.crcs) stops at the batch and cannot go on, one that does not check works with wrong data.

How it decides
    The checksum of every whole batch is computed: CRC-32C from the attributes on in format 2, CRC-32 in formats 0 and
    1. One finding for each client address, from `messages_least` messages on. Messages that a gap or the snap length
    cut are not looked at, so nothing missing can be the reason.

False alarms
    A capture point that changes packets, and tools that anonymise captures without computing the checksum anew.

What it cannot tell
    Who changed the bytes. In a Produce it was the producer or the way from it, in a Fetch the broker's disk may be
    it, too.

References
    https://kafka.apache.org/documentation/#recordbatch; KIP-98 (CRC-32C); Kafka protocol error 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wirewitness.analyser.base.titles import first_of, short
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule

PRODUCED, FETCHED = "kafka_produce_batches", "kafka_fetch_partitions"
KEYS = ("cluster_id", "topic", "partition")
_COLUMNS = (
    "ts", "exchange_id", "client_id", "client_address", "file", "request_packet", "response_packet",
    "response_message_id",
)  # fmt: skip


def detect(frames: Frames, *, messages_least: int = 1) -> Iterator[Finding]:
    """One finding for each client address that wrote or was given such batches of this partition."""
    for table, frame in frames.items():
        by_address: dict[str | None, list[dict[str, Any]]] = {}
        for row in rows_of(frame):
            by_address.setdefault(row["client_address"], []).append(row)
        for wrong in by_address.values():
            if len({row["exchange_id"] for row in wrong}) >= messages_least:
                place = {name.removesuffix("_id"): first_value(frame, name) for name in KEYS}
                yield _finding(place, table == PRODUCED, wrong)


def _finding(place: dict[str, Any], written: bool, wrong: list[dict[str, Any]]) -> Finding:
    first = wrong[0]
    key = {**place, "api": "Produce" if written else "Fetch", "client_address": first["client_address"]}
    messages = len({row["exchange_id"] for row in wrong})
    clients = sorted({row["client_id"] for row in wrong if row["client_id"]})
    who = f"{' or '.join(clients[:3]) or 'a client'} at {first['client_address'] or '(unknown address)'}"
    what = f"{who} wrote" if written else f"the broker gave {who}"
    return RULE.finding(
        subject=key,
        title=(
            f"Wrong checksum of batches of {short(place['topic'])}-{place['partition']}, "
            f"{'written' if written else 'read'} by {first_of(clients or [first['client_address']])}"
        ),
        sentence=(
            f"Partition {place['partition']} of {place['topic'] or 'an unknown topic'}: {what} record batches whose "
            f"checksum is wrong, in {count(messages, 'message')}."
        ),
        next_step=(
            "Compare with a capture at the other end: when the batch is right there, the network or a proxy changes "
            "it; when it is wrong there too, look at the disk of the partition's leader or at the producer's memory."
        ),
        proof=Proof(
            min(row["ts"] for row in wrong), max(row["ts"] for row in wrong), (_evidence(row, written) for row in wrong)
        ),
        numbers={**key, "messages": messages, "rows": len(wrong), "client_ids": clients[:20]},
    )


def _evidence(row: dict[str, Any], written: bool) -> Evidence:
    if written:
        return Evidence(row["file"], row["request_packet"], row["exchange_id"])
    return Evidence(row["file"], row["response_packet"], row["response_message_id"])


RULE = Rule(
    code="KAF307",
    question="differs",
    name="corrupt-batch",
    severity="warning",
    confidence="high",
    reads={PRODUCED: _COLUMNS, FETCHED: _COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={PRODUCED: "crc_ok = false", FETCHED: "crc_ok = false"},
)
