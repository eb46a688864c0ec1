"""MON123 documents-not-stored: documents of inserts that were never tried, and writes without a reply that were lost.

Finds
    Ordered inserts that stopped at an error, with documents behind it that nobody sent again; writes with w: 0 of which
    the capture shows that they were not carried out.

Why it matters
    An ordered insert of a thousand documents that stops at the third one loses 997 without naming them: the reply tells
    one error. A write with w: 0 gets no reply at all, whatever the server does with it.

How it decides
    ordered: the reply to an acknowledged insert outside of transactions counts fewer documents, stored and refused
    together, than were sent; or that to a bulkWrite names a statement with others behind it at which it stopped.
    Documents whose _id comes again in a later insert of the same application are not counted;
    where ids are not known, a later insert of as many documents as were left counts as the same ones.
    unacknowledged: an insert with w: 0 of a document with an _id that was inserted before (and not deleted since), that
    a find by _id did not return 50 ms or more later (late_ms), before anybody deleted there; or any write with w: 0 to
    a member that is no primary, as its hello said. A warning. Other writes with w: 0, from 20 of them on (quiet_least):
    info.

False alarms
    An application that writes the rest of the documents to another server.

References
    MongoDB manual: ordered inserts, bulkWrite, write concern w: 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
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

_WRITES = "('insert', 'update', 'delete', 'findAndModify', 'findandmodify')"
_DELETES = ("delete", "findAndModify", "findandmodify", "bulkWrite", "drop")
_NO_PRIMARY = ("secondary", "arbiter", "other")
_Who = tuple[Any, ...]


class _Later(NamedTuple):
    """Inserts of an application behind a row: the documents, and how many each brought."""

    ids: set[int]
    sizes: set[int | None]


def detect(frames: Frames, *, late_ms: float = 50.0, quiet_least: int = 20) -> Iterator[Finding]:
    """For each application at most one finding of each kind on this collection."""
    rows = rows_of(frames["mongo_commands"])
    stopped: dict[_Who, list[tuple[Row, int]]] = {}
    later: dict[_Who, _Later] = {}
    untried: list[tuple[Row, int]] = []
    for row in reversed(rows):
        if (left := _untried(row)) and (left := _still_untried(row, left, later.get(_who(row), _Later(set(), set())))):
            untried.append((row, left))
        if row["command"] in ("insert", "bulkWrite"):
            inserts = later.setdefault(_who(row), _Later(set(), set()))
            inserts.ids.update(_ids(row))
            inserts.sizes.add(row["documents_sent"])
    for row, left in reversed(untried):
        stopped.setdefault(_who(row), []).append((row, left))
    for found in stopped.values():
        yield _stopped(found)
    quiet: dict[_Who, list[Row]] = {}
    for row in rows:
        if row["unacknowledged"] and row["command"] not in ("find", "drop"):
            quiet.setdefault(_who(row), []).append(row)
    every = _lost(rows, quiet, late_ms) if quiet else {}
    for who, own in quiet.items():
        lost = every.get(who, {})
        if lost or len(own) >= quiet_least:
            yield _quiet(own, lost)


def _who(row: Row) -> _Who:
    return tuple(row[name] for name in ("client_address", "app_name", "driver", "server_address", "server_port"))


def _untried(row: Row) -> int:
    if row["command"] == "bulkWrite" and row["autocommit"] is not False:
        return int(row["untried"] or 0)
    if row["command"] != "insert" or row["unacknowledged"] or not row["ok"] or row["autocommit"] is False:
        return 0
    return max((row["documents_sent"] or 0) - (row["n"] or 0) - (row["write_errors"] or 0), 0)


def _ids(row: Row) -> list[int]:
    return [] if row["document_ids"] is None else [int(one) for one in row["document_ids"]]


def _still_untried(row: Row, left: int, later: _Later) -> int:
    """Those that no later insert of the application brings."""
    ids = _ids(row)[-left:] if len(_ids(row)) == row["documents_sent"] else []
    if not ids:
        return 0 if left in later.sizes else left
    return sum(one not in later.ids for one in ids)


def _lost(rows: Sequence[Row], quiet: Mapping[_Who, Sequence[Row]], late_ms: float) -> dict[_Who, dict[str, list[Row]]]:
    """Unacknowledged writes of which the capture shows that they were lost, by whose they are and how."""
    found: dict[_Who, dict[str, dict[str, Row]]] = {}

    def add(row: Row, how: str) -> None:
        found.setdefault(_who(row), {}).setdefault(how, {})[row["exchange_id"]] = row

    for own in quiet.values():
        for row in own:
            if row["server_role"] in _NO_PRIMARY:
                add(row, f"went to a member that is {row['server_role']}, not primary")
    # By _id: unacknowledged inserts, and what is stored, as far as the capture tells.
    inserts: dict[int, Row] = {}
    there: set[int] = set()
    for row in rows:
        if row["command"] in _DELETES and not (row["command"] == "delete" and row["n"] == 0):
            there.clear()
            inserts.clear()
        elif row["command"] == "insert":
            ids = _ids(row)
            if row["unacknowledged"] and not there.isdisjoint(ids):
                add(row, "have an _id that was stored already")
                continue
            if row["unacknowledged"]:
                inserts.update(dict.fromkeys(ids, row))
            if row["unacknowledged"] or (row["status"] == "ok" and row["ts_response"] is not None):
                there.update(ids)
        elif row["command"] == "find" and row["documents_returned"] == 0 and inserts:
            insert = next((inserts[one] for one in _ids(row) if one in inserts), None)
            if insert is not None and row["ts"] - insert["ts"] >= late_ms * NS_PER_MS:
                add(insert, "were not found later by their _id")
                there.difference_update(_ids(row))
    return {who: {how: [*of.values()] for how, of in hows.items()} for who, hows in found.items()}


def _stopped(found: Sequence[tuple[Row, int]]) -> Finding:
    rows, left = [row for row, _ in found], sum(count for _, count in found)
    first, is_bulk = rows[0], rows[0]["command"] == "bulkWrite"
    sent = count(len(rows), *(("bulkWrite in order", "bulkWrites in order") if is_bulk else ("ordered insert",)))
    behind = count(left, "statement" if is_bulk else "document")
    names = listed(name for row in rows for name in (row["write_error_names"] or row["error_name"] or "").split(","))
    place = namespace(first)
    return command_finding(
        RULE,
        rows,
        severity="warning",
        subject={**client_key(first), "where": place, "kind": "ordered"},
        title=f"{behind} never tried: {printable(place or '?', TITLE_NAME)}, by {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} sent {sent} into {place} at "
            f"{server_text(first)} that stopped at an error{f' ({names})' if names else ''}: "
            f"{behind} behind it {'was' if left == 1 else 'were'} neither carried out nor refused, and nobody sent "
            "them again in this capture."
        ),
        next_step=(
            "Send them with ordered=false where documents do not depend on each other, and look at what the error "
            "of the driver says (BulkWriteError, writeErrors) to send the rest again."
        ),
        numbers={
            "kind": "ordered",
            "where": place,
            "inserts": len(rows),
            "documents": left,
            "records_lost": left,
            "refused_writes": left,
            "clients": [client_numbers(first, documents=left)],
        },
    )


def _quiet(own: Sequence[Row], lost: dict[str, list[Row]]) -> Finding:
    first = next(iter(lost.values()))[0] if lost else own[0]
    gone = {row["exchange_id"]: row for rows in lost.values() for row in rows}
    place = namespace(first)
    how = "; ".join(f"{len(rows):,} {words}" for words, rows in lost.items())
    severity: Severity = "warning" if lost else "info"
    return command_finding(
        RULE,
        [*gone.values()] or own,
        severity=severity,
        subject={**client_key(first), "where": place, "kind": "unacknowledged"},
        title=(
            f"{count(len(gone) or len(own), 'write')} with w: 0{' lost' if gone else ''}: "
            f"{printable(place or '?', TITLE_NAME)}, by {client_title(first)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} sent {count(len(own), 'write')} to {place} at {server_text(first)} "
            f"without asking for a reply (w: 0){f', of which {how}' if how else ''}: nobody is told their "
            "errors."
        ),
        next_step="Ask for an acknowledgement (w: 1 or majority); w: 0 is for what may be lost.",
        numbers={
            "kind": "unacknowledged",
            "where": place,
            "writes": len(own),
            "lost": len(gone),
            "records_lost": len(gone),
            "refused_writes": len(gone),
            "clients": [client_numbers(first, writes=len(own))],
        },
    )


_PLACE = "database, collection"
_STOPPED = (
    "untried > 0 OR command = 'insert' AND unacknowledged IS NOT TRUE AND ok AND "
    "documents_sent > coalesce(n, 0)::HUGEINT + coalesce(write_errors, 0)"
)
_QUIET = f"unacknowledged AND command IN {_WRITES}"
_THERE = f"({_PLACE}) IN (SELECT ({_PLACE}) FROM mongo_commands WHERE ({_STOPPED}) OR ({_QUIET}))"
RULE = Rule(
    code="MON123",
    question="repeated",
    name="documents-not-stored",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "document_ids", "documents_sent", "documents_returned", "n", "untried", "write_errors",
            "write_error_names", "error_name", "unacknowledged", "status", "ok", "autocommit", "server_role",
        ),
    },
    partition_by=("database", "collection"),
    detect=detect,
    rows={
        "mongo_commands": f"{_THERE} AND (command IN {_WRITES} OR command IN ('bulkWrite', 'drop') OR "
        "(command = 'find' AND documents_returned = 0 AND len(document_ids) = 1))"
    },
    suspects=AnyRow("mongo_commands", f"({_STOPPED}) OR ({_QUIET})"),
)  # fmt: skip
