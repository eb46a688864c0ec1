"""KAF302 slow-api: a broker stood still for seconds, or answers requests of a kind much later than it used to.

Finds
    Times in which a broker answered nobody although requests of several clients waited, and then answered them all. And
    ten seconds or more in which one API of a client took several times as long as in the rest of the capture.

Why it matters
    Sessions expire, commits and produces time out, members are thrown out, and each client seems to have a fault of its
    own, while one process stood still: a pause of the virtual machine or of the garbage collector, a disk that blocks,
    a stopped process. What clients report of that time is a consequence. Slow answers to one API delay what is written
    or committed; a mean over the whole capture hides them.

How it decides
    Requests of three clients (clients_least) at least that waited 2 s or more, two of them with requests that do not
    ask the broker to wait; the broker gave no answer to anybody for 3 s (silent_s); and the waiting requests were
    answered within a second of each other after it, or never. JoinGroup and SyncGroup do not count. Some request must
    have come in between: without any, the capture itself may have stood still.
    Slow: requests of one client and API that were answered without an error, in windows of `window_s`, those with
    `samples` at least (of a window with more than 100, a sample of so many), five such windows (windows_least). A
    window is slow when its 90th and its 99th percentile are both more than `ratio` times the median of those of all
    windows, the 90th is above `slow_ms`, and late requests come in three different seconds of it: the 99th alone
    rises so at every busy healthy broker. A warning from the second slow window on, else info. Requests that ask
    the broker to wait (Fetch, JoinGroup, SyncGroup) and those among brokers are left out, and windows in which the
    broker stood still.

False alarms
    A capture that lost the broker's packets only: gaps tell that (CAP101). A producer whose batches grow, or whose
    acks wait for a slow replica: the broker answers late, another one is slow. A machine that has too little time
    for the broker makes it stand still without any fault of its own: so it did in one healthy run of the lab
    (docs/lab.md).

References
    The broker's request metrics (RequestQueueTimeMs, LocalTimeMs); JVM safepoint and GC logs; vmstat's steal time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
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
# So many requests of a window are looked at.
_SAMPLE = 100
# A pause of a moment delays many requests at once: late ones must come in so many different seconds of a window.
_SECONDS = 3
# Client ids of brokers: what they ask each other.
_AMONG_BROKERS = ("broker-", "raft-client-", "node-")


class _Silence(NamedTuple):
    """From the last answer before to the first one after; what waited all the time or came meanwhile."""

    since_ns: int
    until_ns: int
    waiting: Sequence[Row]


class _Window(NamedTuple):
    """Requests of one client and API in ten seconds; p90 and p99 in ms."""

    since_ns: int
    rows: Sequence[Row]
    p90: float
    p99: float


class _Slow(NamedTuple):
    """The slow windows of one client and API; usual: what the 90th percentile is in most windows, in ms."""

    windows: Sequence[_Window]
    usual: float

    @property
    def worst(self) -> _Window:
        return max(self.windows, key=lambda window: window.p90)


def detect(
    frames: Frames,
    *,
    silent_s: float = 3.0,
    clients_least: int = 3,
    window_s: float = 10.0,
    samples: int = 20,
    windows_least: int = 5,
    ratio: float = 3.0,
    slow_ms: float = 50.0,
) -> Iterator[Finding]:
    """One finding per time that this broker stood still, and one of APIs that were slow."""
    rows = rows_of(frames["exchanges"])
    stood = list(_stood_still(rows, silent_s, clients_least))
    yield from map(_finding, stood)
    still = [(one.since_ns, one.until_ns) for one in stood]
    slow = []
    for own in _streams(rows).values():
        windows = [one for one in _windows(own, round(window_s * NS_PER_S)) if len(one.rows) >= samples]
        usual = (median(w.p90 for w in windows), median(w.p99 for w in windows)) if windows else (0.0, 0.0)
        bad = [w for w in windows if w.p90 > max(slow_ms, ratio * usual[0]) and w.p99 > ratio * usual[1]]
        bad = [w for w in bad if len({r["ts"] // NS_PER_S for r in w.rows if r["latency_ms"] > slow_ms}) >= _SECONDS]
        bad = [w for w in bad if not any(a < w.rows[-1]["ts"] and w.rows[0]["ts"] < b for a, b in still)]
        if bad and len(windows) >= windows_least:
            slow.append(_Slow(bad, usual[0]))
    if slow:
        yield _slow_finding(slow)


def _streams(rows: Sequence[Row]) -> dict[tuple[object, ...], list[Row]]:
    """Requests that say how quick the broker is, by client and API."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        among = str(row["client_id"]).startswith(_AMONG_BROKERS)
        if not row["awaitable"] and row["status"] == "ok" and row["latency_ms"] is not None and not among:
            found.setdefault((*_client(row), row["operation"]), []).append(row)
    return found


def _windows(rows: Sequence[Row], length_ns: int) -> Iterator[_Window]:
    by_time: dict[int, list[Row]] = {}
    for row in rows:
        by_time.setdefault(row["ts"] // length_ns, []).append(row)
    for place, own in by_time.items():
        took = sorted(row["latency_ms"] for row in own)
        yield _Window(place * length_ns, own, took[len(took) * 9 // 10], took[len(took) * 99 // 100])


def _stood_still(rows: Sequence[Row], silent_s: float, clients_least: int) -> Iterator[_Silence]:
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
            yield _Silence(since, until, waiting)


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


def _slow_finding(slow: Sequence[_Slow]) -> Finding:
    """What was slow at this broker, the worst first."""
    ordered = sorted(slow, key=lambda one: -one.worst.p90)
    first, worst = ordered[0].worst.rows[0], ordered[0].worst
    windows = [window for one in ordered for window in one.windows]
    since, until = min(w.rows[0]["ts"] for w in windows), max(w.rows[-1]["ts_response"] for w in windows)
    others = [f"{one.worst.rows[0]['operation']} of {client_text(one.worst.rows[0])}" for one in ordered[1:]]
    beside = f" So were {names_text(others, 3)}." if others else ""
    return DETECTOR.finding(
        severity="warning" if any(len(one.windows) > 1 for one in slow) else "info",
        confidence="medium",
        subject={"cluster": first["cluster_id"], "server": server_text(first), "kind": "slow"},
        sentence=(
            f"{sentence_start(server_text(first))} was slow to answer {first['operation']} of {client_text(first)}: a "
            f"tenth of these requests took {worst.p90:,.0f} ms or more (99th percentile {worst.p99:,.0f} ms) at "
            f"{clock_text(first['ts'])}, where {ordered[0].usual:,.1f} ms are usual; slow for "
            f"{seconds_text(until - since)} in all.{beside}"
        ),
        next_step=(
            "Compare with other brokers and APIs (`wirewitness brokers --over-time`): one API alone points at disks "
            "(Produce) or the log of offsets (OffsetCommit), all of them at the process or its machine; one client "
            "alone at the size of what it asks, or at the network (TCP101)."
        ),
        proof=Proof(
            since,
            until,
            (
                Evidence(row["request_file"], row["request_packet"], row["request_message_id"])
                for row in sorted(worst.rows, key=lambda row: -row["latency_ms"])[:20]
            ),
        ),
        numbers={
            "cluster": first["cluster_id"],
            "server": server_text(first),
            "where": server_text(first),
            "kind": "slow",
            "since": time_text(since),
            "until": time_text(until),
            "operations": sorted({str(one.worst.rows[0]["operation"]) for one in ordered}),
            "p90_ms": round(worst.p90, 3),
            "p99_ms": round(worst.p99, 3),
            "usual_p90_ms": round(ordered[0].usual, 3),
            "windows": len(windows),
            "clients": [],
            "victims": [
                client_numbers(one.worst.rows[0], operation=one.worst.rows[0]["operation"], p90_ms=one.worst.p90)
                for one in ordered[:_MOST_NAMED]
            ],
        },
    )


# Of the quick answers two of each second suffice to see that the broker was alive: its first and its last.
_ALIVE = """
    SELECT unnest([arg_min(exchange_id, ts_response), arg_max(exchange_id, ts_response)]) FROM exchanges
    WHERE protocol = 'kafka' AND ts_response IS NOT NULL
    GROUP BY cluster_id, server_address, server_port, epoch_ns(ts_response) // 1000000000"""
_SLOW = "(latency_ms >= 2000 OR status = 'unanswered')"
# Where a tenth of the requests of a window, two at least, took long, a sample of each window of that client and API.
_LATE = "count(*) >= 20 AND count(*) FILTER (latency_ms > 50) >= count(*) / 10"
_PLAIN = "protocol = 'kafka' AND status = 'ok' AND awaitable IS NOT true AND latency_ms IS NOT NULL"
_STREAM = "cluster_id, server_address, server_port, client_address, client_id, operation"
_LATE_STREAMS = f"""
    SELECT DISTINCT concat_ws(chr(10), {_STREAM}) FROM (
        SELECT {_STREAM} FROM exchanges WHERE {_PLAIN}
        GROUP BY {_STREAM}, epoch_ns(ts) // 10000000000 HAVING {_LATE})"""
_SAMPLED = f"""
    SELECT unnest(arg_min(exchange_id, hash(exchange_id), {_SAMPLE})) FROM exchanges
    WHERE {_PLAIN} AND concat_ws(chr(10), {_STREAM}) IN ({_LATE_STREAMS})
    GROUP BY {_STREAM}, epoch_ns(ts) // 10000000000"""

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
    rows={
        "exchanges": f"protocol = 'kafka' AND ({_SLOW} OR exchange_id IN ({_ALIVE}) OR exchange_id IN ({_SAMPLED}))",
    },
    suspects=f"""
        SELECT cluster_id, server_address, server_port FROM r_exchanges
        WHERE {_SLOW} AND operation NOT IN {_FOR_MEMBERS}
        GROUP BY ALL HAVING count(DISTINCT concat_ws(' ', client_address, client_id)) >= 3
        UNION
        SELECT cluster_id, server_address, server_port FROM r_exchanges
        WHERE status = 'ok' AND awaitable IS NOT true
        GROUP BY cluster_id, server_address, server_port, client_address, client_id, operation, ts // 10000000000
        HAVING {_LATE}""",
)  # fmt: skip
