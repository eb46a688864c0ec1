"""MON103 unanswered: commands that never got a reply.

Finds
    Commands that still waited when their connection was closed, or that waited for more than 30 s.

Why it matters
    The application does not know whether a write was carried out; drivers send retryable ones again, others are
    left to the application. A server that closes while commands wait was stopped, or something between the two gave
    up.

How it decides
    Commands to which a response was due and that have none. The server closed: a warning. The client closed: a warning
    when it had waited for a second (gave_up_s), or as long each time (5 times, within a tenth of their median), as with
    a time-out, else info, as on shutdown. A response that came when the client had closed is too late: nobody read it,
    and the client gave up all the same. Still open: a warning after 30 s (wait_s), or the command's own maxTimeMS where
    that is longer. A client that says goodbye (endSessions,
    killCursors) or waits for news (awaitable hello, getMore on a tailable cursor) may close at any time. Bytes
    missing from the connection make it inconclusive: info, low confidence, behind what other rules say. Connections
    with one direction only are left to CAP102.

False alarms
    Long jobs without maxTimeMS that a client waits for with patience: an index build, a report.

References
    MongoDB wire protocol: requestID and responseTo; client side operations timeout specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    MONGO_FLOWS,
    MOST_LISTED,
    WAITING,
    by_client,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
    listed,
    namespace,
)


class _End(NamedTuple):
    """How the waiting ended. words: behind "got no reply"."""

    name: str
    severity: Severity
    words: str
    next_step: str


_BY_SERVER = _End(
    "server",
    "warning",
    "before the server closed the connection",
    "Look into the server's log at that time (shut down, crashed, killed the operation?) and at load balancers on the "
    "way. Whether the commands were carried out is not known.",
)
_GAVE_UP = _End(
    "client",
    "warning",
    "",
    "Look at the client's socketTimeoutMS or timeoutMS, and at the server for what kept the commands waiting.",
)
_LEFT = _End(
    "client-left",
    "info",
    "before the client closed the connection",
    "Nothing, if the client was stopped at that time.",
)
_OPEN = _End(
    "open",
    "warning",
    "until the capture ended",
    "Look at db.currentOp() on the server for what these commands wait for: locks, a missing index, another member.",
)
_UNSURE = _End(
    "inconclusive",
    "info",
    "in this capture, from which bytes of the connection are missing",
    "Look at CAP101: capture closer to the server, or with larger buffers.",
)


def detect(frames: Frames, *, wait_s: float = 30.0, gave_up_s: float = 1.0) -> Iterator[Finding]:
    """One finding for each way in which this client's commands ended without an answer."""
    flows = {flow["flow_id"]: flow for flow in rows_of(frames["flows"])}
    ended: dict[_End, list[Row]] = {}
    late = {row["exchange_id"] for row in rows_of(frames["exchanges"])}
    for row in rows_of(frames["mongo_commands"]):
        flow = flows.get(row["flow_id"])
        end = None if flow is None else _end(row, flow, wait_s * 1000, gave_up_s * 1000)
        if end is not None:
            row["late"] = row["exchange_id"] in late
            ended.setdefault(_GAVE_UP if row["late"] else end, []).append(row)
    if _LEFT in ended and _always_as_long(ended[_LEFT]):
        ended.setdefault(_GAVE_UP, []).extend(ended.pop(_LEFT))
    for end, rows in ended.items():
        yield _finding(end, rows)


def _end(row: Row, flow: Row, wait_ms: float, gave_up_ms: float) -> _End | None:
    """How it ended; None while it may still come."""
    if not flow["bytes_to_client"] or flow["observed_until"] is None:
        return None
    row["waited_ms"] = waited_ms = (flow["observed_until"] - row["ts"]) / NS_PER_MS
    if waited_ms < 0:  # it was sent when the connection had been closed already
        return None
    if flow["closed_by"] is None and waited_ms <= max(wait_ms, row["max_time_ms"] or 0):
        return None
    if flow["gap_bytes"]:
        return _UNSURE
    if flow["closed_by"] == "client":
        return _GAVE_UP if waited_ms >= gave_up_ms else _LEFT
    return _OPEN if flow["closed_by"] is None else _BY_SERVER


def _always_as_long(rows: list[Row]) -> bool:
    """Did the client close after the same wait each time, as a time-out does?"""
    waits = sorted(row["waited_ms"] for row in rows)
    usual = median(waits)
    return len(waits) >= _PATTERN and waits[-1] - waits[0] <= _SAME * usual and usual >= _SHORTEST_MS


def _gave_up(rows: list[Row], who: str) -> str:
    """`Application shop-api at 10.0.0.3 gave up on 24 commands to 10.0.0.9:27017 after 1.0 s: ...`."""
    late, usual = sum(row["late"] for row in rows), ms_text(median(row["waited_ms"] for row in rows))
    came = f"; {late} {'replies' if late > 1 else 'reply'} came when it had closed" if late else ""
    return (
        f"{sentence_start(who)} gave up on {count(len(rows), 'command')} to {server_text(rows[0])} after {usual}"
        f"{' (median)' if len(rows) > 1 else ''}: {listed(command_text(row) for row in rows)}{came}."
    )


def _finding(end: _End, rows: list[Row]) -> Finding:
    flows = len({row["flow_id"] for row in rows})
    clients = by_client(rows)
    first, longest_ms = rows[0], max(row["waited_ms"] for row in rows)
    more = f" and {len(clients) - 1} more" if len(clients) > 1 else ""
    return command_finding(
        RULE,
        rows,
        severity=end.severity,
        confidence="low" if end is _UNSURE else "high",
        provisional=end is _OPEN,
        subject={"server": server_text(first), "address": first["client_address"], "end": end.name},
        title=(
            f"{'Gave up on' if end is _GAVE_UP else 'No reply to'} {count(len(rows), 'command')}: "
            f"{client_title(clients[0][0])}{more} at {server_text(first)}"
        ),
        sentence=_gave_up(rows, f"{client_text(clients[0][0])}{more}")
        if end is _GAVE_UP
        else (
            f"{count(len(rows), 'command')} of {client_text(clients[0][0])}{more} got no reply from "
            f"{server_text(first)} {end.words}: {listed(command_text(row) for row in rows)}. "
            f"{'The longest wait was' if len(rows) > 1 else 'It waited'} {ms_text(longest_ms)}"
            f"{'' if flows == 1 else f', on {flows} connections'}."
        ),
        next_step=end.next_step,
        numbers={
            "kind": end.name,
            "commands": len(rows),
            "connections": flows,
            "longest_ms": longest_ms,
            "late_replies": sum(row["late"] for row in rows),
            # What may only be missing from the capture cost nobody anything.
            **({} if end is _UNSURE else _cost(rows)),
            "where": namespace(first),
            "clients": [client_numbers(held[0], commands=len(held)) for held in clients[:MOST_LISTED]],
        },
    )


def _cost(rows: list[Row]) -> dict[str, float]:
    return {"requests_refused": len(rows), "wasted_ms": round(sum(row["waited_ms"] for row in rows), 3)}


# Waits of one length: so many, so near to each other, and no shorter than a way to the server.
_PATTERN, _SAME, _SHORTEST_MS = 5, 0.1, 50.0
_UNANSWERED = f"status = 'unanswered' AND command NOT IN ('endSessions', 'killCursors') AND NOT {WAITING}"
_TOO_LATE, _NOT_DUE = "late AND protocol = 'mongo'", "answer_due = false AND status = 'unanswered'"

RULE = Rule(
    code="MON103",
    question="waiting",
    name="unanswered",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (*COMMAND_COLUMNS, "max_time_ms"),
        "exchanges": ("exchange_id",),
        "flows": ("flow_id", "closed_by", "observed_until", "gap_bytes", "bytes_to_client"),
        "mongo_cursors": ("cursor_id",),
    },
    partition_by=("server_address", "server_port", "client_address"),
    detect=detect,
    rows={
        "mongo_commands": f"({_UNANSWERED} AND exchange_id NOT IN (SELECT exchange_id FROM exchanges WHERE {_NOT_DUE}))"
        f" OR (exchange_id IN (SELECT exchange_id FROM exchanges WHERE {_TOO_LATE}) AND NOT {WAITING})",
        "exchanges": _TOO_LATE,
        "flows": f"{MONGO_FLOWS} AND flow_id IN (SELECT flow_id FROM mongo_commands WHERE status = 'unanswered' UNION "
        f"SELECT flow_id FROM exchanges WHERE {_TOO_LATE})",
        "mongo_cursors": "tailable",
    },
    suspects=AnyRow("mongo_commands"),
)
