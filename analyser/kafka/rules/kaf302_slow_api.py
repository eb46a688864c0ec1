"""KAF302 slow-api: a broker hung for seconds, or responds to requests of a kind much later than it used to.

Finds
    Times in which a broker responded to nobody although requests of several clients waited, and then to all of them.
    And ten seconds or more in which one API of a client took several times as long as in the rest of the capture.

Why it matters
    Sessions expire, commits and produces time out, members are thrown out, and each client seems to have a fault of its
    own, while one process stood still: a pause of the virtual machine or of the garbage collector, a disk that blocks,
    a stopped process. What clients report of that time is a consequence. Slow answers to one API delay what is written
    or committed; a mean over the whole capture hides them.

How it decides
    Requests of three clients (clients_least) at least that waited 2 s or more, two of them with requests that do not
    ask the broker to wait; the broker gave no answer to anybody for 3 s (silent_s); and the waiting requests were
    answered within a second of each other after it, or never. Two clients are enough where everybody waited: whoever
    was answered shortly before or behind it had a request open, one at least that a broker answers from its memory
    (Heartbeat, Metadata, a Fetch 2 s beyond its max_wait_ms and the like), the broker closed none of their
    connections, and they are at two addresses or TCP shows that the broker had the request. JoinGroup and SyncGroup do
    not count. Some request must have come in between: without any, the capture itself may have stood still.
    Only requests that wait for the broker itself show it: what waits for replicas (Produce, OffsetCommit and other
    writes) or for data (Fetch, up to its max_wait_ms) may wait for others. Where TCP of both sides is in the capture
    it says which side it was: a request on a connection on which nothing was sent again was confirmed at once, so
    the broker had it; where something was sent again on all of them, the way may have stood still.
    Slow: requests of one client and API that were answered without an error, in windows of `window_s`, those with
    `samples` at least (of a window with more than 100, a sample of so many), five such windows (windows_least). A
    window is slow when its 90th and its 99th percentile are both more than `ratio` times the median of those of all
    windows, the 90th is above `slow_ms`, and late requests come in three different seconds of it: the 99th alone
    rises so at every busy healthy broker. A warning from the second slow window on, else info. Requests that ask
    the broker to wait (Fetch, JoinGroup, SyncGroup) and those among brokers are left out, and windows in which the
    broker stood still, and connections on which a quota makes the client wait (KAF304).
    A Fetch may wait for its max_wait_ms (the largest that its connection asked for). It is late when its answer comes
    beyond_wait_ms later, less what the quickest answer to this address took; answers of more than 64 KiB, whose way
    takes time, and a Fetch sent before the last one was answered do not count. Three late ones in different seconds
    of a window make it slow, whatever other windows are.
    Where writes were slow and a follower that had read from this leader sent it no Fetch for two seconds meanwhile, the
    finding names the follower: acks=all waits for it until it leaves the in-sync replicas.

False alarms
    A capture that lost the broker's packets only: gaps tell that (CAP101). A producer whose batches grow, or whose
    acks wait for a slow replica: the broker answers late, another one is slow. A machine that has too little time
    for the broker makes it stand still without any fault of its own: so it did in one healthy run of the lab
    (docs/lab.md). Topics with tiered storage, whose old records come from elsewhere (remote.fetch.max.wait.ms).

What it cannot tell
    Whether the broker, its disk or its host was slow. A broker that is slow from the begin of the capture to its
    end: windows are compared with each other. Of requests alone, or of answers alone, nothing is said.

References
    The broker's request metrics (RequestQueueTimeMs, LocalTimeMs, RemoteTimeMs); JVM safepoint and GC logs; vmstat's
    steal time; max_wait_ms and min_bytes of Fetch in the protocol guide; KIP-219 (quotas); RFC 6298 (retransmission).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS
from wirewitness.analyser.kafka.rules.replica_fetchers import silent_followers
from wirewitness.analyser.kafka.rules.slow_findings import slow_findings
from wirewitness.analyser.kafka.rules.slow_windows import MOST_ANSWER_BYTES, Limits, slow_apis
from wirewitness.analyser.kafka.rules.stalls import FOR_MEMBERS, standstill_finding, stood_still
from wirewitness.analyser.tables.queries import IS_TIMED

# So many requests of a window are looked at.
_SAMPLE = 100


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
    beyond_wait_ms: float = 500.0,
) -> Iterator[Finding]:
    """One finding per time that this broker stood still, and one of APIs that were slow, by whom they waited for."""
    rows = rows_of(frames["exchanges"])
    connections = {row["flow_id"]: row for row in rows_of(frames[CONNECTIONS])}
    stood = list(stood_still(rows, connections, silent_s, clients_least))
    for silence in stood:
        yield standstill_finding(RULE, silence, connections)
    limits = Limits(window_s, samples, windows_least, ratio, slow_ms, beyond_wait_ms)
    slow = list(slow_apis(rows, connections, stood, limits))
    yield from slow_findings(RULE, slow, silent_followers(rows, connections), connections)


# Of the quick answers two of each second suffice to see that the broker was alive: its first and its last.
_ALIVE = """
    SELECT unnest([arg_min(exchange_id, ts_response), arg_max(exchange_id, ts_response)]) FROM exchanges
    WHERE protocol = 'kafka' AND ts_response IS NOT NULL
    GROUP BY cluster_id, server_address, server_port, epoch_ns(ts_response) // 1000000000"""
_SLOW = "(latency_ms >= 2000 OR status = 'unanswered')"
# Where a tenth of the requests of a window, two at least, took long, a sample of each window of that client and API.
_LATE = "count(*) >= 20 AND count(*) FILTER (latency_ms > 50) >= count(*) / 10"
_PLAIN = f"protocol = 'kafka' AND status = 'ok' AND {IS_TIMED}"
_STREAM = "cluster_id, server_address, server_port, client_address, client_id, operation"
_LATE_STREAMS = f"""
    SELECT DISTINCT concat_ws(chr(10), {_STREAM}) FROM (
        SELECT {_STREAM} FROM exchanges WHERE {_PLAIN}
        GROUP BY {_STREAM}, epoch_ns(ts) // 10000000000 HAVING {_LATE})"""
_SAMPLED = f"""
    SELECT unnest(arg_min(exchange_id, hash(exchange_id), {_SAMPLE})) FROM exchanges
    WHERE {_PLAIN} AND concat_ws(chr(10), {_STREAM}) IN ({_LATE_STREAMS})
    GROUP BY {_STREAM}, epoch_ns(ts) // 10000000000"""
# Of a follower's the same: between them it was not silent.
_FOLLOWERS = """
    SELECT unnest([arg_min(exchange_id, ts), arg_max(exchange_id, ts)]) FROM exchanges
    WHERE protocol = 'kafka' AND operation = 'Fetch' AND client_id LIKE 'broker-%-fetcher-%'
    GROUP BY cluster_id, server_address, server_port, client_address, client_id, epoch_ns(ts) // 1000000000"""
_LATE_FETCH = (
    "e.operation = 'Fetch' AND e.status = 'ok' AND e.awaitable AND c.throttled = 0 "
    "AND e.latency_ms > c.max_wait_ms + 500"
)
# One that was sent before the last one was answered waited for that first.
_LATE_FETCHES = f"""
    SELECT e.exchange_id FROM (
        SELECT flow_id, exchange_id, operation, status, awaitable, latency_ms, ts, response_bytes,
               lag(ts_response) OVER (PARTITION BY flow_id ORDER BY ts, request_packet) AS ts_before
        FROM exchanges WHERE flow_id IN (
            SELECT e.flow_id FROM exchanges e JOIN {CONNECTIONS} c USING (flow_id) WHERE {_LATE_FETCH})) e
    JOIN {CONNECTIONS} c USING (flow_id)
    WHERE {_LATE_FETCH} AND e.response_bytes <= {MOST_ANSWER_BYTES} AND coalesce(ts_before <= e.ts, true)"""

RULE = Rule(
    code="KAF302",
    question="waiting",
    name="slow-api",
    severity="critical",
    confidence="high",
    reads={
        "exchanges": (
            "ts", "ts_response", "exchange_id", "flow_id", "operation", "client_id", "client_address", "awaitable",
            "status", "latency_ms", "request_file", "request_packet", "request_message_id", "request_bytes",
            "response_bytes",
        ),
        CONNECTIONS: (
            "ts", "flow_id", "gap_bytes", "acked_by_server", "ts_last_from_server", "retransmitted_segments",
            "throttled", "max_wait_ms", "closed_by", "ts_closed",
        ),
    },
    partition_by=("cluster_id", "server_address", "server_port"),
    detect=detect,
    rows={
        "exchanges": f"protocol = 'kafka' AND ({_SLOW} OR exchange_id IN ({_ALIVE}) OR exchange_id IN ({_SAMPLED}) "
        f"OR exchange_id IN ({_FOLLOWERS}) OR exchange_id IN ({_LATE_FETCHES}))",
        CONNECTIONS: "requests > 0",
    },
    suspects=f"""
        SELECT cluster_id, server_address, server_port FROM r_exchanges
        WHERE {_SLOW} AND operation NOT IN {FOR_MEMBERS}
        GROUP BY ALL HAVING count(DISTINCT concat_ws(' ', client_address, client_id)) >= 2
        UNION
        SELECT cluster_id, server_address, server_port FROM r_exchanges
        WHERE status = 'ok' AND awaitable IS NOT true
        GROUP BY cluster_id, server_address, server_port, client_address, client_id, operation, ts // 10000000000
        HAVING {_LATE}
        UNION
        SELECT cluster_id, server_address, server_port FROM r_exchanges
        WHERE exchange_id IN ({_LATE_FETCHES})""",
    signs={
        "exchanges": "bool_or(protocol = 'kafka' AND (status = 'unanswered' OR latency_ms > 500 OR latency_ms > 50 AND "
        "awaitable IS NOT TRUE))"
    },
)  # fmt: skip
