"""KAF345 asked-time-unit: a client asks for the offsets of a time in seconds, not in milliseconds.

Finds
    Clients whose ListOffsets ask for times in seconds, microseconds or nanoseconds.

Why it matters
    Kafka takes the number for milliseconds. A time in seconds is in January 1970, before all records: the client is
    sent to the oldest record and reads the whole topic where it wanted the last minutes. A time in microseconds is
    far in the future: no record is found, and the client reads from the end, or nothing. No error is returned.

How it decides
    By each ListOffsets of a client for a time (not for the end or the beginning): read in that unit it is at most a
    tenth of the time since 1970 away from its packet, about 5 years; as milliseconds it is decades away. One request is
    enough.

False alarms
    None known: a client that wants the oldest record asks for -2 or 0.

What it cannot tell
    What the client would have been answered for the right time. Of requests alone the answer is not said.

References
    ListOffsets in Kafka's protocol; offsetsForTimes of consumers, --to-datetime of kafka-consumer-groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirewitness.analyser.base.times import clock_text, period_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, place, places_text
from wirewitness.analyser.kafka.rules.producers import evidence_of
from wirewitness.analyser.kafka.rules.time_units import ns_in, unit_of

ASKED = "kafka_list_offsets"
KEYS = ("cluster_id", "client_address", "client_id")
_TAKEN_FOR = {"seconds": "January 1970, before all records"}
_FUTURE = "a time far in the future"


def detect(frames: Frames) -> Iterator[Finding]:
    """One finding per client and unit."""
    found: dict[str, list[Row]] = {}
    for row in rows_of(frames[ASKED]):
        unit = unit_of(row["timestamp"], row["ts"])
        if unit is not None:
            found.setdefault(unit, []).append(row)
    for unit, rows in found.items():
        yield _finding(unit, rows)


def _finding(unit: str, rows: Sequence[Row]) -> Finding:
    first, last = rows[0], rows[-1]
    requests = len({row["exchange_id"] for row in rows})
    meant_ns = ns_in(first["timestamp"], unit)
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    return RULE.finding(
        subject={**key, "unit": unit},
        title=f"Offsets asked for a time in {unit}, not ms: {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} asks for the offsets of a time in {unit} instead of milliseconds, "
            f"with {count(requests, 'ListOffsets request')} for {places_text(rows, 3)}, "
            f"{period_text(first['ts'], last['ts'])}. It asked for {first['timestamp']}, which in {unit} is "
            f"{clock_text(meant_ns)}; Kafka takes it for {_TAKEN_FOR.get(unit, _FUTURE)}.{_answer(rows)}"
        ),
        next_step=(
            "Give the time in milliseconds since 1970 in this application (offsetsForTimes, offsets_for_times), and "
            "look what it read or left out until now."
        ),
        proof=Proof(first["ts"], last["ts"], evidence_of(rows)),
        numbers={
            **key,
            "clients": [client_numbers(first)],
            "unit": unit,
            "partitions": partitions_of(rows),
            "requests": requests,
            "timestamp": first["timestamp"],
            "meant": time_text(meant_ns),
            "found": sum(map(_found, rows)),
            "found_none": sum(map(_found_none, rows)),
        },
    )  # fmt: skip


def _answer(rows: Sequence[Row]) -> str:
    """What came of it, where most answers say the same."""
    found = [row for row in rows if _found(row)]
    if 2 * len(found) > len(rows):
        return f" The response is the first record later than that, offset {found[0]['offset']:,} of {place(found[0])}."
    return " The response is that there is no such record." if 2 * sum(map(_found_none, rows)) > len(rows) else ""


def _found(row: Mapping[str, object]) -> bool:
    return row["error_code"] == 0 and row["offset"] is not None and row["offset"] != -1


def _found_none(row: Mapping[str, object]) -> bool:
    return row["error_code"] == 0 and row["offset"] == -1


RULE = Rule(
    code="KAF345",
    question="differs",
    name="asked-time-unit",
    severity="warning",
    confidence="high",
    reads={
        ASKED: (
            "ts", "topic", "partition", "timestamp", "offset", "error_code", "exchange_id", "file", "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={ASKED: 'ts IS NOT NULL AND "timestamp" > 0 AND coalesce(replica_id, -1) < 0'},
)  # fmt: skip
