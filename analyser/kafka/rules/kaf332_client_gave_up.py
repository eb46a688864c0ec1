"""KAF332 client-gave-up: a client's own timeout ends its connections before a response can come.

Finds
    Clients that close a connection while a request is on its way or not answered yet, again and again, although the
    broker answers it then, or has not got the whole of it. Question: who ended it, and with what pending.

Why it matters
    No broker failed. The client's timeout is shorter than the time that its request takes, on a slow link or at a busy
    broker, so it sends the same again and gets no further. A Produce that was sent whole is stored, though nobody reads
    the response: without idempotence every try stores its records once more.

How it decides
    Requests of one API on `closed_least` connections of a client that the client ended first, with a FIN or a reset,
    each after `least_ms` or more: from the last response before, or the connection's begin, or the request, what was
    first. The response came when the client had closed, or the request was not sent whole (which connections on which
    bytes are missing cannot show). Requests that ask the broker to wait do not count. A pattern: the same batch was
    sent again on another connection (partition, time of the first record, number of records and size are the same); or
    five waits that differ by a tenth at most (spread).
    critical where a batch got two offsets or more, which responses tell, late ones too; else a warning.

False alarms
    A library that does not wait for the response to its last request; then the waits are short.

What it cannot tell
    Copies whose response is not in the capture are not counted: "at least". The timeout where the request takes long
    to send: the system sends on what the client had written before it closed.

References
    request.timeout.ms and delivery.timeout.ms of clients, socket.timeout.ms of librdkafka; enable.idempotence (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, period_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, names_text, sentence_start, shown, times
from wirewitness.analyser.engine.rules.delivery import delivered
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS, client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, place
from wirewitness.analyser.kafka.rules.producers import batch_of

BATCHES = "kafka_produce_batches"
KEYS = ("cluster_id", "client_address", "client_id")
_ENOUGH_WAITS = 5


class _GivenUp(NamedTuple):
    """A request, its connection, and how long the client waited. cut: it was not sent whole."""

    row: Row
    connection: Row
    waited_ns: int
    cut: bool


class _Copies(NamedTuple):
    """One batch as it was sent on several connections. offsets: where it was stored."""

    rows: Sequence[Row]
    offsets: Sequence[int]


def detect(frames: Frames, *, closed_least: int = 3, least_ms: float = 400.0, spread: float = 0.1) -> Iterator[Finding]:
    """One finding for each API and server."""
    connections = {row["flow_id"]: row for row in rows_of(frames[CONNECTIONS]) if row["ts_closed"] is not None}
    answered: dict[str, int] = {}
    found: dict[tuple[object, ...], dict[str, _GivenUp]] = {}
    for row in rows_of(frames["exchanges"]):
        connection = connections.get(row["flow_id"])
        if connection is None:
            continue
        if row["ts_response"] is not None and not row["late"]:
            answered[row["flow_id"]] = max(answered.get(row["flow_id"], 0), row["ts_response"])
            continue
        one = _given_up(row, connection, max(answered.get(row["flow_id"], 0), connection["ts"]))
        if one is not None and one.waited_ns >= least_ms * NS_PER_MS:
            key = (row["operation"], server_text(connection))
            found.setdefault(key, {}).setdefault(row["flow_id"], one)
    copies = _copies(rows_of(frames[BATCHES]))
    for (operation, _), flows in found.items():
        if len(flows) < closed_least:
            continue
        own = [*flows.values()]
        again = [one for one in copies if any(row["flow_id"] in flows for row in one.rows)]
        if operation != "Produce":
            again = []
        if again or _same_wait(own, spread):
            yield _finding(own, again)


def _given_up(row: Row, connection: Row, heard_ns: int) -> _GivenUp | None:
    if row["awaitable"] or row["ts"] is None:
        return None
    cut = delivered(row["request_message_id"], row["request_bytes"], connection["bytes_to_server"]) is False
    if not cut and not (row["late"] and row["ts_response"] is not None):
        return None
    return _GivenUp(row, connection, connection["ts_closed"] - min(row["ts"], heard_ns), cut)


def _copies(batches: Sequence[Row]) -> list[_Copies]:
    """Batches that were sent on several connections."""
    same: dict[tuple[object, ...], list[Row]] = {}
    for row in batches:
        same.setdefault(batch_of(row), []).append(row)
    return [
        _Copies(
            rows,
            sorted({row["base_offset"] for row in rows if row["error_code"] == 0 and (row["base_offset"] or -1) >= 0}),
        )
        for rows in same.values()
        if len({row["flow_id"] for row in rows}) > 1
    ]


def _same_wait(own: Sequence[_GivenUp], spread: float) -> bool:
    waits = [one.waited_ns for one in own]
    return len(waits) >= _ENOUGH_WAITS and max(waits) <= (1 + spread) * min(waits)


def _finding(own: Sequence[_GivenUp], copies: Sequence[_Copies]) -> Finding:
    first, last = own[0], own[-1]
    connection, server = first.connection, server_text(first.connection)
    operation = first.row["operation"]
    waits = [one.waited_ns for one in own]
    more = sum(len(one.offsets) - 1 for one in copies if len(one.offsets) > 1)
    often = f", stored {times(max(len(one.offsets) for one in copies))}" if more else ""
    until = max(last.connection["ts_closed"], *(one.row["ts_response"] or 0 for one in own))
    return RULE.finding(
        severity="critical" if more else "warning",
        subject={**client_subject(connection), "server": server, "operation": operation},
        title=f"{client_title(connection)} gave up {count(len(own), f'{shown(operation)} request')} at {server}{often}",
        sentence=(
            f"{sentence_start(client_text(connection))} closed {count(len(own), 'connection')} to {server} "
            f"{seconds_text(min(waits))} to {seconds_text(max(waits))} after it began to wait, with a "
            f"{shown(operation)} pending, {period_text(first.connection['ts_closed'], last.connection['ts_closed'])}. "
            f"{_what_became(own)}{_stored(copies)}"
        ),
        next_step=(
            "Raise the client's timeout (request.timeout.ms; socket.timeout.ms of librdkafka) above what its largest "
            "request takes on this way, or make requests smaller (batch.size, max.request.size, compression.type)."
            + (" Set enable.idempotence=true: the broker then drops copies." if operation == "Produce" else "")
        ),
        proof=Proof(
            min(one.connection["ts"] for one in own),
            until,
            (
                Evidence(one.row["request_file"], one.row["request_packet"], one.row["request_message_id"])
                for one in own
            ),
        ),
        numbers={
            **client_keys(connection),
            "clients": [client_numbers(connection, requests=len(own))],
            "server": server_of(connection),
            "where": server,
            "operation": operation,
            "connections": len(own),
            "late_responses": sum(bool(one.row["late"]) for one in own),
            "requests_cut": sum(one.cut for one in own),
            "shortest_ms": round(min(waits) / NS_PER_MS, 3),
            "longest_ms": round(max(waits) / NS_PER_MS, 3),
            "copies_stored": more,
            "partitions": partitions_of(row for one in copies for row in one.rows[:1]),
            "offsets": [[*one.offsets] for one in copies if len(one.offsets) > 1][:20],
            "since": time_text(first.row["ts"]),
            "until": time_text(until),
        },
    )


def _what_became(own: Sequence[_GivenUp]) -> str:
    """What the broker had, and when it answered."""
    late = [one.row["ts_response"] - one.row["ts"] for one in own if one.row["late"] and not one.cut]
    cut = sum(one.cut for one in own)
    told = []
    if late:
        told.append(
            f"The broker answered {len(late)} of them {seconds_text(min(late))} to {seconds_text(max(late))} after "
            "their last byte, too late"
        )
    if cut:
        told.append(f"{cut} were not sent whole by then")
    return f"{'; '.join(told)}."


def _stored(copies: Sequence[_Copies]) -> str:
    """How often the same batch was stored."""
    twice = [one for one in copies if len(one.offsets) > 1]
    if not twice:
        return ""
    most = max(twice, key=lambda one: len(one.offsets))
    others = f", and {count(len(twice) - 1, 'other batch', 'other batches')} more than once" if len(twice) > 1 else ""
    return (
        f" The same batch of {place(most.rows[0])} was stored {times(len(most.offsets))} at least (offsets "
        f"{names_text([str(offset) for offset in most.offsets], 5)}){others}."
    )


_OF_FLOWS = f"flow_id IN (SELECT flow_id FROM {CONNECTIONS} WHERE closed_by = 'client')"
_WHO = "concat_ws(chr(10), client_address, client_id)"
_OF_CLIENTS = f"""base_timestamp IS NOT NULL AND {_WHO} IN (
    SELECT {_WHO} FROM exchanges WHERE protocol = 'kafka' AND late AND operation = 'Produce')"""
_SAME = "(coalesce(topic, topic_id, ''), partition, base_timestamp, records_count, batch_bytes)"
RULE = Rule(
    code="KAF332",
    question="ended",
    name="client-gave-up",
    severity="critical",
    confidence="high",
    reads={
        "exchanges": (
            "ts", "ts_response", "flow_id", "operation", "awaitable", "late", "request_message_id", "request_bytes",
            "request_file", "request_packet",
        ),
        CONNECTIONS: ("ts", "flow_id", "ts_closed", "bytes_to_server", "server_address", "server_port"),
        BATCHES: (
            "flow_id", "topic", "partition", "records_count", "batch_bytes", "base_timestamp", "producer_id",
            "producer_epoch", "base_sequence", "error_code", "base_offset",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        # What was given up, and the last response before it.
        "exchanges": f"""protocol = 'kafka' AND {_OF_FLOWS} AND (late OR status = 'unanswered' OR exchange_id IN (
            SELECT arg_max(exchange_id, ts_response) FROM exchanges
            WHERE protocol = 'kafka' AND late IS NOT true AND ts_response IS NOT NULL GROUP BY flow_id))""",
        CONNECTIONS: "closed_by = 'client' AND coalesce(gap_bytes, 0) = 0",
        BATCHES: f"""{_OF_CLIENTS} AND {_SAME} IN (
            SELECT {_SAME} FROM {BATCHES} WHERE {_OF_CLIENTS}
            GROUP BY ALL HAVING count(DISTINCT flow_id) > 1)""",
    },
    suspects=f"""
        SELECT {", ".join(KEYS)} FROM r_exchanges WHERE ts_response IS NULL OR late
        GROUP BY ALL HAVING count(DISTINCT flow_id) >= 3""",
    signs={"exchanges": "count(*) FILTER (protocol = 'kafka' AND (ts_response IS NULL OR late)) >= 3"},
)  # fmt: skip
