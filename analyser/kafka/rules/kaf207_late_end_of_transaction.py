"""KAF207 late-end-of-transaction: an EndTxn ended a transaction that it was not meant for.

Finds
    An EndTxn with success that came on another connection than the requests of the same producer before and behind it,
    while a transaction of that producer was open.

Why it matters
    A producer that gets no answer to EndTxn sends it again on a new connection. Before KIP-890 all transactions of a
    producer have one epoch, so the first EndTxn, when it arrives late, ends the next transaction: in the middle of its
    records, and perhaps with commit instead of abort. What comes behind belongs to no transaction, or to one that
    nobody ends.

How it decides
    Requests to the transaction coordinator (InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn) of one
    (producer id, epoch) go one behind the other on one connection. An EndTxn on another one, with requests of the same
    connection before and behind it, is late; a client that reconnected goes on with the new connection. Before it there
    must be another EndTxn, and a transaction that began behind that one. EndTxn that were refused did nothing.
    Confidence high: all of it is on the wire.

False alarms
    A coordinator that moves away and back while one request is under way.

What it cannot tell
    Of requests alone nothing is said, since an EndTxn that is refused did nothing. A transaction whose begin is before
    the capture is not known to be a later one.

References
    KIP-98, KIP-890 (which bumps the epoch with each transaction); Jepsen: Bufstream 0.1.0 (on Kafka's transactions).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of, short
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of, transactional_text

EVENTS, SPANS = "kafka_transactions", "kafka_transaction_spans"
KEYS = ("cluster_id", "producer_id", "producer_epoch")


def detect(frames: Frames, *, ends_least: int = 1) -> Iterator[Finding]:
    """One finding for each late EndTxn; from `ends_least` EndTxn before it on."""
    events, spans = rows_of(frames[EVENTS]), rows_of(frames[SPANS])
    for place, end in enumerate(events):
        if place == 0 or place == len(events) - 1 or not _is_late(events[place - 1], end, events[place + 1]):
            continue
        earlier = [row for row in events[:place] if row["event"] == "end_txn"]
        open_then = [s for s in spans if s["ts"] < end["ts"] and (not earlier or s["ts"] > earlier[-1]["ts"])]
        if len(earlier) >= ends_least and open_then:
            yield _finding(end, earlier[-1], open_then[-1], events[place + 1 :])


def _is_late(before: Row, end: Row, behind: Row) -> bool:
    alone: bool = before["flow_id"] == behind["flow_id"] != end["flow_id"]
    return alone and end["event"] == "end_txn" and end["error_code"] == 0


def _finding(end: Row, earlier: Row, span: Row, behind: Sequence[Row]) -> Finding:
    own = next((row for row in behind if row["event"] == "end_txn"), None)
    outcome = "committed" if end["committed"] else "aborted"
    key = {
        "cluster": end["cluster_id"],
        "transactional_id": end["transactional_id"],
        "producer_id": end["producer_id"],
        "producer_epoch": end["producer_epoch"],
    }
    meant = ""
    if own is not None:
        answer = "got no response" if own["error_code"] is None else f"got error {own['error_code']}"
        wanted = "commit" if own["committed"] else "abort"
        meant = f" The EndTxn that was meant for it ({wanted}, {seconds_text(own['ts'] - end['ts'])} later) {answer}."
        if own["error_code"] == 0:
            meant = f" The EndTxn that was meant for it ({wanted}) came {seconds_text(own['ts'] - end['ts'])} later."
    partitions = [one for one in (span["partitions"] or "").split(",") if one]
    return RULE.finding(
        subject={**key, "at": time_text(end["ts"])},
        title=(
            f"Late EndTxn {outcome} the next transaction: {short(end['transactional_id'] or client_title(end))}, "
            f"{count(span['records_count'] or 0, 'record')} on {first_of(partitions) or 'unknown partitions'}"
        ),
        sentence=(
            f"{sentence_start(client_text(end))} ({transactional_text(end['transactional_id'])}) sent an EndTxn on "
            f"another connection at {clock_text(end['ts'])}: it {outcome} the next transaction too early. That one had "
            f"begun {seconds_text(end['ts'] - span['ts'])} before and had "
            f"{count(span['records_count'] or 0, 'record')} on {names_text(partitions, 3) or 'partitions not known'}. "
            f"The EndTxn before came {seconds_text(end['ts'] - earlier['ts'])} earlier."
            f"{meant}"
        ),
        next_step=(
            "Read what these partitions hold from that time on with isolation.level=read_committed and compare it with "
            "what the application meant to write. Use clients and brokers with transaction.version 2 (KIP-890): then a "
            "late EndTxn is refused."
        ),
        proof=Proof(earlier["ts"], own["ts"] if own else end["ts"], evidence_of([earlier, span, end, *behind[:1]])),
        numbers={
            **key,
            "client_id": end["client_id"],
            "address": end["client_address"],
            "clients": [client_numbers(end, transactional_id=end["transactional_id"])],
            "flow_id": end["flow_id"],
            "committed": end["committed"],
            "records_affected": span["records_count"],
            "partitions": partitions[:100],
            "where": names_text(partitions, 3) or None,
            "since": time_text(span["ts"]),
            "until": time_text(end["ts"]),
            "own_end_error_code": own["error_code"] if own else None,
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF207",
    question="stalled",
    name="late-end-of-transaction",
    severity="critical",
    confidence="high",
    reads={
        EVENTS: (
            "ts", "exchange_id", "client_id", "client_address", "event", "transactional_id", "committed", "error_code",
            "flow_id", "file", "request_packet",
        ),
        SPANS: (
            "ts", "exchange_id", "client_id", "client_address", "partitions", "records_count", "file", "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={EVENTS: "event IN ('add_partitions_to_txn', 'add_offsets_to_txn', 'end_txn') AND producer_id >= 0 AND NOT "
                  "starts_with(coalesce(client_id, ''), 'AddPartitionsManager')"},
    suspects=(
        f"SELECT cluster_id, producer_id, producer_epoch FROM r_{EVENTS} WHERE event = 'end_txn' "
        "GROUP BY cluster_id, producer_id, producer_epoch HAVING count(DISTINCT flow_id) > 1 AND count(*) > 1"
    ),
)  # fmt: skip
