"""MON136 idle-closed: the server's side closes connections that rest, always after the same time.

Finds
    Connections that are closed from the server's side after the same time of rest, while their client goes on to work
    and opens new ones.

Why it matters
    MongoDB does not close what is idle: something before it does, a proxy or a load balancer. Each piece of work after
    a pause waits for a new connection with TLS and login, and a command that is sent as the close is on its way fails.

How it decides
    At least 10 connections (least) of one client (address) to one server were closed from the server's side, without a
    command that waits for a reply, and the time from the last message until then is the same: four fifths (share) of
    them within a tenth (spread) of the median, and 200 ms. No connection of the two that the server's side did not
    close rests for longer than that. The client opened connections for work at least 5 times (works_least). So a server
    that is stopped is none, as its connections end at one time, not at one age of rest.

False alarms
    A client that closes itself by the server's means.

What it cannot tell
    Who it was: the server's address is all that a proxy shows.

References
    Connection string option maxIdleTimeMS; idle time-outs of HAProxy, Envoy and load balancers of clouds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    HELLO_NAMES,
    MONGO_FLOWS,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
)
from wirewitness.analyser.mongo.rules.use import DATA

# What a close takes to be seen, and a timer to run off.
_LATE_MS = 200.0


def detect(
    frames: Frames, *, least: int = 10, share: float = 0.8, spread: float = 0.1, works_least: int = 5
) -> Iterator[Finding]:
    """At most one finding for this client at this server."""
    last: dict[str, Row] = {}
    works: dict[str, Row] = {}
    for row in rows_of(frames["mongo_commands"]):
        if row["command"] in DATA:
            works.setdefault(row["flow_id"], row)
        if row["flow_id"] not in last or _seen(row) >= _seen(last[row["flow_id"]]):
            last[row["flow_id"]] = row
    flows = [flow for flow in rows_of(frames["flows"]) if flow["flow_id"] in last]
    closed = [flow for flow in flows if flow["closed_by"] == "server" and not _waits(last[flow["flow_id"]])]
    if len(closed) < least or len(works) < works_least:
        return
    rests = [_rest_ms(flow, last[flow["flow_id"]]) for flow in closed]
    usual = median(rests)
    most = usual * (1 + spread) + _LATE_MS
    alike = [rest for rest in rests if abs(rest - usual) <= usual * spread + _LATE_MS]
    others = [_rest_ms(flow, last[flow["flow_id"]]) for flow in flows if flow["closed_by"] != "server"]
    if len(alike) >= share * len(rests) and usual > _LATE_MS and all(rest <= most for rest in others):
        yield _finding([last[flow["flow_id"]] for flow in closed], usual, len(works), [*works.values()])


def _seen(row: Row) -> int:
    return int(row["ts_last_response"] or row["ts"])


def _waits(row: Row) -> bool:
    """Did a command wait for its reply? A hello that waits for news does not."""
    return row["ts_response"] is None and row["command"] not in HELLO_NAMES


def _rest_ms(flow: Row, row: Row) -> float:
    """From the last message until the connection was closed, or was seen last."""
    end = flow["ts_closed"] or flow["observed_until"] or flow["ts_last"]
    return float((end - _seen(row)) / NS_PER_MS)


def _finding(lasts: Sequence[Row], rest_ms: float, works: int, work: Sequence[Row]) -> Finding:
    ordered = sorted(lasts, key=lambda row: (row["ts"], row["exchange_id"]))
    first = min(work, key=lambda row: (row["ts"], row["exchange_id"]))
    server = server_text(first)
    return command_finding(
        RULE,
        ordered,
        severity="warning",
        confidence="medium",
        subject=client_key(first),
        title=f"Connections closed after {ms_text(rest_ms)} of rest: {server}, {len(lasts)} of {client_title(first)}",
        sentence=(
            f"{server} closed {count(len(lasts), 'connection')} of {client_text(first)}, each after {ms_text(rest_ms)} "
            f"of rest (median). The client opened connections for its work {works} times meanwhile. MongoDB does not "
            "close idle connections: something before the server does."
        ),
        next_step=(
            "Raise the idle time-out of the proxy or load balancer above the pauses of the application, or let the "
            "driver close first (maxIdleTimeMS below that time-out)."
        ),
        numbers={
            "closed": len(lasts),
            "left_behind": len(lasts),
            "rest_ms": round(rest_ms, 3),
            "connections_for_work": works,
            "lasted_s": round((ordered[-1]["ts"] - ordered[0]["ts"]) / NS_PER_S, 3),
            "where": server,
            "clients": [client_numbers(first, connections=len(lasts))],
        },
    )


_DATA = f"command IN {DATA}"
RULE = Rule(
    code="MON136",
    question="ended",
    name="idle-closed",
    severity="warning",
    confidence="medium",
    reads={
        "mongo_commands": (*COMMAND_COLUMNS, "ts_last_response"),
        "flows": ("flow_id", "closed_by", "ts_closed", "observed_until", "ts_last"),
    },
    partition_by=("server_address", "server_port", "client_address"),
    detect=detect,
    rows={
        "mongo_commands": "exchange_id IN (SELECT arg_max(exchange_id, coalesce(ts_last_response, ts)) FROM "
        f"mongo_commands GROUP BY flow_id UNION ALL SELECT min(exchange_id) FROM mongo_commands WHERE {_DATA} "
        "GROUP BY flow_id)",
        "flows": f"{MONGO_FLOWS} AND handshake = 'complete'",
    },
    suspects=(
        "SELECT server_address, server_port, client_address FROM r_flows WHERE closed_by = 'server' GROUP BY ALL "
        "HAVING count(*) >= 10"
    ),
)
