"""MON128 batch-thrown-away: cursors are killed after their first batch, again and again.

Finds
    Queries without a limit whose cursor the application closes with killCursors before it asks for more.

Why it matters
    A driver asks for 101 documents at first, or for batchSize. An application that needs one of them and closes the
    cursor lets the server read, sort and send a hundred for nothing, and costs a second round trip to kill the cursor.

How it decides
    At least 10 cursors (least) of one shape, four fifths of those that this application opened (share), ended by
    killCursors without a getMore. They returned 10 documents (documents_least) or more each, on the average. Tailable
    cursors and change streams do not count.

False alarms
    An application that reads on until it has found something.

What it cannot tell
    How many of the documents of the batch the application used.

References
    MongoDB manual: cursor.limit(), cursor.batchSize(), singleBatch of the find command, killCursors.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.words import sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    CLIENT_KEY,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_text,
    command_title,
    namespace,
    shape_text,
)

CURSORS = "mongo_cursors"


def detect(frames: Frames, *, least: int = 10, share: float = 0.8, documents_least: float = 10.0) -> Iterator[Finding]:
    """One finding for each shape of this application."""
    shapes: dict[str | None, list[Row]] = {}
    for cursor in rows_of(frames[CURSORS]):
        shapes.setdefault(cursor["shape_id"], []).append(cursor)
    for cursors in shapes.values():
        killed = [one for one in cursors if one["ended_by"] == "killed" and not one["get_mores"]]
        documents = sum(one["documents"] for one in killed)
        if len(killed) >= max(least, share * len(cursors)) and documents >= documents_least * len(killed):
            yield _finding(killed, len(cursors), documents)


def _finding(killed: list[Row], opened: int, documents: int) -> Finding:
    first = killed[0]
    size = sum(one["response_bytes"] for one in killed)
    return RULE.finding(
        severity="warning",
        subject={**client_key(first), "where": namespace(first), "shape_id": first["shape_id"]},
        title=f"{len(killed):,} cursors killed after one batch: {command_title(first)}, by {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} opened {opened:,} cursors with {command_text(first)} at "
            f"{server_text(first)} and killed {len(killed):,} of them after the first batch: {documents:,} documents "
            f"({size / 1000:,.0f} kB) were returned, {documents / len(killed):,.0f} each, and the rest was not wanted."
            f"{shape_text(first['query_shape'])}"
        ),
        next_step="Ask for what is needed: limit (findOne), or a batchSize of that many; then no cursor is left.",
        proof=Proof(
            min(one["ts"] for one in killed),
            max(one["ts_last"] for one in killed),
            (Evidence(None, None, one["exchange_id"]) for one in killed if one["exchange_id"]),
        ),
        numbers={
            "cursors": opened,
            "killed": len(killed),
            "documents": documents,
            "bytes": size,
            "where": namespace(first),
            "query_shape": first["query_shape"],
            "clients": [client_numbers(first, cursors=len(killed))],
        },
    )


RULE = Rule(
    code="MON128",
    question="growing",
    name="batch-thrown-away",
    severity="warning",
    confidence="medium",
    reads={
        CURSORS: (
            "ts", "ts_last", "exchange_id", "ended_by", "command", "database", "collection", "query_shape", "shape_id",
            "get_mores", "documents", "response_bytes", "driver_version",
        ),
    },
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={CURSORS: "tailable IS NOT TRUE AND ts_opened IS NOT NULL"},
    suspects=f"SELECT {', '.join(CLIENT_KEY)} FROM r_{CURSORS} WHERE ended_by = 'killed' AND get_mores = 0 "
    "GROUP BY ALL HAVING count(*) >= 10",
)  # fmt: skip
