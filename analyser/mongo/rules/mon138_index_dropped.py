"""MON138 index-dropped: queries are slow since somebody dropped an index.

Finds
    dropIndexes after which queries of the same collection take several times as long as before.

Why it matters
    Those who wait are found by MON101; who dropped the index is another one, and no error tells it.

How it decides
    dropIndexes succeeds, and a shape of query, update or delete on that collection takes five times (times) and 20 ms
    (longer_ms) longer after it than before: medians of the last 10 before and the first 10 after it, at least 5
    (least) of each. Four fifths of those after it are slower than each of those before, so nothing that was slow
    already counts, nor what becomes slow later.

False alarms
    A server that becomes slow in the same moment for another reason.

What it cannot tell
    Which index it was, and which one the query used: plans are not on the wire.

References
    MongoDB manual: dropIndexes, hidden indexes (to try what a drop would do).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import ms_text, time_text
from wirewitness.analyser.base.words import printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    TITLE_NAME,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
    namespace,
    shape_text,
)

_NEAR = 10
_DROP = "dropIndexes"


def detect(frames: Frames, *, times: float = 5.0, longer_ms: float = 20.0, least: int = 5) -> Iterator[Finding]:
    """At most one finding for each drop on this collection."""
    shapes: dict[str | None, list[Row]] = {}
    drops = []
    for row in rows_of(frames["mongo_commands"]):
        if row["command"] == _DROP:
            drops.append(row)
        else:
            shapes.setdefault(row["shape_id"], []).append(row)
    for drop in drops:
        slower = []
        wasted_ms = 0.0
        for rows in shapes.values():
            compared(len(rows))
            before = [row for row in rows if row["ts_response"] <= drop["ts"]][-_NEAR:]
            later = [row for row in rows if row["ts"] >= drop["ts_response"]]
            after = later[:_NEAR]
            if min(len(before), len(after)) >= least and _is_slower(before, after, times, longer_ms):
                slower.append((before, after))
                usual = _usual(before)
                wasted_ms += sum(max(row["latency_ms"] - usual, 0.0) for row in later)
        if slower:
            worst = max(slower, key=lambda one: _usual(one[1]) - _usual(one[0]))
            yield _finding(drop, worst, len(slower), wasted_ms)


def _usual(rows: Sequence[Row]) -> float:
    return float(median(row["latency_ms"] for row in rows))


def _is_slower(before: Sequence[Row], after: Sequence[Row], times: float, longer_ms: float) -> bool:
    usual, now = _usual(before), _usual(after)
    slowest = max(row["latency_ms"] for row in before)
    above = sum(row["latency_ms"] > slowest for row in after)
    return now >= times * usual and now >= usual + longer_ms and above >= 0.8 * len(after)


def _finding(drop: Row, slower: tuple[Sequence[Row], Sequence[Row]], shapes: int, wasted_ms: float) -> Finding:
    before, after = slower
    query, place = after[0], namespace(drop) or "?"
    return command_finding(
        RULE,
        [drop, *before[-3:], *after],
        severity="warning",
        confidence="medium",
        subject={**client_key(drop), "where": place, "command": _DROP},
        title=f"Slow since dropIndexes on {printable(place, TITLE_NAME)}, by {client_title(drop)}",
        sentence=(
            f"{sentence_start(client_text(drop))} sent {command_text(drop)} to {server_text(drop)} at "
            f"{time_text(drop['ts'])}: {query['command']} takes {ms_text(_usual(after))} there since (median), "
            f"{ms_text(_usual(before))} before, for {client_text(query)}.{shape_text(query['query_shape'])}"
        ),
        next_step=(
            "Make the index again (createIndexes); hide an index (collMod, hidden) for a while before it is dropped."
        ),
        numbers={
            "before_ms": round(_usual(before), 3),
            "after_ms": round(_usual(after), 3),
            "shapes": shapes,
            "wasted_ms": round(wasted_ms, 3),
            "clients": [client_numbers(drop)],
            "victims": [client_numbers(query)],
        },
    )


_PLACE = "server_address, server_port, database, collection"
_DONE = "status = 'ok' AND ts_response IS NOT NULL AND latency_ms IS NOT NULL AND collection IS NOT NULL"
RULE = Rule(
    code="MON138",
    question="waiting",
    name="index-dropped",
    severity="warning",
    confidence="medium",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "latency_ms", "shape_id", "query_shape")},
    partition_by=("server_address", "server_port", "database", "collection"),
    detect=detect,
    rows={
        "mongo_commands": f"{_DONE} AND (command = '{_DROP}' OR (command IN ('find', 'aggregate', 'count', 'distinct', "
        f"'update', 'delete', 'findAndModify') AND ({_PLACE}) IN (SELECT ({_PLACE}) FROM mongo_commands WHERE {_DONE} "
        f"AND command = '{_DROP}')))"
    },
    suspects=AnyRow("mongo_commands", f"command = '{_DROP}'"),
)
