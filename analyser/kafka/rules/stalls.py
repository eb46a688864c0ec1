"""Times in which a broker answered nobody: found among its requests, and told.

In: the requests of one server, and its connections. Out: `Silence`, and findings of the rule that looks for them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, clock_text, seconds_text, time_text
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.delivery import at_the_first_try, counted_at_once
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.engine.rules.sweeps import Spans
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

_MOST_NAMED = 20
# Behind all times of a capture.
_NEVER = 1 << 63
_SLOW_NS = 2 * NS_PER_S
_TOGETHER_NS = NS_PER_S
# Something must come in between, this far from both ends: else it may be the capture that stood still.
_EDGE_NS = NS_PER_S // 2
FOR_MEMBERS = ("JoinGroup", "SyncGroup")
# Answered when the replicas in sync have it, with acks=all; the broker's own logs of offsets and transactions are so.
FOR_REPLICAS = (
    "Produce", "OffsetCommit", "TxnOffsetCommit", "EndTxn", "AddPartitionsToTxn", "AddOffsetsToTxn", "InitProducerId",
)  # fmt: skip
# What a broker answers from its own memory, or when max_wait_ms is over.
_FROM_MEMORY = ("ApiVersions", "Fetch", "FindCoordinator", "Heartbeat", "ListOffsets", "Metadata", "OffsetFetch")
# So many clients are enough where everybody waited.
_EVERYBODY = 2


class Silence(NamedTuple):
    """From the last answer before to the first one after; what waited all the time or came meanwhile."""

    since_ns: int
    until_ns: int
    waiting: Sequence[Row]


def stood_still(
    rows: Sequence[Row], connections: Mapping[str, Row], silent_s: float, clients_least: int
) -> Iterator[Silence]:
    """The times in which so many clients waited for so long. rows: in the order of time; connections: by flow id."""
    told = _Told(rows)
    for since, until in pairwise(told.answers):
        if until - since < silent_s * NS_PER_S or not told.sent_within(since + _EDGE_NS, until - _EDGE_NS):
            continue
        waiting = [row for row in told.open_at(since, until) if _waited(row, since, until)]
        plain = {client_of(row) for row in waiting if not row["awaitable"]}
        itself = [row for row in waiting if _for_itself(row, connections.get(row["flow_id"]), until)]
        if not itself:
            continue
        silence = Silence(since, until, waiting)
        clients = {client_of(row) for row in waiting}
        if len(clients) >= clients_least and len(plain) >= clients_least - 1:
            yield silence
            continue
        if clients == plain | {client_of(row) for row in itself} and _everybody(told, silence, itself, connections):
            yield silence


class _Told:
    """The requests of a server by when they were sent, and by when they were answered. rows: in the order of time."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._sent = [row["ts"] for row in rows]
        answered = [(row["ts_response"], place) for place, row in enumerate(rows) if row["ts_response"] is not None]
        self._places = [place for _, place in sorted(answered)]
        self.answers = [rows[place]["ts_response"] for place in self._places]
        self._never = [place for place, row in enumerate(rows) if row["ts_response"] is None]
        self._open: dict[tuple[object, object], list[tuple[int, int, None]]] = {}
        for row in rows:
            span = (row["ts"], row["ts_response"] or _NEVER, None)
            self._open.setdefault(client_of(row), []).append(span)
        self._spans: dict[tuple[object, object], Spans] = {}

    def sent_within(self, after_ns: int, before_ns: int) -> bool:
        """Was any request sent between these times?"""
        place = bisect_right(self._sent, after_ns)
        return place < len(self._sent) and self._sent[place] < before_ns

    def open_at(self, since_ns: int, until_ns: int) -> list[Row]:
        """What may have waited for that long and was answered right behind it, or never; in the order of time."""
        answered = self._between(until_ns, until_ns + _TOGETHER_NS)
        first = bisect_left(self._never, since_ns - NS_PER_S, key=self._sent.__getitem__)
        behind = bisect_left(self._never, until_ns, key=self._sent.__getitem__)
        found = map(self._rows.__getitem__, sorted([*answered, *self._never[first:behind]]))
        return [row for row in found if row["operation"] not in FOR_MEMBERS]

    def answered_clients(self, since_ns: int, until_ns: int) -> set[tuple[object, object]]:
        """Who was answered in this time."""
        return {client_of(self._rows[place]) for place in self._between(since_ns, until_ns)}

    def asks_at(self, client: tuple[object, object], at_ns: int) -> bool:
        """Had the client a request open at that time?"""
        if client not in self._spans:
            self._spans[client] = Spans(self._open[client])
        return self._spans[client].meets(at_ns - 1, at_ns)

    def _between(self, since_ns: int, until_ns: int) -> list[int]:
        return self._places[bisect_left(self.answers, since_ns) : bisect_right(self.answers, until_ns)]


def _everybody(told: _Told, silence: Silence, itself: Sequence[Row], connections: Mapping[str, Row]) -> bool:
    """Two clients at least waited, and whoever was answered as long before the silence or as long behind it; they do
    not share one way that may have stood still. itself: what waited for the broker alone."""
    since, until, waiting = silence
    if len({client_of(row) for row in waiting}) < _EVERYBODY:
        return False
    if not any(row["operation"] in _FROM_MEMORY for row in itself):
        return False
    if any(_closed_by_server(connections.get(row["flow_id"]), silence) for row in waiting):
        return False
    addresses = {row["client_address"] for row in waiting}
    if len(addresses) == 1 and not any(at_the_first_try(row, connections.get(row["flow_id"])) for row in waiting):
        return False
    lasted = until - since
    return all(told.asks_at(client, until) for client in told.answered_clients(since - lasted, until + lasted))


def _closed_by_server(connection: Row | None, silence: Silence) -> bool:
    """A server that closes connections meanwhile does something, such as to stop."""
    if connection is None or connection["closed_by"] != "server" or connection["ts_closed"] is None:
        return False
    return bool(silence.since_ns <= connection["ts_closed"] < silence.until_ns)


def _for_itself(row: Row, connection: Row | None, until: int) -> bool:
    """It waited for the broker alone, not for replicas or for data that may come."""
    if row["operation"] in FOR_REPLICAS:
        return False
    may_wait_ms = None if connection is None or not row["awaitable"] else connection["max_wait_ms"]
    return may_wait_ms is None or until - row["ts"] > may_wait_ms * NS_PER_MS + _SLOW_NS


def client_of(row: Row) -> tuple[object, object]:
    """What tells clients apart: address and client id."""
    return row["client_address"], row["client_id"]


def _waited(row: Row, since: int, until: int) -> bool:
    """The request was there for most of the silence, and was answered right after it, or never."""
    if row["ts"] >= until or until - max(row["ts"], since) < _SLOW_NS:
        return False
    answered = row["ts_response"]
    if answered is None:
        return bool(row["ts"] >= since - NS_PER_S)
    return bool(until <= answered <= until + _TOGETHER_NS)


def standstill_finding(rule: Rule, silence: Silence, connections: Mapping[str, Row]) -> Finding:
    """One such time. connections: by flow id; they tell whether TCP delivered what waited."""
    rows = silence.waiting
    first = rows[0]
    clients = Counter(client_of(row) for row in rows)
    named = {client_of(row): row for row in reversed(rows)}
    operations = Counter(row["operation"] or "?" for row in rows)
    kinds = names_text([f"{number} {name}" for name, number in operations.most_common()], 3)
    lost = sum(row["ts_response"] is None for row in rows)
    never = f", {lost} of them never" if lost else ""
    who = names_text([client_text(named[key]) for key, _ in clients.most_common()], 2)
    lasted = silence.until_ns - silence.since_ns
    states = [at_the_first_try(row, connections.get(row["flow_id"])) for row in rows]
    # Where everything that is known was sent again, the way may have stood still instead.
    by_way = False in states and True not in states
    return rule.finding(
        confidence="medium" if by_way else "high",
        title=(
            f"{server_text(first)} responded to nobody for {seconds_text(lasted)}: {count(len(rows), 'request')} of "
            f"{count(len(clients), 'client')} waited"
        ),
        subject={"cluster": first["cluster_id"], "server": server_text(first), "since": time_text(silence.since_ns)},
        sentence=(
            f"{sentence_start(server_text(first))} responded to nobody for {seconds_text(lasted)}, from "
            f"{clock_text(silence.since_ns)} on, while {count(len(rows), 'request')} of "
            f"{count(len(clients), 'client')} waited ({kinds}), then to all at once{never}. "
            f"{sentence_start(_side(states))} It hit {who}."
        ),
        next_step=(
            "Look whether the broker's host or its link was off the network at that time, and what stopped it if not: "
            "garbage collection and safepoint logs, steal time of its virtual machine."
            if by_way
            else "Look what stopped the broker at that time: garbage collection and safepoint logs, steal time and "
            "snapshots of its virtual machine, a disk that blocks. What clients and groups report of that time follows."
        ),
        proof=Proof(
            silence.since_ns,
            silence.until_ns,
            (Evidence(row["request_file"], row["request_packet"], row["request_message_id"]) for row in rows),
        ),
        numbers={
            "cluster": first["cluster_id"],
            "server": server_text(first),
            "where": server_text(first),
            "kind": "froze",
            "since": time_text(silence.since_ns),
            "until": time_text(silence.until_ns),
            "silent_ms": round(lasted / NS_PER_MS, 3),
            "stood_still_ms": round(lasted / NS_PER_MS, 3),
            "requests": len(rows),
            "unanswered": lost,
            **counted_at_once(states),
            "operations": dict(operations),
            "clients": [],
            "victims": [
                client_numbers(named[key], requests=number) for key, number in clients.most_common(_MOST_NAMED)
            ],
        },
    )


def _side(states: Sequence[bool | None]) -> str:
    """What stood still, by whether TCP delivered each request at the first try."""
    delivered = states.count(True)
    if delivered:
        known = "all of them" if delivered == len(states) else f"{delivered} of them"
        return f"its process stood still, for the server's TCP had {known} at the first try."
    if False in states:
        return "its process stood still, or the way to it did, for segments of these connections were sent again."
    return "its process stood still."
