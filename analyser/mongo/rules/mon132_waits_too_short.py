"""MON132 waits-too-short: an application that waits for new documents asks again and again, and gets nothing.

Finds
    Cursors that follow a collection (tailable cursors, change streams) whose getMores hardly let the server wait, and
    tailable cursors that are dead as soon as they are opened, and opened again.

Why it matters
    Such a cursor is there so that the server can wait for news. One that asks again at once is a loop without a pause:
    it keeps a connection and the server busy and brings nothing sooner.

How it decides
    short: of at least 50 getMores (gets_least) of one cursor that is tailable, or whose getMores name how long to wait,
    nine tenths brought nothing, and the median time from one to the next is less than 100 ms (short_ms). Each cursor
    is looked at by itself: many that wait long are none.
    dead: of at least 30 tailable finds (finds_least) of an application on a collection nine tenths returned nothing and
    no cursor, as of an empty collection, and one came within half a second (poll_s) of the other, on the average.
    A warning; one finding for each application, collection and kind.

False alarms
    A test that looks for the shortest delay.

References
    MongoDB manual: tailable cursors ("may become dead, or invalid, if ... the query returns no match"), maxTimeMS of
    getMore; drivers: maxAwaitTimeMS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text, seconds_text
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
)

_NOTHING = 0.9


def detect(
    frames: Frames, *, gets_least: int = 50, finds_least: int = 30, short_ms: float = 100.0, poll_s: float = 0.5
) -> Iterator[Finding]:
    """For each collection that this application follows at most one finding of each kind."""
    cursors: dict[tuple[str | None, int], list[Row]] = {}
    finds: dict[str | None, list[Row]] = {}
    for row in rows_of(frames["mongo_commands"]):
        if row["command"] == "find":
            finds.setdefault(namespace(row), []).append(row)
        else:
            cursors.setdefault((namespace(row), row["cursor_id"]), []).append(row)
    hasty: dict[str | None, list[Row]] = {}
    for (place, _), gets in cursors.items():
        if len(gets) >= gets_least and _mostly_empty(gets) and _every_ms(gets) < short_ms:
            hasty.setdefault(place, []).extend(gets)
    for gets in hasty.values():
        yield _short(gets)
    for own in finds.values():
        dead = [row for row in own if row["cursor_exhausted"]]
        spread_s = (own[-1]["ts"] - own[0]["ts"]) / NS_PER_S / max(len(own) - 1, 1)
        if len(own) >= finds_least and len(dead) >= _NOTHING * len(own) and _mostly_empty(own) and spread_s < poll_s:
            yield _dead(own)


def _mostly_empty(rows: Sequence[Row]) -> bool:
    return bool(sum(row["documents_returned"] == 0 for row in rows) >= _NOTHING * len(rows))


def _every_ms(rows: Sequence[Row]) -> float:
    """The usual time from one to the next."""
    return float(median((after["ts"] - before["ts"]) / NS_PER_MS for before, after in pairwise(rows)))


def _short(gets: Sequence[Row]) -> Finding:
    waits = [row["await_time_ms"] for row in gets if row["await_time_ms"] is not None]
    wait = f", which let the server wait {ms_text(median(waits))}" if waits else ", which do not let the server wait"
    cursors = len({row["cursor_id"] for row in gets})
    return _finding(
        gets,
        kind="short",
        what=f"sent {len(gets):,} getMores for {count(cursors, 'cursor')} on {{place}}",
        how=f"{wait}, one each {ms_text(_every_ms(gets) if cursors == 1 else _spread_ms(gets))}",
        next_step=(
            "Let the server wait longer (maxAwaitTimeMS, 1 s or more): it replies as soon as there is something; a "
            "tailable cursor needs awaitData."
        ),
        numbers={"wait_ms": median(waits) if waits else None, "cursors": cursors},
    )


def _dead(finds: Sequence[Row]) -> Finding:
    return _finding(
        finds,
        kind="dead",
        what=f"opened {len(finds):,} tailable cursors on {{place}}",
        how=f", one each {ms_text(_spread_ms(finds))}, each of which is dead at once",
        next_step=(
            "A tailable cursor on a collection without a match is dead as soon as it is opened: put a first document "
            "there, pause before it is opened again, or use a change stream."
        ),
        numbers={},
    )


def _spread_ms(rows: Sequence[Row]) -> float:
    return float((rows[-1]["ts"] - rows[0]["ts"]) / NS_PER_MS / max(len(rows) - 1, 1))


def _finding(rows: Sequence[Row], *, kind: str, what: str, how: str, next_step: str, numbers: Row) -> Finding:
    ordered = sorted(rows, key=lambda row: (row["ts"], row["exchange_id"]))
    first, place = ordered[0], namespace(ordered[0]) or "?"
    empty = sum(row["documents_returned"] == 0 for row in rows)
    wasted_ms = sum((row["ts_response"] - row["ts"]) / NS_PER_MS for row in rows if row["documents_returned"] == 0)
    return command_finding(
        RULE,
        [*ordered[:25], *ordered[-25:]] if len(ordered) > 50 else ordered,
        severity="warning",
        subject={**client_key(first), "where": place, "kind": kind},
        title=f"{first['command']} {len(rows):,} times for nothing: {client_title(first)} follows "
        f"{printable(place, TITLE_NAME)}",
        sentence=(
            f"{sentence_start(client_text(first))} {what.format(place=place)} at {server_text(first)}{how}; "
            f"{empty:,} of them brought nothing, in {seconds_text(ordered[-1]['ts'] - first['ts'])}."
        ),
        next_step=next_step,
        numbers={
            "commands": len(rows),
            "without_effect": empty,
            "wasted_ms": round(wasted_ms, 3),
            "every_ms": round(_spread_ms(ordered), 3),
            "clients": [client_numbers(first, commands=len(rows))],
            **numbers,
        },
    )


_FOLLOWS = "(await_time_ms IS NOT NULL OR cursor_id IN (SELECT cursor_id FROM mongo_cursors WHERE tailable))"
RULE = Rule(
    code="MON132",
    question="repeated",
    name="waits-too-short",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (*COMMAND_COLUMNS, "documents_returned", "cursor_exhausted", "cursor_id", "await_time_ms"),
    },
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={
        "mongo_commands": "status = 'ok' AND ts_response IS NOT NULL AND ((command = 'find' AND tailable) OR "
        f"(command = 'getMore' AND cursor_id IS NOT NULL AND {_FOLLOWS}))"
    },
    suspects=(
        f"SELECT {', '.join(CLIENT_KEY)} FROM r_mongo_commands WHERE documents_returned = 0 GROUP BY ALL "
        "HAVING count(*) >= 27"
    ),
    asks=("mongo_cursors",),
    signs={"mongo_commands": "count(*) FILTER (documents_returned = 0) >= 27"},
)
