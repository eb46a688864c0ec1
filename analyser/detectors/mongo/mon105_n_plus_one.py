"""MON105 n-plus-one: one query for each row instead of one for all, or one batch for each document.

Finds
    Runs of the same query with other values, one after the other on a connection; cursors that are read in very
    small batches.

Why it matters
    Each query is quick and no slow-query log shows it, but twenty ways to the server take twenty times as long as
    one. It grows with the data: what is fine with 20 rows takes a page down with 2000.

How it decides
    At least 20 (queries_least) find, aggregate, count or distinct commands of one shape with values that differ,
    within 1 s (window_s) on one connection, which make at least half (share_least) of what the connection did in
    that time. For batches: at least 20 getMores for each query that opened a cursor (get_mores_least) on one
    connection and collection, which brought at most 10 documents (small_batch) each on average. Cursors that wait
    for news (tailable, change streams) are left out.

False alarms
    A service whose only work is to look up one document at a time for many users over few connections.

References
    Heuristic. MongoDB manual: $in, $lookup; batchSize of find (101 documents in the first batch, then up to 16
    MiB).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analyser.addresses import server_text
from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame_rows import Row, rows_of
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
    namespace,
    shape_text,
)
from analyser.times import NS_PER_MS, NS_PER_S, ms_text
from analyser.words import count, sentence_start

_QUERIES = ("find", "aggregate", "count", "distinct")
_Times = npt.NDArray[np.int64]


class _Run(NamedTuple):
    """The fullest window of one shape on one connection; `rows` are the commands in it."""

    rows: list[Row]
    different: int


def detect(
    frames: Frames,
    *,
    queries_least: int = 20,
    window_s: float = 1.0,
    share_least: float = 0.5,
    get_mores_least: int = 20,
    small_batch: float = 10.0,
) -> Iterator[Finding]:
    """At most one finding for each shape, and for each collection read in small batches, of this application."""
    commands = rows_of(frames["mongo_commands"])
    by_flow: dict[str, list[Row]] = {}
    for row in commands:
        by_flow.setdefault(row["flow_id"], []).append(row)
    runs: dict[str, list[_Run]] = {}
    for rows in by_flow.values():
        for run in _runs(rows, queries_least, int(window_s * NS_PER_S), share_least):
            runs.setdefault(run.rows[0]["shape_id"], []).append(run)
    for found in runs.values():
        yield _one_by_one(found)
    batches: dict[str | None, list[list[Row]]] = {}
    for rows in by_flow.values():
        for place, get_mores in _small_batches(rows, get_mores_least, small_batch):
            batches.setdefault(place, []).append(get_mores)
    for storms in batches.values():
        yield _storm(storms)


def _runs(rows: list[Row], least: int, window_ns: int, share: float) -> Iterator[_Run]:
    """The fullest window of each shape on one connection, where it is full enough."""
    times = np.array([row["ts"] for row in rows], dtype=np.int64)
    shapes: dict[str, list[Row]] = {}
    for row in rows:
        if row["command"] in _QUERIES and row["shape_id"] and row["literals_id"]:
            shapes.setdefault(row["shape_id"], []).append(row)
    for same in shapes.values():
        if len(same) < least:
            continue
        first, last, different = _fullest(same, window_ns)
        inside = same[first : last + 1]
        if different >= least and len(inside) >= share * _between(times, inside):
            yield _Run(inside, different)


def _fullest(rows: Sequence[Row], window_ns: int) -> tuple[int, int, int]:
    """First and last place of the window with most different values, and how many these are."""
    held: Counter[str] = Counter()
    best, first = (0, 0, 0), 0
    for last, row in enumerate(rows):
        held[row["literals_id"]] += 1
        while row["ts"] - rows[first]["ts"] > window_ns:
            gone = rows[first]["literals_id"]
            held[gone] -= 1
            if not held[gone]:
                del held[gone]
            first += 1
        if len(held) > best[2]:
            best = (first, last, len(held))
    return best


def _between(times: _Times, rows: Sequence[Row]) -> int:
    """How many commands the connection carried from the first of these to the last."""
    first, behind = np.searchsorted(times, [rows[0]["ts"], rows[-1]["ts"] + 1])
    return int(behind - first)


def _small_batches(rows: list[Row], least: int, small: float) -> Iterator[tuple[str | None, list[Row]]]:
    """getMores on one collection, with their name, where there are too many with too little in them."""
    gets: dict[str | None, list[Row]] = {}
    opened: Counter[str | None] = Counter()
    for row in rows:
        if row["command"] == "getMore":
            gets.setdefault(namespace(row), []).append(row)
        elif row["cursor_id"] is not None and row["command"] != "killCursors":
            opened[namespace(row)] += 1
    for place, get_mores in gets.items():
        documents = [row["documents_returned"] for row in get_mores if row["documents_returned"] is not None]
        enough = len(get_mores) >= least * max(1, opened[place])
        if enough and documents and sum(documents) <= small * len(documents):
            yield place, get_mores


def _one_by_one(runs: list[_Run]) -> Finding:
    worst = max(runs, key=lambda run: run.different)
    first, rows = worst.rows[0], worst.rows
    took_ms = (rows[-1]["ts"] - first["ts"]) / NS_PER_MS
    waited_ms = sum(row["latency_ms"] or 0 for row in rows)
    return command_finding(
        DETECTOR,
        rows,
        severity="warning",
        confidence="medium",
        subject={**application_key(first), "shape_id": first["shape_id"]},
        sentence=(
            f"{sentence_start(client_text(first))} sent {command_text(first)} {len(rows)} times within "
            f"{ms_text(took_ms)} to {server_text(first)} on one connection, one after the other with "
            f"{worst.different} different values{shape_text(first['query_shape'])}. It waited "
            f"{ms_text(waited_ms)} for the answers.{_more(len(runs))}"
        ),
        next_step=(
            "Look in the application for a query inside a loop (a lazy reference of an object mapper): ask once with "
            "$in, or with $lookup."
        ),
        numbers={
            "kind": "one by one",
            "commands": len(rows),
            "different_values": worst.different,
            "took_ms": took_ms,
            "waited_ms": round(waited_ms, 3),
            "connections": len(runs),
            "query_shape": first["query_shape"],
            "where": namespace(first),
            "clients": [client_numbers(first, commands=len(rows), connections=len(runs))],
        },
    )


def _storm(storms: list[list[Row]]) -> Finding:
    rows = max(storms, key=len)
    first = rows[0]
    documents = sum(row["documents_returned"] or 0 for row in rows)
    return command_finding(
        DETECTOR,
        rows,
        severity="warning",
        confidence="medium",
        subject={**application_key(first), "where": namespace(first)},
        sentence=(
            f"{sentence_start(client_text(first))} read {namespace(first) or 'a collection'} from "
            f"{server_text(first)} in very small batches: {count(len(rows), 'getMore')} for {documents:,} "
            f"documents on one connection.{_more(len(storms))}"
        ),
        next_step="Look for a small batchSize in the application; without one a batch holds up to 16 MiB.",
        numbers={
            "kind": "small batches",
            "get_mores": len(rows),
            "documents": documents,
            "connections": len(storms),
            "clients": [client_numbers(first, get_mores=len(rows), connections=len(storms))],
        },
    )


def _more(connections: int) -> str:
    return "" if connections == 1 else f" {count(connections - 1, 'more connection')} did the same."


DETECTOR = Detector(
    code="MON105",
    name="n-plus-one",
    severity="warning",
    confidence="medium",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "query_shape", "shape_id", "literals_id", "latency_ms", "cursor_id", "documents_returned",
        ),
        "mongo_cursors": ("cursor_id",),
    },
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={
        "mongo_commands": f"command NOT IN {HELLOS} AND status <> 'orphan' AND NOT {WAITING}",
        "mongo_cursors": "tailable",
    },
    suspects=(
        "SELECT server_address, server_port, client_address, app_name, driver FROM r_mongo_commands GROUP BY "
        "server_address, server_port, client_address, app_name, driver, flow_id, command, "
        "CASE command WHEN 'getMore' THEN collection ELSE shape_id END HAVING count(*) >= 20"
    ),
)  # fmt: skip
