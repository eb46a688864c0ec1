"""MON131 same-work-at-once: the same documents are updated by two clients, or by two runs of one program, at once.

Finds
    Two clients, or two connections of one client, that walk over the same documents in the same order at the same time
    and update each of them.

Why it matters
    All of these updates succeed, so nobody is told. What adds to a value ($inc, $push) is added twice; all else that
    belongs to the work (mails, payments) happens twice. A job that takes longer than the time between its starts does
    so, a schedule that runs on each host, or workers that look for work without claiming it.

How it decides
    Updates of one document by its _id, of one shape, that matched it. Two that work: clients (address, name, driver),
    or connections of one client. At least 20 documents (least) were updated by both, four fifths (share) of those of
    the one that updated fewer and half of those of the other; each of them once by each, in the same order (rank
    correlation 0.9, order), and while both were at work. Either the updates are the same, values included; or, of two
    clients, both look for their work with the same find, values included, 10 times or more. So stages of one process,
    of which each waits for another state, are none.

False alarms
    A second pass that is meant, over values that have to be set again.

What it cannot tell
    Whether a client is one process or several.

References
    MongoDB manual: findAndModify (to claim work), atomicity of updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

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
    namespace,
    shape_text,
)
from wirewitness.analyser.mongo.rules.use import client_of

# Those that update most are compared with each other.
_MOST_COMPARED = 40
# Of what one of them updates, so much it updates once only.
_ONCE = 0.9
_Walk = dict[int, Row]


def detect(frames: Frames, *, least: int = 20, share: float = 0.8, order: float = 0.9) -> Iterator[Finding]:
    """For each two clients, and each client with itself, at most one finding on a shape of this collection."""
    rows = rows_of(frames["mongo_commands"])
    asks: dict[tuple[Any, ...], set[tuple[str, str]]] = {}
    shapes: dict[str, list[Row]] = {}
    for row in rows:
        if row["command"] == "update":
            shapes.setdefault(row["shape_id"], []).append(row)
        else:
            asks.setdefault(client_of(row), set()).add((row["shape_id"], row["literals_id"]))
    for updates in shapes.values():
        clients = _walks(updates, client_of, least)
        for one, other in combinations(clients, 2):
            compared(1)
            same = asks.get(client_of(_first(one)), set()) & asks.get(client_of(_first(other)), set())
            both = _both(one, other, least, share, order)
            if both and (same or _equal(one, other, both)):
                yield _finding([one, other], both, bool(same))
        for runs in _runs(updates, least, share, order):
            yield _finding(runs, [*set.intersection(*(set(run) for run in runs))] or [*runs[0]], searched=False)


def _runs(updates: Sequence[Row], least: int, share: float, order: float) -> Iterator[list[_Walk]]:
    """Connections of one client that do the same updates at once."""
    by_client: dict[tuple[Any, ...], list[Row]] = {}
    for row in updates:
        by_client.setdefault(client_of(row), []).append(row)
    for own in by_client.values():
        alike: dict[int, _Walk] = {}
        for one, other in combinations(_walks(own, lambda row: row["flow_id"], least), 2):
            compared(1)
            both = _both(one, other, least, share, order)
            if both and _equal(one, other, both):
                alike |= {id(one): one, id(other): other}
        if alike:
            yield [*alike.values()]


def _walks(updates: Sequence[Row], who: Any, least: int) -> list[_Walk]:
    """The documents of each of those who update each but once, in their order."""
    held: dict[Any, list[Row]] = {}
    for row in updates:
        held.setdefault(who(row), []).append(row)
    found = []
    for rows in sorted(held.values(), key=len, reverse=True)[:_MOST_COMPARED]:
        walk: _Walk = {}
        for row in rows:
            walk.setdefault(int(row["document_ids"][0]), row)
        if len(walk) >= max(least, _ONCE * len(rows)):
            found.append(walk)
    return found


def _first(walk: _Walk) -> Row:
    return next(iter(walk.values()))


def _both(one: _Walk, other: _Walk, least: int, share: float, order: float) -> list[int]:
    """The documents that both updated, while both were at work, in the same order; none where it is not so."""
    both = [document for document in one if document in other]
    few, many = sorted((len(one), len(other)))
    if len(both) < max(least, share * few, 0.5 * many):
        return []
    times = [[walk[document]["ts"] for document in both] for walk in (one, other)]
    if max(min(own) for own in times) >= min(max(own) for own in times):
        return []
    ranks = [np.argsort(np.argsort(np.array(own))) for own in times]
    return both if float(np.corrcoef(ranks[0], ranks[1])[0, 1]) >= order else []


def _equal(one: _Walk, other: _Walk, both: Sequence[int]) -> bool:
    """Are these the same updates, values included?"""
    same = sum(
        one[document]["literals_id"] is not None and one[document]["literals_id"] == other[document]["literals_id"]
        for document in both
    )
    return bool(same >= _ONCE * len(both))


def _finding(walks: Sequence[_Walk], both: Sequence[int], searched: bool) -> Finding:
    ordered = sorted(walks, key=lambda walk: (_first(walk)["ts"], _first(walk)["exchange_id"]))
    one, other = (_first(walk) for walk in ordered[:2])
    place = namespace(one) or "?"
    later = [abs(ordered[1][name]["ts"] - ordered[0][name]["ts"]) / NS_PER_MS for name in both]
    is_one = client_of(one) == client_of(other)
    runs = count(len(walks), "connection")
    who = f"{client_text(one)} does the same updates on {runs} at the same time" if is_one else (
        f"{client_text(one)} and {client_text(other)} do the same work at the same time"
    )  # fmt: skip
    what = "the same find" if searched else "the same values"
    how = f"which both look for with {what}," if searched else f"with {what}"
    title = f"{client_title(one)}, {runs} at once" if is_one else f"{client_title(one)} and {client_title(other)}"
    return command_finding(
        RULE,
        [walk[name] for name in both[:50] for walk in walks if name in walk],
        severity="warning",
        subject={**client_key(other), "where": place, "command": "update"},
        title=f"Same updates twice on {printable(place, TITLE_NAME)}: {title}",
        sentence=(
            f"{sentence_start(who)}: {count(len(both), 'document')} of {place} at {server_text(one)} were updated by "
            f"each of them, in the same order, {how}, {ms_text(median(later))} apart (median). "
            f"All of it succeeded.{shape_text(one['query_shape'])}"
        ),
        next_step=(
            "Let one run at a time (a lock, one schedule for all hosts, a start only when the last run has ended), and "
            "claim each piece of work before it is done: findAndModify, or an update whose filter names the old state."
        ),
        numbers={
            "documents": len(both),
            "runs": len(walks),
            "apart_ms": round(median(later), 3),
            "wasted_writes": len(both) * (len(walks) - 1),
            "records_again": len(both) * (len(walks) - 1),
            "clients": [client_numbers(_first(walk), updates=len(walk)) for walk in ordered][: 1 if is_one else 2],
        },
    )


_UPDATES = (
    "command = 'update' AND status = 'ok' AND documents_sent = 1 AND len(document_ids) = 1 AND n = 1 "
    "AND ts_response IS NOT NULL"
)
_PLACE = "server_address, server_port, database, collection, shape_id"
# Shapes of which many documents were updated more than once.
_TWICE = (
    f"SELECT ({_PLACE}) FROM mongo_commands WHERE {_UPDATES} GROUP BY {_PLACE} "
    "HAVING count(*) >= 40 AND count(DISTINCT flow_id) >= 2 AND count(*) >= 1.2 * count(DISTINCT document_ids[1])"
)
# One of each find that a client sends again and again.
_FINDS = (
    "SELECT min(exchange_id) FROM mongo_commands WHERE command = 'find' AND literals_id IS NOT NULL AND status = 'ok' "
    "GROUP BY server_address, server_port, client_address, app_name, driver, database, collection, shape_id, "
    "literals_id HAVING count(*) >= 10"
)
RULE = Rule(
    code="MON131",
    question="concurrent",
    name="same-work-at-once",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (*COMMAND_COLUMNS, "document_ids", "literals_id", "shape_id", "query_shape"),
    },
    partition_by=("server_address", "server_port", "database", "collection"),
    detect=detect,
    rows={"mongo_commands": f"({_UPDATES} AND ({_PLACE}) IN ({_TWICE})) OR exchange_id IN ({_FINDS})"},
    suspects=(AnyRow("mongo_commands", "command = 'update'")),
)
