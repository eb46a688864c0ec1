"""MON120 written-one-by-one: documents are written one command each although many are at hand.

Finds
    Applications that insert, update or delete documents one by one, each as soon as the one before is done, or that
    insert so where others insert many at once.

Why it matters
    Each document costs a round trip, an acknowledgement of the write concern and an entry of its own in the log of the
    server. insertMany or bulkWrite bring thousands of documents with one command; an import is often ten to a hundred
    times as fast, and the server has that much less to do.

How it decides
    At least 40 inserts (least) of one application to a collection, of one document each in the median. They follow each
    other: its connections wait for replies to them for 0.6 (busy) of their time, or the only one for 0.4 (busy_alone:
    what comes by itself would need a second one), with at most 15 ms (rest_ms) between a reply and the next one on the
    average; or one comes within 5 ms (pause_ms) of the one before on the average. Not so where the application sends
    about as many other commands on data meanwhile (half, between): it works on one document after the other. Or
    others insert at least 5 documents (others_least) per command into the same collection, in the median, and this
    one sends one within half a second (slow_s) of the other. Events that come one by one with pauses are no batch.
    Updates and deletes of one statement each: at least 100 (writes_least), by the first of the two signs. Inserts
    inside transactions count as well. A warning where others show batches, or where these make half (half) of the data
    commands of the server or of their time, and the application waits for replies for 0.05 (waiting) of its time; else
    info.

False alarms
    An application that must know that each document is stored before it goes on.

References
    MongoDB manual: insert command (up to 100,000 documents), bulkWrite; drivers: insertMany.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, ms_text, seconds_text
from wirewitness.analyser.base.words import sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import client_text, client_title, command_title, namespace
from wirewitness.analyser.mongo.rules.use import (
    DATA,
    SERVER_KEY,
    USE,
    USE_COLUMNS,
    client_of,
    every_ms,
    share_of,
    span_s,
    use_finding,
)

_WRITES = {"insert": "inserted", "update": "updated", "delete": "deleted"}


def detect(
    frames: Frames,
    *,
    least: int = 40,
    writes_least: int = 100,
    pause_ms: float = 5.0,
    busy: float = 0.6,
    busy_alone: float = 0.4,
    rest_ms: float = 15.0,
    between: float = 0.5,
    others_least: float = 5.0,
    slow_s: float = 0.5,
    half: float = 0.5,
    waiting: float = 0.05,
) -> Iterator[Finding]:
    """One finding for each application and collection of this server."""
    every = rows_of(frames[USE])
    for row in every:
        enough = least if row["command"] == "insert" else writes_least
        if row["command"] not in _WRITES or row["succeeded"] < enough or (row["median_documents_sent"] or 0) != 1:
            continue
        compared(len(every))
        batches = [
            one["median_documents_sent"] for one in every
            if row["command"] == one["command"] == "insert" and client_of(one) != client_of(row)
            and (one["database"], one["collection"]) == (row["database"], row["collection"])
            and (one["median_documents_sent"] or 0) >= others_least
        ]  # fmt: skip
        working = row["latency_sum_ms"] / max(span_s(row) * 1000 * row["connections"], 1e-9)
        rests = every_ms(row) * row["connections"] - row["latency_sum_ms"] / row["commands"]
        is_busy = working >= (busy_alone if row["connections"] == 1 else busy) and rests <= rest_ms
        in_turn = (every_ms(row) <= pause_ms or is_busy) and not _is_step(row, every, between)
        waits = in_turn or working >= waiting
        if in_turn or (batches and every_ms(row) < slow_s * 1000):
            yield _finding(row, batches, is_warning=waits and (bool(batches) or share_of([row], every) >= half))


def _is_step(row: Row, every: Sequence[Row], between: float) -> bool:
    """Does the application send that many other commands for each of these, at the pace of each?"""
    mine = [one for one in every if one is not row and client_of(one) == client_of(row)]
    others = sum(
        one["commands"] * min(_overlap_s(row, one) / max(span_s(one), 1e-9), 1.0) for one in mine if span_s(one) > 0
    )
    return bool(others >= between * row["commands"])


def _overlap_s(one: Row, other: Row) -> float:
    return float(max(min(one["ts_last"], other["ts_last"]) - max(one["ts"], other["ts"]), 0) / NS_PER_S)


def _finding(row: Row, batches: Sequence[float], is_warning: bool) -> Finding:
    others = f" Others insert {max(batches):,.0f} documents per command there." if batches else ""
    return use_finding(
        RULE,
        [row],
        severity="warning" if is_warning else "info",
        title=f"{row['commands']:,} writes of one document each: {command_title(row)}, by {client_title(row)}",
        sentence=(
            f"{sentence_start(client_text(row))} {_WRITES[row['command']]} {row['succeeded']:,} documents one by one "
            f"in {namespace(row)} at {server_text(row)}, in {seconds_text(row['ts_last'] - row['ts'])}: one each "
            f"{ms_text(every_ms(row))}, of which {ms_text(row['median_latency_ms'] or 0)} (median) were spent waiting "
            f"for the reply.{others}"
        ),
        next_step="Collect writes and send them together: insertMany, or bulkWrite with ordered=false.",
        numbers={
            "commands": row["commands"],
            "every_ms": round(every_ms(row), 3),
            "median_latency_ms": row["median_latency_ms"],
            "others_documents": max(batches, default=None),
            "wasted_ms": round(row["latency_sum_ms"], 3),
        },
    )


RULE = Rule(
    code="MON120",
    question="growing",
    name="written-one-by-one",
    severity="warning",
    confidence="medium",
    reads={USE: (*USE_COLUMNS, "median_documents_sent", "median_latency_ms", "latency_sum_ms", "connections")},
    partition_by=SERVER_KEY,
    detect=detect,
    rows={USE: f"command IN {DATA}"},
    suspects=AnyRow(USE, f"command IN {tuple(_WRITES)} AND succeeded >= 40"),
)
