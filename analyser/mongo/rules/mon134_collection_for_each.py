"""MON134 collection-for-each: an application writes to ever more collections.

Finds
    Applications that write to a new collection for each visitor, order, day or the like.

Why it matters
    Each collection costs the server files, memory and an entry in its catalogue, and each has indexes of its own. With
    some ten thousand of them starts, checkpoints and backups take minutes, and nothing can be asked over all of them.

How it decides
    An application wrote to at least 50 collections (least) of one database. Four fifths of them (share) got all their
    writes at once: no other collection was written to by it between the first and the last one. They came over all the
    time that it wrote there: the middle one neither in the first nor in the last quarter (early). So a fixed set of
    collections that is used in turn is none, nor is a restore that fills one after the other with many commands: at
    most three writes (writes_most) in the middle.

False alarms
    A copy of a database with many small collections.

What it cannot tell
    Whether a collection was there before.

References
    MongoDB manual: "Reduce the Number of Collections" (schema design anti-patterns).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, seconds_text
from wirewitness.analyser.base.words import printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import CLIENT_KEY, TITLE_NAME, client_text, client_title, listed
from wirewitness.analyser.mongo.rules.use import USE, USE_COLUMNS, use_finding


def detect(
    frames: Frames, *, least: int = 50, share: float = 0.8, writes_most: int = 3, early: float = 0.25
) -> Iterator[Finding]:
    """At most one finding for each database that this application writes to."""
    databases: dict[str | None, list[Row]] = {}
    for row in rows_of(frames[USE]):
        databases.setdefault(row["database"], []).append(row)
    for rows in databases.values():
        held: dict[str, list[Row]] = {}
        for row in rows:
            held.setdefault(row["collection"], []).append(row)
        spans = sorted(
            (min(row["ts"] for row in own), max(row["ts_last"] or row["ts"] for row in own)) for own in held.values()
        )
        writes = median(sum(row["commands"] for row in own) for own in held.values())
        if len(spans) < least or writes > writes_most or _alone(spans) < share * len(spans):
            continue
        lasted = max(spans[-1][0] - spans[0][0], 1)
        if early <= (spans[len(spans) // 2][0] - spans[0][0]) / lasted <= 1 - early:
            yield _finding(rows, len(spans), lasted / NS_PER_S)


def _alone(spans: Sequence[tuple[int, int]]) -> int:
    """How many of these end before the next one begins."""
    begins = [begin for begin, _ in spans[1:]]
    return sum(end <= begin for (_, end), begin in zip(spans, begins, strict=False)) + 1


def _finding(rows: Sequence[Row], collections: int, lasted_s: float) -> Finding:
    ordered = sorted(rows, key=lambda row: (row["ts"], row["exchange_id"]))
    first, database = ordered[0], ordered[0]["database"] or "?"
    names = listed((row["collection"] for row in ordered), 3)
    return use_finding(
        RULE,
        ordered[:25],
        severity="warning",
        title=f"A collection for each: {client_title(first)} writes to {collections:,} collections of "
        f"{printable(database, TITLE_NAME)}",
        sentence=(
            f"{sentence_start(client_text(first))} wrote to {collections:,} collections of {printable(database, 80)} "
            f"at {server_text(first)} in {seconds_text(round(lasted_s * NS_PER_S))}, to each but once ({names}): it "
            "makes a new collection for each piece of its data."
        ),
        next_step=(
            "Keep these documents in one collection, with what is now in its name as a field and an index on it; drop "
            "the collections that nobody reads."
        ),
        numbers={
            "database": first["database"],
            "collections": collections,
            "left_behind": collections,
            "commands": sum(row["commands"] for row in rows),
            "lasted_s": round(lasted_s, 3),
        },
    )


_WRITES = "('insert', 'update', 'create', 'createIndexes', 'bulkWrite')"
RULE = Rule(
    code="MON134",
    question="growing",
    name="collection-for-each",
    severity="warning",
    confidence="medium",
    reads={USE: USE_COLUMNS},
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={USE: f"command IN {_WRITES} AND collection IS NOT NULL AND succeeded > 0"},
    suspects=f"SELECT {', '.join(CLIENT_KEY)} FROM r_{USE} GROUP BY ALL HAVING count(DISTINCT collection) >= 50",
)
