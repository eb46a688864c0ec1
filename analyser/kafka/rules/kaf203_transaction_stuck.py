"""KAF203 transaction-stuck: a transaction stays open and holds back what is written after it.

Finds
    A last stable offset that stays below the high watermark for `stands_s`, and the transaction that holds it; and
    transactions that stay open for `open_s`, or longer than their own timeout, although nobody who reads is in the
    capture. One finding for each transaction.

Why it matters
    Consumers that read committed records (isolation.level=read_committed, Streams with exactly once) get nothing behind
    the first record of the oldest open transaction of a partition, whoever wrote it. They look idle: no error, no lag
    that grows by their own doing. The wait ends when the transaction is ended, or aborted by its coordinator after
    transaction.timeout.ms; a transaction that the coordinator does not know any more hangs for ever.

How it decides
    Answers to Fetch tell both offsets. One that stands is held by the transaction whose batch begins at that very
    offset. critical when it still stands where the capture ends, or stood for a minute (`long_s`), else a warning.
    A transaction without an EndTxn, a new InitProducerId of its transactional id, or a marker is open; without readers
    in the capture it is a warning when it is older than the timeout that its producer asked for (then its coordinator
    aborts it), and from `open_s` on when its producer has written nothing for `stands_s`, else info.
    Confidence high where the batch is in the capture; medium where only the offset is: the producer is not known then.

False alarms
    Producers that keep transactions open for long on purpose (Flink, from checkpoint to checkpoint). An EndTxn that a
    gap hides, where nobody reads.

What it cannot tell
    Who began a transaction before the capture is not known: then the offset and since when it stands in the capture are
    said, and nobody is named. Of answers alone the producer is not known; of requests alone, whether EndTxn was
    accepted is not, and nothing is said of readers.

References
    KIP-98, KIP-664 (kafka-transactions.sh), KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, clock_text, ms_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of, short
from wirewitness.analyser.base.words import count, names_text, sentence_start, shown
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, first_value, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, place
from wirewitness.analyser.kafka.rules.producers import evidence_of, transactional_text

KEYS = ("cluster_id", "producer_id", "producer_epoch")
WAITS, SPANS = "kafka_stable_offset_waits", "kafka_transaction_spans"


class _Stuck(NamedTuple):
    """One transaction: its row (None: not in the capture), offsets that it holds, when it began and was seen last.

    ended: when it was decided, or its offset moved. None: it still stands where the capture ends.
    """

    span: Row | None
    waits: list[Row]
    since_ns: int
    until_ns: int
    ended: bool

    @property
    def stood_ns(self) -> int:
        return self.until_ns - self.since_ns


def detect(frames: Frames, *, stands_s: float = 10.0, long_s: float = 60.0, open_s: float = 60.0) -> Iterator[Finding]:
    """One finding for each transaction of this producer; of unknown producers one for each partition."""
    some = next((frame for frame in frames.values() if len(frame)), None)
    if some is None:
        return
    cluster = first_value(some, "cluster_id")
    stands_ns = round(stands_s * NS_PER_S)
    waits = [row for row in rows_of(frames[WAITS]) if row["ts_last"] - row["ts"] >= stands_ns]
    spans = rows_of(frames[SPANS])
    for held in _by_transaction(waits, spans):
        stuck = _stuck(_span_of(held[0], spans), held)
        is_grave = _stands_at_the_end(stuck, stands_ns) or stuck.stood_ns >= long_s * NS_PER_S
        yield _finding(cluster, stuck, "critical" if is_grave else "warning")
    holding = {id(span) for wait in waits for span in [_span_of(wait, spans)] if span}
    for span in spans:
        open_ns = (span["observed_until"] or span["ts"]) - span["ts"]
        if id(span) in holding or span["outcome"] != "open":
            continue
        if _is_overdue(span, open_ns):
            yield _finding(cluster, _stuck(span, []), "warning")
        elif open_ns >= open_s * NS_PER_S:
            idle = (span["observed_until"] or span["ts"]) - span["ts_last"] >= stands_ns
            yield _finding(cluster, _stuck(span, []), "warning" if idle else "info")


def _is_overdue(span: Row, open_ns: int) -> bool:
    """Older than the timeout that its InitProducerId asked for."""
    timeout_ms = span["transaction_timeout_ms"]
    return timeout_ms is not None and open_ns > timeout_ms * NS_PER_MS


def _stands_at_the_end(stuck: _Stuck, stands_ns: int) -> bool:
    """Nobody ended it, and it was looked at until the capture ended or its end would be in the capture."""
    seen_last = max((wait["observed_until"] or wait["ts_last"]) - wait["ts_last"] for wait in stuck.waits)
    return not stuck.ended and (stuck.span is not None or seen_last < stands_ns)


def _by_transaction(waits: Sequence[Row], spans: Sequence[Row]) -> list[list[Row]]:
    found: dict[Any, list[Row]] = {}
    for wait in waits:
        span = _span_of(wait, spans)
        key = ("span", id(span)) if span else (place(wait), wait["producer_id"])
        found.setdefault(key, []).append(wait)
    return list(found.values())


def _span_of(wait: Row, spans: Sequence[Row]) -> Row | None:
    """The transaction in which the batch was written that holds the offset."""
    if wait["producer_id"] is None or wait["ts_written"] is None:
        return None
    written = wait["ts_written"]
    compared(len(spans))
    around = (s for s in spans if s["ts"] <= written and (s["ts_ended"] is None or written <= s["ts_ended"]))
    return max(around, key=lambda span: span["ts"], default=None)


def _stuck(span: Row | None, waits: list[Row]) -> _Stuck:
    written = [wait["ts_written"] or wait["ts"] for wait in waits]
    since = min([*written, *([span["ts"]] if span else [])])
    ends = [wait["ts_moved"] for wait in waits if wait["ts_moved"]]
    decided = span["ts_ended"] if span else None
    ended = decided is not None or (bool(waits) and len(ends) == len(waits))
    seen = [wait["ts_moved"] or wait["ts_last"] for wait in waits]
    if span and not waits:
        seen = [span["observed_until"] or span["ts_last"]]
    return _Stuck(span, waits, since, decided or max(seen), ended)


def _finding(cluster: str | None, stuck: _Stuck, severity: Severity) -> Finding:
    span, waits = stuck.span, stuck.waits
    who = span or (waits[0] if waits[0]["client_address"] else None)
    first = span or waits[0]
    readers = sorted({one for wait in waits for one in (wait["readers"] or "").split(", ") if one})
    groups = sorted({one for wait in waits for one in (wait["groups"] or "").split(",") if one})
    behind = sum(wait["high_watermark"] - wait["last_stable_offset"] for wait in waits)
    confidence: Confidence = "high" if waits and who else "medium"
    partitions = partitions_of(waits) or [one for one in ((span or {}).get("partitions") or "").split(",") if one]
    key = {
        "cluster": cluster,
        "transactional_id": first["transactional_id"],
        "producer_id": first["producer_id"],
        "producer_epoch": first["producer_epoch"],
        **({} if who else {"partition": min(map(place, waits))}),
    }
    topics = sorted({one.rpartition("-")[0] for one in partitions})
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        provisional=not stuck.ended,
        subject=key,
        title=_title(stuck, who, behind),
        sentence=_sentence(stuck, who, readers, groups, behind),
        next_step=_next_step(stuck, who),
        proof=Proof(stuck.since_ns, stuck.until_ns, evidence_of([*([span] if span else []), *waits])),
        numbers={
            "cluster": cluster,
            "transactional_id": first["transactional_id"],
            "producer_id": first["producer_id"],
            "producer_epoch": first["producer_epoch"],
            "address": who["client_address"] if who else None,
            "client_id": who["client_id"] if who else None,
            "clients": [client_numbers(who, transactional_id=first["transactional_id"])] if who else [],
            "victims": _victims(readers),
            "group": groups[0] if len(groups) == 1 else None,
            "groups": groups,
            "partitions": partitions[:100],
            "topics": topics,
            "topic": topics[0] if len(topics) == 1 else None,
            "where": names_text(partitions, 3),
            "last_stable_offsets": {place(wait): wait["last_stable_offset"] for wait in waits},
            "high_watermarks": {place(wait): wait["high_watermark"] for wait in waits},
            "outcome": span["outcome"] if span else None,
            "since": time_text(stuck.since_ns),
            "until": time_text(stuck.until_ns),
            "stood_still_ms": round(stuck.stood_ns / NS_PER_MS, 3),
            "records_behind": behind,
            "transaction_timeout_ms": span["transaction_timeout_ms"] if span else None,
        },
    )  # fmt: skip


def _victims(readers: Sequence[str]) -> list[dict[str, str]]:
    named = (name.rpartition(" at ") for name in readers)
    return [{"client_id": client, "address": address} for client, _, address in named]


def _title(stuck: _Stuck, who: Row | None, behind: int) -> str:
    whose = "of an unknown producer" if who is None else f"of {short(who['transactional_id'] or client_title(who))}"
    held = f": {behind:,} records held back of {first_of(map(place, stuck.waits))}" if stuck.waits else ""
    return f"Transaction {whose} open for {seconds_text(stuck.stood_ns)}{held}"


def _sentence(stuck: _Stuck, who: Row | None, readers: list[str], groups: list[str], behind: int) -> str:
    offsets = [
        f"of {place(wait)} remains at {wait['last_stable_offset']} while its log goes on to {wait['high_watermark']}"
        for wait in stuck.waits
    ]
    text = _head(stuck, who) + "."
    if offsets:
        text += f" The last stable offset {names_text(offsets, 2)}."
    if readers:
        of = f" of {'group' if len(groups) == 1 else 'groups'} {names_text(groups)}" if groups else ""
        text += (
            f" {count(behind, 'record is', 'records are')} held back from {count(len(readers), 'client')}{of} that "
            f"{'reads' if len(readers) == 1 else 'read'} committed records: {names_text(readers, 3)}."
        )
    elif stuck.waits:
        text += f" {count(behind, 'record is', 'records are')} held back from whoever reads committed records."
    return text


def _head(stuck: _Stuck, who: Row | None) -> str:
    if who is None:
        held = min(map(place, stuck.waits))
        return (
            f"A transaction that began before the capture, or whose producer is not in it, holds {held} for "
            f"{seconds_text(stuck.stood_ns)} from {clock_text(stuck.since_ns)} on{_ending(stuck)}"
        )
    return (
        f"{sentence_start(client_text(who))} has a transaction open from {clock_text(stuck.since_ns)} on, for "
        f"{seconds_text(stuck.stood_ns)} ({_producer(who)}){_ending(stuck)}"
    )


def _producer(who: Row) -> str:
    named = who["transactional_id"]
    return transactional_text(named) if named else f"producer id {shown(who['producer_id'])}"


def _ending(stuck: _Stuck) -> str:
    span = stuck.span
    older = ""
    if span is not None and _is_overdue(span, stuck.stood_ns):
        older = f", longer than its transaction timeout of {ms_text(span['transaction_timeout_ms'])}"
    if not stuck.ended:
        return f"{older}, still open where the capture ends"
    if span is None or span["ts_ended"] is None:
        return (
            f"{older}, then ended by somebody who is not in the capture (its coordinator after its timeout, or a tool)"
        )
    by = {"init_producer_id": " by a new start of its transactional id", "write_txn_markers": " by its coordinator"}
    return f"{older}, then {span['outcome']}{by.get(span['ended_by'], '')}"


def _next_step(stuck: _Stuck, who: Row | None) -> str:
    where = ""
    if stuck.waits:
        wait = stuck.waits[0]
        topic = shown(wait["topic"])
        where = f" --topic {topic} --partition {wait['partition']} --start-offset {wait['last_stable_offset']}"
    if who is None:
        return (
            "Find its producer with kafka-transactions.sh describe-producers, or kafka-transactions.sh find-hanging; "
            f"end it with kafka-transactions.sh abort{where}."
        )
    return (
        f"Look what the process of {client_text(who)} waits for between beginTransaction and commitTransaction. If it "
        f"is gone: kafka-transactions.sh abort{where}, or start it again with the same transactional.id, which aborts "
        "what is open. A smaller transaction.timeout.ms makes the coordinator do so earlier."
    )


RULE = Rule(
    code="KAF203",
    question="stalled",
    name="transaction-stuck",
    severity="critical",
    confidence="high",
    reads={
        WAITS: (
            "ts", "exchange_id", "topic", "partition", "last_stable_offset", "high_watermark", "ts_last", "ts_moved",
            "groups", "readers", "transactional_id", "client_id", "client_address", "ts_written", "observed_until",
            "file", "request_packet",
        ),
        SPANS: (
            "ts", "exchange_id", "transactional_id", "client_id", "client_address", "ts_last", "ts_ended", "outcome",
            "ended_by", "partitions", "transaction_timeout_ms", "observed_until", "file", "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        WAITS: "epoch_ns(ts_last) - epoch_ns(ts) >= 1000000000",
        SPANS: "outcome IN ('open', 'unknown') OR epoch_ns(ts_ended) - epoch_ns(ts) >= 1000000000",
    },
)  # fmt: skip
