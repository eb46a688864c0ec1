"""MON140 same-job-again: one document of a queue is taken and put back again and again, and the others wait.

Finds
    Queues in a collection at whose head a document stands that a worker takes, fails at and puts back. Question: what
    does not move although it should.

Why it matters
    All commands succeed. A job that always fails (a poison job) goes back to the head of the queue, so nothing behind
    it is ever taken.

How it decides
    10 times (least) or more in a row findAndModify gives the same document of this collection, by a filter that does
    not name its _id. Four times in five (share) its taker updates that document by its _id before the next time. At
    most one in ten (idle) of its findAndModify meanwhile give nothing: the queue is not empty. 5 (waiting) or more
    other documents were inserted before the end of it, and nobody took, updated or deleted one of them.

False alarms
    A document that is worked on for ever on purpose, in one collection with documents that are due later, by a program
    that never asks when nothing is due.

What it cannot tell
    Why the work fails: the worker knows.

References
    MongoDB manual: findAndModify. Queues count attempts and put aside what fails too often (dead letter queue).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.queues import (
    DONE,
    PLACE,
    PLACE_KEY,
    TAKEN,
    TAKES,
    asks_by_id,
    document_of,
    is_take,
)
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    TITLE_NAME,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    namespace,
)
from wirewitness.analyser.mongo.rules.use import client_of


def detect(
    frames: Frames, *, least: int = 10, share: float = 0.8, idle: float = 0.1, waiting: int = 5
) -> Iterator[Finding]:
    """At most one finding for this collection: of the longest row of one document."""
    rows = rows_of(frames["mongo_commands"])
    takes = [row for row in rows if is_take(row) and not asks_by_id(row)]
    runs = [[*run] for _, run in groupby(takes, document_of)]
    run = max(runs, key=len, default=[])
    if len(run) < least:
        return
    who, begin, end = _most(run), run[0]["ts"], run[-1]["ts"]
    nothing = sum(
        row["command"] in TAKES and row["n"] == 0 and client_of(row) == client_of(who) and begin < row["ts"] < end
        for row in rows
    )
    if nothing <= idle * len(run) and _put_back(run, rows) >= share * (len(run) - 1):
        left = _left(rows, takes, end)
        if len(left) >= waiting:
            yield _finding(run, who, len(left))


def _most(run: Sequence[Row]) -> Row:
    """The first take of the client that took most of them."""
    times = Counter(map(client_of, run))
    return max(run, key=lambda row: (times[client_of(row)], -row["ts"]))


def _put_back(run: Sequence[Row], rows: Sequence[Row]) -> int:
    """After how many of these takes the taker updated the document before the next one."""
    written: dict[tuple[object, ...], list[int]] = {}
    for row in rows:
        if (
            row["command"] == "update"
            and row["document_ids"] is not None
            and document_of(run[0]) in row["document_ids"]
        ):
            written.setdefault(client_of(row), []).append(row["ts"])
    return sum(_any_within(written.get(client_of(one), ()), one["ts"], other["ts"]) for one, other in pairwise(run))


def _any_within(times: Sequence[int], after: int, before: int) -> bool:
    place = bisect_right(times, after)
    return place < len(times) and times[place] < before


def _left(rows: Sequence[Row], takes: Sequence[Row], end: int) -> set[int]:
    """Documents that were inserted before that time and that nobody took or wrote."""
    inserted = {
        int(one)
        for row in rows
        if row["command"] == "insert" and row["ts"] < end and row["document_ids"] is not None
        for one in row["document_ids"]
    }
    touched = {document_of(row) for row in takes} | {
        int(one)
        for row in rows
        if row["command"] in ("update", "delete") and row["document_ids"] is not None
        for one in row["document_ids"]
    }
    return inserted - touched


def _finding(run: Sequence[Row], who: Row, left: int) -> Finding:
    place, lasted_ms = namespace(who) or "?", (run[-1]["ts"] - run[0]["ts"]) / NS_PER_MS
    return command_finding(
        RULE,
        [*run[:25], run[-1]],
        severity="warning",
        subject={**client_key(who), "where": place, "command": who["command"]},
        title=f"One document of {printable(place, TITLE_NAME)} taken {count(len(run), 'time')}: {client_title(who)}",
        sentence=(
            f"{sentence_start(client_text(who))} takes the same document of {place} at {server_text(who)} again and "
            f"again, {count(len(run), 'time')} in {ms_text(lasted_ms)}, and puts it back each time. "
            f"{count(left, 'other document')} that were inserted there wait, and nobody takes them."
        ),
        next_step=(
            "Look in the log of this worker why it fails at that document. Count attempts in it, put it back with a "
            "later time, and put it aside after some."
        ),
        numbers={
            "times": len(run),
            "waiting": left,
            "stood_still_ms": round(lasted_ms, 3),
            "document_id": document_of(run[0]),
            "clients": [client_numbers(who, takes=len(run))],
        },
    )


# Collections of which a document was given often.
_OFTEN = f"SELECT ({PLACE}) FROM mongo_commands WHERE {TAKEN} GROUP BY {PLACE}, document_ids[1] HAVING count(*) >= 10"
RULE = Rule(
    code="MON140",
    question="stalled",
    name="same-job-again",
    severity="warning",
    confidence="high",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "document_ids", "documents_returned", "n", "query_shape")},
    partition_by=PLACE_KEY,
    detect=detect,
    rows={
        "mongo_commands": f"({PLACE}) IN ({_OFTEN}) AND {DONE} AND (command IN {TAKES} "
        "OR (command IN ('insert', 'update', 'delete') AND document_ids IS NOT NULL))"
    },
    suspects=f"SELECT {PLACE} FROM r_mongo_commands WHERE command IN {TAKES} AND len(document_ids) = 1 "
    f"GROUP BY {PLACE}, document_ids[1] HAVING count(*) >= 10",
    signs={"mongo_commands": "count(*) FILTER (command IN ('findAndModify', 'findandmodify')) >= 10"},
)
