"""MON130 work-done-twice: two clients insert the same documents, and one of them is refused each time.

Finds
    Inserts that were refused as duplicate keys because another client had inserted a document with the same _id.

Why it matters
    Two instances do the same work: a job that was started twice, a schedule that runs on each host, a queue whose
    messages go to both. The duplicate key keeps the data right; all else that they do (mails, payments, files) happens
    twice.

How it decides
    An insert of one document is answered with a duplicate key (11000), and an insert of another client (address and
    name) with the same _id was acknowledged before it in the capture. At least 5 of them (least) between the same two,
    and half of what the second one inserts there (share). One finding for each pair and collection.

False alarms
    Clients that race for a lock by inserting it.

References
    MongoDB manual: unique indexes, error 11000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    TITLE_NAME,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    namespace,
)
from wirewitness.analyser.mongo.rules.use import client_of


def detect(frames: Frames, *, least: int = 5, share: float = 0.5) -> Iterator[Finding]:
    """One finding for each two clients of this collection."""
    first: dict[int, Row] = {}
    refused: dict[tuple[Any, ...], list[tuple[Row, Row]]] = {}
    sent: dict[tuple[Any, ...], int] = {}
    for row in rows_of(frames["mongo_commands"]):
        sent[client_of(row)] = sent.get(client_of(row), 0) + 1
        document = int(row["document_ids"][0])
        if row["write_errors"]:
            before = first.get(document)
            if before is not None and client_of(before) != client_of(row):
                refused.setdefault((client_of(before), client_of(row)), []).append((before, row))
        elif row["n"]:
            first.setdefault(document, row)
    for (_, second), pairs in refused.items():
        if len(pairs) >= max(least, share * sent[second]):
            yield _finding(pairs)


def _finding(pairs: Sequence[tuple[Row, Row]]) -> Finding:
    one, other = pairs[0]
    later = [(row["ts"] - before["ts"]) / NS_PER_MS for before, row in pairs]
    place = namespace(other)
    return command_finding(
        RULE,
        [row for pair in pairs for row in pair],
        severity="warning",
        subject={**client_key(other), "where": place},
        title=f"Both insert the same into {printable(place or '?', TITLE_NAME)}: {client_title(one)} and "
        f"{client_title(other)}, {len(pairs):,} times",
        sentence=(
            f"{sentence_start(client_text(one))} and {client_text(other)} insert the same documents into {place} at "
            f"{server_text(other)}: {count(len(pairs), 'insert')} of the second one "
            f"{'was' if len(pairs) == 1 else 'were'} refused as duplicate keys, since the first one had inserted that "
            f"_id {ms_text(abs(median(later)))} before (median)."
        ),
        next_step=(
            "Look whether a job runs twice (two schedules, two instances without a lock, two consumers of one "
            "message), and stop one of them."
        ),
        numbers={
            "duplicates": len(pairs),
            "records_again": len(pairs),
            "later_ms": round(median(later), 3),
            "where": place,
            "refused_writes": len(pairs),
            "clients": [client_numbers(row, inserts=len(pairs)) for row in (one, other)],
        },
    )


_ONE = "command = 'insert' AND documents_sent = 1 AND len(document_ids) = 1 AND ts_response IS NOT NULL"
_REFUSED = f"{_ONE} AND list_contains(write_error_codes, 11000)"
_PLACE = "database, collection"
RULE = Rule(
    code="MON130",
    question="concurrent",
    name="work-done-twice",
    severity="warning",
    confidence="high",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "document_ids", "write_errors", "n")},
    partition_by=("database", "collection"),
    detect=detect,
    rows={
        "mongo_commands": f"{_ONE} AND ({_PLACE}) IN (SELECT ({_PLACE}) FROM mongo_commands WHERE {_REFUSED} "
        f"GROUP BY {_PLACE} HAVING count(*) >= 5)"
    },
)
