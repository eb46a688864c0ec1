"""MON113 large-reply: replies that carry very much.

Finds
    Commands of one shape whose replies are larger than 1 MiB; finds without a projection among them.

Why it matters
    Large replies fill the network and the memory of the application, and hold a connection of the pool for as long
    as they take. Often only a few fields of the documents are used, or the list was never meant to grow that long.

How it decides
    Size of a reply before compression, per server, database, collection, command and shape, above 1 MiB
    (reply_bytes). An exhaust stream counts by its average reply. Info: a job that reads everything is free to do
    so.

False alarms
    Exports and backups.

References
    MongoDB manual: projection of find, batchSize; a batch holds up to 16 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.words import times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    MOST_LISTED,
    by_client,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
    command_title,
    namespace,
    shape_text,
)

_MIB = 1 << 20


def detect(frames: Frames, *, reply_bytes: int = _MIB) -> Iterator[Finding]:
    """At most one finding for this shape."""
    large = [row for row in rows_of(frames["mongo_commands"]) if _size(row) > reply_bytes]
    if large:
        yield _finding(large, reply_bytes)


def _size(row: Row) -> float:
    """Bytes of a reply as the application gets it."""
    size = row["response_uncompressed_bytes"] or row["response_bytes"] or 0
    return float(size) / max(1, row["replies"] or 1)


def _finding(rows: list[Row], limit: int) -> Finding:
    largest = max(rows, key=_size)
    size = _size(largest)
    bare = largest["command"] == "find" and largest["has_projection"] is False
    documents = sum(row["documents_returned"] or 0 for row in rows)
    return command_finding(
        RULE,
        rows,
        severity="info",
        subject={
            "server": server_of(largest),
            "command": command_text(largest),
            "shape_id": largest["shape_id"],
        },
        title=f"Replies of up to {size / _MIB:.1f} MiB: {command_title(largest)}, to {client_title(largest)}",
        sentence=(
            f"At {server_text(largest)}, {command_text(largest)} got replies of more than {limit / _MIB:g} MiB "
            f"{times(len(rows))}, at most {size / _MIB:.1f} MiB, {documents:,} documents in total"
            f"{', without a projection' if bare else ''}. The largest went to {client_text(largest)}."
            f"{shape_text(largest['query_shape'])}"
        ),
        next_step=(
            "Ask for the fields that are needed (projection) and for a page at a time (limit)."
            if bare
            else "Look at whether the application needs all of it; a limit or a smaller batchSize spreads the load."
        ),
        numbers={
            "replies": len(rows),
            "largest_bytes": round(size),
            "bytes": round(sum(map(_size, rows))),
            "documents": documents,
            "has_projection": largest["has_projection"],
            "query_shape": largest["query_shape"],
            "where": namespace(largest),
            "clients": [
                client_numbers(held[0], replies=len(held), largest_bytes=round(max(map(_size, held))))
                for held in by_client(rows)[:MOST_LISTED]
            ],
        },
    )


RULE = Rule(
    code="MON113",
    question="growing",
    name="large-reply",
    severity="info",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "query_shape", "has_projection", "documents_returned", "replies", "response_bytes",
            "response_uncompressed_bytes",
        ),
    },
    partition_by=("server_address", "server_port", "database", "collection", "command", "shape_id"),
    detect=detect,
    rows={"mongo_commands": "coalesce(response_uncompressed_bytes, response_bytes) > 1048576"},
)  # fmt: skip
