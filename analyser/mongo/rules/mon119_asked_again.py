"""MON119 asked-again: an application asks again and again what it knows, or what has no answer.

Finds
    Queries in a loop that return nothing; the same query with the same answer; indexes, lists of collections or
    statistics that are asked for beside each piece of work; a count of the whole for each page.

Why it matters
    Each of them costs a round trip and the server's time and brings nothing new. A loop without a pause keeps the
    server busy with one application; createIndexes takes locks.

How it decides
    Per server, application and shape, from how often it was sent and what came of it:
    empty: of at least 30 queries (empty_least) nine tenths returned nothing. Those with the same values again, or that
    search for what is due, at less than half a second (poll_s) from one to the next, on the average: a worker that
    looks once a second is healthy. Those that name other values each time at any pace, unless the same application
    inserts about as much there (it looks before it inserts); where it found 2 (found) or more of them, the others may
    not be there, as with a list of the few that are blocked: info.
    same: at least 50 times (same_least), four fifths of the shape, with the same values and a reply of the same size,
    within 200 ms (same_s) of each other on the average, for 5 s or more (same_over_s) and at least three on each
    connection (each), while no write changed the collection: a pool that fills asks once on each. Info where the
    application does nothing else and waits for replies on several connections for 0.8 of their time (loaded): that is
    how a load test asks.
    prepared: createIndexes, listCollections, listIndexes, listDatabases, create, collStats or dbStats at least 10 times
    (prepared_least), over more than half of the time in which the application works on data, at least once for each 10
    data commands, and fewer connections than half of them; other applications of the server count as likes.
    pinged: at least 30 pings (empty_least), less than half a second (poll_s) apart on the average, and one for each two
    data commands or more: a pool that asks whether its connection works before it uses it. A probe once a second is
    none.
    watched: at least 60 times (watched_least) the same question about the server's state (serverStatus, dbStats,
    collStats, top, currentOp, replSetGetStatus), less than half a second (poll_s) apart on the average, of an
    application that does not work on data.
    counted: a count of a collection for each find of it or two, at least 20 times (counted_least).
    A warning where it is empty, prepared, pinged or watched; the others where they make half (half) of the data
    commands of the server, or of their time; else info.

False alarms
    Load tests that send one query again and again on one connection, or with pauses.

What it cannot tell
    Whether the same size of a reply means the same content.

References
    MongoDB manual: change streams (instead of asking again), createIndexes; drivers: change streams specification.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, ms_text, seconds_text
from wirewitness.analyser.base.words import sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Spans
from wirewitness.analyser.mongo.rules.rows import client_text, client_title, command_text, command_title, shape_text
from wirewitness.analyser.mongo.rules.use import (
    PREPARES,
    QUERIES,
    SERVER_KEY,
    USE,
    USE_COLUMNS,
    Shares,
    client_of,
    every_ms,
    is_data,
    names_documents,
    span_s,
    use_finding,
)

_Place = tuple[str | None, str | None]


class _Kind(NamedTuple):
    """words: behind the number of times. next_step: what to do."""

    name: str
    words: str
    next_step: str


_EMPTY = _Kind(
    "empty",
    "found nothing",
    "Let it wait for a change (a change stream, a tailable cursor) or pause between its questions. Where it should "
    "find something, compare names and types of its filter with a document of the collection.",
)
_SAME = _Kind(
    "same",
    "asked the same and got the same answer, by its size; nobody changed the collection meanwhile",
    "Keep the answer in the application for some seconds, or let a change stream tell when it is out of date.",
)
_PREPARED = _Kind(
    "prepared",
    "were what a start needs once, sent beside its work all the time",
    "Do it once, when the application is deployed or starts: createIndexes and lists of collections belong before the "
    "work, not in it.",
)
_PINGED = _Kind(
    "pinged",
    "asked beside its work whether the server is there",
    "Leave the ping out: drivers watch their servers and try again by themselves, and a connection that fails is told "
    "by the command itself. It doubles the round trips of each piece of work.",
)
_WATCHED = _Kind(
    "watched",
    "asked for the server's statistics, and it does nothing else",
    "Ask for statistics each 10 to 60 s, from one agent: these commands take locks and read all databases, and no "
    "chart shows more.",
)
_COUNTED = _Kind(
    "counted",
    "counted what the finds beside them return a page of",
    "Count seldom (estimatedDocumentCount, a number that is kept), or leave the total out: a count reads all that "
    "matches for each page.",
)


def detect(
    frames: Frames,
    *,
    empty_least: int = 30,
    found: int = 2,
    same_least: int = 50,
    prepared_least: int = 10,
    counted_least: int = 20,
    watched_least: int = 60,
    poll_s: float = 0.5,
    same_s: float = 0.2,
    same_over_s: float = 5.0,
    each: int = 3,
    half: float = 0.5,
    loaded: float = 0.8,
) -> Iterator[Finding]:
    """One finding for each shape of each application of this server."""
    every = rows_of(frames[USE])
    server = _Server(every)
    for own in server.clients.values():
        for row in own.rows:
            if _is_empty(row, own, empty_least, poll_s * 1000):
                yield _finding(_EMPTY, row, row["without_effect"], "info" if _may_be_so(row, found) else "warning")
            elif (
                row["commands"] >= each * row["connections"]
                and span_s(row) >= same_over_s
                and _is_same(row, server, same_least, same_s * 1000)
            ):
                is_warning = server.shares.of(row) >= half and not _is_load_test(row, own, loaded)
                yield _finding(_SAME, row, row["same"], "warning" if is_warning else "info")
            elif _is_prepared(row, own, prepared_least):
                yield _finding(_PREPARED, row, row["succeeded"], "warning", server.usual(row))
            elif _is_pinged(row, own, empty_least, poll_s * 1000):
                yield _finding(_PINGED, row, row["succeeded"], "warning", server.usual(row))
            elif _is_watched(row, own, watched_least, poll_s * 1000):
                yield _finding(_WATCHED, row, row["succeeded"], "warning", server.usual(row))
            elif _is_counted(row, own, counted_least):
                yield _finding(_COUNTED, row, row["succeeded"], "warning" if server.shares.of(row) >= half else "info")


class _Client:
    """The rows of one application. work: those on data; made, found: what it wrote to a collection, and how often its
    finds there returned several."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.work: list[Row] = []
        self.made: Counter[_Place] = Counter()
        self.found: Counter[_Place] = Counter()
        self.worked = 0
        self._lasted: int | None = None

    def add(self, row: Row) -> None:
        """One more row."""
        self.rows.append(row)
        if is_data(row):
            self.work.append(row)
            self.worked += row["commands"]
        if row["command"] in ("insert", "update"):
            self.made[_place(row)] += row["succeeded"]
        if row["command"] == "find" and (row["median_documents_returned"] or 0) > 1:
            self.found[_place(row)] += row["commands"]

    def lasted_ns(self) -> int:
        """From the first to the last of its work."""
        if self._lasted is None:
            self._lasted = max(one["ts_last"] or one["ts"] for one in self.work) - min(one["ts"] for one in self.work)
        return self._lasted


class _Server:
    """All rows of a server. changed: when each collection was written to."""

    def __init__(self, every: Sequence[Row]) -> None:
        self.clients: dict[tuple[object, ...], _Client] = {}
        changed: dict[_Place, list[tuple[int, int, None]]] = {}
        for row in every:
            self.clients.setdefault(client_of(row), _Client()).add(row)
            is_write = row["command"] not in (*QUERIES, "getMore") and is_data(row)
            if is_write and row["succeeded"] + row["unacknowledged"] > row["without_effect"]:
                changed.setdefault(_place(row), []).append((row["ts"], row["ts_last"] or row["ts"], None))
        self.changed = {place: Spans(spans) for place, spans in changed.items()}
        self.shares = Shares(every)
        self._workers = [name for name, own in self.clients.items() if own.work]
        self._sent: dict[str, Counter[tuple[object, ...]]] = {}
        for name in self._workers:
            for row in self.clients[name].rows:
                self._sent.setdefault(row["command"], Counter())[name] += row["commands"]
        self._sent_by_all = {command: sum(sent.values()) for command, sent in self._sent.items()}

    def usual(self, row: Row) -> str:
        """How often others that work there send it."""
        client, command = client_of(row), row["command"]
        others = len(self._workers) - bool(self.clients[client].work)
        if not others:
            return ""
        sent = (self._sent_by_all.get(command, 0) - self._sent.get(command, Counter())[client]) / others
        return f" Others at this server: {sent:,.1f} times each."


def _place(row: Row) -> _Place:
    return row["database"], row["collection"]


def _is_empty(row: Row, own: _Client, least: int, poll_ms: float) -> bool:
    if row["command"] not in QUERIES or row["succeeded"] < least or row["without_effect"] < 0.9 * row["succeeded"]:
        return False
    if not names_documents(row):
        return every_ms(row) < poll_ms
    return bool(own.made[_place(row)] < 0.5 * row["succeeded"])


def _may_be_so(row: Row, found: int) -> bool:
    """Does the same filter find some of what it names? Then the others are not there, as in a list of few."""
    return names_documents(row) and bool(row["succeeded"] - row["without_effect"] >= found)


def _is_same(row: Row, server: _Server, least: int, most_ms: float) -> bool:
    if row["command"] not in QUERIES or row["same"] < max(least, 0.8 * row["commands"]) or every_ms(row) > most_ms:
        return False
    changed = server.changed.get(_place(row))
    return changed is None or not changed.meets(row["ts"] - 1, row["ts_last"] + 1)


def _is_load_test(row: Row, own: _Client, loaded: float) -> bool:
    """Does the application nothing else, on several connections that hardly rest?"""
    if row["connections"] < 2 or len(own.work) > is_data(row):
        return False
    return bool((row["latency_sum_ms"] or 0) >= loaded * span_s(row) * 1000 * row["connections"])


def _is_prepared(row: Row, own: _Client, least: int) -> bool:
    if row["command"] not in PREPARES or row["succeeded"] < least or row["connections"] * 2 > row["commands"]:
        return False
    if not own.work or row["commands"] * 10 < own.worked:
        return False
    return bool(span_s(row) * 2 > own.lasted_ns() / NS_PER_S)


def _is_pinged(row: Row, own: _Client, least: int, poll_ms: float) -> bool:
    if row["command"] != "ping" or row["succeeded"] < least or every_ms(row) >= poll_ms:
        return False
    return bool(0 < own.worked <= 2 * row["commands"])


def _is_watched(row: Row, own: _Client, least: int, poll_ms: float) -> bool:
    if row["command"] not in _STATISTICS or row["succeeded"] < least or every_ms(row) >= poll_ms:
        return False
    return not own.work


def _is_counted(row: Row, own: _Client, least: int) -> bool:
    is_count = row["command"] == "count" or (row["command"] == "aggregate" and _COUNTS in (row["query_shape"] or ""))
    if not is_count or row["succeeded"] < least:
        return False
    return bool(0.5 * row["commands"] <= own.found[_place(row)] <= 2 * row["commands"])


def _finding(kind: _Kind, row: Row, often: int, severity: Severity, more: str = "") -> Finding:
    return use_finding(
        RULE,
        [row],
        severity=severity,
        confidence="medium" if kind is _SAME else "high",
        title=f"{command_title(row)} {often:,} times for nothing: {client_title(row)}",
        sentence=(
            f"{sentence_start(client_text(row))} sent {command_text(row)} to {server_text(row)} {row['commands']:,} "
            f"times in {seconds_text(round(span_s(row) * NS_PER_S))}, one each {ms_text(every_ms(row))}; {often:,} of "
            f"them {kind.words}.{more}{shape_text(row['query_shape'])}"
        ),
        next_step=kind.next_step,
        numbers={
            "kind": kind.name,
            "commands": row["commands"],
            "often": often,
            "every_ms": round(every_ms(row), 3),
            "lasted_s": round(span_s(row), 3),
            "wasted_ms": round((row["latency_sum_ms"] or 0) * often / row["commands"], 3),
        },
    )


_STATISTICS = ("serverStatus", "dbStats", "collStats", "top", "currentOp", "replSetGetStatus")
_COUNTS = '"$group":{"_id"'
RULE = Rule(
    code="MON119",
    question="repeated",
    name="asked-again",
    severity="warning",
    confidence="high",
    reads={
        USE: (
            *USE_COLUMNS, "without_effect", "same", "connections", "unacknowledged", "median_documents_returned",
            "latency_sum_ms",
        ),
    },
    partition_by=SERVER_KEY,
    detect=detect,
    suspects=AnyRow(
        USE,
        f"(command IN {QUERIES} AND (without_effect >= 30 OR same >= 50)) OR (command IN {_STATISTICS} AND "
        f"succeeded >= 60) OR (command IN {PREPARES} AND succeeded >= 10) OR (command = 'ping' AND succeeded "
        ">= 30) OR (command IN ('count', 'aggregate') AND succeeded >= 20)",
    ),
)  # fmt: skip
