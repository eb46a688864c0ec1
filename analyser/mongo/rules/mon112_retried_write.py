"""MON112 retried-write: a driver sent a write again.

Finds
    Writes with the session and transaction number of an earlier one whose reply was an error or did not come.

Why it matters
    Retryable writes hide elections and broken connections from the application, and the server carries them out
    once only. Each of them is a sign of trouble that nobody saw, and costs a time-out or an election.

How it decides
    The same lsid and txnNumber again, outside transactions of several statements, from one application; to another
    server only when the first attempt failed, as a router passes one write on to several shards. Info, with how
    many of them succeeded in the end (retries_least of them), and what they cost: the time from the first attempt to
    the last answer. Where the last attempt has no answer in the capture, nothing is said of how it ended.

False alarms
    None known; the number is never used for another write of the session.

References
    Retryable writes specification: transaction id, determining retryable errors.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
    command_title,
    last_seen,
    listed,
    namespace,
)


def detect(frames: Frames, *, retries_least: int = 1) -> Iterator[Finding]:
    """At most one finding for this application."""
    writes: dict[tuple[str, int], list[Row]] = {}
    for row in rows_of(frames["mongo_commands"]):
        writes.setdefault((row["lsid"], row["txn_number"]), []).append(row)
    retried = [attempts for attempts in map(_attempts, writes.values()) if len(attempts) > 1]
    if retried and len(retried) >= retries_least:
        yield _finding(retried)


def _attempts(rows: list[Row]) -> list[Row]:
    """The first attempt and those that repeat it."""
    attempts = rows[:1]
    for row in rows[1:]:
        if _failed(attempts[-1]) or server_text(row) == server_text(attempts[-1]):
            attempts.append(row)
    return attempts


def _failed(row: Row) -> bool:
    return row["status"] in ("error", "unanswered") or row["write_concern_error_code"] is not None


def _cost_ms(attempts: list[Row]) -> float:
    """What the application waited for one write, in ms, as far as the capture shows it: its last answer or attempt."""
    return float((max(map(last_seen, attempts)) - attempts[0]["ts"]) / NS_PER_MS)


def _why(row: Row) -> str:
    if row["status"] == "unanswered":
        return "no reply"
    if row["ts_response"] is None:
        return "no reply that is known"
    code, name = row["error_code"], row["error_name"]
    return (f"{name} ({code})" if name else f"error {code}") if code else "a reply, nevertheless"


def _result(writes: int, done: int, unknown: int) -> str:
    """How the last attempts ended."""
    failed = writes - done - unknown
    if writes == 1:
        return (
            "no reply to the last attempt is known" if unknown else f"it {'succeeded then' if done else 'failed again'}"
        )
    parts = [f"{done} of {writes} succeeded then"]
    parts += [f"{failed} failed again"] if failed else []
    parts += [f"of {unknown} no reply to the last attempt is known"] if unknown else []
    return ", ".join(parts)


def _finding(retried: list[list[Row]]) -> Finding:
    firsts = [attempts[0] for attempts in retried]
    first, rows = firsts[0], [row for attempts in retried for row in attempts]
    answered = [attempts for attempts in retried if attempts[-1]["ts_response"] is not None]
    done, unknown = sum(not _failed(attempts[-1]) for attempts in answered), len(retried) - len(answered)
    what = f"{count(len(retried), 'write')}"
    costs = [_cost_ms(attempts) for attempts in answered]
    cost = f" From the first attempt to the last reply it took {ms_text(max(costs))}" if costs else ""
    cost += f" at most, {ms_text(sum(costs))} in total." if len(costs) > 1 else "." if costs else ""
    all_costs = [_cost_ms(attempts) for attempts in retried]
    return command_finding(
        RULE,
        rows,
        severity="info",
        subject={"address": first["client_address"], "application": first["app_name"], "driver": first["driver"]},
        title=(
            f"{what} sent again: {command_title(first)}{f' and {len(retried) - 1} more' if len(retried) > 1 else ''}, "
            f"by {client_title(first)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} sent {what} again: {listed(command_text(row) for row in firsts)}; "
            f"{_result(len(retried), done, unknown)}. "
            f"The first attempt{'s' if len(retried) > 1 else ''} ended with: {listed(map(_why, firsts))}.{cost}"
        ),
        next_step=(
            "Look at what happened to the first attempts: MON102 for errors, MON103 and TCP103 for connections that "
            "were lost."
        ),
        numbers={
            "writes": len(retried),
            "succeeded": done,
            "failed": len(answered) - done,
            "unknown": unknown,
            "attempts": len(rows),
            "longest_ms": round(max(all_costs), 3),
            "wasted_ms": round(sum(all_costs), 3),
            "where": namespace(first),
            "clients": [client_numbers(first, writes=len(retried), succeeded=done)],
        },
    )


_WRITES = "lsid IS NOT NULL AND txn_number IS NOT NULL AND autocommit IS NOT FALSE AND start_transaction IS NOT TRUE"

RULE = Rule(
    code="MON112",
    question="repeated",
    name="retried-write",
    severity="info",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "lsid", "txn_number", "status", "error_code", "error_name", "write_concern_error_code",
        ),
    },
    partition_by=("client_address", "app_name", "driver"),
    detect=detect,
    rows={
        "mongo_commands": f"{_WRITES} AND (lsid, txn_number) IN (SELECT (lsid, txn_number) FROM mongo_commands WHERE "
        f"{_WRITES} GROUP BY lsid, txn_number HAVING count(*) > 1)"
    },
)  # fmt: skip
