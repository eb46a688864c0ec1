"""TCP105 delayed-ack-stall: messages are sent in pieces, and the rest waits for a delayed acknowledgement.

Finds
    Connections on which one side writes a request or a response in several small pieces, and the later ones leave only
    when the first one is ACKed, 40 to 200 ms later.

Why it matters
    Both hosts and the network are idle meanwhile. A client sees 40 ms for each request and blames the broker; the
    latency of these exchanges, which counts from the whole request, looks well.

How it decides
    A small segment, at least 40 ms (wait_ms_least) and at most 200 ms (wait_ms_most) of silence, its bare
    acknowledgement, and within 10 ms (answer_ms_most) the sender's next small segment, in the middle of a message: 5
    times (times_least) on one connection in one direction. Nagle's rule holds a small segment back while another one is
    not confirmed; the receiver waits with the acknowledgement because it has no answer to half a message. Where its
    receive window was full for at least half of the time (full_share_least), that is what held the rest back, and it
    does not count (TCP106). Small is what
    leaves room for 40 bytes of options in the largest segment of the handshake, or in 1220 bytes (segment_bytes) where
    the handshake is not in the capture. On an encrypted connection nobody can say where a message ends, so the finding
    is info with low confidence; of a protocol that is not known nothing is said.

False alarms
    A program that works for as long on the second half of a message, and sets TCP_NODELAY. On a way of 40 ms and more
    the wait may be the round trip; it is Nagle's rule that costs it all the same. What is captured far from the sender
    shows the acknowledgement early: with more than 10 ms of network between, nothing is found.

What it cannot tell
    Which part of the program writes in pieces.

References
    RFC 9293, 3.7.4 (Nagle) and 3.8.6.3 (delayed acknowledgements); RFC 1122, 4.2.3.2. Linux delays from 40 ms
    (TCP_DELACK_MIN) to 200 ms, Windows by 40 or 200 ms.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from statistics import median
from typing import Any

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS
from wirewitness.analyser.base.titles import who_title
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import (
    FLOW_COLUMNS,
    MOST_NAMED,
    client_names,
    endpoints_text,
    flow_numbers,
    wait_proof,
)
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Span, Spans
from wirewitness.analyser.tcp.waits import MOST_OPTIONS_BYTES

_SIDES = {"client_to_server": ("client", "request"), "server_to_client": ("server", "response")}


def detect(
    frames: Frames,
    *,
    times_least: int = 5,
    wait_ms_least: float = 40.0,
    wait_ms_most: float = 200.0,
    answer_ms_most: float = 10.0,
    segment_bytes: int = 1220,
    full_share_least: float = 0.5,
) -> Iterator[Finding]:
    """One finding for each direction of this flow in which `times_least` waits of that kind were seen."""
    rows = rows_of(frames["tcp_waits"])
    full = [row for row in rows if row["kind"] == "full_window" and _share(row) >= full_share_least]
    filled: dict[Any, list[Span]] = {}
    for row in full:
        filled.setdefault(_way(row), []).append((row["ts"], row["ts_last"], None))
    meanwhile = {way: Spans(spans) for way, spans in filled.items()}
    waits = [
        wait
        for wait in rows
        if wait["kind"] == "delayed_ack"
        and not (_way(wait) in meanwhile and meanwhile[_way(wait)].meets(wait["ts"] - 1, wait["ts_last"] + 1))
        and wait_ms_least <= wait["wait_ms"] <= wait_ms_most
        and wait["answer_ms"] <= answer_ms_most
        and max(wait["sent_bytes"], wait["next_bytes"])
        <= (wait["segment_limit_bytes"] or segment_bytes) - MOST_OPTIONS_BYTES
    ]
    messages, exchanges = rows_of(frames["messages"]), rows_of(frames["exchanges"])
    names = client_names(messages)
    for flow in rows_of(frames["flows"]):
        if flow["protocol"] is None and not flow["encrypted"]:
            continue
        for direction in _SIDES:
            mine = [wait for wait in waits if wait["direction"] == direction]
            if flow["protocol"] is not None:
                mine = _in_messages(mine, [m for m in messages if m["direction"] == direction])
            if len(mine) >= times_least:
                cut = {wait.get("message_id") for wait in mine} - {None}
                late = [e for e in exchanges if not cut.isdisjoint((e["request_message_id"], e["response_message_id"]))]
                yield _finding(flow, names.get(flow["flow_id"]), direction, mine, late)


def _share(full: Row) -> float:
    """The part of its time in which a window was full."""
    lasted_ms = (full["ts_last"] - full["ts"]) / NS_PER_MS
    return 1.0 if lasted_ms <= 0 else full["wait_ms"] / lasted_ms


def _way(wait: Row) -> tuple[str, str]:
    return wait["flow_id"], wait["direction"]


def _in_messages(waits: list[Row], messages: list[Row]) -> list[Row]:
    """The waits in the middle of a message, with its id."""
    messages = [m for m in messages if m["stream_offset"] is not None and m["length_bytes"] is not None]
    messages.sort(key=lambda m: m["stream_offset"])
    starts = [m["stream_offset"] for m in messages]
    found = []
    for wait in waits:
        place = bisect_left(starts, wait["stream_offset"]) - 1
        if place >= 0 and wait["stream_offset"] < starts[place] + messages[place]["length_bytes"]:
            found.append(wait | {"message_id": messages[place]["message_id"]})
    return found


def _finding(flow: Row, name: str | None, direction: str, waits: list[Row], late: list[Row]) -> Finding:
    side, message = _SIDES[direction]
    waited = [wait["wait_ms"] for wait in waits]
    known = flow["protocol"] is not None
    operations = ", ".join(sorted({e["operation"] or "?" for e in late})[:5])
    pieces = f"sends {message}s in pieces" if known else "sends small segments"
    about = f" ({count(len(late), 'exchange')}: {operations})" if late else ""
    end = f"had only a part of the {message}" if known else "may have had only a part: what they hold is not known"
    return RULE.finding(
        severity="warning" if known else "info",
        confidence="high" if known else "low",
        subject={"flow": flow["flow_id"], "side": side},
        title=(
            f"Writes of the {side} wait for delayed ACKs: "
            f"{who_title(name, flow['client_address'])} and {server_text(flow)}"
        ),
        sentence=(
            f"Between {endpoints_text(flow, name)} the {side} {pieces}: {count(len(waits), 'time')}{about} the next "
            f"one waited for a delayed ACK, {median(waited):.0f} ms in the median, {max(waited):.0f} ms at most. The "
            f"other side is not slow, it {end}."
        ),
        next_step=(
            f"In the {side}'s program write each {message} with one call, or set TCP_NODELAY; network and other side "
            "are fine."
        ),
        proof=wait_proof(waits),
        numbers={
            **flow_numbers(flow, name),
            "side": side,
            "times": len(waits),
            "median_wait_ms": median(waited),
            "longest_wait_ms": max(waited),
            "sum_wait_ms": round(sum(waited), 6),
            "wasted_ms": round(sum(waited), 6),
            "late_exchanges": [e["exchange_id"] for e in late[:MOST_NAMED]],
            "late_exchanges_count": len(late),
        },
    )


# Messages of one direction stand one behind the other: the last one that begins before is the only one to look at.
_STALLS, _OFTEN = "FROM tcp_waits WHERE kind = 'delayed_ack'", "GROUP BY flow_id HAVING count(*) >= 5"
_CUT = (
    f"SELECT m.message_id FROM (SELECT flow_id, direction, stream_offset {_STALLS}) AS w ASOF JOIN "
    f"(SELECT flow_id, direction, stream_offset, length_bytes, message_id FROM messages "
    f"WHERE flow_id IN (SELECT flow_id {_STALLS} {_OFTEN})) AS m ON w.flow_id = m.flow_id "
    "AND w.direction = m.direction AND w.stream_offset > m.stream_offset "
    "WHERE w.stream_offset < m.stream_offset + m.length_bytes"
)

RULE = Rule(
    code="TCP105",
    question="waiting",
    name="delayed-ack-stall",
    severity="warning",
    confidence="high",
    reads={
        "flows": (*FLOW_COLUMNS, "encrypted"),
        "tcp_waits": (
            "ts", "ts_last", "flow_id", "kind", "file", "packet_first", "file_last", "packet_last", "direction",
            "stream_offset", "wait_ms", "answer_ms", "sent_bytes", "next_bytes", "segment_limit_bytes",
        ),
        "messages": ("ts", "message_id", "direction", "stream_offset", "length_bytes", "client_id"),
        "exchanges": ("ts", "exchange_id", "operation", "request_message_id", "response_message_id"),
    },
    partition_by=("flow_id",),
    signs={"tcp_waits": "count(*) FILTER (kind = 'delayed_ack') >= 5"},
    detect=detect,
    rows={
        "flows": "duplicate_of IS NULL",
        "tcp_waits": "(kind = 'delayed_ack' AND answer_ms IS NOT NULL AND next_bytes IS NOT NULL) "
        "OR kind = 'full_window'",
        # The messages that were held back; any of them says who the client is.
        "messages": f"message_id IN ({_CUT})",
        "exchanges": "exchange_id IN (SELECT exchange_id FROM (SELECT exchange_id, unnest([request_message_id, "
        f"response_message_id]) AS message_id FROM exchanges) WHERE message_id IN ({_CUT}))",
    },
    suspects="SELECT flow_id FROM r_flows SEMI JOIN (SELECT flow_id FROM r_tcp_waits "
    f"WHERE kind = 'delayed_ack' {_OFTEN}) USING (flow_id)",
)  # fmt: skip
