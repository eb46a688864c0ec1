"""MON115 stale-read: an application does not find on a secondary what it has just written.

Finds
    Applications that insert a document and ask a secondary for it, which does not have it yet.

Why it matters
    The insert succeeded and the read succeeded: no log shows an error. The application takes what it wrote for lost,
    writes it again, or shows an empty page, now and then, the more often the busier the replica set is.

How it decides
    An insert was acknowledged, and within 5 s (within_s) the same application asks another member for that _id and
    nothing else, and gets no document. That member called itself a secondary in the hello of the connection, or, where
    that is not in the capture, in all others (mongo_servers); or nobody was told what it is, and the request carries a
    read preference that allows for a secondary. A warning from the second time on
    (several), else info. Silent where anybody deleted in that collection, or dropped it, in between. Ids are compared
    by digests of 32 bits; of an insert by those of its first 100 documents.

False alarms
    A document that somebody out of the capture, or an index that lets documents expire, deleted at once.

What it cannot tell
    Whether a document was there where its _id stands behind more than 64 other fields.

References
    MongoDB manual: read preference, causal consistency and read and write concerns, replication lag.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text
from wirewitness.analyser.base.words import printable, sentence_start, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    TITLE_NAME,
    application_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    namespace,
)


class _Stale(NamedTuple):
    """A read that did not find what had been inserted."""

    insert: Row
    find: Row

    @property
    def after_ms(self) -> float:
        """How long after the insert was acknowledged."""
        return float(self.find["ts"] - self.insert["ts_response"]) / NS_PER_MS


def detect(frames: Frames, *, within_s: float = 5.0, several: int = 2) -> Iterator[Finding]:
    """At most one finding for each application and member."""
    inserted: dict[tuple[Any, ...], Row] = {}
    deleted: list[int] = []
    found: dict[tuple[Any, ...], list[_Stale]] = {}
    for row in rows_of(frames["mongo_commands"]):
        who = (row["client_address"], row["app_name"], row["driver"])
        if row["command"] == "insert":
            inserted.update(((*who, int(one)), row) for one in row["document_ids"])
        elif row["command"] != "find":
            deleted.append(row["ts"])
        elif (insert := inserted.get((*who, int(row["document_ids"][0])))) is not None:
            stale = _Stale(insert, row)
            if (
                server_text(insert) != server_text(row)
                and 0 <= stale.after_ms <= within_s * 1000
                and not _between(deleted, insert["ts"], row)
            ):
                found.setdefault((*who, server_text(row)), []).append(stale)
    for reads in found.values():
        yield _finding(reads, several)


def _between(deleted: Sequence[int], since: int, find: Row) -> bool:
    """Did anybody delete after that, before the read was answered? Times come sorted."""
    place = bisect_left(deleted, since)
    return place < len(deleted) and deleted[place] <= find["ts"]


def _finding(reads: Sequence[_Stale], several: int) -> Finding:
    first, after = reads[0], [one.after_ms for one in reads]
    known = first.find["server_role"] == "secondary"
    member = f"{'the secondary' if known else 'another member,'} {server_text(first.find)}"
    place = printable(namespace(first.find) or "?", 160)
    return command_finding(
        RULE,
        [row for one in reads for row in one],
        severity="warning" if len(reads) >= several else "info",
        confidence="high" if known and len(reads) >= several else "medium",
        subject={**application_key(first.find), "collection": place},
        title=(
            f"Stale read {times(len(reads))}: {printable(place, TITLE_NAME)} at {server_text(first.find)}, by "
            f"{client_title(first.find)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first.find))} did not find on {member} what it had inserted into {place} at "
            f"{server_text(first.insert)}. This happened {times(len(reads))}, {ms_text(median(after))} after the "
            f"insert was acknowledged{' (median)' if len(reads) > 1 else ''}, {ms_text(max(after))} at the latest."
        ),
        next_step=(
            "Read what was just written from the primary (readPreference primary), or in a causally consistent session "
            "with read and write concern majority; look at the lag of that member "
            "(rs.printSecondaryReplicationInfo())."
        ),
        numbers={
            "reads": len(reads),
            "after_ms": round(median(after), 3),
            "latest_ms": round(max(after), 3),
            "read_preference": first.find["read_preference"],
            "inserted_at": server_text(first.insert),
            "requests_refused": len(reads),
            "where": place,
            "clients": [client_numbers(first.find, reads=len(reads))],
        },
    )


_ALLOWS_SECONDARIES = "('secondary', 'secondaryPreferred', 'nearest')"


def _told(condition: str) -> str:
    """SQL: the hellos of this member, on whichever connections, are so."""
    at = "server_address, server_port"
    return f"({at}) IN (SELECT ({at}) FROM mongo_servers GROUP BY {at} HAVING {condition})"


_ONLY, _NEVER = "bool_and(server_role = 'secondary')", "NOT bool_or(server_role = 'secondary')"
_MAY_BE_LATE = (
    f"server_role = 'secondary' OR (server_role IS NULL AND ({_told(_ONLY)} "
    f"OR (read_preference IN {_ALLOWS_SECONDARIES} AND NOT {_told(_NEVER)})))"
)
_DELETES = "('delete', 'findAndModify', 'findandmodify', 'bulkWrite', 'drop', 'renameCollection')"

RULE = Rule(
    code="MON115",
    question="went back",
    name="stale-read",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (*COMMAND_COLUMNS, "document_ids", "server_role", "read_preference"),
    },
    asks=("mongo_servers",),
    partition_by=("database", "collection"),
    detect=detect,
    rows={
        "mongo_commands": "(command = 'find' AND status = 'ok' AND documents_returned = 0 AND len(document_ids) = 1 "
        f"AND ({_MAY_BE_LATE})) OR (command = 'insert' AND status = 'ok' AND error_code = 0 AND ts_response IS NOT "
        f"NULL AND len(document_ids) > 0) OR command IN {_DELETES}",
    },
    suspects=f"""
        SELECT database, collection FROM (
            SELECT database, collection, client_address, ts, unnest(document_ids) AS id FROM r_mongo_commands
            WHERE command = 'find') AS asked
        SEMI JOIN (
            SELECT database, collection, client_address, ts_response, unnest(document_ids) AS id FROM r_mongo_commands
            WHERE command = 'insert') AS made
        ON asked.database = made.database AND asked.collection = made.collection AND asked.id = made.id
            AND asked.client_address = made.client_address
            AND asked.ts BETWEEN made.ts_response AND made.ts_response + {5 * NS_PER_S}""",
    signs={"mongo_commands": "bool_or(command = 'find' AND len(document_ids) > 0) AND bool_or(command = 'insert')"},
)
