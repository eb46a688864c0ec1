"""MON141 check-then-insert: two clients look whether a document is there, both find none, and both insert it.

Finds
    Pairs of clients that ask for the same value at the same time, are told that there is no such document, and insert
    one each. Question: who acts on one thing at the same time.

Why it matters
    Between the question and the insert another one does the same, and both inserts succeed: the document is there
    twice. Nothing tells of it until somebody finds two orders of one number.

How it decides
    A find of one shape and the same values by two clients (address, name, driver) finds nothing each time; the next
    command of each of them in this collection is an insert of one document that succeeds. Its fields have the names
    that the filter has, and are the same in both. The second one was answered before the insert of the first one was,
    so it could not know. 5 values (least) or more, and a tenth (share) or more of those that both asked for.

False alarms
    Documents that may be there twice, each client's its own, which have nothing to do with the filter but its name.

What it cannot tell
    Whether the values inserted are those that were asked for; two threads of one client.

References
    MongoDB manual: unique indexes, update with upsert ("To avoid multiple upserts, create a unique index").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.queues import DONE, PLACE, PLACE_KEY
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    TITLE_NAME,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    namespace,
    shape_text,
)
from wirewitness.analyser.mongo.rules.use import client_of

# Those that ask most are compared with each other.
_MOST_COMPARED = 20
_Values = tuple[str, str]


class _Pair(NamedTuple):
    """A find without a result, and the insert behind it."""

    find: Row
    insert: Row


def detect(frames: Frames, *, least: int = 5, share: float = 0.1) -> Iterator[Finding]:
    """At most one finding for each two clients of this collection."""
    clients: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(frames["mongo_commands"]):
        clients.setdefault(client_of(row), []).append(row)
    most = sorted(clients.values(), key=len, reverse=True)[:_MOST_COMPARED]
    for one, other in combinations([(_asked(rows), _pairs(rows)) for rows in most], 2):
        compared(len(one[1]))
        both = one[0] & other[0]
        twice = [(one[1][key], other[1][key]) for key in one[1] if key in other[1]]
        twice = [pair for pair in twice if _is_blind(*pair)]
        if len(twice) >= least and len(twice) >= share * len(both):
            yield _finding(twice)


def _asked(rows: Sequence[Row]) -> set[_Values]:
    return {(row["shape_id"], row["literals_id"]) for row in rows if row["command"] == "find"}


def _pairs(rows: Sequence[Row]) -> dict[_Values, _Pair]:
    """Of each value that was not found the find, and the client's insert that comes next."""
    found: dict[_Values, _Pair] = {}
    asked: Row | None = None
    for row in rows:
        if row["command"] == "find":
            asked = row if row["documents_returned"] == 0 and row["literals_id"] is not None else None
        elif asked is not None:
            if row["documents_sent"] == 1 and row["n"] == 1 and row["ts"] >= asked["ts_response"]:
                found.setdefault((asked["shape_id"], asked["literals_id"]), _Pair(asked, row))
            asked = None
    return found


def _is_blind(one: _Pair, other: _Pair) -> bool:
    """Could neither know of the other's insert, and do both insert what they asked for?"""
    first, second = sorted((one, other), key=lambda pair: pair.insert["ts_response"])
    if second.find["ts_response"] > first.insert["ts_response"]:
        return False
    shape = one.insert["document_shape"]
    if shape is None or shape != other.insert["document_shape"]:
        return False
    return bool((asked := _names(one.find["query_shape"], "filter")) and asked <= _names(shape))


def _names(shape: str | None, part: str | None = None) -> set[str]:
    """The fields of a document's shape, or of a part of a query's; none where it is cut."""
    try:
        found = json.loads(shape or "{}")
    except ValueError:
        return set()
    inner = found.get(part, {}) if part else found
    return set(inner) if isinstance(inner, dict) else set()


def _finding(twice: Sequence[tuple[_Pair, _Pair]]) -> Finding:
    one, other = twice[0]
    first, second = one.insert, other.insert
    place = namespace(first) or "?"
    return command_finding(
        RULE,
        [row for pair in twice[:12] for of_one in pair for row in of_one],
        severity="warning",
        subject={**client_key(second), "where": place, "command": "insert"},
        title=f"Inserted twice into {printable(place, TITLE_NAME)}: {client_title(first)} and {client_title(second)}",
        sentence=(
            f"{sentence_start(client_text(first))} and {client_text(second)} look at the same time whether a document "
            f"is in {place} at {server_text(first)}, find none, and both insert one: {count(len(twice), 'time')}, each "
            f"for the same value. All inserts succeeded.{shape_text(one.find['query_shape'])}"
        ),
        next_step=(
            "Make a unique index over the fields of this filter, and treat a duplicate key (11000) as 'it is there', "
            "or use one update with upsert instead of find and insert."
        ),
        numbers={
            "times": len(twice),
            "records_again": len(twice),
            "query_shape": one.find["query_shape"],
            "clients": [client_numbers(row, inserts=len(twice)) for row in (first, second)],
        },
    )


_EMPTY = "command = 'find' AND documents_returned = 0 AND literals_id IS NOT NULL"
# Values that several clients did not find.
_TWICE = (
    f"SELECT ({PLACE}) FROM (SELECT {PLACE}, shape_id, literals_id FROM mongo_commands WHERE {DONE} AND {_EMPTY} "
    f"GROUP BY ALL HAVING count(DISTINCT (client_address, app_name)) > 1) GROUP BY {PLACE} HAVING count(*) >= 5"
)
RULE = Rule(
    code="MON141",
    question="concurrent",
    name="check-then-insert",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "shape_id", "literals_id", "query_shape", "document_shape", "documents_returned",
            "documents_sent", "n",
        )
    },
    partition_by=PLACE_KEY,
    detect=detect,
    rows={"mongo_commands": f"({PLACE}) IN ({_TWICE}) AND {DONE} AND command IN ('find', 'insert')"},
    suspects=AnyRow("mongo_commands", "command = 'insert'"),
)  # fmt: skip
