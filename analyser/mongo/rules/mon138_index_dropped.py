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

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import ms_text, time_text
from wirewitness.analyser.base.words import printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Excess
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

_Rows = Sequence[Row]
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

    def is_rise(before: Sequence[Row], after: Sequence[Row]) -> bool:
        return min(len(before), len(after)) >= least and _is_slower(before, after, times, longer_ms)

    found: dict[int, _Slower] = {}
    for numbers in _chains(drops):
        asked, answered = [[drops[number][at] for number in numbers] for at in ("ts", "ts_response")]
        for rows in shapes.values():
            compared(len(rows))
        rises = [one for rows in shapes.values() for one in _rises(rows, asked, answered, is_rise)]
        found |= {numbers[place]: slower for place, slower in _slower(len(numbers), rises)}
    for number in sorted(found):
        yield _finding(drops[number], *found[number])


class _Rise(NamedTuple):
    """Queries of a shape are slower after than before, for the drops of a chain from `first` on, before `until`.

    wasted: half nanoseconds, in which a median of whole ones is whole."""

    first: int
    until: int
    before: _Rows
    after: _Rows
    wasted: int = 0


class _Slower(NamedTuple):
    """What is slower since a drop: the rise that is worst, and what there is of all."""

    worst: _Rise
    shapes: int
    wasted_ms: float


def _chains(drops: Sequence[Row]) -> list[list[int]]:
    """The numbers of the drops in as few lists as will do in which their replies are in the order of time, too: one,
    but where one is sent and answered while another is waited for. drops: in the order of their requests."""
    chains: list[list[int]] = []
    newest: list[int] = []
    for number, drop in enumerate(drops):
        place = bisect_right(newest, drop["ts_response"]) - 1
        if place < 0:
            place = 0
            chains.insert(0, [])
            newest.insert(0, 0)
        chains[place].append(number)
        newest[place] = drop["ts_response"]
    return chains


def _rises(
    rows: Sequence[Row], asked: Sequence[int], answered: Sequence[int], is_rise: Callable[[_Rows, _Rows], bool]
) -> Iterator[_Rise]:
    """Rises of one shape. asked, answered: when each drop of the chain was, Unix ns.

    The rows before a drop, and those after it, are others only from some drops on."""
    done = sorted((bisect_left(asked, row["ts_response"]), place) for place, row in enumerate(rows))
    begun = [bisect_right(answered, row["ts"]) for row in rows]
    newest: list[int] = []
    known, found = 0, []
    for first, until in pairwise(sorted({0, len(asked), *(drop for drop, _ in done), *begun})):
        while known < len(done) and done[known][0] <= first:
            insort(newest, done[known][1])
            known += 1
            del newest[:-_NEAR]
        later = bisect_right(begun, first)
        before, after = [rows[place] for place in newest], rows[later : later + _NEAR]
        if is_rise(before, after):
            found.append((later, _Rise(first, until, before, after)))
    return _with_waste(rows, found)


def _with_waste(rows: Sequence[Row], found: Sequence[tuple[int, _Rise]]) -> Iterator[_Rise]:
    """Each with what all rows from a place on took beyond what was usual."""
    lasted = [round(row["latency_ms"] * 2e6) for row in rows] if found else []
    excess, added = Excess(lasted), len(lasted)
    for later, rise in reversed(found):
        for place in range(later, added):
            excess.add(lasted[place])
        added = later
        yield rise._replace(wasted=excess.over(round(_usual(rise.before) * 2e6)))


def _slower(drops: int, rises: Iterable[_Rise]) -> Iterator[tuple[int, _Slower]]:
    """Of a chain of so many drops those behind which queries are slower, by their places."""
    begin: dict[int, list[tuple[int, _Rise]]] = {}
    end: dict[int, list[_Rise]] = {}
    for number, rise in enumerate(rises):
        begin.setdefault(rise.first, []).append((number, rise))
        end.setdefault(rise.until, []).append(rise)
    worst: list[tuple[float, int, _Rise]] = []
    shapes = wasted = 0
    for place in range(drops):
        for rise in end.get(place, ()):
            shapes, wasted = shapes - 1, wasted - rise.wasted
        for number, rise in begin.get(place, ()):
            shapes, wasted = shapes + 1, wasted + rise.wasted
            heappush(worst, (_usual(rise.before) - _usual(rise.after), number, rise))
        while worst and worst[0][2].until <= place:
            heappop(worst)
        if shapes:
            yield place, _Slower(worst[0][2], shapes, wasted / 2e6)


def _usual(rows: Sequence[Row]) -> float:
    return float(median(row["latency_ms"] for row in rows))


def _is_slower(before: Sequence[Row], after: Sequence[Row], times: float, longer_ms: float) -> bool:
    usual, now = _usual(before), _usual(after)
    slowest = max(row["latency_ms"] for row in before)
    above = sum(row["latency_ms"] > slowest for row in after)
    return now >= times * usual and now >= usual + longer_ms and above >= 0.8 * len(after)


def _finding(drop: Row, worst: _Rise, shapes: int, wasted_ms: float) -> Finding:
    before, after = worst.before, worst.after
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
