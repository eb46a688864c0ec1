"""MON107 connection-churn: a client suddenly opens many more connections than it used to.

Finds
    A client address whose new connections per minute rise far above its own habit.

Why it matters
    Drivers keep their connections in a pool. A new one costs TCP, TLS, hello and authentication, and SCRAM is made
    to be expensive for the server. Connections opened by the minute mean that the pool is thrown away again and
    again, after errors, by an application that makes a client for each request, or by one that retries in a storm.

How it decides
    New connections with a hello whose TCP handshake is in the capture, per minute of a client address, against the
    median of its minutes; at least 10 times as many (times), with at least 5 minutes (minutes_least) and 30 such
    connections (connections_least). The first minute is left out, as a client that starts fills its pool. A median
    below 1 counts as 1.

False alarms
    Many clients behind one address (NAT, a proxy). An application that is restarted, or scaled out, within the
    capture.

References
    Connection monitoring and pooling specification (CMAP): minPoolSize, maxIdleTimeMS, clearing of pools.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from analyser.addresses import server_text
from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame_rows import Row, rows_of
from analyser.detectors.mongo.mongo_rows import (
    COMMAND_COLUMNS,
    HELLOS,
    MONGO_FLOWS,
    MOST_LISTED,
    by_client,
    client_numbers,
    client_text,
    command_finding,
    listed,
)
from analyser.times import NS_PER_S
from analyser.words import count, sentence_start

_MINUTE_NS = 60 * NS_PER_S


def detect(
    frames: Frames, *, times: float = 10.0, minutes_least: int = 5, connections_least: int = 30
) -> Iterator[Finding]:
    """At most one finding for this client address: its fullest minute."""
    flows = rows_of(frames["flows"])
    opened = {flow["flow_id"] for flow in flows if flow["handshake_seen"]}
    first_hellos: dict[str, Row] = {}
    for row in rows_of(frames["mongo_commands"]):
        if row["flow_id"] in opened:
            first_hellos.setdefault(row["flow_id"], row)
    if len(first_hellos) < connections_least:
        return
    start = min(flow["ts_first"] for flow in flows)
    end = max(flow["observed_until"] or flow["ts_last"] for flow in flows)
    minutes: list[list[Row]] = [[] for _ in range(_minute(end, start) + 1)]
    for row in first_hellos.values():
        minutes[min(_minute(row["ts"], start), len(minutes) - 1)].append(row)
    usual = float(median(map(len, minutes)))
    fullest = max(minutes[1:], key=len, default=[])
    if len(minutes) >= minutes_least and len(fullest) >= times * max(usual, 1):
        yield _finding(fullest, len(first_hellos), len(minutes), usual)


def _minute(ts: int, start: int) -> int:
    return max(0, ts - start) // _MINUTE_NS


def _finding(rows: list[Row], connections: int, minutes: int, usual: float) -> Finding:
    clients = by_client(rows)
    first = clients[0][0]
    more = f" and {count(len(clients) - 1, 'more application')}" if len(clients) > 1 else ""
    return command_finding(
        DETECTOR,
        rows,
        severity="warning",
        confidence="medium",
        subject={"address": first["client_address"]},
        sentence=(
            f"{sentence_start(client_text(first))}{more} opened {len(rows)} connections to "
            f"{listed(server_text(row) for row in rows)} within a minute; its median is {usual:g} a minute "
            f"({connections} in {minutes} minutes)."
        ),
        next_step=(
            "Look for a client object made for each request, for errors that clear the pool (MON102, MON103), and for "
            "maxIdleTimeMS and maxPoolSize; let several calls share one client."
        ),
        numbers={
            "in_fullest_minute": len(rows),
            "median_per_minute": usual,
            "connections": connections,
            "minutes": minutes,
            "where": server_text(first),
            "clients": [client_numbers(held[0], connections=len(held)) for held in clients[:MOST_LISTED]],
        },
    )


DETECTOR = Detector(
    code="MON107",
    name="connection-churn",
    severity="warning",
    confidence="medium",
    reads={
        "mongo_commands": COMMAND_COLUMNS,
        "flows": ("flow_id", "ts_first", "ts_last", "observed_until", "handshake_seen"),
    },
    partition_by=("client_address",),
    detect=detect,
    rows={"mongo_commands": f"command IN {HELLOS}", "flows": MONGO_FLOWS},
    suspects="SELECT client_address FROM r_flows WHERE handshake_seen GROUP BY client_address HAVING count(*) >= 30",
)
