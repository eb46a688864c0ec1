"""MON104 cursor-leak: cursors that their application left open.

Finds
    Server cursors that were neither read to their end nor killed.

Why it matters
    An open cursor keeps memory and a snapshot of the data on the server. The server drops an idle one after ten
    minutes; with noCursorTimeout it stays as long as its session lives. An application that leaves one behind for
    each request fills the server with them.

How it decides
    A cursor that no answer exhausted, no killCursors named and no getMore lost. A warning when nothing happened
    to it for 10 minutes (idle_s, the server's cursorTimeoutMillis) until the end of what was seen of its client,
    and when it was opened with noCursorTimeout and its connection was closed. Info when its connection was closed
    in other cases, as the application ended without closing the cursor. A warning, too, when an application had
    at least 20 (growing_least) of one shape open that were not touched for 10 s (growing_idle_s), and opened them
    over 5 s or more (growing_over_s): they grow. A cursor used on several connections of a pool is judged by its
    idle time only. Bytes missing from the client's connections, which may have held the end, make it inconclusive
    (info, low confidence). A connection whose answers are not captured is left to CAP102.

False alarms
    A cursor that is used further on connections that the capture does not show.

References
    MongoDB manual: cursorTimeoutMillis (600,000 by default), noCursorTimeout, killCursors; logical sessions end
    after 30 idle minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    MONGO_FLOWS,
    application_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
    command_title,
    namespace,
    seen_of,
    shape_text,
)

_MOST_IDS = 20


class _Left(NamedTuple):
    """How a cursor was left. words: behind "left 3 cursors"."""

    name: str
    severity: Severity
    words: str


_IDLE = _Left("idle", "warning", "open and unused")
_FOR_EVER = _Left("no timeout", "warning", "open with noCursorTimeout when its connection was closed")
_CLOSED = _Left("closed", "info", "open when its connection was closed")
_GROWING = _Left("growing", "warning", "open and unused, more and more of them")
_UNSURE = _Left("inconclusive", "info", "open as far as this capture shows, which lacks bytes of the client")


def detect(
    frames: Frames,
    *,
    idle_s: float = 600.0,
    growing_least: int = 20,
    growing_idle_s: float = 10.0,
    growing_over_s: float = 5.0,
) -> Iterator[Finding]:
    """One finding for each way in which this client left cursors of one shape."""
    flows = {flow["flow_id"]: flow for flow in rows_of(frames["flows"])}
    ends = [flow["observed_until"] for flow in flows.values() if flow["observed_until"] is not None]
    lossy = any(flow["gap_bytes"] for flow in flows.values())
    commands = {row["exchange_id"]: row for row in rows_of(frames["mongo_commands"])}
    left: dict[tuple[_Left, str | None, str | None], list[Row]] = {}
    waiting: dict[tuple[str | None, str | None], list[tuple[_Left | None, Row]]] = {}
    for cursor in rows_of(frames["mongo_cursors"]):
        cursor["idle_ms"] = (max(ends, default=cursor["ts_last"]) - cursor["ts_last"]) / NS_PER_MS
        how = _how(cursor, flows.get(cursor["flow_id"]), idle_s * 1000)
        which = (cursor["shape_id"], cursor["app_name"])
        if how in (None, _CLOSED) and cursor["idle_ms"] >= growing_idle_s * 1000:
            waiting.setdefault(which, []).append((how, cursor))
        elif how is not None:
            left.setdefault((_UNSURE if lossy else how, *which), []).append(cursor)
    for which, held in waiting.items():
        over = held[-1][1]["ts"] - held[0][1]["ts"]
        growing = len(held) >= growing_least and over >= growing_over_s * NS_PER_S
        for how, cursor in held:
            told = _GROWING if growing and _answered(flows.get(cursor["flow_id"])) else how
            if told is not None:
                left.setdefault((_UNSURE if lossy else told, *which), []).append(cursor)
    for (how, _, _), cursors in left.items():
        yield _finding(how, cursors, [row for c in cursors for row in seen_of(c, commands)])


def _answered(flow: Row | None) -> bool:
    """Are the answers to it captured, as far as is known?"""
    return flow is None or bool(flow["bytes_to_client"])


def _how(cursor: Row, flow: Row | None, idle_ms: float) -> _Left | None:
    if flow is not None and not flow["bytes_to_client"]:
        return None  # its answers are not captured
    closed = flow is not None and flow["closed_by"] is not None and cursor["connections"] == 1
    if closed and cursor["no_cursor_timeout"]:
        return _FOR_EVER
    if cursor["idle_ms"] >= idle_ms:
        return _IDLE
    return _CLOSED if closed else None


def _opened_title(cursor: Row) -> str:
    return command_title(cursor if cursor["command"] else {**cursor, "command": "query"})


def _finding(how: _Left, cursors: list[Row], commands: list[Row]) -> Finding:
    first = cursors[0]
    # The opening of a cursor can lie before the capture.
    opened = command_text(first) if first["command"] else f"a query on {namespace(first) or 'an unknown collection'}"
    idle_ms = max(cursor["idle_ms"] for cursor in cursors)
    more = sum(cursor["get_mores"] for cursor in cursors)
    get_mores = count(more, "getMore")
    idle = f" for {ms_text(idle_ms)}" if how is _IDLE else ""
    if how is _GROWING:
        middle = (cursors[0]["ts"] + cursors[-1]["ts"]) // 2
        half = sum(cursor["ts"] <= middle for cursor in cursors)
        over = ms_text((cursors[-1]["ts"] - cursors[0]["ts"]) / NS_PER_MS)
        idle = f" ({half:,} at half time, {len(cursors):,} after {over})"
    return command_finding(
        RULE,
        commands,
        severity=how.severity,
        confidence="low" if how is _UNSURE else "high",
        provisional=how in (_IDLE, _GROWING),
        subject={
            **application_key(first),
            "shape_id": first["shape_id"],
            "left": how.name,
        },
        title=f"{count(len(cursors), 'cursor')} left open: {_opened_title(first)}, by {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} left {count(len(cursors), 'cursor')} of {opened} at "
            f"{server_text(first)} {how.words}{idle}. "
            f"{'It' if len(cursors) == 1 else 'They'} had returned {sum(c['documents'] for c in cursors):,} documents"
            f"{f' in the first batch and {get_mores}' if more else ''}.{shape_text(first['query_shape'])}"
        ),
        next_step=(
            "Close cursors that are not read to their end (with, try-with-resources, cursor.close()), or ask with a "
            "limit; serverStatus().metrics.cursor.open counts those that a server holds."
        ),
        numbers={
            "cursors": len(cursors),
            "left_behind": len(cursors),
            "cursor_ids": [cursor["cursor_id"] for cursor in cursors[:_MOST_IDS]],
            "idle_ms": idle_ms,
            "where": namespace(first),
            "clients": [client_numbers(first, cursors=len(cursors))],
        },
    )


RULE = Rule(
    code="MON104",
    question="growing",
    name="cursor-leak",
    severity="warning",
    confidence="high",
    reads={
        "mongo_cursors": (
            "cursor_id", "ts", "ts_last", "command", "database", "collection", "query_shape", "shape_id", "get_mores",
            "documents", "no_cursor_timeout", "connections", "app_name", "driver", "driver_version",
            "exchange_id", "last_exchange_id", "flow_id",
        ),
        "mongo_commands": COMMAND_COLUMNS,
        "flows": ("flow_id", "closed_by", "observed_until", "gap_bytes", "bytes_to_client"),
    },
    partition_by=("server_address", "server_port", "client_address"),
    detect=detect,
    rows={
        "mongo_cursors": "ended_by IS NULL",
        "mongo_commands": "exchange_id IN (SELECT unnest([exchange_id, last_exchange_id]) FROM mongo_cursors "
        "WHERE ended_by IS NULL)",
        "flows": MONGO_FLOWS,
    },
    suspects=AnyRow("mongo_cursors"),
)  # fmt: skip
