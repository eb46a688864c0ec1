"""MON146 page-again: a program that walks through a collection by value gets the same full page again and again.

Finds
    Finds that go on from the last value that they saw ($gte with the sort that fits), get a full page, and ask for the
    same page next. Question: what does not move although it should.

Why it matters
    All commands succeed and documents come, but nothing behind this page is ever read: a sync, an export or a migration
    stands still. It happens where more documents than a page holds have one value, such as the time of a bulk load.

How it decides
    The filter asks for one field only, by $gt or $gte with that field first and rising in the sort, or by $lt or $lte
    with it falling. 20 times (least) or more in a row, for 5 s (over_s) or more, the values of the filter and the size
    of the reply are the same, and as many documents come as the limit says. A warning where the same application asked
    from another value before: it went on until there; info else, because a list of the first entries is asked for so,
    too.

False alarms
    A display that shows the first page of a range which begins anew at some time.

What it cannot tell
    Whether the same size of a reply means the same documents.

References
    MongoDB manual: cursor.limit(), and range queries in place of skip; a walk needs a value that is unique, such as
    the time and the _id together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    CLIENT_KEY,
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

_RISES, _FALLS = {"$gt", "$gte"}, {"$lt", "$lte"}


def detect(frames: Frames, *, least: int = 20, over_s: float = 5.0) -> Iterator[Finding]:
    """One finding for each collection and shape of this application: its longest time at one page."""
    by_shape: dict[tuple[object, ...], list[Row]] = {}
    for row in rows_of(frames["mongo_commands"]):
        by_shape.setdefault((row["database"], row["collection"], row["shape_id"]), []).append(row)
    for rows in by_shape.values():
        if not _walks(rows[0]["query_shape"]):
            continue
        runs = [[*run] for _, run in groupby(rows, _page)]
        longest = max(runs, key=len)
        if len(longest) >= least and longest[-1]["ts"] - longest[0]["ts"] >= over_s * NS_PER_S:
            before = any(
                row["literals_id"] != longest[0]["literals_id"] for row in rows if row["ts"] < longest[0]["ts"]
            )
            yield _finding(longest, went_on=before)


def _page(row: Row) -> tuple[object, ...]:
    return row["literals_id"], row["documents_returned"], row["limit"], row["response_bytes"]


def _walks(shape: str | None) -> bool:
    """Does it go on from a value of the field by which it sorts?"""
    try:
        parts: Any = json.loads(shape or "")
        ((field, asked),) = parts["filter"].items()
        first, direction = next(iter(parts["sort"].items()))
        wanted = _RISES if int(direction) > 0 else _FALLS
        return first == field and len(asked) == 1 and not wanted.isdisjoint(asked)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return False


def _finding(run: Sequence[Row], *, went_on: bool) -> Finding:
    first, lasted_ms = run[0], (run[-1]["ts"] - run[0]["ts"]) / NS_PER_MS
    place = namespace(first) or "?"
    progress = "It had gone on from other values before." if went_on else "It asked from no other value meanwhile."
    return command_finding(
        RULE,
        [*run[:10], run[-1]],
        severity="warning" if went_on else "info",
        subject={**client_key(first), "where": place, "command": "find"},
        title=f"The same page of {printable(place, TITLE_NAME)} {count(len(run), 'time')}: {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} asks {place} at {server_text(first)} for documents from one value "
            f"on, {count(len(run), 'time')} in {ms_text(lasted_ms)} from the same one, and gets the same full page of "
            f"{count(first['limit'], 'document')} each time: it goes no further. {progress}"
            f"{shape_text(first['query_shape'])}"
        ),
        next_step=(
            "More documents than a page holds have this value. Sort by it and the _id, and go on from both ($or with "
            "the same value and a larger _id)."
        ),
        numbers={
            "times": len(run),
            "documents": first["limit"],
            "stood_still_ms": round(lasted_ms, 3),
            "query_shape": first["query_shape"],
            "clients": [client_numbers(first, finds=len(run))],
        },
    )


_FULL = (
    "command = 'find' AND status = 'ok' AND \"limit\" > 1 AND documents_returned = \"limit\" "
    "AND literals_id IS NOT NULL AND query_shape IS NOT NULL AND has_sort"
)
RULE = Rule(
    code="MON146",
    question="stalled",
    name="page-again",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "shape_id", "query_shape", "literals_id", "documents_returned", "limit", "response_bytes",
        ),
    },
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={"mongo_commands": _FULL},
    suspects=f"SELECT {', '.join(CLIENT_KEY)} FROM r_mongo_commands "
    f"GROUP BY {', '.join(CLIENT_KEY)}, shape_id, literals_id HAVING count(*) >= 20",
    signs={"mongo_commands": "count(*) >= 20"},
)  # fmt: skip
