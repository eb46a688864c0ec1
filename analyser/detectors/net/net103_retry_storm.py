"""NET103 retry-without-back-off: a client tries again and again without waiting longer.

Finds
    Clients whose connections to one server are refused, or whose logins are, many times with hardly a pause.

Why it matters
    A thousand clients that try ten times a second keep a server that comes back from coming back, and fill the logs of
    both. It also hides what was wrong first.

How it decides
    20 failed attempts or more (attempts_least) of one client address at one server: a SYN that is answered by RST, or a
    login that is refused. The median pause between them is less than half a second (pause_s; Java's Kafka clients wait
    up to a second by default), and the pauses do not grow: that of the last third of them is less than twice that of
    the first third (growth_below).

False alarms
    Many clients behind one address, each of which waits as it should. A port scanner.

References
    reconnect.backoff.ms and reconnect.backoff.max.ms of Kafka clients; RFC 9293 has no rule for applications; AWS
    Architecture Blog, "Exponential Backoff And Jitter".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from analyser.addresses import server_text
from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Evidence, Finding
from analyser.detectors.frame_rows import Row, rows_of
from analyser.detectors.proof import Proof
from analyser.times import NS_PER_S, seconds_text

LOGINS = "kafka_authentications"


def detect(
    frames: Frames, *, attempts_least: int = 20, pause_s: float = 0.5, growth_below: float = 2.0
) -> Iterator[Finding]:
    """At most one finding for this client and server: its refused connections, else its refused logins."""
    for table, what in (("flows", "connections are refused"), (LOGINS, "logins are refused")):
        rows = rows_of(frames[table])
        if len(rows) < attempts_least:
            continue
        pauses = [
            (second["ts_begin"] - first["ts_begin"]) / NS_PER_S for first, second in pairwise(_begun(rows, table))
        ]
        third = max(len(pauses) // 3, 1)
        first, last = median(pauses[:third]), median(pauses[-third:])
        if median(pauses) < pause_s and last < growth_below * max(first, 0.001):
            yield _finding(_begun(rows, table), what, median(pauses))
            return


def _begun(rows: Sequence[Row], table: str) -> list[Row]:
    """The rows with the time of each attempt under one name, in that order."""
    column = "ts_first" if table == "flows" else "ts"
    return sorted(({**row, "ts_begin": row[column]} for row in rows), key=lambda row: row["ts_begin"])


def _finding(rows: Sequence[Row], what: str, pause: float) -> Finding:
    first, last = rows[0], rows[-1]
    server = server_text(first)
    lasted = last["ts_begin"] - first["ts_begin"]
    name = next((row["client_id"] for row in rows if row.get("client_id")), None)
    return DETECTOR.finding(
        subject={"client": first["client_address"], "server": server},
        sentence=(
            f"{first['client_address']} tries {len(rows)} times in {seconds_text(lasted)} to get into {server} "
            f"although its {what}: the median pause is {pause * 1000:,.0f} ms, and it does not grow."
        ),
        next_step=(
            "Mend what is refused (TCP104 for connections, KAF312 for logins); then let the client wait longer after "
            "each failure, with jitter (reconnect.backoff.max.ms in Kafka clients)."
        ),
        proof=Proof(
            first["ts_begin"],
            last["ts_begin"],
            (Evidence(row.get("file"), row.get("first_packet"), row.get("exchange_id")) for row in rows),
        ),
        numbers={
            "address": first["client_address"],
            "server": server,
            "where": server,
            "attempts": len(rows),
            "median_pause_ms": round(pause * 1000, 3),
            "clients": [{"address": first["client_address"], "client_id": name}],
        },
    )


DETECTOR = Detector(
    code="NET103",
    name="retry-without-back-off",
    severity="warning",
    confidence="high",
    reads={
        "flows": ("ts_first", "flow_id", "file", "first_packet"),
        LOGINS: ("ts", "exchange_id", "client_id"),
    },
    partition_by=("client_address", "server_address", "server_port"),
    detect=detect,
    rows={"flows": "handshake = 'refused' AND duplicate_of IS NULL", LOGINS: "NOT accepted AND error_code <> 0"},
    suspects=f"""
        SELECT client_address, server_address, server_port FROM r_flows GROUP BY ALL HAVING count(*) >= 20
        UNION ALL
        SELECT client_address, server_address, server_port FROM r_{LOGINS} GROUP BY ALL HAVING count(*) >= 20""",
)
