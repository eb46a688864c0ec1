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
from wirewitness.analyser.base.times import ms_text, seconds_text
from wirewitness.analyser.base.words import sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Besides, Spread
from wirewitness.analyser.mongo.rules.rows import client_text, client_title, command_title, namespace
from wirewitness.analyser.mongo.rules.use import (
    DATA,
    SERVER_KEY,
    USE,
    USE_COLUMNS,
    Shares,
    client_of,
    every_ms,
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
    server = _Server(every, others_least)
    for row in every:
        enough = least if row["command"] == "insert" else writes_least
        if row["command"] not in _WRITES or row["succeeded"] < enough or (row["median_documents_sent"] or 0) != 1:
            continue
        batch = server.batch_of_others(row)
        working = row["latency_sum_ms"] / max(span_s(row) * 1000 * row["connections"], 1e-9)
        rests = every_ms(row) * row["connections"] - row["latency_sum_ms"] / row["commands"]
        is_busy = working >= (busy_alone if row["connections"] == 1 else busy) and rests <= rest_ms
        is_step = server.meanwhile(row) >= between * row["commands"]
        in_turn = (every_ms(row) <= pause_ms or is_busy) and not is_step
        waits = in_turn or working >= waiting
        if in_turn or (batch and every_ms(row) < slow_s * 1000):
            yield _finding(row, batch, is_warning=waits and (bool(batch) or server.shares.of(row) >= half))


class _Server:
    """The rows of a server. A batch is `others_least` documents of an insert, or more."""

    def __init__(self, every: Sequence[Row], others_least: float) -> None:
        self.shares = Shares(every)
        self._clients: dict[tuple[object, ...], list[tuple[int, int, int]]] = {}
        batches: dict[tuple[object, object], list[tuple[tuple[object, ...], float]]] = {}
        for row in every:
            self._clients.setdefault(client_of(row), []).append((*_span(row), row["commands"]))
            if row["command"] == "insert" and (row["median_documents_sent"] or 0) >= others_least:
                batches.setdefault(_place(row), []).append((client_of(row), row["median_documents_sent"]))
        self._batches = {place: Besides(sizes) for place, sizes in batches.items()}
        self._sent: dict[tuple[object, ...], Spread] = {}

    def batch_of_others(self, row: Row) -> float | None:
        """The largest that another application inserts where this row inserts; None without one."""
        if row["command"] != "insert" or _place(row) not in self._batches:
            return None
        return self._batches[_place(row)].most(client_of(row))

    def meanwhile(self, row: Row) -> float:
        """How many other commands the application sends meanwhile, each at the pace of its row."""
        client, (first, last) = client_of(row), _span(row)
        if client not in self._sent:
            self._sent[client] = Spread(self._clients[client])
        return self._sent[client].between(first, last) - (row["commands"] if first < last else 0)


def _span(row: Row) -> tuple[int, int]:
    return row["ts"], row["ts_last"] or row["ts"]


def _place(row: Row) -> tuple[object, object]:
    return row["database"], row["collection"]


def _finding(row: Row, batch: float | None, is_warning: bool) -> Finding:
    others = f" Others insert {batch:,.0f} documents per command there." if batch else ""
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
            "others_documents": batch,
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
