"""MON133 dropped-in-use: a client drops or empties what another one reads.

Finds
    Clients that drop a database or a collection, or delete all its documents, while another client uses it, whose reads
    find nothing from then on, or too little until it is filled again.

Why it matters
    The drop succeeds, and so do the reads: an empty result is no error. Tests with the address of production do so, a
    script that clears the wrong database, a loader that drops before it loads: as long as it loads, readers see a part.

How it decides
    drop, dropDatabase or a delete without a filter succeeds, and after the last of these at least 5 queries (least) of
    another client (address, name, driver) on what was dropped have no result, four fifths (share) of them, whereas
    before the first one as many had one, and of the same shape.

    A client that fills the collection again does so from its drop to its last insert before the next drop. At least
    5 queries (least) of another client within these times, and more than half of them, return fewer documents than that
    shape usually does: than the median of those before the first drop and behind the last insert, of which there are
    as many at both sides, and four fifths (share) of which return that or more.

False alarms
    A clean-up that was agreed on, while readers still run.

What it cannot tell
    Whether the documents were to be kept.

References
    MongoDB manual: dropDatabase, drop, delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median_low
from typing import Any

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start
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
    listed,
    namespace,
)
from wirewitness.analyser.mongo.rules.use import QUERIES, client_of


def detect(frames: Frames, *, least: int = 5, share: float = 0.8) -> Iterator[Finding]:
    """One finding for each client that dropped something of this database, and each place."""
    rows = rows_of(frames["mongo_commands"])
    drops: dict[tuple[Any, str | None], list[Row]] = {}
    inserts: dict[tuple[Any, str | None], list[Row]] = {}
    reads: dict[tuple[Any, str | None, str | None], list[Row]] = {}
    for row in rows:
        if row["command"] == "insert":
            inserts.setdefault((client_of(row), row["collection"]), []).append(row)
        elif row["command"] in QUERIES:
            reads.setdefault((client_of(row), row["collection"], row["shape_id"]), []).append(row)
        else:
            drops.setdefault((client_of(row), row["collection"]), []).append(row)
    for (who, collection), own in drops.items():
        others = [read for (reader, place, _), read in reads.items() if reader != who and collection in (None, place)]
        harmed = [read for read in others if _is_harmed(read, own, least, share)]
        if harmed:
            yield _finding(own, harmed)
            continue
        loads = _loads(own, inserts.get((who, collection), []))
        short = [some for read in others if (some := _short(read, loads, least, share))]
        if short:
            yield _of_loader(own, loads, short)


def _is_harmed(reads: Sequence[Row], drops: Sequence[Row], least: int, share: float) -> bool:
    """Did these queries have results before the first drop, and none after the last?"""
    before = [row["documents_returned"] > 0 for row in reads if row["ts_response"] < drops[0]["ts"]]
    after = [row["documents_returned"] == 0 for row in reads if row["ts"] > drops[-1]["ts_response"]]
    return all(len(some) >= least and sum(some) >= share * len(some) for some in (before, after))


def _loads(drops: Sequence[Row], inserts: Sequence[Row]) -> list[tuple[int, int]]:
    """From when until when it fills what it dropped: each drop with the last insert before the next one."""
    ends = [row["ts"] for row in drops[1:]] + [inserts[-1]["ts"] + 1 if inserts else 0]
    found = []
    for drop, end in zip(drops, ends, strict=True):
        own = [row["ts_response"] for row in inserts if drop["ts_response"] <= row["ts"] < end]
        if own:
            found.append((drop["ts_response"], own[-1]))
    return found


def _short(reads: Sequence[Row], loads: Sequence[tuple[int, int]], least: int, share: float) -> list[Row]:
    """Those of these queries that returned too little while it was filled; none where that is not so."""
    if not loads:
        return []
    compared(len(reads) * len(loads))
    before = [row["documents_returned"] for row in reads if row["ts_response"] < loads[0][0]]
    after = [row["documents_returned"] for row in reads if row["ts"] > loads[-1][1]]
    usual = median_low(before + after) if min(len(before), len(after)) >= least else 0
    if not usual or any(sum(one >= usual for one in some) < share * len(some) for some in (before, after)):
        return []
    within = [row for row in reads if any(begin < row["ts"] and row["ts_response"] < end for begin, end in loads)]
    short = [row for row in within if row["documents_returned"] < usual]
    return short if len(short) >= least and len(short) > len(within) / 2 else []


def _finding(drops: Sequence[Row], harmed: Sequence[Sequence[Row]]) -> Finding:
    first, place = drops[0], namespace(drops[0]) or "?"
    victims = [reads[0] for reads in harmed]
    found_nothing = [
        row for reads in harmed for row in reads if row["documents_returned"] == 0 and row["ts"] > first["ts"]
    ]
    empty, last_ts = len(found_nothing), max(row["ts"] for row in found_nothing)
    what = "dropped" if first["command"] != "delete" else "deleted all of"
    times = "" if len(drops) == 1 else f", {len(drops)} times ({first['command']})"
    verb = "reads" if len({client_of(row) for row in victims}) == 1 else "read"
    places = listed(namespace(row) for row in victims)
    return command_finding(
        RULE,
        [*drops[:25], *(row for reads in harmed for row in (reads[0], reads[-1]))],
        severity="warning",
        subject={**client_key(first), "where": place, "command": first["command"]},
        title=f"{what.capitalize()} {printable(place, TITLE_NAME)} while others read it: {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} {what} {place} at {server_text(first)}{times}, while "
            f"{listed(client_text(row) for row in victims)} {verb} {places}: queries that had results before find "
            f"nothing since, {count(empty, 'time')}."
        ),
        next_step=(
            "Look at who runs there: tests need a server or a database of their own. Give the user of this application "
            "no right to drop (roles), and restore what was dropped from a backup."
        ),
        numbers={
            "drops": len(drops),
            "empty_reads": empty,
            "stood_still_ms": round((last_ts - first["ts"]) / NS_PER_MS, 3),
            "victims": [client_numbers(row) for row in victims][:20],
            "clients": [client_numbers(first, drops=len(drops))],
        },
    )


def _of_loader(drops: Sequence[Row], loads: Sequence[tuple[int, int]], short: Sequence[Sequence[Row]]) -> Finding:
    first, place = drops[0], namespace(drops[0]) or "?"
    victims = [reads[0] for reads in short]
    times, longest = sum(map(len, short)), max(end - begin for begin, end in loads) / NS_PER_MS
    what = "drops" if first["command"] != "delete" else "deletes all of"
    verb = "reads" if len({client_of(row) for row in victims}) == 1 else "read"
    return command_finding(
        RULE,
        [*drops[:25], *(row for reads in short for row in (reads[0], reads[-1]))],
        severity="warning",
        subject={**client_key(first), "where": place, "command": first["command"]},
        title=f"{what.capitalize()} and fills {printable(place, TITLE_NAME)} while others read: {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} {what} {place} at {server_text(first)} and fills it again, "
            f"{count(len(loads), 'time')}, for up to {ms_text(longest)}, while "
            f"{listed(client_text(row) for row in victims)} {verb} it: {count(times, 'query', 'queries')} of theirs "
            "returned fewer documents than before and after."
        ),
        next_step=(
            "Fill another collection and put it in the place of this one with renameCollection and dropTarget, or "
            "replace the documents one by one (bulkWrite of upserts) and delete what is left over."
        ),
        numbers={
            "drops": len(drops),
            "short_reads": times,
            "stood_still_ms": round(sum(end - begin for begin, end in loads) / NS_PER_MS, 3),
            "victims": [client_numbers(row) for row in victims][:20],
            "clients": [client_numbers(first, drops=len(drops))],
        },
    )


_DROPS = (
    "(command = 'dropDatabase' OR (command = 'drop' AND collection IS NOT NULL) OR (command = 'delete' AND n > 1 AND "
    "collection IS NOT NULL AND "
    """query_shape = '{"deletes":[{"q":{},"limit":0}]}'))"""
)
_DONE = "status = 'ok' AND ts_response IS NOT NULL"
RULE = Rule(
    code="MON133",
    question="concurrent",
    name="dropped-in-use",
    severity="warning",
    confidence="high",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "documents_returned", "shape_id", "query_shape", "n")},
    partition_by=("server_address", "server_port", "database"),
    detect=detect,
    rows={
        "mongo_commands": f"{_DONE} AND ({_DROPS} OR (((command IN ('find', 'aggregate', 'distinct') AND "
        "documents_returned IS NOT NULL AND tailable IS NOT TRUE) OR command = 'insert') AND "
        "(server_address, server_port, database) IN ("
        f"SELECT (server_address, server_port, database) FROM mongo_commands WHERE {_DONE} AND {_DROPS})))"
    },
    suspects=AnyRow("mongo_commands", f"{_DROPS}"),
)
