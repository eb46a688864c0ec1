"""MON147 number-from-last: applications take the next number from the last document, and meet at the same one.

Finds
    Clients that look for the last document of a collection, insert one behind it, and are refused because another one
    was quicker. Question: who acts on one thing at the same time.

Why it matters
    Each of them tries again, so the more there are, the more of their work is in vain, and the slowest may never get a
    number. Without a unique index nobody is refused, and there are two of one number.

How it decides
    An insert of one document comes behind a find of the same client in the same collection that asks for one document
    in falling order, with nothing of it in between. Of such inserts 10 (least) or more, and a fifth (share) of them,
    are refused as a duplicate key (11000), and two clients or more make some of them.

False alarms
    An application that writes what others may have written, and looks at the newest document before, for another
    reason.

What it cannot tell
    Which field has the number: values are not kept.

References
    MongoDB manual: findAndModify with $inc on a document for the counter (auto-incrementing sequence), unique indexes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, printable
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.queues import PLACE, PLACE_KEY
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    TITLE_NAME,
    application_key,
    by_client,
    client_numbers,
    client_text,
    command_finding,
    listed,
    namespace,
    shape_text,
)

_DUPLICATE = 11000


class _Attempt(NamedTuple):
    """A look for the last document, and the insert behind it."""

    last: Row
    insert: Row

    @property
    def refused(self) -> bool:
        """Was somebody quicker?"""
        return bool(self.insert["error_code"] == _DUPLICATE)


def detect(frames: Frames, *, least: int = 10, share: float = 0.2) -> Iterator[Finding]:
    """At most one finding for this collection."""
    clients = [_attempts(rows) for rows in by_client(rows_of(frames["mongo_commands"]))]
    clients = [own for own in clients if own]
    every = [one for own in clients for one in own]
    refused = [one for one in every if one.refused]
    if len(clients) > 1 and len(refused) >= max(least, share * len(every)):
        yield _finding(sorted(clients, key=_refused, reverse=True), refused, len(every))


def _refused(attempts: Sequence[_Attempt]) -> int:
    return sum(one.refused for one in attempts)


def _attempts(rows: Sequence[Row]) -> list[_Attempt]:
    found, last = [], None
    for row in rows:
        if row["command"] == "insert":
            if last is not None and last["ts_response"] <= row["ts"]:
                found.append(_Attempt(last, row))
            last = None
        else:
            last = row if row["ts_response"] is not None and _asks_for_last(row["query_shape"]) else None
    return found


def _asks_for_last(shape: str | None) -> bool:
    """Does it sort by one field, falling?"""
    try:
        parts: Any = json.loads(shape or "")
        (direction,) = parts["sort"].values()
        return int(direction) < 0
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _finding(clients: Sequence[Sequence[_Attempt]], refused: Sequence[_Attempt], attempts: int) -> Finding:
    shown = sorted(refused, key=lambda one: one.insert["ts"])
    first = clients[0][0].insert
    place = namespace(first) or "?"
    lasted_ms = (shown[-1].insert["ts"] - shown[0].insert["ts"]) / NS_PER_MS
    names = listed([client_text(own[0].insert) for own in clients], 3)
    return command_finding(
        RULE,
        [row for one in [*shown[:10], shown[-1]] for row in one],
        severity="warning",
        subject={"server": server_text(first), "where": place, "command": "insert"},
        title=f"{count(len(refused), 'insert')} of {printable(place, TITLE_NAME)} met at one number",
        sentence=(
            f"{count(len(clients), 'client')} ({names}) look for the last document of {place} at {server_text(first)} "
            f"and insert one behind it, at the same time: {len(refused):,} of {attempts:,} such inserts were refused "
            f"as a duplicate key, in {ms_text(lasted_ms)}.{shape_text(clients[0][0].last['query_shape'])}"
        ),
        next_step=(
            "Let the server count: one findAndModify with $inc on a document for this number, or take an ObjectId, "
            "which needs no look."
        ),
        numbers={
            **application_key(first),
            "attempts": attempts,
            "requests_refused": len(refused),
            "clients": [client_numbers(own[0].insert, inserts=len(own), refused=_refused(own)) for own in clients[:20]],
        },
    )


RULE = Rule(
    code="MON147",
    question="concurrent",
    name="number-from-last",
    severity="warning",
    confidence="high",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "query_shape", "error_code")},
    partition_by=PLACE_KEY,
    detect=detect,
    rows={
        "mongo_commands": "(command = 'insert' AND documents_sent = 1 AND ts_response IS NOT NULL) "
        'OR (command = \'find\' AND ("limit" = 1 OR "limit" = -1 OR batch_size = 1) AND has_sort)'
    },
    suspects=f"SELECT {PLACE} FROM r_mongo_commands GROUP BY {PLACE} "
    f"HAVING count(*) FILTER (error_code = {_DUPLICATE}) >= 10 AND count(*) FILTER (command = 'find') >= 10",
    signs={"mongo_commands": "count(*) FILTER (error_code = 11000) >= 10"},
)
