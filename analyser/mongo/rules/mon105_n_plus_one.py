"""MON105 n-plus-one: one query for each row instead of one for all, or one batch for each document.

Finds
    Runs of the same query with other values, one after the other or as a burst; cursors that are read in very small
    batches.

Why it matters
    Each query is quick and no slow-query log shows it, but twenty ways to the server take twenty times as long as
    one. It grows with the data: what is fine with 20 rows takes a page down with 2000.

How it decides
    At least 20 (queries_least) find, aggregate, count or distinct commands of one application and one shape, with
    values that differ, that bring at most 10 documents each on average. One after the other, over whatever connections,
    each begun within some ms of the answer before it, or within a round trip where the way is long, and never two at
    once: so much so that users who come by themselves would do it with a chance of less than one in 100,000 (chance) at
    this rate, one in 1,000 behind a list of about as many documents. Without such a list they make at least half
    (share_least) of what the application did in that time. Or as a burst over a pool, behind one list of as many
    documents. For batches: at least 20 getMores for each query that opened a cursor (get_mores_least) on one connection
    and collection, which brought at most 10 documents (small_batch) each on average; 5 for each (tiny_least), and 20 in
    all, where they brought one or two (tiny_batch). Cursors that wait for news (tailable, change streams) are left out,
    and so are queries of a shape that one host sent both on connections of a known application and on others whose
    beginning is not in the capture: nobody knows whose these are, nor what else was under way.

False alarms
    A service with one connection whose only work is to look up one document at a time, always busy.

References
    Heuristic. MongoDB manual: $in, $lookup; batchSize of find (101 documents in the first batch, then up to 16
    MiB).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.columns import Integers
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame, numbered, pairs, places_of
from wirewitness.analyser.engine.rules.frame_rows import row_at
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.lookups import Limits, LookupRun, lookup_runs
from wirewitness.analyser.mongo.rules.rows import (
    CLIENT_KEY,
    COMMAND_COLUMNS,
    HELLOS,
    TITLE_NAME,
    WAITING,
    application_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
    command_title,
    namespace,
    shape_text,
)


def detect(
    frames: Frames,
    *,
    queries_least: int = 20,
    share_least: float = 0.5,
    chance: float = 0.00001,
    get_mores_least: int = 20,
    small_batch: float = 10.0,
    tiny_least: int = 5,
    tiny_batch: float = 2.0,
) -> Iterator[Finding]:
    """At most one finding for each shape, and for each collection read in small batches, of this application."""
    frame = frames["mongo_commands"]
    for runs in lookup_runs(frame, Limits(queries_least, share_least, chance)):
        yield _one_by_one(frame, runs)
    limits = (get_mores_least, small_batch), (tiny_least, tiny_batch)
    for storms in _small_batches(frame, get_mores_least, limits):
        yield _storm(frame, storms)


def _small_batches(frame: Frame, least: int, limits: tuple[tuple[int, float], ...]) -> Iterator[list[Integers]]:
    """getMores on one collection where there are too many with too little in them: their places, by connection.

    least: in all. limits: how many for each query, with how many documents at most.
    """
    command = frame["command"].texts()
    is_get = command.equal("getMore")
    if np.count_nonzero(is_get) < least:
        return
    opens = frame["cursor_id"].is_known() & ~is_get & ~command.equal("killCursors")
    database, collection, flow = (frame[name].texts().codes for name in ("database", "collection", "flow_id"))
    namespaces = pairs(database, collection)
    own = numbered(pairs(namespaces, flow))
    opened = np.maximum(np.bincount(own[opens], minlength=len(own)), 1)
    documents = frame["documents_returned"].floats()
    found: dict[int, list[Integers]] = {}
    at = np.flatnonzero(is_get)
    for places in places_of(own[at]):
        gets = at[places]
        brought = documents[gets][~np.isnan(documents[gets])]
        if len(gets) < least or not len(brought):
            continue
        queries = opened[own[gets[0]]]
        if any(len(gets) >= each * queries and brought.sum() <= small * len(brought) for each, small in limits):
            found.setdefault(int(namespaces[gets[0]]), []).append(gets)
    yield from found.values()


def _one_by_one(frame: Frame, runs: list[LookupRun]) -> Finding:
    place, worst = max(enumerate(runs), key=lambda one: one[1].different)
    rows = frame.take(worst.places)
    first = row_at(rows, 0)
    latencies = frame["latency_ms"].floats(0.0)
    took = [_took_ms(frame, run) for run in runs]
    worst_ms = took[place]
    # One query for each run takes about as long as one of its lookups.
    wasted_ms = sum(took) - sum(float(np.median(latencies[run.places])) for run in runs)
    lookups = sum(len(run.places) for run in runs)
    connections = len(rows["flow_id"].texts().names)
    in_all = f" This happened {count(len(runs), 'time')}, with {lookups:,} commands in total." if len(runs) > 1 else ""
    return command_finding(
        RULE,
        rows,
        severity="warning",
        confidence="medium",
        subject={**application_key(first), "shape_id": first["shape_id"]},
        title=(
            f"{len(rows):,} lookups {'at once' if worst.at_once else 'one by one'}: {command_title(first)}, by "
            f"{client_title(first)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} sent {command_text(first)} {len(rows)} times within "
            f"{ms_text(worst_ms)} to {server_text(first)}, {_way(worst, connections)}. "
            f"It asked for {worst.different} different values{_listed(frame, worst)}.{in_all} It waited "
            f"{ms_text(sum(took))}, {ms_text(max(wasted_ms, 0))} longer than one query for all would take."
            f"{shape_text(first['query_shape'])}"
        ),
        next_step=(
            "Look in the application for a query inside a loop (a lazy reference of an object mapper): ask once with "
            "$in, or with $lookup."
        ),
        numbers={
            "kind": "one by one",
            "commands": len(rows),
            "different_values": worst.different,
            "at_once": worst.at_once,
            "runs": len(runs),
            "lookups": lookups,
            "took_ms": round(worst_ms, 3),
            "waited_ms": round(sum(took), 3),
            "wasted_ms": round(max(wasted_ms, 0.0), 3),
            "connections": connections,
            "query_shape": first["query_shape"],
            "where": namespace(first),
            "clients": [client_numbers(first, commands=lookups, connections=connections)],
        },
    )


def _took_ms(frame: Frame, run: LookupRun) -> float:
    """From its first request to its last answer."""
    sent, answered = (frame[name].numbers()[run.places] for name in ("ts", "ts_response"))
    return (int(max(sent.max(), answered.max())) - int(sent[0])) / NS_PER_MS


def _way(run: LookupRun, connections: int) -> str:
    over = "on one connection" if connections == 1 else f"over {connections} connections"
    return f"as one burst {over}" if run.at_once else f"one after the other {over}"


def _listed(frame: Frame, run: LookupRun) -> str:
    """The list that it asks about."""
    if run.listed is None:
        return ""
    row = row_at(frame, run.listed)
    return f", behind a {command_text(row)} that returned {count(row['documents_returned'], 'document')}"


def _storm(frame: Frame, storms: list[Integers]) -> Finding:
    rows = frame.take(max(storms, key=len))
    first = row_at(rows, 0)
    documents = int(rows["documents_returned"].floats(0.0).sum())
    return command_finding(
        RULE,
        rows,
        severity="warning",
        confidence="medium",
        subject={**application_key(first), "where": namespace(first)},
        title=(
            f"Small batches: {count(len(rows), 'getMore')} for {documents:,} documents of "
            f"{printable(namespace(first) or '?', TITLE_NAME)}, by {client_title(first)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} read {namespace(first) or 'a collection'} from "
            f"{server_text(first)} in very small batches: {count(len(rows), 'getMore')} for {documents:,} "
            f"documents on one connection.{_more(len(storms))}"
        ),
        next_step="Look for a small batchSize in the application; without one a batch holds up to 16 MiB.",
        numbers={
            "kind": "small batches",
            "get_mores": len(rows),
            "documents": documents,
            "connections": len(storms),
            "clients": [client_numbers(first, get_mores=len(rows), connections=len(storms))],
        },
    )


def _more(connections: int) -> str:
    return "" if connections == 1 else f" {count(connections - 1, 'more connection')} did the same."


# Queries of a shape that a host sent on connections of which some tell their application and others do not.
_TELLS = "coalesce(app_name, driver) IS NOT NULL"
_KNOWN_IN_PART = f"""coalesce((server_address, server_port, client_address, shape_id) IN (
        SELECT (server_address, server_port, client_address, shape_id) FROM mongo_commands
        WHERE shape_id IS NOT NULL GROUP BY server_address, server_port, client_address, shape_id
        HAVING bool_or({_TELLS}) AND NOT bool_and({_TELLS})), false)"""

RULE = Rule(
    code="MON105",
    question="repeated",
    name="n-plus-one",
    severity="warning",
    confidence="medium",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "query_shape", "shape_id", "literals_id", "latency_ms", "cursor_id", "documents_returned",
        ),
        "mongo_cursors": ("cursor_id",),
    },
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={
        "mongo_commands": f"command NOT IN {HELLOS} AND status <> 'orphan' AND NOT {WAITING} AND NOT {_KNOWN_IN_PART}",
        "mongo_cursors": "tailable",
    },
    suspects=(
        "SELECT server_address, server_port, client_address, app_name, driver FROM r_mongo_commands GROUP BY "
        "server_address, server_port, client_address, app_name, driver, CASE command WHEN 'getMore' THEN flow_id END, "
        "command, CASE command WHEN 'getMore' THEN collection ELSE shape_id END HAVING count(*) >= 20"
    ),
    signs={"mongo_commands": "count(*) >= 20"},
)  # fmt: skip
