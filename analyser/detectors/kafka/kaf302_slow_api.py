"""KAF302 slow-api: a broker stood still for seconds, for all of its clients at once.

Finds
    Times in which a broker answered nobody although requests of several clients waited, and then answered them all.

Why it matters
    Sessions expire, commits and produces time out, members are thrown out, and each client seems to have a fault of its
    own, while one process stood still: a pause of the virtual machine or of the garbage collector, a disk that blocks,
    a stopped process. What clients report of that time is a consequence.

How it decides
    Requests of three clients (clients_least) at least that waited 2 s or more, two of them with requests that do not
    ask the broker to wait; the broker gave no answer to anybody for 3 s (silent_s); and the waiting requests were
    answered within a second of each other after it, or never. JoinGroup and SyncGroup do not count. Some request must
    have come in between: without any, the capture itself may have stood still.

False alarms
    A capture that lost the broker's packets only: gaps tell that (CAP101).

References
    The broker's request metrics (RequestQueueTimeMs, LocalTimeMs); JVM safepoint and GC logs; vmstat's steal time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from analyser.addresses import server_text
from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Evidence, Finding
from analyser.detectors.frame_rows import Row, rows_of
from analyser.detectors.kafka.names import client_numbers, client_text
from analyser.detectors.proof import Proof
from analyser.times import NS_PER_S, clock_text, seconds_text, time_text
from analyser.words import count, names_text, sentence_start

_MOST_NAMED = 20
_SLOW_NS = 2 * NS_PER_S
_TOGETHER_NS = NS_PER_S
# Something must come in between, this far from both ends: else it may be the capture that stood still.
_EDGE_NS = NS_PER_S // 2
_FOR_MEMBERS = ("JoinGroup", "SyncGroup")


class _Silence(NamedTuple):
    """From the last answer before to the first one after; what waited all the time or came meanwhile."""

    since_ns: int
    until_ns: int
    waiting: Sequence[Row]


def detect(frames: Frames, *, silent_s: float = 3.0, clients_least: int = 3) -> Iterator[Finding]:
    """One finding per time that this broker stood still."""
    rows = rows_of(frames["exchanges"])
    answers = sorted(row["ts_response"] for row in rows if row["ts_response"] is not None)
    slow = [row for row in rows if row["operation"] not in _FOR_MEMBERS]
    for since, until in pairwise(answers):
        if until - since < silent_s * NS_PER_S:
            continue
        if not any(since + _EDGE_NS < row["ts"] < until - _EDGE_NS for row in rows):
            continue
        waiting = [row for row in slow if _waited(row, since, until)]
        plain = {_client(row) for row in waiting if not row["awaitable"]}
        if len({_client(row) for row in waiting}) >= clients_least and len(plain) >= clients_least - 1:
            yield _finding(_Silence(since, until, waiting))


def _client(row: Row) -> tuple[object, object]:
    return row["client_address"], row["client_id"]


def _waited(row: Row, since: int, until: int) -> bool:
    """The request was there for most of the silence, and was answered right after it, or never."""
    if row["ts"] >= until or until - max(row["ts"], since) < _SLOW_NS:
        return False
    answered = row["ts_response"]
    if answered is None:
        return bool(row["ts"] >= since - NS_PER_S)
    return bool(until <= answered <= until + _TOGETHER_NS)


def _finding(silence: _Silence) -> Finding:
    rows = silence.waiting
    first = rows[0]
    clients = Counter(_client(row) for row in rows)
    named = {_client(row): row for row in reversed(rows)}
    operations = Counter(row["operation"] or "?" for row in rows)
    shown = names_text([f"{number} {name}" for name, number in operations.most_common()], 4)
    lost = sum(row["ts_response"] is None for row in rows)
    never = f"; {lost} of them never" if lost else ""
    who = names_text([client_text(named[key]) for key, _ in clients.most_common()], 3)
    lasted = silence.until_ns - silence.since_ns
    return DETECTOR.finding(
        subject={"cluster": first["cluster_id"], "server": server_text(first), "since": time_text(silence.since_ns)},
        sentence=(
            f"{sentence_start(server_text(first))} answered nobody for {seconds_text(lasted)}, from "
            f"{clock_text(silence.since_ns)} to {clock_text(silence.until_ns)}, while {count(len(rows), 'request')} of "
            f"{count(len(clients), 'client')} waited ({shown}), and then all at once{never}: its process stood still. "
            f"It hit {who}."
        ),
        next_step=(
            "Look what stopped the broker at that time: garbage collection and safepoint logs, steal time and "
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
            "silent_ms": round(lasted / 1e6, 3),
            "stood_still_ms": round(lasted / 1e6, 3),
            "requests": len(rows),
            "unanswered": lost,
            "operations": dict(operations),
            "clients": [],
            "victims": [
                client_numbers(named[key], requests=number) for key, number in clients.most_common(_MOST_NAMED)
            ],
        },
    )


# Of the quick answers two of each second suffice to see that the broker was alive: its first and its last.
_ALIVE = """
    SELECT unnest([arg_min(exchange_id, ts_response), arg_max(exchange_id, ts_response)]) FROM exchanges
    WHERE protocol = 'kafka' AND ts_response IS NOT NULL
    GROUP BY cluster_id, server_address, server_port, epoch_ns(ts_response) // 1000000000"""
_SLOW = "(latency_ms >= 2000 OR status = 'unanswered')"

DETECTOR = Detector(
    code="KAF302",
    name="slow-api",
    severity="critical",
    confidence="high",
    reads={
        "exchanges": (
            "ts", "ts_response", "exchange_id", "operation", "client_id", "client_address", "awaitable", "status",
            "latency_ms", "request_file", "request_packet", "request_message_id",
        ),
    },
    partition_by=("cluster_id", "server_address", "server_port"),
    detect=detect,
    rows={"exchanges": f"protocol = 'kafka' AND ({_SLOW} OR exchange_id IN ({_ALIVE}))"},
    suspects=f"""
        SELECT cluster_id, server_address, server_port FROM r_exchanges
        WHERE {_SLOW} AND operation NOT IN {_FOR_MEMBERS}
        GROUP BY ALL HAVING count(DISTINCT concat_ws(' ', client_address, client_id)) >= 3""",
)  # fmt: skip
