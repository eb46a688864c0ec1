"""MON107 connection-churn: connections made anew for a request or two, or suddenly many more than usual.

Finds
    An application that opens connections for one or two commands each and closes them again or leaves them open, as
    with a client object made for each request or a pool that closes what is idle for a moment; a client address whose
    new connections per minute rise far above its own habit.

Why it matters
    Drivers keep their connections in a pool. A new one costs TCP, TLS, hello and authentication, and SCRAM is made
    to be expensive for the server. Connections opened by the minute mean that the pool is thrown away again and
    again, after errors, by an application that makes a client for each request, or by one that retries in a storm.

How it decides
    A client for each request: at least 20 connections (short_least) that one application opened within a minute, that
    were closed within 5 s (short_s) and carried one or two commands (commands_most) besides hello, authentication and
    goodbye. They came one after the other: at least 5 of them (turns_least) began after the one before had ended, so
    that a pool of which all connections end together is none. Where connections that only watch the server stay open
    meanwhile it is one client whose pool gives up its connections: said so. Connections that only watch the server do
    not count, nor do those that the client closed because it gave up on a command (MON103).
    Left open: as many connections of one server, all of them open at the same time, that carried one or two commands
    within these 5 s of their first packet and nothing for as long since. They were opened over all the time that the
    capture lasts: the middle one neither in the first nor in the last quarter of it, as a pool that fills would.
    More than usual: new connections with a hello whose TCP handshake is in the capture, per minute of a client address,
    against the median of its minutes; at least 10 times as many (times), with at least 5 minutes (minutes_least) and 30
    such connections (connections_least). The first minute is left out, as a client that starts fills its pool. A median
    below 1 counts as 1. An application of the first kind is not told again.

False alarms
    Many clients behind one address (NAT, a proxy). An application that is restarted, or scaled out, within the
    capture. Command line tools that are run in a loop.

References
    Connection monitoring and pooling specification (CMAP): minPoolSize, maxIdleTimeMS, clearing of pools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.minutes import by_minute
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.left_open import Short, goes_on, lasted_ns, left_open
from wirewitness.analyser.mongo.rules.rows import (
    AROUND,
    COMMAND_COLUMNS,
    HELLO_NAMES,
    HELLOS,
    MONGO_FLOWS,
    MOST_LISTED,
    by_client,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    listed,
)

_MINUTE_NS = 60 * NS_PER_S


def detect(
    frames: Frames,
    *,
    times: float = 10.0,
    minutes_least: int = 5,
    connections_least: int = 30,
    short_least: int = 20,
    short_s: float = 5.0,
    commands_most: int = 2,
    turns_least: int = 5,
) -> Iterator[Finding]:
    """For each application at most one finding on short connections; at most one on the fullest minute of others."""
    flows = rows_of(frames["flows"])
    opened = {flow["flow_id"]: flow for flow in flows if flow["handshake_seen"]}
    gave_up = {row["flow_id"] for row in rows_of(frames["connection_ends"])}
    first_hellos: dict[str, Row] = {}
    work: dict[str, list[int]] = {}
    until_ns = max((flow["observed_until"] or flow["ts_last"] for flow in flows), default=0)
    for row in rows_of(frames["mongo_commands"]):
        if row["flow_id"] not in opened:
            continue
        if row["command"] in HELLO_NAMES:
            first_hellos.setdefault(row["flow_id"], row)
        elif row["command"] not in AROUND:
            work.setdefault(row["flow_id"], []).append(row["ts"])
    told = set()
    for (name, driver), mine in _by_application(first_hellos).items():
        short = [
            Short(opened[flow], hello, min(work[flow]))
            for flow, hello in mine.items()
            if flow not in gave_up
            and 0 < len(work.get(flow, ())) <= commands_most
            and lasted_ns(opened[flow]) < short_s * NS_PER_S
        ]
        fullest_minute = _fullest(short)
        if len(fullest_minute) >= short_least and _turns(fullest_minute) >= turns_least:
            told.add((name, driver))
            watching = [opened[flow] for flow in mine if flow not in work]
            yield _for_each_request(fullest_minute, len(short), len(mine), _client_stays(fullest_minute, watching))
            continue
        left = left_open(mine, opened, work, commands_most, short_s * NS_PER_S)
        if len(left) >= short_least and goes_on(left, until_ns - short_s * NS_PER_S):
            told.add((name, driver))
            yield _never_closed(left, len(mine))
    yield from _more_than_usual(
        flows,
        {flow: hello for flow, hello in first_hellos.items() if (hello["app_name"], hello["driver"]) not in told},
        times,
        minutes_least,
        connections_least,
    )


def _by_application(hellos: Mapping[str, Row]) -> dict[tuple[str | None, str | None], dict[str, Row]]:
    found: dict[tuple[str | None, str | None], dict[str, Row]] = {}
    for flow, hello in hellos.items():
        found.setdefault((hello["app_name"], hello["driver"]), {})[flow] = hello
    return found


def _fullest(short: Sequence[Short]) -> list[Short]:
    """Those of the minute in which most began."""
    ordered = sorted(short, key=lambda one: (one.flow["ts_first"], one.flow["flow_id"]))
    best, first = (0, 0), 0
    for last, one in enumerate(ordered):
        while one.flow["ts_first"] - ordered[first].flow["ts_first"] > _MINUTE_NS:
            first += 1
        best = max(best, (first, last + 1), key=lambda part: part[1] - part[0])
    return ordered[best[0] : best[1]]


def _turns(short: Sequence[Short]) -> int:
    """How many of them one after the other, the earlier ended before the later began."""
    turns, ended = 0, -1
    for one in sorted(short, key=lambda one: one.flow["ts_closed"]):
        if one.flow["ts_first"] > ended:
            turns, ended = turns + 1, one.flow["ts_closed"]
    return turns


def _client_stays(short: Sequence[Short], watching: Sequence[Row]) -> bool:
    """Does one client open them all? Each client has connections of its own that watch the server, as long as it is
    there."""
    from_ns, until_ns = short[0].flow["ts_first"], short[-1].flow["ts_first"]
    stay = [one for one in watching if one["ts_first"] + lasted_ns(one) >= until_ns and one["ts_first"] <= from_ns]
    return bool(stay) and 2 * (len(watching) - len(stay)) < len(short)


def _never_closed(short: Sequence[Short], connections: int) -> Finding:
    rows = sorted((one.hello for one in short), key=lambda row: (row["ts"], row["exchange_id"]))
    first = rows[0]
    lasted_s = (rows[-1]["ts"] - first["ts"]) / NS_PER_S
    return command_finding(
        RULE,
        rows,
        severity="warning",
        confidence="medium",
        subject={"address": first["client_address"], "application": first["app_name"], "driver": first["driver"]},
        title=f"{len(rows)} connections left open: {client_title(first)} at {server_text(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} makes a client for each piece of work and closes none: in "
            f"{lasted_s:.0f} s it opened {len(rows)} connections to {server_text(first)} for one or two commands each, "
            f"which are all open and idle in the end ({count(connections, 'connection')} of it in total). Their number "
            "grows all the time."
        ),
        next_step=(
            "Make one client object (MongoClient) when the program starts, and let all work share it and its pool; "
            "where there must be several, close each after use, also when it fails."
        ),
        numbers={
            "kind": "never closed",
            "left_open": len(rows),
            "left_behind": len(rows),
            "connections": connections,
            "lasted_s": round(lasted_s, 3),
            "where": server_text(first),
            "clients": [client_numbers(first, connections=connections)],
        },
    )


def _for_each_request(short: Sequence[Short], in_all: int, connections: int, stays: bool) -> Finding:
    rows = [one.hello for one in short]
    first = rows[0]
    lasted_s = (short[-1].flow["ts_first"] - short[0].flow["ts_first"]) / NS_PER_S
    ready = [(one.begun_ns - one.flow["ts_first"]) / NS_PER_MS for one in short if one.begun_ns is not None]
    lived = median(lasted_ns(one.flow) for one in short) / NS_PER_MS
    return command_finding(
        RULE,
        rows,
        severity="warning",
        confidence="medium",
        subject={"address": first["client_address"], "application": first["app_name"], "driver": first["driver"]},
        title=(
            f"{'Connection' if stays else 'Client'} per request: {len(short)} connections in {lasted_s:.0f} s, by "
            f"{client_title(first)} at {server_text(first)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} {_STAYS if stays else _MAKES}: within {lasted_s:.0f} s it opened "
            f"{len(short)} connections to {listed(server_text(row) for row in rows)}. They carried one or two "
            f"commands each and were closed after {ms_text(lived)} (median). {ms_text(median(ready))} of that went by "
            f"before the first command could be sent."
        ),
        next_step=_NEXT_STAYS
        if stays
        else (
            "Make one client object (MongoClient) when the program starts, and let all requests share it and its pool; "
            "do not close it after each."
        ),
        numbers={
            "kind": "connection per request" if stays else "client per request",
            "in_fullest_minute": len(short),
            "short_connections": in_all,
            "connections": connections,
            "median_ms": round(lived, 3),
            "left_behind": in_all,
            "wasted_ms": round(sum(ready), 3),
            "where": server_text(first),
            "clients": [client_numbers(first, connections=connections)],
        },
    )


_MAKES = "makes a client for each request"
_STAYS = "opens a connection for nearly each request although its client stays, which watches the server all the time"
_NEXT_STAYS = (
    "Raise maxIdleTimeMS of the client's pool above the pauses between its requests (0: for ever), and look at "
    "minPoolSize and at who closes them."
)


def _more_than_usual(
    flows: Sequence[Row], first_hellos: Mapping[str, Row], times: float, minutes_least: int, connections_least: int
) -> Iterator[Finding]:
    if len(first_hellos) < connections_least:
        return
    start = min(flow["ts_first"] for flow in flows)
    end = max(flow["observed_until"] or flow["ts_last"] for flow in flows)
    fullest, usual, minutes = by_minute(list(first_hellos.values()), start, end)
    if minutes >= minutes_least and len(fullest) >= times * max(usual, 1):
        yield _finding(fullest, len(first_hellos), minutes, usual)


def _finding(rows: list[Row], connections: int, minutes: int, usual: float) -> Finding:
    clients = by_client(rows)
    first = clients[0][0]
    more = f" and {count(len(clients) - 1, 'more application')}" if len(clients) > 1 else ""
    return command_finding(
        RULE,
        rows,
        severity="warning",
        confidence="medium",
        subject={"address": first["client_address"]},
        title=(
            f"{len(rows)} connections within a minute, {usual:g} usually: {client_title(first)} at {server_text(first)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))}{more} opened {len(rows)} connections to "
            f"{listed(server_text(row) for row in rows)} within a minute. Its median is {usual:g} a minute "
            f"({connections} in {minutes} minutes)."
        ),
        next_step=(
            "Look for a client object made for each request, for errors that clear the pool (MON102, MON103), and for "
            "maxIdleTimeMS and maxPoolSize; let several calls share one client."
        ),
        numbers={
            "kind": "more than usual",
            "in_fullest_minute": len(rows),
            "left_behind": len(rows),
            "median_per_minute": usual,
            "connections": connections,
            "minutes": minutes,
            "where": server_text(first),
            "clients": [client_numbers(held[0], connections=len(held)) for held in clients[:MOST_LISTED]],
        },
    )


RULE = Rule(
    code="MON107",
    question="repeated",
    name="connection-churn",
    severity="warning",
    confidence="medium",
    reads={
        "mongo_commands": COMMAND_COLUMNS,
        "flows": ("flow_id", "ts_first", "ts_last", "observed_until", "handshake_seen", "ts_closed"),
        "connection_ends": ("flow_id",),
    },
    partition_by=("client_address",),
    signs={"flows": "count(*) FILTER (handshake_seen) >= 20"},
    detect=detect,
    rows={
        "mongo_commands": f"awaitable IS NOT TRUE AND (command IN {HELLOS} OR flow_id IN (SELECT flow_id FROM "
        f"mongo_commands WHERE command NOT IN {HELLOS} AND command NOT IN {AROUND} GROUP BY flow_id "
        "HAVING count(*) <= 2))",
        "flows": MONGO_FLOWS,
        "connection_ends": "protocol = 'mongo' AND ended_by = 'client' AND (pending_due > 0 OR late_responses > 0)",
    },
    suspects="SELECT client_address FROM r_flows WHERE handshake_seen GROUP BY client_address HAVING count(*) >= 20",
)
