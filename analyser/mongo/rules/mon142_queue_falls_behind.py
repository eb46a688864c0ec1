"""MON142 queue-falls-behind: more is inserted into a queue than its workers take, and the rest grows.

Finds
    Queues in a collection whose workers took each document soon at first, and in which documents wait ever longer.
    Question: what grows.

Why it matters
    Each command is quick, and nobody is told. A new producer, a worker that is gone or slower: from there on each job
    is later than the one before it.

How it decides
    Documents that are inserted and that findAndModify gives (both by the digests of their _id), in eighths of the time.
    In the first quarter of it 10 (least) or fewer, and at most a fifth (settled) of those inserted, waited at its end.
    At the end 20 (waiting) or more wait, five times (ratio) that, and more than at three quarters. In three of the last
    four eighths a quarter (surplus) more was inserted than taken. In the last quarter workers took 5 or more, nearly
    never found nothing, and at their pace the rest takes longer than a quarter of the capture. So one large batch that
    is worked off, a peak that is over, and a collection that is no queue are none. Where half as many inserts again
    (more) came as in the first quarter, whose rose most is named; else the workers are.

False alarms
    A batch that comes in parts over most of the capture, and that has all night.

What it cannot tell
    Documents that were in the queue before the capture, and what workers take by other commands.

References
    MongoDB manual: findAndModify. Little's law.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, seconds_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.queues import DONE, PLACE, PLACE_KEY, TAKEN, TAKES, document_of, is_take
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    TITLE_NAME,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    listed,
    namespace,
)
from wirewitness.analyser.mongo.rules.use import client_of

_PARTS = 8
# So many takes in the last quarter tell the pace of workers; so few in ten of their questions find nothing.
_PACE, _EMPTY = 5, 0.1


class _Queue(NamedTuple):
    """inserted, taken: in each eighth of the time; rest: what waits at the end of each. asked: questions for a document
    that found nothing, in the last quarter. lasted_s: all of it."""

    inserted: list[int]
    taken: list[int]
    rest: list[int]
    empty: int
    lasted_s: float


def detect(
    frames: Frames,
    *,
    least: int = 10,
    settled: float = 0.2,
    waiting: int = 20,
    ratio: float = 5.0,
    surplus: float = 0.25,
    more: float = 0.5,
) -> Iterator[Finding]:
    """At most one finding for this collection."""
    rows = rows_of(frames["mongo_commands"])
    queue = _queue(rows)
    if queue is None or queue.inserted[0] + queue.inserted[1] < _PACE:
        return
    early, late, end = queue.rest[1], queue.rest[5], queue.rest[-1]
    grew = sum(put > (1 + surplus) * out for put, out in zip(queue.inserted[4:], queue.taken[4:], strict=True))
    pace = sum(queue.taken[6:])
    begins_well = early <= least and early <= settled * sum(queue.inserted[:2])
    if not begins_well or end < max(waiting, ratio * early) or end <= late or grew < 3 or pace < _PACE:
        return
    if queue.empty > _EMPTY * pace or end / (pace / 2) < _PARTS / 4:
        return
    comes_more = sum(queue.inserted[2:]) / 6 >= (1 + more) * sum(queue.inserted[:2]) / 2
    yield _finding(rows, queue, comes_more)


def _part(row: Row, begin: int, span: int) -> int:
    return min(int((row["ts"] - begin) * _PARTS // span), _PARTS - 1)


def _queue(rows: Sequence[Row]) -> _Queue | None:
    """The course of the queue; None where nothing is inserted or taken."""
    takes = [row for row in rows if is_take(row)]
    if not takes:
        return None
    begin, span = rows[0]["ts"], max(rows[-1]["ts"] - rows[0]["ts"], 1)
    given = {document_of(row): _part(row, begin, span) for row in reversed(takes)}
    inserted, taken = [0] * _PARTS, [0] * _PARTS
    for row in rows:
        if row["command"] == "insert":
            inserted[_part(row, begin, span)] += len(row["document_ids"])
            for one in row["document_ids"]:
                if int(one) in given:
                    taken[given[int(one)]] += 1
    rest = [sum(inserted[: n + 1]) - sum(taken[: n + 1]) for n in range(_PARTS)]
    empty = sum(row["command"] in TAKES and not row["n"] and _part(row, begin, span) >= 6 for row in rows)
    return _Queue(inserted, taken, rest, empty, span / NS_PER_S)


def _by_client(rows: Sequence[Row], first: int, last: int, begin: int, span: int) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        if row["command"] == "insert" and first <= _part(row, begin, span) <= last:
            found[client_of(row)] += len(row["document_ids"])
    return found


def _finding(rows: Sequence[Row], queue: _Queue, comes_more: bool) -> Finding:
    begin, span = rows[0]["ts"], max(rows[-1]["ts"] - rows[0]["ts"], 1)
    firsts = {client_of(row): row for row in reversed(rows) if row["command"] == "insert"}
    workers = {client_of(row): row for row in reversed(rows) if is_take(row)}
    before, after = _by_client(rows, 0, 1, begin, span), _by_client(rows, 2, _PARTS - 1, begin, span)
    most = max(firsts, key=lambda who: (after[who] / 3 - before[who], -firsts[who]["ts"]))
    culprit = firsts[most] if comes_more else next(iter(workers.values()))
    place, quarter_s = namespace(culprit) or "?", queue.lasted_s / 4
    put, out = sum(queue.inserted[4:]) / (2 * quarter_s), sum(queue.taken[4:]) / (2 * quarter_s)
    usual = sum(queue.inserted[:2]) / quarter_s
    names = listed(client_text(row) for row in workers.values())
    why = (
        f"{sentence_start(client_text(culprit))} inserts more into {place} at {server_text(culprit)} than its workers "
        f"take ({names})"
        if comes_more
        else f"{sentence_start(names)} take less from {place} at {server_text(culprit)} than is inserted"
    )
    return command_finding(
        RULE,
        [culprit, *workers.values(), *[row for row in rows if row["command"] == "insert"][-10:]],
        severity="warning",
        confidence="medium",
        provisional=True,
        subject={**client_key(culprit), "where": place, "command": culprit["command"]},
        title=f"Queue {printable(place, TITLE_NAME)} falls behind: {client_title(culprit)}",
        sentence=(
            f"{why}: {put:.1f} a second come and {out:.1f} are taken, where {usual:.1f} came and all were taken in the "
            f"first quarter. {count(queue.rest[-1], 'document')} wait at the end, after "
            f"{seconds_text(rows[-1]['ts'] - begin)}."
        ),
        next_step=(
            "Start more workers or make their work shorter, or let the producer wait when too many documents are "
            "in the queue (count them, or bound them)."
        ),
        numbers={
            "waiting": queue.rest[-1],
            "records_behind": queue.rest[-1],
            "inserted_per_s": round(put, 2),
            "taken_per_s": round(out, 2),
            "inserted": queue.inserted,
            "taken": queue.taken,
            "clients": [client_numbers(row) for row in ([culprit] if comes_more else [*workers.values()])][:20],
        },
    )


RULE = Rule(
    code="MON142",
    question="growing",
    name="queue-falls-behind",
    severity="warning",
    confidence="medium",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "document_ids", "documents_returned", "n")},
    partition_by=PLACE_KEY,
    detect=detect,
    rows={
        "mongo_commands": f"{DONE} AND (command IN {TAKES} OR (command = 'insert' AND document_ids IS NOT NULL)) AND "
        f"({PLACE}) IN (SELECT ({PLACE}) FROM mongo_commands WHERE {TAKEN} GROUP BY {PLACE} HAVING count(*) >= 10)"
    },
    suspects=f"SELECT {PLACE} FROM r_mongo_commands WHERE command = 'insert' GROUP BY {PLACE} "
    "HAVING sum(len(document_ids)) >= 25",
    signs={"mongo_commands": "sum(len(document_ids)) FILTER (command = 'insert') >= 25"},
)
