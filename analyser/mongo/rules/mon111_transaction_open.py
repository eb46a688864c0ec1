"""MON111 transaction-open: a transaction that was begun and never ended.

Finds
    Transactions of several statements without commitTransaction or abortTransaction.

Why it matters
    An open transaction holds its locks and an old snapshot of the data: writers of the same documents get
    WriteConflict, index builds and collection changes wait, and the server's cache fills. After
    transactionLifetimeLimitSeconds the server aborts it, and the application's work is lost.

How it decides
    A transaction whose outcome is open at the end of what was seen of its client. A warning when it was begun 60 s
    before that or more (open_s; the server's limit, which counts from the start). Info when all connections of the
    client to this server were closed before: the application ended in the middle, and its locks stay until the
    server's limit. Bytes missing from the connections, which may have held the end, make it inconclusive: info, low
    confidence. Those of one application are one finding, with their number; the oldest is told.

False alarms
    A server whose transactionLifetimeLimitSeconds was raised for long jobs. A commit over a connection that the
    capture does not show.

References
    transaction_participant.idl of the server: transactionLifetimeLimitSeconds, 60 by default; driver transactions
    specification.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    MONGO_FLOWS,
    application_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    seen_of,
    version_of,
)


class _Left(NamedTuple):
    """A transaction that was left open. held_ms: for how long it keeps its locks for nothing."""

    row: Row
    commands: list[Row]
    open_ms: float
    idle_ms: float
    held_ms: float


def detect(frames: Frames, *, open_s: float = 60.0) -> Iterator[Finding]:
    """At most one finding for each application of this client, on the transactions that it left open."""
    flows = rows_of(frames["flows"])
    # Of a connection that began later nobody knows whether all was seen in between.
    ends = sorted((flow["ts_first"], flow["observed_until"] or flow["ts_first"]) for flow in flows)
    begun, until = [begin for begin, _ in ends], [*accumulate((last for _, last in ends), max)]
    lossy = any(flow["gap_bytes"] or not flow["bytes_to_client"] for flow in flows)
    gone = bool(flows) and all(flow["closed_by"] is not None for flow in flows)
    commands = {row["exchange_id"]: row for row in rows_of(frames["mongo_commands"])}
    found: dict[tuple[Any, Severity], list[_Left]] = {}
    for row in rows_of(frames["mongo_transactions"]):
        place = bisect_right(begun, row["ts_last"])
        end = max(row["ts_last"], until[place - 1]) if place else row["ts_last"]
        open_ms = (end - row["ts"]) / NS_PER_MS
        seen = seen_of(row, commands)
        if seen and (gone or open_ms >= open_s * 1000):
            severity: Severity = "warning" if open_ms >= open_s * 1000 and not lossy else "info"
            idle_ms = (end - row["ts_last"]) / NS_PER_MS
            # Nobody ends it any more: the server does when its time is over.
            idle_until_aborted_ms = max(idle_ms, open_s * 1000 - (open_ms - idle_ms)) if gone else idle_ms
            held_ms = 0.0 if lossy else round(idle_until_aborted_ms, 3)
            row = {**row, "driver_version": version_of(row, seen)}
            found.setdefault(((row["app_name"], row["driver"]), severity), []).append(
                _Left(row, seen, open_ms, idle_ms, held_ms)
            )
    for (_, severity), left in found.items():
        yield _finding(left, severity, lossy, gone)


def _finding(left: Sequence[_Left], severity: Severity, lossy: bool, gone: bool) -> Finding:
    worst = max(left, key=lambda one: (one.open_ms, one.row["lsid"], one.row["txn_number"]))
    row = worst.row
    namespaces = printable((row["namespaces"] or "").replace(",", ", "), 120)
    end = "when the client closed its connections" if gone else "when the capture ended"
    many = "a transaction" if len(left) == 1 else f"{len(left):,} transactions"
    which = "it had been open" if len(left) == 1 else "the oldest had been open"
    ended = f"neither committed nor aborted {'it' if len(left) == 1 else 'them'}"
    return command_finding(
        RULE,
        [command for one in left for command in one.commands],
        severity=severity,
        confidence="low" if lossy else "high",
        provisional=not gone,
        subject={"server": server_text(row), **application_key(row)},
        title=(
            f"{count(len(left), 'transaction')} left open for {'' if len(left) == 1 else 'up to '}"
            f"{ms_text(worst.open_ms)}: {client_title(row)} at {server_text(row)}"
        ),
        sentence=(
            f"{sentence_start(client_text(row))} began {many} at {server_text(row)}"
            f"{f' on {namespaces}' if namespaces else ''} and {ended}. {sentence_start(end)} {which} "
            f"for {ms_text(worst.open_ms)}, with {count(row['commands'], 'command')} "
            f"({row['command_names'] or 'none'}), "
            f"the last {ms_text(worst.idle_ms)} without one"
            f"{', as far as this capture shows, which lacks bytes of the client' if lossy else ''}."
        ),
        next_step=(
            "Use withTransaction or a session that is closed in any case (with, try-with-resources); until the server "
            "aborts it, after 60 s if transactionLifetimeLimitSeconds was not changed, others wait for its locks."
        ),
        numbers={
            "transactions": len(left),
            "lsid": row["lsid"],
            "txn_number": row["txn_number"],
            "open_ms": worst.open_ms,
            "idle_ms": worst.idle_ms,
            "wasted_ms": round(sum(one.held_ms for one in left), 3),
            "commands": sum(one.row["commands"] for one in left),
            "errors": sum(one.row["errors"] for one in left),
            "left_behind": len(left),
            "where": row["namespaces"] or server_text(row),
            "clients": [client_numbers(row, commands=sum(one.row["commands"] for one in left))],
        },
    )


_OPEN = "outcome = 'open'"

RULE = Rule(
    code="MON111",
    question="stalled",
    name="transaction-open",
    severity="warning",
    confidence="high",
    reads={
        "mongo_transactions": (
            "lsid", "txn_number", "exchange_id", "last_exchange_id", "ts", "ts_last", "commands", "command_names",
            "namespaces", "errors", "app_name", "driver",
        ),
        "mongo_commands": COMMAND_COLUMNS,
        "flows": ("ts_first", "closed_by", "observed_until", "gap_bytes", "bytes_to_client"),
    },
    partition_by=("server_address", "server_port", "client_address"),
    detect=detect,
    rows={
        "mongo_transactions": _OPEN,
        "mongo_commands": "exchange_id IN (SELECT unnest([exchange_id, last_exchange_id]) FROM mongo_transactions "
        f"WHERE {_OPEN})",
        "flows": MONGO_FLOWS,
    },
    suspects=AnyRow("mongo_transactions"),
)  # fmt: skip
