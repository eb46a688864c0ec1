"""MON101 slow-command: commands of one shape that took longer than the server calls slow.

Finds
    Commands on the same collection with the same query shape whose reply took longer than 100 ms.

Why it matters
    One slow shape holds up every page or job that uses it, and loads the server for all others. The time on the
    wire is what the application waits for; the server's own log leaves out the network and the queue before the
    command.

How it decides
    Time from the request to its first reply, per server, database, collection, command and shape, against slow_ms
    (100 ms, the server's slowms). A few slow commands among many are info. It is a warning where a twentieth of the
    commands (share_least), in all or of those that begin within 10 s (window_s), was slow: from 5 slow ones on
    (slow_least), or from a single one that took a second (very_slow_ms). Count, min, max, mean, 95th percentile and
    sum are those of all commands of the shape, as mloginfo --queries counts them. Commands that wait on purpose are
    left out: awaitable hellos, getMores on tailable cursors and change streams; hello, authentication and goodbyes
    (endSessions, killCursors), too, and what waited while the server stood still (MON116). An index is advised only
    where a filter asks for more than _id, which always has one.

False alarms
    Reports and index builds that are meant to take long. A capture far from the server: the way counts, and so do
    retransmissions (TCP101).

References
    MongoDB manual: database profiler, slowms (100 by default); mtools: mloginfo --queries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, ms_text
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Floats, Frame
from wirewitness.analyser.engine.rules.frame_rows import row_at
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    HELLOS,
    MOST_LISTED,
    WAITING,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
    command_title,
    namespace,
    places_by_client,
    shape_text,
)
from wirewitness.analyser.mongo.rules.stalls import SILENCES

_WRITTEN = "Look at the write concern, at the members that acknowledge it, and at the server's disk at that time."
_NEXT = {
    "getMore": "Look at the size of the batches and at the query that opened the cursor.",
    "insert": _WRITTEN,
    "commitTransaction": _WRITTEN,
    "abortTransaction": _WRITTEN,
}
_NEXT_QUERIES = (
    "Run explain() on this shape and look for an index; the server's log has the plan (planSummary) of commands slower "
    "than its slowms."
)
_NEXT_BY_ID = (
    "The index on _id finds these at once: look at what they waited for instead, the load, locks and disk of the "
    "server at that time (db.currentOp(), its log), or the way to it (TCP101)."
)
_NEXT_OTHERS = "Look at what the server did at that time: db.currentOp(), its log, its load."
# What a query shape's filter is called, of each kind of command.
_FILTERS = ("filter", "query", "q")


def detect(
    frames: Frames,
    *,
    slow_ms: float = 100.0,
    very_slow_ms: float = 1000.0,
    slow_least: int = 5,
    share_least: float = 0.05,
    window_s: float = 10.0,
) -> Iterator[Finding]:
    """At most one finding for this shape."""
    frame = frames["mongo_commands"]
    latencies = frame["latency_ms"].floats()
    is_slow, is_very_slow = latencies > slow_ms, latencies >= very_slow_ms
    if not is_slow.any():
        return
    slow = frame.take(is_slow)
    numbers = _numbers(latencies, len(slow))
    is_warning = False
    for place in _parts(frame["ts"].numbers(), round(window_s * NS_PER_S)):
        among = np.bincount(place)
        of_slow, of_very_slow = (np.bincount(place[some], minlength=len(among)) for some in (is_slow, is_very_slow))
        enough = (of_slow >= slow_least) | (of_very_slow > 0)
        is_warning |= bool((enough & (of_slow >= share_least * among)).any())
    yield _finding(slow, latencies[is_slow], numbers, slow_ms, is_warning=is_warning)


def _parts(times_ns: npt.NDArray[np.int64], window_ns: int) -> Iterator[npt.NDArray[np.int64]]:
    """For each command the number of its part: of the whole, of windows, of windows that begin half a window later."""
    yield np.zeros(len(times_ns), np.int64)
    for later_ns in (0, window_ns // 2):
        # Numbered one after the other: a clock may jump by centuries.
        yield np.unique((times_ns + later_ns) // window_ns, return_inverse=True)[1]


def _numbers(latencies: Any, slow: int) -> dict[str, float]:
    return {
        "commands": len(latencies),
        "slow": slow,
        "min_ms": round(float(latencies.min()), 3),
        "max_ms": round(float(latencies.max()), 3),
        "mean_ms": round(float(latencies.mean()), 3),
        "p95_ms": round(float(np.percentile(latencies, 95)), 3),
        "sum_ms": round(float(latencies.sum()), 3),
    }


def _next_step(command: str, shape: str | None) -> str:
    if command in _NEXT or not shape:
        return _NEXT.get(command, _NEXT_OTHERS)
    return _NEXT_BY_ID if _only_by_id(shape) else _NEXT_QUERIES


def _only_by_id(shape: str) -> bool:
    """Do all its filters ask for _id and nothing else?"""
    try:
        filters = list(_filters(json.loads(shape)))
    except (ValueError, RecursionError):
        return False
    return bool(filters) and all(isinstance(one, dict) and list(one) == ["_id"] for one in filters)


def _filters(shape: Any) -> Iterator[Any]:
    """The filters of a find, of the statements of a write, of the first stage of a pipeline."""
    for part in shape if isinstance(shape, list) else [shape]:
        if not isinstance(part, dict):
            continue
        for name in _FILTERS:
            if name in part:
                yield part[name]
        for name in ("updates", "deletes"):
            yield from _filters(part.get(name, []))
        stages = part.get("pipeline")
        if isinstance(stages, list) and stages and isinstance(stages[0], dict):
            yield stages[0].get("$match")


def _finding(slow: Frame, took_ms: Floats, numbers: dict[str, float], slow_ms: float, is_warning: bool) -> Finding:
    worst = row_at(slow, int(np.argmax(took_ms)))
    spread = ", ".join(f"{name} {ms_text(numbers[f'{name}_ms'])}" for name in ("min", "mean", "p95", "max"))
    many = numbers["commands"] > 1
    how_often = f"{len(slow):,} of {numbers['commands']:,} times" if many else "once"
    how_long = f"{spread}, {ms_text(numbers['sum_ms'])} in total" if many else ms_text(numbers["max_ms"])
    return command_finding(
        RULE,
        slow,
        severity="warning" if is_warning else "info",
        subject={"server": server_text(worst), "command": command_text(worst), "shape_id": worst["shape_id"]},
        title=f"Slow {command_title(worst)}: {how_often}, up to {ms_text(numbers['max_ms'])}, by {client_title(worst)}",
        sentence=(
            f"At {server_text(worst)}, {command_text(worst)} took longer than {slow_ms:g} ms {how_often}: {how_long}. "
            f"{'The slowest' if many else 'It'} was sent by {client_text(worst)}.{shape_text(worst['query_shape'])}"
        ),
        next_step=_next_step(worst["command"], worst["query_shape"]),
        numbers={
            **numbers,
            "wasted_ms": round(sum((took_ms - slow_ms).tolist()), 3),
            "slow_ms": slow_ms,
            "query_shape": worst["query_shape"],
            "where": namespace(worst),
            "clients": [
                client_numbers(row_at(slow, own[0]), slow=len(own), max_ms=float(took_ms[own].max()))
                for own in places_by_client(slow)[:MOST_LISTED]
            ],
        },
    )


RULE = Rule(
    code="MON101",
    question="waiting",
    name="slow-command",
    severity="warning",
    confidence="high",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "query_shape", "latency_ms"), "mongo_cursors": ("cursor_id",)},
    partition_by=("server_address", "server_port", "database", "collection", "command", "shape_id"),
    detect=detect,
    rows={
        "mongo_commands": f"latency_ms IS NOT NULL AND command NOT IN {HELLOS} AND command NOT IN ('saslStart', "
        f"'saslContinue', 'authenticate', 'getnonce', 'endSessions', 'killCursors') AND NOT {WAITING} "
        f"AND exchange_id NOT IN ({SILENCES})",
        "mongo_cursors": "tailable",
    },
    suspects=(AnyRow("mongo_commands", "latency_ms > 100")),
)
