"""TCP106 window-limited: a transfer runs at the pace that the receive window allows.

Finds
    Connections on which the sender had sent as much as the receiver's window allows, for more than a second of a
    transfer, with the exchanges that were under way.

Why it matters
    The sender has more and the network would carry more, but one window for each round trip is all that fits. It
    looks like a slow broker or a slow network; it is a receive buffer that is too small for the distance, or a receiver
    that reads slowly.

How it decides
    What is sent and not confirmed fills the window that the other side told, its scale applied, with less room than a
    segment and an eighth of the window. Looked at every 8.4 ms; more than 1 s of such instants (ms_above) without a
    pause of more than 100 ms, they are at least half (share_least) of that time, and twice a window (windows_least) was
    sent meanwhile. A closed window, which TCP102 tells of, is not counted. A window that shrank below half of its
    largest size (shrinks_below) speaks of a slow receiver, one that did not of a small buffer. Only the handshake tells
    the scale. Of a connection that began before the capture nothing is said, since a guess would be wrong by powers of
    two; client_window_scale and server_window_scale of `flows` are null then.

False alarms
    Acknowledgements that the capture lost make the window look full for longer; more than the window on its way is not
    counted. Near the receiver, acknowledgements are seen before the sender has them: a small buffer on a long way is
    found in captures at the sender only.

What it cannot tell
    Whether a larger window would be enough: how much the network carries is seen only then.

References
    RFC 9293, 3.8.6 (windows); RFC 7323, 2 (window scale).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.titles import who_title
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.flow_rows import (
    FLOW_COLUMNS,
    MOST_NAMED,
    client_names,
    endpoints_text,
    flow_numbers,
    named_by,
    wait_proof,
)
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Spans
from wirewitness.dissectors.registry import dissector_of

# Latencies below it are not told apart from none: half of what a capture in microseconds shows.
_CLOCK_MS = 0.0005
_SIDES = {"client_to_server": ("client", "server"), "server_to_client": ("server", "client")}


def detect(
    frames: Frames,
    *,
    ms_above: float = 1000.0,
    share_least: float = 0.5,
    windows_least: float = 2.0,
    shrinks_below: float = 0.5,
) -> Iterator[Finding]:
    """One finding for each direction of this flow whose sender a full window held up for more than `ms_above`."""
    waits = [
        wait
        for wait in rows_of(frames["tcp_waits"])
        if wait["wait_ms"] > ms_above
        and wait["wait_ms"] >= share_least * (wait["ts_last"] - wait["ts"]) / NS_PER_MS
        and wait["sent_bytes"] >= windows_least * wait["window_most_bytes"]
    ]
    exchanges = rows_of(frames["exchanges"])
    names = client_names(rows_of(frames["messages"]))
    for flow in rows_of(frames["flows"]):
        for direction in _SIDES:
            mine = [wait for wait in waits if wait["direction"] == direction]
            if mine:
                yield _finding(flow, names.get(flow["flow_id"]), direction, mine, exchanges, shrinks_below)


def _finding(
    flow: Row, name: str | None, direction: str, waits: list[Row], exchanges: list[Row], shrinks_below: float
) -> Finding:
    sender, receiver = _SIDES[direction]
    least, most = min(w["window_least_bytes"] for w in waits), max(w["window_most_bytes"] for w in waits)
    slow = least < shrinks_below * most
    full_ms, sent = sum(w["wait_ms"] for w in waits), sum(w["sent_bytes"] for w in waits)
    lasted_ms = sum((w["ts_last"] - w["ts"]) / NS_PER_MS for w in waits)
    full = Spans((wait["ts"], wait["ts_last"], None) for wait in waits)
    # One without an answer is where its request is.
    under_way = [e for e in exchanges if full.meets(e["ts"] - 1, (e["ts_response"] or e["ts"]) + 1)]
    shrank = f"shrank to {least:,} bytes: the {receiver} reads slowly"
    window = shrank if slow else f"stayed at {most:,} bytes: it is too small"
    speed = f"{sent / max(lasted_ms, 1):,.0f} kB/s"
    slowest = max(under_way, key=lambda e: (e["latency_ms"] or 0, e["exchange_id"]), default=None)
    waited = ""
    if slowest is not None:
        # Nothing is said of what took no time by the capture's clock.
        known = (slowest["latency_ms"] or 0) >= _CLOCK_MS
        longest = f", the longest {ms_text(slowest['latency_ms'])} ({slowest['operation'] or '?'})" if known else ""
        waited = f" {count(len(under_way), 'exchange')} went on meanwhile{longest}."
    return RULE.finding(
        confidence="medium" if flow["gap_bytes"] else "high",
        subject={"flow": flow["flow_id"], "side": receiver},
        title=(
            f"Receive window of the {receiver} full for {full_ms / 1000:.1f} s: "
            f"{who_title(name, flow['client_address'])} and {server_text(flow)}"
        ),
        sentence=(
            f"Between {endpoints_text(flow, name)} the {sender} filled the receive window of the {receiver} for "
            f"{full_ms / 1000:.1f} s of a transfer of {lasted_ms / 1000:.1f} s ({speed}). That window {window}.{waited}"
        ),
        next_step=(
            f"Look at the {receiver}: is it busy, or does it read in small parts? Network and {sender} are fine."
            if slow
            else f"Give the socket of the {receiver} a larger receive buffer{_setting(flow['protocol'])}; network and "
            f"{sender} could do more."
        ),
        proof=wait_proof(waits),
        numbers={
            **flow_numbers(flow, name),
            "receiver": receiver,
            "full_ms": round(full_ms, 6),
            "wasted_ms": round(full_ms, 6),
            "lasted_ms": round(lasted_ms, 6),
            "sent_bytes": sent,
            "window_least_bytes": least,
            "window_most_bytes": most,
            "window_scale": flow[f"{receiver}_window_scale"],
            "exchanges": [e["exchange_id"] for e in under_way[:MOST_NAMED]],
            "exchanges_count": len(under_way),
        },
    )


def _setting(protocol: str | None) -> str:
    """Where the programs of a protocol set it; empty where that is not known."""
    dissector = dissector_of(protocol)
    return f" ({dissector.receive_buffer})" if dissector is not None and dissector.receive_buffer else ""


_LONG = "kind = 'full_window' AND wait_ms > 1000 AND window_least_bytes IS NOT NULL AND window_most_bytes IS NOT NULL"

RULE = Rule(
    code="TCP106",
    question="waiting",
    name="window-limited",
    severity="warning",
    confidence="high",
    reads={
        "flows": (*FLOW_COLUMNS, "gap_bytes", "client_window_scale", "server_window_scale"),
        "tcp_waits": (
            "ts", "ts_last", "file", "packet_first", "file_last", "packet_last", "direction", "wait_ms", "sent_bytes",
            "window_least_bytes", "window_most_bytes",
        ),
        "messages": ("ts", "client_id"),
        "exchanges": ("ts", "ts_response", "exchange_id", "operation", "latency_ms"),
    },
    partition_by=("flow_id",),
    signs={"tcp_waits": f"bool_or({_LONG})"},
    detect=detect,
    rows={
        "flows": "duplicate_of IS NULL",
        "tcp_waits": _LONG,
        "messages": named_by("messages", f"flow_id IN (SELECT flow_id FROM tcp_waits WHERE {_LONG})"),
        # Of the waits that began before it ended the one that ends last.
        "exchanges": "exchange_id IN (SELECT e.exchange_id FROM (SELECT flow_id, ts, ts_response, exchange_id "
        f"FROM exchanges WHERE flow_id IN (SELECT flow_id FROM tcp_waits WHERE {_LONG})) AS e ASOF JOIN "
        f"(SELECT flow_id, ts, max(ts_last) OVER (PARTITION BY flow_id ORDER BY ts) AS until FROM tcp_waits "
        f"WHERE {_LONG}) AS w ON e.flow_id = w.flow_id AND coalesce(e.ts_response, e.ts) >= w.ts "
        "WHERE e.ts <= w.until)",
    },
    suspects="SELECT flow_id FROM r_flows SEMI JOIN r_tcp_waits USING (flow_id)",
)  # fmt: skip
