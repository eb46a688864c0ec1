"""MON139 taken-while-held: a document that one takes for work is given to another one before the first is through.

Finds
    Queues in a collection whose documents findAndModify gives to a second taker while the first one still works on
    them. Question: who acts on one thing at the same time.

Why it matters
    All of these commands succeed, so nobody is told: mails, payments and bookings happen twice, and half of the
    time of the workers is lost. A lease that is shorter than the work does so, or a job that puts back too early.

How it decides
    findAndModify gives a document (its _id is known by the reply) to one client (address, name, driver), then, by a
    command of the same shape, to another one. The first one writes that document by its _id (update, delete) after that
    and not before: it was at work. The same of one client, where its filter does not name the _id and two such writes
    of one shape follow. So it is with at least 5 documents (least), a fifth (share) of those that were taken. Where an
    update or delete without _id changed documents of this collection between both takes, four times in five (back), it
    is named as what puts them back; else the filter of the takers itself takes what was taken before. Info where the
    name of an application is not known, or whether such an update changed anything.

False alarms
    Work that several are to do on one document at the same time, and that they take by the same command.

What it cannot tell
    Work that is noted elsewhere than in the document, or by a filter with more than its _id: then the first taker may
    be gone for good, and nothing is said.

References
    MongoDB manual: findAndModify. Lease and visibility timeout of queues are longer than the longest work, or renewed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.queues import DONE, PLACE, PLACE_KEY, TAKEN, TAKES, asks_by_id, document_of
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


class _Overlap(NamedTuple):
    """taken: by the first one; again: by the second one; done: the first one's write, after both."""

    taken: Row
    again: Row
    done: Row


def detect(frames: Frames, *, least: int = 5, share: float = 0.2, back: float = 0.8) -> Iterator[Finding]:
    """At most one finding for this collection."""
    takes: dict[int, list[Row]] = {}
    writes: dict[tuple[int, tuple[object, ...]], list[Row]] = {}
    sweeps: list[Row] = []
    for row in rows_of(frames["mongo_commands"]):
        if row["command"] in TAKES:
            takes.setdefault(document_of(row), []).append(row)
        elif row["document_ids"] is None or not len(row["document_ids"]):
            sweeps.append(row)
        else:
            for document in row["document_ids"]:
                writes.setdefault((int(document), client_of(row)), []).append(row)
    works = {one: _Work(own) for one, own in writes.items()}
    found = [
        one for document, own in takes.items() if len(own) > 1 and (one := _overlap(document, own, works)) is not None
    ]
    if len(found) >= least and len(found) >= share * len(takes):
        yield _finding(found, len(takes), _putters(found, [row for row in sweeps if _wrote(row)], back), sweeps)


def _wrote(row: Row) -> bool:
    return bool(row["n_modified"] if row["command"] == "update" else row["n"])


class _Work:
    """Writes of one client to one document, in the order of time."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._times = [row["ts"] for row in rows]
        # From how many of them on no two are of one shape.
        self._different = 0
        seen: dict[object, int] = {}
        for place, row in enumerate(rows):
            self._different = max(self._different, seen.get(row["shape_id"], 0))
            seen[row["shape_id"]] = place + 1

    def after(self, ts: int) -> tuple[Row | None, bool]:
        """The first one after that, and whether two of one shape came."""
        place = bisect_right(self._times, ts)
        return (self._rows[place] if place < len(self._rows) else None), place < self._different


_NO_WORK = _Work(())


def _overlap(
    document: int, takes: Sequence[Row], works: Mapping[tuple[int, tuple[object, ...]], _Work]
) -> _Overlap | None:
    """The first time that a document was given to another one while the one before was at work."""
    for taken, again in pairwise(takes):
        done, is_again = works.get((document, client_of(taken)), _NO_WORK).after(taken["ts"])
        if taken["shape_id"] != again["shape_id"] or done is None or done["ts"] <= again["ts_response"]:
            continue
        if client_of(taken) != client_of(again) or (is_again and not asks_by_id(taken)):
            return _Overlap(taken, again, done)
    return None


def _putters(found: Sequence[_Overlap], sweeps: Sequence[Row], back: float) -> list[Row]:
    """What changed documents of the collection between both takes: commands of the one client that did so mostly."""
    by_client: dict[tuple[object, ...], tuple[set[int], list[Row]]] = {}
    for number, one in enumerate(found):
        compared(len(sweeps))
        for row in sweeps:
            if one.taken["ts_response"] <= row["ts"] and row["ts_response"] <= one.again["ts_response"]:
                times, rows = by_client.setdefault(client_of(row), (set(), []))
                times.add(number)
                rows.append(row)
    times, rows = max(by_client.values(), key=lambda held: len(held[0]), default=(set(), []))
    return rows if len(times) >= back * len(found) else []


def _finding(found: Sequence[_Overlap], taken: int, putters: Sequence[Row], sweeps: Sequence[Row]) -> Finding:
    first = found[0]
    culprit, place = (putters[0] if putters else first.taken), namespace(first.taken) or "?"
    takers = {client_of(row): row for one in found for row in (one.taken, one.again)}
    who = listed(client_text(row) for row in takers.values())
    again_ms = median((one.again["ts"] - one.taken["ts"]) / NS_PER_MS for one in found)
    work_ms = median((one.done["ts"] - one.taken["ts"]) / NS_PER_MS for one in found)
    how = (
        f"{sentence_start(client_text(culprit))} puts documents of {place} at {server_text(culprit)} back while they "
        f"are worked on ({culprit['command']}). "
        if putters
        else f"{sentence_start(who)} take documents of {place} at {server_text(culprit)} that others work on. "
    )
    by = f" to {who}" if putters else ""
    # A connection that began before the capture has no name: its application may be one of the others.
    is_sure = all(None not in client_of(row) for row in (*(row for one in found for row in one), *sweeps))
    is_sure = is_sure and (bool(putters) or all(row["n_modified"] is not None or _wrote(row) for row in sweeps))
    return command_finding(
        RULE,
        [row for one in found[:15] for row in one],
        severity="warning" if is_sure else "info",
        subject={**client_key(culprit), "where": place, "command": culprit["command"]},
        title=f"Taken again while in work, {count(len(found), 'document')} of {printable(place, TITLE_NAME)}: "
        f"{client_title(culprit)}",
        sentence=(
            f"{how}{len(found)} of {count(taken, 'document')} that findAndModify gave{by} were given again before the "
            f"first one was through: {ms_text(again_ms)} after the first time, when the work takes {ms_text(work_ms)} "
            "(medians). The work is done twice."
        ),
        next_step=(
            "Make the lease longer than the longest work, or let the worker renew it; end a work with a filter that "
            "names its taker, so that who is late changes nothing."
        ),
        numbers={
            "documents": len(found),
            "documents_taken": taken,
            "again_ms": round(again_ms, 3),
            "work_ms": round(work_ms, 3),
            "query_shape": culprit["query_shape"],
            "wasted_ms": round(work_ms * len(found), 3),
            "records_again": len(found),
            "clients": [client_numbers(row) for row in ([culprit] if putters else [*takers.values()])][:20],
        },
    )


# Collections of which some documents were given more than once.
_TWICE = (
    f"SELECT ({PLACE}) FROM mongo_commands WHERE {TAKEN} GROUP BY {PLACE} "
    "HAVING count(*) > count(DISTINCT document_ids[1])"
)
RULE = Rule(
    code="MON139",
    question="concurrent",
    name="taken-while-held",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "document_ids", "documents_returned", "n", "n_modified", "shape_id", "query_shape",
        )
    },
    partition_by=PLACE_KEY,
    detect=detect,
    rows={
        "mongo_commands": f"({PLACE}) IN ({_TWICE}) AND (({TAKEN}) OR ({DONE} AND command IN ('update', 'delete') "
        "AND (document_ids IS NOT NULL OR coalesce(n_modified, 1) > 0 OR (command = 'delete' AND n > 0))))"
    },
    suspects=f"SELECT {PLACE} FROM r_mongo_commands WHERE command IN {TAKES} GROUP BY {PLACE} "
    "HAVING count(*) > count(DISTINCT document_ids[1])",
    signs={"mongo_commands": "count(*) FILTER (command IN ('findAndModify', 'findandmodify')) > 1"},
)  # fmt: skip
