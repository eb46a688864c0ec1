"""MON106 streaming-hello: the stream of hellos that watches a server failed.

Finds
    Awaitable hellos that got an error, and streams of them that fell silent while their connection
    lived.

Why it matters
    Drivers watch each server over a connection of its own: the server answers a hello when something changes, at
    the latest after maxAwaitTimeMS, and goes on by itself. When that stops, the driver takes the server for lost,
    throws its connections away and selects another one. The application sees time-outs of server selection.

How it decides
    A hello with topologyVersion and maxAwaitTimeMS whose answer is an error; or the last one of a connection, still
    unanswered or with further answers announced, and silence for maxAwaitTimeMS plus 10 s (slack_s, the drivers'
    connectTimeoutMS) while the connection was seen. A stream that ends because either side closes is no finding,
    and the time to an answer is no latency. Bytes missing from the connection make silence inconclusive: info, low
    confidence. A connection of which nothing is captured that the server sent tells nothing, nor does one where nothing
    of the server or of the client is captured any more 20 s later: whoever is alone in silence is heard elsewhere, as
    when the client tries again.

False alarms
    A capture that stops seeing one connection, as when traffic moves to another interface.

References
    Server monitoring specification: streaming protocol, awaitable hello, exhaust replies.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import printable, sentence_start, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    HELLOS,
    MONGO_FLOWS,
    client_numbers,
    client_text,
    client_title,
    command_finding,
)


def detect(frames: Frames, *, slack_s: float = 10.0) -> Iterator[Finding]:
    """At most one finding for errors and one for silence on this connection."""
    hellos = rows_of(frames["mongo_commands"])
    failed = [row for row in hellos if row["awaitable"] and row["status"] == "error"]
    if failed:
        yield _failed(failed)
    for flow in rows_of(frames["flows"]):
        last = hellos[-1] if hellos else None
        if last is None or flow["observed_until"] is None or flow["closed_by"] == "server" or not _goes_on(last):
            continue
        if not flow["bytes_to_client"]:  # nothing that the server sent was captured
            continue
        silent_ms = (flow["observed_until"] - (last["ts_last_response"] or last["ts"])) / NS_PER_MS
        if silent_ms > (last["await_time_ms"] or 0) + slack_s * 1000:
            yield _silent(last, silent_ms, bool(flow["gap_bytes"]))


def _goes_on(row: Row) -> bool:
    """Is the server to send another answer by itself?"""
    return bool(row["awaitable"]) and (
        row["status"] == "unanswered" or (row["status"] == "ok" and bool(row["exhaust"]))
    )


def _failed(rows: list[Row]) -> Finding:
    first = rows[0]
    name = printable(first["error_name"] or "", 80)
    code = "an error without a code" if first["error_code"] is None else f"error {first['error_code']}"
    return command_finding(
        RULE,
        rows,
        severity="warning",
        subject={"flow": first["flow_id"], "failed": "error"},
        title=(
            f"{sentence_start(code.removeprefix('an '))} to awaitable hellos {times(len(rows))}: "
            f"{client_title(first)} at {server_text(first)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} watches {server_text(first)} with awaitable hellos and got "
            f"{code}{f' ({name})' if name else ''} {times(len(rows))}."
        ),
        next_step="Look into the server's log at that time: it shuts down, steps down or refuses the client.",
        numbers=_numbers(first, errors=len(rows), requests_refused=len(rows), error_code=first["error_code"]),
    )


def _silent(row: Row, silent_ms: float, lossy: bool) -> Finding:
    return command_finding(
        RULE,
        [row],
        severity="info" if lossy else "warning",
        confidence="low" if lossy else "high",
        provisional=True,
        subject={"flow": row["flow_id"], "failed": "silence"},
        title=f"Hellos silent for {ms_text(silent_ms)}: {client_title(row)} at {server_text(row)}",
        sentence=(
            f"The stream of hellos with which {client_text(row)} watches {server_text(row)} fell silent for "
            f"{ms_text(silent_ms)}. The server had agreed to one every {ms_text(row['await_time_ms'] or 0)}"
            f"{', but bytes are missing from the connection' if lossy else ''}."
        ),
        next_step=(
            "Look at whether the server hangs or the network dropped the connection without a word (firewall, NAT)."
        ),
        numbers=_numbers(row, silent_ms=silent_ms, stood_still_ms=silent_ms, await_time_ms=row["await_time_ms"]),
    )


def _numbers(row: Row, **more: float | None) -> Row:
    return {**more, "where": server_text(row), "clients": [client_numbers(row)]}


# Connections one of whose ends is heard of on any connection when the next answer is overdue.
_HEARD_LATER = """
    SELECT flow_id FROM (
        SELECT flow_id, epoch_ns(ts_last) AS last_ns,
               max(epoch_ns(ts_last)) OVER (PARTITION BY server_address) AS server_ns,
               max(epoch_ns(ts_last)) OVER (PARTITION BY client_address) AS client_ns
        FROM flows)
    WHERE greatest(server_ns, client_ns) >= last_ns + 20e9"""

RULE = Rule(
    code="MON106",
    question="repeated",
    name="streaming-hello",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "awaitable", "await_time_ms", "status", "exhaust", "ts_last_response", "error_code",
            "error_name",
        ),
        "flows": ("closed_by", "observed_until", "gap_bytes", "bytes_to_client"),
    },
    partition_by=("flow_id",),
    detect=detect,
    rows={"mongo_commands": f"command IN {HELLOS}", "flows": f"{MONGO_FLOWS} AND flow_id IN ({_HEARD_LATER})"},
    suspects=AnyRow("mongo_commands", "awaitable"),
)  # fmt: skip
