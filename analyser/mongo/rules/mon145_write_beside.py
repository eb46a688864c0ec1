"""MON145 write-beside-transaction: a write that belongs to a transaction is sent outside of it, each time.

Finds
    Applications that send one of the writes of their transactions without the transaction's session, while the
    transaction is open. Question: who acts on one thing at the same time.

Why it matters
    All commands succeed. The write is stored at once and for everybody, whatever becomes of the transaction: when that
    is aborted, all else is taken back and this write stays.

How it decides
    Transactions of an application that do not overlap with another one of it count. While one of them is open and none
    of its commands waits for an answer, the application sends exactly one write of a kind (command, collection, shape)
    that is no part of a transaction. So it does in 8 (least) of its transactions or more, nine tenths (share) of
    them; at most one in ten (else_where) writes of this kind is sent while none is open. A warning where a
    transaction was aborted after such a write, and the same collection is written within transactions, too, by this
    application or by others; info else, because what is to survive an abort, such as an audit trail, is written so on
    purpose.

False alarms
    An audit trail in a collection that others write within transactions.

What it cannot tell
    Which writes were meant to be one.

References
    MongoDB manual, Transactions: each operation must be given the session; drivers' specification of sessions: an
    operation without one gets a session of its own. A transaction's commands have autocommit false.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    TITLE_NAME,
    by_client,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
    last_seen,
    namespace,
    shape_text,
)

_WRITES = ("insert", "update", "delete", "findAndModify", "findandmodify", "bulkWrite")
_ENDS = ("commitTransaction", "abortTransaction")
_IN_ONE = "coalesce(NOT autocommit, false)"


class _Beside(NamedTuple):
    """A write that was sent while a transaction was open. last: the transaction's last command."""

    write: Row
    last: Row


def detect(frames: Frames, *, least: int = 8, share: float = 0.9, else_where: float = 0.1) -> Iterator[Finding]:
    """One finding for each application and kind of write at this server."""
    rows = rows_of(frames["mongo_commands"])
    within = {namespace(row) for row in rows if _is_within(row) and row["command"] in _WRITES}
    for own in by_client(rows):
        transactions = _apart(_transactions(own))
        if len(transactions) < least:
            continue
        outside = [row for row in own if _is_write_alone(row)]
        sent = Counter(map(_kind, outside))
        for kind, found in _beside(transactions, outside).items():
            if len(found) >= max(least, share * len(transactions)) and len(found) >= (1 - else_where) * sent[kind]:
                yield _finding(found, len(transactions), is_shared=namespace(found[0].write) in within)


def _is_within(row: Row) -> bool:
    return row["autocommit"] is False


def _is_write_alone(row: Row) -> bool:
    return row["command"] in _WRITES and row["autocommit"] is None and row["ts_response"] is not None


def _kind(row: Row) -> tuple[object, ...]:
    return row["command"], row["database"], row["collection"], row["shape_id"]


def _transactions(rows: Sequence[Row]) -> list[list[Row]]:
    """The commands of each transaction that ended, in their order. rows: in the order of time."""
    held: dict[tuple[object, object], list[Row]] = {}
    for row in rows:
        if _is_within(row) and row["lsid"] is not None and row["txn_number"] is not None:
            held.setdefault((row["lsid"], row["txn_number"]), []).append(row)
    return [one for one in held.values() if one[-1]["command"] in _ENDS]


def _apart(transactions: Sequence[list[Row]]) -> list[list[Row]]:
    """Those during which no other one is open."""
    found, until = list[list[Row]](), 0
    for place, one in enumerate(transactions):
        after = transactions[place + 1][0]["ts"] if place + 1 < len(transactions) else None
        end = last_seen(one[-1])
        if until <= one[0]["ts"] and (after is None or end <= after):
            found.append(one)
        until = max(until, end)
    return found


def _beside(transactions: Sequence[list[Row]], outside: Sequence[Row]) -> dict[tuple[object, ...], list[_Beside]]:
    """By kind of write: those of which exactly one was sent in a transaction, between two of its commands."""
    times = [row["ts"] for row in outside]
    found: dict[tuple[object, ...], list[_Beside]] = {}
    for one in transactions:
        sent = outside[bisect_left(times, last_seen(one[0])) : bisect_left(times, one[-1]["ts"])]
        often = Counter(map(_kind, sent))
        begun, ended = [row["ts"] for row in one], [*accumulate(map(last_seen, one), max)]
        for write in sent:
            place = bisect_left(begun, write["ts"])
            is_between = ended[place - 1] <= write["ts"] and last_seen(write) <= begun[place]
            if often[_kind(write)] == 1 and is_between:
                found.setdefault(_kind(write), []).append(_Beside(write, one[-1]))
    return found


def _finding(found: Sequence[_Beside], transactions: int, *, is_shared: bool) -> Finding:
    first = found[0].write
    aborted = [one for one in found if one.last["command"] == "abortTransaction"]
    what = command_text(first)
    stays = (
        f" {len(aborted):,} of these ended with an abort: what this write had stored stays."
        if aborted
        else " No transaction was aborted meanwhile; of one that is, this write would stay."
    )
    shown = sorted([*aborted[:5], *found[:5], found[-1]], key=lambda one: one.write["ts"])
    return command_finding(
        RULE,
        [row for one in shown for row in one],
        severity="warning" if aborted and is_shared else "info",
        subject={**client_key(first), "where": namespace(first) or "?", "command": first["command"]},
        title=f"{sentence_start(printable(what, 2 * TITLE_NAME))} outside of its transaction: {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} sends {what} at {server_text(first)} outside of its transactions, "
            f"without their session, in {count(len(found), 'transaction')} of {transactions:,}, while these are "
            f"open.{stays}{shape_text(first['query_shape'])}"
        ),
        next_step=(
            "Give this call the session of the transaction (session= in PyMongo, { session } in Node.js, the session's "
            "context in Go), if it is to be taken back with the rest."
        ),
        numbers={
            "times": len(found),
            "transactions": transactions,
            "aborted": len(aborted),
            "breaches": len(found),
            "query_shape": first["query_shape"],
            "clients": [client_numbers(first, writes=len(found))],
        },
    )


_USERS = "SELECT client_address FROM mongo_commands WHERE command = 'abortTransaction' OR command = 'commitTransaction'"
RULE = Rule(
    code="MON145",
    question="concurrent",
    name="write-beside-transaction",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (*COMMAND_COLUMNS, "lsid", "txn_number", "autocommit", "shape_id", "query_shape"),
    },
    partition_by=("server_address", "server_port"),
    detect=detect,
    rows={
        "mongo_commands": f"{_IN_ONE} OR (command IN {_WRITES} AND status = 'ok' AND ts_response IS NOT NULL "
        f"AND client_address IN ({_USERS}))"
    },
    suspects=f"SELECT server_address, server_port FROM r_mongo_commands GROUP BY server_address, server_port "
    f"HAVING count(*) FILTER (command IN {_ENDS}) >= 8 AND count(*) FILTER (NOT {_IN_ONE}) >= 8",
    signs={"mongo_commands": "count(*) FILTER (command IN ('commitTransaction', 'abortTransaction')) >= 8"},
)
