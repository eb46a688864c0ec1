"""MON102 command-error: the server refused commands or writes.

Finds
    Replies with an error of the command (ok is 0), of single writes (writeErrors), of the write concern
    (writeConcernError). One finding for each application and code.

Why it matters
    A command can be answered and still have done nothing, or half of it. Errors of single writes and of the write
    concern come with ok 1, and not every application looks at them. The code says whose turn it is, the
    application's, the operator's, or nobody's because the driver tries again.

How it decides
    Codes are put into groups. Warnings from the first one on: not primary (10107, 13435, 10058), node is recovering
    (189, 91, 11600, 11602, 13436), network between servers (6, 7, 89, 9001, 262), time limit (50), cursor is gone (43),
    interrupted, authentication (18) and access (13), write concern (64, 79, 100), overload, a driver older than the
    server (352), a request that is not valid there (2, 9, 121 and their like). What no try heals is info where the
    application had success with the same command on that collection later, fewer than 5 times (several). Conflicts of
    transactions (112 and their like), and all errors with the label TransientTransactionError or
    UnknownTransactionCommitResult, are info when the session then committed a transaction within 120 s
    (retried_within_s), as withTransaction does, or is at the next one when the capture ends; what is left is a warning.
    Codes without a group are info, a warning from 5 on (several); so are duplicate keys (11000), where most of these
    inserts stored nothing and half of what the application inserts there is refused, and commands or options that the
    server does not know (59, 72) of an application that works on data. So are indexes that are
    there with another name or other options (85, 86), of an application that does not get to work on data. A warning,
    too, are questions about the server
    that it never answered: at least 10 times (unanswered_least) a command that it does not know, or that the user may
    not send. Always info: other everyday answers (a
    collection that is not there). The same again without a pause is a warning whatever it is, but for what belongs to
    the course of things: at least 10 refusals (unpaused_least), four fifths of which came within 100 ms (pause_ms) of
    the refusal before. No finding, only counted among the errors of a report: whatever was answered to questions about
    the server and goodbyes (getParameter, atlasVersion, endSessions), and collections and indexes that are there, or
    gone, already when a program makes or drops them. Of a member that is not the primary the finding says what its
    hello had said. Failed awaitable hellos are left to MON106.

False alarms
    An application that inserts and takes the duplicate key for an answer. Errors that the driver heals by trying
    once more; MON112 counts such writes.

References
    error_codes.yml of the MongoDB server; server discovery and monitoring, retryable reads, retryable writes and
    transactions specifications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from statistics import median

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.errors import (
    CURSOR,
    DUPLICATE,
    EVERYDAY,
    NOT_PRIMARY,
    PROBES,
    REQUEST,
    TRANSACTION,
    Group,
)
from wirewitness.analyser.mongo.rules.rows import (
    CLIENT_KEY,
    COMMAND_COLUMNS,
    TITLE_NAME,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    command_text,
    command_title,
    listed,
    namespace,
)
from wirewitness.analyser.mongo.rules.told_errors import Error, errors_in, never_answered
from wirewitness.analyser.mongo.rules.use import DATA, PREPARES, USE, is_data

_CommitsOf = dict[str, list[int]]
_Use = Callable[[], list[Row]]


def detect(
    frames: Frames,
    *,
    several: int = 5,
    retried_within_s: float = 120.0,
    unpaused_least: int = 10,
    pause_ms: float = 100.0,
    unanswered_least: int = 10,
) -> Iterator[Finding]:
    """One finding for each kind of error and code that this application met."""
    use = cache(partial(rows_of, frames[USE]))  # few errors are told by it
    commits: _CommitsOf = {}
    for row in rows_of(frames["mongo_transactions"]):
        commits.setdefault(row["lsid"], []).append(row["ts"] if row["ts_ended"] is None else row["ts_ended"])
    kinds: dict[tuple[str, int | None, Group], list[Error]] = {}
    rows = rows_of(frames["mongo_commands"])
    for error in errors_in(rows, never_answered(rows, use, unanswered_least)):
        kinds.setdefault((error.what, error.code, error.group), []).append(error)
    for (_, _, group), errors in kinds.items():
        retried = [e for e in errors if _may_retry(e) and _retried(e.row, commits, int(retried_within_s * NS_PER_S))]
        left = len(errors) - len(retried)
        severity = group.severity if left < several else _often(group, errors, use)
        if all(error.row["command"] in PROBES for error in errors):
            severity = "warning"  # what is left of them was never answered
        is_work = any(error.row["command"] in (*DATA, *PREPARES) for error in errors)
        if left < several and ((group.heals == "never" and _healed(errors, use)) or (group is REQUEST and not is_work)):
            severity = "info"
        pauses = _pauses_ms(errors) if group.heals != "itself" and not retried else []
        short = [pause for pause in pauses if pause <= pause_ms]
        unpaused = short if len(errors) >= unpaused_least and len(short) >= 0.8 * len(pauses) else []
        if unpaused:
            severity = "warning"
        more = _elsewhere(errors, rows_of(frames["mongo_cursors"])) if group is CURSOR else ""
        if unpaused:
            soon = ms_text(max(median(unpaused), 0.0))
            more += f" It sent the same again {soon} (median) after a refusal."
        numbers = {"without_pause": len(unpaused), "heals": group.heals, "actor": group.actor}
        yield _finding(errors, "info" if len(retried) == len(errors) else severity, len(retried), more, numbers)


def _elsewhere(errors: list[Error], cursors: list[Row]) -> str:
    """Were these cursors asked for on other connections than those that opened them, and soon?"""
    refused = {error.row["exchange_id"] for error in errors}
    lost = [one for one in cursors if one["ended_exchange_id"] in refused and one["ts_opened"] is not None]
    moved = [one for one in lost if one["connections"] > 1]
    ages = [(one["ts_ended"] - one["ts_opened"]) / NS_PER_MS for one in moved]
    if not moved or len(moved) < 0.8 * len(lost) or max(ages) >= _CURSOR_TIMEOUT_MS:
        return ""
    return (
        f" {count(len(moved), 'cursor')} had been opened on another connection, {ms_text(median(ages))} (median) "
        "before, so no time-out ended them: behind this address another server may answer each connection (a balancer)."
    )


def _often(group: Group, errors: list[Error], use: _Use) -> Severity:
    """How bad several of them are."""
    if errors[0].code in _OTHER_INDEX and not any(is_data(row) for row in use()):
        return "warning"
    if group is EVERYDAY and errors[0].code in _UNKNOWN_COMMANDS and any(is_data(row) for row in use()):
        return "warning"
    if group is not DUPLICATE:
        return group.often
    nothing = sum(not error.row["n"] for error in errors)
    places = {(error.row["database"], error.row["collection"], error.row["command"]) for error in errors}
    sent = sum(row["commands"] for row in use() if (row["database"], row["collection"], row["command"]) in places)
    return group.often if nothing >= 0.8 * len(errors) and 2 * len(errors) >= sent else "info"


def _healed(errors: list[Error], use: _Use) -> bool:
    """Had the application success later with all that was refused?"""
    later = {
        (row["database"], row["collection"], row["command"]): row["ts_succeeded"]
        for row in sorted(use(), key=lambda row: row["ts_succeeded"] or 0)
    }
    return all(
        (later.get((error.row["database"], error.row["collection"], error.row["command"])) or 0) > error.row["ts"]
        for error in errors
    )


def _pauses_ms(errors: list[Error]) -> list[float]:
    """From each refusal to the next request that was refused."""
    rows = sorted((error.row for error in errors), key=lambda row: (row["ts"], row["exchange_id"]))
    return [
        (row["ts"] - before["ts_response"]) / NS_PER_MS
        for before, row in pairwise(rows)
        if before["ts_response"] is not None
    ]


def _may_retry(error: Error) -> bool:
    """Is it an error after which drivers begin the transaction anew, or commit again?"""
    labels = error.row["error_labels"] or ""
    return error.group is TRANSACTION or any(label in labels for label in _RETRIED_LABELS)


def _retried(row: Row, commits: _CommitsOf, within_ns: int) -> bool:
    """Did the session commit a transaction after this error, or is it still at one?"""
    own = commits.get(row["lsid"] or "", [])
    compared(len(own))
    return any(row["ts"] < ts <= row["ts"] + within_ns for ts in own)


def _codes(row: Row) -> int:
    return 0 if row["write_error_codes"] is None else len(row["write_error_codes"])


def _refused_writes(errors: list[Error]) -> int | None:
    """How many single writes got this code; None where an answer has several codes and does not say."""
    if errors[0].what != "write" or any(_codes(error.row) != 1 for error in errors):
        return None
    return sum(error.row["write_errors"] or 1 for error in errors)


def _finding(errors: list[Error], severity: Severity, retried: int, more: str, numbers: Row) -> Finding:
    first, rows = errors[0], [error.row for error in errors]
    code = "an error without a code" if first.code is None else f"error {first.code}"
    name = printable(first.name or "", 80)
    last_s = (rows[-1]["ts"] - rows[0]["ts"]) / NS_PER_S
    over = f" within {last_s:,.0f} s" if len(rows) > 1 and last_s >= 1 else ""
    writes = _refused_writes(errors)
    refused = f" ({count(writes, 'write')})" if writes else ""
    healed = _HEALED.format("It was" if len(rows) == 1 else f"{retried} of them were") if retried else ""
    return command_finding(
        RULE,
        rows,
        severity=severity,
        subject={
            **client_key(first.row),
            "what": first.what,
            "code": first.code,
        },
        title=(
            f"{sentence_start(code.removeprefix('an '))}"
            f"{f' ({printable(first.name, TITLE_NAME)})' if first.name else ''} {times(len(rows))}: "
            f"{command_title(first.row)}, by {client_title(first.row)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first.row))} got {code}{f' ({name})' if name else ''} from "
            f"{server_text(first.row)} {times(len(rows))}{over}{_TO[first.what]} "
            f"{listed(command_text(row) for row in rows)}{refused}. "
            f"{sentence_start(first.group.words)}.{_said(first)}{healed}{more}"
        ),
        next_step=first.group.next_step,
        numbers={
            "code_name": first.name,
            "kind": first.group.name,
            "count": len(rows),
            "requests_refused": len(rows) - retried,
            "refused_writes": writes,
            "retried": retried,
            **numbers,
            "server_role": first.row["server_role"],
            "set": first.row["set_name"],
            "where": ": ".join(filter(None, (namespace(first.row), first.group.name))),
            "commands": sorted({row["command"] or "?" for row in rows}),
            "clients": [client_numbers(first.row, count=len(rows))],
        },
    )


def _said(error: Error) -> str:
    """What the member's last hello on this connection had told the client, where it matters."""
    role, of = error.row["server_role"], error.row["set_name"]
    if error.group is not NOT_PRIMARY or role is None:
        return ""
    where = f" of the replica set {printable(of, 80)}" if of else ""
    if role == "primary":
        return f" Its hello had called it primary{where}: it stepped down since."
    return f" Its hello had said before that it is {_ROLES.get(role, f'a {printable(role, 80)}')}{where}."


# cursorTimeoutMillis.
_CURSOR_TIMEOUT_MS = 600_000
# IndexOptionsConflict, IndexKeySpecsConflict.
_OTHER_INDEX = (85, 86)
# CommandNotFound, InvalidOptions.
_UNKNOWN_COMMANDS = (59, 72)
_RETRIED_LABELS = ("TransientTransactionError", "UnknownTransactionCommitResult")
_ROLES = {"arbiter": "an arbiter", "other": "neither primary nor secondary"}
_HEALED = " {} tried again in a transaction that was committed."
_TO = {"command": ", for", "write": ", for single writes of", "write concern": ", for the write concern of"}

RULE = Rule(
    code="MON102",
    question="refused",
    name="command-error",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "status", "ok", "error_code", "error_name", "write_errors", "write_error_codes",
            "write_error_names", "write_concern_error_code", "write_concern_error_name", "lsid", "server_role",
            "set_name", "error_labels", "n",
        ),
        "mongo_transactions": ("ts", "ts_ended", "lsid"),
        "mongo_cursors": ("ts_opened", "ts_ended", "ended_exchange_id", "connections"),
        USE: ("database", "collection", "command", "commands", "succeeded", "ts_succeeded"),
    },
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={
        "mongo_commands": "(status = 'error' OR write_errors > 0 OR write_concern_error_code IS NOT NULL) AND "
        "awaitable IS NOT TRUE",
        "mongo_cursors": "ended_by = 'error'",
        "mongo_transactions": "outcome IN ('committed', 'open')",
    },
    suspects=AnyRow("mongo_commands"),
)  # fmt: skip
