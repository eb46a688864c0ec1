"""MON114 pool-saturated: every connection of an application is busy all the time, and the next request waits for it.

Finds
    Applications whose connections to a server carry one request after the other without a pause.

Why it matters
    A request that finds no free connection waits in the application for one (waitQueueTimeoutMS); no answer of the
    server is slow, and no log of the server shows it. What holds the connections are requests that take long, or too
    many of them for the size of the pool.

How it decides
    For 10 s (window_s) all connections of an application at a server that carry work, at least 2 (connections_least),
    are taken 95 % of the time (busy_share), and the next request follows within 5 ms (next_ms) of the answer three
    times in four (a busy host wakes threads late), at least 20 of them (requests_least). A connection is taken while
    a request runs, and while it is handed on to the next: a pause of 5 ms at most that is shorter than half an
    answer, since a thread that waits has to wake up. Pauses after answers of less than 5 ms (median) do not count so:
    a thread that asks again and again makes them, too. getMores, inserts and bulk writes are not counted as work of
    many callers: an application that does little else moves data on purpose.

False alarms
    A program with as many threads as connections that all work without a pause: nobody waits there.

What it cannot tell
    Whether requests wait where the application itself is late: full pools of the Node driver were seen whose
    connections were taken for 79 to 91 % of the time, with 48 to 69 % of the pauses short. A program that works on four
    rows at a time, without any limit of its pool, and thinks for some ms after each answer looks the same. Nothing on
    the wire shows the queue: its length and maxPoolSize are not sent, and drivers of today take a session (lsid) after
    the connection, so that waiting requests have none. Nobody is accused then.

References
    Connection monitoring and pooling specification (CMAP): maxPoolSize (100 by default), waitQueueTimeoutMS. Driver
    sessions specification: implicit sessions are taken after the connection (DRIVERS-1030).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text
from wirewitness.analyser.base.words import sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    CLIENT_KEY,
    COMMAND_COLUMNS,
    HELLOS,
    WAITING,
    application_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
)

_Times = npt.NDArray[np.int64]
_MOVES_DATA = ("getMore", "insert", "bulkWrite")
_MOST_SHOWN = 20
# So many pauses of a window are short: in the lab 94 % of a full pool's on a busy host, 80 % on one with no time to
# spare at all, 45 % of an ordinary one's.
_SOON = 0.75


class _Work(NamedTuple):
    """Requests of one connection, sorted: begin and end of each, until when it is taken by it, for how long before."""

    begun: _Times
    ended: _Times
    until: _Times
    before: _Times

    def taken(self, until: _Times) -> _Times:
        """How long it was taken up to these times."""
        place = np.searchsorted(self.begun, until, "right") - 1
        lasted = np.minimum(self.until[place], until) - self.begun[place]
        return np.where(place < 0, 0, self.before[place] + lasted)


class _Shares(NamedTuple):
    """For each window: connections in it, pauses before requests, those that are short, the least busy one's share."""

    connections: _Times
    pauses: _Times
    soon: _Times
    least: npt.NDArray[np.float64]


class _Busy(NamedTuple):
    """A stretch of windows in which all connections were busy."""

    since: int
    until: int
    connections: int
    share: float


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
    answered = frame.take(frame["ts_response"].is_known())
    if len(answered) < requests_least or answered["command"].texts().among(_MOVES_DATA).mean() > 0.5:
        return
    usual_ms = float(np.median(answered["latency_ms"].floats(0.0)))
    handed_ns = round(min(next_ms, usual_ms / 2) * NS_PER_MS) if usual_ms >= next_ms else 0
    begun, ended, flows = answered["ts"].numbers(), answered["ts_response"].numbers(), answered["flow_id"].texts()
    work = {
        str(flow): _work(begun[flows.codes == code], ended[flows.codes == code], handed_ns)
        for flow, code in sorted(zip(flows.names.to_pylist(), range(len(flows.names)), strict=True))
    }
    if len(work) < connections_least:
        return
    busy = _longest(work, round(window_s * NS_PER_S), connections_least, busy_share, next_ms, requests_least)
    if busy is not None:
        yield _finding(answered, busy, _pause_ms(work.values(), busy))


def _work(begun: _Times, ended: _Times, handed_ns: int) -> _Work:
    """A connection carries one request after the other: one that is sent earlier ends where the next begins."""
    following = np.append(begun[1:], ended[-1])
    ended = np.maximum(np.minimum(ended, following), begun)
    until = np.where(following - ended <= handed_ns, np.maximum(following, ended), ended)
    return _Work(begun, ended, until, np.append(0, np.cumsum(until - begun)[:-1]))


def _longest(
    work: Mapping[str, _Work], window_ns: int, least: int, share: float, next_ms: float, requests: int
) -> _Busy | None:
    """The longest stretch of half windows, each of which belongs to a window in which all are busy."""
    since = _windows(work.values(), window_ns, requests)
    none = np.zeros(len(since), np.int64)
    busy = _Shares(none, none.copy(), none.copy(), np.ones(len(since)))
    for one in work.values():
        _add(busy, one, since, window_ns, next_ms)
    kept = (busy.connections >= least) & (busy.least >= share) & (busy.soon >= _SOON * np.maximum(busy.pauses, 1))
    found: list[_Busy] = []
    for place in np.flatnonzero(kept).tolist():
        begin = int(since[place])
        now = _Busy(begin, begin + window_ns, int(busy.connections[place]), float(busy.least[place]))
        if found and now.since <= found[-1].until:
            last = found.pop()
            now = _Busy(last.since, now.until, max(last.connections, now.connections), min(last.share, now.share))
        found.append(now)
    return max(found, key=lambda one: one.until - one.since, default=None)


def _windows(work: Collection[_Work], window_ns: int, requests: int) -> _Times:
    """When windows begin, each half a window after the last, in which so many requests begin.

    Made from the requests, not from the time that passes: a clock may jump by centuries.
    """
    begun = np.sort(np.concatenate([one.begun for one in work]))
    last = max(int(one.ended[-1]) for one in work) - window_ns
    half = window_ns // 2
    places = np.unique((begun - begun[0]) // half)
    since = begun[0] + half * np.union1d(places, places - 1)
    since = since[(since >= begun[0]) & (since <= last)]
    count = np.searchsorted(begun, since + window_ns) - np.searchsorted(begun, since)
    return np.asarray(since[count >= requests], np.int64)


def _add(busy: _Shares, one: _Work, since: _Times, window_ns: int, next_ms: float) -> None:
    """One connection, in the windows in which it is there: between its first request and its last answer."""
    there = slice(
        int(np.searchsorted(since, one.begun[0] - window_ns, "right")), int(np.searchsorted(since, one.ended[-1]))
    )
    begin, end = since[there], since[there] + window_ns
    busy.connections[there] += 1
    busy.least[there] = np.minimum(busy.least[there], (one.taken(end) - one.taken(begin)) / window_ns)
    pause = one.begun[1:] - one.ended[:-1]
    soon = np.append(0, np.cumsum(pause <= next_ms * NS_PER_MS))
    first, last = np.searchsorted(one.begun[1:], begin), np.searchsorted(one.begun[1:], end)
    busy.pauses[there] += last - first
    busy.soon[there] += soon[last] - soon[first]


def _pause_ms(work: Collection[_Work], busy: _Busy) -> float:
    """The median pause between an answer and the next request."""
    pauses = [
        (one.begun[1:] - one.ended[:-1])[(one.begun[1:] >= busy.since) & (one.begun[1:] < busy.until)] for one in work
    ]
    return float(np.median(np.concatenate(pauses))) / NS_PER_MS


def _finding(answered: Frame, busy: _Busy, pause_ms: float) -> Finding:
    times = answered["ts"].numbers()
    inside = answered.take((times >= busy.since) & (times < busy.until))
    latency = inside["latency_ms"].floats(0.0)
    _, first_of, shape = np.unique(
        np.array([name or "" for name in inside["shape_id"]], object), return_index=True, return_inverse=True
    )
    held = np.bincount(shape, latency)
    (slowest,) = rows_of(inside.take(first_of[held.argmax()].reshape(1)))
    rows = rows_of(inside.take(np.arange(0, len(inside), max(1, len(inside) // _MOST_SHOWN))))
    first = rows[0]
    lasted_ms = (busy.until - busy.since) / NS_PER_MS
    part = float(held.max() / max(held.sum(), 1e-9))
    return command_finding(
        RULE,
        rows,
        severity="warning",
        confidence="medium",
        subject=application_key(first),
        title=(
            f"All {busy.connections} connections taken for {ms_text(lasted_ms)}: {client_title(first)} at "
            f"{server_text(first)}"
        ),
        sentence=(
            f"All {busy.connections} connections of {client_text(first)} to {server_text(first)} were taken for "
            f"{ms_text(lasted_ms)}: requests wait in the application for a free connection. Each was taken "
            f"{busy.share:.0%} of it or more; a reply was followed within {ms_text(pause_ms)} (median). "
            f"{sentence_start(command_text(slowest))} took {part:.0%} of the time ({len(inside):,} requests in total, "
            f"{ms_text(float(np.median(latency)))} in the median)."
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
            "pause_ms": round(pause_ms, 3),
            "since": busy.since / NS_PER_MS,
            "until": busy.until / NS_PER_MS,
            "wasted_ms": round(lasted_ms, 3),
            "clients": [client_numbers(first, connections=busy.connections)],
        },
    )


RULE = Rule(
    code="MON114",
    question="waiting",
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
        "HAVING count(*) >= 20 AND count(DISTINCT flow_id) >= 2 AND sum(latency_ms) >= 12000"
    ),
    signs={"mongo_commands": "sum(greatest(latency_ms, 0)) >= 12000"},
)
