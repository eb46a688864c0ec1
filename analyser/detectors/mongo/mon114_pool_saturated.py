"""MON114 pool-saturated: every connection of an application is busy all the time, and the next request waits for it.

Finds
    Applications whose connections to a server carry one request after the other without a pause.

Why it matters
    A request that finds no free connection waits in the application for one (waitQueueTimeoutMS); no answer of the
    server is slow, and no log of the server shows it. What holds the connections are requests that take long, or too
    many of them for the size of the pool.

How it decides
    For 10 s (window_s) all connections of an application at a server that carry work, at least 2 (connections_least),
    are busy 95 % of the time (busy_share), and the next request follows within 5 ms (next_ms) of the answer 95 % of the
    time, at least 20 of them (requests_least). getMores, inserts and bulk writes are not counted as work of many
    callers: an application that does little else moves data on purpose.

False alarms
    A program with as many threads as connections that all work without a pause: nobody waits there.

References
    Connection monitoring and pooling specification (CMAP): maxPoolSize (100 by default), waitQueueTimeoutMS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from analyser.addresses import server_text
from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame_rows import rows_of
from analyser.detectors.mongo.mongo_rows import (
    CLIENT_KEY,
    COMMAND_COLUMNS,
    HELLOS,
    WAITING,
    application_key,
    client_numbers,
    client_text,
    command_finding,
    command_text,
)
from analyser.times import NS_PER_MS, NS_PER_S, ms_text
from analyser.words import sentence_start

_Times = npt.NDArray[np.int64]
_MOVES_DATA = ("getMore", "insert", "bulkWrite")
_MOST_SHOWN = 20


class _Work(NamedTuple):
    """Requests of one connection: begin and end of each, sorted."""

    begun: _Times
    ended: _Times


class _Busy(NamedTuple):
    """A stretch of windows in which all connections were busy."""

    since: int
    until: int
    connections: int
    share: float
    pause_ms: float


def detect(
    frames: Frames,
    *,
    window_s: float = 10.0,
    connections_least: int = 2,
    busy_share: float = 0.95,
    next_ms: float = 5.0,
    requests_least: int = 20,
) -> Iterator[Finding]:
    """At most one finding for this application: the longest time."""
    frame = frames["mongo_commands"]
    answered = frame[frame["ts_response"].notna()]
    if len(answered) < requests_least or answered["command"].isin(_MOVES_DATA).mean() > 0.5:
        return
    work = {
        str(flow): _Work(_nanoseconds(rows["ts"]), _nanoseconds(rows["ts_response"]))
        for flow, rows in answered.groupby("flow_id")
    }
    if len(work) < connections_least:
        return
    busy = _longest(work, round(window_s * NS_PER_S), connections_least, busy_share, next_ms, requests_least)
    if busy is not None:
        yield _finding(answered, busy)


def _nanoseconds(column: pd.Series[pd.Timestamp]) -> _Times:
    return column.dt.tz_convert(None).to_numpy(dtype="datetime64[ns]").astype(np.int64)


def _longest(
    work: dict[str, _Work], window_ns: int, least: int, share: float, next_ms: float, requests: int
) -> _Busy | None:
    """The longest stretch of half windows, each of which belongs to a window in which all are busy."""
    first = min(int(one.begun[0]) for one in work.values())
    last = max(int(one.ended.max()) for one in work.values())
    found: list[_Busy] = []
    for since in range(first, last - window_ns + 1, window_ns // 2):
        busy = _busy(work, since, since + window_ns, next_ms, requests)
        if busy is None or busy.connections < least or busy.share < share:
            continue
        if found and since <= found[-1].until:
            before = found.pop()
            busy = _Busy(
                before.since,
                busy.until,
                max(before.connections, busy.connections),
                min(before.share, busy.share),
                max(before.pause_ms, busy.pause_ms),
            )
        found.append(busy)
    return max(found, key=lambda one: one.until - one.since, default=None)


def _busy(work: dict[str, _Work], since: int, until: int, next_ms: float, requests: int) -> _Busy | None:
    """How busy the least busy connection is in this time; None where one rests or they did little."""
    shares, pauses, counted = [], [], 0
    for one in work.values():
        inside = (one.ended > since) & (one.begun < until)
        if not inside.any():
            continue  # closed before, or opened later
        begun, ended = one.begun[inside], one.ended[inside]
        taken = np.minimum(ended, until) - np.maximum(begun, since)
        shares.append(float(taken.sum()) / (until - since))
        pauses.append((begun[1:] - ended[:-1]) / NS_PER_MS)
        counted += len(begun)
    between = np.concatenate(pauses) if pauses else np.empty(0)
    if counted < requests or not len(between) or float(np.mean(between <= next_ms)) < 0.95:
        return None
    return _Busy(since, until, len(shares), min(shares), float(np.median(between)))


def _finding(answered: pd.DataFrame, busy: _Busy) -> Finding:
    times = _nanoseconds(answered["ts"])
    inside = answered[(times >= busy.since) & (times < busy.until)]
    latency = inside["latency_ms"].to_numpy(dtype=float, na_value=0.0)
    held = inside.assign(took=latency, shape=inside["shape_id"].fillna("")).groupby("shape")["took"].sum()
    (slowest,) = rows_of(inside[inside["shape_id"].fillna("").eq(held.idxmax())].head(1))
    rows = rows_of(inside.iloc[:: max(1, len(inside) // _MOST_SHOWN)])
    first = rows[0]
    lasted_ms = (busy.until - busy.since) / NS_PER_MS
    part = float(held.max() / max(held.sum(), 1e-9))
    return command_finding(
        DETECTOR,
        rows,
        severity="warning",
        confidence="medium",
        subject=application_key(first),
        sentence=(
            f"All {busy.connections} connections of {client_text(first)} to {server_text(first)} were busy for "
            f"{ms_text(lasted_ms)}, at least {busy.share:.0%} of it, and the next request followed each answer within "
            f"{ms_text(busy.pause_ms)} (median): requests wait in the application for a free connection. "
            f"{sentence_start(command_text(slowest))} took {part:.0%} of the time ({len(inside):,} requests in all, "
            f"{ms_text(float(np.median(latency)))} each at the median)."
        ),
        next_step=(
            "Look at what takes the time first (MON101, MON105); if each request is quick, raise maxPoolSize. Nothing "
            "is wrong where the program has only as many threads as connections."
        ),
        numbers={
            "connections": busy.connections,
            "busy_share": round(busy.share, 3),
            "requests": len(inside),
            "median_ms": round(float(np.median(latency)), 3),
            "pause_ms": round(busy.pause_ms, 3),
            "since": busy.since / NS_PER_MS,
            "until": busy.until / NS_PER_MS,
            "wasted_ms": round(lasted_ms, 3),
            "clients": [client_numbers(first, connections=busy.connections)],
        },
    )


DETECTOR = Detector(
    code="MON114",
    name="pool-saturated",
    severity="warning",
    confidence="medium",
    reads={
        "mongo_commands": (*COMMAND_COLUMNS, "shape_id", "latency_ms"),
        "mongo_cursors": ("cursor_id",),
    },
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={
        "mongo_commands": f"command NOT IN {HELLOS} AND command NOT IN ('saslStart', 'saslContinue', 'authenticate', "
        f"'getnonce', 'endSessions') AND status <> 'orphan' AND NOT {WAITING}",
        "mongo_cursors": "tailable",
    },
    suspects=(
        "SELECT server_address, server_port, client_address, app_name, driver FROM r_mongo_commands "
        "WHERE latency_ms IS NOT NULL GROUP BY server_address, server_port, client_address, app_name, driver "
        "HAVING count(*) >= 20 AND count(DISTINCT flow_id) >= 2 AND sum(latency_ms) >= 18000"
    ),
)
