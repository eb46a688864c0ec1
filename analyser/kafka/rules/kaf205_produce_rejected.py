"""KAF205 produce-rejected: a broker refuses what a producer writes.

Finds
    Produce requests whose batches a broker refuses with an error: too large (10), not allowed (29), not a valid record
    (87), too few replicas in sync (19, 20), no such partition or leader (3, 5, 6), no acknowledgement of replicas in
    time (7) and their like. Errors of sequences and epochs are left to KAF201. One finding for each client and error.

Why it matters
    Records of a refused batch are nowhere. A client that tries again keeps them in memory until delivery.timeout.ms is
    over, then they are lost unless the application looks at what its send returned; meanwhile nothing is written.

How it decides
    A batch that is sent again counts once: the same number of records, size and time of the first record. It is stored
    when it is accepted within 150 s.
    Errors that clients do not retry: a warning from the first batch that is not stored, critical from `several` on;
    29, 31 and 53 count from `several` on, or when the client never wrote there later (rights may just be given).
    Errors that clients retry: when the client had no success on a partition for `stands_s`, or when it gave up
    `several` batches, went on with later ones and these are not stored (known of batches with a sequence only: others
    are put together anew before they are sent again). critical when records were not stored or the capture ends before
    a success, else a warning.
    Which replicas were missing is what Metadata and its like say of the partition within a minute: the answer that
    misses most of them.
    Confidence high: errors are on the wire. A gap can hide the batch that is accepted later, so it is provisional.

False alarms
    An application that expects to be refused and puts such records elsewhere. Batches that were too large and cut in
    the middle of a gap.

What it cannot tell
    Of requests alone nothing is said: errors stand in answers. A batch that was refused before the capture began is
    not counted, and one that is refused at its end may still be stored.

References
    Kafka protocol errors; KIP-98, KIP-91 (delivery.timeout.ms), KIP-126 (batches that are too large are cut).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import server_of
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, sentence_start, shown
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, place, places_text
from wirewitness.analyser.kafka.rules.producers import (
    REFUSED,
    REFUSED_COLUMNS,
    SEQUENCE_ERRORS,
    TOO_LARGE,
    batches_of,
    evidence_of,
    records_in,
)
from wirewitness.dissectors.kafka.error_classes import error_class

KEYS = ("cluster_id", "client_address", "client_id")
# Rights that are given while a client starts are nothing to talk about.
_RIGHTS = (29, 31, 53)


class _Refused(NamedTuple):
    """What one error did to one client. stood_ns: the longest time without success on a partition."""

    code: int
    rows: list[Row]
    batches: list[Row]
    lost: list[Row]
    waiting: list[Row]
    stood_ns: int

    @property
    def until_ns(self) -> int:
        """When the client had success again, else the last refusal."""
        until: int = max(max(row["ts"], row["ts_accepted_after"] or 0) for row in self.rows)
        return until


def detect(frames: Frames, *, several: int = 3, stands_s: float = 5.0) -> Iterator[Finding]:
    """One finding for each error that this client met."""
    rows = [row for row in rows_of(frames[REFUSED]) if row["error_code"] not in SEQUENCE_ERRORS]
    for code, own in groupby(sorted(rows, key=lambda row: (row["error_code"], row["ts"])), lambda r: r["error_code"]):
        refused = _refused(code, list(own))
        severity = _severity(refused, several, round(stands_s * NS_PER_S))
        if severity is not None:
            yield _finding(refused, severity)


def _refused(code: int, rows: list[Row]) -> _Refused:
    batches = batches_of(rows)
    left = [row for row in batches if row["ts_stored"] is None]
    retried = _is_retried(code)
    waiting = [row for row in left if retried and row["ts_accepted_after"] is None]
    lost = [row for row in left if not retried or (row["ts_accepted_after"] is not None and _is_numbered(row))]
    return _Refused(code, rows, batches, lost, waiting, max(_stood(rows)))


def _is_retried(code: int) -> bool:
    """Do clients send the batch again until delivery.timeout.ms is over?"""
    return error_class(code, "Produce").heals == "retry"


def _is_numbered(row: Row) -> bool:
    """Only with a sequence a batch stays the same when it is sent again: else clients put its records into others."""
    return row["base_sequence"] is not None and row["base_sequence"] >= 0


def _stood(rows: Sequence[Row]) -> Iterator[int]:
    """How long each episode of refusals lasted: on one partition, without a success between."""

    def log(row: Row) -> tuple[Any, ...]:
        return row["topic"] or "", row["partition"], row["ts_accepted_after"] or 0

    for (_, _, after), episode in groupby(sorted(rows, key=log), log):
        held = list(episode)
        yield max(after, held[-1]["ts"]) - min(row["ts"] for row in held)


def _severity(refused: _Refused, several: int, stands_ns: int) -> Severity | None:
    lost = len(refused.lost)
    if not _is_retried(refused.code):
        healed = all(row["ts_accepted_after"] is not None for row in refused.lost)
        if lost == 0 or (refused.code in _RIGHTS and lost < several and healed):
            return None
        return "critical" if lost >= several else "warning"
    if refused.stood_ns < stands_ns and lost < several:
        return None
    return "critical" if lost or refused.waiting else "warning"


def _finding(refused: _Refused, severity: Severity) -> Finding:
    first, rows = refused.rows[0], refused.rows
    known = error_class(refused.code, "Produce")
    name = first["error_name"] or "?"
    servers = sorted({text for text in map(server_of, rows) if text})
    missing = sorted({one for row in rows for one in (row["missing"] or "").split(", ") if one})
    key = {
        "cluster": first["cluster_id"],
        "address": first["client_address"],
        "client_id": first["client_id"],
        "error_code": refused.code,
    }
    return RULE.finding(
        severity=severity,
        provisional=True,
        subject=key,
        title=(
            f"{count(len(refused.batches), 'batch', 'batches')} refused, {name}: {client_title(first)} for "
            f"{first_of(map(place, rows))}"
        ),
        sentence=_sentence(refused, name, known.meaning or "it does not take the batch", servers, missing),
        next_step=known.next_step or "Look at the broker's log of that time and at the client's.",
        proof=Proof(first["ts"], refused.until_ns, evidence_of(rows)),
        numbers={
            **key,
            "error_name": name,
            "topics": sorted({row["topic"] for row in rows if row["topic"]})[:20],
            "partitions": partitions_of(rows),
            "server": servers[0] if len(servers) == 1 else None,
            "servers": servers[:20],
            "where": names_text(sorted({row["topic"] for row in rows if row["topic"]}), 3),
            "clients": [client_numbers(first, **_producer(first))],
            "since": time_text(first["ts"]),
            "until": time_text(refused.until_ns),
            "requests_refused": len({row["exchange_id"] for row in rows}),
            "refused_batches": len(refused.batches),
            "refused_records": records_in(refused.batches),
            "records_lost": records_in(refused.lost),
            "records_waiting": records_in(refused.waiting),
            "records_stored_later": records_in(row for row in refused.batches if row["ts_stored"] is not None),
            "largest_batch_bytes": max(row["batch_bytes"] or 0 for row in rows),
            "stood_still_ms": round(refused.stood_ns / NS_PER_MS, 3),
            "missing_replicas": missing,
            "missing_servers": [one.rpartition(" ")[2] for one in missing if " " in one],
        },
    )


def _producer(row: Row) -> dict[str, int]:
    """The producer id of one that asked for an id (-1: it did not)."""
    known = row["producer_id"]
    return {} if known is None or known < 0 else {"producer_id": known}


def _sentence(refused: _Refused, name: str, meaning: str, servers: Sequence[str], missing: Sequence[str]) -> str:
    rows, batches = refused.rows, refused.batches
    broker = f"the broker at {names_text(servers, 2)}" if servers else "the broker"
    tries = f" ({count(len(rows), 'attempt')})" if len(rows) > len(batches) else ""
    who = f"{count(len(batches), 'batch', 'batches')} of {client_text(rows[0])} for {places_text(rows, 2)}"
    sizes = ""
    if refused.code == TOO_LARGE:
        largest = max((row["batch_bytes"] for row in batches if row["batch_bytes"] is not None), default=None)
        sizes = f"; the largest has {shown(largest, ',')} bytes"
    gone = f" Not in sync: broker {'; broker '.join(missing)}." if missing else ""
    return (
        f"{sentence_start(broker)} refused {who}{tries} with error {refused.code} {name}, "
        f"{period_text(rows[0]['ts'], refused.until_ns)}. {sentence_start(meaning)}{sizes}.{gone}{_outcome(refused)}"
    )


def _outcome(refused: _Refused) -> str:
    lost, waiting = records_in(refused.lost), records_in(refused.waiting)
    stored = records_in(row for row in refused.batches if row["ts_stored"] is not None)
    parts = []
    if lost:
        parts.append(f"{count(lost, 'record was', 'records were')} never stored")
    if waiting:
        parts.append(f"{count(waiting, 'record was', 'records were')} not stored when the capture ended")
    if stored:
        parts.append(f"{count(stored, 'record was', 'records were')} stored later")
    return f" {'; '.join(parts)}." if parts else ""


RULE = Rule(
    code="KAF205",
    question="refused",
    name="produce-rejected",
    severity="critical",
    confidence="high",
    reads={REFUSED: REFUSED_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={REFUSED: f"error_code NOT IN ({', '.join(map(str, SEQUENCE_ERRORS))})"},
)
